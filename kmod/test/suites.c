// SPDX-License-Identifier: GPL-2.0-only
/* Runs the KUnit suites when the module is loaded; included by main.c. */
#include "sock_helper.h"
#include "suites.h"

static struct kunit_suite *suites[] = {
	&sovia_wire_suite,
	&sovia_rdv_wire_suite,
	&sovia_secret_suite,
	&sovia_key_name_suite,
	&sovia_key_suite,
	&sovia_near_suite,
	&sovia_loop_suite,
	&sovia_direct_suite,
	&sovia_clan_pool_suite,
	&sovia_clan_ring_suite,
	&sovia_clan_vi_suite,
	&sovia_peer_suite,
	&sovia_peer_memory_suite,
	&sovia_rendezvous_suite,
	&sovia_rule_suite,
	&sovia_hist_suite,
	&sovia_tcp_log_suite,
	&sovia_state_suite,
	&sovia_credit_suite,
	&sovia_turn_suite,
	&sovia_port_suite,
	&sovia_listener_suite,
	&sovia_segment_suite,
	&sovia_window_suite,
	&sovia_charge_suite,
	&sovia_fault_suite,
#if IS_ENABLED(CONFIG_PROVE_LOCKING)
	&sovia_vi_check_suite,
#endif
	&sovia_events_suite,
	&sovia_link_suite,
	&sovia_link_life_suite,
	&sovia_link_park_suite,
	&sovia_link_vi_suite,
	&sovia_link_trial_suite,
	&sovia_urgent_suite,
	&sovia_listen_suite,
	&sovia_hostile_suite,
	&sovia_recover_suite,
	&sovia_limits_suite,
	&sovia_pressure_suite,
	&sovia_close_suite,
	&sovia_connect_suite,
	&sovia_send_page_suite,
	&sovia_verbs_suite,
	&sovia_verbs_cm_suite,
	&sovia_verbs_dev_suite,
	&sovia_verbs_listen_suite,
};

static int __init sovia_test_init(void)
{
	bool lane = *test_loop_lane();
	int err = sovia_init();

	if (err)
		return err;
	*test_loop_lane() = true;
	/* A failing test does not fail module loading. */
	__kunit_test_suites_init(suites, ARRAY_SIZE(suites));
	*test_loop_lane() = lane;
	return 0;
}

static void __exit sovia_test_exit(void)
{
	__kunit_test_suites_exit(suites, ARRAY_SIZE(suites));
	sovia_exit();
}

module_init(sovia_test_init);
module_exit(sovia_test_exit);

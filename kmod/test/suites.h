/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * KUnit suites.  They are included by the files they test; this list runs them when the
 * family is registered (6.1's kunit_test_suites() would run them before that).
 */
#ifndef _SOVIA_TEST_SUITES_H
#define _SOVIA_TEST_SUITES_H

#include <kunit/test.h>

extern struct kunit_suite sovia_wire_suite;
extern struct kunit_suite sovia_rdv_wire_suite;
extern struct kunit_suite sovia_secret_suite;
extern struct kunit_suite sovia_key_name_suite;
extern struct kunit_suite sovia_key_suite;
extern struct kunit_suite sovia_near_suite;
extern struct kunit_suite sovia_loop_suite;
extern struct kunit_suite sovia_direct_suite;
extern struct kunit_suite sovia_clan_pool_suite;
extern struct kunit_suite sovia_clan_ring_suite;
extern struct kunit_suite sovia_clan_vi_suite;
extern struct kunit_suite sovia_peer_suite;
extern struct kunit_suite sovia_peer_memory_suite;
extern struct kunit_suite sovia_rendezvous_suite;
extern struct kunit_suite sovia_rule_suite;
extern struct kunit_suite sovia_hist_suite;
extern struct kunit_suite sovia_tcp_log_suite;
extern struct kunit_suite sovia_state_suite;
extern struct kunit_suite sovia_credit_suite;
extern struct kunit_suite sovia_turn_suite;
extern struct kunit_suite sovia_port_suite;
extern struct kunit_suite sovia_listener_suite;
extern struct kunit_suite sovia_segment_suite;
extern struct kunit_suite sovia_window_suite;
extern struct kunit_suite sovia_charge_suite;
extern struct kunit_suite sovia_fault_suite;
extern struct kunit_suite sovia_vi_check_suite;
extern struct kunit_suite sovia_events_suite;
extern struct kunit_suite sovia_link_suite;
extern struct kunit_suite sovia_link_life_suite;
extern struct kunit_suite sovia_link_park_suite;
extern struct kunit_suite sovia_link_vi_suite;
extern struct kunit_suite sovia_link_trial_suite;
extern struct kunit_suite sovia_urgent_suite;
extern struct kunit_suite sovia_listen_suite;
extern struct kunit_suite sovia_hostile_suite;
extern struct kunit_suite sovia_recover_suite;
extern struct kunit_suite sovia_limits_suite;
extern struct kunit_suite sovia_pressure_suite;
extern struct kunit_suite sovia_close_suite;
extern struct kunit_suite sovia_connect_suite;
extern struct kunit_suite sovia_send_page_suite;
extern struct kunit_suite sovia_verbs_suite;
extern struct kunit_suite sovia_verbs_cm_suite;
extern struct kunit_suite sovia_verbs_dev_suite;
extern struct kunit_suite sovia_verbs_listen_suite;

#endif /* _SOVIA_TEST_SUITES_H */

// SPDX-License-Identifier: GPL-2.0-only
/* Counters: their names, and sums. */
#include <net/ip.h>
#include "net.h"

static const char * const stat_names[] = {
	[SOVIA_STAT_verbs_tx_msgs] = "verbs_tx_msgs",
	[SOVIA_STAT_verbs_tx_bytes] = "verbs_tx_bytes",
	[SOVIA_STAT_verbs_rx_msgs] = "verbs_rx_msgs",
	[SOVIA_STAT_verbs_rx_bytes] = "verbs_rx_bytes",
	[SOVIA_STAT_loop_tx_msgs] = "loop_tx_msgs",
	[SOVIA_STAT_loop_tx_bytes] = "loop_tx_bytes",
	[SOVIA_STAT_loop_rx_msgs] = "loop_rx_msgs",
	[SOVIA_STAT_loop_rx_bytes] = "loop_rx_bytes",
	[SOVIA_STAT_clan_tx_msgs] = "clan_tx_msgs",
	[SOVIA_STAT_clan_tx_bytes] = "clan_tx_bytes",
	[SOVIA_STAT_clan_rx_msgs] = "clan_rx_msgs",
	[SOVIA_STAT_clan_rx_bytes] = "clan_rx_bytes",
	[SOVIA_STAT_compact_tx] = "compact_tx",
	[SOVIA_STAT_ack_tx] = "ack_tx",
	[SOVIA_STAT_ack_rx] = "ack_rx",
	[SOVIA_STAT_wakeup_tx] = "wakeup_tx",
	[SOVIA_STAT_pressure_tx] = "pressure_tx",
	[SOVIA_STAT_return_tx] = "return_tx",
	[SOVIA_STAT_credit_stall] = "credit_stall",
	[SOVIA_STAT_window_grow] = "window_grow",
	[SOVIA_STAT_window_stall] = "window_stall",
	[SOVIA_STAT_combined] = "combined",
	[SOVIA_STAT_link_up] = "link_up",
	[SOVIA_STAT_link_down] = "link_down",
	[SOVIA_STAT_link_fail] = "link_fail",
	[SOVIA_STAT_link_park] = "link_park",
	[SOVIA_STAT_link_resume] = "link_resume",
	[SOVIA_STAT_link_recover] = "link_recover",
	[SOVIA_STAT_link_recover_fail] = "link_recover_fail",
	[SOVIA_STAT_tx_again] = "tx_again",
	[SOVIA_STAT_busy_hit] = "busy_hit",
	[SOVIA_STAT_busy_miss] = "busy_miss",
	[SOVIA_STAT_conn_active] = "conn_active",
	[SOVIA_STAT_conn_passive] = "conn_passive",
	[SOVIA_STAT_conn_refused] = "conn_refused",
	[SOVIA_STAT_conn_retry] = "conn_retry",
	[SOVIA_STAT_fallback] = "fallback",
	[SOVIA_STAT_fallback_known] = "fallback_known",
	[SOVIA_STAT_dry_syn] = "dry_syn",
	[SOVIA_STAT_dry_syn_tcp] = "dry_syn_tcp",
	[SOVIA_STAT_reset_tx] = "reset_tx",
	[SOVIA_STAT_reset_rx] = "reset_rx",
	[SOVIA_STAT_no_socket] = "no_socket",
	[SOVIA_STAT_nomem] = "nomem",
	[SOVIA_STAT_no_room] = "no_room",
	[SOVIA_STAT_uncharged] = "uncharged",
	[SOVIA_STAT_no_link] = "no_link",
	[SOVIA_STAT_bad_message] = "bad_message",
	[SOVIA_STAT_bad_sequence] = "bad_sequence",
	[SOVIA_STAT_bad_ack] = "bad_ack",
	[SOVIA_STAT_bad_window] = "bad_window",
	[SOVIA_STAT_bad_state] = "bad_state",
	[SOVIA_STAT_bad_hello] = "bad_hello",
	[SOVIA_STAT_bad_port] = "bad_port",
	[SOVIA_STAT_bad_mac] = "bad_mac",
	[SOVIA_STAT_peer_up] = "peer_up",
	[SOVIA_STAT_peer_join] = "peer_join",
	[SOVIA_STAT_peer_refused] = "peer_refused",
	[SOVIA_STAT_clan_late] = "clan_late",
	[SOVIA_STAT_clan_rings] = "clan_rings",
	[SOVIA_STAT_clan_mutes] = "clan_mutes",
	[SOVIA_STAT_clan_refused] = "clan_refused",
};

/**
 * sovia_stat_name() - name of a counter
 * @which: below SOVIA_STAT_COUNT
 *
 * Return: its name.
 */
const char *sovia_stat_name(enum sovia_stat which)
{
	BUILD_BUG_ON(ARRAY_SIZE(stat_names) != SOVIA_STAT_COUNT);
	return stat_names[which];
}

/**
 * sovia_stat_sum() - a counter of a namespace, of all processors
 * @snet: the namespace
 * @which: counter
 *
 * Context: any.
 * Return: its value.
 */
u64 sovia_stat_sum(const struct sovia_net *snet, enum sovia_stat which)
{
	u64 sum = 0;
	int cpu;

	/* snmp_fold_field() is not exported. */
	for_each_possible_cpu(cpu)
		sum += snmp_get_cpu_field(snet->mib, cpu, which);
	return sum;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Counters: their names, and sums. */
#include <net/ip.h>
#include "net.h"

#define NAME(counter)	[SOVIA_STAT_##counter] = #counter

static const char * const stat_names[] = {
	NAME(verbs_tx_msgs),
	NAME(verbs_tx_bytes),
	NAME(verbs_rx_msgs),
	NAME(verbs_rx_bytes),
	NAME(loop_tx_msgs),
	NAME(loop_tx_bytes),
	NAME(loop_rx_msgs),
	NAME(loop_rx_bytes),
	NAME(clan_tx_msgs),
	NAME(clan_tx_bytes),
	NAME(clan_rx_msgs),
	NAME(clan_rx_bytes),
	NAME(compact_tx),
	NAME(ack_tx),
	NAME(ack_rx),
	NAME(wakeup_tx),
	NAME(pressure_tx),
	NAME(return_tx),
	NAME(credit_stall),
	NAME(window_grow),
	NAME(window_stall),
	NAME(combined),
	NAME(link_up),
	NAME(link_down),
	NAME(link_fail),
	NAME(link_park),
	NAME(link_resume),
	NAME(link_recover),
	NAME(link_recover_fail),
	NAME(tx_again),
	NAME(busy_hit),
	NAME(busy_miss),
	NAME(conn_active),
	NAME(conn_passive),
	NAME(conn_refused),
	NAME(conn_retry),
	NAME(fallback),
	NAME(fallback_known),
	NAME(dry_syn),
	NAME(dry_syn_tcp),
	NAME(reset_tx),
	NAME(reset_rx),
	NAME(no_socket),
	NAME(nomem),
	NAME(no_room),
	NAME(uncharged),
	NAME(no_link),
	NAME(bad_message),
	NAME(bad_sequence),
	NAME(bad_ack),
	NAME(bad_window),
	NAME(bad_state),
	NAME(bad_hello),
	NAME(bad_port),
	NAME(bad_mac),
	NAME(peer_up),
	NAME(peer_join),
	NAME(peer_refused),
	NAME(clan_late),
	NAME(clan_rings),
	NAME(clan_mutes),
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

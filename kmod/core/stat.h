/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of a network namespace, per CPU, shown under the lower-case part of their names:
 * /proc/net/sovia/stat, admin/genl_stat.c.
 */
#ifndef _SOVIA_STAT_H
#define _SOVIA_STAT_H

#include <net/snmp.h>

/**
 * enum sovia_stat - what is counted
 * @SOVIA_STAT_verbs_tx_msgs: messages sent over verbs lanes
 * @SOVIA_STAT_verbs_tx_bytes: payload bytes of them
 * @SOVIA_STAT_verbs_rx_msgs: messages received over verbs lanes
 * @SOVIA_STAT_verbs_rx_bytes: payload bytes of them
 * @SOVIA_STAT_loop_tx_msgs: messages sent over the loop provider
 * @SOVIA_STAT_loop_tx_bytes: payload bytes of them
 * @SOVIA_STAT_loop_rx_msgs: messages received over it
 * @SOVIA_STAT_loop_rx_bytes: payload bytes of them
 * @SOVIA_STAT_clan_tx_msgs: messages sent to other virtual machines in shared memory
 * @SOVIA_STAT_clan_tx_bytes: payload bytes of them
 * @SOVIA_STAT_clan_rx_msgs: messages received in it
 * @SOVIA_STAT_clan_rx_bytes: payload bytes of them
 * @SOVIA_STAT_compact_tx: messages sent without a header
 * @SOVIA_STAT_ack_tx: explicit ACK messages sent
 * @SOVIA_STAT_ack_rx: explicit ACK messages received
 * @SOVIA_STAT_wakeup_tx: WAKEUP messages sent
 * @SOVIA_STAT_pressure_tx: PRESSURE messages sent
 * @SOVIA_STAT_return_tx: RETURN messages sent
 * @SOVIA_STAT_credit_stall: times a lane ran out of credits with work waiting
 * @SOVIA_STAT_window_grow: times a lane's window was to become larger
 * @SOVIA_STAT_window_stall: times a socket ran out of window
 * @SOVIA_STAT_combined: sends combined with queued ones
 * @SOVIA_STAT_link_up: links set up
 * @SOVIA_STAT_link_down: links that went down
 * @SOVIA_STAT_link_fail: links that could not be set up
 * @SOVIA_STAT_link_park: links parked
 * @SOVIA_STAT_link_resume: parked links that were resumed
 * @SOVIA_STAT_link_recover: lost lanes that were replaced
 * @SOVIA_STAT_link_recover_fail: links that went down because recovery failed
 * @SOVIA_STAT_tx_again: messages retransmitted over another lane
 * @SOVIA_STAT_busy_hit: waits for data in which busy polling succeeded
 * @SOVIA_STAT_busy_miss: waits for data in which busy polling did not
 * @SOVIA_STAT_conn_active: connections opened by connect()
 * @SOVIA_STAT_conn_passive: connections opened for a listener
 * @SOVIA_STAT_conn_refused: CONN messages answered with REFUSE
 * @SOVIA_STAT_conn_retry: CONN messages retried
 * @SOVIA_STAT_fallback: connections that went on with TCP
 * @SOVIA_STAT_fallback_known: those of them that did so at once, as it was known before
 * @SOVIA_STAT_dry_syn: SYNs that netfilter was shown
 * @SOVIA_STAT_dry_syn_tcp: those of them that it did not accept as they were
 * @SOVIA_STAT_reset_tx: RESET messages sent
 * @SOVIA_STAT_reset_rx: RESET messages received
 * @SOVIA_STAT_no_socket: messages for ports without a connection
 * @SOVIA_STAT_nomem: allocations that failed and are retried
 * @SOVIA_STAT_no_room: connections refused at the limit mem, orphans reset at max_orphans
 * @SOVIA_STAT_uncharged: messages received beyond the limit of a memory control group
 * @SOVIA_STAT_no_link: links refused because of max_links
 * @SOVIA_STAT_bad_message: malformed messages
 * @SOVIA_STAT_bad_sequence: messages out of sequence or beyond the credit
 * @SOVIA_STAT_bad_ack: acknowledgments of messages never sent
 * @SOVIA_STAT_bad_window: messages beyond the socket's window
 * @SOVIA_STAT_bad_state: messages not allowed in the connection's state
 * @SOVIA_STAT_bad_hello: link set-ups refused because of the peer's hello
 * @SOVIA_STAT_bad_port: link set-ups refused because of an unprivileged source port
 * @SOVIA_STAT_bad_mac: link set-ups and introductions refused because of a wrong MAC
 * @SOVIA_STAT_peer_up: kernels that introduced themselves
 * @SOVIA_STAT_peer_join: directions opened since, by a JOIN
 * @SOVIA_STAT_peer_refused: those that were refused
 * @SOVIA_STAT_clan_late: messages in shared memory whose doorbell has not been heard
 * @SOVIA_STAT_clan_rings: doorbells of other virtual machines rung
 * @SOVIA_STAT_clan_mutes: how often those of this one, ringing for nothing, were muted
 * @SOVIA_STAT_clan_refused: requests and answers in shared memory not sent, as too many waited
 * @SOVIA_STAT_COUNT: number of counters
 */
enum sovia_stat {
	SOVIA_STAT_verbs_tx_msgs,
	SOVIA_STAT_verbs_tx_bytes,
	SOVIA_STAT_verbs_rx_msgs,
	SOVIA_STAT_verbs_rx_bytes,
	SOVIA_STAT_loop_tx_msgs,
	SOVIA_STAT_loop_tx_bytes,
	SOVIA_STAT_loop_rx_msgs,
	SOVIA_STAT_loop_rx_bytes,
	SOVIA_STAT_clan_tx_msgs,
	SOVIA_STAT_clan_tx_bytes,
	SOVIA_STAT_clan_rx_msgs,
	SOVIA_STAT_clan_rx_bytes,
	SOVIA_STAT_compact_tx,
	SOVIA_STAT_ack_tx,
	SOVIA_STAT_ack_rx,
	SOVIA_STAT_wakeup_tx,
	SOVIA_STAT_pressure_tx,
	SOVIA_STAT_return_tx,
	SOVIA_STAT_credit_stall,
	SOVIA_STAT_window_grow,
	SOVIA_STAT_window_stall,
	SOVIA_STAT_combined,
	SOVIA_STAT_link_up,
	SOVIA_STAT_link_down,
	SOVIA_STAT_link_fail,
	SOVIA_STAT_link_park,
	SOVIA_STAT_link_resume,
	SOVIA_STAT_link_recover,
	SOVIA_STAT_link_recover_fail,
	SOVIA_STAT_tx_again,
	SOVIA_STAT_busy_hit,
	SOVIA_STAT_busy_miss,
	SOVIA_STAT_conn_active,
	SOVIA_STAT_conn_passive,
	SOVIA_STAT_conn_refused,
	SOVIA_STAT_conn_retry,
	SOVIA_STAT_fallback,
	SOVIA_STAT_fallback_known,
	SOVIA_STAT_dry_syn,
	SOVIA_STAT_dry_syn_tcp,
	SOVIA_STAT_reset_tx,
	SOVIA_STAT_reset_rx,
	SOVIA_STAT_no_socket,
	SOVIA_STAT_nomem,
	SOVIA_STAT_no_room,
	SOVIA_STAT_uncharged,
	SOVIA_STAT_no_link,
	SOVIA_STAT_bad_message,
	SOVIA_STAT_bad_sequence,
	SOVIA_STAT_bad_ack,
	SOVIA_STAT_bad_window,
	SOVIA_STAT_bad_state,
	SOVIA_STAT_bad_hello,
	SOVIA_STAT_bad_port,
	SOVIA_STAT_bad_mac,
	SOVIA_STAT_peer_up,
	SOVIA_STAT_peer_join,
	SOVIA_STAT_peer_refused,
	SOVIA_STAT_clan_late,
	SOVIA_STAT_clan_rings,
	SOVIA_STAT_clan_mutes,
	SOVIA_STAT_clan_refused,
	SOVIA_STAT_COUNT
};

/* Of a provider's four counters, which one. */
#define SOVIA_STATS_TX_MSGS	0
#define SOVIA_STATS_TX_BYTES	1
#define SOVIA_STATS_RX_MSGS	2
#define SOVIA_STATS_RX_BYTES	3

/**
 * struct sovia_mib - one CPU's counters
 * @mibs: by enum sovia_stat
 */
struct sovia_mib {
	unsigned long	mibs[SOVIA_STAT_COUNT];
};

struct sovia_net;

const char *sovia_stat_name(enum sovia_stat which);
u64 sovia_stat_sum(const struct sovia_net *snet, enum sovia_stat which);

#define sovia_stat_add(snet, name, n) \
	SNMP_ADD_STATS((snet)->mib, SOVIA_STAT_##name, n)
#define sovia_stat_add_at(snet, which, n) \
	SNMP_ADD_STATS((snet)->mib, which, n)
#define sovia_stat_inc(snet, name) \
	SNMP_INC_STATS((snet)->mib, SOVIA_STAT_##name)

#endif /* _SOVIA_STAT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters of a network namespace, per CPU, shown in /proc/net/sovia/stat under
 * the lower-case names of this list.
 */
#ifndef _SOVIA_STAT_H
#define _SOVIA_STAT_H

#include <linux/percpu.h>
#include <linux/types.h>

/* X(name, what it counts) */
#define SOVIA_STATS(X) \
	X(verbs_tx_msgs,	"messages sent over verbs lanes") \
	X(verbs_tx_bytes,	"payload bytes of them") \
	X(verbs_rx_msgs,	"messages received over verbs lanes") \
	X(verbs_rx_bytes,	"payload bytes of them") \
	X(loop_tx_msgs,		"the same for the loop provider") \
	X(loop_tx_bytes,	"") \
	X(loop_rx_msgs,		"") \
	X(loop_rx_bytes,	"") \
	X(ack_tx,		"explicit ACK messages sent") \
	X(ack_rx,		"explicit ACK messages received") \
	X(wakeup_tx,		"WAKEUP messages sent") \
	X(credit_stall,		"times a lane ran out of credits with work waiting") \
	X(window_stall,		"times a socket ran out of window") \
	X(combined,		"sends that found others waiting to be combined with") \
	X(link_up,		"links set up") \
	X(link_down,		"links that went down") \
	X(link_fail,		"links that could not be set up") \
	X(conn_active,		"connections opened by connect()") \
	X(conn_passive,		"connections opened for a listener") \
	X(conn_refused,		"CONN messages answered with REFUSE") \
	X(conn_retry,		"CONN messages sent again") \
	X(reset_tx,		"RESET messages sent") \
	X(reset_rx,		"RESET messages received") \
	X(no_socket,		"messages for ports that no connection has") \
	X(nomem,		"allocations that failed and were put off") \
	X(bad_message,		"messages that broke the format") \
	X(bad_sequence,		"messages out of sequence or beyond the credit") \
	X(bad_ack,		"acknowledgements of messages never sent") \
	X(bad_window,		"messages beyond the socket's window") \
	X(bad_state,		"messages that the connection's state forbids") \
	X(bad_hello,		"link set-ups refused for what the peer said")

enum sovia_stat {
#define SOVIA_STAT_ENUM(name, help) SOVIA_STAT_##name,
	SOVIA_STATS(SOVIA_STAT_ENUM)
#undef SOVIA_STAT_ENUM
	SOVIA_STAT_COUNT
};

/**
 * struct sovia_mib - one CPU's counters
 * @val: by enum sovia_stat
 */
struct sovia_mib {
	u64	val[SOVIA_STAT_COUNT];
};

#define sovia_stat_add(snet, name, n) \
	this_cpu_add((snet)->mib->val[SOVIA_STAT_##name], n)
#define sovia_stat_inc(snet, name)	sovia_stat_add(snet, name, 1)

#endif /* _SOVIA_STAT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections: the link layer's part of a socket. */
#ifndef _SOVIA_CONN_H
#define _SOVIA_CONN_H

#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/skbuff.h>
#include <net/sock.h>

struct sovia_link;

/* Limit of conn->txq; further data stays in the socket. */
#define SOVIA_TXQ_MAX		4

/* Pending control messages of a connection: bits of conn->ctl. */
#define SOVIA_CTL(type)		BIT(type)

/**
 * struct sovia_conn_key - finds a connection on its link
 * @link: the link
 * @lport: own port, host order
 * @rport: the peer's port, host order
 */
struct sovia_conn_key {
	struct sovia_link	*link;
	u16			lport;
	u16			rport;
};

/**
 * struct sovia_conn - a socket as its link sees it
 * @sk: the socket this is embedded in; its references are ours
 * @key: link and ports; the link reference is held until the socket dies
 * @gen: generation, counts the socket's connections: passed with upcalls, so that
 *	those about an earlier connection are dropped.  Written by
 *	sovia_leave_link(), together with the end of @key.
 * @hash_node: in sovia_net::conns while it receives messages
 * @hashed: @hash_node is in the table.  Protected by the socket lock.
 * @link_node: in sovia_link::conns.  Protected by link->lock.
 * @txq: messages handed to the lane that wait for credit
 * @ready_node: in sovia_lane::ready when @txq is not empty
 * @ctl_node: in sovia_lane::ctl when @ctl is not 0; holds a socket reference
 * @ctl: control messages to send, SOVIA_CTL() bits
 * @ref: sequence number of the CONN that ACCEPT answers
 * @code: reason, for RESET
 * @urgent: stream offset, for URGENT
 * @conn_seq: sequence number of the CONN we sent
 * @fin: the message with our FIN, until it is delivered
 * @tx_wanted: the client waits for tx_ready
 * @inflight: messages in @txq or posted and not completed; atomic because those
 *	of an earlier connection may still be in flight on another lane
 * @rcv_wnd_end: stream offset up to which the peer may send.  Written under the
 *	receive queue's lock, read by senders of messages.
 * @rcv_wnd_sent: the @rcv_wnd_end in the last message sent.  A hint without the lock.
 * @wnd_update_min: difference of the two that needs a header.  Locking as for @rcv_wnd_end.
 * @outq: payload bytes queued and not yet acknowledged
 * @acked: payload bytes acknowledged so far
 *
 * From @txq to @tx_wanted protected by lane->lock.
 */
struct sovia_conn {
	struct sock		*sk;
	struct sovia_conn_key	key;
	u32			gen;
	struct rhash_head	hash_node;
	bool			hashed;
	struct list_head	link_node;
	struct sk_buff_head	txq;
	struct list_head	ready_node;
	struct list_head	ctl_node;
	unsigned long		ctl;
	u32			ref;
	u32			code;
	u32			urgent;
	u32			conn_seq;
	struct sk_buff		*fin;
	bool			tx_wanted;
	atomic_t		inflight;
	u32			rcv_wnd_end;
	u32			rcv_wnd_sent;
	u32			wnd_update_min;
	atomic_t		outq;
	atomic64_t		acked;
};

void sovia_conn_init(struct sovia_conn *conn, struct sock *sk);
bool sovia_conn_send(struct sovia_conn *conn, struct sk_buff *skb, bool small);
void sovia_conn_control(struct sovia_conn *conn, u8 type, u32 code);
void sovia_conn_urgent(struct sovia_conn *conn, u32 pos);
void sovia_conn_purge(struct sovia_conn *conn);
void sovia_conn_leave(struct sovia_conn *conn);
u32 sovia_conn_payload(const struct sovia_conn *conn);
int sovia_conn_flight_max(const struct sovia_conn *conn);
int sovia_conn_max_frags(const struct sovia_conn *conn);

#endif /* _SOVIA_CONN_H */

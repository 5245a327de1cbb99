/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections, on the lane of a link. */
#ifndef _SOVIA_CONN_H
#define _SOVIA_CONN_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/refcount.h>
#include <linux/rhashtable-types.h>
#include <linux/skbuff.h>
#include <net/sock.h>
#include <sovia/wire.h>

struct iov_iter;
struct sovia_lane;

/* Limit of conn->txq; further data stays in the socket. */
#define SOVIA_TXQ_MAX		4

/* Room for arguments of the socket layer's events, see sovia_conn::later_arg. */
#define SOVIA_CONN_ARGS		10

/* Pending control messages of a connection: bits of conn->ctl. */
#define SOVIA_CTL(type)		BIT(type)

/**
 * struct sovia_conn - a connection: what a lane and a socket know of each other
 * @refs: see below
 * @lock: protects @sk; held by the bottom half while it works for the socket, so that
 *	the socket stays.  Taken with bottom halves off.
 * @sk: the socket, or NULL when it has left.  Without @lock, under RCU: its lock and its
 *	connection decide.
 * @lane: its lane, with a reference to the link; never changes
 * @lport: own port, host order; never changes
 * @rport: the peer's port, host order; never changes
 * @tenant: number of the socket's tenant; never changes
 * @preferred: SO_PRIORITY or IP_TOS of the socket; a hint
 * @hashed: @hash_node is in the table.  Socket lock; read without it, too.
 * @attached: @link_node is in a list.  Socket lock.
 * @tx_wanted: the client waits for tx_ready.  lane->lock.
 * @direct: @mate has been set.  It stays set when the socket has left.
 * @detour: the link has not been UP since, and the lane carries what this end sends
 * @conn_seq: sequence number of the CONN we sent.  lane->lock.
 * @hash_node: in the table while it receives messages
 * @link_node: in sovia_link::conns.  Protected by link->lock.
 * @txq: messages handed to the lane that wait for credit
 * @ready_node: in its tenant's struct sovia_turn when @txq is not empty
 * @rcu: frees it: readers find it in the table, or by its socket.  It is in no list then
 * @ctl_node: as @ready_node, when @ctl is not 0
 * @ctl: control messages to send, SOVIA_CTL() bits
 * @ref: sequence number of the CONN that ACCEPT answers; sovia_conn_ref() of the CONN to send
 * @code: reason, for RESET
 * @urgent: stream offset, for URGENT
 * @returned: stream offset, for RETURN
 * @taken: stream offset up to which the socket has taken data, for RESET, if @refuses.  Written
 *	under the receive queue's lock.
 * @refuses: the socket takes no more.  As @taken.
 * @reset: RESET has been queued, or sent
 * @fin: the message with our FIN, until it is delivered
 * @inflight: messages in @txq or posted and not completed
 * @rcv_wnd_end: stream offset up to which the peer may send, as messages tell.  Written under
 *	the receive queue's lock.
 * @rcv_wnd_sent: the @rcv_wnd_end in the last message sent.  A hint without the lock.
 * @wnd_update_min: difference of the two that needs a header.  Locking as for @rcv_wnd_end.
 * @outq: payload bytes queued and not yet acknowledged
 * @lost: payload bytes that were dropped before they were acknowledged
 * @acked: payload bytes acknowledged so far
 * @mate: the other end, with a reference, if both are here (direct.c).  Written under @lock.
 * @later: the socket layer's events that wait for a softirq, for @direct ones
 * @later_arg: their arguments
 * @later_node: in the queue of such connections
 *
 * From @txq to @inflight protected by lane->lock, but for @taken and @refuses.
 *
 * Each connection has a new one, even on the same socket and the same ports: so a
 * pointer identifies a connection, and nothing that is late can reach a later one.
 *
 * References:
 *
 * - the socket, until it connects again or is freed
 * - the table of connections, and the link's list
 * - the lane's list, while control messages wait: what is owed to the peer does not
 *	need the socket
 * - each stream message, until its last reference is gone
 * - upcalls have none: RCU, and then @lock, keep it
 */
struct sovia_conn {
	refcount_t		refs;
	spinlock_t		lock;	/* see above */
	struct sock		*sk;
	struct sovia_lane	*lane;
	u16			lport;
	u16			rport;
	u16			tenant;
	bool			preferred;
	bool			hashed;
	bool			attached;
	bool			tx_wanted;
	bool			direct;
	bool			detour;
	u32			conn_seq;
	struct rhash_head	hash_node;
	struct list_head	link_node;
	struct sk_buff_head	txq;
	union {
		struct list_head	ready_node;
		struct rcu_head		rcu;
	};
	struct list_head	ctl_node;
	unsigned long		ctl;
	u32			ref;
	u32			code;
	u32			urgent;
	u32			returned;
	u32			taken;
	bool			refuses;
	bool			reset;
	struct sk_buff		*fin;
	int			inflight;
	u32			rcv_wnd_end;
	u32			rcv_wnd_sent;
	u32			wnd_update_min;
	atomic_t		outq;
	atomic_t		lost;
	atomic64_t		acked;
	struct sovia_conn __rcu	*mate;
	unsigned long		later;
	u32			later_arg[SOVIA_CONN_ARGS];
	struct llist_node	later_node;
};

static inline void sovia_conn_get(struct sovia_conn *conn)
{
	refcount_inc(&conn->refs);
}

void sovia_conn_free(struct sovia_conn *conn);

/* Any context; readers under RCU may still use it. */
static inline void sovia_conn_put(struct sovia_conn *conn)
{
	if (refcount_dec_and_test(&conn->refs))
		sovia_conn_free(conn);
}

/* Not written without need: bottom halves read what is beside it. */
static inline void sovia_conn_prefer(struct sovia_conn *conn, bool preferred)
{
	if (unlikely(READ_ONCE(conn->preferred) != preferred))
		WRITE_ONCE(conn->preferred, preferred);
}

/* What RESET says of the stream that the socket has not taken: its ref, if the flag is returned. */
static inline u16 sovia_conn_tell_taken(const struct sovia_conn *conn, u32 *ref)
{
	/* Pairs with refuse_more(). */
	if (!smp_load_acquire(&conn->refuses))
		return 0;
	*ref = READ_ONCE(conn->taken);
	return SOVIA_F_TAKEN;
}

/* Is a header due, because the peer has not been told of a window that ends at @window? */
static inline bool sovia_conn_wnd_due(const struct sovia_conn *conn, u32 window)
{
	return window - READ_ONCE(conn->rcv_wnd_sent) >= READ_ONCE(conn->wnd_update_min);
}

void sovia_conn_put_later(struct sovia_conn *conn);
int sovia_conn_init(void);
void sovia_conn_exit(void);
struct sovia_conn *sovia_conn_create(struct sovia_lane *lane, struct sock *sk, u16 lport,
				     u16 rport, u16 tenant, gfp_t gfp);
bool sovia_conn_send(struct sovia_conn *conn, struct sk_buff *skb, bool small);
bool sovia_conn_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len);
void sovia_conn_control(struct sovia_conn *conn, u8 type, u32 arg);
bool sovia_conn_is_heard(const struct sovia_conn *conn);
void sovia_conn_purge(struct sovia_conn *conn);
void sovia_conn_leave(struct sovia_conn *conn);
u32 sovia_conn_payload(const struct sovia_conn *conn);
int sovia_conn_flight_max(const struct sovia_conn *conn);
int sovia_conn_max_frags(const struct sovia_conn *conn);
u32 sovia_conn_copybreak(const struct sovia_conn *conn);

#endif /* _SOVIA_CONN_H */

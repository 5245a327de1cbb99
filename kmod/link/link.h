/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The link layer: links between two addresses, their lanes, credits, and the
 * multiplexing of connections by port.  Knows the provider below; the socket
 * layer above it is struct sovia_client.
 *
 * Lock order, outermost first (Documentation/locking.rst):
 *	socket lock > link->lock > lane->lock > sk_receive_queue.lock
 */
#ifndef _SOVIA_LINK_H
#define _SOVIA_LINK_H

#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/rhashtable-types.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <net/sock.h>
#include "compat/timer.h"
#include "credit.h"
#include "net.h"
#include "provider.h"
#include "wire.h"

struct sovia_link;

/* Messages of one connection that may wait in the lane, not in the socket. */
#define SOVIA_TXQ_MAX		4

/* Control messages that a connection may have waiting: bits of conn->ctl. */
#define SOVIA_CTL(type)		BIT(type)

/**
 * enum sovia_link_state - life of a link
 * @SOVIA_LINK_NEW: no lane yet
 * @SOVIA_LINK_CONNECTING: the provider is setting the lane up
 * @SOVIA_LINK_UP: messages flow
 * @SOVIA_LINK_RECOVERING: the lane is lost, another VI is being set up; connections
 *	do not notice
 * @SOVIA_LINK_DOWN: dead and out of the table; connections have been told
 * @SOVIA_LINK_STATES: how many there are
 */
enum sovia_link_state {
	SOVIA_LINK_NEW,
	SOVIA_LINK_CONNECTING,
	SOVIA_LINK_UP,
	SOVIA_LINK_RECOVERING,
	SOVIA_LINK_DOWN,
	SOVIA_LINK_STATES
};

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
 * @gen: which connection of the socket this is: the bottom half says it in its upcalls,
 *	and what it has to say of an earlier one is dropped.  Written by
 *	sovia_leave_link(), together with the end of @key.
 * @hash_node: in sovia_net::conns while messages may find it
 * @hashed: it is there.  Protected by the socket lock.
 * @link_node: in sovia_link::conns.  Protected by link->lock.
 * @txq: messages handed to the lane that wait for credit
 * @ready_node: in sovia_lane::ready when @txq is not empty
 * @ctl_node: in sovia_lane::ctl when @ctl is not 0; holds a socket reference
 * @ctl: control messages to send, SOVIA_CTL() bits
 * @ref: what ACCEPT answers
 * @code: why RESET
 * @urgent: stream offset that URGENT speaks of
 * @conn_seq: lane number of the CONN we sent
 * @fin: the message with our FIN, until it is delivered
 * @tx_wanted: tell the client when @txq runs low
 * @inflight: messages in @txq or posted and not completed; atomic because those
 *	of a connection before may still be under way on another lane
 * @rcv_wnd_end: stream offset up to which we let the peer send.  Written under the
 *	receive queue's lock, read by senders of messages.
 * @rcv_wnd_sent: the @rcv_wnd_end that went with the last message.  A hint for others.
 * @wnd_update_min: so much of a difference between the two deserves a header.  As @rcv_wnd_end.
 * @outq: payload bytes given to us and not yet acknowledged
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

/**
 * struct sovia_tx_cb - skb->cb of a message on its way out
 * @conn: connection, or NULL if it belongs to the lane alone; pinned by skb->sk
 * @seq: number it was sent with
 * @len: payload bytes
 * @type: enum sovia_type
 * @prompt: others of its connection do not wait until it is sent
 * @flags: SOVIA_F_*
 * @sport: sender's port, or 0
 * @dport: receiver's port, or 0
 * @window: how far the receiver may send
 * @ref: as in struct sovia_hdr
 * @code: as in struct sovia_hdr
 */
struct sovia_tx_cb {
	struct sovia_conn	*conn;
	u32			seq;
	u32			len;
	u16			flags;
	u16			sport;
	u16			dport;
	u8			type;
	bool			prompt;
	u32			window;
	u32			ref;
	u32			code;
};

#define SOVIA_TX_CB(skb)	((struct sovia_tx_cb *)(skb)->cb)

/* Messages without a connection that may wait; more are not worth the memory. */
#define SOVIA_REPLIES_MAX		256

/**
 * struct sovia_reply - a message that belongs to no connection
 * @type: enum sovia_type
 * @sport: own port, or 0
 * @dport: the peer's port, or 0
 * @ref: number of the message it answers, or 0
 * @code: enum sovia_code
 */
struct sovia_reply {
	u8	type;
	u16	sport;
	u16	dport;
	u32	ref;
	u32	code;
};

/**
 * struct sovia_lane - one VI of a link, with its credits and queues
 * @link: the link
 * @lock: protects what follows; taken with bottom halves off.  post_send is
 *	called under it.
 * @id: of this end of the link, random
 * @peer_id: of the other end, 0 while it is not known
 * @active: we have asked for @vi, not the peer
 * @vi: the VI, NULL before and after
 * @open: messages may be queued: it has been up, and the link is not DOWN
 * @up: messages may be posted to @vi
 * @dead: @vi has died, or is being destroyed
 * @err: why it died
 * @payload: largest payload of a message to the peer
 * @own_payload: largest payload that we take
 * @max_frags: page fragments that a message may have
 * @compact: DATA may be compact
 * @tx_slots: whose, on the way out
 * @rx_slots: whose, on the way in; the bottom half's own
 * @credit: sequence numbers and credits
 * @ctl: connections with control messages waiting
 * @ctl_count: how many
 * @ready: connections with stream messages waiting, served in turn
 * @reply_ring: messages without a connection (REFUSE, PROBE, what one that left had to
 *	say), sent first: a ring, so that no memory is needed to owe one
 * @reply_first: the one that is next
 * @reply_count: how many
 * @rtx_queue: messages that have had a number, and go first: the provider had no room
 *	for them, or the VI that they were posted to has died
 * @unacked: messages sent and not acknowledged, in order of their numbers
 * @ack_timer: sends what is unacknowledged when the lane falls idle, and
 *	retries what failed for want of memory
 * @rx_time: when the last message came, jiffies.  A hint for others.
 */
struct sovia_lane {
	struct sovia_link	*link;
	spinlock_t		lock;	/* see above */
	u64			id;
	u64			peer_id;
	bool			active;
	struct sovia_vi		*vi;
	bool			open;
	bool			up;
	bool			dead;
	int			err;
	u32			payload;
	u32			own_payload;
	int			max_frags;
	bool			compact;
	struct sovia_slots	tx_slots;
	struct sovia_slots	rx_slots;
	struct sovia_credit	credit;
	struct list_head	ctl;
	unsigned int		ctl_count;
	struct list_head	ready;
	struct sovia_reply	reply_ring[SOVIA_REPLIES_MAX];
	unsigned int		reply_first;
	unsigned int		reply_count;
	struct sk_buff_head	rtx_queue;
	struct sk_buff_head	unacked;
	struct timer_list	ack_timer;
	unsigned long		rx_time;
};

/**
 * struct sovia_recovery - how a link comes back: link_recover.c
 * @since: when the lane was lost, jiffies
 * @up_since: when the last one was established, jiffies
 * @tx: the lane's first unacknowledged number then
 * @rx: number of the message expected then
 * @tries: attempts of ours since @since
 * @refused: attempts that the peer's node has refused, without another answer since
 *
 * The connection thread's own.
 */
struct sovia_recovery {
	unsigned long	since;
	unsigned long	up_since;
	u32		tx;
	u32		rx;
	unsigned int	tries;
	unsigned int	refused;
};

/**
 * struct sovia_link - all connections between two addresses that use one lane
 * @kref: the table (until DOWN), each connection, queued work and the armed timer
 * @rcu: readers of /proc may still look at it after the last reference
 * @snet: namespace; valid until the pernet exit has seen the link go
 * @pair: the key
 * @prov: carries it
 * @net_node: in sovia_net::links.  Protected by sovia_net::link_lock.
 * @lock: protects @state and @conns; taken with bottom halves off
 * @state: written by the connection thread only, through one gate
 * @conns: struct sovia_conn::link_node
 * @conn_count: length of @conns
 * @events: what the connection thread has to look at
 * @work: runs in the connection thread
 * @timer: retry of a set-up, the end of a recovery, and the idle probe
 * @lane: the lane
 * @recovery: of the lane
 * @seen_una: the lane's first unacknowledged number when the timer looked last
 * @waiting: the timer has looked, so something may have been on its way since
 * @rtr_retry: jiffies until the first message of the lane is repeated, or 0
 * @doubted: a peer asks for a link that is UP: does its lane still answer
 * @doubt_end: when it should have, jiffies
 * @doubt_una: the lane's first unacknowledged number when that began
 */
struct sovia_link {
	struct kref			kref;
	struct rcu_head			rcu;
	struct sovia_net		*snet;
	struct sovia_pair		pair;
	const struct sovia_provider	*prov;
	struct hlist_node		net_node;
	spinlock_t			lock;	/* see above */
	enum sovia_link_state		state;
	struct list_head		conns;
	unsigned int			conn_count;
	unsigned long			events;
	struct kthread_work		work;
	struct timer_list		timer;
	struct sovia_lane		lane;
	struct sovia_recovery		recovery;
	u32				seen_una;
	bool				waiting;
	unsigned long			rtr_retry;
	bool				doubted;
	unsigned long			doubt_end;
	u32				doubt_una;
};

/**
 * struct sovia_client - the socket layer, as upcalls
 *
 * @gen of an upcall is that of the connection which it is about: see struct sovia_conn.
 *
 * @request: a CONN came.  Softirq.  @skb, its payload, is borrowed.
 * @data: a DATA message came for @conn.  Softirq; the caller holds a reference.
 *	Returns true if it took @skb, the payload.
 * @control: any other message came for @conn.  Softirq; as above.
 * @tx_ready: messages of @conn have gone and there is room for more.  Softirq
 *	or process.
 * @delivered: the FIN of @conn has arrived.  Softirq or process.
 * @up: the link is up.  Connection thread, which holds a reference.
 * @down: the link is gone, @err is a negative errno.  Connection thread.
 */
struct sovia_client {
	void (*request)(struct sovia_link *link, struct sk_buff *skb,
			const struct sovia_msg *msg);
	bool (*data)(struct sovia_conn *conn, u32 gen, struct sk_buff *skb,
		     const struct sovia_msg *msg);
	void (*control)(struct sovia_conn *conn, u32 gen, const struct sovia_msg *msg);
	void (*tx_ready)(struct sovia_conn *conn);
	void (*delivered)(struct sovia_conn *conn, u32 gen);
	void (*up)(struct sovia_conn *conn, u32 gen);
	void (*down)(struct sovia_conn *conn, u32 gen, int err);
};

void sovia_link_register_client(const struct sovia_client *client);

extern const struct sovia_vi_client sovia_lane_vi_client;

/* link.c */
struct sovia_link *sovia_link_alloc(struct sovia_net *snet, const struct sovia_pair *pair,
				    const struct sovia_provider *prov, gfp_t gfp);
void sovia_link_ref(struct sovia_link *link);
void sovia_link_put(struct sovia_link *link);
int sovia_link_attach(struct sovia_link *link, struct sovia_conn *conn);
void sovia_link_detach(struct sovia_conn *conn);
void sovia_link_event(struct sovia_link *link, unsigned int event);
const char *sovia_link_state_name(enum sovia_link_state state);

/* link_net.c */
int sovia_link_listen(struct sovia_net *snet);
void sovia_link_net_init(struct sovia_net *snet);
void sovia_link_net_exit(struct sovia_net *snet);
void sovia_link_sock_put(struct sovia_net *snet);

/* link_table.c */
extern unsigned int sovia_max_links;
struct sovia_link *sovia_link_get(struct sovia_net *snet, const struct sovia_pair *pair,
				  const struct sovia_provider *prov, gfp_t gfp);
struct sovia_link *sovia_link_lookup(struct sovia_net *snet, const struct sovia_pair *pair);
struct sovia_link *sovia_link_first(struct sovia_net *snet);
void sovia_link_unlist(struct sovia_link *link);

/* Events of a link, bits of sovia_link::events. */
#define SOVIA_LINK_EV_START	0	/* a connection wants it */
#define SOVIA_LINK_EV_UP	1	/* the lane is established */
#define SOVIA_LINK_EV_DOWN	2	/* the lane died */
#define SOVIA_LINK_EV_KILL	3	/* the namespace goes, or it has to make room */
#define SOVIA_LINK_EV_TIMER	4	/* time to try again, to probe, to end it */
#define SOVIA_LINK_EV_BREAK	5	/* debugfs' file break: kill the lane */

/* lane.c */
void sovia_lane_init(struct sovia_lane *lane, struct sovia_link *link);
void sovia_lane_reset(struct sovia_lane *lane);
void sovia_lane_prepare(struct sovia_lane *lane, bool active, u64 peer_id);
void sovia_lane_vi_attr(const struct sovia_lane *lane, struct sovia_vi_attr *attr);
void sovia_lane_hello(const struct sovia_lane *lane, struct sovia_hello *hello);
void sovia_lane_fail(struct sovia_lane *lane, int err);
void sovia_lane_probe(struct sovia_lane *lane);
bool sovia_lane_clogged(const struct sovia_lane *lane);
int sovia_lane_choose(u16 lport, u16 rport);

/* link_recover.c */
bool sovia_recovery_wanted(const struct sovia_link *link);
void sovia_recovery_established(struct sovia_link *link);
void sovia_recovery_begin(struct sovia_link *link);
unsigned long sovia_recovery_left(const struct sovia_link *link);
unsigned long sovia_recovery_wait(struct sovia_link *link, bool first);

/* break.c */
void sovia_break_init(void);

/* lane_tx.c */
void sovia_link_refuse(struct sovia_link *link, const struct sovia_msg *conn_msg, u32 code);
struct sk_buff *sovia_msg_alloc(unsigned int linear, gfp_t gfp);

/* conn.c */
void sovia_conn_init(struct sovia_conn *conn, struct sock *sk);
bool sovia_conn_send(struct sovia_conn *conn, struct sk_buff *skb, bool small);
void sovia_conn_control(struct sovia_conn *conn, u8 type, u32 code);
void sovia_conn_urgent(struct sovia_conn *conn, u32 pos);
void sovia_conn_purge(struct sovia_conn *conn);
void sovia_conn_leave(struct sovia_conn *conn);
u32 sovia_conn_payload(const struct sovia_conn *conn);
int sovia_conn_flight_max(const struct sovia_conn *conn);
int sovia_conn_max_frags(const struct sovia_conn *conn);

/* conn_table.c */
int sovia_conn_hash(struct sovia_conn *conn);
void sovia_conn_unhash(struct sovia_conn *conn);
struct sovia_conn *sovia_conn_lookup(struct sovia_link *link, u16 lport, u16 rport, u32 *gen);
int sovia_conn_table_init(struct sovia_net *snet);
void sovia_conn_table_exit(struct sovia_net *snet);

#endif /* _SOVIA_LINK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The link layer: links between two addresses, their lanes, credits, and the
 * multiplexing of connections by port.  Knows the provider below; the socket
 * layer above it is struct sovia_client.
 *
 * Lock order, outermost first (Documentation/locking.rst):
 *	socket lock > conn->lock > sk_receive_queue.lock
 *	socket lock > link_lock > link->lock > lane->lock
 */
#ifndef _SOVIA_LINK_H
#define _SOVIA_LINK_H

#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <net/sock.h>
#include "compat/timer.h"
#include "core/net.h"
#include "core/provider.h"
#include "lane/conn.h"
#include "lane/credit.h"
#include "lane/turn.h"
#include "lane/wire.h"

struct sovia_peer;
struct sovia_tenant;

/**
 * enum sovia_link_state - state of a link
 * @SOVIA_LINK_NEW: no lane yet
 * @SOVIA_LINK_CONNECTING: the provider is setting the lane up, or it is tried
 * @SOVIA_LINK_UP: messages flow
 * @SOVIA_LINK_RECOVERING: the lane is lost, another VI is being set up; connections
 *	are not notified
 * @SOVIA_LINK_PARKED: idle, without a VI: link_park.c; connections are not notified
 * @SOVIA_LINK_DOWN: dead and out of the table; connections are notified
 * @SOVIA_LINK_STATES: how many there are
 */
enum sovia_link_state {
	SOVIA_LINK_NEW,
	SOVIA_LINK_CONNECTING,
	SOVIA_LINK_UP,
	SOVIA_LINK_RECOVERING,
	SOVIA_LINK_PARKED,
	SOVIA_LINK_DOWN,
	SOVIA_LINK_STATES
};

/**
 * struct sovia_tx_cb - skb->cb of a message to send
 * @conn: connection of a stream message, with a reference that the destructor puts, or NULL
 * @seq: its sequence number
 * @len: payload bytes
 * @type: enum sovia_type
 * @prompt: other messages of its connection do not wait for its completion
 * @flags: SOVIA_F_*
 * @sport: sender's port, or 0
 * @dport: receiver's port, or 0
 * @window: stream offset up to which the receiver may send
 * @ref: as in struct sovia_hdr
 * @code: as in struct sovia_hdr
 * @posted: when it was handed to the provider, for a histogram, or 0
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
	u64			posted;
};

#define SOVIA_TX_CB(skb)	((struct sovia_tx_cb *)(skb)->cb)

/**
 * struct sovia_reply - a message that belongs to no connection
 * @ref: number of the message it answers, or 0
 * @sport: own port, or 0
 * @dport: the peer's port, or 0
 * @type: enum sovia_type
 * @code: enum sovia_code
 */
struct sovia_reply {
	u32	ref;
	u16	sport;
	u16	dport;
	u8	type;
	u8	code;
};

/**
 * struct sovia_lane_room - what a lane has only for a VI
 * @tx_slots: connections whose DATA may be compact, sending
 * @rx_slots: the same, receiving; used by the bottom half only
 * @reply: answers to messages without a connection, sent first: a ring, so that
 *	queueing needs no memory.  It cannot overflow while the peer keeps to its
 *	credits: see sovia_lane_reply().
 */
struct sovia_lane_room {
	struct sovia_slots	tx_slots;
	struct sovia_slots	rx_slots;
	struct sovia_reply	reply[];
};

/**
 * struct sovia_lane_count - what has been sent and received since the link exists
 * @tx_msgs: messages sent
 * @tx_bytes: payload of them
 * @rx_msgs: messages received
 * @rx_bytes: payload of them
 * @tx_acks: explicit ACKs among those sent
 * @stalls: how often credits had run out
 * @retransmits: messages posted again on another VI
 */
struct sovia_lane_count {
	u64	tx_msgs;
	u64	tx_bytes;
	u64	rx_msgs;
	u64	rx_bytes;
	u64	tx_acks;
	u64	stalls;
	u64	retransmits;
};

/**
 * struct sovia_lane - one VI of a link, with its credits and queues
 * @link: the link
 * @lock: protects what follows; taken with bottom halves off.  post_send is
 *	called under it.
 * @id: of this end of the link, random
 * @peer_id: of the other end, 0 while it is not known
 * @active: we initiated @vi, not the peer
 * @vi: the VI, or NULL
 * @open: messages may be queued: it has been up, and the link is not DOWN
 * @up: messages may be posted to @vi
 * @trial: it is tried before that, as agreed with the peer: link_trial.c
 * @grows: its windows begin small and grow, as agreed with the peer
 * @growing: the provider is to post more receives
 * @tried: our part of that has been sent over @vi
 * @version: of the wire format
 * @dead: @vi has failed, or is being destroyed
 * @err: the errno of its failure
 * @payload: largest payload of a message to the peer
 * @own_payload: largest payload that we take
 * @max_frags: page fragments that a message may have; as many as @vi takes
 * @copybreak: largest payload that is copied when it arrives
 * @compact: DATA may be compact
 * @room: NULL while the link is parked
 * @credit: sequence numbers and credits
 * @count: for administrators
 * @turns: connections with control or stream messages waiting
 * @ctl_count: those with control messages
 * @reply_max: size of the ring of answers
 * @reply_first: index of the next one
 * @reply_count: how many
 * @probe: SOVIA_PROBE or SOVIA_PARK, which waits, or 0
 * @probes: how many of both have been sent or received
 * @parks: it may be parked, as agreed with the peer
 * @parking: the last numbered message was PARK
 * @parked: @vi is not used any more: what is queued resumes the link
 * @rtx_queue: numbered messages to post first: the provider had no room for them, or
 *	the VI that they were posted to has failed
 * @unacked: messages sent and not acknowledged, in order of their numbers
 * @ack_timer: sends a delayed ACK when the lane falls idle, and retries what
 *	failed for lack of memory
 * @rx_time: when the last message arrived, jiffies.  A hint without the lock.
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
	bool			trial;
	bool			grows;
	bool			growing;
	bool			tried;
	u8			version;
	bool			dead;
	int			err;
	u32			payload;
	u32			own_payload;
	int			max_frags;
	u32			copybreak;
	bool			compact;
	struct sovia_lane_room	*room;
	struct sovia_credit	credit;
	struct sovia_lane_count	count;
	struct sovia_turns	turns;
	unsigned int		ctl_count;
	unsigned int		reply_max;
	unsigned int		reply_first;
	unsigned int		reply_count;
	u8			probe;
	bool			parks;
	bool			parking;
	bool			parked;
	u32			probes;
	struct sk_buff_head	rtx_queue;
	struct sk_buff_head	unacked;
	struct timer_list	ack_timer;
	unsigned long		rx_time;
};

/**
 * struct sovia_recovery - recovery of a link: link_recover.c
 * @since: when the lane was lost, jiffies
 * @up_since: when the last one was established, jiffies
 * @tx: the lane's first unacknowledged number then
 * @rx: number of the message expected then
 * @tries: attempts of ours since @since
 * @due: when the next attempt is to be, jiffies
 * @early: the last attempt was made before that, as a device had come
 * @refused: consecutive attempts that the peer's node has refused, without early ones
 *
 * Used by the connection thread only.
 */
struct sovia_recovery {
	unsigned long	since;
	unsigned long	up_since;
	u32		tx;
	u32		rx;
	unsigned int	tries;
	unsigned long	due;
	bool		early;
	unsigned int	refused;
};

/**
 * enum sovia_slot - does a link have a slot for its set-up: link_slot.c
 * @SOVIA_SLOT_NONE: no
 * @SOVIA_SLOT_WAITS: not yet
 * @SOVIA_SLOT_HELD: yes
 */
enum sovia_slot {
	SOVIA_SLOT_NONE,
	SOVIA_SLOT_WAITS,
	SOVIA_SLOT_HELD,
};

/**
 * enum sovia_slot_kind - on whose account a set-up is
 * @SOVIA_SLOT_USER: the user whose connection asked for the link
 * @SOVIA_SLOT_PEER: the peer that asked for it
 * @SOVIA_SLOT_RECOVERY: no user's and no peer's: the link has been up
 * @SOVIA_SLOT_KINDS: how many there are
 */
enum sovia_slot_kind {
	SOVIA_SLOT_USER,
	SOVIA_SLOT_PEER,
	SOVIA_SLOT_RECOVERY,
	SOVIA_SLOT_KINDS
};

/**
 * struct sovia_link - all connections between two addresses that use one lane
 * @kref: the table (until DOWN), each connection, its VI, queued work and the armed timer
 * @rcu: readers of /proc may access it after the last reference
 * @snet: namespace, held
 * @ns_tracker: of that reference
 * @pair: the key
 * @addr_hash: hash of its addresses, for the table of connections
 * @uid: of the socket that asked for it first; invalid if the peer did
 * @opener: of the last one that connects before it may
 * @tenant: who asked for it first, within this host, with a reference; else NULL
 * @prov: its provider
 * @net_node: in sovia_net::links.  Protected by sovia_net::link_lock.
 * @far_node: in sovia_net::far_links or ::parked_links, unless @prov is local.  Likewise.
 * @parked: in the second one.  Likewise.
 * @idle: counted in sovia_net::idle_count.  Likewise.
 * @id: its number in sovia_net::link_ids.  Likewise.
 * @lock: protects @state and @conns; taken with bottom halves off
 * @state: written by the connection thread only, through link_enter()
 * @conns: struct sovia_conn::link_node
 * @conn_count: length of @conns
 * @events: SOVIA_LINK_EV_* for the connection thread
 * @work: runs in the connection thread
 * @timer: retry of a set-up, the end of a recovery, and the idle probe
 * @lane: the lane
 * @recovery: of the lane
 * @vi: its VI until that has ended, or NULL: see link_vi.c
 * @wanted: an attempt of ours to make one waits
 * @deferred: a request of the peer that waits for the end of @vi, or NULL
 * @pause: delay of the last retry because the peer had no room, jiffies
 * @slot: for its set-up
 * @slot_kind: of the slot that it has or waits for
 * @slot_node: in a list of link_slot.c, unless @slot is SOVIA_SLOT_NONE
 * @slot_behind: links that wait behind it: for its slot, or if it waits, of its user
 * @slot_user: in a hash of link_slot.c, if it is the first of its user that waits
 * @keep_until: it is set up without connections until then, jiffies; or 0
 * @peer: the kernel at the other end, with a reference, or NULL; set once
 * @peer_node: in sovia_peer::links, unless DOWN
 * @peer_waits: @wanted, but @peer is not known yet; or UP, but no connections may be opened
 * @peer_err: why it cannot be, a negative errno, or 0
 * @path: of the VI; written by its seal upcall
 * @generation: of the last request; likewise, or from the peer
 * @stale: requests in a row that the peer did not know
 * @seen_una: the lane's first unacknowledged number when the timer last fired
 * @waiting: it has fired, so @seen_una is valid
 * @rtr_retry: jiffies until the first message of the lane is repeated, or 0
 * @trial_wait: jiffies until the trial of its lane goes on or fails, or 0
 * @trials: failed ones in a row
 * @used: number of messages but probes when the timer last fired
 * @park_wanted: the peer is to be asked to park the link
 * @park_asked: when it was last asked, jiffies
 * @waits_room: PARKED, and to be used again when there are fewer links
 * @local_counted: it is in sovia_tenant::local_links of @tenant
 * @spare_counted: it is in local_spare of it.  @lock, once it is in the table.
 * @resumes: RECOVERING, because it was parked
 * @doubted: a peer requested a link that is UP, or its port is down: its lane is being checked
 * @doubt_end: deadline of that, jiffies
 * @doubt_una: the lane's first unacknowledged number when it started
 */
struct sovia_link {
	struct kref			kref;
	struct rcu_head			rcu;
	struct sovia_net		*snet;
	netns_tracker			ns_tracker;
	struct sovia_pair		pair;
	u32				addr_hash;
	kuid_t				uid;
	kuid_t				opener;
	struct sovia_tenant		*tenant;
	const struct sovia_provider	*prov;
	struct hlist_node		net_node;
	struct list_head		far_node;
	bool				parked;
	bool				idle;
	u32				id;
	spinlock_t			lock;	/* see above */
	enum sovia_link_state		state;
	struct list_head		conns;
	unsigned int			conn_count;
	unsigned long			events;
	struct kthread_work		work;
	struct timer_list		timer;
	struct sovia_lane		lane;
	struct sovia_recovery		recovery;
	struct sovia_vi			*vi;
	bool				wanted;
	struct sovia_vi_request		*deferred;
	unsigned long			pause;
	enum sovia_slot			slot;
	enum sovia_slot_kind		slot_kind;
	struct list_head		slot_node;
	struct list_head		slot_behind;
	struct hlist_node		slot_user;
	unsigned long			keep_until;
	struct sovia_peer		*peer;
	struct list_head		peer_node;
	bool				peer_waits;
	int				peer_err;
	struct sovia_path		path;
	u32				generation;
	unsigned int			stale;
	u32				seen_una;
	bool				waiting;
	unsigned long			rtr_retry;
	unsigned long			trial_wait;
	unsigned int			trials;
	u32				used;
	bool				park_wanted;
	unsigned long			park_asked;
	bool				waits_room;
	bool				local_counted;
	bool				spare_counted;
	bool				resumes;
	bool				doubted;
	unsigned long			doubt_end;
	u32				doubt_una;
};

/**
 * struct sovia_client - the socket layer, as upcalls
 *
 * @conn of an upcall is kept by RCU or a reference; its socket may have left.  Where the other end
 * is a socket of the same namespace (direct.c), softirq may also be the sender's process
 * with bottom halves off, and the sender's socket lock may be held.
 *
 * @request: a CONN arrived.  Softirq.  @skb, its payload, is borrowed.
 * @data: a DATA message arrived for @conn.  Softirq, under RCU.
 *	Returns true if it took @skb, the payload.
 * @copy: @len bytes of the stream of a sender here, in his process, come without a message.
 *	Returns false if they have to come with one; nothing has been taken of @from then.
 * @control: any other message arrived for @conn.  Softirq; as above.
 * @tx_ready: messages of @conn were sent and there is room for more.  Softirq
 *	or process.
 * @delivered: the FIN of @conn has arrived.  Softirq or process.
 * @up: the link is up, or connections may be opened now.  Connection thread.
 * @down: the link is DOWN, @err is a negative errno.  Connection thread.
 * @barred: the link is up, but connections cannot be opened, @err is a negative errno.
 *	Connection thread.
 */
struct sovia_client {
	void (*request)(struct sovia_link *link, struct sk_buff *skb,
			const struct sovia_msg *msg);
	bool (*data)(struct sovia_conn *conn, struct sk_buff *skb,
		     const struct sovia_msg *msg);
	bool (*copy)(struct sovia_conn *conn, struct iov_iter *from, u32 len);
	void (*control)(struct sovia_conn *conn, const struct sovia_msg *msg);
	void (*tx_ready)(struct sovia_conn *conn);
	void (*delivered)(struct sovia_conn *conn);
	void (*up)(struct sovia_conn *conn);
	void (*down)(struct sovia_conn *conn, int err);
	void (*barred)(struct sovia_conn *conn, int err);
};

/* Events of a link, bits of sovia_link::events. */
#define SOVIA_LINK_EV_START	0	/* it is needed: by a connection, or parked by a message */
#define SOVIA_LINK_EV_UP	1	/* the lane is established */
#define SOVIA_LINK_EV_DOWN	2	/* the lane died */
#define SOVIA_LINK_EV_KILL	3	/* namespace exit */
#define SOVIA_LINK_EV_TIMER	4	/* @timer fired */
#define SOVIA_LINK_EV_BREAK	5	/* debugfs' file break: kill the lane */
#define SOVIA_LINK_EV_ENDED	6	/* the VI is gone */
#define SOVIA_LINK_EV_SLOT	7	/* the set-up it waits for may start */
#define SOVIA_LINK_EV_PEER	8	/* the peer is known, or cannot be */
#define SOVIA_LINK_EV_OPEN	9	/* connections are to be opened over a link of the peer's */
#define SOVIA_LINK_EV_MOVED	10	/* our address has been removed */
#define SOVIA_LINK_EV_TRIAL	11	/* the lane is tried */
#define SOVIA_LINK_EV_PARK	12	/* we have agreed to park it */
#define SOVIA_LINK_EV_SPARE	13	/* it is idle, and is to be parked */
#define SOVIA_LINK_EV_FLUSH	14	/* it is to end if no connection uses it */
#define SOVIA_LINK_EV_DOUBT	15	/* the port that the lane uses is down */

/* Has it been up, and its connections may go on? */
static inline bool sovia_link_lives(enum sovia_link_state state)
{
	return state == SOVIA_LINK_UP || state == SOVIA_LINK_RECOVERING ||
	       state == SOVIA_LINK_PARKED;
}

struct sovia_link *sovia_link_alloc(struct sovia_net *snet, const struct sovia_pair *pair,
				    const struct sovia_provider *prov, kuid_t uid,
				    struct sovia_tenant *tenant, gfp_t gfp);
void sovia_link_ask_room(struct sovia_link *link);
void sovia_link_ref(struct sovia_link *link);
void sovia_link_put(struct sovia_link *link);
void sovia_link_event(struct sovia_link *link, unsigned int event);
void sovia_link_keep(struct sovia_link *link);
void sovia_link_wait(void);
const char *sovia_link_state_name(enum sovia_link_state state);

#endif /* _SOVIA_LINK_H */

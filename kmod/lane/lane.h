/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lanes: a VI of a link with its credits and queues, on which connections are multiplexed by port.
 * Knows the provider below, and of the link only struct sovia_lane_ops; the socket layer above is
 * struct sovia_client.
 */
#ifndef _SOVIA_LANE_H
#define _SOVIA_LANE_H

#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/timer.h>
#include "compat/timer.h"
#include "conn.h"
#include "core/net.h"
#include "core/provider.h"
#include "credit.h"
#include "turn.h"
#include "wire.h"

struct sovia_lane;

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
 * enum sovia_lane_event - what a lane tells its link
 * @SOVIA_LANE_UP: it is established
 * @SOVIA_LANE_DOWN: it has died
 * @SOVIA_LANE_TRIED: its trial has begun
 * @SOVIA_LANE_PARKED: both ends have agreed to park the link
 * @SOVIA_LANE_WANTED: the link is parked, and a message waits
 */
enum sovia_lane_event {
	SOVIA_LANE_UP,
	SOVIA_LANE_DOWN,
	SOVIA_LANE_TRIED,
	SOVIA_LANE_PARKED,
	SOVIA_LANE_WANTED,
};

/**
 * struct sovia_lane_ops - what a lane calls of its link: for no message, but @is_up for those that
 *	go from one namespace to another
 * @event: something has happened.  Any context; the lane's lock may be held.
 * @put: a connection drops its reference to the link.  Any context.
 * @may_recover: may the link outlive this lane.  Any context.
 * @is_up: is the link UP, a hint.  Any context.
 * @find_twin: the other end of a connection between two namespaces, or NULL.  Under RCU.
 */
struct sovia_lane_ops {
	void (*event)(struct sovia_lane *lane, enum sovia_lane_event event);
	void (*put)(struct sovia_lane *lane);
	bool (*may_recover)(const struct sovia_lane *lane);
	bool (*is_up)(const struct sovia_lane *lane);
	struct sovia_conn *(*find_twin)(const struct sovia_conn *conn);
};

/**
 * struct sovia_lane - one VI of a link, with its credits and queues
 * @ops: of the link that has it
 * @snet: its namespace
 * @pair: its addresses
 * @addr_hash: hash of those, for the table of connections
 * @prov: its provider; changes only without a VI
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
	const struct sovia_lane_ops	*ops;
	struct sovia_net		*snet;
	const struct sovia_pair		*pair;
	u32				addr_hash;
	const struct sovia_provider	*prov;
	spinlock_t			lock;	/* see above */
	u64				id;
	u64				peer_id;
	bool				active;
	struct sovia_vi			*vi;
	bool				open;
	bool				up;
	bool				trial;
	bool				grows;
	bool				growing;
	bool				tried;
	u8				version;
	bool				dead;
	int				err;
	u32				payload;
	u32				own_payload;
	int				max_frags;
	u32				copybreak;
	bool				compact;
	struct sovia_lane_room		*room;
	struct sovia_credit		credit;
	struct sovia_lane_count		count;
	struct sovia_turns		turns;
	unsigned int			ctl_count;
	unsigned int			reply_max;
	unsigned int			reply_first;
	unsigned int			reply_count;
	u8				probe;
	bool				parks;
	bool				parking;
	bool				parked;
	u32				probes;
	struct sk_buff_head		rtx_queue;
	struct sk_buff_head		unacked;
	struct timer_list		ack_timer;
	unsigned long			rx_time;
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
	void (*request)(struct sovia_lane *lane, struct sk_buff *skb,
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

extern const struct sovia_client *sovia_lane_client;

void sovia_lane_register_client(const struct sovia_client *client);
int sovia_lane_init(struct sovia_lane *lane, const struct sovia_lane_ops *ops,
		    struct sovia_net *snet, const struct sovia_pair *pair,
		    const struct sovia_provider *prov, gfp_t gfp);
void sovia_lane_free(struct sovia_lane *lane);
void sovia_lane_reset(struct sovia_lane *lane);
int sovia_lane_prepare(struct sovia_lane *lane, bool active, u64 peer_id);
struct sovia_lane_room *sovia_lane_room_alloc(const struct sovia_lane *lane, gfp_t gfp);
void sovia_lane_room_free(struct sovia_lane *lane);
void sovia_lane_vi_attr(const struct sovia_lane *lane, struct sovia_vi_attr *attr);
void sovia_lane_hello(const struct sovia_lane *lane, struct sovia_hello *hello);
void sovia_lane_fail(struct sovia_lane *lane, int err);
void sovia_lane_grow(struct sovia_lane *lane, bool wanted);
int sovia_lane_choose(u16 lport, u16 rport);
void sovia_lane_die(struct sovia_lane *lane, int err);
void sovia_conn_account(struct sovia_conn *conn, u32 len, bool acked);
void sovia_tx_free(struct sk_buff_head *list, bool acked);
void sovia_conn_drop_control(struct sovia_lane *lane, struct sovia_conn *conn);

/* Does this message end the stream of its connection? */
static inline bool sovia_tx_is_fin(struct sk_buff *skb)
{
	const struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);

	return cb->type == SOVIA_FIN || (cb->flags & SOVIA_F_FIN);
}

/* Are both ends on this host? */
static inline bool sovia_lane_is_local(const struct sovia_lane *lane)
{
	return lane->prov->local;
}

#endif /* _SOVIA_LANE_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lanes, sending.
 *
 * Connections queue stream messages and request control messages (conn.c).  Only
 * sovia_lane_pump() numbers and posts messages.  Its order, while there is credit:
 * retransmissions, answers without a connection, and then tenants and their connections in
 * turn (turn.c).
 *
 * Connections that go on sending leave some credits to the others.
 *
 * A message stays on lane->unacked until the peer acknowledges it; the provider
 * has its own reference until the local completion.  The last reference uncharges
 * the socket.
 */
#include <linux/slab.h>
#include "core/hist.h"
#include "core/trace.h"
#include "lane.h"
#include "lane_tx.h"

/* Delay of an idle lane's ACK. */
#define SOVIA_ACK_DELAY		msecs_to_jiffies(10)
/* Limit of connections with pending control messages, see sovia_lane_clogged(). */
#define SOVIA_CTL_MAX		4096
/* Headroom of a message: its header.  Lower layers add nothing. */
#define SOVIA_HEADROOM		sizeof(struct sovia_hdr)

/**
 * sovia_msg_alloc() - allocate a message with room for its header
 * @linear: bytes of payload in the linear part
 * @gfp: allocation flags
 *
 * Context: any that @gfp allows.
 * Return: an sk_buff that the caller owns, or NULL.
 */
struct sk_buff *sovia_msg_alloc(unsigned int linear, gfp_t gfp)
{
	struct sk_buff *skb = alloc_skb(SOVIA_HEADROOM + linear, gfp);

	if (skb) {
		skb_reserve(skb, SOVIA_HEADROOM);
		memset(SOVIA_TX_CB(skb), 0, sizeof(struct sovia_tx_cb));
	}
	return skb;
}

static void lane_count_tx(struct sovia_lane *lane, u32 len)
{
	enum sovia_stat stats = lane->prov->stats;

	lane->count.tx_msgs++;
	lane->count.tx_bytes += len;
	sovia_hist_add(lane->snet, SOVIA_HIST_TX_SIZE, len);
	sovia_stat_add_at(lane->snet, stats + SOVIA_STATS_TX_MSGS, 1);
	sovia_stat_add_at(lane->snet, stats + SOVIA_STATS_TX_BYTES, len);
}

/* Fill in the header fields except for sequence numbers. */
static void lane_fill(struct sk_buff *skb, const struct sovia_conn *conn)
{
	struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);

	cb->sport = conn->lport;
	cb->dport = conn->rport;
	cb->window = READ_ONCE(conn->rcv_wnd_end);
}

/*
 * Can we skip the send completion?  Not if it has to wake a waiter for room in the
 * connection's queue.
 */
static bool lane_may_be_unsignaled(const struct sovia_lane *lane, const struct sovia_tx_cb *cb,
				   const struct sk_buff *skb)
{
	const struct sovia_conn *conn = cb->conn;

	if (!conn)
		return true;
	/* Signal FIN: its completion is reported as delivered. */
	return (cb->prompt || sovia_lane_is_local(lane)) && conn->fin != skb &&
	       !conn->tx_wanted && skb_queue_empty(&conn->txq);
}

/* Does the peer know all fields of the header? */
static bool lane_may_be_compact(const struct sovia_lane *lane, const struct sovia_tx_cb *cb)
{
	return lane->compact && cb->type == SOVIA_DATA && !(cb->flags & ~SOVIA_IMM_FLAGS_MASK) &&
	       sovia_slots_has(&lane->room->tx_slots, cb->sport, cb->dport) &&
	       !sovia_conn_wnd_due(cb->conn, cb->window);
}

/*
 * A message has been posted and may be freed already, and its reference to @conn put.
 * The memory stays valid: bottom halves are off, so no grace period ends.
 */
static void lane_posted(struct sovia_lane *lane, struct sovia_conn *conn,
			const struct sovia_msg *msg, enum sovia_posted how)
{
	sovia_credit_ack_sent(&lane->credit);
	if (sovia_sequenced(msg->type)) {
		lane->credit.tx_next++;
		lane->parking = msg->type == SOVIA_PARK;
		lane->probes += sovia_is_probe(msg->type);
	}
	if (msg->compact)
		sovia_stat_inc(lane->snet, compact_tx);
	else if (msg->type == SOVIA_DATA)
		sovia_slots_set(&lane->room->tx_slots, msg->sport, msg->dport);
	lane_count_tx(lane, msg->len);
	trace_sovia_msg_send(lane, msg, msg->sport, msg->dport);
	if (!conn)
		return;
	if (!msg->compact)
		WRITE_ONCE(conn->rcv_wnd_sent, msg->window);
	if (how != SOVIA_POSTED)
		conn->inflight--;
	if (how == SOVIA_POSTED_TAKEN)
		sovia_conn_account(conn, msg->len, true);
}

/*
 * Number a message, piggyback the acknowledgment, and post it.  Returns enum
 * sovia_posted, -EAGAIN or -ECONNRESET.
 */
static int lane_post(struct sovia_lane *lane, struct sk_buff *skb)
{
	struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);
	struct sovia_conn *conn = cb->conn;
	const struct sovia_msg msg = {
		.type = cb->type,
		.flags = cb->flags,
		.len = skb->len,
		.seq = lane->credit.tx_next,
		.ack = sovia_credit_ack(&lane->credit),
		.sport = cb->sport,
		.dport = cb->dport,
		.window = cb->window,
		.ref = cb->ref,
		.code = cb->code,
		.compact = lane_may_be_compact(lane, cb),
	};
	struct sovia_post how = {
		.unsignaled = lane_may_be_unsignaled(lane, cb, skb),
		.has_imm = msg.compact,
	};
	int ret;

	lockdep_assert_held(&lane->lock);
	ret = sovia_msg_repack(skb, lane->max_frags);
	if (ret) {
		sovia_stat_inc(lane->snet, nomem);
		return ret;
	}
	cb->seq = msg.seq;
	if (msg.compact)
		how.imm = sovia_imm_build(&msg);
	else
		sovia_msg_build(skb_push(skb, sizeof(struct sovia_hdr)), &msg, lane->version);
	ret = lane->vi->prov->post_send(lane->vi, skb, &how);
	if (ret >= 0)
		lane_posted(lane, conn, &msg, ret);
	else if (!msg.compact)
		__skb_pull(skb, sizeof(struct sovia_hdr));
	/* The VI is going down; ->closed() reports the cause, callers only need ECONNRESET. */
	return ret < 0 && ret != -EAGAIN ? -ECONNRESET : ret;
}

/**
 * sovia_lane_arm() - arm the timer of the lane, if it has a live VI
 * @lane: the lane
 *
 * Upcalls of a VI that is ending come here, too, after sovia_lane_reset().
 *
 * Context: lane lock held.
 */
void sovia_lane_arm(struct sovia_lane *lane)
{
	if (lane->up && !timer_pending(&lane->ack_timer))
		mod_timer(&lane->ack_timer, jiffies + SOVIA_ACK_DELAY);
}

/* The order in which a connection's control messages are sent. */
static const u8 ctl_order[] = {
	SOVIA_CONN, SOVIA_ACCEPT, SOVIA_REFUSE, SOVIA_WAKEUP, SOVIA_PRESSURE, SOVIA_RETURN,
	SOVIA_URGENT, SOVIA_RESET,
};

static u8 ctl_first(const struct sovia_conn *conn)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ctl_order); i++)
		if (conn->ctl & SOVIA_CTL(ctl_order[i]))
			return ctl_order[i];
	return 0;
}

static void ctl_add_addresses(struct sk_buff *skb, const struct sovia_pair *pair)
{
	struct sovia_conn_body *body = skb_put(skb, sizeof(*body));

	memcpy(body->saddr, &pair->local, sizeof(body->saddr));
	memcpy(body->daddr, &pair->remote, sizeof(body->daddr));
}

/* Allocate a message of the lane's own; retried by the timer on failure. */
static struct sk_buff *lane_alloc(struct sovia_lane *lane, unsigned int linear)
{
	struct sk_buff *skb = sovia_msg_alloc(linear, GFP_ATOMIC | __GFP_NOWARN);

	if (!skb) {
		sovia_stat_inc(lane->snet, nomem);
		sovia_lane_arm(lane);
	}
	return skb;
}

/* Build the next message without a connection; NULL without memory. */
static struct sk_buff *lane_next_reply(struct sovia_lane *lane)
{
	const struct sovia_reply *reply = &lane->room->reply[lane->reply_first];
	struct sk_buff *skb = lane_alloc(lane, 0);

	if (!skb)
		return NULL;
	*SOVIA_TX_CB(skb) = (struct sovia_tx_cb) {
		.type = reply->type, .sport = reply->sport, .dport = reply->dport,
		.ref = reply->ref, .code = reply->code,
	};
	lane->reply_first = (lane->reply_first + 1) % lane->reply_max;
	sovia_credit_hold(&lane->credit, --lane->reply_count);
	return skb;
}

static struct sk_buff *lane_next_probe(struct sovia_lane *lane)
{
	struct sk_buff *skb = lane_alloc(lane, 0);

	if (skb) {
		SOVIA_TX_CB(skb)->type = lane->probe;
		lane->probe = 0;
	}
	return skb;
}

/* Build the next control message of a tenant that has one; NULL without memory. */
static struct sk_buff *lane_next_ctl(struct sovia_lane *lane, struct sovia_turn *turn)
{
	struct sovia_conn *conn;
	struct sovia_tx_cb *cb;
	struct sk_buff *skb;

	conn = list_first_entry(&turn->ctl, struct sovia_conn, ctl_node);
	skb = lane_alloc(lane, sizeof(struct sovia_conn_body));
	if (!skb)
		return NULL;
	cb = SOVIA_TX_CB(skb);
	cb->type = ctl_first(conn);
	switch (cb->type) {
	case SOVIA_CONN:
		conn->conn_seq = lane->credit.tx_next;
		cb->ref = conn->ref;
		ctl_add_addresses(skb, lane->pair);
		break;
	case SOVIA_ACCEPT:
		cb->ref = conn->ref;
		break;
	case SOVIA_REFUSE:
		cb->ref = conn->ref;
		cb->code = conn->code;
		sovia_stat_inc(lane->snet, conn_refused);
		break;
	case SOVIA_WAKEUP:
		sovia_stat_inc(lane->snet, wakeup_tx);
		break;
	case SOVIA_PRESSURE:
		sovia_stat_inc(lane->snet, pressure_tx);
		break;
	case SOVIA_RETURN:
		cb->ref = conn->returned;
		sovia_stat_inc(lane->snet, return_tx);
		break;
	case SOVIA_URGENT:
		cb->ref = conn->urgent;
		break;
	case SOVIA_RESET:
		cb->code = conn->code;
		cb->flags |= sovia_conn_tell_taken(conn, &cb->ref);
		sovia_stat_inc(lane->snet, reset_tx);
		break;
	}
	lane_fill(skb, conn);
	WRITE_ONCE(conn->rcv_wnd_sent, cb->window);
	conn->ctl &= ~SOVIA_CTL(cb->type);
	if (!conn->ctl) {
		sovia_turn_del(&lane->turns, conn, &conn->ctl_node);
		lane->ctl_count--;
		sovia_conn_put(conn);
	}
	return skb;
}

/* Dequeue one stream message from the list @ready, which has one. */
static struct sk_buff *lane_next_ready(struct sovia_lane *lane, struct sovia_turn *turn,
				       struct list_head *ready)
{
	struct sovia_conn *conn = list_first_entry(ready, struct sovia_conn, ready_node);
	struct sk_buff *skb;

	skb = __skb_dequeue(&conn->txq);
	if (skb_queue_empty(&conn->txq))
		sovia_turn_del(&lane->turns, conn, &conn->ready_node);
	else
		sovia_turn_again(turn, conn);
	lane_fill(skb, conn);
	return skb;
}

/**
 * sovia_lane_has_work() - is anything queued to be sent
 * @lane: the lane
 *
 * Context: lane lock held.
 * Return: true if so.
 */
bool sovia_lane_has_work(const struct sovia_lane *lane)
{
	return !skb_queue_empty(&lane->rtx_queue) || lane->reply_count || lane->probe ||
	       !list_empty(&lane->turns.active);
}

/* Messages that connections which go on sending may have unacknowledged. */
static u32 lane_bulk_window(const struct sovia_lane *lane)
{
	u32 window = lane->credit.window;

	return lane->prov->in_memory ? window : sovia_credit_bulk(window);
}

static bool lane_may_bulk(const struct sovia_lane *lane)
{
	return sovia_credit_flight(&lane->credit) < lane_bulk_window(lane);
}

static struct sk_buff *lane_next_turn(struct sovia_lane *lane)
{
	bool bulk = lane_may_bulk(lane);
	struct sovia_turn *turn = sovia_turn_next(&lane->turns, bulk);
	struct list_head *list;
	struct sk_buff *skb;

	if (!turn)
		return NULL;
	list = sovia_turn_pick(turn, bulk);
	if (list == &turn->ctl)
		skb = lane_next_ctl(lane, turn);
	else
		skb = lane_next_ready(lane, turn, list);
	if (skb)
		sovia_turn_took(&lane->turns, turn, list, skb->len);
	return skb;
}

static struct sk_buff *lane_next(struct sovia_lane *lane)
{
	if (!skb_queue_empty(&lane->rtx_queue))
		return __skb_dequeue(&lane->rtx_queue);
	if (lane->reply_count)
		return lane_next_reply(lane);
	if (lane->probe)
		return lane_next_probe(lane);
	return lane_next_turn(lane);
}

/*
 * The last credit, of bulk or of all: request an ACK, whatever the threshold is, and a larger
 * window if it would be used.  A peer that knows of that does not let bulk wait for its threshold.
 */
static u16 lane_last_credit(const struct sovia_lane *lane)
{
	u32 flight = sovia_credit_flight(&lane->credit) + 1;
	bool last = flight >= lane->credit.window;
	u16 flags = 0;

	if (!last && flight != lane_bulk_window(lane))
		return 0;
	if (last || !lane->grows)
		flags |= SOVIA_F_ACKREQ;
	if (lane->grows && lane->credit.granted < lane->credit.limit && sovia_lane_has_work(lane))
		flags |= SOVIA_F_WANT;
	return flags;
}

static void lane_stall(struct sovia_lane *lane)
{
	lane->count.stalls++;
	sovia_stat_inc(lane->snet, credit_stall);
	trace_sovia_credit_stall(lane);
}

/**
 * sovia_lane_pump() - send what may be sent
 * @lane: the lane
 *
 * Context: lane lock held.
 */
void sovia_lane_pump(struct sovia_lane *lane)
{
	struct sk_buff *skb;
	int err;

	lockdep_assert_held(&lane->lock);
	if (unlikely(lane->parked) && sovia_lane_has_work(lane))
		lane->ops->event(lane, SOVIA_LANE_WANTED);
	while (lane->up && sovia_lane_has_work(lane)) {
		if (!sovia_credit_may_send(&lane->credit)) {
			lane_stall(lane);
			return;
		}
		skb = lane_next(lane);
		if (!skb)
			return;
		SOVIA_TX_CB(skb)->flags |= lane_last_credit(lane);
		err = lane_post(lane, skb);
		if (err == SOVIA_POSTED_TAKEN)
			continue;
		if (err >= 0) {
			sovia_hist_begin(&SOVIA_TX_CB(skb)->posted);
			__skb_queue_tail(&lane->unacked, skb);
			continue;
		}
		__skb_queue_head(&lane->rtx_queue, skb);
		if (err == -EAGAIN)
			sovia_lane_arm(lane);
		else
			sovia_lane_die(lane, err);
		return;
	}
}

/* An ACK takes no credit and is not retransmitted. */
static int lane_post_ack(struct sovia_lane *lane, unsigned int padding)
{
	struct sk_buff *skb = sovia_msg_alloc(padding, GFP_ATOMIC | __GFP_NOWARN);
	int err;

	if (!skb)
		return -ENOMEM;
	if (padding)
		skb_put_zero(skb, padding);
	SOVIA_TX_CB(skb)->type = SOVIA_ACK;
	SOVIA_TX_CB(skb)->ref = lane->grows ? lane->credit.own_window : 0;
	err = lane_post(lane, skb);
	if (err != SOVIA_POSTED_TAKEN)
		kfree_skb(skb);
	if (err >= 0)
		lane->credit.told = lane->credit.own_window;
	return err;
}

/**
 * sovia_lane_ack() - send an explicit ACK
 * @lane: the lane
 *
 * Context: lane lock held.
 */
void sovia_lane_ack(struct sovia_lane *lane)
{
	int err;

	lockdep_assert_held(&lane->lock);
	if (!lane->up)
		return;
	err = lane_post_ack(lane, 0);
	if (err >= 0) {
		lane->count.tx_acks++;
		sovia_stat_inc(lane->snet, ack_tx);
	} else if (err == -ENOMEM || err == -EAGAIN) {
		sovia_stat_inc(lane->snet, nomem);
		sovia_lane_arm(lane);
	} else {
		sovia_lane_die(lane, err);
	}
}

/**
 * sovia_lane_try() - send an ACK that is part of a lane's trial
 * @lane: the lane, neither up nor dead
 * @padded: as long as the trial wants it
 *
 * If it fails for a lack of memory or room, the trial is repeated.
 *
 * Context: lane lock held.
 * Return: true if it was sent.
 */
bool sovia_lane_try(struct sovia_lane *lane, bool padded)
{
	int err;

	lockdep_assert_held(&lane->lock);
	err = lane_post_ack(lane, padded ? min_t(u32, lane->payload, SOVIA_TRIAL_LEN) : 0);
	if (err >= 0)
		return true;
	if (err == -ENOMEM)
		sovia_stat_inc(lane->snet, nomem);
	else if (err != -EAGAIN)
		sovia_lane_die(lane, err);
	return false;
}

/**
 * sovia_lane_timeout() - send a delayed ACK, or retry after a failure
 * @timer: struct sovia_lane::ack_timer
 *
 * Context: softirq.
 */
void sovia_lane_timeout(struct timer_list *timer)
{
	struct sovia_lane *lane = container_of(timer, struct sovia_lane, ack_timer);

	spin_lock(&lane->lock);
	sovia_lane_pump(lane);
	if (sovia_credit_ack_pending(&lane->credit))
		sovia_lane_ack(lane);
	spin_unlock(&lane->lock);
}

static void lane_queue_reply(struct sovia_lane *lane, const struct sovia_reply *reply)
{
	unsigned int at;

	if (lane->reply_count == lane->reply_max) {
		/* The peer, which now waits for an answer that it will not get, learns by this. */
		sovia_lane_die(lane, -EPROTO);
		return;
	}
	/* A parked link has freed its ring, but may still owe an answer. */
	if (unlikely(!lane->room))
		lane->room = sovia_lane_room_alloc(lane, GFP_ATOMIC);
	if (!lane->room) {
		sovia_stat_inc(lane->snet, nomem);
		return;
	}
	at = (lane->reply_first + lane->reply_count) % lane->reply_max;
	lane->room->reply[at] = *reply;
	sovia_credit_hold(&lane->credit, ++lane->reply_count);
	sovia_lane_pump(lane);
}

/**
 * sovia_lane_reply() - answer a message of the peer that belongs to no connection
 * @lane: the lane
 * @type: enum sovia_type
 * @sport: own port, or 0
 * @dport: the peer's port, or 0
 * @ref: number of the message it answers, or 0
 * @code: enum sovia_code
 *
 * At most one answer to a sequenced message: its credit is returned only if there is
 * room for others (credit.h).  So an overflow means that the peer sends without credit,
 * or that one recovery follows another without a message getting through: then the
 * lane ends.
 *
 * Context: process or softirq; no lane lock.
 */
void sovia_lane_reply(struct sovia_lane *lane, u8 type, u16 sport, u16 dport,
		      u32 ref, u32 code)
{
	const struct sovia_reply reply = {
		.type = type, .sport = sport, .dport = dport, .ref = ref, .code = code,
	};

	spin_lock_bh(&lane->lock);
	if (lane->open)
		lane_queue_reply(lane, &reply);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_clogged() - does the peer leave too many answers pending
 * @lane: the lane
 *
 * A pending control message pins its socket, even one that was closed.
 *
 * Context: any; a hint.
 * Return: true if CONN should not be accepted.
 */
bool sovia_lane_clogged(const struct sovia_lane *lane)
{
	return READ_ONCE(lane->ctl_count) >= SOVIA_CTL_MAX;
}

/**
 * sovia_lane_probe() - queue a PROBE, which the peer has to acknowledge
 * @lane: the lane
 *
 * Context: process; no link or lane lock.
 */
void sovia_lane_probe(struct sovia_lane *lane)
{
	spin_lock_bh(&lane->lock);
	if (lane->open) {
		lane->probe = SOVIA_PROBE;
		sovia_lane_pump(lane);
	}
	spin_unlock_bh(&lane->lock);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lanes: life cycle of a link's VI, credits and queues.  Sending is in lane_tx.c,
 * receiving in lane_rx.c.
 */
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "core/addr.h"
#include "core/param.h"
#include "core/trace.h"
#include "lane.h"
#include "lane_tx.h"

/* The layer above; set at module init. */
const struct sovia_client *sovia_lane_client __ro_after_init;

/*
 * Room for answers: see credit.h.  A peer without faults needs two for each credit; the
 * rest is for recoveries, each of which renews its credit.
 */
#define SOVIA_REPLIES_PER_CREDIT	4

static unsigned int window = 32;
sovia_param(window, window, 1, SOVIA_WINDOW_MAX, 0644);
MODULE_PARM_DESC(window, "largest window w of a lane, unacknowledged messages, 1-1024 (new links)");

/* Where windows grow, each VI begins with this one. */
#define SOVIA_WINDOW_FIRST	4

static unsigned int ack_threshold = 16;
sovia_param(ack_threshold, ack_threshold, 1, SOVIA_WINDOW_MAX, 0644);
MODULE_PARM_DESC(ack_threshold, "threshold t, unacknowledged messages that force an ACK (new links)");

static unsigned int payload = 16384;
sovia_param(payload, payload, SOVIA_PAYLOAD_MIN, SOVIA_PAYLOAD_MAX, 0644);
MODULE_PARM_DESC(payload, "largest payload of a message, 2048-65536 bytes (new links)");

/* Read-only: a pair of ports must map to one lane, to be one connection. */
static unsigned int lanes = 1;
sovia_param(lanes, lanes, 1, SOVIA_LANES_MAX, 0444);
MODULE_PARM_DESC(lanes, "lanes between two nodes, connections are spread over them (1, at most 16)");

/**
 * sovia_lane_choose() - choose the lane of a new connection
 * @lport: own port
 * @rport: the peer's port
 *
 * Both ends choose the same one if they have equally many lanes.
 *
 * Context: any.
 * Return: sovia_pair::lane.
 */
int sovia_lane_choose(u16 lport, u16 rport)
{
	u32 hash = jhash_2words(min(lport, rport), max(lport, rport), 0);

	return reciprocal_scale(hash, lanes);
}

/**
 * sovia_lane_register_client() - register the layer that owns the connections
 * @client: the upcalls
 *
 * Context: module init, before any link exists.
 */
void __init sovia_lane_register_client(const struct sovia_client *client)
{
	sovia_lane_client = client;
}

/**
 * sovia_lane_die() - stop using a lane
 * @lane: the lane
 * @err: why, a negative errno
 *
 * The connection thread does the rest.
 *
 * Context: lane lock held.
 */
void sovia_lane_die(struct sovia_lane *lane, int err)
{
	lockdep_assert_held(&lane->lock);
	if (lane->dead)
		return;
	lane->dead = true;
	lane->up = false;
	lane->err = err;
	lane->ops->event(lane, SOVIA_LANE_DOWN);
}

/**
 * sovia_lane_fail() - stop using a lane, for callers without its lock
 * @lane: the lane
 * @err: why, a negative errno
 *
 * Context: process or softirq; no link or lane lock.
 */
void sovia_lane_fail(struct sovia_lane *lane, int err)
{
	spin_lock_bh(&lane->lock);
	sovia_lane_die(lane, err);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_vi_attr() - VI attributes that a lane needs
 * @lane: the lane
 * @attr: filled in
 *
 * Context: connection thread.
 */
void sovia_lane_vi_attr(const struct sovia_lane *lane, struct sovia_vi_attr *attr)
{
	attr->recv_depth = sovia_credit_receives(lane->credit.limit);
	attr->recv_first = sovia_credit_receives(lane->credit.own_window);
	attr->send_depth = 2 * lane->credit.limit + 1;
	attr->msg_size = sizeof(struct sovia_hdr) + lane->own_payload;
	attr->tos = SOVIA_TOS_DEFAULT;
}

/**
 * sovia_lane_hello() - build our hello to the peer
 * @lane: the lane
 * @hello: filled in
 *
 * Context: connection thread.
 */
void sovia_lane_hello(const struct sovia_lane *lane, struct sovia_hello *hello)
{
	const struct sovia_params params = {
		.window = lane->credit.own_window,
		.payload = lane->own_payload,
		.lane = lane->pair->lane,
		.rx_next = lane->credit.rx_next,
		.id = lane->id,
		.peer_id = lane->peer_id,
	};

	sovia_hello_build(hello, &params, lane->version);
}

/* Module parameters are sampled here, for the lifetime of the link. */
static void lane_set_params(struct sovia_lane *lane)
{
	lane->payload = SOVIA_PAYLOAD_MIN;
	lane->max_frags = 1;
	lane->copybreak = SOVIA_COPYBREAK;
	lane->compact = false;
	/* Loopback posts no receive buffers, so allow the maximum payload. */
	lane->own_payload = lane->prov->in_memory ? SOVIA_PAYLOAD_MAX : READ_ONCE(payload);
	sovia_credit_init(&lane->credit, lane->reply_max / SOVIA_REPLIES_PER_CREDIT,
			  READ_ONCE(ack_threshold));
}

/**
 * sovia_lane_grow() - have more receives posted if the window is too small
 * @lane: the lane
 * @wanted: the peer waits for credits
 *
 * Context: lane lock held.
 */
void sovia_lane_grow(struct sovia_lane *lane, bool wanted)
{
	u32 goal = sovia_credit_goal(&lane->credit, wanted);

	lockdep_assert_held(&lane->lock);
	if (!lane->grows || !lane->up || lane->growing || goal == lane->credit.own_window)
		return;
	lane->growing = true;
	sovia_stat_inc(lane->snet, window_grow);
	trace_sovia_window_grow(lane);
	lane->vi->prov->post_more(lane->vi, sovia_credit_receives(goal));
}

/**
 * sovia_lane_room_alloc() - allocate what a lane has only for a VI
 * @lane: the lane, not in use
 * @gfp: allocation flags
 *
 * Context: any that @gfp allows.
 * Return: the memory, or NULL.
 */
struct sovia_lane_room *sovia_lane_room_alloc(const struct sovia_lane *lane, gfp_t gfp)
{
	return kzalloc(struct_size(lane->room, reply, lane->reply_max), gfp | __GFP_NOWARN);
}

/**
 * sovia_lane_room_free() - free it, unless something is in it
 * @lane: the lane of a parked link, whose VI has ended
 *
 * Context: connection thread; no lane lock.
 */
void sovia_lane_room_free(struct sovia_lane *lane)
{
	struct sovia_lane_room *room = NULL;

	spin_lock_bh(&lane->lock);
	if (!lane->reply_count)
		swap(room, lane->room);
	spin_unlock_bh(&lane->lock);
	kfree(room);
}

static int lane_get_room(struct sovia_lane *lane)
{
	struct sovia_lane_room *room;

	if (READ_ONCE(lane->room))
		return 0;
	room = sovia_lane_room_alloc(lane, GFP_KERNEL);
	if (!room)
		return -ENOMEM;
	spin_lock_bh(&lane->lock);
	/* An answer may have needed it: lane_queue_reply(). */
	if (!lane->room)
		swap(room, lane->room);
	spin_unlock_bh(&lane->lock);
	kfree(room);
	return 0;
}

static void lane_ready(struct sovia_lane *lane, bool active, u64 peer_id)
{
	spin_lock_bh(&lane->lock);
	lane->active = active;
	lane->peer_id = peer_id;
	lane->vi = NULL;
	lane->up = false;
	lane->growing = false;
	lane->parking = false;
	lane->parked = false;
	lane->tried = false;
	lane->dead = false;
	lane->err = 0;
	if (lane->room) {
		memset(&lane->room->tx_slots, 0, sizeof(lane->room->tx_slots));
		memset(&lane->room->rx_slots, 0, sizeof(lane->room->rx_slots));
	}
	if (lane->open)
		sovia_credit_restart(&lane->credit);
	else
		lane_set_params(lane);
	sovia_credit_begin(&lane->credit, lane->grows ? SOVIA_WINDOW_FIRST : lane->credit.limit);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_prepare() - make a lane ready for a VI
 * @lane: the lane, without a VI; keeps its queues if it is open
 * @active: we initiate the VI, not the peer
 * @peer_id: id of the peer's end, 0 if not yet known
 *
 * Context: connection thread.
 * Return: 0 or -ENOMEM.
 */
int sovia_lane_prepare(struct sovia_lane *lane, bool active, u64 peer_id)
{
	lane_ready(lane, active, peer_id);
	return lane_get_room(lane);
}

/**
 * sovia_lane_init() - prepare the lane of a new link
 * @lane: the lane
 * @ops: of that link
 * @snet: its namespace, which stays
 * @pair: its addresses, which stay
 * @prov: its provider
 * @gfp: allocation flags
 *
 * Context: any that @gfp allows.
 * Return: 0 or -ENOMEM.
 */
int sovia_lane_init(struct sovia_lane *lane, const struct sovia_lane_ops *ops,
		    struct sovia_net *snet, const struct sovia_pair *pair,
		    const struct sovia_provider *prov, gfp_t gfp)
{
	lane->ops = ops;
	lane->snet = snet;
	lane->pair = pair;
	lane->addr_hash = sovia_pair_addr_hash(pair);
	lane->prov = prov;
	lane->version = SOVIA_WIRE_VERSION;
	lane->reply_max = SOVIA_REPLIES_PER_CREDIT * READ_ONCE(window);
	lane->room = sovia_lane_room_alloc(lane, gfp);
	if (!lane->room)
		return -ENOMEM;
	spin_lock_init(&lane->lock);
	sovia_turns_init(&lane->turns);
	__skb_queue_head_init(&lane->rtx_queue);
	__skb_queue_head_init(&lane->unacked);
	timer_setup(&lane->ack_timer, sovia_lane_timeout, 0);
	do {
		lane->id = get_random_u64();
	} while (!lane->id);
	lane_ready(lane, false, 0);
	return 0;
}

/**
 * sovia_lane_free() - free what sovia_lane_init() allocated
 * @lane: the lane of a link without references
 *
 * Context: any.
 */
void sovia_lane_free(struct sovia_lane *lane)
{
	kfree(lane->room);
}

static void lane_strip_ready(struct sovia_lane *lane, struct list_head *ready,
			     struct sk_buff_head *msgs)
{
	struct sovia_conn *conn, *next;

	list_for_each_entry_safe(conn, next, ready, ready_node) {
		conn->inflight -= skb_queue_len(&conn->txq);
		skb_queue_splice_tail_init(&conn->txq, msgs);
		sovia_turn_del(&lane->turns, conn, &conn->ready_node);
	}
}

static void lane_strip_turn(struct sovia_lane *lane, struct sovia_turn *turn,
			    struct sk_buff_head *msgs)
{
	struct sovia_conn *conn, *next;

	lane_strip_ready(lane, &turn->first, msgs);
	lane_strip_ready(lane, &turn->more, msgs);
	list_for_each_entry_safe(conn, next, &turn->ctl, ctl_node)
		sovia_conn_drop_control(lane, conn);
}

/* Collect all queued and unacknowledged messages; none is added after. */
static void lane_strip(struct sovia_lane *lane, struct sk_buff_head *msgs)
{
	struct sk_buff *skb;
	int i;

	spin_lock_bh(&lane->lock);
	lane->open = false;
	lane->peer_id = 0;
	lane->reply_count = 0;
	lane->probe = 0;
	lane->parked = false;
	sovia_credit_hold(&lane->credit, 0);
	skb_queue_splice_init(&lane->unacked, msgs);
	skb_queue_walk(&lane->rtx_queue, skb)
		if (SOVIA_TX_CB(skb)->conn)
			SOVIA_TX_CB(skb)->conn->inflight--;
	skb_queue_splice_tail_init(&lane->rtx_queue, msgs);
	for (i = 0; i < SOVIA_TURNS; i++)
		lane_strip_turn(lane, &lane->turns.turn[i], msgs);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_reset() - empty a lane without a live VI
 * @lane: the lane; closed until it is established again
 *
 * A VI that is ending keeps its own references to what was posted.
 *
 * Context: connection thread.
 */
void sovia_lane_reset(struct sovia_lane *lane)
{
	struct sk_buff_head msgs;

	__skb_queue_head_init(&msgs);
	lane_strip(lane, &msgs);
	timer_delete_sync(&lane->ack_timer);
	sovia_tx_free(&msgs, false);
}

/**
 * sovia_conn_account() - account bytes as acknowledged or dropped
 * @conn: the connection, or NULL
 * @len: number of bytes
 * @acked: the peer has acknowledged them
 *
 * Context: any.
 */
void sovia_conn_account(struct sovia_conn *conn, u32 len, bool acked)
{
	if (!conn || !len)
		return;
	if (acked) {
		atomic64_add(len, &conn->acked);
	} else {
		atomic_add(len, &conn->lost);
		/* Pairs with sovia_outq(), which finds it in one of them. */
		smp_mb__after_atomic();
	}
	atomic_sub(len, &conn->outq);
}

/**
 * sovia_tx_free() - free messages; their charges go back to the sockets
 * @list: the messages
 * @acked: the peer has acknowledged them
 *
 * Context: process or softirq; no lane lock.
 */
void sovia_tx_free(struct sk_buff_head *list, bool acked)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(list))) {
		sovia_conn_account(SOVIA_TX_CB(skb)->conn, SOVIA_TX_CB(skb)->len, acked);
		kfree_skb(skb);
	}
}

/**
 * sovia_conn_drop_control() - cancel pending control messages
 * @lane: the lane
 * @conn: connection on it
 *
 * May put the last reference.
 *
 * Context: lane lock held.
 */
void sovia_conn_drop_control(struct sovia_lane *lane, struct sovia_conn *conn)
{
	lockdep_assert_held(&lane->lock);
	if (!conn->ctl)
		return;
	conn->ctl = 0;
	sovia_turn_del(&lane->turns, conn, &conn->ctl_node);
	lane->ctl_count--;
	sovia_conn_put(conn);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/credit_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lanes: messages in and out of one VI, credits, and turns.
 *
 * Out.  A connection hands its stream messages to sovia_conn_send() and asks for
 * control messages with sovia_conn_control(); both only queue.  lane_pump() is
 * the one place where messages are numbered and posted.  It serves, while the
 * credit lasts: the message the provider had no room for, messages without a
 * connection, control messages, and then one stream message of each ready
 * connection in turn, so that a bulk sender delays others by one message.
 *
 * A message stays on lane->unacked until the peer acknowledges it; the provider
 * has its own reference until the local completion.  Whichever ends last gives
 * the memory back to the socket.
 *
 * In.  The provider's bottom half calls lane_receive() (the paper's DEM and
 * multiplexer, KSOVIA 3.1): check, acknowledge, find the connection, hand over.
 * An acknowledgment rides on the next message; it goes alone when the threshold
 * t is reached, when the peer asks, or when the lane falls idle.
 *
 * Errors.  A peer that breaks the rules of the lane loses the lane; one that
 * breaks those of a connection gets a RESET for it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>
#include <linux/slab.h>
#include "connd.h"
#include "link.h"

/* An idle lane acknowledges after this long. */
#define SOVIA_ACK_DELAY		msecs_to_jiffies(10)
/* Messages without a connection that may wait; more are not worth the memory. */
#define SOVIA_LOOSE_MAX		256
/* Head room of a message beside its header: none is needed below us. */
#define SOVIA_HEADROOM		sizeof(struct sovia_hdr)

static unsigned int window = 32;
module_param(window, uint, 0644);
MODULE_PARM_DESC(window, "messages a lane takes unacknowledged, w (new links)");

static unsigned int ack_threshold = 16;
module_param(ack_threshold, uint, 0644);
MODULE_PARM_DESC(ack_threshold, "unacknowledged messages that force an ACK, t (new links)");

static unsigned int payload = 16384;
module_param(payload, uint, 0644);
MODULE_PARM_DESC(payload, "largest payload of a message in bytes (new links)");

static bool lane_is_loop(const struct sovia_lane *lane)
{
	return lane->link->prov == &sovia_loop_provider;
}

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

/* ---- out ------------------------------------------------------------- */

static void lane_count_tx(struct sovia_lane *lane, const struct sovia_tx_cb *cb)
{
	struct sovia_net *snet = lane->link->snet;

	if (lane_is_loop(lane)) {
		sovia_stat_inc(snet, loop_tx_msgs);
		sovia_stat_add(snet, loop_tx_bytes, cb->len);
	} else {
		sovia_stat_inc(snet, verbs_tx_msgs);
		sovia_stat_add(snet, verbs_tx_bytes, cb->len);
	}
}

/* Write the header; the number and the acknowledgment are set by lane_post(). */
static void lane_fill(struct sk_buff *skb, struct sovia_conn *conn)
{
	const struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);
	struct sovia_msg msg = {
		.type = cb->type,
		.flags = cb->flags,
		.len = skb->len,
		.sport = conn ? conn->key.lport : cb->sport,
		.dport = conn ? conn->key.rport : cb->dport,
		.window = conn ? READ_ONCE(conn->rx_adv) : 0,
		.ref = cb->ref,
		.code = cb->code,
	};

	if (conn)
		WRITE_ONCE(conn->rx_told, msg.window);
	sovia_msg_build(skb_push(skb, sizeof(struct sovia_hdr)), &msg);
}

/* Number a message, let the acknowledgment ride on it, and post it. */
static int lane_post(struct sovia_lane *lane, struct sk_buff *skb)
{
	struct sovia_hdr *hdr = (struct sovia_hdr *)skb->data;
	struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);
	int err;

	lockdep_assert_held(&lane->lock);
	cb->seq = lane->credit.tx_next;
	hdr->seq = cpu_to_be32(cb->seq);
	hdr->ack = cpu_to_be32(sovia_credit_ack(&lane->credit));
	err = lane->vi->prov->post_send(lane->vi, skb);
	if (err)
		return err;
	sovia_credit_ack_sent(&lane->credit);
	if (sovia_sequenced(cb->type))
		lane->credit.tx_next++;
	lane_count_tx(lane, cb);
	return 0;
}

static void lane_arm(struct sovia_lane *lane)
{
	if (!timer_pending(&lane->ack_timer))
		mod_timer(&lane->ack_timer, jiffies + SOVIA_ACK_DELAY);
}

static struct sk_buff *lane_next_loose(struct sovia_lane *lane)
{
	struct sk_buff *skb = __skb_dequeue(&lane->loose);

	if (skb)
		lane_fill(skb, NULL);
	return skb;
}

/* The order in which a connection's control messages make sense. */
static const u8 ctl_order[] = {
	SOVIA_CONN, SOVIA_ACCEPT, SOVIA_WAKEUP, SOVIA_FINACK, SOVIA_RESET,
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

/* Make the next control message; NULL if there is none or no memory for it. */
static struct sk_buff *lane_next_ctl(struct sovia_lane *lane)
{
	struct sovia_conn *conn;
	struct sovia_tx_cb *cb;
	struct sk_buff *skb;

	conn = list_first_entry_or_null(&lane->ctl, struct sovia_conn, ctl_node);
	if (!conn)
		return NULL;
	skb = sovia_msg_alloc(sizeof(struct sovia_conn_body), GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		sovia_stat_inc(lane->link->snet, nomem);
		lane_arm(lane);
		return NULL;
	}
	cb = SOVIA_TX_CB(skb);
	cb->type = ctl_first(conn);
	switch (cb->type) {
	case SOVIA_CONN:
		conn->conn_seq = lane->credit.tx_next;
		ctl_add_addresses(skb, &lane->link->pair);
		break;
	case SOVIA_ACCEPT:
		cb->ref = conn->ref;
		break;
	case SOVIA_WAKEUP:
		sovia_stat_inc(lane->link->snet, wakeup_tx);
		break;
	case SOVIA_RESET:
		cb->code = conn->code;
		sovia_stat_inc(lane->link->snet, reset_tx);
		break;
	}
	lane_fill(skb, conn);
	conn->ctl &= ~SOVIA_CTL(cb->type);
	if (!conn->ctl) {
		list_del_init(&conn->ctl_node);
		/* Frees after a grace period only, so it may be the last one. */
		sock_put(conn->sk);
	}
	return skb;
}

/* One stream message of the connection whose turn it is. */
static struct sk_buff *lane_next_ready(struct sovia_lane *lane)
{
	struct sovia_conn *conn;
	struct sk_buff *skb;

	conn = list_first_entry_or_null(&lane->ready, struct sovia_conn, ready_node);
	if (!conn)
		return NULL;
	skb = __skb_dequeue(&conn->txq);
	if (skb_queue_empty(&conn->txq))
		list_del_init(&conn->ready_node);
	else
		list_move_tail(&conn->ready_node, &lane->ready);
	lane_fill(skb, conn);
	return skb;
}

static bool lane_has_work(const struct sovia_lane *lane)
{
	return lane->held || !skb_queue_empty(&lane->loose) ||
	       !list_empty(&lane->ctl) || !list_empty(&lane->ready);
}

static struct sk_buff *lane_next(struct sovia_lane *lane)
{
	struct sk_buff *skb = lane->held;

	if (skb) {
		lane->held = NULL;
		return skb;
	}
	skb = lane_next_loose(lane);
	if (skb)
		return skb;
	if (!list_empty(&lane->ctl))
		return lane_next_ctl(lane);
	return lane_next_ready(lane);
}

static void lane_die(struct sovia_lane *lane, int err)
{
	lockdep_assert_held(&lane->lock);
	if (lane->dead)
		return;
	lane->dead = true;
	lane->up = false;
	lane->err = err;
	sovia_link_event(lane->link, SOVIA_LINK_EV_DOWN);
}

/* Send what may be sent. */
static void lane_pump(struct sovia_lane *lane)
{
	struct sk_buff *skb;
	int err;

	lockdep_assert_held(&lane->lock);
	while (lane->up && lane_has_work(lane)) {
		if (!sovia_credit_may_send(&lane->credit)) {
			sovia_stat_inc(lane->link->snet, credit_stall);
			return;
		}
		skb = lane_next(lane);
		if (!skb)
			return;
		/* The last credit: have it answered, whatever the threshold is. */
		if (sovia_credit_flight(&lane->credit) + 1 >= lane->credit.window)
			((struct sovia_hdr *)skb->data)->flags |=
				cpu_to_be16(SOVIA_F_ACKREQ);
		err = lane_post(lane, skb);
		if (!err) {
			__skb_queue_tail(&lane->unacked, skb);
			continue;
		}
		lane->held = skb;
		if (err == -EAGAIN)
			lane_arm(lane);
		else
			lane_die(lane, err);
		return;
	}
}

/* Send an explicit ACK.  It takes no credit and is not kept. */
static void lane_ack(struct sovia_lane *lane)
{
	struct sk_buff *skb;
	int err = -ENOMEM;

	lockdep_assert_held(&lane->lock);
	if (!lane->up)
		return;
	skb = sovia_msg_alloc(0, GFP_ATOMIC | __GFP_NOWARN);
	if (skb) {
		SOVIA_TX_CB(skb)->type = SOVIA_ACK;
		lane_fill(skb, NULL);
		err = lane_post(lane, skb);
		kfree_skb(skb);
	}
	if (!err) {
		sovia_stat_inc(lane->link->snet, ack_tx);
	} else if (err == -ENOMEM || err == -EAGAIN) {
		sovia_stat_inc(lane->link->snet, nomem);
		lane_arm(lane);
	} else {
		lane_die(lane, err);
	}
}

/* The lane has been idle for a while, or something could not be done before. */
static void lane_timeout(struct timer_list *timer)
{
	struct sovia_lane *lane = container_of(timer, struct sovia_lane, ack_timer);

	spin_lock(&lane->lock);
	lane_pump(lane);
	if (sovia_credit_ack_pending(&lane->credit))
		lane_ack(lane);
	spin_unlock(&lane->lock);
}

/* Queue a message that belongs to no connection. */
static void lane_send_loose(struct sovia_lane *lane, u8 type, u16 sport, u16 dport,
			    u32 ref, u32 code)
{
	struct sk_buff *skb;

	skb = sovia_msg_alloc(0, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		sovia_stat_inc(lane->link->snet, nomem);
		return;
	}
	*SOVIA_TX_CB(skb) = (struct sovia_tx_cb) {
		.type = type, .sport = sport, .dport = dport, .ref = ref, .code = code,
	};
	spin_lock_bh(&lane->lock);
	if (lane->up && skb_queue_len(&lane->loose) < SOVIA_LOOSE_MAX) {
		__skb_queue_tail(&lane->loose, skb);
		skb = NULL;
		lane_pump(lane);
	}
	spin_unlock_bh(&lane->lock);
	kfree_skb(skb);
}

/**
 * sovia_link_refuse() - answer a CONN with REFUSE
 * @link: the link it came on
 * @conn_msg: the CONN
 * @code: enum sovia_code
 *
 * Context: process or softirq; no link or lane lock.
 */
void sovia_link_refuse(struct sovia_link *link, const struct sovia_msg *conn_msg, u32 code)
{
	sovia_stat_inc(link->snet, conn_refused);
	lane_send_loose(&link->lane, SOVIA_REFUSE, conn_msg->dport, conn_msg->sport,
			conn_msg->seq, code);
}

/**
 * sovia_lane_probe() - make the lane prove that the peer is there
 * @lane: the lane
 *
 * Context: process; no link or lane lock.
 */
void sovia_lane_probe(struct sovia_lane *lane)
{
	lane_send_loose(lane, SOVIA_PROBE, 0, 0, 0, 0);
}

/* ---- connections ----------------------------------------------------- */

/**
 * sovia_conn_init() - prepare a socket's part in the link layer
 * @conn: embedded in the socket
 * @sk: the socket
 *
 * Context: socket creation.
 */
void sovia_conn_init(struct sovia_conn *conn, struct sock *sk)
{
	memset(conn, 0, sizeof(*conn));
	conn->sk = sk;
	INIT_LIST_HEAD(&conn->link_node);
	INIT_LIST_HEAD(&conn->ready_node);
	INIT_LIST_HEAD(&conn->ctl_node);
	__skb_queue_head_init(&conn->txq);
}

static struct sovia_lane *conn_lane(const struct sovia_conn *conn)
{
	return &conn->key.link->lane;
}

/**
 * sovia_conn_payload() - largest payload of a message on this connection
 * @conn: attached to a link that has been up
 *
 * Context: any.
 * Return: bytes.
 */
u32 sovia_conn_payload(const struct sovia_conn *conn)
{
	return READ_ONCE(conn_lane(conn)->payload);
}

/**
 * sovia_conn_max_frags() - page fragments that a message may have
 * @conn: attached to a link that has been up
 *
 * Context: any.
 * Return: the number, at least 1.
 */
int sovia_conn_max_frags(const struct sovia_conn *conn)
{
	return READ_ONCE(conn_lane(conn)->max_frags);
}

/**
 * sovia_conn_room() - may another stream message be queued now
 * @conn: established connection
 * @small: the message would gain from waiting for company
 *
 * A small message waits while others of its connection are under way: combining
 * (SOVIA 4.2) clocked by completions instead of a timer.  If the answer is no,
 * the client's tx_ready upcall comes when it may be yes.
 *
 * Context: socket lock held.
 * Return: true if there is room.
 */
bool sovia_conn_room(struct sovia_conn *conn, bool small)
{
	struct sovia_lane *lane = conn_lane(conn);
	bool room;

	spin_lock_bh(&lane->lock);
	room = skb_queue_len(&conn->txq) < SOVIA_TXQ_MAX && !(small && atomic_read(&conn->inflight));
	/* With nothing in flight nobody would call: there is always room then. */
	conn->tx_wanted = !room;
	spin_unlock_bh(&lane->lock);
	return room;
}

/**
 * sovia_conn_send() - queue a stream message, DATA or FIN
 * @conn: established connection
 * @skb: the payload, with its struct sovia_tx_cb filled but for conn and seq and
 *	charged to the socket; owned by the lane from here on
 *
 * Context: socket lock held.
 */
void sovia_conn_send(struct sovia_conn *conn, struct sk_buff *skb)
{
	struct sovia_lane *lane = conn_lane(conn);

	SOVIA_TX_CB(skb)->conn = conn;
	spin_lock_bh(&lane->lock);
	if (lane->dead) {
		spin_unlock_bh(&lane->lock);
		/* The connection is about to be told. */
		kfree_skb(skb);
		return;
	}
	__skb_queue_tail(&conn->txq, skb);
	atomic_inc(&conn->inflight);
	if (list_empty(&conn->ready_node))
		list_add_tail(&conn->ready_node, &lane->ready);
	lane_pump(lane);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_conn_control() - queue a control message
 * @conn: connection on a link
 * @type: SOVIA_CONN, _ACCEPT, _WAKEUP, _FINACK or _RESET.  RESET replaces all
 *	others that wait.
 * @code: for RESET
 *
 * Needs no memory now, so it cannot fail.
 *
 * Context: any with a socket reference; no link or lane lock.
 */
void sovia_conn_control(struct sovia_conn *conn, u8 type, u32 code)
{
	struct sovia_lane *lane = conn_lane(conn);

	spin_lock_bh(&lane->lock);
	if (lane->up) {
		if (!conn->ctl) {
			sock_hold(conn->sk);
			list_add_tail(&conn->ctl_node, &lane->ctl);
		}
		if (type == SOVIA_RESET) {
			conn->ctl = 0;
			conn->code = code;
		}
		conn->ctl |= SOVIA_CTL(type);
		lane_pump(lane);
	}
	spin_unlock_bh(&lane->lock);
}

static void tx_account(const struct sk_buff *skb, bool acked)
{
	const struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);

	if (!cb->conn || !cb->len)
		return;
	atomic_sub(cb->len, &cb->conn->outq);
	if (acked)
		atomic64_add(cb->len, &cb->conn->acked);
}

/* Free messages; charges go back to their sockets. */
static void tx_free(struct sk_buff_head *list, bool acked)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(list))) {
		tx_account(skb, acked);
		kfree_skb(skb);
	}
}

/**
 * sovia_conn_purge() - throw away the stream messages that were not sent
 * @conn: connection that ends
 *
 * Context: socket lock held.
 */
void sovia_conn_purge(struct sovia_conn *conn)
{
	struct sovia_lane *lane;
	struct sk_buff_head list;

	if (!conn->key.link)
		return;
	lane = conn_lane(conn);
	__skb_queue_head_init(&list);
	spin_lock_bh(&lane->lock);
	atomic_sub(skb_queue_len(&conn->txq), &conn->inflight);
	skb_queue_splice_init(&conn->txq, &list);
	list_del_init(&conn->ready_node);
	spin_unlock_bh(&lane->lock);
	tx_free(&list, false);
}

/**
 * sovia_conn_leave() - the socket is about to use another link
 * @conn: ended, its last RESET perhaps still waiting
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_conn_leave(struct sovia_conn *conn)
{
	struct sovia_lane *lane;
	bool waiting, reset;

	if (!conn->key.link)
		return;
	sovia_conn_purge(conn);
	lane = conn_lane(conn);
	spin_lock_bh(&lane->lock);
	waiting = conn->ctl;
	reset = conn->ctl & SOVIA_CTL(SOVIA_RESET);
	conn->ctl = 0;
	if (waiting)
		list_del_init(&conn->ctl_node);
	conn->tx_wanted = false;
	spin_unlock_bh(&lane->lock);
	if (reset)
		lane_send_loose(lane, SOVIA_RESET, conn->key.lport, conn->key.rport, 0,
				conn->code);
	if (waiting)
		sock_put(conn->sk);
}

/* ---- in -------------------------------------------------------------- */

static void lane_violation(struct sovia_lane *lane, const char *what, int err)
{
	pr_warn_ratelimited("link to %pI6c: %s (%d), closing it\n",
			    &lane->link->pair.remote, what, err);
	lane_die(lane, -EPROTO);
}

static void lane_bad_message(struct sovia_lane *lane, int err)
{
	sovia_stat_inc(lane->link->snet, bad_message);
	spin_lock(&lane->lock);
	lane_violation(lane, "malformed message", err);
	spin_unlock(&lane->lock);
}

static void lane_count_rx(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	struct sovia_net *snet = lane->link->snet;

	lane->rx_count++;
	if (lane_is_loop(lane)) {
		sovia_stat_inc(snet, loop_rx_msgs);
		sovia_stat_add(snet, loop_rx_bytes, msg->len);
	} else {
		sovia_stat_inc(snet, verbs_rx_msgs);
		sovia_stat_add(snet, verbs_rx_bytes, msg->len);
	}
	if (msg->type == SOVIA_ACK)
		sovia_stat_inc(snet, ack_rx);
}

/* Take acknowledged messages off the lane. */
static void lane_reap(struct sovia_lane *lane, struct sk_buff_head *acked)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&lane->unacked))) {
		if (!sovia_before(SOVIA_TX_CB(skb)->seq, lane->credit.tx_una))
			break;
		__skb_unlink(skb, &lane->unacked);
		__skb_queue_tail(acked, skb);
	}
}

/* Account for a message in the lane's numbers. */
static int lane_account(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	int err;

	lockdep_assert_held(&lane->lock);
	err = sovia_credit_acked(&lane->credit, msg->ack);
	if (err) {
		sovia_stat_inc(lane->link->snet, bad_ack);
		lane_violation(lane, "acknowledgment of what was never sent", err);
		return err;
	}
	if (sovia_sequenced(msg->type))
		err = sovia_credit_receive(&lane->credit, msg->seq);
	else if (msg->seq != lane->credit.rx_next)
		err = -EPROTO;
	if (err) {
		sovia_stat_inc(lane->link->snet, bad_sequence);
		lane_violation(lane, "out of sequence or credit", err);
	}
	if (msg->flags & SOVIA_F_ACKREQ)
		lane->credit.asked = true;
	return err;
}

/* Tell the peer that a connection it speaks of is not there. */
static void lane_no_socket(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	sovia_stat_inc(lane->link->snet, no_socket);
	switch (msg->type) {
	case SOVIA_DATA:
	case SOVIA_FIN:
	case SOVIA_ACCEPT:
		sovia_stat_inc(lane->link->snet, reset_tx);
		lane_send_loose(lane, SOVIA_RESET, msg->dport, msg->sport, 0,
				SOVIA_CODE_NO_SOCKET);
		break;
	}
}

/* The multiplexer: hand a message to whom it is for. */
static bool lane_dispatch(struct sovia_lane *lane, struct sk_buff *skb,
			  const struct sovia_msg *msg)
{
	struct sovia_conn *conn;
	bool taken = false;

	switch (msg->type) {
	case SOVIA_ACK:
	case SOVIA_PROBE:
		return false;
	case SOVIA_CONN:
		sovia_sock_client.request(lane->link, skb, msg);
		return false;
	}
	conn = sovia_conn_lookup(lane->link, msg->dport, msg->sport);
	if (!conn) {
		lane_no_socket(lane, msg);
		return false;
	}
	if (msg->type == SOVIA_DATA)
		taken = sovia_sock_client.data(conn, skb, msg);
	else
		sovia_sock_client.control(conn, msg);
	sock_put(conn->sk);
	return taken;
}

static bool lane_receive(struct sovia_vi *vi, struct sk_buff *skb)
{
	struct sovia_lane *lane = vi->context;
	struct sk_buff_head acked;
	struct sovia_msg msg;
	bool taken;
	int err;

	err = sovia_msg_parse(skb, lane->own_payload, &msg);
	if (err) {
		lane_bad_message(lane, err);
		return false;
	}

	__skb_queue_head_init(&acked);
	spin_lock(&lane->lock);
	err = lane->dead ? -ENOTCONN : lane_account(lane, &msg);
	if (err) {
		spin_unlock(&lane->lock);
		return false;
	}
	lane_count_rx(lane, &msg);
	lane_reap(lane, &acked);
	if (!skb_queue_empty(&acked))
		lane_pump(lane);
	spin_unlock(&lane->lock);
	tx_free(&acked, true);

	taken = lane_dispatch(lane, skb, &msg);

	/* Whatever the dispatch sent has acknowledged already. */
	spin_lock(&lane->lock);
	if (sovia_credit_ack_due(&lane->credit))
		lane_ack(lane);
	else if (sovia_credit_ack_pending(&lane->credit))
		lane_arm(lane);
	spin_unlock(&lane->lock);
	return taken;
}

static void lane_sent(struct sovia_vi *vi, struct sk_buff *skb)
{
	struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
	struct sovia_lane *lane = vi->context;
	bool ready = false;

	spin_lock(&lane->lock);
	if (conn) {
		atomic_dec(&conn->inflight);
		ready = conn->tx_wanted && skb_queue_len(&conn->txq) <= SOVIA_TXQ_MAX / 2;
		if (ready)
			conn->tx_wanted = false;
	}
	if (lane_has_work(lane))
		lane_pump(lane);
	spin_unlock(&lane->lock);
	/* The socket's memory is pinned by the charge of @skb. */
	if (ready)
		sovia_sock_client.tx_ready(conn);
}

static void lane_starved(struct sovia_vi *vi, int delta)
{
	struct sovia_lane *lane = vi->context;

	if (delta > 0)
		sovia_stat_inc(lane->link->snet, nomem);
	spin_lock_bh(&lane->lock);
	lane->credit.starved += delta;
	if (delta < 0 && sovia_credit_ack_due(&lane->credit))
		lane_ack(lane);
	spin_unlock_bh(&lane->lock);
}

static void lane_established(struct sovia_vi *vi, const struct sovia_hello *hello,
			     unsigned int hello_len)
{
	struct sovia_lane *lane = vi->context;
	struct sovia_params params;
	int err;

	err = sovia_hello_parse(hello, hello_len, &params);
	spin_lock_bh(&lane->lock);
	lane->vi = vi;
	if (err) {
		sovia_stat_inc(lane->link->snet, bad_hello);
		lane_violation(lane, "bad hello", err);
	} else if (!lane->dead) {
		lane->credit.window = params.window;
		lane->payload = min(params.payload, lane->own_payload);
		lane->max_frags = min_t(int, vi->max_frags, MAX_SKB_FRAGS);
		lane->up = true;
		sovia_link_event(lane->link, SOVIA_LINK_EV_UP);
	}
	spin_unlock_bh(&lane->lock);
}

static void lane_closed(struct sovia_vi *vi, int err)
{
	sovia_lane_fail(vi->context, err);
}

const struct sovia_vi_client sovia_lane_vi_client = {
	.established	= lane_established,
	.closed		= lane_closed,
	.receive	= lane_receive,
	.sent		= lane_sent,
	.starved	= lane_starved,
};

/* ---- life ------------------------------------------------------------ */

/**
 * sovia_lane_fail() - the lane is not to be used any more
 * @lane: the lane
 * @err: why, a negative errno
 *
 * The connection thread does the rest.
 *
 * Context: process or softirq; no link or lane lock.
 */
void sovia_lane_fail(struct sovia_lane *lane, int err)
{
	spin_lock_bh(&lane->lock);
	lane_die(lane, err);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_vi_attr() - the size of VI that a lane needs
 * @lane: the lane
 * @attr: filled in
 *
 * Context: connection thread.
 */
void sovia_lane_vi_attr(const struct sovia_lane *lane, struct sovia_vi_attr *attr)
{
	/* See credit.h for why it is 2w + 1. */
	attr->recv_depth = 2 * lane->credit.own_window + 1;
	attr->send_depth = 2 * lane->credit.own_window + 1;
	attr->msg_size = sizeof(struct sovia_hdr) + lane->own_payload;
}

/**
 * sovia_lane_hello() - what we say to the peer
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
	};

	sovia_hello_build(hello, &params);
}

/**
 * sovia_lane_prepare() - make an empty lane ready for a VI
 * @lane: the lane, new or reset
 *
 * Context: connection thread, or link creation.
 */
void sovia_lane_prepare(struct sovia_lane *lane)
{
	spin_lock_bh(&lane->lock);
	lane->vi = NULL;
	lane->up = false;
	lane->dead = false;
	lane->err = 0;
	lane->payload = SOVIA_PAYLOAD_MIN;
	lane->max_frags = 1;
	lane->own_payload = clamp_t(u32, READ_ONCE(payload), SOVIA_PAYLOAD_MIN,
				    SOVIA_PAYLOAD_MAX);
	sovia_credit_init(&lane->credit,
			  clamp_t(u32, READ_ONCE(window), 1, SOVIA_WINDOW_MAX),
			  READ_ONCE(ack_threshold));
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_init() - prepare the lane of a new link
 * @lane: the lane
 * @link: the link that it is embedded in
 *
 * Context: any.
 */
void sovia_lane_init(struct sovia_lane *lane, struct sovia_link *link)
{
	lane->link = link;
	spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->ctl);
	INIT_LIST_HEAD(&lane->ready);
	__skb_queue_head_init(&lane->loose);
	__skb_queue_head_init(&lane->unacked);
	timer_setup(&lane->ack_timer, lane_timeout, 0);
	sovia_lane_prepare(lane);
}

/* Collect everything that waits or is unacknowledged; nothing is added after. */
static void lane_strip(struct sovia_lane *lane, struct sk_buff_head *msgs,
		       struct list_head *ctl)
{
	struct sovia_conn *conn, *next;

	spin_lock_bh(&lane->lock);
	lane->up = false;
	lane->dead = true;
	lane->vi = NULL;
	skb_queue_splice_init(&lane->loose, msgs);
	skb_queue_splice_tail_init(&lane->unacked, msgs);
	if (lane->held)
		__skb_queue_tail(msgs, lane->held);
	lane->held = NULL;
	list_for_each_entry_safe(conn, next, &lane->ready, ready_node) {
		atomic_sub(skb_queue_len(&conn->txq), &conn->inflight);
		skb_queue_splice_tail_init(&conn->txq, msgs);
		list_del_init(&conn->ready_node);
	}
	list_for_each_entry(conn, &lane->ctl, ctl_node)
		conn->ctl = 0;
	list_splice_init(&lane->ctl, ctl);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_reset() - empty a lane whose VI is gone
 * @lane: the lane; dead until sovia_lane_prepare()
 *
 * Context: connection thread; the VI has been destroyed.
 */
void sovia_lane_reset(struct sovia_lane *lane)
{
	struct sovia_conn *conn, *next;
	struct sk_buff_head msgs;
	LIST_HEAD(ctl);

	__skb_queue_head_init(&msgs);
	lane_strip(lane, &msgs, &ctl);
	del_timer_sync(&lane->ack_timer);
	tx_free(&msgs, false);
	list_for_each_entry_safe(conn, next, &ctl, ctl_node) {
		list_del_init(&conn->ctl_node);
		sock_put(conn->sk);
	}
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/credit_test.c"
#endif

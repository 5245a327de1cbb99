// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lanes, receiving: the paper's DEM and multiplexer (KSOVIA 3.1).
 *
 * The provider's bottom half calls sovia_lane_receive(): check, acknowledge, find the
 * connection, deliver.  An acknowledgment is piggybacked on the next message; an
 * ACK is sent when the threshold t is reached, when the peer asks for it, or
 * when the lane falls idle.
 *
 * A violation of the lane's protocol ends the lane; one of a connection's is
 * answered with RESET.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "conn_table.h"
#include "core/hist.h"
#include "core/trace.h"
#include "lane.h"
#include "lane_park.h"
#include "lane_rx.h"
#include "lane_tx.h"

/* Protocol violation by the peer: end the link. */
static void lane_violation(struct sovia_lane *lane, const char *what, int err)
{
	pr_warn_ratelimited("link to %pI6c: %s (%d), closing it\n",
			    &lane->pair->remote, what, err);
	sovia_lane_die(lane, -EPROTO);
}

/*
 * A message is missing, incomplete, duplicated or out of order: this VI is not reliable,
 * as with a device that retransmits wrongly.  Replace the lane; the next one starts with
 * the message expected.
 */
static void lane_disorder(struct sovia_lane *lane, const char *what, int err)
{
	pr_warn_ratelimited("link to %pI6c: %s, expected sequence number %u (%d), lane lost\n",
			    &lane->pair->remote, what, lane->credit.rx_next, err);
	sovia_lane_die(lane, -EILSEQ);
}

static void lane_bad_message(struct sovia_lane *lane, bool compact, int err)
{
	sovia_stat_inc(lane->snet, bad_message);
	spin_lock(&lane->lock);
	/* Compact DATA depends on an earlier header, which may be lost or reordered. */
	if (compact || err == -EMSGSIZE)
		lane_disorder(lane, "malformed message", err);
	else
		lane_violation(lane, "malformed message", err);
	spin_unlock(&lane->lock);
}

static void lane_count_rx(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	struct sovia_net *snet = lane->snet;
	enum sovia_stat stats = lane->prov->stats;

	WRITE_ONCE(lane->rx_time, jiffies);
	lane->count.rx_msgs++;
	lane->count.rx_bytes += msg->len;
	sovia_hist_add(snet, SOVIA_HIST_RX_SIZE, msg->len);
	trace_sovia_msg_receive(lane, msg, msg->dport, msg->sport);
	sovia_stat_add_at(snet, stats + SOVIA_STATS_RX_MSGS, 1);
	sovia_stat_add_at(snet, stats + SOVIA_STATS_RX_BYTES, msg->len);
	if (msg->type == SOVIA_ACK)
		sovia_stat_inc(snet, ack_rx);
}

/**
 * sovia_lane_reap() - remove acknowledged messages from the lane
 * @lane: the lane
 * @acked: they are added to it
 *
 * Context: lane lock held.
 */
void sovia_lane_reap(struct sovia_lane *lane, struct sk_buff_head *acked)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&lane->unacked))) {
		if (!sovia_before(SOVIA_TX_CB(skb)->seq, lane->credit.tx_una))
			break;
		__skb_unlink(skb, &lane->unacked);
		__skb_queue_tail(acked, skb);
	}
}

/* What a message says of windows that grow. */
static int lane_account_window(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	int err;

	if (!lane->grows)
		return 0;
	if (msg->type == SOVIA_ACK && msg->ref) {
		err = sovia_credit_granted(&lane->credit, msg->ref);
		if (err) {
			sovia_stat_inc(lane->snet, bad_ack);
			lane_violation(lane, "a window that shrinks, or is too large", err);
			return err;
		}
		sovia_lane_grow(lane, false);
	}
	/* One that the peer sent before it knows what we take says nothing. */
	if (msg->flags & SOVIA_F_WANT && lane->credit.told == lane->credit.own_window)
		sovia_lane_grow(lane, true);
	return 0;
}

/* Check a message against the lane's sequence numbers, and update them. */
static int lane_account(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	int err;

	lockdep_assert_held(&lane->lock);
	/* First: do not trust the other fields of an unexpected message. */
	if (sovia_sequenced(msg->type))
		err = sovia_credit_receive(&lane->credit, msg->seq);
	else
		err = msg->seq == lane->credit.rx_next ? 0 : -EPROTO;
	if (err) {
		sovia_stat_inc(lane->snet, bad_sequence);
		lane_disorder(lane, "unexpected sequence number", err);
		return err;
	}
	err = sovia_credit_acked(&lane->credit, msg->ack);
	if (err) {
		sovia_stat_inc(lane->snet, bad_ack);
		lane_violation(lane, "acknowledgment of messages never sent", err);
		return err;
	}
	if (msg->flags & SOVIA_F_ACKREQ)
		lane->credit.asked = true;
	lane->probes += sovia_is_probe(msg->type);
	return lane_account_window(lane, msg);
}

static void lane_open(struct sovia_lane *lane)
{
	lane->open = true;
	lane->up = true;
	WRITE_ONCE(lane->rx_time, jiffies);
	lane->ops->event(lane, SOVIA_LANE_UP);
	sovia_lane_pump(lane);
}

/*
 * A message for a lane that is not up.  On trial (link_trial.c) the passive end answers each padded
 * ACK with another one, which the active end confirms by an ACK.  Any other message says as
 * much: that ACK is not repeated.
 */
static int lane_trial(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	bool padded = msg->type == SOVIA_ACK && msg->len;

	if (padded && !lane->active) {
		if (sovia_lane_try(lane, true))
			lane->tried = true;
	} else if (lane->tried && padded == lane->active) {
		if (!lane->active || sovia_lane_try(lane, false))
			lane_open(lane);
	} else {
		sovia_stat_inc(lane->snet, bad_message);
		lane_violation(lane, "a message before the lane is up", -EPROTO);
		return -EPROTO;
	}
	return 0;
}

/* Answer a message without a connection. */
static void lane_no_socket(struct sovia_lane *lane, const struct sovia_msg *msg)
{
	sovia_stat_inc(lane->snet, no_socket);
	switch (msg->type) {
	case SOVIA_DATA:
	case SOVIA_ACCEPT:
		sovia_stat_inc(lane->snet, reset_tx);
		sovia_lane_reply(lane, SOVIA_RESET, msg->dport, msg->sport, 0,
				 SOVIA_CODE_NO_SOCKET);
		break;
	}
}

/* The multiplexer: deliver a message to its connection or to the lane. */
static bool lane_dispatch(struct sovia_lane *lane, struct sk_buff *skb,
			  const struct sovia_msg *msg)
{
	struct sovia_conn *conn;
	bool taken = false;

	switch (msg->type) {
	case SOVIA_ACK:
	case SOVIA_PROBE:
		return false;
	case SOVIA_PARK:
		sovia_lane_take_park(lane);
		return false;
	case SOVIA_CONN:
		sovia_lane_client->request(lane, skb, msg);
		return false;
	}
	rcu_read_lock();
	conn = sovia_conn_lookup(lane, msg->dport, msg->sport);
	if (!conn)
		lane_no_socket(lane, msg);
	else if (msg->type == SOVIA_DATA)
		taken = sovia_lane_client->data(conn, skb, msg);
	else
		sovia_lane_client->control(conn, msg);
	rcu_read_unlock();
	return taken;
}

/* Parse the header or immediate data, and leave the payload in @skb. */
static int lane_parse(struct sovia_lane *lane, struct sk_buff *skb, const u32 *imm,
		      struct sovia_msg *msg)
{
	int err;

	if (imm) {
		/* Only the bottom half, our context, writes these two. */
		msg->seq = READ_ONCE(lane->credit.rx_next);
		msg->ack = READ_ONCE(lane->credit.tx_una);
		return sovia_imm_parse(*imm, &lane->room->rx_slots, skb->len, lane->own_payload,
				       msg);
	}
	err = sovia_msg_parse(skb, lane->own_payload, lane->version, msg);
	if (err)
		return err;
	__skb_pull(skb, sizeof(struct sovia_hdr));
	if (msg->type == SOVIA_DATA)
		sovia_slots_set(&lane->room->rx_slots, msg->sport, msg->dport);
	return 0;
}

/* Acknowledge received messages, now or by the timer. */
static void lane_acknowledge(struct sovia_lane *lane)
{
	/* A larger window needs fewer ACKs. */
	if (lane->grows && sovia_credit_ack_many(&lane->credit))
		sovia_lane_grow(lane, true);
	if (sovia_credit_ack_due(&lane->credit))
		sovia_lane_ack(lane);
	else if (sovia_credit_ack_pending(&lane->credit))
		sovia_lane_arm(lane);
}

/**
 * sovia_lane_receive() - struct sovia_vi_client::receive
 * @vi: VI of a lane
 * @skb: the message
 * @imm: its immediate data, or NULL
 *
 * Context: see there.
 * Return: see there.
 */
bool sovia_lane_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm)
{
	struct sovia_lane *lane = vi->context;
	struct sk_buff_head acked;
	struct sovia_msg msg;
	u32 una, window;
	bool taken, up;
	int err;

	err = lane_parse(lane, skb, imm, &msg);
	if (err) {
		lane_bad_message(lane, imm, err);
		return false;
	}

	__skb_queue_head_init(&acked);
	spin_lock(&lane->lock);
	una = lane->credit.tx_una;
	window = lane->credit.window;
	up = lane->up;
	err = likely(up || !lane->dead) ? lane_account(lane, &msg) : -ENOTCONN;
	if (!err && unlikely(!up))
		err = lane_trial(lane, &msg);
	if (err) {
		spin_unlock(&lane->lock);
		return false;
	}
	lane_count_rx(lane, &msg);
	sovia_lane_reap(lane, &acked);
	/* Now, as what is sent below would acknowledge it, but not tell what we take. */
	if (unlikely(lane->credit.told != lane->credit.own_window))
		lane_acknowledge(lane);
	/* Not by @acked: SOVIA_POSTED_TAKEN messages are never on lane->unacked. */
	if (lane->credit.tx_una != una || lane->credit.window != window)
		sovia_lane_pump(lane);
	spin_unlock(&lane->lock);
	sovia_tx_free(&acked, true);

	taken = lane_dispatch(lane, skb, &msg);

	/* After dispatch, whose replies may have piggybacked the acknowledgment. */
	spin_lock(&lane->lock);
	lane_acknowledge(lane);
	spin_unlock(&lane->lock);
	return taken;
}

/**
 * sovia_lane_send_done() - struct sovia_vi_client::send_done
 * @vi: VI of a lane
 * @skb: the message
 * @done: see there
 *
 * Context: see there.
 */
void sovia_lane_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool done)
{
	struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
	struct sovia_lane *lane = vi->context;
	bool ready = false, fin = false;

	spin_lock(&lane->lock);
	sovia_hist_since(lane->snet, SOVIA_HIST_POST, SOVIA_TX_CB(skb)->posted);
	trace_sovia_send_done(lane, SOVIA_TX_CB(skb), done);
	if (conn) {
		conn->inflight--;
		/* The peer's acknowledgment may have preceded the send completion. */
		done |= sovia_before(SOVIA_TX_CB(skb)->seq, lane->credit.tx_una);
		fin = done && skb == conn->fin;
		if (fin)
			conn->fin = NULL;
		ready = conn->tx_wanted && skb_queue_len(&conn->txq) <= SOVIA_TXQ_MAX / 2;
		if (ready)
			conn->tx_wanted = false;
	}
	if (sovia_lane_has_work(lane))
		sovia_lane_pump(lane);
	spin_unlock(&lane->lock);
	/* @skb has a reference to the connection. */
	if (ready)
		sovia_lane_client->tx_ready(conn);
	if (fin)
		sovia_lane_client->delivered(conn);
}

/**
 * sovia_lane_rx_unposted() - struct sovia_vi_client::rx_unposted
 * @vi: VI of a lane
 * @delta: see there
 *
 * Context: see there.
 */
void sovia_lane_rx_unposted(struct sovia_vi *vi, int delta)
{
	struct sovia_lane *lane = vi->context;

	if (delta > 0)
		sovia_stat_inc(lane->snet, nomem);
	spin_lock_bh(&lane->lock);
	lane->credit.rx_unposted += delta;
	if (delta < 0)
		lane_acknowledge(lane);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_lane_rx_grown() - struct sovia_vi_client::rx_grown
 * @vi: VI of a lane
 * @depth: see there
 *
 * Context: see there.
 */
void sovia_lane_rx_grown(struct sovia_vi *vi, unsigned int depth)
{
	struct sovia_lane *lane = vi->context;
	u32 window = sovia_credit_of_receives(depth);

	spin_lock_bh(&lane->lock);
	if (lane->vi == vi && lane->up) {
		lane->growing = false;
		if (window > lane->credit.own_window) {
			sovia_credit_take(&lane->credit, window);
			/* The peer may take more by now, too. */
			sovia_lane_grow(lane, false);
			lane_acknowledge(lane);
			sovia_lane_pump(lane);
		}
	}
	spin_unlock_bh(&lane->lock);
}

/* Check that both ids of the hello are this link's. */
static int lane_check_ids(const struct sovia_lane *lane, const struct sovia_params *params)
{
	/* May be its own peer; needs no ids. */
	if (sovia_lane_is_local(lane))
		return 0;
	/* Only a request for a fresh link comes without our id. */
	if (params->peer_id ? params->peer_id != lane->id : lane->active || lane->open)
		return -EPROTO;
	return lane->peer_id && lane->peer_id != params->id ? -EPROTO : 0;
}

/* Agree on limits with the peer; those of an open lane must not change. */
static int lane_agree(struct sovia_lane *lane, const struct sovia_vi *vi,
		      const struct sovia_params *params)
{
	u32 payload = min(params->payload, lane->own_payload);

	if (lane->open && payload != lane->payload)
		return -EPROTO;
	sovia_credit_grant(&lane->credit, params->window);
	if (!lane->open)
		lane->payload = payload;
	/* Another device than before may take fewer pieces: sovia_msg_repack(). */
	WRITE_ONCE(lane->max_frags, min_t(int, vi->max_frags, MAX_SKB_FRAGS));
	WRITE_ONCE(lane->copybreak, max_t(u32, vi->copybreak, SOVIA_COPYBREAK));
	lane->compact = vi->imm;
	return 0;
}

/**
 * sovia_lane_rewind() - queue retransmissions from the peer's rx_next
 * @lane: has a new VI, with nothing posted yet
 * @rx_next: number of the message that the peer expects
 * @arrived: list to add messages to that it has, for sovia_lane_arrived()
 *
 * A message stays on lane->unacked until the peer acknowledges it.  The hello of a new VI tells
 * which message the peer expects; the missing ones move to the front of lane->rtx_queue, in order,
 * and so keep their numbers.
 *
 * Context: lane lock held.
 * Return: 0, or -EPROTO if @rx_next is out of range.
 */
int sovia_lane_rewind(struct sovia_lane *lane, u32 rx_next, struct sk_buff_head *arrived)
{
	struct sk_buff *skb;
	int err;

	lockdep_assert_held(&lane->lock);
	err = sovia_credit_rewind(&lane->credit, rx_next);
	if (err)
		return err;
	sovia_lane_reap(lane, arrived);
	sovia_stat_add(lane->snet, tx_again, skb_queue_len(&lane->unacked));
	lane->count.retransmits += skb_queue_len(&lane->unacked);
	while ((skb = __skb_dequeue_tail(&lane->unacked))) {
		struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;

		trace_sovia_retransmit(lane, SOVIA_TX_CB(skb), true);
		/* What it asked for is over. */
		if (SOVIA_TX_CB(skb)->type == SOVIA_PARK)
			SOVIA_TX_CB(skb)->type = SOVIA_PROBE;
		/* The header is rebuilt, or omitted. */
		if (skb_headroom(skb) < sizeof(struct sovia_hdr))
			__skb_pull(skb, sizeof(struct sovia_hdr));
		if (conn)
			conn->inflight++;
		__skb_queue_head(&lane->rtx_queue, skb);
	}
	return 0;
}

/**
 * sovia_lane_arrived() - complete and free messages that the peer has received
 * @lane: the lane they were posted to
 * @arrived: the messages
 *
 * Their connections were not notified: the completions were lost with the VI.
 *
 * Context: process; no lane lock.
 */
void sovia_lane_arrived(struct sovia_lane *lane, struct sk_buff_head *arrived)
{
	struct sk_buff *skb;

	skb_queue_walk(arrived, skb) {
		struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
		bool fin;

		if (!conn)
			continue;
		spin_lock_bh(&lane->lock);
		fin = conn->fin == skb;
		if (fin)
			conn->fin = NULL;
		spin_unlock_bh(&lane->lock);
		if (fin)
			sovia_lane_client->delivered(conn);
	}
	sovia_tx_free(arrived, true);
}

static int lane_greeted(struct sovia_lane *lane, const struct sovia_vi *vi,
			const struct sovia_params *params, struct sk_buff_head *arrived)
{
	int err = lane_check_ids(lane, params);

	if (!err)
		err = lane_agree(lane, vi, params);
	if (!err)
		err = sovia_lane_rewind(lane, params->rx_next, arrived);
	return err;
}

/**
 * sovia_lane_parse_hello() - read the peer's hello
 * @lane: the lane
 * @hello: the hello
 * @len: its length
 * @params: filled in
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
int sovia_lane_parse_hello(const struct sovia_lane *lane, const struct sovia_hello *hello,
			   unsigned int len, struct sovia_params *params)
{
	int err = sovia_hello_parse(hello, len, params);

	return err ?: params->lane == lane->pair->lane ? 0 : -EPROTO;
}

/**
 * sovia_lane_established() - the VI is up
 * @lane: the lane
 * @vi: the VI
 * @params: of the peer's hello
 * @err: 0, or why the hello cannot be taken, a negative errno
 *
 * Context: process or softirq; no lane lock.
 */
void sovia_lane_established(struct sovia_lane *lane, struct sovia_vi *vi,
			    const struct sovia_params *params, int err)
{
	struct sk_buff_head arrived;

	__skb_queue_head_init(&arrived);
	spin_lock_bh(&lane->lock);
	/* Being destroyed. */
	if (lane->dead)
		goto unlock;
	lane->vi = vi;
	if (!err)
		err = lane_greeted(lane, vi, params, &arrived);
	if (err) {
		sovia_stat_inc(lane->snet, bad_hello);
		lane_violation(lane, "bad hello", err);
	} else {
		lane->peer_id = params->id;
		if (lane->trial) {
			lane->ops->event(lane, SOVIA_LANE_TRIED);
			lane->tried = lane->active && sovia_lane_try(lane, true);
		} else {
			lane_open(lane);
		}
	}
unlock:
	spin_unlock_bh(&lane->lock);
	sovia_lane_arrived(lane, &arrived);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/lane_rewind_test.c"
#include "test/lane_rx_test.c"
#endif

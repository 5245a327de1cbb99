// SPDX-License-Identifier: GPL-2.0-only
/* Connections on a lane: what the socket layer calls to send. */
#include "conn.h"
#include "lane.h"
#include "lane_tx.h"

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
 * sovia_conn_flight_max() - upper bound of payload in flight
 * @conn: attached to a link that has been up
 *
 * Context: any.
 * Return: bytes.
 */
int sovia_conn_flight_max(const struct sovia_conn *conn)
{
	const struct sovia_lane *lane = conn_lane(conn);

	return READ_ONCE(lane->credit.window) * READ_ONCE(lane->payload);
}

/* May another stream message be queued? */
static bool conn_has_room(const struct sovia_conn *conn, bool small)
{
	return skb_queue_len(&conn->txq) < SOVIA_TXQ_MAX &&
	       !(small && atomic_read(&conn->inflight));
}

/* Drop a message for a lane that is down; its bytes count as not acknowledged. */
static void conn_drop(struct sovia_conn *conn, struct sk_buff *skb)
{
	struct sk_buff_head list;

	SOVIA_TX_CB(skb)->conn = conn;
	__skb_queue_head_init(&list);
	__skb_queue_tail(&list, skb);
	sovia_tx_free(&list, false);
}

/**
 * sovia_conn_send() - queue a stream message, DATA or FIN, if there is room
 * @conn: established connection
 * @skb: the payload, with its struct sovia_tx_cb filled except for conn and seq, and
 *	charged to the socket; owned by the lane if there was room
 * @small: the message should wait to be combined with others
 *
 * A small message waits while others of its connection are in flight: combining
 * (SOVIA 4.2) clocked by completions instead of a timer.  If there is no room, the
 * client's tx_ready upcall comes when there may be.
 *
 * Context: socket lock held.
 * Return: true if there was room.
 */
bool sovia_conn_send(struct sovia_conn *conn, struct sk_buff *skb, bool small)
{
	struct sovia_lane *lane = conn_lane(conn);
	bool room, over;

	spin_lock_bh(&lane->lock);
	over = !lane->open;
	room = over || conn_has_room(conn, small);
	/* Never without anything in flight, as no completion would wake the sender. */
	conn->tx_wanted = !room;
	if (room && !over) {
		SOVIA_TX_CB(skb)->conn = conn;
		__skb_queue_tail(&conn->txq, skb);
		if (sovia_tx_is_fin(skb))
			conn->fin = skb;
		atomic_inc(&conn->inflight);
		if (list_empty(&conn->ready_node))
			list_add_tail(&conn->ready_node, &lane->ready);
		sovia_lane_pump(lane);
	}
	spin_unlock_bh(&lane->lock);
	/* The client's down upcall follows. */
	if (unlikely(over))
		conn_drop(conn, skb);
	return room;
}

static void conn_queue_control(struct sovia_conn *conn, struct sovia_lane *lane, u8 type)
{
	lockdep_assert_held(&lane->lock);
	if (type == SOVIA_RESET && (conn->ctl & SOVIA_CTL(SOVIA_CONN))) {
		/*
		 * CONN was not sent: RESET could only hit an earlier connection
		 * on the same ports.
		 */
		sovia_conn_drop_control(lane, conn);
		return;
	}
	if (!conn->ctl) {
		sock_hold(conn->sk);
		list_add_tail(&conn->ctl_node, &lane->ctl);
		lane->ctl_count++;
	}
	/* A peer that waits for ACCEPT ignores RESET: send both. */
	if (type == SOVIA_RESET)
		conn->ctl &= SOVIA_CTL(SOVIA_ACCEPT);
	conn->ctl |= SOVIA_CTL(type);
	sovia_lane_pump(lane);
}

/**
 * sovia_conn_control() - queue a control message
 * @conn: connection on a link
 * @type: SOVIA_CONN, _ACCEPT, _WAKEUP or _RESET.  RESET replaces what is
 *	pending except ACCEPT; it cancels a pending CONN and is not sent then.
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
	if (lane->open) {
		if (type == SOVIA_RESET)
			conn->code = code;
		conn_queue_control(conn, lane, type);
	}
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_conn_urgent() - queue an URGENT message
 * @conn: established connection
 * @pos: stream offset of the urgent byte, which has not been queued yet
 *
 * Context: socket lock held.
 */
void sovia_conn_urgent(struct sovia_conn *conn, u32 pos)
{
	struct sovia_lane *lane = conn_lane(conn);

	spin_lock_bh(&lane->lock);
	if (lane->open) {
		conn->urgent = pos;
		conn_queue_control(conn, lane, SOVIA_URGENT);
	}
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_conn_purge() - drop the stream messages that were not sent
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
	conn->fin = NULL;
	list_del_init(&conn->ready_node);
	spin_unlock_bh(&lane->lock);
	sovia_tx_free(&list, false);
}

/**
 * sovia_conn_leave() - the socket is about to use another link
 * @conn: ended; RESET, and ACCEPT before it, may still be pending
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_conn_leave(struct sovia_conn *conn)
{
	struct sovia_lane *lane;
	unsigned long ctl;

	if (!conn->key.link)
		return;
	sovia_conn_purge(conn);
	lane = conn_lane(conn);
	spin_lock_bh(&lane->lock);
	ctl = conn->ctl;
	sovia_conn_drop_control(lane, conn);
	conn->tx_wanted = false;
	spin_unlock_bh(&lane->lock);
	if (ctl & SOVIA_CTL(SOVIA_ACCEPT))
		sovia_lane_reply(lane, SOVIA_ACCEPT, conn->key.lport, conn->key.rport,
				 conn->ref, 0);
	if (ctl & SOVIA_CTL(SOVIA_RESET))
		sovia_lane_reply(lane, SOVIA_RESET, conn->key.lport, conn->key.rport, 0,
				 conn->code);
}

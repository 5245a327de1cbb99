// SPDX-License-Identifier: GPL-2.0-only
/* Connections on a lane: what the socket layer calls to send. */
#include <linux/slab.h>
#include "conn.h"
#include "core/objcount.h"
#include "direct.h"
#include "lane.h"
#include "lane_tx.h"

static struct kmem_cache *conn_cache;

/**
 * sovia_conn_init() - create the cache of connections
 *
 * Context: module init.
 * Return: 0 or -ENOMEM.
 */
int __init sovia_conn_init(void)
{
	conn_cache = KMEM_CACHE(sovia_conn, SLAB_ACCOUNT);
	return conn_cache ? 0 : -ENOMEM;
}

/**
 * sovia_conn_exit() - destroy the cache of connections
 *
 * Context: module exit; all connections have been freed, grace period included.
 */
void sovia_conn_exit(void)
{
	kmem_cache_destroy(conn_cache);
}

/**
 * sovia_conn_create() - create a connection
 * @lane: its lane; on success the caller's reference to the link goes to the connection
 * @sk: its socket
 * @lport: own port, host order
 * @rport: the peer's port, host order
 * @tenant: number of its tenant
 * @gfp: allocation flags
 *
 * Context: any that @gfp allows.
 * Return: the connection with a reference for the socket, in no table, or NULL.
 */
struct sovia_conn *sovia_conn_create(struct sovia_lane *lane, struct sock *sk, u16 lport,
				     u16 rport, u16 tenant, gfp_t gfp)
{
	struct sovia_conn *conn = kmem_cache_zalloc(conn_cache, gfp);

	if (!conn)
		return NULL;
	sovia_object_inc(connections);
	refcount_set(&conn->refs, 1);
	spin_lock_init(&conn->lock);
	conn->sk = sk;
	conn->lane = lane;
	conn->lport = lport;
	conn->rport = rport;
	conn->tenant = tenant;
	INIT_LIST_HEAD(&conn->link_node);
	INIT_LIST_HEAD(&conn->ready_node);
	INIT_LIST_HEAD(&conn->ctl_node);
	__skb_queue_head_init(&conn->txq);
	return conn;
}

static void conn_free(struct sovia_conn *conn)
{
	conn->lane->ops->put(conn->lane);
	kmem_cache_free(conn_cache, conn);
	sovia_object_dec(connections);
}

static void conn_free_rcu(struct rcu_head *rcu)
{
	conn_free(container_of(rcu, struct sovia_conn, rcu));
}

/**
 * sovia_conn_free() - the last reference is gone: use sovia_conn_put()
 * @conn: the connection
 *
 * Context: any; a lane lock may be held.
 */
void sovia_conn_free(struct sovia_conn *conn)
{
	call_rcu(&conn->rcu, conn_free_rcu);
}

/**
 * sovia_conn_put_later() - put the reference of a socket that is freed
 * @conn: the connection; no reader finds it since before the grace period that just ended
 *
 * Most connections end here: no grace period of their own.  But a direct one may just have been
 * found by its other end.
 *
 * Context: the callback of that grace period.
 */
void sovia_conn_put_later(struct sovia_conn *conn)
{
	if (!refcount_dec_and_test(&conn->refs))
		return;
	if (conn->direct)
		sovia_conn_free(conn);
	else
		conn_free(conn);
}

/*
 * Does the connection's next message go to the other end itself?  Between namespaces, as long as
 * the link is UP: what cuts it off, such as an address that has been removed, holds for
 * connections, too.  They go on by the lane then, which may recover, and stay there, so that
 * nothing overtakes.
 */
static bool goes_direct(struct sovia_conn *conn)
{
	const struct sovia_lane *lane = conn->lane;

	if (!READ_ONCE(conn->direct))
		return false;
	if (likely(lane->prov->local))
		return true;
	if (!lane->ops->is_up(lane))
		WRITE_ONCE(conn->detour, true);
	return !READ_ONCE(conn->detour);
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
	return READ_ONCE(conn->lane->payload);
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
	return READ_ONCE(conn->lane->max_frags);
}

/**
 * sovia_conn_copybreak() - largest payload that is copied when it arrives
 * @conn: attached to a link that has been up
 *
 * Context: any.
 * Return: bytes, at least SOVIA_COPYBREAK.
 */
u32 sovia_conn_copybreak(const struct sovia_conn *conn)
{
	return READ_ONCE(conn->lane->copybreak);
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
	const struct sovia_lane *lane = conn->lane;

	return (lane->grows ? lane->credit.limit : READ_ONCE(lane->credit.window)) *
	       READ_ONCE(lane->payload);
}

/* May another stream message be queued? */
static bool conn_has_room(const struct sovia_conn *conn, bool small)
{
	return skb_queue_len(&conn->txq) < SOVIA_TXQ_MAX &&
	       !(small && conn->inflight);
}

/* The message's destructor puts this reference. */
static void conn_own(struct sovia_conn *conn, struct sk_buff *skb)
{
	sovia_conn_get(conn);
	SOVIA_TX_CB(skb)->conn = conn;
}

/* Drop a message for a lane that is down; its bytes count as not acknowledged. */
static void conn_drop(struct sovia_conn *conn, struct sk_buff *skb)
{
	struct sk_buff_head list;

	conn_own(conn, skb);
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
	struct sovia_lane *lane = conn->lane;
	bool room, over;

	if (goes_direct(conn)) {
		sovia_direct_send(conn, skb);
		return true;
	}
	spin_lock_bh(&lane->lock);
	over = !lane->open;
	room = over || conn_has_room(conn, small);
	/* Never without anything in flight, as no completion would wake the sender. */
	conn->tx_wanted = !room;
	if (room && !over) {
		conn_own(conn, skb);
		__skb_queue_tail(&conn->txq, skb);
		if (sovia_tx_is_fin(skb))
			conn->fin = skb;
		conn->inflight++;
		if (list_empty(&conn->ready_node))
			sovia_turn_add(&lane->turns, conn);
		sovia_lane_pump(lane);
	}
	spin_unlock_bh(&lane->lock);
	/* The client's down upcall follows. */
	if (unlikely(over))
		conn_drop(conn, skb);
	return room;
}

/**
 * sovia_conn_copy() - copy a few bytes of the stream to the other end, if that is here
 * @conn: established connection; no stream message waits
 * @from: the bytes
 * @len: how many
 *
 * Context: process, socket lock held.
 * Return: false if they have to go as a message; nothing has been taken of @from then.
 */
bool sovia_conn_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len)
{
	return goes_direct(conn) && sovia_direct_copy(conn, from, len);
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
	/* The peer has no connection then. */
	if (type == SOVIA_RESET && (conn->ctl & SOVIA_CTL(SOVIA_REFUSE)))
		return;
	conn->reset |= type == SOVIA_RESET;
	if (!conn->ctl) {
		sovia_conn_get(conn);
		sovia_turn_add_ctl(&lane->turns, conn);
		lane->ctl_count++;
	}
	/* A peer that waits for ACCEPT ignores RESET: send both. */
	if (type == SOVIA_RESET)
		conn->ctl &= SOVIA_CTL(SOVIA_ACCEPT);
	conn->ctl |= SOVIA_CTL(type);
	sovia_lane_pump(lane);
}

/* What a pending control message will say. */
static void conn_keep_arg(struct sovia_conn *conn, u8 type, u32 arg)
{
	switch (type) {
	case SOVIA_REFUSE:
	case SOVIA_RESET:
		conn->code = arg;
		break;
	case SOVIA_URGENT:
		conn->urgent = arg;
		break;
	case SOVIA_RETURN:
		conn->returned = arg;
		break;
	}
}

/**
 * sovia_conn_control() - queue a control message
 * @conn: connection on a link
 * @type: SOVIA_CONN, _ACCEPT, _REFUSE, _WAKEUP, _PRESSURE, _RETURN, _URGENT or _RESET.  RESET
 *	replaces what is pending except ACCEPT; it cancels a pending CONN and is not sent then,
 *	nor after REFUSE.  Nothing is sent after it.
 * @arg: code of REFUSE and RESET; stream offset of the urgent byte, which has not been
 *	queued yet, and of the end of the window that RETURN leaves
 *
 * Needs no memory now, so it cannot fail.
 *
 * Context: any with a reference; no link or lane lock.
 */
void sovia_conn_control(struct sovia_conn *conn, u8 type, u32 arg)
{
	struct sovia_lane *lane = conn->lane;

	if (goes_direct(conn) && type != SOVIA_CONN) {
		sovia_direct_control(conn, type, arg);
		return;
	}
	spin_lock_bh(&lane->lock);
	/*
	 * PRESSURE of a socket that has left, or whose ports may have been taken again, and what
	 * follows RESET, could only hit a later connection on its ports.
	 */
	if (lane->open && !conn->reset &&
	    (type != SOVIA_PRESSURE || (READ_ONCE(conn->sk) && READ_ONCE(conn->hashed)))) {
		conn_keep_arg(conn, type, arg);
		conn_queue_control(conn, lane, type);
	}
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_conn_is_heard() - has the peer got our CONN
 * @conn: of a socket in SYN_SENT, which has asked for CONN to be sent
 *
 * Context: any; no link or lane lock.
 * Return: true if the lane has an acknowledgment of it.
 */
bool sovia_conn_is_heard(const struct sovia_conn *conn)
{
	struct sovia_lane *lane = conn->lane;
	bool heard;

	spin_lock_bh(&lane->lock);
	heard = !(conn->ctl & SOVIA_CTL(SOVIA_CONN)) &&
		sovia_before(conn->conn_seq, lane->credit.tx_una);
	spin_unlock_bh(&lane->lock);
	return heard;
}

/* Takes the stream messages that were not sent. */
static void conn_strip(struct sovia_lane *lane, struct sovia_conn *conn,
		       struct sk_buff_head *msgs)
{
	conn->inflight -= skb_queue_len(&conn->txq);
	skb_queue_splice_init(&conn->txq, msgs);
	conn->fin = NULL;
	sovia_turn_del(&lane->turns, conn, &conn->ready_node);
}

/**
 * sovia_conn_purge() - drop the stream messages that were not sent
 * @conn: connection that ends
 *
 * Context: socket lock held.
 */
void sovia_conn_purge(struct sovia_conn *conn)
{
	struct sovia_lane *lane = conn->lane;
	struct sk_buff_head msgs;

	__skb_queue_head_init(&msgs);
	spin_lock_bh(&lane->lock);
	conn_strip(lane, conn, &msgs);
	spin_unlock_bh(&lane->lock);
	sovia_tx_free(&msgs, false);
}

/* Only answers and RESET are sent for a socket that has left. */
static void conn_drop_idle_control(struct sovia_conn *conn, struct sovia_lane *lane)
{
	const unsigned long owed = SOVIA_CTL(SOVIA_ACCEPT) | SOVIA_CTL(SOVIA_REFUSE) |
				   SOVIA_CTL(SOVIA_RESET);

	if (conn->ctl & owed)
		conn->ctl &= owed;
	else
		sovia_conn_drop_control(lane, conn);
	conn->tx_wanted = false;
}

/**
 * sovia_conn_leave() - the socket leaves its connection
 * @conn: ended, in no table
 *
 * No upcall for the socket runs any more when this returns.  What is owed to the peer
 * is still sent.
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_conn_leave(struct sovia_conn *conn)
{
	struct sovia_lane *lane = conn->lane;
	struct sk_buff_head msgs;

	__skb_queue_head_init(&msgs);
	local_bh_disable();
	spin_lock(&conn->lock);
	WRITE_ONCE(conn->sk, NULL);
	spin_unlock(&conn->lock);
	spin_lock(&lane->lock);
	conn_strip(lane, conn, &msgs);
	conn_drop_idle_control(conn, lane);
	spin_unlock(&lane->lock);
	local_bh_enable();
	sovia_tx_free(&msgs, false);
	sovia_direct_part(conn);
}

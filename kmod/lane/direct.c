// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections within a namespace, and between two of this kernel (near.c), from socket to socket.
 *
 * CONN goes by the lane of the link, as with any provider.  The child that answers is paired with
 * the client's connection, and whatever either end sends from then on is given to the other one at
 * once, in the sender's context: no credit, no acknowledgment, no second queue.  A small write does
 * not even become a message: its bytes are copied to those that the other end has not read yet.
 *
 * Locks: the sender's socket lock, then the receiver's connection and receive queue, but never two
 * socket locks.  What has to be done under the receiver's is done later (sock/later.c).
 *
 * References: each end has one to the other until a socket leaves: a namespace that ends is not
 * kept by another one's.  What is sent to an end that has left is answered as by a lane.  Both have
 * a link, which tells them when the way between them is no more.
 */
#include "conn_table.h"
#include "direct.h"
#include "lane.h"

static bool may_pair(const struct sovia_lane *lane)
{
	const bool *by_lane = lane->prov->by_lane;

	return by_lane && !READ_ONCE(*by_lane);
}

/* The other end, also in another namespace. */
static struct sovia_conn *direct_find_mate(const struct sovia_conn *conn)
{
	return conn->lane->prov->local ? sovia_conn_mirror(conn) :
					  conn->lane->ops->find_twin(conn);
}

/* Give the client's end its other one, unless its CONN has been forgotten. */
static bool direct_join(struct sovia_conn *client, struct sovia_conn *child, u32 seq)
{
	struct sovia_conn *old = NULL;
	bool ours;

	spin_lock_bh(&client->lock);
	ours = client->sk && READ_ONCE(client->sk->sk_state) == TCP_SYN_SENT &&
	       READ_ONCE(client->conn_seq) == seq;
	if (ours) {
		/* Of a child that was refused. */
		old = rcu_dereference_protected(client->mate, lockdep_is_held(&client->lock));
		sovia_conn_get(child);
		rcu_assign_pointer(client->mate, child);
		WRITE_ONCE(client->direct, true);
	}
	spin_unlock_bh(&client->lock);
	if (old)
		sovia_conn_put(old);
	return ours;
}

/**
 * sovia_direct_pair() - pair a child with the connection that asked for it
 * @child: in the table; nothing has been sent on it
 * @seq: sequence number of the CONN
 *
 * Where that is not possible the lane carries the connection.
 *
 * Context: softirq; the child's socket lock held.
 */
void sovia_direct_pair(struct sovia_conn *child, u32 seq)
{
	struct sovia_conn *client;

	if (!may_pair(child->lane))
		return;
	rcu_read_lock();
	client = direct_find_mate(child);
	if (client && client != child && refcount_inc_not_zero(&client->refs)) {
		if (direct_join(client, child, seq)) {
			rcu_assign_pointer(child->mate, client);
			WRITE_ONCE(child->direct, true);
		} else {
			sovia_conn_put(client);
		}
	}
	rcu_read_unlock();
}

/* Take the pointer to the other end, if it is @other, or any if that is NULL. */
static struct sovia_conn *take_mate(struct sovia_conn *conn, const struct sovia_conn *other)
{
	struct sovia_conn *mate;

	spin_lock_bh(&conn->lock);
	mate = rcu_dereference_protected(conn->mate, lockdep_is_held(&conn->lock));
	if (other && mate != other)
		mate = NULL;
	if (mate)
		RCU_INIT_POINTER(conn->mate, NULL);
	spin_unlock_bh(&conn->lock);
	return mate;
}

/* A client whose child was refused asks again: the next one may be one that the lane carries. */
static void leave_to_lane(struct sovia_conn *client)
{
	spin_lock_bh(&client->lock);
	if (client->sk && READ_ONCE(client->sk->sk_state) == TCP_SYN_SENT &&
	    !rcu_access_pointer(client->mate))
		WRITE_ONCE(client->direct, false);
	spin_unlock_bh(&client->lock);
}

/**
 * sovia_direct_part() - the two ends forget each other
 * @conn: its socket has left
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_direct_part(struct sovia_conn *conn)
{
	struct sovia_conn *mate = take_mate(conn, NULL);

	if (!mate)
		return;
	if (take_mate(mate, conn)) {
		leave_to_lane(mate);
		sovia_conn_put(conn);
	}
	sovia_conn_put(mate);
}

/* The other end, if it still receives.  Under RCU. */
static struct sovia_conn *direct_receiver(const struct sovia_conn *conn)
{
	struct sovia_conn *mate = rcu_dereference_bh(conn->mate);

	return mate && READ_ONCE(mate->hashed) ? mate : NULL;
}

static void direct_count(const struct sovia_conn *conn, const struct sovia_conn *mate, u32 len)
{
	enum sovia_stat stats = conn->lane->prov->stats;

	sovia_stat_add_at(conn->lane->snet, stats + SOVIA_STATS_TX_MSGS, 1);
	sovia_stat_add_at(conn->lane->snet, stats + SOVIA_STATS_TX_BYTES, len);
	if (!mate)
		return;
	sovia_stat_add_at(mate->lane->snet, stats + SOVIA_STATS_RX_MSGS, 1);
	sovia_stat_add_at(mate->lane->snet, stats + SOVIA_STATS_RX_BYTES, len);
}

static struct sovia_msg make_msg(struct sovia_conn *conn, u8 type)
{
	struct sovia_msg msg = {
		.type = type, .sport = conn->lport, .dport = conn->rport,
		.window = READ_ONCE(conn->rcv_wnd_end),
	};

	WRITE_ONCE(conn->rcv_wnd_sent, msg.window);
	return msg;
}

/**
 * sovia_direct_window() - the window that the other end has, if it is here
 * @conn: of a socket
 * @window: that a message of its tells
 *
 * Context: any; the receive queue's lock of the socket held, under which it gives back a window.
 * Return: stream offset up to which the socket may send.
 */
u32 sovia_direct_window(const struct sovia_conn *conn, u32 window)
{
	const struct sovia_conn *mate;

	if (!READ_ONCE(conn->direct))
		return window;
	rcu_read_lock();
	mate = rcu_dereference(conn->mate);
	if (mate)
		window = READ_ONCE(mate->rcv_wnd_end);
	rcu_read_unlock();
	return window;
}

/* As a lane answers a message for a socket that does not exist. */
static void no_socket(struct sovia_conn *conn, u8 type)
{
	const struct sovia_msg reset = { .type = SOVIA_RESET, .code = SOVIA_CODE_NO_SOCKET };

	sovia_stat_inc(conn->lane->snet, no_socket);
	if (type != SOVIA_DATA && type != SOVIA_ACCEPT)
		return;
	sovia_stat_inc(conn->lane->snet, reset_tx);
	sovia_lane_client->control(conn, &reset);
}

/**
 * sovia_direct_send() - give a stream message to the other end
 * @conn: paired
 * @skb: as for sovia_conn_send(); consumed
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_direct_send(struct sovia_conn *conn, struct sk_buff *skb)
{
	const struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);
	struct sovia_msg msg = make_msg(conn, cb->type);
	bool fin = sovia_tx_is_fin(skb);
	struct sovia_conn *mate;

	msg.flags = cb->flags;
	msg.ref = cb->ref;
	msg.len = skb->len;
	rcu_read_lock_bh();
	sovia_conn_account(conn, msg.len, true);
	mate = direct_receiver(conn);
	direct_count(conn, mate, msg.len);
	if (!mate) {
		kfree_skb(skb);
		no_socket(conn, msg.type);
	} else if (msg.type == SOVIA_DATA) {
		/* This may wake the sender, or call back a kernel user: not under any lock. */
		skb_orphan(skb);
		if (!sovia_lane_client->data(mate, skb, &msg))
			kfree_skb(skb);
	} else {
		kfree_skb(skb);
		sovia_lane_client->control(mate, &msg);
	}
	if (fin)
		sovia_lane_client->delivered(conn);
	rcu_read_unlock_bh();
}

/**
 * sovia_direct_copy() - copy a few bytes of the stream to the other end
 * @conn: paired; all that was sent before has been given to the other end
 * @from: the bytes
 * @len: how many
 *
 * Like a compact message, it does not tell of our window.
 *
 * Context: process, socket lock held.
 * Return: false if they have to go as a message; nothing has been taken of @from then.
 */
bool sovia_direct_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len)
{
	struct sovia_conn *mate;
	bool done;

	if (sovia_conn_wnd_due(conn, READ_ONCE(conn->rcv_wnd_end)))
		return false;
	rcu_read_lock_bh();
	mate = direct_receiver(conn);
	done = mate && sovia_lane_client->copy(mate, from, len);
	if (done) {
		atomic64_add(len, &conn->acked);
		direct_count(conn, mate, len);
	}
	rcu_read_unlock_bh();
	return done;
}

/**
 * sovia_direct_control() - give a control message to the other end
 * @conn: paired
 * @type: enum sovia_type, not CONN
 * @arg: as for sovia_conn_control()
 *
 * Context: any with a reference; no connection lock.
 */
void sovia_direct_control(struct sovia_conn *conn, u8 type, u32 arg)
{
	struct sovia_msg msg = make_msg(conn, type);
	struct sovia_conn *mate;

	switch (type) {
	case SOVIA_URGENT:
		msg.ref = arg;
		break;
	case SOVIA_PRESSURE:
		sovia_stat_inc(conn->lane->snet, pressure_tx);
		break;
	case SOVIA_RETURN:
		msg.ref = arg;
		sovia_stat_inc(conn->lane->snet, return_tx);
		break;
	case SOVIA_REFUSE:
		msg.code = arg;
		sovia_stat_inc(conn->lane->snet, conn_refused);
		fallthrough;
	case SOVIA_ACCEPT:
		msg.ref = conn->ref;
		break;
	case SOVIA_WAKEUP:
		sovia_stat_inc(conn->lane->snet, wakeup_tx);
		break;
	case SOVIA_RESET:
		msg.code = arg;
		msg.flags |= sovia_conn_tell_taken(conn, &msg.ref);
		sovia_stat_inc(conn->lane->snet, reset_tx);
		break;
	}
	rcu_read_lock_bh();
	mate = direct_receiver(conn);
	direct_count(conn, mate, 0);
	if (mate)
		sovia_lane_client->control(mate, &msg);
	else
		no_socket(conn, type);
	rcu_read_unlock_bh();
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/direct_test.c"
#endif

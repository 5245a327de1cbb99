// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the lane to the receive queue (KSOVIA 3.1): the window, and data in the bottom half.
 *
 * The bottom half appends to sk_receive_queue under the queue's own lock, whether
 * or not a process owns the socket; recv.c reads from it.  A large
 * payload stays in the buffer it arrived in.  A small one is copied, into the
 * free end of the last buffer if there is one: a thousand 1-byte messages do
 * not pin a thousand buffers.  What a sender here writes in small pieces is copied there from its
 * memory, without a message (sovia_sock_rx_copy()), and the buffer is used again once it was read.
 *
 * The window is half of the receive buffer in payload bytes.  Buffers at least
 * half full (see SOVIA_COPYBREAK) keep the memory below the other half.
 *
 * A window is a promise: it is in the ledger (mem.c) before the peer learns of it.  When memory is
 * short, the peer is asked to give back what it has not used (sovia_rx_lower()).  Its answer, in
 * order with its data, says how far it has got; until then the old window holds and no message
 * tells of another one (Documentation/models/promise.pml).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <net/busy_poll.h>
#include "busy_poll.h"
#include "charge.h"
#include "defer.h"
#include "hist.h"
#include "later.h"
#include "link/link_conns.h"
#include "mem.h"
#include "program.h"
#include "recv.h"
#include "rx.h"
#include "send.h"
#include "urgent.h"

/* Small payloads are gathered in buffers of this truesize. */
#define SOVIA_GATHER		SKB_WITH_OVERHEAD(4096)
/* The first of them, which may stay alone, gets one of this size. */
#define SOVIA_GATHER_FIRST	SKB_WITH_OVERHEAD(512)
/* Those up to this truesize are used again: the first ones, however the kernel rounds. */
#define SOVIA_KEEP		1024

static u32 window_size(const struct sock *sk)
{
	u32 clamp = READ_ONCE(sovia_sk(sk)->opt.window_clamp);
	int buf = READ_ONCE(sk->sk_rcvbuf);
	u32 size = max(buf / 2, 1);

	if (sovia_mem_short(sk) || sovia_charge_short(sk))
		size = min(size, sovia_mem_floor(sk));
	return clamp ? min(size, clamp) : size;
}

/* The peer may send up to @end. */
static void set_window(struct sovia_rx *rx, struct sovia_conn *conn, u32 end)
{
	rx->most = end;
	WRITE_ONCE(conn->rcv_wnd_end, end);
}

/**
 * sovia_rx_advance() - open the window as far as the buffer and the ledger have room
 * @sk: the socket
 *
 * It never shrinks.
 *
 * Context: any but hard interrupts, the receive queue's lock held.
 */
void sovia_rx_advance(struct sock *sk)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	struct sovia_conn *conn = sovia_conn_of(sk);
	u32 size, adv;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (likely(!rx->lowering && !rx->over)) {
		size = sovia_mem_window(sk, window_size(sk));
		adv = rx->copied + size;
		WRITE_ONCE(conn->wnd_update_min, size / 4);
		if (sovia_before(rx->most, adv))
			set_window(rx, conn, adv);
	}
	sovia_mem_promise(sk, rx->most - rx->copied);
}

/* Nothing more is expected from the peer: promise no more than what has come. */
static void rx_settle(struct sock *sk)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;

	rx->over = true;
	rx->most = rx->nxt;
	sovia_mem_promise(sk, rx->most - rx->copied);
}

/**
 * sovia_rx_over() - nothing more is expected from the peer
 * @sk: its connection has ended
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_rx_over(struct sock *sk)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	rx_settle(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/**
 * sovia_rx_purge() - discard what the program has not read
 * @sk: no data is taken any more
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_rx_purge(struct sock *sk)
{
	struct sk_buff_head unread;
	struct sk_buff *skb;

	__skb_queue_head_init(&unread);
	spin_lock_bh(&sk->sk_receive_queue.lock);
	skb_queue_walk(&sk->sk_receive_queue, skb)
		sovia_uncharge(sk, skb);
	skb_queue_splice_init(&sk->sk_receive_queue, &unread);
	sovia_sk(sk)->rx.copied = sovia_sk(sk)->rx.nxt;
	rx_settle(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	__skb_queue_purge(&unread);
}

/**
 * sovia_rx_may_ask() - the peer gets ACCEPT before any other message
 * @sk: a child, which is about to send it
 *
 * Context: its listener's socket lock held.
 */
void sovia_rx_may_ask(struct sock *sk)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	sovia_sk(sk)->rx.asks = true;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/* May the peer be asked to give back a part of its window, down to @end? */
static bool may_lower(const struct sock *sk, u32 *end)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;
	u32 floor = rx->copied + sovia_mem_floor(sk);

	*end = sovia_before(floor, rx->nxt) ? rx->nxt : floor;
	return rx->asks && !rx->lowering && !rx->over &&
	       sovia_before(*end, rx->most) && sovia_link_has_return(sovia_conn_of(sk)->link);
}

/**
 * sovia_rx_lower() - ask the peer to give back what it does not need of its window
 * @sk: a socket in any state; the caller has a reference
 *
 * Context: process or softirq; no locks.
 * Return: bytes of memory that may come back.
 */
s64 sovia_rx_lower(struct sock *sk)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	struct sovia_conn *conn;
	s64 asked = 0;
	u32 end;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	conn = sovia_conn_of(sk);
	if (conn && may_lower(sk, &end)) {
		sovia_conn_get(conn);
		rx->lowering = true;
		WRITE_ONCE(conn->rcv_wnd_end, end);
		asked = sovia_mem_cost(rx->most - end);
	}
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	if (asked) {
		sovia_conn_control(conn, SOVIA_PRESSURE, 0);
		sovia_conn_put(conn);
	}
	return asked;
}

/**
 * sovia_rx_returned() - RETURN arrived: the peer gives back its window beyond an offset
 * @sk: the socket
 * @end: that offset
 *
 * Context: the lane's bottom half, the connection's lock held.
 * Return: false if that violates the protocol.
 */
bool sovia_rx_returned(struct sock *sk, u32 end)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	bool ok;

	spin_lock(&sk->sk_receive_queue.lock);
	ok = rx->lowering &&
	     (rx->over || (!sovia_before(end, rx->nxt) && !sovia_before(rx->most, end)));
	if (ok) {
		rx->lowering = false;
		/* Otherwise what has come is all that is promised. */
		if (!rx->over) {
			set_window(rx, sovia_conn_of(sk), end);
			sovia_rx_advance(sk);
		}
	}
	spin_unlock(&sk->sk_receive_queue.lock);
	return ok;
}

/**
 * sovia_rx_join() - give a socket its connection, and the window for CONN or ACCEPT
 * @sk: the socket; a connection that it has had has been left
 * @conn: the connection, whose reference goes to the socket
 * @open: data may be received, without waiting for ACCEPT
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_rx_join(struct sock *sk, struct sovia_conn *conn, bool open)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	rcu_assign_pointer(sovia_sk(sk)->conn, conn);
	sovia_sk(sk)->rx.open = open;
	sovia_sk(sk)->rx.over = false;
	sovia_sk(sk)->rx.asks = false;
	sovia_sk(sk)->rx.lowering = false;
	sovia_rx_advance(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/**
 * sovia_rx_leave() - the reverse of sovia_rx_join()
 * @sk: its socket lock is held
 *
 * Context: process or softirq.
 */
void sovia_rx_leave(struct sock *sk)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	rx_settle(sk);
	RCU_INIT_POINTER(sovia_sk(sk)->conn, NULL);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/**
 * sovia_rx_accepted() - ACCEPT arrived: allow data in both directions
 * @sk: the socket, which may be waiting for it
 * @conn: its connection
 * @msg: the message
 *
 * Context: the lane's bottom half, @conn's lock held.
 * Return: false if it answers an earlier CONN.
 */
bool sovia_rx_accepted(struct sock *sk, const struct sovia_conn *conn,
		       const struct sovia_msg *msg)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool ours;

	lockdep_assert_held(&conn->lock);
	spin_lock(&sk->sk_receive_queue.lock);
	ours = READ_ONCE(conn->conn_seq) == msg->ref &&
	       READ_ONCE(sk->sk_state) == TCP_SYN_SENT;
	if (ours) {
		WRITE_ONCE(ss->tx.wnd_end, msg->window);
		ss->rx.open = true;
		ss->rx.asks = true;
		sovia_rx_advance(sk);
	}
	spin_unlock(&sk->sk_receive_queue.lock);
	return ours;
}

/**
 * sovia_rx_close() - refuse further data
 * @sk: its program has closed it, or shut down both halves
 *
 * Data already received stays.
 *
 * Context: process, socket lock held.
 * Return: true if there is data that the program has not read.
 */
bool sovia_rx_close(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool left;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	ss->rx.closed = true;
	left = ss->rx.nxt != ss->rx.copied + ss->urg.skip;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return left;
}

/* ---- bottom half ---- */

/* Timestamp a payload, if enabled. */
static void recv_stamp(const struct sock *sk, struct sk_buff *skb)
{
	if (sock_flag(sk, SOCK_RCVTSTAMP) || sock_flag(sk, SOCK_TIMESTAMPING_RX_SOFTWARE))
		__net_timestamp(skb);
}

/* Put a buffer on the queue.  @own: struct sovia_rx_cb's. */
static void recv_append(struct sock *sk, struct sk_buff *skb, bool own)
{
	/* First: it may still be the sender's (loop), whose destructor needs skb->cb. */
	skb_orphan(skb);
	SOVIA_RX_CB(skb)->off = 0;
	SOVIA_RX_CB(skb)->own = own;
	SOVIA_RX_CB(skb)->gathers = false;
	SOVIA_RX_CB(skb)->arrived = 0;
	sovia_hist_begin(&SOVIA_RX_CB(skb)->arrived);
	__skb_queue_tail(&sk->sk_receive_queue, skb);
	sovia_charge(sk, skb);
}

/* A kept buffer, which is alone in the queue, is not of use. */
static void drop_kept(struct sock *sk)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_receive_queue);

	if (skb && !skb->len) {
		__skb_unlink(skb, &sk->sk_receive_queue);
		sovia_uncharge(sk, skb);
		kfree_skb(skb);
	}
}

/* The last buffer, if it has room for a small payload, or a new one; NULL without memory. */
static struct sk_buff *gather_tail(struct sock *sk, u32 len, gfp_t gfp)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	u32 size;

	if (tail && !skb_is_nonlinear(tail) && !skb_cloned(tail) && skb_tailroom(tail) >= len)
		return tail;
	drop_kept(sk);
	size = skb_queue_empty(&sk->sk_receive_queue) ? SOVIA_GATHER_FIRST : SOVIA_GATHER;
	tail = alloc_skb(max(size, len), gfp | __GFP_NOWARN);
	if (!tail)
		return NULL;
	/* A sender here has paid for it. */
	recv_append(sk, tail, !(gfp & __GFP_ACCOUNT));
	SOVIA_RX_CB(tail)->gathers = true;
	return tail;
}

/**
 * sovia_rx_keep() - may a buffer that has been read be used again
 * @sk: the socket
 * @skb: the buffer, in its queue
 *
 * One that small payloads are copied to stays when it is the last one, empty, for the next of them.
 * The window that is promised has memory for it.
 *
 * Context: any, socket lock and the receive queue's lock held.
 * Return: true if so; then it is empty now.
 */
bool sovia_rx_keep(struct sock *sk, struct sk_buff *skb)
{
	lockdep_assert_held(&sk->sk_receive_queue.lock);
	/* The reader still needs its timestamp. */
	if (!SOVIA_RX_CB(skb)->gathers || skb->tstamp || skb->truesize > SOVIA_KEEP ||
	    !skb_queue_is_last(&sk->sk_receive_queue, skb))
		return false;
	__skb_trim(skb, 0);
	SOVIA_RX_CB(skb)->off = 0;
	return true;
}

/* Append a small payload to the last buffer.  False if that is not possible. */
static bool recv_gather(struct sock *sk, struct sk_buff *skb, u32 len)
{
	struct sk_buff *tail = gather_tail(sk, len, GFP_ATOMIC);

	if (!tail)
		return false;
	/* Cannot fail: the length has been checked against the message. */
	skb_copy_bits(skb, 0, skb_put(tail, len), len);
	recv_stamp(sk, tail);
	return true;
}

/*
 * May a small payload stay in the buffer it arrived in?  Fine for a lone sk_buff, unless
 * it is a borrowed receive buffer.
 */
static bool may_take(const struct sock *sk, const struct sk_buff *skb)
{
	const struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);

	return !sovia_conn_of(sk)->link->prov->rx_borrowed && !skb_is_nonlinear(skb) &&
	       (!tail || !tail->len);
}

/* Queue a payload.  Returns true if @skb itself was taken. */
static bool recv_enqueue(struct sock *sk, struct sk_buff *skb, u32 len)
{
	if (len <= SOVIA_COPYBREAK && !may_take(sk, skb) && recv_gather(sk, skb, len))
		return false;
	drop_kept(sk);
	/* Where both sockets are here, it is the memory of the sender. */
	recv_append(sk, skb, !sovia_conn_of(sk)->link->prov->by_lane);
	recv_stamp(sk, skb);
	return true;
}

/* Has the peer used up its window? */
static bool window_used(const struct sovia_sock *ss)
{
	const struct sovia_conn *conn;
	bool used;

	rcu_read_lock();
	conn = rcu_dereference(ss->conn);
	used = conn && !sovia_before(READ_ONCE(ss->rx.nxt), READ_ONCE(conn->rcv_wnd_sent));
	rcu_read_unlock();
	return used;
}

/**
 * sovia_rx_enough() - has SO_RCVLOWAT been reached, or the end of the window
 * @ss: the socket
 * @start: stream offset to count from
 * @target: bytes wanted
 *
 * Context: any.
 * Return: true if a reader need not wait.
 */
bool sovia_rx_enough(const struct sovia_sock *ss, u32 start, int target)
{
	int have = READ_ONCE(ss->rx.nxt) - start;

	return have >= target || (have > 0 && window_used(ss));
}

/*
 * A sender here has locks.  Waking readers is all that is done under them: the sk_data_ready of a
 * kernel user, who may send from there, is called from a softirq, under the socket's own lock, as
 * TCP's is.
 */
static void tell_ready(struct sock *sk, struct sovia_conn *conn)
{
	void (*ready)(struct sock *sk) = READ_ONCE(sk->sk_data_ready);

	if (likely(ready == sovia_plain_ready) || !conn || !READ_ONCE(conn->direct))
		ready(sk);
	else
		sovia_later(conn, SOVIA_DEFER_READY, 0);
}

/**
 * sovia_rx_ready() - wake readers; not below SO_RCVLOWAT, as with TCP
 * @sk: the socket
 * @conn: its connection, or NULL
 * @urgent: the urgent byte has arrived: wake them in any case
 *
 * Context: any but hard interrupts.
 */
void sovia_rx_ready(struct sock *sk, struct sovia_conn *conn, bool urgent)
{
	const struct sovia_sock *ss = sovia_sk(sk);

	if (urgent || sovia_rx_enough(ss, sovia_rx_start(sk), READ_ONCE(sk->sk_rcvlowat)) ||
	    sock_flag(sk, SOCK_DONE) || READ_ONCE(ss->await_data))
		tell_ready(sk, conn);
}

/**
 * struct rx_result - what became of a DATA message
 * @taken: the sk_buff was taken
 * @urgent: it has the urgent byte
 * @push: the peer's window has opened for queued data
 * @breach: enum sovia_code to reset the connection with, or 0
 */
struct rx_result {
	bool	taken;
	bool	urgent;
	bool	push;
	u32	breach;
};

/* May this payload be queued?  Returns an enum sovia_code. */
static u32 data_check(const struct sock *sk, const struct sovia_msg *msg)
{
	const struct sovia_sock *ss = sovia_sk(sk);

	/* It will never be read: reset, as TCP does. */
	if (ss->rx.closed || (ss->rx.over && !ss->rx.fin))
		return SOVIA_CODE_ABORT;
	if (ss->rx.fin || sovia_before(ss->rx.most, ss->rx.nxt + msg->len)) {
		pr_warn_ratelimited("%u bytes beyond the window or the end of a stream, connection reset\n",
				    msg->len);
		sovia_stat_inc(sovia_net(sock_net(sk)), bad_window);
		return SOVIA_CODE_PROTOCOL;
	}
	return SOVIA_CODE_NONE;
}

static void data_queue(struct sock *sk, const struct sovia_conn *conn, struct sk_buff *skb,
		       const struct sovia_msg *msg, struct rx_result *res)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (!res->breach)
		res->breach = data_check(sk, msg);
	/* As TCP, which handles urgent data before it refuses the data. */
	if (!res->breach || res->breach == SOVIA_CODE_ABORT)
		res->urgent = sovia_urgent_data(sk, skb, msg->len);
	if (res->breach)
		return;
	sk_mark_napi_id(sk, skb);
	sovia_busy_of(ss, conn->link->prov);
	res->taken = recv_enqueue(sk, skb, msg->len);
	WRITE_ONCE(ss->rx.nxt, ss->rx.nxt + msg->len);
	ss->rx.bytes += msg->len;
	ss->rx.fin = msg->flags & SOVIA_F_FIN;
	if (ss->rx.fin)
		rx_settle(sk);
	res->push = !msg->compact && sovia_window_moved(sk, msg->window);
}

/**
 * sovia_rx_fin() - FIN came alone
 * @sk: the socket
 *
 * Context: the lane's bottom half, the connection's lock held.
 * Return: true if it ends the stream.
 */
bool sovia_rx_fin(struct sock *sk)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	bool open, again;

	spin_lock(&sk->sk_receive_queue.lock);
	/* Before ACCEPT, FIN belongs to an earlier connection on these ports. */
	open = rx->open;
	again = open && rx->fin;
	if (open && !again) {
		rx->fin = true;
		rx_settle(sk);
	}
	spin_unlock(&sk->sk_receive_queue.lock);
	if (again)
		sovia_stat_inc(sovia_net(sock_net(sk)), bad_state);
	return open && !again;
}

/*
 * FIN came with the data: handle it first, so that a reader woken for the data finds it.
 * Consumes a reference to @sk.
 */
static void data_fin(struct sock *sk, struct sovia_conn *conn, const struct sovia_msg *msg,
		     bool urgent)
{
	sovia_defer(conn, SOVIA_DEFER_FIN, msg->flags & SOVIA_F_GONE);
	sovia_rx_ready(sk, conn, urgent);
	sock_put(sk);
}

/**
 * sovia_sock_rx_data() - struct sovia_client::data
 * @conn: the connection
 * @skb: the message
 * @msg: its header
 *
 * Context: softirq, one at a time for each connection, under RCU; no locks.
 * Return: true if @skb was taken.
 */
bool sovia_sock_rx_data(struct sovia_conn *conn, struct sk_buff *skb,
			const struct sovia_msg *msg)
{
	struct rx_result res = {};
	struct sock *sk;

	spin_lock(&conn->lock);
	sk = conn->sk;
	/* Before ACCEPT, it is meant for an earlier connection on these ports. */
	if (!sk || !READ_ONCE(sovia_sk(sk)->rx.open)) {
		spin_unlock(&conn->lock);
		return false;
	}
	if (!sovia_filter_data(sk, msg, skb))
		res.breach = SOVIA_CODE_ABORT;
	spin_lock(&sk->sk_receive_queue.lock);
	data_queue(sk, conn, skb, msg, &res);
	spin_unlock(&sk->sk_receive_queue.lock);
	if (!res.breach) {
		sk_incoming_cpu_update(sk);
		if (msg->flags & SOVIA_F_FIN)
			sock_hold(sk);
		else
			sovia_rx_ready(sk, conn, res.urgent);
	}
	spin_unlock(&conn->lock);
	if (res.push)
		sovia_defer(conn, SOVIA_DEFER_PUSH, 0);
	if (res.breach)
		sovia_defer(conn, SOVIA_DEFER_BREACH, res.breach);
	else if (msg->flags & SOVIA_F_FIN)
		data_fin(sk, conn, msg, res.urgent);
	return res.taken;
}

/* May bytes come without a message?  If not, the message finds out what is wrong. */
static bool copy_allowed(const struct sock *sk, u32 len)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;

	return rx->open && !rx->closed && !rx->over && !rx->fin &&
	       !sovia_before(rx->most, rx->nxt + len) &&
	       sovia_sk(sk)->urg.state != SOVIA_URG_EXPECTED &&
	       !rcu_access_pointer(sk->sk_filter);
}

/* Pages that are not there have to be waited for: not here. */
static bool copy_some(struct sk_buff *skb, struct iov_iter *from, u32 len)
{
	bool done;

	pagefault_disable();
	done = copy_from_iter_full(skb_tail_pointer(skb), len, from);
	pagefault_enable();
	if (done)
		__skb_put(skb, len);
	return done;
}

/**
 * sovia_sock_rx_copy() - struct sovia_client::copy
 * @conn: the connection
 * @from: the bytes
 * @len: how many
 *
 * Context: the sender's process, under RCU, bottom halves off; his socket lock held.
 * Return: true if they have been copied.
 */
bool sovia_sock_rx_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len)
{
	struct sock *sk = READ_ONCE(conn->sk);
	struct sk_buff *tail;
	bool done = false;

	if (!sk)
		return false;
	spin_lock(&sk->sk_receive_queue.lock);
	/* It may just be leaving. */
	if (sovia_conn_of(sk) == conn && copy_allowed(sk, len)) {
		tail = gather_tail(sk, len, GFP_ATOMIC | __GFP_ACCOUNT);
		done = tail && copy_some(tail, from, len);
		if (done) {
			recv_stamp(sk, tail);
			sovia_sk(sk)->rx.bytes += len;
			WRITE_ONCE(sovia_sk(sk)->rx.nxt, sovia_sk(sk)->rx.nxt + len);
		} else {
			drop_kept(sk);
		}
	}
	spin_unlock(&sk->sk_receive_queue.lock);
	if (done) {
		sk_incoming_cpu_update(sk);
		sovia_rx_ready(sk, conn, false);
	}
	return done;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/rx_test.c"
#endif

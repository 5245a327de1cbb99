// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the lane to the receive queue (KSOVIA 3.1), in the bottom half; rx_window.c has the window.
 *
 * The bottom half appends to sk_receive_queue under the queue's own lock, whether
 * or not a process owns the socket; recv.c reads from it.  A large
 * payload stays in the buffer it arrived in.  A small one is copied, into the
 * free end of the last buffer if there is one: a thousand 1-byte messages do
 * not pin a thousand buffers.  What a sender here writes in small pieces is copied there from its
 * memory, without a message (sovia_sock_rx_copy()), and the buffer is used again once it was read.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <net/busy_poll.h>
#include "busy_poll.h"
#include "charge.h"
#include "core/hist.h"
#include "defer.h"
#include "later.h"
#include "mem.h"
#include "program.h"
#include "recv.h"
#include "rx.h"
#include "send.h"
#include "urgent.h"

/* Small payloads are gathered in buffers of this size. */
#define SOVIA_GATHER		SKB_WITH_OVERHEAD(4096)
/* The first of them, and the first behind a large one, may stay alone: this size is for them. */
#define SOVIA_GATHER_FIRST	SKB_WITH_OVERHEAD(512)
/* Those up to this truesize are used again: the first ones, however the kernel rounds. */
#define SOVIA_KEEP		1024

/**
 * sovia_rx_stamp() - timestamp a payload, if the program wants that
 * @sk: the socket
 * @skb: the payload
 *
 * Context: any.
 */
void sovia_rx_stamp(const struct sock *sk, struct sk_buff *skb)
{
	if (sock_flag(sk, SOCK_RCVTSTAMP) || sock_flag(sk, SOCK_TIMESTAMPING_RX_SOFTWARE))
		__net_timestamp(skb);
}

/* Put a buffer on the queue.  @own: struct sovia_rx_cb's. */
static void recv_append(struct sock *sk, struct sk_buff *skb, bool own)
{
	/* First: the sender may still be charged for it (loop): its destructor needs skb->cb. */
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

/* Is all that arrives gathered, as the window is the smallest? */
static bool gathers_all(const struct sock *sk)
{
	return unlikely(sovia_sk(sk)->rx.promised <= SOVIA_WINDOW_LEAST);
}

/*
 * How large is a new buffer for @len bytes, after @done ones of the same message?  For the smallest
 * window, perhaps for a part of them.
 */
static u32 gather_size(const struct sock *sk, u32 done, u32 len)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;
	const struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);
	/* Large payloads may come between small ones, each of which begins a buffer then. */
	bool first = !tail || skb_is_nonlinear(tail);

	if (likely(!gathers_all(sk)))
		return max_t(u32, len, first ? SOVIA_GATHER_FIRST : SOVIA_GATHER);
	/* One of each size has room for all that may come. */
	if (rx->most - rx->nxt - done <= SOVIA_LEAST_FIRST || (!tail && len <= SOVIA_LEAST_FIRST))
		return SOVIA_LEAST_FIRST;
	return SOVIA_LEAST_SECOND;
}

/*
 * The last buffer, if it has room for @need of @len bytes, or a new one; NULL without memory, or if
 * room would be wasted that the smallest window counts on.  @done bytes of the message are there.
 */
static struct sk_buff *gather_tail(struct sock *sk, u32 need, u32 done, u32 len, gfp_t gfp)
{
	struct sk_buff *tail;
	u32 room = 0, size;

	/* The smallest window counts on buffers of its sizes. */
	if (gathers_all(sk))
		drop_kept(sk);
	tail = skb_peek_tail(&sk->sk_receive_queue);
	if (tail && !skb_is_nonlinear(tail) && !skb_cloned(tail))
		room = skb_tailroom(tail);
	if (room >= need)
		return tail;
	if (room && tail->len && gathers_all(sk))
		return NULL;
	drop_kept(sk);
	size = gather_size(sk, done, len);
	if (size < need)
		return NULL;
	tail = alloc_skb(size, gfp | __GFP_NOWARN);
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

/* Append a small payload to the last buffers.  Returns how much of it, less for want of memory. */
static u32 recv_gather(struct sock *sk, struct sk_buff *skb, u32 len)
{
	struct sk_buff *tail;
	u32 done = 0, some;

	while (done < len) {
		tail = gather_tail(sk, gathers_all(sk) ? 1 : len, done, len - done, GFP_ATOMIC);
		if (!tail)
			break;
		some = min_t(u32, len - done, skb_tailroom(tail));
		/* Cannot fail: the length has been checked against the message. */
		skb_copy_bits(skb, done, skb_put(tail, some), some);
		sovia_rx_stamp(sk, tail);
		done += some;
	}
	return done;
}

/*
 * May a small payload stay in the buffer it arrived in?  Fine for a lone sk_buff, unless
 * it is a borrowed receive buffer.
 */
static bool may_take(const struct sock *sk, const struct sk_buff *skb)
{
	const struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);

	return !sovia_conn_of(sk)->lane->prov->rx_borrowed && !skb_is_nonlinear(skb) &&
	       !gathers_all(sk) && (!tail || !tail->len);
}

/* Queue a payload.  Returns true if @skb itself was taken. */
static bool recv_enqueue(struct sock *sk, struct sk_buff *skb, u32 len)
{
	u32 done = 0;

	if ((len <= sovia_conn_copybreak(sovia_conn_of(sk)) || gathers_all(sk)) &&
	    !may_take(sk, skb))
		done = recv_gather(sk, skb, len);
	if (done == len)
		return false;
	drop_kept(sk);
	/* Where both sockets are here, it is the memory of the sender. */
	recv_append(sk, skb, !sovia_conn_of(sk)->lane->prov->by_lane);
	SOVIA_RX_CB(skb)->off = done;
	sovia_rx_stamp(sk, skb);
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
 * @opened: it has used up its window here, which has opened again
 * @breach: enum sovia_code to reset the connection with, or 0
 */
struct rx_result {
	bool	taken;
	bool	urgent;
	bool	push;
	bool	opened;
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

/* FIN has come. */
static void rx_ended(struct sock *sk, const struct sovia_msg *msg)
{
	if (msg->flags & SOVIA_F_TAKEN)
		sovia_peer_refuses(sk, msg->ref);
	sovia_rx_settle(sk);
}

/*
 * Grow a lowered window even if the receiver does not read: it may wait for more bytes than the
 * window has room for, by MSG_PEEK, FIONREAD or SO_RCVLOWAT.
 */
static bool rx_used_up(struct sock *sk)
{
	sovia_rx_advance(sk);
	return sovia_sk(sk)->rx.most != sovia_sk(sk)->rx.nxt;
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
	sovia_busy_of(ss, conn->lane->prov);
	res->taken = recv_enqueue(sk, skb, msg->len);
	WRITE_ONCE(ss->rx.nxt, ss->rx.nxt + msg->len);
	ss->rx.bytes += msg->len;
	WRITE_ONCE(ss->rx.used, true);
	ss->rx.fin = msg->flags & SOVIA_F_FIN;
	if (ss->rx.fin)
		rx_ended(sk, msg);
	else if (unlikely(ss->rx.most == ss->rx.nxt))
		res->opened = rx_used_up(sk);
	res->push = sovia_no_more(sk);
	if (!msg->compact)
		res->push |= sovia_window_moved(sk, msg->window);
}

/**
 * sovia_rx_fin() - FIN came alone
 * @sk: the socket
 * @msg: it
 *
 * Context: the lane's bottom half, the connection's lock held.
 * Return: true if it ends the stream.
 */
bool sovia_rx_fin(struct sock *sk, const struct sovia_msg *msg)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	bool open, again;

	spin_lock(&sk->sk_receive_queue.lock);
	/* Before ACCEPT, FIN belongs to an earlier connection on these ports. */
	open = rx->open;
	again = open && rx->fin;
	if (open && !again) {
		rx->fin = true;
		rx_ended(sk, msg);
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
	if (res.opened)
		sovia_defer(conn, SOVIA_DEFER_WINDOW, 0);
	if (res.breach)
		sovia_defer(conn, SOVIA_DEFER_BREACH, res.breach);
	else if (msg->flags & SOVIA_F_FIN)
		data_fin(sk, conn, msg, res.urgent);
	return res.taken;
}

/*
 * May bytes come without a message?  If not, the message finds out what is wrong, or opens the
 * window that it uses up.
 */
static bool copy_allowed(const struct sock *sk, u32 len)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;

	return rx->open && !rx->closed && !rx->over && !rx->fin &&
	       !READ_ONCE(sovia_sk(sk)->tx.more) &&
	       sovia_before(rx->nxt + len, rx->most) &&
	       sovia_sk(sk)->urg.state != SOVIA_URG_EXPECTED &&
	       !rcu_access_pointer(sk->sk_filter);
}

/* Pages that are not there have to be waited for: not here. */
static bool rx_copy_some(struct sk_buff *skb, struct iov_iter *from, u32 len)
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
		tail = gather_tail(sk, len, 0, len, GFP_ATOMIC | __GFP_ACCOUNT);
		done = tail && rx_copy_some(tail, from, len);
		if (done) {
			sovia_rx_stamp(sk, tail);
			sovia_sk(sk)->rx.bytes += len;
			WRITE_ONCE(sovia_sk(sk)->rx.used, true);
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

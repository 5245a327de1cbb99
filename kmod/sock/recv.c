// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the lane to the program (KSOVIA 3.1).
 *
 * The bottom half appends to sk_receive_queue under the queue's own lock, whether
 * or not a process owns the socket; the process reads from the head under
 * the socket lock, and takes the queue's lock to unlink.  A large
 * payload stays in the buffer it arrived in.  A small one is copied, into the
 * free end of the last buffer if there is one: a thousand 1-byte messages do
 * not pin a thousand buffers.
 *
 * The window is half of the receive buffer in payload bytes.  Buffers at least
 * half full (see SOVIA_COPYBREAK) keep the memory below the other half.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/signal.h>
#include <linux/poll.h>
#include <linux/tcp.h>
#include <net/busy_poll.h>
#include <net/inet_common.h>
#include "busy_poll.h"
#include "defer.h"
#include "mem.h"
#include "program.h"
#include "recv.h"
#include "send.h"
#include "urgent.h"

/* The window grows if the reader consumes half of it in less time. */
#define SOVIA_RCV_FAST		msecs_to_jiffies(20)
/* Small payloads are gathered in buffers of this truesize. */
#define SOVIA_GATHER		SKB_WITH_OVERHEAD(4096)
/* The first of them, which may stay alone, gets one of this size. */
#define SOVIA_GATHER_FIRST	SKB_WITH_OVERHEAD(512)

static u32 window_size(const struct sock *sk)
{
	u32 clamp = READ_ONCE(sovia_sk(sk)->opt.window_clamp);
	int buf = READ_ONCE(sk->sk_rcvbuf);
	u32 size;

	if (sovia_mem_short())
		buf = min(buf, READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[0]));
	size = max(buf / 2, 1);
	return clamp ? min(size, clamp) : size;
}

/* Open the window as far as the buffer has room; it never shrinks. */
static void advance_window(struct sock *sk)
{
	u32 size = window_size(sk), adv = sovia_sk(sk)->rx.copied + size;
	struct sovia_conn *conn = sovia_conn_of(sk);

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	WRITE_ONCE(conn->wnd_update_min, size / 4);
	if (sovia_before(conn->rcv_wnd_end, adv))
		WRITE_ONCE(conn->rcv_wnd_end, adv);
}

/**
 * sovia_rx_prepare() - set the initial window, for CONN or ACCEPT
 * @sk: about to be connected
 *
 * Context: process or softirq.
 */
void sovia_rx_prepare(struct sock *sk)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	advance_window(sk);
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
		advance_window(sk);
	}
	spin_unlock(&sk->sk_receive_queue.lock);
	return ours;
}

/**
 * sovia_rx_open() - allow data to be received
 * @sk: about to be connected
 *
 * Context: process or softirq.
 */
void sovia_rx_open(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	spin_lock_bh(&sk->sk_receive_queue.lock);
	ss->rx.open = true;
	advance_window(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
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

/* ---- bottom half ----------------------------------------------------- */

/* Timestamp a payload, if enabled. */
static void recv_stamp(const struct sock *sk, struct sk_buff *skb)
{
	if (sock_flag(sk, SOCK_RCVTSTAMP) || sock_flag(sk, SOCK_TIMESTAMPING_RX_SOFTWARE))
		__net_timestamp(skb);
}

/* Append a small payload to the last buffer.  False if that is not possible. */
static bool recv_gather(struct sock *sk, struct sk_buff *skb, u32 len)
{
	struct sk_buff *tail = skb_peek_tail(&sk->sk_receive_queue);

	if (!tail || skb_is_nonlinear(tail) || skb_cloned(tail) || skb_tailroom(tail) < len) {
		u32 size = tail ? SOVIA_GATHER : SOVIA_GATHER_FIRST;

		tail = alloc_skb(max(size, len), GFP_ATOMIC | __GFP_NOWARN);
		if (!tail)
			return false;
		SOVIA_RX_CB(tail)->off = 0;
		sovia_own_rx(tail, sk);
		__skb_queue_tail(&sk->sk_receive_queue, tail);
	}
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
	return !sovia_conn_of(sk)->link->prov->rx_borrowed && !skb_is_nonlinear(skb) &&
	       skb_queue_empty(&sk->sk_receive_queue);
}

/* Queue a payload.  Returns true if @skb itself was taken. */
static bool recv_enqueue(struct sock *sk, struct sk_buff *skb, u32 len)
{
	if (len <= SOVIA_COPYBREAK && !may_take(sk, skb) && recv_gather(sk, skb, len))
		return false;
	/* First: it may still be the sender's (loop), whose destructor needs skb->cb. */
	sovia_own_rx(skb, sk);
	SOVIA_RX_CB(skb)->off = 0;
	recv_stamp(sk, skb);
	__skb_queue_tail(&sk->sk_receive_queue, skb);
	return true;
}

/* Is there no memory, for a socket that already has its minimum? */
static bool no_room(const struct sock *sk)
{
	return sovia_mem_none() &&
	       sk_rmem_alloc_get(sk) > READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[0]);
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

/* Has SO_RCVLOWAT been reached, or the end of the window? */
static bool recv_enough(const struct sovia_sock *ss, u32 start, int target)
{
	int have = READ_ONCE(ss->rx.nxt) - start;

	return have >= target || (have > 0 && window_used(ss));
}

/* Wake readers; not below SO_RCVLOWAT, unless @urgent, as with TCP. */
static void data_ready(struct sock *sk, bool urgent)
{
	const struct sovia_sock *ss = sovia_sk(sk);

	if (urgent || recv_enough(ss, sovia_rx_start(sk), READ_ONCE(sk->sk_rcvlowat)) ||
	    sock_flag(sk, SOCK_DONE) || READ_ONCE(ss->await_data))
		sk->sk_data_ready(sk);
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
static u32 data_check(const struct sock *sk, const struct sovia_conn *conn,
		      const struct sovia_msg *msg)
{
	const struct sovia_sock *ss = sovia_sk(sk);

	/* It will never be read: reset, as TCP does. */
	if (ss->rx.closed)
		return SOVIA_CODE_ABORT;
	if (ss->rx.fin || sovia_before(conn->rcv_wnd_end, ss->rx.nxt + msg->len)) {
		pr_warn_ratelimited("%u bytes beyond the window or the end of a stream, connection reset\n",
				    msg->len);
		sovia_stat_inc(sovia_net(sock_net(sk)), bad_window);
		return SOVIA_CODE_PROTOCOL;
	}
	if (no_room(sk)) {
		sovia_stat_inc(sovia_net(sock_net(sk)), no_room);
		return SOVIA_CODE_NO_MEMORY;
	}
	return SOVIA_CODE_NONE;
}

static void data_queue(struct sock *sk, const struct sovia_conn *conn, struct sk_buff *skb,
		       const struct sovia_msg *msg, struct rx_result *res)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (!res->breach)
		res->breach = data_check(sk, conn, msg);
	/* As TCP, which handles urgent data before it refuses the data. */
	if (!res->breach || res->breach == SOVIA_CODE_ABORT)
		res->urgent = sovia_urgent_data(sk, skb, msg->len);
	if (res->breach)
		return;
	sk_mark_napi_id(sk, skb);
	res->taken = recv_enqueue(sk, skb, msg->len);
	WRITE_ONCE(ss->rx.nxt, ss->rx.nxt + msg->len);
	ss->rx.bytes += msg->len;
	ss->rx.fin = msg->flags & SOVIA_F_FIN;
	res->push = !msg->compact && sovia_window_moved(sk, msg->window);
}

/*
 * FIN came with the data: handle it first, so that a reader woken for the data finds it.
 * Consumes a reference to @sk.
 */
static void data_fin(struct sock *sk, struct sovia_conn *conn, const struct sovia_msg *msg,
		     bool urgent)
{
	sovia_defer(conn, SOVIA_DEFER_FIN, msg->flags & SOVIA_F_GONE);
	data_ready(sk, urgent);
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
			data_ready(sk, res.urgent);
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

/* ---- the program ----------------------------------------------------- */

/**
 * sovia_inq() - SIOCINQ
 * @sk: the socket
 *
 * Context: any but hard interrupts.
 * Return: bytes that the program can read, up to the urgent one.
 */
int sovia_inq(struct sock *sk)
{
	const struct sovia_sock *ss = sovia_sk(sk);
	u32 start, all, mark;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	start = ss->rx.copied + ss->urg.skip;
	all = ss->rx.nxt - start;
	mark = ss->urg.pos - start;
	if (ss->urg.state && !sock_flag(sk, SOCK_URGINLINE) && mark < all)
		all = mark;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return all;
}

/* Set the size of the receive buffer, and the window with it, which is half of that. */
static void set_rcvbuf(struct sock *sk, int size)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	WRITE_ONCE(sk->sk_rcvbuf, size);
	if (sovia_sk(sk)->rx.open)
		advance_window(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/* The reader has consumed half of the window; enlarge it if that was quick. */
static void grow_window(struct sock *sk)
{
	int most = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);
	struct sovia_sock *ss = sovia_sk(sk);
	bool fast = time_before(jiffies, ss->rx.half_time + SOVIA_RCV_FAST);

	ss->rx.half_time = jiffies;
	if (fast && !(sk->sk_userlocks & SOCK_RCVBUF_LOCK) && sk->sk_rcvbuf < most &&
	    sovia_mem_ample())
		set_rcvbuf(sk, min(sk->sk_rcvbuf * 2, most));
}

/*
 * Send a window update.  While the peer has half of the window left, the update can be
 * piggybacked on the next message instead.
 */
static void tell_window(struct sock *sk)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	u32 news;

	if (!((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)) ||
	    READ_ONCE(sovia_sk(sk)->rx.fin))
		return;
	news = READ_ONCE(conn->rcv_wnd_end) - READ_ONCE(conn->rcv_wnd_sent);
	if (news >= max_t(u32, READ_ONCE(conn->wnd_update_min) * 2, 1)) {
		grow_window(sk);
		sovia_conn_control(conn, SOVIA_WAKEUP, 0);
	}
}

/* The program has read @len bytes of the first buffer; @more: the read continues. */
static void recv_consume(struct sock *sk, struct sk_buff *skb, u32 len, bool more)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool empty;

	SOVIA_RX_CB(skb)->off += len;
	spin_lock_bh(&sk->sk_receive_queue.lock);
	/* The bottom half may have appended to it since. */
	empty = SOVIA_RX_CB(skb)->off == skb->len;
	if (empty)
		__skb_unlink(skb, &sk->sk_receive_queue);
	WRITE_ONCE(ss->rx.copied, ss->rx.copied + len);
	sovia_urgent_passed(sk, len, more);
	advance_window(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	if (empty)
		kfree_skb(skb);
}

/*
 * Find the byte at stream offset @pos.  NULL if it has not arrived yet.  If @skip is
 * set, it has arrived but must not be returned.
 */
static struct sk_buff *find_data(struct sock *sk, u32 pos, u32 *off, u32 *avail, bool *skip)
{
	u32 before = pos - sovia_sk(sk)->rx.copied;
	struct sk_buff *skb, *found = NULL;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	skb_queue_walk(&sk->sk_receive_queue, skb) {
		*off = SOVIA_RX_CB(skb)->off;
		*avail = skb->len - *off;
		if (before < *avail) {
			*off += before;
			*avail = sovia_urgent_cut(sk, pos, *avail - before, skip);
			found = skb;
			break;
		}
		before -= *avail;
	}
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return found;
}

/* No data available.  Returns 1: stop reading, 0: wait, or a negative errno. */
static int why_stop(struct sock *sk, int copied, long timeo)
{
	if (copied)
		return sk->sk_err || sk->sk_state == TCP_CLOSE ||
		       (sk->sk_shutdown & RCV_SHUTDOWN) || !timeo ||
		       signal_pending(current);
	/* An error only if the peer has not ended the stream before. */
	if (sock_flag(sk, SOCK_DONE))
		return 1;
	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return 1;
	if (sk->sk_state == TCP_CLOSE)
		return -ENOTCONN;
	if (!timeo)
		return -EAGAIN;
	if (signal_pending(current))
		return sock_intr_errno(timeo);
	return 0;
}

/* Negative if another task has disconnected the socket. */
static int wait_for_data(struct sock *sk, long *timeo, u32 pos)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int ret;

	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	ret = sk_wait_event(sk, timeo,
			    sovia_before(pos, READ_ONCE(sovia_sk(sk)->rx.nxt)) || sk->sk_err ||
			    (sk->sk_shutdown & RCV_SHUTDOWN) || sk->sk_state == TCP_CLOSE, &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	return ret;
}

/* Is @pos at the urgent mark, where this sink must stop? */
static bool stops_here(const struct sovia_sink *sink, const struct sock *sk, u32 pos)
{
	return sink->stops && sovia_at_mark(sk, pos);
}

static int recv_locked(struct sock *sk, struct sovia_sink *sink, size_t len, int flags,
		       int target)
{
	struct sovia_sock *ss = sovia_sk(sk);
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	u32 pos = ss->rx.copied, off, avail;
	struct sk_buff *skb;
	int copied = 0, ret;
	bool skip;

	if ((flags & MSG_PEEK) || !len)
		pos = sovia_rx_start(sk) + max(sk_peek_offset(sk, flags), 0);
	/* Once even with len 0: like TCP, it waits for data. */
	do {
		/* A read ends at the urgent byte, so that SIOCATMARK tells of it. */
		if (copied && sovia_at_mark(sk, pos))
			break;
		skb = find_data(sk, pos, &off, &avail, &skip);
		if (skb && !len)
			break;
		if (skb && !stops_here(sink, sk, pos)) {
			if (!skip) {
				avail = min_t(size_t, avail, len - copied);
				ret = sink->recv_actor(sink, sk, skb, off, avail);
				if (ret <= 0)
					return copied ? copied : ret;
				avail = ret;
				copied += avail;
				if (flags & MSG_PEEK)
					sk_peek_offset_fwd(sk, avail);
				else
					sk_peek_offset_bwd(sk, avail);
			}
			if (!(flags & MSG_PEEK))
				recv_consume(sk, skb, avail, skip && copied + 1 < len &&
					     sovia_before(pos + avail, READ_ONCE(ss->rx.nxt)));
			pos += avail;
			continue;
		}
		if (copied >= target)
			break;
		ret = why_stop(sk, copied, timeo);
		if (ret)
			return copied ? copied : min(ret, 0);
		if (skb)
			break;
		if (!(flags & MSG_PEEK))
			tell_window(sk);
		ret = wait_for_data(sk, &timeo, pos);
		if (ret < 0)
			return copied ? copied : ret;
		/* Another reader may have consumed data since. */
		if (!(flags & MSG_PEEK) || sovia_before(pos, ss->rx.copied))
			pos = ss->rx.copied;
	} while (copied < len);
	return copied;
}

/**
 * sovia_recv() - read from the stream
 * @sk: the socket
 * @sink: where the data goes
 * @len: bytes wanted
 * @flags: MSG_DONTWAIT and MSG_PEEK count
 * @target: bytes to wait for
 *
 * Context: process, may sleep; no locks.
 * Return: bytes, 0 at the end of the stream, or a negative errno.
 */
int sovia_recv(struct sock *sk, struct sovia_sink *sink, size_t len, int flags, int target)
{
	int ret = -ENOTCONN;

	if (sk_can_busy_loop(sk) && sk->sk_state == TCP_ESTABLISHED)
		sovia_busy_wait(sk, flags & MSG_DONTWAIT);
	lock_sock(sk);
	if (sk->sk_state != TCP_LISTEN)
		ret = recv_locked(sk, sink, len, flags, target);
	if (ret > 0 && !(flags & MSG_PEEK))
		tell_window(sk);
	release_sock(sk);
	return ret;
}

/**
 * struct msg_sink - recvmsg()'s
 * @sink: for sovia_recv()
 * @msg: where the data goes
 * @drop: MSG_TRUNC: discard the data
 * @last: the last buffer read from, with a reference, if timestamps are enabled
 */
struct msg_sink {
	struct sovia_sink	sink;
	struct msghdr		*msg;
	bool			drop;
	struct sk_buff		*last;
};

static int give_to_msg(struct sovia_sink *sink, struct sock *sk, struct sk_buff *skb,
		       u32 off, u32 len)
{
	struct msg_sink *ms = container_of(sink, struct msg_sink, sink);

	if (!ms->drop && skb_copy_datagram_msg(skb, off, ms->msg, len))
		return -EFAULT;
	if (skb->tstamp && ms->last != skb) {
		kfree_skb(ms->last);
		ms->last = skb_get(skb);
	}
	return len;
}

static int recv_urgent(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	int ret = -ENOTCONN;

	lock_sock(sk);
	if (sk->sk_state != TCP_LISTEN)
		ret = sovia_recv_urgent(sk, msg, len, flags);
	release_sock(sk);
	return ret;
}

/**
 * sovia_recvmsg() - struct proto::recvmsg
 * @sk: the socket
 * @msg: where the data goes
 * @len: bytes wanted
 * @flags: MSG_*
 *
 * Context: process, may sleep; no locks.
 * Return: bytes, 0 at the end of the stream, or a negative errno.
 */
int sovia_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct msg_sink ms = {
		.sink = { .recv_actor = give_to_msg },
		.msg = msg,
		.drop = flags & MSG_TRUNC,
	};
	/* TCP_INQ as of the call, even if it changes during the wait. */
	bool tell_inq = READ_ONCE(sovia_sk(sk)->opt.inq);
	int ret;

	if (unlikely(flags & MSG_ERRQUEUE))
		return sovia_recv_error(sk, msg, len);
	if (unlikely(flags & MSG_OOB))
		return recv_urgent(sk, msg, len, flags);
	ret = sovia_recv(sk, &ms.sink, len, flags,
			 sock_rcvlowat(sk, flags & MSG_WAITALL, min_t(size_t, len, INT_MAX)));
	if (ms.last) {
		sock_recv_timestamp(msg, sk, ms.last);
		kfree_skb(ms.last);
	}
	if (ret >= 0 && tell_inq) {
		/* EOF counts as one byte, and the urgent mark is ignored. */
		int inq = READ_ONCE(sovia_sk(sk)->rx.nxt) - sovia_rx_start(sk) +
			  sock_flag(sk, SOCK_DONE);

		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(inq), &inq);
	}
	return ret;
}

/**
 * sovia_set_rcvlowat() - struct proto_ops::set_rcvlowat
 * @sk: the socket
 * @val: SO_RCVLOWAT, not negative
 *
 * A low-water mark beyond the window would never be reached, so the buffer grows,
 * or, if the program has set its size, the mark is reduced.
 *
 * Context: process, socket lock held.
 * Return: 0.
 */
int sovia_set_rcvlowat(struct sock *sk, int val)
{
	int most = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]);

	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		most = sk->sk_rcvbuf;
	val = min(val, most / 2);
	WRITE_ONCE(sk->sk_rcvlowat, val ? : 1);
	if (val > sk->sk_rcvbuf / 2) {
		set_rcvbuf(sk, val * 2);
		tell_window(sk);
	}
	data_ready(sk, false);
	return 0;
}

/**
 * sovia_readable() - is there enough data to wake a reader
 * @sk: the socket
 *
 * Context: process; no locks.
 * Return: true if so.
 */
bool sovia_readable(struct sock *sk)
{
	const struct sovia_sock *ss = sovia_sk(sk);
	int target = sock_rcvlowat(sk, 0, INT_MAX);
	u32 start = sovia_rx_start(sk);

	/* The urgent byte is not readable, unless SO_OOBINLINE is set. */
	if (sovia_at_mark(sk, start) && !sock_flag(sk, SOCK_URGINLINE))
		return recv_enough(ss, start + 1, target);
	return recv_enough(ss, start, target);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/recv_test.c"
#endif

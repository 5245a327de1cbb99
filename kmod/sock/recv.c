// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the receive queue to the program (KSOVIA 3.1).
 *
 * The process reads from the head of sk_receive_queue under the socket lock, and takes the
 * queue's lock to unlink, as rx.c appends at the same time.
 */
#include <linux/export.h>
#include <linux/sched/signal.h>
#include <linux/poll.h>
#include <linux/tcp.h>
#include <net/busy_poll.h>
#include <net/inet_common.h>
#include "busy_poll.h"
#include "charge.h"
#include "core/hist.h"
#include "core/trace.h"
#include "mem.h"
#include "recv.h"
#include "rx.h"
#include "send.h"
#include "urgent.h"

/* The window grows if the reader consumes half of it in less time. */
#define SOVIA_RCV_FAST		msecs_to_jiffies(20)

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
EXPORT_SYMBOL_GPL(sovia_inq);

/* Set the size of the receive buffer, and the window with it, which is half of that. */
static void set_rcvbuf(struct sock *sk, int size)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	WRITE_ONCE(sk->sk_rcvbuf, size);
	if (sovia_sk(sk)->rx.open)
		sovia_rx_advance(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/* The reader has consumed half of the window; enlarge it if that was quick. */
static void grow_window(struct sock *sk)
{
	int most = min(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[2]), SOVIA_BUF_MOST);
	struct sovia_sock *ss = sovia_sk(sk);
	bool fast = time_before(jiffies, ss->rx.half_time + SOVIA_RCV_FAST);

	ss->rx.half_time = jiffies;
	if (fast && !(sk->sk_userlocks & SOCK_RCVBUF_LOCK) && sk->sk_rcvbuf < most &&
	    sovia_mem_ample(sk) && !sovia_charge_short(sk))
		set_rcvbuf(sk, min_t(u32, 2U * sk->sk_rcvbuf, most));
}

/**
 * sovia_tell_window() - send a window update if the peer needs it
 * @sk: has or had a connection
 *
 * While the peer has half of the window left, the update can be piggybacked on the next message
 * instead.
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_tell_window(struct sock *sk)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	u32 news;

	if (!((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)) ||
	    READ_ONCE(sovia_sk(sk)->rx.over) || READ_ONCE(sovia_sk(sk)->rx.lowering))
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
	bool all, empty;

	SOVIA_RX_CB(skb)->off += len;
	spin_lock_bh(&sk->sk_receive_queue.lock);
	/* The bottom half may have appended to it since. */
	all = SOVIA_RX_CB(skb)->off == skb->len;
	empty = all && !sovia_rx_keep(sk, skb);
	if (empty) {
		__skb_unlink(skb, &sk->sk_receive_queue);
		sovia_uncharge(sk, skb);
	}
	WRITE_ONCE(ss->rx.copied, ss->rx.copied + len);
	if (all)
		ss->rx.base = ss->rx.copied;
	sovia_urgent_passed(sk, len, more);
	sovia_rx_advance(sk);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	if (!empty)
		return;
	sovia_hist_since(sovia_net(sock_net(sk)), SOVIA_HIST_ARRIVAL, SOVIA_RX_CB(skb)->arrived);
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

/* Is there a reason not to wait for the first data? */
static bool worth_a_look(const struct sock *sk)
{
	const struct sovia_sock *ss = sovia_sk(sk);

	return READ_ONCE(ss->rx.nxt) != READ_ONCE(ss->rx.copied) || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN ||
	       READ_ONCE(sk->sk_state) != TCP_ESTABLISHED;
}

/*
 * Wait before the socket is locked at all: most waits are for the first data, and then it is
 * locked once.  Whatever has happened, the caller looks again with the lock.
 */
static void wait_unlocked(struct sock *sk)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	if (!worth_a_look(sk))
		wait_woken(&wait, TASK_INTERRUPTIBLE, MAX_SCHEDULE_TIMEOUT);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
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
		skb = sovia_before(pos, READ_ONCE(ss->rx.nxt)) ?
		      find_data(sk, pos, &off, &avail, &skip) : NULL;
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
		/* Earlier calls told what they read; an urgent byte that is skipped counts. */
		if (!(flags & MSG_PEEK))
			sovia_tell_window(sk);
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
	const struct sovia_conn *conn;
	int ret = -ENOTCONN;
	bool waited;

	if (sovia_busy_may(sk) && sk->sk_state == TCP_ESTABLISHED)
		sovia_busy_wait(sk, flags & MSG_DONTWAIT);
	conn = rcu_access_pointer(sovia_sk(sk)->conn);
	waited = !(flags & MSG_DONTWAIT) && len && !worth_a_look(sk) &&
		 READ_ONCE(sk->sk_rcvtimeo) == MAX_SCHEDULE_TIMEOUT;
	if (waited)
		wait_unlocked(sk);
	lock_sock(sk);
	/* Another task has disconnected it, as in wait_for_data(). */
	if (waited && rcu_access_pointer(sovia_sk(sk)->conn) != conn)
		ret = -EPIPE;
	else if (sk->sk_state != TCP_LISTEN)
		ret = recv_locked(sk, sink, len, flags, target);
	if (ret > 0 && READ_ONCE(sovia_sk(sk)->busy.since))
		sovia_busy_waited(sk);
	if (!(flags & MSG_PEEK))
		sovia_tell_window(sk);
	release_sock(sk);
	trace_sovia_sock_recv(sk, ret);
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
	/* The receiver may have turned timestamps on after the data arrived without one. */
	if (!skb->tstamp)
		sovia_rx_stamp(sk, skb);
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
 * @sk: the socket, or TCP's that the descriptor has just got
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

	if (unlikely(!sovia_is(sk)))
		return inet_stream_ops.set_rcvlowat(sk, val);
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		most = sk->sk_rcvbuf;
	val = min(val, most / 2);
	WRITE_ONCE(sk->sk_rcvlowat, val ? : 1);
	if (val > sk->sk_rcvbuf / 2) {
		set_rcvbuf(sk, val * 2);
		sovia_tell_window(sk);
	}
	sovia_rx_ready(sk, sovia_conn_of(sk), false);
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
		return sovia_rx_enough(ss, start + 1, target);
	return sovia_rx_enough(ss, start, target);
}

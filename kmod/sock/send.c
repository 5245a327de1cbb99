// SPDX-License-Identifier: GPL-2.0-only
/*
 * From the program to the lane (KSOVIA 3.2).
 *
 * sendmsg() copies into messages on sk_write_queue; sovia_push() hands them to
 * the lane as the peer's window, the lane's queue limit, and the rules of combining
 * allow.  A message that has not been handed over can still grow (SOVIA 4.2).
 *
 * Memory: every message is charged to sk_wmem_alloc until it is acknowledged and
 * completed; its destructor wakes the writer (mem.c).
 */
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/sched/signal.h>
#include <net/inet_common.h>
#include "compat/splice.h"
#include "core/trace.h"
#include "defer.h"
#include "fallback.h"
#include "lane/direct.h"
#include "lane/lane.h"
#include "lane/lane_tx.h"
#include "mem.h"
#include "send.h"
#include "send_page.h"
#include "urgent.h"

/* A payload that starts up to this size is stored behind the header. */
#define SOVIA_LINEAR		1024
/* Maximum time that TCP_CORK and MSG_MORE hold back a message. */
#define SOVIA_CORK_MAX		msecs_to_jiffies(200)
/* Delay until a message that could not be split for lack of memory is retried. */
#define SOVIA_SPLIT_AGAIN	msecs_to_jiffies(10)
/* An acknowledgment is requested for each such fraction of the buffer. */
#define SOVIA_ASK_PARTS		4

static bool combine = true;
module_param(combine, bool, 0644);
MODULE_PARM_DESC(combine, "combine small sends into a message (Y)");

/**
 * sovia_untaken() - what has been handed to the lane and the peer's socket does not take
 * @ss: the socket
 *
 * The peer's lane acknowledges it as any message; its socket answers it with RESET.
 *
 * Context: any.
 * Return: bytes.
 */
u32 sovia_untaken(const struct sovia_sock *ss)
{
	u32 taken, nxt = READ_ONCE(ss->tx.nxt);

	/* Pairs with sovia_peer_refuses(). */
	if (likely(!smp_load_acquire(&ss->tx.refused)))
		return 0;
	taken = READ_ONCE(ss->tx.taken);
	return sovia_before(taken, nxt) ? nxt - taken : 0;
}

/**
 * sovia_peer_refuses() - the peer's socket takes no more data
 * @sk: the socket
 * @taken: stream offset up to which it has
 *
 * Context: the lane's bottom half, one at a time, sk_receive_queue.lock held.
 */
void sovia_peer_refuses(struct sock *sk, u32 taken)
{
	struct sovia_tx *tx = &sovia_sk(sk)->tx;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	WRITE_ONCE(tx->taken, taken);
	/* Pairs with sovia_untaken(). */
	smp_store_release(&tx->refused, true);
}

/**
 * sovia_outq() - SIOCOUTQ
 * @sk: the socket
 *
 * Context: any.
 * Return: bytes that the peer has not acknowledged; of the last connection, after it has ended.
 */
int sovia_outq(const struct sock *sk)
{
	const struct sovia_sock *ss = sovia_sk(sk);
	const struct sovia_conn *conn;
	u32 untaken;
	int outq;

	rcu_read_lock();
	conn = rcu_dereference(ss->conn);
	if (conn) {
		outq = atomic_read(&conn->outq);
		/* Pairs with sovia_conn_account(): what is dropped goes from there to here. */
		smp_rmb();
		outq += atomic_read(&conn->lost);
		/* Beside what the lane never had. */
		untaken = sovia_untaken(ss);
		if (unlikely(untaken)) {
			untaken += READ_ONCE(ss->tx.queued) + READ_ONCE(ss->tx.purged);
			outq = max_t(int, outq, untaken);
		}
	} else {
		outq = READ_ONCE(ss->tx.lost);
	}
	rcu_read_unlock();
	return outq;
}
EXPORT_SYMBOL_GPL(sovia_outq);

/* Is the peer's window used up? */
static bool window_closed(const struct sovia_sock *ss)
{
	return READ_ONCE(ss->tx.wnd_end) == READ_ONCE(ss->tx.nxt);
}

/* Maximum of unacknowledged data of a socket. */
static int send_limit(const struct sock *sk)
{
	int size = READ_ONCE(sk->sk_sndbuf);

	/*
	 * With no memory left, one message: as TCP, which forces the first.  A writer that could
	 * have none would have nothing in flight whose end tells it to try again.
	 */
	if (sovia_mem_short(sk))
		return sovia_mem_none(sk) ? 1 : min(size, sovia_mem_least_sndbuf(sk));
	/* With a closed window, buffer as much as TCP would. */
	if (!(sk->sk_userlocks & SOCK_SNDBUF_LOCK) && window_closed(sovia_sk(sk)) &&
	    sovia_mem_ample(sk))
		return clamp(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]),
			     size, SOVIA_BUF_MOST);
	return size;
}

static bool has_room(const struct sock *sk, bool wake)
{
	int used = sk_wmem_alloc_get(sk);
	int size = send_limit(sk);
	u32 lowat = READ_ONCE(sovia_sk(sk)->opt.notsent_lowat);

	/* Like TCP, wake a writer when half of TCP_NOTSENT_LOWAT is free. */
	if (lowat && READ_ONCE(sovia_sk(sk)->tx.queued) << !!wake >= lowat)
		return false;
	return wake ? used <= size - size / 3 : used < size;
}

/**
 * sovia_stream_memory_free() - struct proto::stream_memory_free
 * @sk: the socket
 * @wake: asked to wake the writer: then only if there is enough room
 *
 * Context: any.
 * Return: true if the writer may go on.
 */
bool sovia_stream_memory_free(const struct sock *sk, int wake)
{
	if (has_room(sk, wake))
		return true;
	/* Pairs with sovia_check_space(): set SOCK_NOSPACE, then check for room. */
	smp_mb();
	return has_room(sk, wake);
}

/**
 * sovia_check_space() - there may be room again
 * @sk: the socket, pinned by a charge or a reference
 *
 * Wakes only writers that have found no room, as tcp_check_space() does: an
 * edge for each acknowledged message would wake programs without need.
 *
 * Context: any.
 */
void sovia_check_space(struct sock *sk)
{
	struct socket *sock;

	/* Pairs with sovia_stream_memory_free(): free room, then check the flag. */
	smp_mb();
	/* The socket may be orphaned concurrently; struct socket is freed by RCU. */
	rcu_read_lock();
	sock = READ_ONCE(sk->sk_socket);
	if (sock && test_bit(SOCK_NOSPACE, &sock->flags))
		sk->sk_write_space(sk);
	rcu_read_unlock();
}

/**
 * sovia_write_space() - sk->sk_write_space: wake the writer if there is room
 * @sk: the socket, pinned by a charge or a reference
 *
 * Context: any.
 */
void sovia_write_space(struct sock *sk)
{
	struct socket_wq *wq;
	struct socket *sock;

	/* The socket may be orphaned concurrently; struct socket is freed by RCU. */
	rcu_read_lock();
	sock = READ_ONCE(sk->sk_socket);
	wq = rcu_dereference(sk->sk_wq);
	if (sock && wq && sovia_stream_memory_free(sk, 1)) {
		clear_bit(SOCK_NOSPACE, &sock->flags);
		if (skwq_has_sleeper(wq))
			wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM |
						   EPOLLWRBAND);
		if (wq->fasync_list && !(sk->sk_shutdown & SEND_SHUTDOWN))
			sock_wake_async(wq, SOCK_WAKE_SPACE, POLL_OUT);
	}
	rcu_read_unlock();
}

/**
 * sovia_purge_queue() - discard data that the lane does not have yet
 * @sk: the socket
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_purge_queue(struct sock *sk)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	struct sovia_tx *tx = &sovia_sk(sk)->tx;
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&sk->sk_write_queue))) {
		sovia_conn_account(conn, skb->len, false);
		kfree_skb(skb);
	}
	WRITE_ONCE(tx->purged, tx->purged + tx->queued);
	WRITE_ONCE(tx->queued, 0);
}

/**
 * sovia_purge_send() - discard unsent data
 * @sk: the socket
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_purge_send(struct sock *sk)
{
	struct sovia_conn *conn = sovia_conn_of(sk);

	sovia_purge_queue(sk);
	if (conn)
		sovia_conn_purge(conn);
}

/* ---- handing over ---------------------------------------------------- */

/* Split a message at @len; the rest is queued behind it. */
static int send_split(struct sock *sk, struct sk_buff *skb, u32 len)
{
	struct sk_buff *rest;
	int linear = max_t(int, skb_headlen(skb) - (int)len, 0);

	rest = sovia_msg_alloc(linear, GFP_ATOMIC | __GFP_NOWARN);
	if (!rest)
		return -ENOMEM;
	sovia_own_tx(rest, sk);
	*SOVIA_TX_CB(rest) = *SOVIA_TX_CB(skb);
	skb_split(skb, rest, len);
	SOVIA_TX_CB(skb)->flags &= ~(SOVIA_F_FIN | SOVIA_F_GONE | SOVIA_F_TAKEN);
	SOVIA_TX_CB(skb)->len = skb->len;
	SOVIA_TX_CB(rest)->len = rest->len;
	__skb_queue_after(&sk->sk_write_queue, skb, rest);
	return 0;
}

/* Is an urgent byte queued?  It is never held back. */
static bool urgent_waits(const struct sovia_sock *ss)
{
	return sovia_before(ss->tx.nxt, ss->urg.snd_end);
}

/* Should the message wait for more data? */
static bool held_back(const struct sovia_sock *ss)
{
	return (ss->opt.cork || READ_ONCE(ss->tx.more)) && !ss->tx.flush;
}

/*
 * All data is in flight, so only the buffer limits the writer, not the peer or the
 * lane: enlarge it.
 */
static bool grow_buffer(struct sock *sk)
{
	int most = min(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]),
		       2 * sovia_conn_flight_max(sovia_conn_of(sk)));

	if (!skb_queue_empty(&sk->sk_write_queue) || (sk->sk_userlocks & SOCK_SNDBUF_LOCK) ||
	    sk->sk_sndbuf >= most || !sovia_mem_ample(sk))
		return false;
	WRITE_ONCE(sk->sk_sndbuf, min_t(u32, 2U * sk->sk_sndbuf, most));
	return true;
}

/* Hand a message to the lane, unless the lane has no room now. */
static bool hand_over(struct sock *sk, struct sk_buff *skb, bool small)
{
	struct sovia_sock *ss = sovia_sk(sk);
	struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);
	bool prompt = ss->opt.nodelay || !READ_ONCE(combine);
	u32 unasked = ss->tx.unasked + skb->truesize;
	u32 len = skb->len;
	bool ask;

	__skb_unlink(skb, &sk->sk_write_queue);
	/* Request acknowledgments often enough to keep the writer busy. */
	ask = unasked >= READ_ONCE(sk->sk_sndbuf) / SOVIA_ASK_PARTS && !grow_buffer(sk);
	cb->prompt = prompt;
	sovia_conn_prefer(sovia_conn_of(sk), sk->sk_priority >= TC_PRIO_INTERACTIVE);
	if (ask)
		cb->flags |= SOVIA_F_ACKREQ;
	if (!sovia_conn_send(sovia_conn_of(sk), skb, small && !prompt)) {
		__skb_queue_head(&sk->sk_write_queue, skb);
		return false;
	}
	/* It may have been freed already. */
	ss->tx.unasked = ask ? 0 : unasked;
	WRITE_ONCE(ss->tx.nxt, ss->tx.nxt + len);
	ss->tx.bytes += len;
	if (!urgent_waits(ss))
		ss->urg.snd_end = ss->tx.nxt;
	WRITE_ONCE(ss->tx.queued, ss->tx.queued - len);
	return true;
}

/* Bytes that the peer's window allows. */
static u32 window_room(const struct sovia_sock *ss)
{
	u32 room = READ_ONCE(ss->tx.wnd_end) - ss->tx.nxt;

	if (room)
		return room;
	/* Pairs with sovia_window_moved(): either we see the window, or it sees our message. */
	smp_mb();
	return READ_ONCE(ss->tx.wnd_end) - ss->tx.nxt;
}

/* Send the first message of the queue if allowed, split at the window if necessary. */
static bool push_one(struct sock *sk, struct sk_buff *skb, u32 full)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool data = SOVIA_TX_CB(skb)->type == SOVIA_DATA;
	bool last = skb_queue_is_last(&sk->sk_write_queue, skb);
	bool fin = SOVIA_TX_CB(skb)->flags & SOVIA_F_FIN;
	bool small = data && last && !fin && skb->len < full && !urgent_waits(ss);
	/* Who has closed opens no window: it resets when something comes. */
	u32 room = unlikely(ss->end.peer_gone) ? U32_MAX : window_room(ss);

	if (small && held_back(ss)) {
		if (!timer_pending(&ss->tx.cork_timer))
			sk_reset_timer(sk, &ss->tx.cork_timer, jiffies + SOVIA_CORK_MAX);
		return false;
	}
	if (data && !room) {
		sovia_stat_inc(sovia_net(sock_net(sk)), window_stall);
		trace_sovia_window_stall(sk, skb->len);
		return false;
	}
	if (data && skb->len > room && send_split(sk, skb, room)) {
		sovia_stat_inc(sovia_net(sock_net(sk)), nomem);
		/* No other event may retry it. */
		sk_reset_timer(sk, &ss->tx.cork_timer, jiffies + SOVIA_SPLIT_AGAIN);
		return false;
	}
	return hand_over(sk, skb, small);
}

/**
 * sovia_push() - hand as many messages to the lane as allowed
 * @sk: the socket
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_push(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	struct sk_buff *skb;
	bool moved = false;
	u32 full;

	if ((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT))
		return;
	full = sovia_conn_payload(sovia_conn_of(sk));
	while ((skb = skb_peek(&sk->sk_write_queue)) && push_one(sk, skb, full))
		moved = true;
	if (!skb)
		ss->tx.flush = false;
	/*
	 * A message that the provider took over at once was freed before it was counted, and
	 * a window that is closed now raises the writer's limit.
	 */
	if (moved)
		sovia_check_space(sk);
}

/**
 * sovia_cork_timeout() - a message has been corked for long enough
 * @timer: struct sovia_tx::cork_timer; its reference is consumed
 *
 * Context: softirq.
 */
void sovia_cork_timeout(struct timer_list *timer)
{
	struct sovia_sock *ss = timer_container_of(ss, timer, tx.cork_timer);
	struct sock *sk = (struct sock *)ss;

	WRITE_ONCE(ss->tx.flush, true);
	sovia_defer_sock(sk, SOVIA_DEFER_PUSH, 0);
	sock_put(sk);
}

/**
 * sovia_queue_fin() - end the stream after what is queued
 * @sk: FIN_WAIT1 or LAST_ACK
 * @gone: the program has closed the socket and will not read any more
 *
 * Context: process, socket lock held.
 */
void sovia_queue_fin(struct sock *sk, bool gone)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);

	if (skb) {
		SOVIA_TX_CB(skb)->flags |= SOVIA_F_FIN;
	} else {
		skb = sovia_msg_alloc(0, GFP_KERNEL | __GFP_NOFAIL);
		SOVIA_TX_CB(skb)->type = SOVIA_FIN;
		sovia_own_tx(skb, sk);
		__skb_queue_tail(&sk->sk_write_queue, skb);
	}
	if (gone)
		SOVIA_TX_CB(skb)->flags |= SOVIA_F_GONE;
	SOVIA_TX_CB(skb)->flags |= sovia_conn_tell_taken(sovia_conn_of(sk), &SOVIA_TX_CB(skb)->ref);
	sovia_sk(sk)->end.fin_gone = gone;
	sovia_push(sk);
}

/* ---- copying --------------------------------------------------------- */

/* Append to the linear part of a message. */
static int append_linear(struct sk_buff *skb, struct iov_iter *from, int len)
{
	if (!copy_from_iter_full(skb_put(skb, len), len, from)) {
		skb_trim(skb, skb->len - len);
		return -EFAULT;
	}
	return len;
}

/* A message has grown by @len bytes of pages. */
static void send_charge(struct sk_buff *skb, int len)
{
	skb->len += len;
	skb->data_len += len;
	sovia_grow_tx(skb, len);
}

/* Append to the pages of a message; 0 if it has no room for another page. */
static int append_page(struct sock *sk, struct sk_buff *skb, struct iov_iter *from, int len,
		       int max_frags)
{
	struct page_frag *pfrag = sk_page_frag(sk);
	int i = skb_shinfo(skb)->nr_frags;
	bool merge;

	/* Not sk_page_frag_refill(), which would shrink the send buffer permanently. */
	if (!sovia_send_page_refill(pfrag, sk->sk_allocation))
		return -ENOBUFS;
	merge = skb_can_coalesce(skb, i, pfrag->page, pfrag->offset);
	if (!merge && i >= max_frags)
		return 0;
	len = min_t(int, len, pfrag->size - pfrag->offset);
	if (copy_page_from_iter(pfrag->page, pfrag->offset, len, from) != len)
		return -EFAULT;
	if (merge) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], len);
	} else {
		get_page(pfrag->page);
		skb_fill_page_desc(skb, i, pfrag->page, pfrag->offset, len);
	}
	pfrag->offset += len;
	send_charge(skb, len);
	return len;
}

/* Spliced pages, with their references. */
static int append_spliced(struct sock *sk, struct sk_buff *skb, struct iov_iter *from, int len,
			  int max_frags)
{
	int i = skb_shinfo(skb)->nr_frags;
	struct page *page;
	size_t off;

	if (i >= max_frags)
		return 0;
	len = iov_iter_get_pages2(from, &page, len, 1, &off);
	if (len <= 0)
		return len ? len : -EIO;
	if (!sendpage_ok(page)) {
		/* Slab memory has no page references: copy it. */
		put_page(page);
		iov_iter_revert(from, len);
		return append_page(sk, skb, from, len, max_frags);
	}
	if (skb_can_coalesce(skb, i, page, off)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], len);
		put_page(page);
	} else {
		skb_fill_page_desc(skb, i, page, off, len);
	}
	/* The pages may be written to until they are sent. */
	skb_shinfo(skb)->flags |= SKBFL_SHARED_FRAG;
	send_charge(skb, len);
	return len;
}

/* Append to a message; 0 if it is full, or a negative errno. */
static int send_append(struct sock *sk, struct sk_buff *skb, struct msghdr *msg, int full)
{
	bool lent = (msg->msg_flags & MSG_SPLICE_PAGES) && iov_iter_is_bvec(&msg->msg_iter);
	struct sovia_conn *conn = sovia_conn_of(sk);
	struct iov_iter *from = &msg->msg_iter;
	struct sovia_sock *ss = sovia_sk(sk);
	int len = min_t(size_t, full - (int)skb->len, iov_iter_count(from));
	int room = skb_is_nonlinear(skb) ? 0 : skb_tailroom(skb);

	if (len <= 0)
		return 0;
	if (lent)
		len = append_spliced(sk, skb, from, len, sovia_conn_max_frags(conn));
	/* All or nothing: data that is not there ends the call, as with TCP. */
	else if (iov_iter_count(from) <= room)
		len = append_linear(skb, from, len);
	else
		len = append_page(sk, skb, from, len, sovia_conn_max_frags(conn));
	if (len > 0) {
		SOVIA_TX_CB(skb)->len = skb->len;
		atomic_add(len, &conn->outq);
		WRITE_ONCE(ss->tx.queued, ss->tx.queued + len);
	}
	return len;
}

/* The message to append to: the last one, or a new one. */
static struct sk_buff *tail_message(struct sock *sk, size_t linear)
{
	struct sk_buff *skb;

	skb = sovia_msg_alloc(linear <= SOVIA_LINEAR ? linear : 0, sk->sk_allocation);
	if (!skb)
		return NULL;
	SOVIA_TX_CB(skb)->type = SOVIA_DATA;
	sovia_own_tx(skb, sk);
	__skb_queue_tail(&sk->sk_write_queue, skb);
	return skb;
}

static void drop_empty_tail(struct sock *sk)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);

	if (skb && !skb->len && SOVIA_TX_CB(skb)->type == SOVIA_DATA) {
		__skb_unlink(skb, &sk->sk_write_queue);
		kfree_skb(skb);
	}
}

static int wait_for_memory(struct sock *sk, long *timeo)
{
	sovia_push(sk);
	if (sk_stream_memory_free(sk) || grow_buffer(sk))
		return 0;
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* Pairs with the destructor: set the flag, then check again. */
	smp_mb__after_atomic();
	if (sk_stream_memory_free(sk))
		return 0;
	return sk_stream_wait_memory(sk, timeo);
}

/*
 * The buffer has room, but the allocation failed, or the program's control group is at its
 * limit: wait until some is freed, as TCP does.
 */
static int wait_for_others(struct sock *sk, long *timeo)
{
	sovia_push(sk);
	return sk_stream_wait_memory(sk, timeo);
}

/*
 * Copy some of the data, or the @first of it.  Returns bytes, 0 to try again, or a
 * negative errno.
 */
static int send_copy_some(struct sock *sk, struct msghdr *msg, u32 full, bool first, long *timeo)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);
	int len;

	if (skb && SOVIA_TX_CB(skb)->type == SOVIA_DATA && skb->len < full &&
	    !(first && !READ_ONCE(combine))) {
		len = send_append(sk, skb, msg, full);
		if (len)
			return len;
	}
	if (!sk_stream_memory_free(sk))
		return wait_for_memory(sk, timeo);
	skb = tail_message(sk, msg->msg_flags & MSG_SPLICE_PAGES ? 0 : msg_data_left(msg));
	if (!skb)
		return -ENOBUFS;
	len = send_append(sk, skb, msg, full);
	if (len <= 0)
		drop_empty_tail(sk);
	return len;
}

static int check_sendable(struct sock *sk, long *timeo)
{
	if ((1 << sk->sk_state) & ~(TCPF_ESTABLISHED | TCPF_CLOSE_WAIT)) {
		int err = sk_stream_wait_connect(sk, timeo);

		if (err)
			return err;
	}
	if (sk->sk_err || (sk->sk_shutdown & SEND_SHUTDOWN))
		return -EPIPE;
	return 0;
}

/* Send a full message at once, not at the end of the call. */
static void push_full(struct sock *sk, u32 full)
{
	struct sk_buff *skb = skb_peek_tail(&sk->sk_write_queue);

	if (skb && skb->len >= full)
		sovia_push(sk);
}

/* The payload of a full message: less if memory is short. */
static u32 full_message(const struct sock *sk)
{
	u32 full = sovia_conn_payload(sovia_conn_of(sk));

	if (sovia_mem_short(sk))
		full = min_t(u32, full, sovia_mem_least_sndbuf(sk));
	return full;
}

/* EAGAIN: with nothing in flight no event would wake the writer, so check again. */
static void check_idle(struct sock *sk)
{
	/* Pairs with sovia_check_space(): the flag has been set. */
	smp_mb();
	if (!sovia_outq(sk))
		sk->sk_write_space(sk);
}

/*
 * A small write to a socket here, of whose messages none waits: its bytes are copied to where they
 * are read from.  False if it has to become a message.
 */
static bool send_small(struct sock *sk, struct msghdr *msg)
{
	const int special = MSG_OOB | MSG_MORE | MSG_SPLICE_PAGES;
	struct sovia_sock *ss = sovia_sk(sk);
	size_t len = msg_data_left(msg);

	if (len > SOVIA_COPYBREAK || (msg->msg_flags & special) || ss->opt.cork ||
	    !len || len > window_room(ss) || !skb_queue_empty(&sk->sk_write_queue) ||
	    !sovia_conn_copy(sovia_conn_of(sk), &msg->msg_iter, len))
		return false;
	WRITE_ONCE(ss->tx.more, false);
	ss->tx.bytes += len;
	WRITE_ONCE(ss->tx.nxt, ss->tx.nxt + len);
	ss->urg.snd_end = ss->tx.nxt;
	return true;
}

static int send_locked(struct sock *sk, struct msghdr *msg)
{
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	size_t len = msg_data_left(msg);
	struct sovia_sock *ss = sovia_sk(sk);
	int err, ret, copied = 0;
	int disconnects;
	u32 full;

	err = check_sendable(sk, &timeo);
	if (unlikely(sovia_fallback_done(sk)))
		return -ENOTSUPP;
	if (err)
		return sk_stream_error(sk, msg->msg_flags, err);
	if (send_small(sk, msg))
		return len;
	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	if (ss->tx.queued)
		sovia_stat_inc(sovia_net(sock_net(sk)), combined);
	full = full_message(sk);
	disconnects = sk->sk_disconnects;
	while (msg_data_left(msg)) {
		ret = send_copy_some(sk, msg, full, !copied, &timeo);
		if (ret == -ENOBUFS)
			ret = wait_for_others(sk, &timeo);
		if (ret < 0) {
			err = ret;
			break;
		}
		copied += ret;
		/* A call that sends nothing does not flush corked data. */
		if (ret) {
			trace_sovia_sock_copy(sk, ret);
			WRITE_ONCE(ss->tx.more, msg->msg_flags & MSG_MORE);
		}
		/* URGENT has to be sent before the byte. */
		if (msg_data_left(msg) || !(msg->msg_flags & MSG_OOB))
			push_full(sk, full);
		if (sk->sk_err || (sk->sk_shutdown & SEND_SHUTDOWN)) {
			err = -EPIPE;
			break;
		}
	}
	if (copied) {
		/* Who waited for memory may have lost the connection, or find another one. */
		if ((msg->msg_flags & MSG_OOB) && disconnects == sk->sk_disconnects &&
		    ((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT)))
			sovia_send_urgent(sk);
		sovia_push(sk);
		return copied;
	}
	if (err == -EAGAIN)
		check_idle(sk);
	return err ? sk_stream_error(sk, msg->msg_flags, err) : 0;
}

/**
 * sovia_sendmsg() - struct proto::sendmsg
 * @sk: the socket
 * @msg: data and flags; an address in it is ignored, as TCP does
 * @len: bytes of data
 *
 * Context: process, may sleep; no locks.
 * Return: bytes taken, or a negative errno; -ENOTSUPP if the descriptor has got TCP's sk.
 */
int sovia_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	int ret;

	lock_sock(sk);
	ret = send_locked(sk, msg);
	release_sock(sk);
	trace_sovia_sock_send(sk, ret);
	return ret;
}

/**
 * sovia_give_back() - PRESSURE came: give back what is left of the peer's window
 * @sk: in any state
 * @end: stream offset to which the peer wants it back
 *
 * What has been handed to the lane keeps its place.  @end may be news: up to there the peer had
 * room that it had not told of.
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_give_back(struct sock *sk, u32 end)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	struct sovia_sock *ss = sovia_sk(sk);

	if (!conn || sk->sk_state == TCP_CLOSE)
		return;
	if (sovia_before(end, ss->tx.nxt))
		end = ss->tx.nxt;
	spin_lock_bh(&sk->sk_receive_queue.lock);
	WRITE_ONCE(ss->tx.wnd_end, end);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	sovia_conn_control(conn, SOVIA_RETURN, end);
	if (ss->tx.queued)
		sovia_push(sk);
}

/**
 * sovia_no_more() - data has arrived: MSG_MORE holds nothing back any more, as with TCP
 * @sk: the socket
 *
 * Context: the lane's bottom half, or the socket lock held.
 * Return: true if queued data has waited for more.
 */
bool sovia_no_more(struct sock *sk)
{
	struct sovia_tx *tx = &sovia_sk(sk)->tx;

	if (likely(!READ_ONCE(tx->more)))
		return false;
	WRITE_ONCE(tx->more, false);
	return READ_ONCE(tx->queued);
}

/**
 * sovia_window_moved() - the peer has moved its window
 * @sk: the socket
 * @window: its new end, a stream offset; ignored if it is not beyond the current one
 *
 * Context: the lane's bottom half, one at a time, sk_receive_queue.lock held.
 * Return: true if queued data may have waited for it.
 */
bool sovia_window_moved(struct sock *sk, u32 window)
{
	struct sovia_sock *ss = sovia_sk(sk);

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	/* Of a socket here, as it is now: without a lane, a message may be older than PRESSURE. */
	window = sovia_direct_window(sovia_conn_of(sk), window);
	if (!sovia_before(ss->tx.wnd_end, window))
		return false;
	WRITE_ONCE(ss->tx.wnd_end, window);
	/* Pairs with window_room(): either we see its message, or it sees the window. */
	smp_mb();
	return READ_ONCE(ss->tx.queued);
}

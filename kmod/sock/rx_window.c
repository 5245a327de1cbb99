// SPDX-License-Identifier: GPL-2.0-only
/*
 * The window of a socket: what its peer may send.
 *
 * The window is half of the receive buffer in payload bytes.  Buffers at least
 * half full (see sovia_conn_copybreak()) keep the memory below the other half.
 *
 * The smallest window has two buffers, LEAST_FIRST and LEAST_SECOND, into which all that arrives is
 * copied.  They have room for it, as it opens only when a whole buffer has been read.
 *
 * A window is a promise: it is in the ledger (mem.c) before the peer learns of it.  When memory is
 * short, the peer is asked to give back what it has not used (sovia_rx_lower()).  Its answer, in
 * order with its data, says how far it has got; until then the old window holds and no message
 * tells of another one (Documentation/models/promise.pml).
 */
#include "charge.h"
#include "link/link_conns.h"
#include "mem.h"
#include "rx.h"

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

/* No more data is taken: FIN or RESET tells the peer how far it was. */
static void refuse_more(const struct sock *sk)
{
	struct sovia_conn *conn = sovia_conn_of(sk);

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (!conn)
		return;
	WRITE_ONCE(conn->taken, sovia_sk(sk)->rx.nxt);
	/* Pairs with sovia_conn_tell_taken(). */
	smp_store_release(&conn->refuses, true);
}

/*
 * Open the window as far as the buffer and the ledger have room, but to no more than @most bytes;
 * of what the ledger has, @kept bytes are promised still.
 */
static void open_window(struct sock *sk, u32 most, u32 kept)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	struct sovia_conn *conn = sovia_conn_of(sk);
	u32 size, from = rx->copied;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (likely(!rx->lowering && !rx->over)) {
		size = sovia_mem_window(sk, min(window_size(sk), most), kept);
		/* Then all that arrives is gathered. */
		if (unlikely(size <= SOVIA_WINDOW_LEAST))
			from = rx->base;
		WRITE_ONCE(conn->wnd_update_min, size / 4);
		if (sovia_before(rx->most, from + size))
			set_window(rx, conn, from + size);
	}
	/* A large buffer of which a part has been read is not of the smallest window. */
	if (unlikely(rx->most - from > SOVIA_WINDOW_LEAST))
		from = rx->copied;
	sovia_mem_promise(sk, rx->most - from);
}

/**
 * sovia_rx_advance() - open the window as far as the buffer and the ledger have room
 * @sk: the socket
 *
 * It never shrinks.  The smallest one opens by whole buffers, so that what arrives always finds
 * room in as many of them.
 *
 * Context: any but hard interrupts, the receive queue's lock held.
 */
void sovia_rx_advance(struct sock *sk)
{
	open_window(sk, U32_MAX, sovia_sk(sk)->rx.promised);
}

/**
 * sovia_rx_settle() - nothing more is expected from the peer: promise no more than what has come
 * @sk: the socket
 *
 * Context: the receive queue's lock held.
 */
void sovia_rx_settle(struct sock *sk)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;

	rx->over = true;
	rx->most = rx->nxt;
	sovia_mem_asked(sk, 0);
	sovia_mem_promise(sk, rx->most - rx->copied);
	sovia_mem_lend(sk);
}

/**
 * sovia_rx_over() - nothing more is expected from the peer
 * @sk: its connection has ended, or is about to
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_rx_over(struct sock *sk)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	refuse_more(sk);
	sovia_rx_settle(sk);
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
	sovia_sk(sk)->rx.base = sovia_sk(sk)->rx.nxt;
	sovia_rx_settle(sk);
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

/*
 * May the peer be asked for a part of its window, from @end on?  @list: why it is.  Not over a
 * parked link, which would need receives again, and a peer that can be reached.
 */
static bool may_lower(const struct sock *sk, enum sovia_lent list, u32 *end)
{
	const struct sovia_link *link = sovia_conn_link(sovia_conn_of(sk));
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;

	*end = list == SOVIA_LENT_LARGE ? rx->copied + SOVIA_WINDOW_FIRST :
					  rx->base + sovia_mem_floor(sk);
	if (sovia_before(*end, rx->nxt))
		*end = rx->nxt;
	return rx->asks && !rx->lowering && !rx->over && sovia_before(*end, rx->most) &&
	       sovia_link_has_return(link) && !READ_ONCE(link->lane.parked);
}

/**
 * sovia_rx_lower() - ask the peer to give back what it does not need of its window
 * @sk: a socket in any state; the caller has a reference
 * @list: SOVIA_LENT_LARGE: but for a message; SOVIA_LENT_SOME: but for the smallest window
 *
 * Context: process or softirq; no locks.
 * Return: bytes of memory that may come back.
 */
s64 sovia_rx_lower(struct sock *sk, enum sovia_lent list)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	struct sovia_conn *conn;
	s64 asked = 0;
	u32 end;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	conn = sovia_conn_of(sk);
	if (conn && may_lower(sk, list, &end))
		asked = rx->cost - sovia_mem_cost(sk, end - rx->copied);
	if (asked > 0) {
		sovia_conn_get(conn);
		rx->lowering = true;
		rx->left = list == SOVIA_LENT_LARGE ? SOVIA_WINDOW_FIRST : sovia_mem_floor(sk);
		WRITE_ONCE(conn->rcv_wnd_end, end);
		sovia_mem_asked(sk, asked);
	}
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	if (asked > 0) {
		sovia_conn_control(conn, SOVIA_PRESSURE, 0);
		sovia_conn_put(conn);
	}
	return max(asked, 0LL);
}

/**
 * sovia_rx_forget_asked() - a peer has not answered PRESSURE for long: ask others
 * @sk: a socket in any state; the caller has a reference
 *
 * Its answer is taken when it comes.
 *
 * Context: process or softirq; no locks.
 */
void sovia_rx_forget_asked(struct sock *sk)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	sovia_mem_asked(sk, 0);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
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
		sovia_mem_asked(sk, 0);
		/* After the end of the stream nothing beyond rx->nxt is promised. */
		if (!rx->over) {
			set_window(rx, sovia_conn_of(sk), end);
			/* What came back stays back until data moves. */
			open_window(sk, rx->left, rx->most - rx->copied);
		}
		sovia_mem_lend(sk);
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
	sovia_mem_buffers(sk);
	spin_lock_bh(&sk->sk_receive_queue.lock);
	rcu_assign_pointer(sovia_sk(sk)->conn, conn);
	sovia_sk(sk)->rx.open = open;
	sovia_sk(sk)->rx.over = false;
	sovia_sk(sk)->rx.asks = false;
	sovia_sk(sk)->rx.lowering = false;
	sovia_mem_asked(sk, 0);
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
	sovia_rx_settle(sk);
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
		/* The window is that of CONN until data moves. */
		ss->rx.open = true;
		ss->rx.asks = true;
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
	refuse_more(sk);
	left = ss->rx.nxt != ss->rx.copied + ss->urg.skip;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	return left;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/rx_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Closing of connections (SOVIA 4.4, figure 11, without its FINACK: see
 * Documentation/protocol.rst).
 *
 *	shutdown()	FIN --------->	CLOSE_WAIT, the program reads EOF
 *	FIN_WAIT1, FIN_WAIT2
 *			<--------- FIN	LAST_ACK
 *	CLOSE				CLOSE
 *
 *	close()		FIN|GONE ---->	CLOSE_WAIT
 *	FIN_WAIT1, CLOSE		CLOSE when the program closes
 *
 * FIN follows the data in the stream; RESET is a control message.  It ends both
 * directions at once: close() with unread data or with a linger time of 0, data for
 * a socket that does not exist or has shut down both halves, a protocol violation by
 * the peer.
 *
 * close_finish() is the only way into CLOSE for a connection; only sovia_destroy()
 * drops the socket's own reference.
 */
#include <net/ip.h>
#include "close.h"
#include "fallback.h"
#include "lane/conn_table.h"
#include "link/link_conns.h"
#include "listen.h"
#include "mem.h"
#include "port.h"
#include "rx.h"
#include "send.h"
#include "sock_list.h"
#include "urgent.h"

/* An orphan whose peer acknowledges no data is given up after this time. */
#define SOVIA_ORPHAN_TIMEOUT	(60 * HZ)

/* Leave the connection, if there is one; the caller gets the socket's reference. */
static struct sovia_conn *leave_conn(struct sock *sk)
{
	struct sovia_conn *conn = sovia_conn_of(sk);

	sovia_purge_queue(sk);
	if (!conn)
		return NULL;
	WRITE_ONCE(sovia_sk(sk)->tx.lost, sovia_outq(sk));
	sovia_conn_unhash(conn);
	sovia_link_detach(conn);
	/* First: upcalls rely on the socket's pointer. */
	sovia_conn_leave(conn);
	sovia_rx_leave(sk);
	return conn;
}

/**
 * sovia_destroy() - drop the socket's reference to itself
 * @sk: in CLOSE and orphaned
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_destroy(struct sock *sk)
{
	sovia_sk(sk)->left = leave_conn(sk);
	sovia_put_port(sk);
	sovia_sock_unlist(sk);
	sk_stop_timer(sk, &sk->sk_timer);
	sk_stop_timer(sk, &sovia_sk(sk)->tx.cork_timer);
	sovia_rx_purge(sk);
	sovia_orphan_end(sk);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
	sock_put(sk);
}

/* The state has just become CLOSE, with @err: keep only what the program may still ask for. */
static void close_finish(struct sock *sk, int err)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	struct sovia_sock *ss = sovia_sk(sk);

	if (sock_flag(sk, SOCK_DEAD)) {
		sovia_destroy(sk);
		return;
	}
	if (conn) {
		sovia_conn_unhash(conn);
		sovia_link_detach(conn);
	}
	sovia_rx_over(sk);
	ss->connect.fallback = SOVIA_FALLBACK_NONE;
	if (!(sk->sk_userlocks & SOCK_BINDPORT_LOCK))
		sovia_put_port(sk);
	sk_stop_timer(sk, &sk->sk_timer);
	sk_stop_timer(sk, &ss->tx.cork_timer);
	sovia_purge_send(sk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	sk->sk_state_change(sk);
	if (err)
		sk_error_report(sk);
}

/**
 * sovia_step() - change the state, and finish if it is CLOSE afterwards
 * @sk: the socket
 * @event: what happened
 *
 * Context: socket lock held, process or softirq.
 * Return: true if the event was allowed.
 */
bool sovia_step(struct sock *sk, enum sovia_event event)
{
	if (!sovia_state_event(sk, event))
		return false;
	if (sk->sk_state == TCP_CLOSE)
		close_finish(sk, 0);
	return true;
}

/**
 * sovia_done() - the connection has ended
 * @sk: in any state
 * @err: positive errno for the program, 0 for none
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_done(struct sock *sk, int err)
{
	if (sk->sk_state == TCP_CLOSE)
		return;
	/* Set sk_err before sk_state: lockless readers of TCP_CLOSE must see the error. */
	if (err)
		WRITE_ONCE(sk->sk_err, err);
	if (sovia_state_event(sk, SOVIA_EV_ABORT))
		close_finish(sk, err);
}

/**
 * sovia_abort() - reset a connection
 * @sk: in any state
 * @err: positive errno for the program, or 0
 * @code: enum sovia_code for the peer
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_abort(struct sock *sk, int err, u32 code)
{
	struct sovia_conn *conn = sovia_conn_of(sk);

	if (sk->sk_state == TCP_CLOSE)
		return;
	if (conn && conn->hashed) {
		sovia_rx_over(sk);
		sovia_conn_purge(conn);
		sovia_conn_control(conn, SOVIA_RESET, code);
	}
	sovia_done(sk, err);
}

/* Forget deferred events. */
static void drop_deferred(struct sock *sk)
{
	spin_lock_bh(&sk->sk_lock.slock);
	sovia_sk(sk)->deferred = 0;
	spin_unlock_bh(&sk->sk_lock.slock);
}

/**
 * sovia_discard_child() - end a child that accept() will not return
 * @child: in no queue; the caller's reference is consumed
 *
 * Context: process or softirq; the listener's lock may be held.
 */
void sovia_discard_child(struct sock *child)
{
	sock_hold(child);
	/* Without a descriptor, no process can own it. */
	local_bh_disable();
	bh_lock_sock_nested(child);
	sovia_rx_close(child);
	sock_orphan(child);
	if (child->sk_state == TCP_CLOSE)
		sovia_destroy(child);
	else
		sovia_abort(child, 0, SOVIA_CODE_ABORT);
	bh_unlock_sock(child);
	local_bh_enable();
	sock_put(child);
}

/**
 * sovia_retire() - a descriptor has got another struct sock
 * @sk: the one that it had: in CLOSE or SYN_SENT
 *
 * Keeps only what calls need that are under way: they find it CLOSE.  The caller wakes them.
 *
 * Context: process, socket lock held.
 */
void sovia_retire(struct sock *sk)
{
	sovia_rx_close(sk);
	sovia_leave_link(sk);
	sovia_state_event(sk, SOVIA_EV_ABORT);
	sovia_put_port(sk);
	sovia_sock_unlist(sk);
	sk_stop_timer(sk, &sk->sk_timer);
	drop_deferred(sk);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
}

/* Restart both directions at offset 0. */
static void reset_stream(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	spin_lock_bh(&sk->sk_receive_queue.lock);
	ss->rx.nxt = 0;
	ss->rx.bytes = 0;
	ss->rx.copied = 0;
	ss->rx.base = 0;
	ss->rx.most = 0;
	ss->rx.open = false;
	ss->rx.fin = false;
	ss->rx.closed = false;
	ss->urg.state = SOVIA_URG_NONE;
	ss->urg.skip = 0;
	ss->tx.wnd_end = 0;
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	ss->tx.nxt = 0;
	ss->tx.bytes = 0;
	ss->tx.unasked = 0;
	ss->urg.snd_end = 0;
	ss->end.fin_gone = false;
	ss->end.peer_gone = false;
	ss->tx.refused = false;
	ss->tx.purged = 0;
	ss->tx.more = false;
	ss->tx.flush = false;
}

/**
 * sovia_disconnect() - struct proto::disconnect
 * @sk: in any state
 * @flags: not used
 *
 * Context: process, socket lock held.
 * Return: 0.
 */
int sovia_disconnect(struct sock *sk, int flags)
{
	if (sk->sk_state == TCP_LISTEN) {
		sovia_listen_stop(sk);
		sovia_done(sk, 0);
	} else {
		sovia_abort(sk, ECONNRESET, SOVIA_CODE_ABORT);
	}
	sovia_rx_close(sk);
	sovia_rx_purge(sk);
	sovia_port_reset_local(sk);
	inet_sk(sk)->inet_dport = 0;
	WRITE_ONCE(sk->sk_shutdown, 0);
	sock_reset_flag(sk, SOCK_DONE);
	sovia_leave_link(sk);
	reset_stream(sk);
	/* They do not concern the next connection. */
	drop_deferred(sk);
	/* Even if the connection had ended before. */
	sk_error_report(sk);
	return 0;
}

/* Send FIN, unless the peer has closed and acknowledged everything. */
static void end_sending(struct sock *sk, bool gone)
{
	if (sovia_sk(sk)->end.peer_gone && !sovia_outq(sk) && sovia_step(sk, SOVIA_EV_LEAVE))
		return;
	if (sovia_state_event(sk, SOVIA_EV_CLOSE))
		sovia_queue_fin(sk, gone);
}

/**
 * sovia_shutdown() - struct proto::shutdown
 * @sk: connected
 * @how: SEND_SHUTDOWN, RCV_SHUTDOWN or both; already in sk_shutdown
 *
 * Context: process, socket lock held.
 */
void sovia_shutdown(struct sock *sk, int how)
{
	/*
	 * Both halves are shut down: further data resets the connection, as with TCP.  Before FIN,
	 * to which the peer may answer with some.
	 */
	if (sk->sk_shutdown == SHUTDOWN_MASK &&
	    ((1 << sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)))
		sovia_rx_close(sk);
	if (how & SEND_SHUTDOWN)
		end_sending(sk, false);
}

/* How long the peer may acknowledge nothing; TCP_USER_TIMEOUT can only shorten it. */
static unsigned long orphan_patience(const struct sovia_sock *ss)
{
	unsigned long user = msecs_to_jiffies(ss->opt.user_timeout);

	return user ? min_t(unsigned long, user, SOVIA_ORPHAN_TIMEOUT) : SOVIA_ORPHAN_TIMEOUT;
}

/**
 * sovia_arm_orphan() - start the timer of an orphan
 * @sk: closed by its program, not by its peer; may be freed afterwards
 *
 * Context: socket lock held.
 */
void sovia_arm_orphan(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	unsigned long timeout = orphan_patience(ss);

	if (sk->sk_state == TCP_FIN_WAIT2) {
		if (ss->opt.linger2 < 0) {
			sovia_abort(sk, 0, SOVIA_CODE_ABORT);
			return;
		}
		/* The peer knows that its data would not be read. */
		if (ss->end.fin_gone) {
			sovia_step(sk, SOVIA_EV_LEAVE);
			return;
		}
		timeout = ss->opt.linger2 ? ss->opt.linger2 * HZ :
			  READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_fin_timeout);
	}
	ss->alive.acked = atomic64_read(&sovia_conn_of(sk)->acked);
	sk_reset_timer(sk, &sk->sk_timer, jiffies + timeout);
}

/**
 * sovia_orphan_timeout() - the timer of an orphan
 * @sk: the socket
 *
 * Context: softirq, socket lock held and not owned by a process.
 */
void sovia_orphan_timeout(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (!sock_flag(sk, SOCK_DEAD))
		return;
	if (atomic64_read(&sovia_conn_of(sk)->acked) != ss->alive.acked)
		sovia_arm_orphan(sk);
	else
		sovia_abort(sk, ETIMEDOUT, SOVIA_CODE_ABORT);
}

static bool sent_and_closed(const struct sock *sk)
{
	return !((1 << sk->sk_state) & (TCPF_FIN_WAIT1 | TCPF_CLOSING | TCPF_LAST_ACK));
}

/*
 * Wait until the peer has all data, for a signal, or @timeout.  (sk_stream_wait_close() is
 * not exported.)
 */
static void wait_close(struct sock *sk, long timeout)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	if (!timeout)
		return;
	add_wait_queue(sk_sleep(sk), &wait);
	while (timeout && !sent_and_closed(sk) && !signal_pending(current))
		sk_wait_event(sk, &timeout, sent_and_closed(sk), &wait);
	remove_wait_queue(sk_sleep(sk), &wait);
}

/* Start closing, as the state and the options require. */
static void close_begin(struct sock *sk, long timeout)
{
	bool unread = sovia_rx_close(sk);

	sovia_rx_purge(sk);
	if (sk->sk_state == TCP_LISTEN) {
		sovia_state_event(sk, SOVIA_EV_ABORT);
		sovia_listen_stop(sk);
	} else if (unread || sk->sk_state == TCP_SYN_SENT ||
		   (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime)) {
		sovia_abort(sk, 0, SOVIA_CODE_ABORT);
	} else {
		end_sending(sk, true);
	}
	wait_close(sk, timeout);
}

/* Too many orphans: the socket goes at once; the connection owes the peer a RESET. */
static void close_abandon(struct sock *sk)
{
	sovia_stat_inc(sovia_net(sock_net(sk)), no_room);
	sovia_abort(sk, 0, SOVIA_CODE_NO_MEMORY);
}

/**
 * sovia_close() - struct proto::close
 * @sk: the socket; the file's reference is consumed
 * @timeout: how long to linger, in jiffies
 *
 * Context: process, may sleep; no locks.
 */
void sovia_close(struct sock *sk, long timeout)
{
	sock_hold(sk);
	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	/* The program has closed it: a thread of the kernel has other files to close. */
	if (current->flags & PF_KTHREAD)
		timeout = 0;
	close_begin(sk, timeout);
	sock_orphan(sk);
	if (sk->sk_state == TCP_CLOSE)
		sovia_destroy(sk);
	else if (sovia_orphan_begin(sk))
		sovia_arm_orphan(sk);
	else
		close_abandon(sk);
	release_sock(sk);
	sovia_fallback_release(sk);
	sock_put(sk);
}

/**
 * sovia_leave_link() - leave the connection
 * @sk: not connected (any more)
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_leave_link(struct sock *sk)
{
	struct sovia_conn *conn = leave_conn(sk);

	if (conn)
		sovia_conn_put(conn);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/close_test.c"
#endif

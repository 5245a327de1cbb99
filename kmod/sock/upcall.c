// SPDX-License-Identifier: GPL-2.0-only
/*
 * External events of a socket: struct sovia_client's upcalls (control messages
 * of the peer, state changes of the link) and the socket's timer.  Most of them reach
 * their handlers through sovia_defer().
 */
#include "close.h"
#include "connect.h"
#include "defer.h"
#include "defer_accept.h"
#include "fallback.h"
#include "keepalive.h"
#include "lane/lane.h"
#include "listen.h"
#include "recv.h"
#include "rx.h"
#include "send.h"
#include "upcall.h"
#include "urgent.h"

static void on_up(struct sock *sk, u32 unused)
{
	sovia_link_came_up(sk);
}

static void on_accept(struct sock *sk, u32 unused)
{
	sovia_accepted(sk);
}

static void on_refuse(struct sock *sk, u32 code)
{
	sovia_refused(sk, code);
}

/* The peer's socket takes nothing from this stream offset on. */
static void refuse_from(struct sock *sk, u32 taken)
{
	spin_lock_bh(&sk->sk_receive_queue.lock);
	sovia_peer_refuses(sk, taken);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

static void on_fin(struct sock *sk, u32 gone)
{
	struct sovia_sock *ss = sovia_sk(sk);
	u8 state = sk->sk_state;

	/* The program has ended the connection before this deferred event was handled. */
	if (!sovia_state_next(state, SOVIA_EV_FIN))
		return;
	ss->end.peer_gone = gone;
	if (gone)
		ss->alive.probe_time = jiffies;
	/* One that does not say how far it was: at least what follows is refused. */
	if (gone && !ss->tx.refused)
		refuse_from(sk, ss->tx.nxt);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
	sock_set_flag(sk, SOCK_DONE);
	/* The last step may drop the last reference. */
	sock_hold(sk);
	if (sovia_no_more(sk) || gone)
		sovia_push(sk);
	sovia_step(sk, SOVIA_EV_FIN);
	if (!sock_flag(sk, SOCK_DEAD)) {
		sk->sk_state_change(sk);
		sk_wake_async(sk, SOCK_WAKE_WAITD,
			      sk->sk_shutdown == SHUTDOWN_MASK ? POLL_HUP : POLL_IN);
	}
	sock_put(sk);
}

static void on_delivered(struct sock *sk, u32 unused)
{
	/* If a RESET will follow, it ends the connection, with an error. */
	if (!sovia_untaken(sovia_sk(sk)) && sovia_step(sk, SOVIA_EV_DELIVERED)) {
		/* A task lingering in close() waits for the state. */
		if (!sock_flag(sk, SOCK_DEAD))
			sk->sk_state_change(sk);
		else if (sk->sk_state == TCP_FIN_WAIT2)
			sovia_arm_orphan(sk);
	}
}

/* The peer sent an invalid or unacceptable message: reset the connection. */
static void on_breach(struct sock *sk, u32 code)
{
	sovia_abort(sk, sk->sk_state == TCP_CLOSE_WAIT ? EPIPE : ECONNRESET, code);
}

static void on_reset(struct sock *sk, u32 code)
{
	/* Not a reset: the peer closed and reused the port pair. */
	if (code == SOVIA_CODE_NONE && sovia_sk(sk)->end.peer_gone &&
	    sovia_step(sk, SOVIA_EV_LEAVE))
		return;
	sovia_stat_inc(sovia_net(sock_net(sk)), reset_rx);
	sovia_done(sk, sk->sk_state == TCP_CLOSE_WAIT ? EPIPE : ECONNRESET);
}

static void on_down(struct sock *sk, u32 err)
{
	sovia_link_went_down(sk, err);
}

static void on_barred(struct sock *sk, u32 err)
{
	sovia_link_barred(sk, err);
}

static void on_pressure(struct sock *sk, u32 end)
{
	sovia_give_back(sk, end);
}

static void on_window(struct sock *sk, u32 unused)
{
	if (sovia_conn_of(sk))
		sovia_tell_window(sk);
}

static void on_push(struct sock *sk, u32 unused)
{
	sovia_push(sk);
}

static void on_ready(struct sock *sk, u32 unused)
{
	sk->sk_data_ready(sk);
}

static void on_fallback(struct sock *sk, u32 unused)
{
	sovia_fallback_queue(sk);
}

/* In the order in which several deferred events are handled. */
void (* const sovia_deferred_handlers[SOVIA_DEFER_COUNT])(struct sock *sk, u32 arg) = {
	[SOVIA_DEFER_UP]	= on_up,
	[SOVIA_DEFER_ACCEPT]	= on_accept,
	[SOVIA_DEFER_REFUSE]	= on_refuse,
	[SOVIA_DEFER_FIN]	= on_fin,
	[SOVIA_DEFER_BREACH]	= on_breach,
	[SOVIA_DEFER_DELIVERED]	= on_delivered,
	[SOVIA_DEFER_RESET]	= on_reset,
	[SOVIA_DEFER_DOWN]	= on_down,
	[SOVIA_DEFER_BARRED]	= on_barred,
	[SOVIA_DEFER_PRESSURE]	= on_pressure,
	[SOVIA_DEFER_WINDOW]	= on_window,
	[SOVIA_DEFER_PUSH]	= on_push,
	[SOVIA_DEFER_READY]	= on_ready,
	[SOVIA_DEFER_FALLBACK]	= on_fallback,
};

static bool update_window(struct sock *sk, u32 window)
{
	bool push;

	spin_lock(&sk->sk_receive_queue.lock);
	push = sovia_window_moved(sk, window);
	spin_unlock(&sk->sk_receive_queue.lock);
	return push;
}

/*
 * Handle a message under the connection's lock.  @push: queued data may go on.  Returns
 * true if the socket's owner has to handle it, too.
 */
static bool control_locked(struct sock *sk, struct sovia_conn *conn,
			   const struct sovia_msg *msg, bool *push, bool *breach)
{
	/* Before ACCEPT, other messages belong to an earlier connection on these ports. */
	if (unlikely(!READ_ONCE(sovia_sk(sk)->rx.open)) && msg->type != SOVIA_ACCEPT &&
	    msg->type != SOVIA_REFUSE)
		return false;
	switch (msg->type) {
	case SOVIA_WAKEUP:
		*push = update_window(sk, msg->window);
		return false;
	case SOVIA_PRESSURE:
		return true;
	case SOVIA_RETURN:
		*push = update_window(sk, msg->window);
		*breach = !sovia_rx_returned(sk, msg->ref);
		return !*breach;
	case SOVIA_URGENT:
		*push = update_window(sk, msg->window);
		sovia_urgent_message(sk, msg->ref);
		return false;
	case SOVIA_FIN:
		*push = update_window(sk, msg->window);
		return sovia_rx_fin(sk, msg);
	case SOVIA_ACCEPT:
		return sovia_rx_accepted(sk, conn, msg);
	case SOVIA_REFUSE:
		return READ_ONCE(conn->conn_seq) == msg->ref;
	case SOVIA_RESET:
		if (msg->flags & SOVIA_F_TAKEN)
			refuse_from(sk, msg->ref);
		/* Decided above, now, as ACCEPT may be deferred together with it. */
		return true;
	default:
		return false;
	}
}

static void defer_message(struct sovia_conn *conn, const struct sovia_msg *msg)
{
	switch (msg->type) {
	case SOVIA_FIN:
		sovia_defer(conn, SOVIA_DEFER_FIN, msg->flags & SOVIA_F_GONE);
		break;
	case SOVIA_ACCEPT:
		sovia_defer(conn, SOVIA_DEFER_ACCEPT, 0);
		break;
	case SOVIA_REFUSE:
		sovia_defer(conn, SOVIA_DEFER_REFUSE, msg->code);
		break;
	case SOVIA_RESET:
		sovia_defer(conn, SOVIA_DEFER_RESET, msg->code);
		break;
	case SOVIA_PRESSURE:
		sovia_defer(conn, SOVIA_DEFER_PRESSURE, msg->window);
		break;
	case SOVIA_RETURN:
		sovia_defer(conn, SOVIA_DEFER_WINDOW, 0);
		break;
	}
}

/* struct sovia_client::control; softirq. */
static void conn_control(struct sovia_conn *conn, const struct sovia_msg *msg)
{
	bool push = false, breach = false, more = false;

	spin_lock(&conn->lock);
	if (conn->sk)
		more = control_locked(conn->sk, conn, msg, &push, &breach);
	spin_unlock(&conn->lock);
	if (breach) {
		sovia_stat_inc(conn->lane->snet, bad_window);
		sovia_defer(conn, SOVIA_DEFER_BREACH, SOVIA_CODE_PROTOCOL);
	}
	if (push)
		sovia_defer(conn, SOVIA_DEFER_PUSH, 0);
	if (more)
		defer_message(conn, msg);
}

static void conn_tx_ready(struct sovia_conn *conn)
{
	sovia_defer(conn, SOVIA_DEFER_PUSH, 0);
}

static void conn_delivered(struct sovia_conn *conn)
{
	sovia_defer(conn, SOVIA_DEFER_DELIVERED, 0);
}

static void upcall_up(struct sovia_conn *conn)
{
	sovia_defer(conn, SOVIA_DEFER_UP, 0);
}

static void upcall_down(struct sovia_conn *conn, int err)
{
	sovia_defer(conn, SOVIA_DEFER_DOWN, -err);
}

static void upcall_barred(struct sovia_conn *conn, int err)
{
	sovia_defer(conn, SOVIA_DEFER_BARRED, -err);
}

const struct sovia_client sovia_sock_client = {
	.request	= sovia_sock_rx_conn,
	.data		= sovia_sock_rx_data,
	.copy		= sovia_sock_rx_copy,
	.control	= conn_control,
	.tx_ready	= conn_tx_ready,
	.delivered	= conn_delivered,
	.up		= upcall_up,
	.down		= upcall_down,
	.barred		= upcall_barred,
};

/**
 * sovia_sock_client_init() - have the link layer call sockets
 *
 * Context: module init, before there is a link.
 * Return: 0.
 */
int __init sovia_sock_client_init(void)
{
	sovia_lane_register_client(&sovia_sock_client);
	return 0;
}

/**
 * sovia_sk_timeout() - the socket's timer
 * @timer: sk_timer; its reference is consumed
 *
 * Used for connect() in SYN_SENT, then for keepalive, and finally for the orphan.
 *
 * Context: softirq.
 */
void sovia_sk_timeout(struct timer_list *timer)
{
	struct sock *sk = timer_container_of(sk, timer, sk_timer);

	bh_lock_sock(sk);
	if (sock_owned_by_user(sk))
		sk_reset_timer(sk, &sk->sk_timer, jiffies + HZ / 20);
	else if (sk->sk_state == TCP_SYN_SENT)
		sovia_connect_timeout(sk);
	else if (sk->sk_state != TCP_CLOSE && sock_flag(sk, SOCK_DEAD))
		sovia_orphan_timeout(sk);
	else if (sk->sk_state != TCP_CLOSE && sovia_sk(sk)->await_data)
		sovia_await_timeout(sk);
	else if (sk->sk_state != TCP_CLOSE)
		sovia_alive_timeout(sk);
	bh_unlock_sock(sk);
	sock_put(sk);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/upcall_test.c"
#endif

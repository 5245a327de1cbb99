// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work that the bottom half defers to the owner of a socket.
 *
 * Softirq and the connection thread may not wait for a process.  sovia_defer() calls the
 * handler at once if no process owns the socket; otherwise it sets a bit, and
 * release_sock() calls the handler.  Each kind happens once to a connection (or, like
 * PUSH, can be merged), so bits suffice and nothing has to be allocated.
 */
#include "compat/proto.h"
#include "defer.h"
#include "fallback.h"
#include "later.h"
#include "listen.h"
#include "upcall.h"

static void defer_locked(struct sock *sk, enum sovia_deferred what, u32 arg)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (sock_owned_by_user(sk)) {
		if (what < SOVIA_DEFER_ARGS)
			ss->deferred_arg[what] = arg;
		__set_bit(what, &ss->deferred);
	} else {
		sovia_deferred_handlers[what](sk, arg);
	}
}

/**
 * sovia_defer_sock() - call a handler now, or when the owner releases the socket
 * @sk: the socket; the caller holds a reference
 * @what: which handler
 * @arg: its argument
 *
 * Context: process or softirq; no socket, link or lane lock.
 */
void sovia_defer_sock(struct sock *sk, enum sovia_deferred what, u32 arg)
{
	local_bh_disable();
	bh_lock_sock(sk);
	defer_locked(sk, what, arg);
	bh_unlock_sock(sk);
	local_bh_enable();
}

/**
 * sovia_defer_now() - the same for the socket of a connection, if it has not left
 * @conn: the caller holds a reference, or is under RCU
 * @what: which handler
 * @arg: its argument
 *
 * An owner that ends the connection concurrently drops deferred work, after the
 * socket has left: see sovia_disconnect().
 *
 * Context: process or softirq; no socket, connection, link or lane lock.
 */
void sovia_defer_now(struct sovia_conn *conn, enum sovia_deferred what, u32 arg)
{
	bool left = true;
	struct sock *sk;

	rcu_read_lock_bh();
	sk = READ_ONCE(conn->sk);
	if (sk) {
		bh_lock_sock(sk);
		/* It may have left since, even for another connection, or to be freed. */
		left = sovia_conn_of(sk) != conn;
		if (!left)
			defer_locked(sk, what, arg);
		bh_unlock_sock(sk);
	}
	/* The peer may wait for that. */
	if (unlikely(left) && what == SOVIA_DEFER_BREACH)
		sovia_conn_control(conn, SOVIA_RESET, arg);
	rcu_read_unlock_bh();
}

/**
 * sovia_defer() - the same, in a context that may not lock the socket if the other one is here
 * @conn: the caller holds a reference, or is under RCU
 * @what: which handler
 * @arg: its argument
 *
 * Context: process or softirq; no connection, link or lane lock, and no socket lock but
 * that of the other end, if both are here.
 */
void sovia_defer(struct sovia_conn *conn, enum sovia_deferred what, u32 arg)
{
	if (READ_ONCE(conn->direct))
		sovia_later(conn, what, arg);
	else
		sovia_defer_now(conn, what, arg);
}

/**
 * sovia_release_cb() - struct proto::release_cb
 * @sk: about to be released by its owner
 *
 * Context: the owner, bottom halves off, the socket's spinlock held.
 */
void sovia_release_cb(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	int what;

	if (unlikely(ss->accept.pending_count))
		sovia_children_pending(sk);
	if (unlikely(sk->sk_state == TCP_LISTEN)) {
		if (!ss->accepting)
			sovia_fallback_follow(sk);
		ss->accepting = false;
	}
	if (!sovia_sees_sol_socket() && unlikely(sovia_fallback_done(sk)))
		sovia_fallback_late_option(sk);
	/* One that replaces the connection drops those that are left. */
	while (unlikely(ss->deferred)) {
		what = __ffs(ss->deferred);
		__clear_bit(what, &ss->deferred);
		sovia_deferred_handlers[what](sk, what < SOVIA_DEFER_ARGS ?
						  ss->deferred_arg[what] : 0);
	}
}

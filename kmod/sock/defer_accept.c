// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP_DEFER_ACCEPT: accept() waits for a child's first data.
 *
 * The child is connected and in its listener's queue from the start.  Until it
 * leaves the queue, its events wake the waiters of the listener.
 */
#include "connect.h"
#include "defer_accept.h"

/* sk_data_ready and sk_state_change of a child in the queue. */
static void tell_listener(struct sock *child)
{
	struct sock *listener;

	read_lock_bh(&child->sk_callback_lock);
	listener = child->sk_user_data;
	if (listener)
		listener->sk_data_ready(listener);
	read_unlock_bh(&child->sk_callback_lock);
}

/**
 * sovia_await_start() - make accept() wait for this child's data
 * @listener: has TCP_DEFER_ACCEPT
 * @child: just added to its queue
 *
 * Context: process or softirq, the listener's lock held.
 */
void sovia_await_start(struct sock *listener, struct sock *child)
{
	struct sovia_sock *ss = sovia_sk(child);

	write_lock_bh(&child->sk_callback_lock);
	/* A listener outlives the children in its queue. */
	child->sk_user_data = listener;
	child->sk_data_ready = tell_listener;
	child->sk_state_change = tell_listener;
	write_unlock_bh(&child->sk_callback_lock);
	WRITE_ONCE(ss->await_data, true);
	sk_reset_timer(child, &child->sk_timer,
		       jiffies + sovia_retry_seconds(sovia_sk(listener)->opt.defer_accept) * HZ);
}

/**
 * sovia_await_end() - the child leaves the queue
 * @listener: its listener
 * @child: waited for or not
 *
 * Context: process, the listener's lock held.
 */
void sovia_await_end(struct sock *listener, struct sock *child)
{
	if (child->sk_data_ready != tell_listener)
		return;
	write_lock_bh(&child->sk_callback_lock);
	child->sk_user_data = NULL;
	child->sk_data_ready = listener->sk_data_ready;
	child->sk_state_change = listener->sk_state_change;
	write_unlock_bh(&child->sk_callback_lock);
}

/**
 * sovia_await_timeout() - the child's time to send data is over
 * @child: in its listener's queue
 *
 * Context: softirq, the child's lock held.
 */
void sovia_await_timeout(struct sock *child)
{
	WRITE_ONCE(sovia_sk(child)->await_data, false);
	child->sk_data_ready(child);
}

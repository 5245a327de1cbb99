// SPDX-License-Identifier: GPL-2.0-only
/*
 * SO_BUSY_POLL: recv() spins for data before it sleeps.  Without it, too, if the provider says so
 * (sovia_provider::poll_usec): where a wake-up costs more than the message.
 *
 * A received message carries its NAPI ID, as with TCP, so busy polling of poll() and
 * epoll_wait() (net.core.busy_poll) needs no code here.  recv() works as TCP's, and
 * adapts:
 *
 * - Spinning stops when another task needs the CPU; on a busy machine it would
 *   only delay the task that sends the reply.
 * - After an unsuccessful spin the next 1, then 3, 7, up to 63 waits do not spin; a
 *   success resets this.  So sockets with long waits seldom spin, and sockets whose
 *   waits become short again start to spin.
 */
#include <linux/sched/stat.h>
#include <net/busy_poll.h>
#include "busy_poll.h"

#define SOVIA_BUSY_GAP_MAX	63

#ifdef CONFIG_NET_RX_BUSY_POLL

static bool busy_arrived(const struct sock *sk)
{
	return !skb_queue_empty_lockless(&sk->sk_receive_queue) ||
	       READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_state) == TCP_CLOSE;
}

static bool busy_late(const struct sock *sk, unsigned long start)
{
	unsigned int usec = READ_ONCE(sk->sk_ll_usec) ?: READ_ONCE(sovia_sk(sk)->busy.usec);

	return time_after(busy_loop_current_time(), start + usec);
}

/* Callback of napi_busy_loop(): stop spinning? */
static bool busy_enough(void *arg, unsigned long start)
{
	struct sock *sk = arg;

	return busy_arrived(sk) || signal_pending(current) || !single_task_running() ||
	       busy_late(sk, start);
}

static void busy_look(struct sock *sk, bool (*until)(void *arg, unsigned long start))
{
	unsigned int napi_id = READ_ONCE(sk->sk_napi_id);

	napi_busy_loop(napi_id, until, sk, READ_ONCE(sk->sk_prefer_busy_poll),
		       READ_ONCE(sk->sk_busy_poll_budget) ?: BUSY_POLL_BUDGET);
}

/**
 * sovia_busy_wait() - spin for data, unless recent spins were unsuccessful
 * @sk: the socket; sovia_busy_may()
 * @nonblock: poll once, and with SO_BUSY_POLL only
 *
 * Context: process; no locks.
 */
void sovia_busy_wait(struct sock *sk, bool nonblock)
{
	struct sovia_sock *ss = sovia_sk(sk);
	u8 skip = READ_ONCE(ss->busy.skip);
	bool hit;

	/* The loop provider has no NAPI instance to poll. */
	if (READ_ONCE(sk->sk_napi_id) < MIN_NAPI_ID || busy_arrived(sk))
		return;
	if (nonblock) {
		if (READ_ONCE(sk->sk_ll_usec))
			busy_look(sk, NULL);
		return;
	}
	if (skip) {
		WRITE_ONCE(ss->busy.skip, skip - 1);
		return;
	}
	busy_look(sk, busy_enough);
	hit = busy_arrived(sk);
	if (hit)
		sovia_stat_inc(sovia_net(sock_net(sk)), busy_hit);
	else
		sovia_stat_inc(sovia_net(sock_net(sk)), busy_miss);
	skip = hit ? 0 : min(READ_ONCE(ss->busy.gap) * 2 + 1, SOVIA_BUSY_GAP_MAX);
	WRITE_ONCE(ss->busy.gap, skip);
	WRITE_ONCE(ss->busy.skip, skip);
}

#else /* CONFIG_NET_RX_BUSY_POLL */

void sovia_busy_wait(struct sock *sk, bool nonblock)
{
}

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * SO_BUSY_POLL: recv() spins for data before it sleeps.  Without it, too, if the provider says so
 * (sovia_provider::poll_usec): where a wake-up costs more than the message.
 *
 * A received message carries its NAPI ID, as with TCP, so busy polling of poll() and
 * epoll_wait() (net.core.busy_poll) needs no code here.  recv() works as with
 * TCP, and adapts:
 *
 * - Spinning stops when another task needs the CPU; on a busy machine it would
 *   only delay the task that sends the reply.
 * - A wait spins if the last one was over, asleep or not, before it would have stopped
 *   spinning.  So sockets with long waits do not spin, and sockets whose waits become short
 *   again do; and two ends that wait for each other's wake-ups come to spin both.
 */
#include <linux/sched/stat.h>
#include <net/busy_poll.h>
#include "busy_poll.h"

#ifdef CONFIG_NET_RX_BUSY_POLL

static bool busy_arrived(const struct sock *sk)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;

	return READ_ONCE(rx->nxt) != READ_ONCE(rx->copied) ||
	       READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN || READ_ONCE(sk->sk_err) ||
	       READ_ONCE(sk->sk_state) == TCP_CLOSE;
}

static unsigned int busy_usec(const struct sock *sk)
{
	return READ_ONCE(sk->sk_ll_usec) ?: READ_ONCE(sovia_sk(sk)->busy.usec);
}

static bool busy_late(const struct sock *sk, unsigned long start)
{
	return time_after(busy_loop_current_time(), start + busy_usec(sk));
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
 * sovia_busy_wait() - spin for data, unless the last wait was too long for that
 * @sk: the socket; sovia_busy_may()
 * @nonblock: poll once, and with SO_BUSY_POLL only
 *
 * Context: process; no locks.
 */
void sovia_busy_wait(struct sock *sk, bool nonblock)
{
	struct sovia_sock *ss = sovia_sk(sk);
	u32 since = busy_loop_current_time() ?: 1;

	/* The loop provider has no NAPI instance to poll. */
	if (READ_ONCE(sk->sk_napi_id) < MIN_NAPI_ID || busy_arrived(sk))
		return;
	if (nonblock) {
		if (READ_ONCE(sk->sk_ll_usec))
			busy_look(sk, NULL);
		return;
	}
	WRITE_ONCE(ss->busy.since, since);
	if (READ_ONCE(ss->busy.sleep))
		return;
	busy_look(sk, busy_enough);
	if (busy_arrived(sk))
		sovia_stat_inc(sovia_net(sock_net(sk)), busy_hit);
	else
		sovia_stat_inc(sovia_net(sock_net(sk)), busy_miss);
}

/**
 * sovia_busy_waited() - data has come: was that soon enough to spin for
 * @sk: the socket, after sovia_busy_wait()
 *
 * Context: process, socket lock held.
 */
void sovia_busy_waited(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	u32 waited = (u32)busy_loop_current_time() - READ_ONCE(ss->busy.since);

	WRITE_ONCE(ss->busy.sleep, waited > busy_usec(sk));
	WRITE_ONCE(ss->busy.since, 0);
}

#else /* CONFIG_NET_RX_BUSY_POLL */

void sovia_busy_wait(struct sock *sk, bool nonblock)
{
}

void sovia_busy_waited(struct sock *sk)
{
}

#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Is the peer still there: SO_KEEPALIVE and TCP_USER_TIMEOUT.
 *
 * The lane is probed for all its sockets and ends when its peer is silent (see
 * link.c); this is for programs that want to know sooner, or set their own
 * timeouts.  Any message on the lane proves that the peer's kernel is alive,
 * and TCP's keepalive does not prove more.  A probe is a WAKEUP that does not
 * change the window, but makes the lane acknowledge it.  If the other end is a
 * socket of this kernel (lane/direct.c), no message uses the lane, and no
 * probe is needed.
 *
 * It uses sk_timer, from ESTABLISHED until close() uses it for the orphan.
 */
#include <net/tcp.h>
#include "close.h"
#include "keepalive.h"
#include "send.h"

/* A user timeout is detected late by at most this fraction of it. */
#define SOVIA_TIMEOUT_PARTS	8

/**
 * sovia_keepidle() - idle time before the first probe
 * @sk: the socket
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned long sovia_keepidle(const struct sock *sk)
{
	unsigned int val = READ_ONCE(sovia_sk(sk)->opt.keepidle);

	return val ? val * HZ : READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_time);
}

/**
 * sovia_keepintvl() - time between probes
 * @sk: the socket
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned long sovia_keepintvl(const struct sock *sk)
{
	unsigned int val = READ_ONCE(sovia_sk(sk)->opt.keepintvl);

	return val ? val * HZ : READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_intvl);
}

/**
 * sovia_keepcnt() - unanswered probes after which the peer counts as dead
 * @sk: the socket
 *
 * Context: any.
 * Return: the number.
 */
unsigned int sovia_keepcnt(const struct sock *sk)
{
	unsigned int val = READ_ONCE(sovia_sk(sk)->opt.keepcnt);

	return val ? val : READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_keepalive_probes);
}

/**
 * sovia_alive_wanted() - do the options require the keepalive timer
 * @sk: the socket
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_alive_wanted(const struct sock *sk)
{
	return sock_flag(sk, SOCK_KEEPOPEN) || sovia_sk(sk)->opt.user_timeout;
}

/**
 * sovia_alive_start() - start the keepalive timer, if the options require it
 * @sk: in any state
 *
 * Context: socket lock held.
 */
void sovia_alive_start(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN | TCPF_SYN_SENT)) ||
	    !sovia_alive_wanted(sk))
		return;
	ss->alive.probes = 0;
	ss->alive.acked = atomic64_read(&sovia_conn_of(sk)->acked);
	ss->alive.acked_time = jiffies;
	sk_reset_timer(sk, &sk->sk_timer, jiffies + 1);
}

/**
 * sovia_keepalive() - struct proto::keepalive
 * @sk: in any state
 * @on: SO_KEEPALIVE; SOCK_KEEPOPEN is set after this returns
 *
 * Context: socket lock held.
 */
void sovia_keepalive(struct sock *sk, int on)
{
	/* The caller sets the flag after this; the timer checks it when it fires. */
	sock_valbool_flag(sk, SOCK_KEEPOPEN, on);
	sovia_alive_start(sk);
}

/* Rest of TCP_USER_TIMEOUT, or 0 if it has expired. */
static unsigned long user_time_left(struct sock *sk, unsigned long timeout)
{
	struct sovia_sock *ss = sovia_sk(sk);
	s64 acked = atomic64_read(&sovia_conn_of(sk)->acked);
	unsigned long gone;

	if (!sovia_outq(sk) || acked != ss->alive.acked) {
		ss->alive.acked = acked;
		ss->alive.acked_time = jiffies;
	}
	gone = jiffies - ss->alive.acked_time;
	return gone < timeout ? min(timeout - gone, timeout / SOVIA_TIMEOUT_PARTS + 1) : 0;
}

/* Probe a silent peer; time until the next check, or 0 if it is dead. */
static unsigned long keepalive_left(struct sock *sk, unsigned long user_timeout)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	struct sovia_sock *ss = sovia_sk(sk);
	/* Read before jiffies, as it may change concurrently. */
	unsigned long heard = conn->direct ? jiffies : READ_ONCE(conn->lane->rx_time);
	unsigned long now = jiffies, idle = now - heard;

	/* The peer has closed; with TCP it would answer a probe with RST. */
	if (ss->end.peer_gone) {
		idle = now - ss->alive.probe_time;
		return idle < sovia_keepidle(sk) ? sovia_keepidle(sk) - idle : 0;
	}
	/* The last probe was answered, which the timer may detect late. */
	if (ss->alive.probes && !time_before(heard, ss->alive.probe_time))
		ss->alive.probes = 0;
	/* Unacknowledged data serves as a probe. */
	if (idle < sovia_keepidle(sk) || sovia_outq(sk)) {
		ss->alive.probes = 0;
		return max_t(long, sovia_keepidle(sk) - idle, HZ);
	}
	if (ss->alive.probes && now - ss->alive.probe_time < sovia_keepintvl(sk))
		return sovia_keepintvl(sk) - (now - ss->alive.probe_time);
	if (user_timeout ? ss->alive.probes && idle >= user_timeout :
			   ss->alive.probes >= sovia_keepcnt(sk))
		return 0;
	ss->alive.probes++;
	ss->alive.probe_time = now;
	sovia_conn_control(conn, SOVIA_WAKEUP, 0);
	return sovia_keepintvl(sk);
}

/**
 * sovia_alive_timeout() - the timer of a connection that its program has open
 * @sk: connected
 *
 * Context: softirq, socket lock held and not owned by a process.
 */
void sovia_alive_timeout(struct sock *sk)
{
	unsigned long user = msecs_to_jiffies(sovia_sk(sk)->opt.user_timeout);
	unsigned long left = MAX_JIFFY_OFFSET;

	if (!sovia_alive_wanted(sk))
		return;
	if (user)
		left = user_time_left(sk, user);
	if (left && sock_flag(sk, SOCK_KEEPOPEN))
		left = min(left, keepalive_left(sk, user));
	if (left)
		sk_reset_timer(sk, &sk->sk_timer, jiffies + left);
	else
		sovia_abort(sk, sovia_sk(sk)->end.peer_gone ? EPIPE : ETIMEDOUT, SOVIA_CODE_ABORT);
}

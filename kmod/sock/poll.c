// SPDX-License-Identifier: GPL-2.0-only
/* poll(): accept queue, received data, room to send, and errors. */
#include <net/tcp.h>
#include "listen.h"
#include "poll.h"
#include "recv.h"
#include "urgent.h"

/* Is it writable?  If not, the poller is woken when it is. */
static __poll_t poll_send(struct sock *sk)
{
	const __poll_t out = EPOLLOUT | EPOLLWRNORM;

	if (sk->sk_shutdown & SEND_SHUTDOWN)
		return out;
	if (sk_stream_is_writeable(sk))
		return out;
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* Pairs with the destructor's wake-up: set the flag, then check for room. */
	smp_mb__after_atomic();
	return sk_stream_is_writeable(sk) ? out : 0;
}

/**
 * sovia_poll() - struct proto_ops::poll
 * @file: not used
 * @sock: the socket
 * @wait: where to wait
 *
 * Context: process; no locks.
 * Return: EPOLL* bits, as TCP has them.
 */
__poll_t sovia_poll(struct file *file, struct socket *sock, poll_table *wait)
{
	struct sock *sk = READ_ONCE(sock->sk);
	__poll_t mask = 0;
	u8 shutdown;
	int state;

	if (unlikely(!sovia_is(sk)))
		return tcp_poll(file, sock, wait);
	sock_poll_wait(file, sock, wait);
	/* Pairs with the release in sovia_state_event(). */
	state = smp_load_acquire(&sk->sk_state);
	if (state == TCP_LISTEN)
		return sovia_acceptable(sk) ? EPOLLIN | EPOLLRDNORM : 0;

	shutdown = READ_ONCE(sk->sk_shutdown);
	if (shutdown == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (shutdown & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (state != TCP_SYN_SENT) {
		if (sovia_readable(sk))
			mask |= EPOLLIN | EPOLLRDNORM;
		if (READ_ONCE(sovia_sk(sk)->urg.state) == SOVIA_URG_HERE)
			mask |= EPOLLPRI;
		mask |= poll_send(sk);
	}
	if (READ_ONCE(sk->sk_err) || !skb_queue_empty_lockless(&sk->sk_error_queue))
		mask |= EPOLLERR;
	/* Pairs with the exchange of the sk: it is CLOSE only afterwards. */
	if (unlikely(smp_load_acquire(&sock->sk) != sk))
		return tcp_poll(file, sock, NULL);
	return mask;
}

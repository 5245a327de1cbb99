/* SPDX-License-Identifier: GPL-2.0-only */
/* Spinning for data instead of sleeping. */
#ifndef _SOVIA_BUSY_POLL_H
#define _SOVIA_BUSY_POLL_H

#include <linux/sched/signal.h>
#include "sock.h"

/* A message has come by a provider. */
static inline void sovia_busy_of(struct sovia_sock *ss, const struct sovia_provider *prov)
{
	WRITE_ONCE(ss->busy.usec, prov->poll_usec ? READ_ONCE(*prov->poll_usec) : 0);
}

/* May a receiver spin? */
static inline bool sovia_busy_may(const struct sock *sk)
{
	return (READ_ONCE(sk->sk_ll_usec) || READ_ONCE(sovia_sk(sk)->busy.usec)) &&
	       !signal_pending(current);
}

void sovia_busy_wait(struct sock *sk, bool nonblock);
void sovia_busy_waited(struct sock *sk);

#endif /* _SOVIA_BUSY_POLL_H */

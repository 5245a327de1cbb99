/* SPDX-License-Identifier: GPL-2.0-only */
/* BPF programs that choose listeners and filter data. */
#ifndef _SOVIA_PROGRAM_H
#define _SOVIA_PROGRAM_H

#include "sock.h"

bool sovia_filter_request(struct sock *listener, const struct sovia_pair *pair,
			  const struct sovia_msg *msg);
bool sovia_filter_run(struct sock *sk, const struct sovia_msg *msg, struct sk_buff *payload);
struct sock *sovia_choose_listener(struct sock *listener, const struct sovia_pair *pair,
				   const struct sovia_msg *msg);

/* Does the socket's filter, if there is one, pass data?  As sovia_filter_run(). */
static inline bool sovia_filter_data(struct sock *sk, const struct sovia_msg *msg,
				     struct sk_buff *payload)
{
	return likely(!rcu_access_pointer(sk->sk_filter)) || sovia_filter_run(sk, msg, payload);
}

#endif /* _SOVIA_PROGRAM_H */

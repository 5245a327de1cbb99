/* SPDX-License-Identifier: GPL-2.0-only */
/* BPF programs that choose listeners and filter data. */
#ifndef _SOVIA_PROGRAM_H
#define _SOVIA_PROGRAM_H

#include <linux/bpf-cgroup.h>
#include "sock.h"

bool sovia_filter_request(struct sock *listener, const struct sovia_pair *pair,
			  const struct sovia_msg *msg);
bool sovia_filter_run(struct sock *sk, const struct sovia_msg *msg, struct sk_buff *payload);
struct sk_buff *sovia_program_syn(struct sock *listener, const struct sovia_pair *pair,
				  const struct sovia_msg *msg);
struct sock *sovia_choose_listener(struct sock *listener, const struct sovia_pair *pair,
				   const struct sovia_msg *msg);

/*
 * Has the socket's control group programs that see its packets (cgroup/skb: IPAddressDeny= of
 * systemd, accounting)?  AF_SOVIA has no packets for them.
 */
static inline bool sovia_packets_are_seen(struct sock *sk)
{
#ifdef CONFIG_CGROUP_BPF
	return (cgroup_bpf_enabled(CGROUP_INET_EGRESS) &&
		cgroup_bpf_sock_enabled(sk, CGROUP_INET_EGRESS)) ||
	       (cgroup_bpf_enabled(CGROUP_INET_INGRESS) &&
		cgroup_bpf_sock_enabled(sk, CGROUP_INET_INGRESS));
#else
	return false;
#endif
}

/* Does the socket's filter, if there is one, pass data?  As sovia_filter_run(). */
static inline bool sovia_filter_data(struct sock *sk, const struct sovia_msg *msg,
				     struct sk_buff *payload)
{
	return likely(!rcu_access_pointer(sk->sk_filter)) || sovia_filter_run(sk, msg, payload);
}

#endif /* _SOVIA_PROGRAM_H */

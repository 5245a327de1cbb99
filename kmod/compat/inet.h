/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.6 and 6.7 moved the switches of a socket of IP into its inet_flags. */
#ifndef _SOVIA_COMPAT_INET_H
#define _SOVIA_COMPAT_INET_H

#include <linux/ipv6.h>
#include <net/inet_sock.h>

/* A stream has no multicast, but the options say what they say of TCP's sockets. */
static inline void sovia_multicast_defaults(struct sock *sk)
{
#ifdef inet_set_bit
	inet_set_bit(MC_LOOP, sk);
	inet_assign_bit(MC_ALL, sk, sk->sk_family == AF_INET);
#else
	inet_sk(sk)->mc_loop = 1;
	inet_sk(sk)->mc_all = sk->sk_family == AF_INET;
#endif
	if (sk->sk_family != AF_INET6)
		return;
#ifdef inet6_set_bit
	inet6_set_bit(MC6_LOOP, sk);
	inet6_set_bit(MC6_ALL, sk);
#else
	inet6_sk(sk)->mc_loop = 1;
	inet6_sk(sk)->mc_all = 1;
#endif
}

#endif /* _SOVIA_COMPAT_INET_H */

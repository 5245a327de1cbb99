/* SPDX-License-Identifier: GPL-2.0-only */
/* IP's part of a socket: kernels have moved its switches, and added options. */
#ifndef _SOVIA_COMPAT_INET_H
#define _SOVIA_COMPAT_INET_H

#include <linux/ipv6.h>
#include <linux/tcp.h>
#include <net/inet6_hashtables.h>
#include <net/inet_hashtables.h>
#include <net/inet_sock.h>
#include <net/ip.h>

/* 6.6 and 6.7 moved the switches into inet_flags. */
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

/* Is IP_TRANSPARENT or IPV6_TRANSPARENT set? */
static inline bool sovia_transparent(const struct sock *sk)
{
#ifdef inet_test_bit
	return inet_test_bit(TRANSPARENT, sk);
#else
	return inet_sk(sk)->transparent;
#endif
}

/* Is IP_BIND_ADDRESS_NO_PORT set? */
static inline bool sovia_bind_no_port(const struct sock *sk)
{
#ifdef inet_test_bit
	return inet_test_bit(BIND_ADDRESS_NO_PORT, sk);
#else
	return inet_sk(sk)->bind_address_no_port;
#endif
}

/* Has TCP left its SYN to the first send(), as TCP_FASTOPEN_CONNECT asks? */
static inline bool sovia_tcp_defers_connect(const struct sock *tcp)
{
#ifdef inet_test_bit
	return inet_test_bit(DEFER_CONNECT, tcp);
#else
	return inet_sk(tcp)->defer_connect;
#endif
}

/*
 * The ephemeral ports of a socket.  6.3 brought IP_LOCAL_PORT_RANGE, which stable kernels
 * have as well; since 6.8 the call says whether it is set, and connect() tries all its
 * ports in order then.
 */
static inline bool sovia_local_port_range(const struct sock *sk, int *low, int *high)
{
#if defined(SOVIA_PORT_RANGE_BOOL)
	return inet_sk_get_local_port_range(sk, low, high);
#elif defined(SOVIA_PORT_RANGE)
	inet_sk_get_local_port_range(sk, low, high);
	return false;
#else
	inet_get_local_port_range(sock_net(sk), low, high);
	return false;
#endif
}

/* TCP's connection, or the rest of one; sock_gen_put().  Addresses as in struct sovia_pair. */
static inline struct sock *sovia_tcp_lookup(struct net *net, const struct in6_addr *remote,
					    u16 rport, const struct in6_addr *local, u16 lport,
					    int dif, int sdif)
{
#ifdef SOVIA_LOOKUP_HASHINFO
	struct inet_hashinfo *hashinfo = net->ipv4.tcp_death_row.hashinfo;

	if (ipv6_addr_v4mapped(remote))
		return __inet_lookup_established(net, hashinfo, remote->s6_addr32[3], htons(rport),
						 local->s6_addr32[3], lport, dif, sdif);
	return __inet6_lookup_established(net, hashinfo, remote, htons(rport), local, lport,
					  dif, sdif);
#else
	if (ipv6_addr_v4mapped(remote))
		return __inet_lookup_established(net, remote->s6_addr32[3], htons(rport),
						 local->s6_addr32[3], lport, dif, sdif);
	return __inet6_lookup_established(net, remote, htons(rport), local, lport, dif, sdif);
#endif
}

/*
 * The listener that TCP would give a connection to.  Under RCU, which keeps it; ports in host
 * order.
 * @syn: for the program of a group, or NULL
 */
static inline struct sock *sovia_tcp_lookup_listener(struct net *net, struct sk_buff *syn,
						     const struct in6_addr *remote, u16 rport,
						     const struct in6_addr *local, u16 lport,
						     int dif, int sdif)
{
	int doff = sizeof(struct tcphdr);

#ifdef SOVIA_LOOKUP_HASHINFO
	struct inet_hashinfo *hashinfo = net->ipv4.tcp_death_row.hashinfo;

	if (ipv6_addr_v4mapped(remote))
		return __inet_lookup_listener(net, hashinfo, syn, doff, remote->s6_addr32[3],
					      htons(rport), local->s6_addr32[3], lport, dif, sdif);
	return inet6_lookup_listener(net, hashinfo, syn, doff, remote, htons(rport), local, lport,
				     dif, sdif);
#else
	if (ipv6_addr_v4mapped(remote))
		return __inet_lookup_listener(net, syn, doff, remote->s6_addr32[3], htons(rport),
					      local->s6_addr32[3], lport, dif, sdif);
	return inet6_lookup_listener(net, syn, doff, remote, htons(rport), local, lport, dif, sdif);
#endif
}

#endif /* _SOVIA_COMPAT_INET_H */

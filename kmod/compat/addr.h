/* SPDX-License-Identifier: GPL-2.0-only */
/* 7.1 exports inet_rcv_saddr_equal() no more: this is for all kernels, so that all test it. */
#ifndef _SOVIA_COMPAT_ADDR_H
#define _SOVIA_COMPAT_ADDR_H

#include <linux/ipv6.h>
#include <net/ipv6.h>
#include <net/sock.h>

/* The address that a socket is bound to, IPv4's as v4-mapped. */
static inline struct in6_addr sovia_rcv_saddr(const struct sock *sk)
{
	struct in6_addr addr;

	if (sk->sk_family == AF_INET6)
		return sk->sk_v6_rcv_saddr;
	ipv6_addr_set_v4mapped(sk->sk_rcv_saddr, &addr);
	return addr;
}

/* Are both sockets bound to the same address? */
static inline bool sovia_rcv_saddr_same(const struct sock *sk, const struct sock *sk2)
{
	struct in6_addr addr = sovia_rcv_saddr(sk), addr2 = sovia_rcv_saddr(sk2);

	return ipv6_addr_equal(&addr, &addr2);
}

/* Does a socket bound to @addr, perhaps with IPV6_V6ONLY, receive whatever is sent to @other? */
static inline bool sovia_rcv_saddr_covers(const struct in6_addr *addr, bool v6only,
					  const struct in6_addr *other)
{
	if (ipv6_addr_equal(addr, other))
		return true;
	if (ipv6_addr_v4mapped(addr))
		return !addr->s6_addr32[3] && ipv6_addr_v4mapped(other);
	return ipv6_addr_any(addr) && !(ipv6_addr_v4mapped(other) && v6only);
}

/**
 * sovia_rcv_saddr_equal() - is there an address of which both sockets receive?
 * @sk: one socket
 * @sk2: the other one
 *
 * Context: any.
 * Return: true if they are bound to the same address, or one to all that include the other's.
 */
static inline bool sovia_rcv_saddr_equal(const struct sock *sk, const struct sock *sk2)
{
	struct in6_addr addr = sovia_rcv_saddr(sk), addr2 = sovia_rcv_saddr(sk2);

	return sovia_rcv_saddr_covers(&addr, ipv6_only_sock(sk), &addr2) ||
	       sovia_rcv_saddr_covers(&addr2, ipv6_only_sock(sk2), &addr);
}

#endif /* _SOVIA_COMPAT_ADDR_H */

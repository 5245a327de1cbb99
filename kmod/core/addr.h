/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses, pairs of them, and their interfaces in L3 domains (VRFs), which may have the same. */
#ifndef _SOVIA_ADDR_H
#define _SOVIA_ADDR_H

#include <linux/netdevice.h>
#include <net/l3mdev.h>

struct sockaddr_storage;
struct sovia_pair;

/* Do sockets that are bound to no interface accept connections of all L3 domains? */
static inline bool sovia_l3mdev_accept(const struct net *net)
{
#ifdef CONFIG_NET_L3_MASTER_DEV
	return READ_ONCE(net->ipv4.sysctl_tcp_l3mdev_accept);
#else
	return false;
#endif
}

void sovia_sockaddr(struct sockaddr_storage *ss, const struct in6_addr *addr, int scope,
		    u16 port);
int sovia_sockaddr_addr(struct in6_addr *addr, const struct sockaddr_storage *ss);
struct net_device *sovia_address_device(struct net *net, const struct in6_addr *addr, int l3);
int sovia_pair_iif(struct net *net, const struct sovia_pair *pair);
int sovia_pair_device(struct net *net, const struct sovia_pair *pair);
void sovia_pair_of(struct sovia_pair *pair, const struct sock *sk);
u32 sovia_pair_addr_hash(const struct sovia_pair *pair);
bool sovia_pair_equal(const struct sovia_pair *a, const struct sovia_pair *b);

#endif /* _SOVIA_ADDR_H */

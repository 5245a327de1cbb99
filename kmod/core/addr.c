// SPDX-License-Identifier: GPL-2.0-only
/* Addresses, pairs of them, and their interfaces in L3 domains (VRFs), which may have the same. */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include "addr.h"
#include "provider.h"

/**
 * sovia_sockaddr() - convert an address
 * @ss: filled in
 * @addr: address, IPv4 as v4-mapped
 * @scope: interface index if it is link-local
 * @port: in host order
 *
 * Context: any.
 */
void sovia_sockaddr(struct sockaddr_storage *ss, const struct in6_addr *addr, int scope,
		    u16 port)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)ss;

	memset(ss, 0, sizeof(*ss));
	if (ipv6_addr_v4mapped(addr)) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		sin->sin_addr.s_addr = addr->s6_addr32[3];
	} else {
		sin6->sin6_family = AF_INET6;
		sin6->sin6_port = htons(port);
		sin6->sin6_addr = *addr;
		if (ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL)
			sin6->sin6_scope_id = scope;
	}
}

/**
 * sovia_sockaddr_addr() - the inverse, for the address alone
 * @addr: filled in, IPv4 as v4-mapped
 * @ss: of any family
 *
 * Context: any.
 * Return: 0 or -EAFNOSUPPORT.
 */
int sovia_sockaddr_addr(struct in6_addr *addr, const struct sockaddr_storage *ss)
{
	switch (ss->ss_family) {
	case AF_INET:
		ipv6_addr_set_v4mapped(((struct sockaddr_in *)ss)->sin_addr.s_addr, addr);
		return 0;
	case AF_INET6:
		*addr = ((struct sockaddr_in6 *)ss)->sin6_addr;
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

static bool has_address(struct net_device *dev, const struct in6_addr *addr)
{
	const struct in_device *in_dev;
	const struct in_ifaddr *ifa;

	if (!ipv6_addr_v4mapped(addr))
		return ipv6_chk_addr(dev_net(dev), addr, dev, 1);
	in_dev = __in_dev_get_rcu(dev);
	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev)
		if (ifa->ifa_local == addr->s6_addr32[3])
			return true;
	return false;
}

/**
 * sovia_address_device() - the interface that has an address of this host
 * @net: namespace
 * @addr: IPv4 as v4-mapped
 * @l3: L3 domain: ifindex of its device, or 0
 *
 * Context: under RCU, which keeps the result.
 * Return: the interface, or NULL.
 */
struct net_device *sovia_address_device(struct net *net, const struct in6_addr *addr, int l3)
{
	struct net_device *dev;

	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the device may be freed");
	if (ipv6_addr_v4mapped(addr))
		dev = __ip_dev_find(net, addr->s6_addr32[3], false);
	else
		dev = ipv6_dev_find(net, addr, NULL);
	if (dev && l3mdev_master_ifindex_rcu(dev) == l3)
		return dev;
	/* Another domain has it, perhaps as well. */
	for_each_netdev_rcu(net, dev)
		if (l3mdev_master_ifindex_rcu(dev) == l3 && has_address(dev, addr))
			return dev;
	return NULL;
}

/**
 * sovia_pair_iif() - the interface that sockets see a link's connections arrive on
 * @net: namespace
 * @pair: the link's addresses
 *
 * The one that has the address, as with TCP, also for connections within this host.
 *
 * Context: any.
 * Return: its index, or 0.
 */
int sovia_pair_iif(struct net *net, const struct sovia_pair *pair)
{
	struct net_device *dev;
	int ifindex;

	if (pair->scope)
		return pair->scope;
	rcu_read_lock();
	dev = sovia_address_device(net, &pair->local, pair->l3);
	ifindex = dev ? dev->ifindex : pair->l3;
	rcu_read_unlock();
	return ifindex;
}

/**
 * sovia_pair_device() - the interface that packets of a link's connections would arrive on
 * @net: namespace
 * @pair: the link's addresses
 *
 * Between addresses of this host that is the loopback device, but not in a VRF: as with TCP.
 *
 * Context: any.
 * Return: its index, or 0.
 */
int sovia_pair_device(struct net *net, const struct sovia_pair *pair)
{
	bool here = false;

	if (!pair->scope && !pair->l3) {
		rcu_read_lock();
		here = sovia_address_device(net, &pair->remote, 0);
		rcu_read_unlock();
	}
	return here ? net->loopback_dev->ifindex : sovia_pair_iif(net, pair);
}

/**
 * sovia_pair_of() - the addresses of a TCP connection
 * @pair: filled in
 * @sk: its socket
 *
 * Context: process.
 */
void sovia_pair_of(struct sovia_pair *pair, const struct sock *sk)
{
	memset(pair, 0, sizeof(*pair));
	if (sk->sk_family == AF_INET6) {
		pair->local = sk->sk_v6_rcv_saddr;
		pair->remote = sk->sk_v6_daddr;
	} else {
		ipv6_addr_set_v4mapped(sk->sk_rcv_saddr, &pair->local);
		ipv6_addr_set_v4mapped(sk->sk_daddr, &pair->remote);
	}
	if (ipv6_addr_type(&pair->local) & IPV6_ADDR_LINKLOCAL)
		pair->scope = sk->sk_bound_dev_if;
	pair->l3 = l3mdev_master_ifindex_by_index(sock_net(sk), sk->sk_bound_dev_if);
}

/**
 * sovia_pair_addr_hash() - hash of the addresses in a four-tuple
 * @pair: the addresses
 *
 * Context: any.
 * Return: the hash, for tables.
 */
u32 sovia_pair_addr_hash(const struct sovia_pair *pair)
{
	static u32 seed;

	get_random_once(&seed, sizeof(seed));
	if (ipv6_addr_v4mapped(&pair->remote))
		return jhash_3words((__force u32)pair->remote.s6_addr32[3],
				    (__force u32)pair->local.s6_addr32[3], pair->l3, seed);
	return jhash_2words(__ipv6_addr_jhash(&pair->remote, seed),
			    __ipv6_addr_jhash(&pair->local, pair->scope), seed ^ pair->l3);
}

/**
 * sovia_pair_equal() - are two pairs the key of the same link
 * @a: one of a namespace
 * @b: another one of it
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_pair_equal(const struct sovia_pair *a, const struct sovia_pair *b)
{
	return ipv6_addr_equal(&a->local, &b->local) &&
	       ipv6_addr_equal(&a->remote, &b->remote) &&
	       a->scope == b->scope && a->l3 == b->l3 && a->passive == b->passive &&
	       a->lane == b->lane;
}

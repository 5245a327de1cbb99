// SPDX-License-Identifier: GPL-2.0-only
/* Addresses and their interfaces in L3 domains (VRFs), which may have the same addresses. */
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include "l3.h"

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

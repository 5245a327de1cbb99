// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which link leads to an address: the routing table says which source address
 * is used and whether the destination is this host, which decides the provider.
 */
#include <linux/inetdevice.h>
#include <linux/moduleparam.h>
#include <net/addrconf.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include "sock.h"

static bool hairpin;
module_param(hairpin, bool, 0644);
MODULE_PARM_DESC(hairpin, "connect own addresses of an RDMA device through it, for measuring (N)");

static int route_v4(struct sock *sk, const struct in6_addr *daddr,
		    struct sovia_pair *pair, bool *local)
{
	struct inet_sock *inet = inet_sk(sk);
	struct flowi4 fl4 = {
		.flowi4_oif = sk->sk_bound_dev_if,
		.flowi4_mark = READ_ONCE(sk->sk_mark),
		.flowi4_proto = IPPROTO_TCP,
		.daddr = daddr->s6_addr32[3],
		.saddr = inet->inet_saddr,
	};
	struct rtable *rt;

	rt = ip_route_output_flow(sock_net(sk), &fl4, sk);
	if (IS_ERR(rt))
		return PTR_ERR(rt);
	if (rt->rt_flags & (RTCF_MULTICAST | RTCF_BROADCAST)) {
		ip_rt_put(rt);
		return -ENETUNREACH;
	}
	*local = rt->rt_flags & RTCF_LOCAL;
	ipv6_addr_set_v4mapped(fl4.saddr, &pair->local);
	ipv6_addr_set_v4mapped(fl4.daddr, &pair->remote);
	ip_rt_put(rt);
	return 0;
}

static int route_v6(struct sock *sk, const struct in6_addr *daddr,
		    struct sovia_pair *pair, bool *local)
{
	struct flowi6 fl6 = {
		.flowi6_oif = sk->sk_bound_dev_if,
		.flowi6_mark = READ_ONCE(sk->sk_mark),
		.flowi6_proto = IPPROTO_TCP,
		.daddr = *daddr,
		.saddr = inet6_sk(sk)->saddr,
	};
	struct dst_entry *dst;

	dst = ipv6_stub->ipv6_dst_lookup_flow(sock_net(sk), sk, &fl6, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	*local = container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_LOCAL;
	pair->local = fl6.saddr;
	pair->remote = *daddr;
	dst_release(dst);
	return 0;
}

/* The interface that has an address of this host, or NULL. */
static struct net_device *address_device(struct net *net, const struct in6_addr *addr)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "the device may go");
	if (ipv6_addr_v4mapped(addr))
		return __ip_dev_find(net, addr->s6_addr32[3], false);
	return ipv6_dev_find(net, addr, NULL);
}

/**
 * sovia_pair_device() - the interface that a link's connections come in by
 * @net: namespace
 * @pair: the link's addresses
 *
 * Between addresses of this host that is the loopback device, as with TCP.
 *
 * Context: any.
 * Return: its index, or 0.
 */
int sovia_pair_device(struct net *net, const struct sovia_pair *pair)
{
	struct net_device *dev;
	int ifindex = 0;

	if (pair->scope)
		return pair->scope;
	rcu_read_lock();
	dev = address_device(net, &pair->remote);
	if (dev)
		dev = net->loopback_dev;
	else
		dev = address_device(net, &pair->local);
	if (dev)
		ifindex = dev->ifindex;
	rcu_read_unlock();
	return ifindex;
}

/* Both addresses are of this host.  Do both have a device that could carry it? */
static bool verbs_serves(struct net *net, const struct sovia_pair *pair)
{
	const struct sovia_provider *prov = &sovia_verbs_provider;
	struct net_device *local, *remote;
	bool yes;

	rcu_read_lock();
	local = address_device(net, &pair->local);
	remote = address_device(net, &pair->remote);
	yes = local && remote && prov->serves(local) && prov->serves(remote);
	rcu_read_unlock();
	return yes;
}

/**
 * sovia_route() - find the link's addresses and provider for a destination
 * @sk: the socket, perhaps bound to a source address, to an interface if @daddr is link-local
 * @daddr: destination, IPv4 as v4-mapped; any address means this host
 * @pair: filled in
 * @prov: filled in
 *
 * Context: process, socket lock held.
 * Return: 0, -ENETUNREACH, -EHOSTUNREACH or another errno of the routing table.
 */
int sovia_route(struct sock *sk, const struct in6_addr *daddr,
		struct sovia_pair *pair, const struct sovia_provider **prov)
{
	bool local = false;
	int err;

	memset(pair, 0, sizeof(*pair));
	if (ipv6_addr_v4mapped(daddr))
		err = route_v4(sk, daddr, pair, &local);
	else
		err = route_v6(sk, daddr, pair, &local);
	if (err)
		return err;
	if (__ipv6_addr_needs_scope_id(ipv6_addr_type(&pair->remote)))
		pair->scope = sk->sk_bound_dev_if;
	if (local && READ_ONCE(hairpin))
		local = !verbs_serves(sock_net(sk), pair);
	*prov = local ? &sovia_loop_provider : &sovia_verbs_provider;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link for a destination: the routing table determines the source address,
 * and whether the destination is this host, which decides the provider.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>
#include <linux/security.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/xfrm.h>
#include "compat/sock.h"
#include "core/addr.h"
#include "route.h"
#include "dry_syn.h"

static bool hairpin;
module_param(hairpin, bool, 0644);
MODULE_PARM_DESC(hairpin, "connect local addresses of an RDMA device through it, for measurements (N)");

/*
 * The route that TCP's packets would take: by interface, mark, DSCP, flow label, user and ports.
 * Ports are 0 where they are not known.
 */
static struct dst_entry *output_v4(struct sock *sk, struct flowi4 *fl4, __be32 saddr, __be32 daddr,
				   int oif, u16 sport, u16 dport)
{
	struct rtable *rt;

	ip_route_connect_init(fl4, daddr, saddr, oif, IPPROTO_TCP, htons(sport), htons(dport), sk);
	security_sk_classify_flow(sk, flowi4_to_flowi_common(fl4));
	rt = __ip_route_output_key(sock_net(sk), fl4);
	/* As TCP, again with the addresses found: rules may name them; 0.0.0.0 stands for one. */
	if (!IS_ERR(rt) && (!saddr || !daddr)) {
		ip_rt_put(rt);
		fl4->flowi4_oif = oif;
		rt = __ip_route_output_key(sock_net(sk), fl4);
	}
	return IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
}

/*
 * Would packets be lost: to the loopback interface, but not to this host, or to an interface that
 * is down?
 */
static bool route_loses(const struct dst_entry *dst, bool local)
{
	return !(dst->dev->flags & IFF_UP) || (!local && dst->dev->flags & IFF_LOOPBACK);
}

static struct dst_entry *output_v6(struct sock *sk, struct flowi6 *fl6, int oif)
{
	const struct ipv6_pinfo *np = inet6_sk(sk);
	struct dst_entry *dst;
	int err;

	fl6->flowi6_oif = oif;
	fl6->flowi6_mark = READ_ONCE(sk->sk_mark);
	fl6->flowi6_proto = IPPROTO_TCP;
	fl6->flowi6_uid = sk_uid(sk);
	/* Only AF_INET6 sockets have IPv6 connections. */
	fl6->flowlabel = ip6_make_flowinfo(np->tclass, np->flow_label);
	security_sk_classify_flow(sk, flowi6_to_flowi_common(fl6));
	err = ip6_dst_lookup(sock_net(sk), sk, &dst, fl6);
	return err ? ERR_PTR(err) : dst;
}

/*
 * The L3 domain of a connection: that of the interface the socket is bound to.  Without
 * one, the kernel takes replies from other domains only if net.ipv4.tcp_l3mdev_accept is set.
 */
static int route_l3(const struct sock *sk, struct dst_entry *dst)
{
	struct net *net = sock_net(sk);

	if (sk->sk_bound_dev_if)
		return l3mdev_master_ifindex_by_index(net, sk->sk_bound_dev_if);
	return sovia_l3mdev_accept(net) ? l3mdev_master_ifindex(dst->dev) : 0;
}

static int route_v4(struct sock *sk, const struct in6_addr *daddr, u16 dport,
		    struct sovia_pair *pair, bool *local, bool *lost)
{
	const struct rtable *rt;
	struct dst_entry *dst;
	unsigned int flags;
	struct flowi4 fl4;

	dst = output_v4(sk, &fl4, inet_sk(sk)->inet_saddr, daddr->s6_addr32[3],
			sk->sk_bound_dev_if, inet_sk(sk)->inet_num, dport);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	rt = container_of(dst, struct rtable, dst);
	flags = rt->rt_flags;
	/* RTCF_LOCAL is set for whatever a socket that is bound to the loopback interface sends. */
	*local = rt->rt_type == RTN_LOCAL;
	*lost = route_loses(dst, *local);
	pair->l3 = route_l3(sk, dst);
	dst_release(dst);
	if (flags & (RTCF_MULTICAST | RTCF_BROADCAST))
		return -ENETUNREACH;
	ipv6_addr_set_v4mapped(fl4.saddr, &pair->local);
	ipv6_addr_set_v4mapped(fl4.daddr, &pair->remote);
	return 0;
}

static int route_v6(struct sock *sk, const struct in6_addr *daddr, u16 dport,
		    struct sovia_pair *pair, bool *local, bool *lost)
{
	struct flowi6 fl6 = {
		.daddr = *daddr,
		.saddr = inet6_sk(sk)->saddr,
		.fl6_sport = htons(inet_sk(sk)->inet_num),
		.fl6_dport = htons(dport),
	};
	struct dst_entry *dst = output_v6(sk, &fl6, sk->sk_bound_dev_if);

	if (IS_ERR(dst))
		return PTR_ERR(dst);
	*local = container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_LOCAL;
	*lost = route_loses(dst, *local);
	pair->l3 = route_l3(sk, dst);
	pair->local = fl6.saddr;
	pair->remote = *daddr;
	dst_release(dst);
	return 0;
}

#ifdef CONFIG_XFRM
static bool ipsec_in_use(const struct sock *sk, int dir)
{
	const struct netns_xfrm *xfrm = &sock_net(sk)->xfrm;

	return READ_ONCE(xfrm->policy_count[dir]) ||
	       READ_ONCE(xfrm->policy_default[dir]) == XFRM_USERPOLICY_BLOCK ||
	       rcu_access_pointer(sk->sk_policy[dir]);
}
#else
static bool ipsec_in_use(const struct sock *sk, int dir)
{
	return false;
}
#endif

/**
 * sovia_route_output() - the output route of a connection, as if it sent packets
 * @sk: the connecting socket, or the listener that a peer connects to
 * @pair: addresses of its link
 * @lport: own port
 * @rport: the peer's port
 * @fl: filled in: the packets' flow
 *
 * Context: process or softirq.
 * Return: a route that the caller owns, or an ERR_PTR().
 */
struct dst_entry *sovia_route_output(struct sock *sk, const struct sovia_pair *pair, u16 lport,
				     u16 rport, struct flowi *fl)
{
	/* A listener may take connections of VRFs that it is not bound to. */
	int oif = pair->scope ?: sk->sk_bound_dev_if ?: sk->sk_state == TCP_LISTEN ? pair->l3 : 0;
	struct dst_entry *dst;

	memset(fl, 0, sizeof(*fl));
	if (!ipv6_addr_v4mapped(&pair->remote)) {
		fl->u.ip6.saddr = pair->local;
		fl->u.ip6.daddr = pair->remote;
		fl->u.ip6.fl6_sport = htons(lport);
		fl->u.ip6.fl6_dport = htons(rport);
		return output_v6(sk, &fl->u.ip6, oif);
	}
	dst = output_v4(sk, &fl->u.ip4, pair->local.s6_addr32[3], pair->remote.s6_addr32[3], oif,
			lport, rport);
	if (!IS_ERR(dst))
		fl->u.ip4.flowi4_oif = dst->dev->ifindex;
	return dst;
}

/* Ask the policies of those directions in which there are some. */
static int ask_ipsec(struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport,
		     bool in, bool out)
{
	struct dst_entry *dst;
	struct flowi fl;
	int err = 0;

	dst = sovia_route_output(sk, pair, lport, rport, &fl);
	if (!IS_ERR(dst) && in && !sovia_ipsec_admits(sk, pair, lport, rport, dst))
		err = -EOPNOTSUPP;
	if (!IS_ERR(dst) && out && !err)
		dst = xfrm_lookup(sock_net(sk), dst, &fl, sk, 0);
	if (IS_ERR(dst))
		err = PTR_ERR(dst);
	else if (out && dst_xfrm(dst))
		err = -EOPNOTSUPP;
	/* It would be protected once the keys are negotiated. */
	if (err == -EREMOTE || err == -EAGAIN)
		err = -EOPNOTSUPP;
	if (!IS_ERR(dst))
		dst_release(dst);
	if (err == -EOPNOTSUPP)
		pr_notice_ratelimited("connection with %pI6c: refused, as an IPsec policy applies to it\n",
				      &pair->remote);
	return err;
}

/**
 * sovia_check_ipsec() - may this connection send data in the clear
 * @sk: the connecting socket, or the listener that a peer connects to
 * @pair: addresses of its link
 * @lport: own port
 * @rport: the peer's port
 *
 * IPsec protects packets, and a lane has none of the socket's.  Connections that a
 * policy wants protected are refused.
 *
 * Context: process or softirq.
 * Return: 0, -EOPNOTSUPP if a policy wants it protected, -EPERM if one forbids it, or
 * another errno of the routing table.
 */
int sovia_check_ipsec(struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport)
{
	bool in = ipsec_in_use(sk, XFRM_POLICY_IN), out = ipsec_in_use(sk, XFRM_POLICY_OUT);

	return in || out ? ask_ipsec(sk, pair, lport, rport, in, out) : 0;
}

/* Does an RDMA device have the address?  Under RCU. */
static bool verbs_has(struct net *net, const struct in6_addr *addr, int l3)
{
	struct net_device *dev = sovia_address_device(net, addr, l3);

	return dev && sovia_verbs_provider.reaches(net, addr, dev);
}

/* Both addresses are local.  Do both belong to an RDMA device? */
static bool verbs_has_both(struct net *net, const struct sovia_pair *pair)
{
	bool yes;

	rcu_read_lock();
	yes = verbs_has(net, &pair->local, pair->l3) && verbs_has(net, &pair->remote, pair->l3);
	rcu_read_unlock();
	return yes;
}

/**
 * sovia_route() - find the link's addresses and provider for a destination
 * @sk: the socket, perhaps bound to a source address, to an interface if @daddr is link-local
 * @daddr: destination, IPv4 as v4-mapped; any address means this host
 * @dport: destination port
 * @pair: filled in
 * @prov: filled in; NULL if packets would be lost, as those to an interface that is down, and
 *	those of a socket that is bound to the loopback interface, for another node
 *
 * Context: process, socket lock held.
 * Return: 0, -ENETUNREACH, -EHOSTUNREACH or another errno of the routing table.
 */
int sovia_route(struct sock *sk, const struct in6_addr *daddr, u16 dport,
		struct sovia_pair *pair, const struct sovia_provider **prov)
{
	bool local = false, lost = false;
	int err;

	memset(pair, 0, sizeof(*pair));
	if (ipv6_addr_v4mapped(daddr))
		err = route_v4(sk, daddr, dport, pair, &local, &lost);
	else
		err = route_v6(sk, daddr, dport, pair, &local, &lost);
	if (err)
		return err;
	if (__ipv6_addr_needs_scope_id(ipv6_addr_type(&pair->remote)))
		pair->scope = sk->sk_bound_dev_if;
	if (local && READ_ONCE(hairpin))
		local = !verbs_has_both(sock_net(sk), pair);
	if (lost)
		*prov = NULL;
	else if (!local)
		*prov = &sovia_verbs_provider;
	else
		*prov = sovia_clan_is_soft(sock_net(sk)) ? &sovia_clan_soft_provider :
							   &sovia_loop_provider;
	return 0;
}

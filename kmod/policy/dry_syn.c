// SPDX-License-Identifier: GPL-2.0-only
/*
 * The dry SYN: what netfilter would do to a connection of TCP (Documentation/netfilter.rst).
 *
 *	connect()	LOCAL_OUT, POST_ROUTING;  within this host also PRE_ROUTING, LOCAL_IN
 *	a listener	PRE_ROUTING, LOCAL_IN, for connections of other nodes
 *
 * A SYN with the connection's addresses and ports goes through the hooks, and no further.  If all
 * accept it as it is, AF_SOVIA may carry the connection; otherwise it falls back to TCP, whose
 * packets meet the rules themselves.
 *
 * The hooks are called here, not by nf_hook(): that would queue the SYN to user space, and have
 * conntrack keep an entry.  What steals it nevertheless cannot forward it: its TTL is 1.
 */
#include <linux/if_ether.h>
#include <linux/inetdevice.h>
#include <linux/netfilter.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/l3mdev.h>
#include <net/xfrm.h>
#include "compat/route.h"
#include "dry_syn.h"
#include "route.h"
#include "segment.h"

/**
 * struct dry_syn - a SYN on its way
 * @net: its namespace
 * @sk: its sender, NULL where it arrives
 * @skb: the SYN; NULL once a hook has taken it
 * @tuple: its addresses and ports
 * @pf: NFPROTO_IPV4 or NFPROTO_IPV6
 */
struct dry_syn {
	struct net		*net;
	struct sock		*sk;
	struct sk_buff		*skb;
	struct sovia_tuple	tuple;
	u8			pf;
};

static u8 family_of(const struct sovia_pair *pair)
{
	return ipv6_addr_v4mapped(&pair->local) ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

/* ---- the hooks of a place ---------------------------------------------- */

#ifdef CONFIG_NETFILTER
static struct nf_hook_entries __rcu *const *hooks_of(const struct net *net, u8 pf)
{
	return pf == NFPROTO_IPV4 ? net->nf.hooks_ipv4 : net->nf.hooks_ipv6;
}

/* Is there anything to ask?  @hook1, @hook2: enum nf_inet_hooks */
static bool is_hooked(const struct net *net, u8 pf, unsigned int hook1, unsigned int hook2)
{
	struct nf_hook_entries __rcu *const *hooks = hooks_of(net, pf);

	return (rcu_access_pointer(hooks[hook1]) || rcu_access_pointer(hooks[hook2])) &&
	       READ_ONCE(sovia_net(net)->netfilter.value);
}

/* For hooks that go on with a packet later. */
static int end_here(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	kfree_skb(skb);
	return 0;
}

/*
 * The last hooks are conntrack's, which would keep its entry, and before it the SYNPROXY's,
 * which has nothing to do with a first SYN.  Rules may be there as well.
 */
static bool is_asked(const struct nf_hook_ops *ops)
{
	return ops->priority < INT_MAX - 1 || ops->hook_ops_type != NF_HOOK_OP_UNDEFINED;
}

/* Returns 0, -EPERM if it is dropped, or -EOPNOTSUPP. */
static int judge_verdict(struct dry_syn *syn, int verdict)
{
	switch (verdict & NF_VERDICT_MASK) {
	case NF_ACCEPT:
		return 0;
	case NF_DROP:
		return -EPERM;
	case NF_STOLEN:
		syn->skb = NULL;
		/* Or dropped, by kernels that note a reason. */
		return NF_DROP_GETERR(verdict) ? -EPERM : -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

/*
 * Ask the hooks of a place.  @dev: where it leaves or arrives.  Returns 0 if it may go on as it
 * is, -EPERM if it is dropped, or -EOPNOTSUPP.
 */
static int syn_ask(struct dry_syn *syn, unsigned int hook, struct net_device *dev)
{
	bool arrives = hook == NF_INET_PRE_ROUTING || hook == NF_INET_LOCAL_IN;
	const struct nf_hook_entries *hooks;
	struct nf_hook_state state;
	struct nf_hook_ops **ops;
	unsigned int i;
	int err = 0;

	hooks = rcu_dereference(hooks_of(syn->net, syn->pf)[hook]);
	if (!hooks)
		return 0;
	ops = nf_hook_entries_get_hook_ops(hooks);
	nf_hook_state_init(&state, hook, syn->pf, arrives ? dev : NULL, arrives ? NULL : dev,
			   syn->sk, syn->net, end_here);
	for (i = 0; i < hooks->num_hook_entries && !err; i++) {
		if (is_asked(READ_ONCE(ops[i])))
			err = judge_verdict(syn, nf_hook_entry_hookfn(&hooks->hooks[i], syn->skb,
								      &state));
	}
	if (err)
		return err;
	/* NAT has changed the one, TPROXY the other. */
	return sovia_segment_is(syn->skb, &syn->tuple) && syn->skb->sk == syn->sk ? 0 :
										     -EOPNOTSUPP;
}
#else
static bool is_hooked(const struct net *net, u8 pf, unsigned int hook1, unsigned int hook2)
{
	return false;
}

static int syn_ask(struct dry_syn *syn, unsigned int hook, struct net_device *dev)
{
	return 0;
}
#endif /* CONFIG_NETFILTER */

/* ---- the way ------------------------------------------------------------ */

static int syn_begin(struct dry_syn *syn, gfp_t gfp)
{
	unsigned int room = LL_MAX_HEADER + SOVIA_SEGMENT_ROOM;

	BUILD_BUG_ON(LL_MAX_HEADER < ETH_HLEN);

	syn->skb = alloc_skb(room, gfp | __GFP_NOWARN);
	if (!syn->skb)
		return -ENOBUFS;
	skb_reserve(syn->skb, room);
	sovia_segment_push(syn->skb, &syn->tuple, true, 1);
	if (syn->pf == NFPROTO_IPV6)
		IP6CB(syn->skb)->nhoff = offsetof(struct ipv6hdr, nexthdr);
	return 0;
}

static void syn_end(struct dry_syn *syn)
{
	consume_skb(syn->skb);
	sovia_stat_inc(sovia_net(syn->net), dry_syn);
}

/* It arrives at @dev, from no link-layer address. */
static void syn_arrive(struct dry_syn *syn, struct net_device *dev)
{
	struct sk_buff *skb = syn->skb;

	/* Logs print it whatever it is. */
	skb_set_mac_header(skb, -ETH_HLEN);
	memset(skb_mac_header(skb), 0, ETH_HLEN);
	eth_hdr(skb)->h_proto = skb->protocol;
	skb_reset_mac_len(skb);
	skb->dev = dev;
	skb->skb_iif = dev->ifindex;
	if (syn->pf == NFPROTO_IPV4)
		IPCB(skb)->iif = dev->ifindex;
	else
		IP6CB(skb)->iif = dev->ifindex;
}

static bool is_local(const struct dst_entry *dst, u8 pf)
{
	if (pf == NFPROTO_IPV4)
		return container_of(dst, struct rtable, dst)->rt_type == RTN_LOCAL;
	return container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_LOCAL;
}

/* A hook may have rerouted the packet (ip_route_me_harder()): is the route still @old? */
static bool is_same_route(const struct dst_entry *dst, const struct dst_entry *old, u8 pf)
{
	if (dst == old)
		return true;
	if (dst->dev != old->dev || dst_xfrm(dst))
		return false;
	if (pf == NFPROTO_IPV4)
		return !container_of(dst, struct rtable, dst)->rt_gw_family;
	return !(container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_GATEWAY);
}

/* It leaves by @dev, which is that of @dst, or its VRF. */
static int leave_by(struct dry_syn *syn, struct net_device *dev, const struct dst_entry *dst)
{
	int err = syn_ask(syn, NF_INET_LOCAL_OUT, dev);

	if (err)
		return err;
	if (!is_same_route(skb_dst(syn->skb), dst, syn->pf))
		return -EOPNOTSUPP;
	syn->skb->dev = dev;
	return syn_ask(syn, NF_INET_POST_ROUTING, dev);
}

/* Under RCU. */
static int syn_leave(struct dry_syn *syn, const struct dst_entry *dst)
{
	struct net_device *vrf = l3mdev_master_dev_rcu(dst->dev);
	int err = 0;

	/* As packets do, which have left a VRF before its member. */
	if (vrf && vrf != dst->dev)
		err = leave_by(syn, vrf, dst);
	return err ?: leave_by(syn, dst->dev, dst);
}

/* May it reach a socket here?  One that comes from this host has its route. */
static bool route_input(struct dry_syn *syn)
{
	struct sk_buff *skb = syn->skb;
	struct in_device *in_dev;

	if (skb_dst(skb)) {
		in_dev = syn->pf == NFPROTO_IPV4 ? __in_dev_get_rcu(skb->dev) : NULL;
		if (in_dev && IN_DEV_ORCONF(in_dev, NOPOLICY))
			IPCB(skb)->flags |= IPSKB_NOPOLICY;
		return true;
	}
	if (!(syn->pf == NFPROTO_IPV4 ? sovia_route_input4(skb) : sovia_route_input6(skb)))
		return false;
	return is_local(skb_dst(skb), syn->pf);
}

/* Under RCU, bottom halves off. */
static int syn_enter(struct dry_syn *syn, struct net_device *dev)
{
	struct net_device *vrf = l3mdev_master_dev_rcu(dev);
	int err;

	syn_arrive(syn, dev);
	err = syn_ask(syn, NF_INET_PRE_ROUTING, dev);
	if (!err && vrf && vrf != dev) {
		dev = vrf;
		syn_arrive(syn, dev);
		err = syn_ask(syn, NF_INET_PRE_ROUTING, dev);
	}
	if (err)
		return err;
	return route_input(syn) ? syn_ask(syn, NF_INET_LOCAL_IN, dev) : -EOPNOTSUPP;
}

/* Within this host the packet that leaves is the one that arrives, so that conntrack knows it. */
static int loop_back(struct dry_syn *syn, struct net_device *dev)
{
	int err;

	skb_orphan(syn->skb);
	syn->sk = NULL;
	local_bh_disable();
	err = syn_enter(syn, dev);
	local_bh_enable();
	return err;
}

/* ---- connect() ---------------------------------------------------------- */

static int leave_and_loop(struct dry_syn *syn, struct dst_entry *dst, bool local)
{
	struct sock *sk = syn->sk;
	int err = syn_begin(syn, sk->sk_allocation);

	if (err)
		return err;
	/* Rules ask for the owner. */
	if (!skb_set_owner_sk_safe(syn->skb, sk))
		syn->sk = NULL;
	syn->skb->priority = READ_ONCE(sk->sk_priority);
	syn->skb->mark = READ_ONCE(sk->sk_mark);
	skb_dst_set(syn->skb, dst_clone(dst));
	rcu_read_lock();
	err = syn_leave(syn, dst);
	if (!err && local)
		err = loop_back(syn, dst->dev);
	syn_end(syn);
	rcu_read_unlock();
	if (err)
		sovia_stat_inc(sovia_net(syn->net), dry_syn_tcp);
	return err;
}

static int ask_out(struct sock *sk, const struct sovia_pair *pair, u16 rport, bool local)
{
	u16 lport = inet_sk(sk)->inet_num;
	struct dry_syn syn = {
		.net = sock_net(sk),
		.sk = sk,
		.pf = family_of(pair),
		.tuple = { pair->local, pair->remote, lport, rport },
	};
	struct dst_entry *dst;
	struct flowi fl;
	int err;

	dst = sovia_route_output(sk, pair, lport, rport, &fl);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	err = leave_and_loop(&syn, dst, local);
	dst_release(dst);
	return err;
}

/**
 * sovia_dry_syn_out() - would netfilter let this connection out, as it is
 * @sk: the connecting socket, which has its port
 * @pair: addresses of its link
 * @rport: the peer's port
 * @local: the peer is this host: would it let it in as well
 *
 * Context: process, socket lock held.
 * Return: 0, -EPERM if not, -EOPNOTSUPP if only TCP can be what netfilter makes of it,
 * -ENOBUFS, or an errno of the routing table.
 */
int sovia_dry_syn_out(struct sock *sk, const struct sovia_pair *pair, u16 rport, bool local)
{
	const struct net *net = sock_net(sk);
	u8 pf = family_of(pair);

	if (is_hooked(net, pf, NF_INET_LOCAL_OUT, NF_INET_POST_ROUTING) ||
	    (local && is_hooked(net, pf, NF_INET_PRE_ROUTING, NF_INET_LOCAL_IN)))
		return ask_out(sk, pair, rport, local);
	return 0;
}

/* ---- a listener --------------------------------------------------------- */

/* A segment from the peer is to arrive by the route to it. */
static int arrival_begin(struct dry_syn *syn, struct dst_entry *dst)
{
	int err = syn_begin(syn, GFP_ATOMIC);

	if (!err && is_local(dst, syn->pf))
		skb_dst_set(syn->skb, dst_clone(dst));
	return err;
}

static int ask_in(struct sock *listener, const struct sovia_pair *pair, u16 lport, u16 rport)
{
	struct dry_syn syn = {
		.net = sock_net(listener),
		.pf = family_of(pair),
		.tuple = { pair->remote, pair->local, rport, lport },
	};
	struct dst_entry *dst;
	struct flowi fl;
	int err;

	dst = sovia_route_output(listener, pair, lport, rport, &fl);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	err = arrival_begin(&syn, dst);
	if (!err) {
		rcu_read_lock();
		err = syn_enter(&syn, dst->dev);
		syn_end(&syn);
		rcu_read_unlock();
		if (err)
			sovia_stat_inc(sovia_net(syn.net), dry_syn_tcp);
	}
	dst_release(dst);
	return err;
}

/**
 * sovia_dry_syn_in() - would netfilter let this connection in, as it is
 * @listener: the listener
 * @pair: addresses of its link, to another node
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: softirq; no locks.
 * Return: 0, -ENOBUFS, or another negative errno: the connection falls back to TCP.
 */
int sovia_dry_syn_in(struct sock *listener, const struct sovia_pair *pair, u16 lport, u16 rport)
{
	if (is_hooked(sock_net(listener), family_of(pair), NF_INET_PRE_ROUTING, NF_INET_LOCAL_IN))
		return ask_in(listener, pair, lport, rport);
	return 0;
}

/* ---- IPsec -------------------------------------------------------------- */

/**
 * sovia_ipsec_admits() - do inbound IPsec policies let the peer's data in unprotected
 * @sk: the connecting socket, or the listener
 * @pair: addresses of its link
 * @lport: own port
 * @rport: the peer's port
 * @dst: the route to the peer
 *
 * Context: process or softirq.
 * Return: true if so, and without memory false.
 */
bool sovia_ipsec_admits(struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport,
			struct dst_entry *dst)
{
	struct dry_syn syn = {
		.net = sock_net(sk),
		.pf = family_of(pair),
		.tuple = { pair->remote, pair->local, rport, lport },
	};
	bool admitted;

	if (arrival_begin(&syn, dst))
		return false;
	local_bh_disable();
	rcu_read_lock();
	syn_arrive(&syn, l3mdev_master_dev_rcu(dst->dev) ?: dst->dev);
	admitted = route_input(&syn) &&
		   xfrm_policy_check(sk, XFRM_POLICY_IN, syn.skb,
				     syn.pf == NFPROTO_IPV4 ? AF_INET : AF_INET6);
	consume_skb(syn.skb);
	rcu_read_unlock();
	local_bh_enable();
	return admitted;
}

/* ---- the switch --------------------------------------------------------- */

/**
 * sovia_dry_syn_net_init() - register a namespace's switch
 * @snet: the namespace
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_dry_syn_net_init(struct sovia_net *snet)
{
	return sovia_sysctl_add(snet->net, &snet->netfilter, "netfilter", SYSCTL_ONE,
				proc_dointvec_minmax);
}

/**
 * sovia_dry_syn_net_exit() - remove it
 * @snet: the namespace
 *
 * Context: pernet pre_exit.
 */
void sovia_dry_syn_net_exit(struct sovia_net *snet)
{
	sovia_sysctl_remove(&snet->netfilter);
}

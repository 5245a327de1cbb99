/* SPDX-License-Identifier: GPL-2.0-only */
/* The routing of packets that arrive. */
#ifndef _SOVIA_COMPAT_ROUTE_H
#define _SOVIA_COMPAT_ROUTE_H

#include <linux/ip.h>
#include <linux/version.h>
#include <net/ip6_route.h>
#include <net/route.h>

/* 6.13 gave the DSCP a type, and the result that of a reason to drop. */
static inline bool sovia_route_input4(struct sk_buff *skb)
{
	const struct iphdr *iph = ip_hdr(skb);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	return !ip_route_input_noref(skb, iph->daddr, iph->saddr, ip4h_dscp(iph), skb->dev);
#else
	return !ip_route_input_noref(skb, iph->daddr, iph->saddr, iph->tos, skb->dev);
#endif
}

/* Kernels that may have IPv6 as a module call it by a table. */
#ifdef SOVIA_IPV6_STUBS
#include <net/ipv6_stubs.h>

static inline bool sovia_route_input6(struct sk_buff *skb)
{
	return !ipv6_stub->ipv6_route_input(skb);
}
#else
static inline bool sovia_route_input6(struct sk_buff *skb)
{
	ip6_route_input(skb);
	return !skb_dst(skb)->error;
}
#endif

#endif /* _SOVIA_COMPAT_ROUTE_H */

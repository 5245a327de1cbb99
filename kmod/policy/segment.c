// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP segments that are made up: programs (program.c) and netfilter (dry_syn.c) expect
 * them.  They have the connection's addresses and ports, and are never sent.
 */
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include "segment.h"

static struct tcphdr *push_tcp(struct sk_buff *skb, const struct sovia_tuple *tuple, bool syn)
{
	struct tcphdr *th = __skb_push(skb, sizeof(*th));

	memset(th, 0, sizeof(*th));
	th->source = htons(tuple->sport);
	th->dest = htons(tuple->dport);
	th->doff = sizeof(*th) / 4;
	th->syn = syn;
	th->ack = !syn;
	th->window = htons(U16_MAX);
	skb_reset_transport_header(skb);
	return th;
}

static void push_v4(struct sk_buff *skb, const struct sovia_tuple *tuple, u8 ttl)
{
	u16 len = min_t(u32, skb->len + sizeof(struct iphdr), U16_MAX);
	struct iphdr *iph = __skb_push(skb, sizeof(*iph));

	*iph = (struct iphdr) {
		.version = 4,
		.ihl = sizeof(*iph) / 4,
		.tot_len = htons(len),
		.frag_off = htons(IP_DF),
		.ttl = ttl,
		.protocol = IPPROTO_TCP,
		.saddr = tuple->saddr.s6_addr32[3],
		.daddr = tuple->daddr.s6_addr32[3],
	};
	ip_send_check(iph);
	skb->protocol = htons(ETH_P_IP);
}

static void push_v6(struct sk_buff *skb, const struct sovia_tuple *tuple, u8 hop_limit)
{
	u16 len = min_t(u32, skb->len, U16_MAX);
	struct ipv6hdr *ip6h = __skb_push(skb, sizeof(*ip6h));

	*ip6h = (struct ipv6hdr) {
		.version = 6,
		.payload_len = htons(len),
		.nexthdr = IPPROTO_TCP,
		.hop_limit = hop_limit,
		.saddr = tuple->saddr,
		.daddr = tuple->daddr,
	};
	skb->protocol = htons(ETH_P_IPV6);
}

/**
 * sovia_segment_push() - put headers of IP and TCP before the data
 * @skb: has SOVIA_SEGMENT_ROOM there; no data if @syn
 * @tuple: addresses and ports
 * @syn: a SYN, whose checksum is right, else an ACK, without one
 * @ttl: TTL or hop limit
 *
 * Context: any.
 */
void sovia_segment_push(struct sk_buff *skb, const struct sovia_tuple *tuple, bool syn, u8 ttl)
{
	struct tcphdr *th = push_tcp(skb, tuple, syn);
	__wsum sum = syn ? csum_partial(th, sizeof(*th), 0) : 0;

	if (ipv6_addr_v4mapped(&tuple->daddr)) {
		if (syn)
			th->check = tcp_v4_check(sizeof(*th), tuple->saddr.s6_addr32[3],
						 tuple->daddr.s6_addr32[3], sum);
		push_v4(skb, tuple, ttl);
	} else {
		if (syn)
			th->check = csum_ipv6_magic(&tuple->saddr, &tuple->daddr, sizeof(*th),
						    IPPROTO_TCP, sum);
		push_v6(skb, tuple, ttl);
	}
	skb_reset_network_header(skb);
}

/**
 * sovia_segment_is() - does a segment still have these addresses and ports
 * @skb: made by sovia_segment_push(); others may have changed it
 * @tuple: the addresses and ports
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_segment_is(const struct sk_buff *skb, const struct sovia_tuple *tuple)
{
	const struct ipv6hdr *ip6h = ipv6_hdr(skb);
	const struct iphdr *iph = ip_hdr(skb);
	const struct tcphdr *th;

	if (ipv6_addr_v4mapped(&tuple->daddr)) {
		th = (const struct tcphdr *)(iph + 1);
		if (iph->version != 4 || iph->ihl != sizeof(*iph) / 4 ||
		    iph->protocol != IPPROTO_TCP ||
		    iph->saddr != tuple->saddr.s6_addr32[3] ||
		    iph->daddr != tuple->daddr.s6_addr32[3])
			return false;
	} else {
		th = (const struct tcphdr *)(ip6h + 1);
		if (ip6h->version != 6 || ip6h->nexthdr != IPPROTO_TCP ||
		    !ipv6_addr_equal(&ip6h->saddr, &tuple->saddr) ||
		    !ipv6_addr_equal(&ip6h->daddr, &tuple->daddr))
			return false;
	}
	return th->source == htons(tuple->sport) && th->dest == htons(tuple->dport) &&
	       th->syn && !th->ack;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/segment_test.c"
#endif

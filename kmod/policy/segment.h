/* SPDX-License-Identifier: GPL-2.0-only */
/* TCP segments that are made up, for those who expect one. */
#ifndef _SOVIA_SEGMENT_H
#define _SOVIA_SEGMENT_H

#include <linux/in6.h>
#include <linux/skbuff.h>

/* Bytes of the longest headers. */
#define SOVIA_SEGMENT_ROOM	(sizeof(struct ipv6hdr) + sizeof(struct tcphdr))

/**
 * struct sovia_tuple - addresses and ports of a segment
 * @saddr: source, IPv4 as v4-mapped
 * @daddr: destination
 * @sport: source port
 * @dport: destination port
 */
struct sovia_tuple {
	struct in6_addr	saddr;
	struct in6_addr	daddr;
	u16		sport;
	u16		dport;
};

void sovia_segment_push(struct sk_buff *skb, const struct sovia_tuple *tuple, bool syn, u8 ttl);
bool sovia_segment_is(const struct sk_buff *skb, const struct sovia_tuple *tuple);

#endif /* _SOVIA_SEGMENT_H */

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of segment.c; included by it. */
#include "suites.h"

static const struct sovia_tuple segment_test_v4 = {
	.saddr.s6_addr = { [10] = 0xff, 0xff, 10, 1, 0, 1 },
	.daddr.s6_addr = { [10] = 0xff, 0xff, 10, 1, 0, 2 },
	.sport = 40000,
	.dport = 80,
};

static const struct sovia_tuple segment_test_v6 = {
	.saddr.s6_addr = { 0xfd, [15] = 1 },
	.daddr.s6_addr = { 0xfd, [15] = 2 },
	.sport = 40000,
	.dport = 80,
};

static struct sk_buff *segment_test_syn(struct kunit *test, const struct sovia_tuple *tuple)
{
	struct sk_buff *skb = alloc_skb(SOVIA_SEGMENT_ROOM, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_reserve(skb, SOVIA_SEGMENT_ROOM);
	sovia_segment_push(skb, tuple, true, 1);
	return skb;
}

/* A receiver's checks pass. */
static void segment_checksums(struct kunit *test)
{
	struct sk_buff *skb = segment_test_syn(test, &segment_test_v4);
	const struct iphdr *iph = ip_hdr(skb);

	KUNIT_EXPECT_EQ(test, skb->len, 40);
	KUNIT_EXPECT_EQ(test, iph->ttl, 1);
	KUNIT_EXPECT_EQ(test, (__force u16)ip_fast_csum(iph, iph->ihl), 0);
	KUNIT_EXPECT_EQ(test, (__force u16)tcp_v4_check(20, iph->saddr, iph->daddr,
							csum_partial(tcp_hdr(skb), 20, 0)), 0);
	kfree_skb(skb);

	skb = segment_test_syn(test, &segment_test_v6);
	KUNIT_EXPECT_EQ(test, skb->len, 60);
	KUNIT_EXPECT_EQ(test, ipv6_hdr(skb)->hop_limit, 1);
	KUNIT_EXPECT_EQ(test, (__force u16)csum_ipv6_magic(&segment_test_v6.saddr,
							   &segment_test_v6.daddr, 20, IPPROTO_TCP,
							   csum_partial(tcp_hdr(skb), 20, 0)), 0);
	kfree_skb(skb);
}

/* Whatever NAT changes is noticed. */
static void segment_changes(struct kunit *test)
{
	const struct sovia_tuple *tuples[] = { &segment_test_v4, &segment_test_v6 };
	int i;

	for (i = 0; i < ARRAY_SIZE(tuples); i++) {
		const struct sovia_tuple *tuple = tuples[i];
		struct sk_buff *skb = segment_test_syn(test, tuple);
		struct tcphdr *th = tcp_hdr(skb);
		u8 *saddr, *daddr;

		if (i) {
			saddr = ipv6_hdr(skb)->saddr.s6_addr;
			daddr = ipv6_hdr(skb)->daddr.s6_addr;
		} else {
			saddr = (u8 *)&ip_hdr(skb)->saddr;
			daddr = (u8 *)&ip_hdr(skb)->daddr;
		}
		KUNIT_EXPECT_TRUE(test, sovia_segment_is(skb, tuple));
		KUNIT_EXPECT_FALSE(test, sovia_segment_is(skb, tuples[!i]));
		saddr[0]++;
		KUNIT_EXPECT_FALSE(test, sovia_segment_is(skb, tuple));
		saddr[0]--;
		daddr[3]++;
		KUNIT_EXPECT_FALSE(test, sovia_segment_is(skb, tuple));
		daddr[3]--;
		th->source ^= htons(1);
		KUNIT_EXPECT_FALSE(test, sovia_segment_is(skb, tuple));
		th->source ^= htons(1);
		th->dest ^= htons(1);
		KUNIT_EXPECT_FALSE(test, sovia_segment_is(skb, tuple));
		th->dest ^= htons(1);
		th->rst = 1;
		KUNIT_EXPECT_TRUE(test, sovia_segment_is(skb, tuple));
		kfree_skb(skb);
	}
}

static struct kunit_case segment_cases[] = {
	KUNIT_CASE(segment_checksums),
	KUNIT_CASE(segment_changes),
	{}
};

struct kunit_suite sovia_segment_suite = {
	.name = "sovia-segment",
	.test_cases = segment_cases,
};

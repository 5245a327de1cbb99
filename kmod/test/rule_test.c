// SPDX-License-Identifier: GPL-2.0-only
/* KUnit: rules; included by rule.c. */
#include <kunit/test.h>
#include "suites.h"

/* A list of @count rules that every connection matches, for this namespace. */
static struct sovia_rules *some_rules(struct kunit *test, unsigned int count)
{
	struct sovia_rules *rules = sovia_rules_alloc(count);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, rules);
	for (i = 0; i < count; i++)
		sovia_rule_init(&rules->rule[i]);
	return rules;
}

static void v4(struct in6_addr *addr, u32 host)
{
	ipv6_addr_set_v4mapped(htonl(host), addr);
}

static void rule_prefix(struct kunit *test)
{
	struct sovia_pair pair = {};
	struct sovia_rule rule;

	sovia_rule_init(&rule);
	v4(&pair.remote, 0x0a010203);
	KUNIT_EXPECT_TRUE(test, peer_matches(&rule, &pair));
	v4(&rule.peer, 0x0a010000);
	rule.prefix = 96 + 16;
	KUNIT_EXPECT_TRUE(test, peer_matches(&rule, &pair));
	v4(&pair.remote, 0x0a020203);
	KUNIT_EXPECT_FALSE(test, peer_matches(&rule, &pair));
	pair.remote = in6addr_loopback;
	KUNIT_EXPECT_FALSE(test, peer_matches(&rule, &pair));
}

/* A peer that may connect to one port gets a link. */
static void rule_peers(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_rules *rules = some_rules(test, 3);
	struct sovia_pair pair = {};

	v4(&pair.remote, 0xc6336401);
	rules->rule[0].directions = SOVIA_RULE_OUT;
	rules->rule[0].action = SOVIA_DENY;
	rules->rule[1].action = SOVIA_DENY;
	rules->rule[1].port_min = 80;
	v4(&rules->rule[2].peer, 0xc6336400);
	rules->rule[2].prefix = 96 + 24;
	rules->rule[2].action = SOVIA_ONLY_TCP;
	sovia_rules_replace(snet, rules);
	KUNIT_EXPECT_FALSE(test, sovia_rules_admit_peer(snet, &pair));
	v4(&pair.remote, 0xc6336501);
	KUNIT_EXPECT_TRUE(test, sovia_rules_admit_peer(snet, &pair));

	rules = some_rules(test, 2);
	rules->rule[0].uid_min = 1000;
	rules->rule[1].action = SOVIA_DENY;
	sovia_rules_replace(snet, rules);
	KUNIT_EXPECT_TRUE(test, sovia_rules_admit_peer(snet, &pair));
	rules = some_rules(test, 1);
	rules->rule[0].action = SOVIA_DENY;
	sovia_rules_replace(snet, rules);
	KUNIT_EXPECT_FALSE(test, sovia_rules_admit_peer(snet, &pair));
	sovia_rules_replace(snet, NULL);
	KUNIT_EXPECT_TRUE(test, sovia_rules_admit_peer(snet, &pair));
}

/* A lane is for all connections to the peer: rules that are not do not count. */
static void rule_tos(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_rules *rules = some_rules(test, 5);
	struct sovia_pair pair = {};

	v4(&pair.remote, 0xc6336401);
	KUNIT_EXPECT_EQ(test, sovia_rules_tos(snet, &pair), SOVIA_TOS_DEFAULT);
	rules->rule[0].directions = SOVIA_RULE_IN;
	rules->rule[0].tos = 1;
	rules->rule[1].gid_min = 5;
	rules->rule[1].tos = 2;
	strscpy(rules->rule[2].device, "none", sizeof(rules->rule[2].device));
	rules->rule[2].tos = 3;
	v4(&rules->rule[3].peer, 0xc6336400);
	rules->rule[3].prefix = 96 + 24;
	rules->rule[3].tos = 0;
	rules->rule[4].tos = 255;
	sovia_rules_replace(snet, rules);
	KUNIT_EXPECT_EQ(test, sovia_rules_tos(snet, &pair), 0U);
	KUNIT_EXPECT_EQ(test, sovia_tos(snet, &pair), 0U);
	v4(&pair.remote, 0xc6336501);
	KUNIT_EXPECT_EQ(test, sovia_rules_tos(snet, &pair), 255U);
	/* The first of them decides, with a type of service or without. */
	rules = some_rules(test, 2);
	rules->rule[1].tos = 4;
	sovia_rules_replace(snet, rules);
	KUNIT_EXPECT_EQ(test, sovia_rules_tos(snet, &pair), SOVIA_TOS_DEFAULT);
	sovia_rules_replace(snet, NULL);
}

static struct kunit_case rule_cases[] = {
	KUNIT_CASE(rule_prefix),
	KUNIT_CASE(rule_peers),
	KUNIT_CASE(rule_tos),
	{}
};

struct kunit_suite sovia_rule_suite = {
	.name = "sovia-rule",
	.test_cases = rule_cases,
};

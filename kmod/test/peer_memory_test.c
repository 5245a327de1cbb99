// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of peer_memory.c; included by it. */
#include <net/ipv6.h>
#include "suites.h"

static struct sovia_pair memory_pair(u32 host)
{
	struct sovia_pair pair = {};

	ipv6_addr_set_v4mapped(htonl(0x0a000001), &pair.local);
	ipv6_addr_set_v4mapped(htonl(0x0a000100 + host), &pair.remote);
	return pair;
}

static struct sovia_net *memory_net(struct kunit *test)
{
	struct sovia_net *snet = kunit_kzalloc(test, sizeof(*snet), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, snet);
	snet->net = &init_net;
	sovia_memories_init(snet);
	return snet;
}

/* The time of what is known of a peer is over. */
static void memory_expire(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct memory *memory;

	spin_lock_bh(&snet->memories.lock);
	memory = memory_find(snet, pair);
	memory->until = jiffies;
	memory->learnt = jiffies - memory->delay;
	spin_unlock_bh(&snet->memories.lock);
}

static unsigned long memory_seconds(struct sovia_net *snet, const struct sovia_pair *pair)
{
	unsigned long delay;

	rcu_read_lock();
	delay = memory_find(snet, pair)->delay;
	rcu_read_unlock();
	return delay / HZ;
}

/* One pair of addresses, L3 domain and scope, and no other. */
static void memory_keys(struct kunit *test)
{
	struct sovia_pair pair = memory_pair(0), other = memory_pair(1);
	struct sovia_net *snet = memory_net(test);

	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_NONE);
	sovia_memory_learn(snet, &pair, SOVIA_WHY_SILENT);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_TCP);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &other, NULL), SOVIA_MEMORY_NONE);
	other = pair;
	other.l3 = 7;
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &other, NULL), SOVIA_MEMORY_NONE);
	other.l3 = 0;
	other.scope = 7;
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &other, NULL), SOVIA_MEMORY_NONE);
	other.scope = 0;
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &other, NULL), SOVIA_MEMORY_TCP);
	other.local = other.remote;
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &other, NULL), SOVIA_MEMORY_NONE);
	sovia_memory_clear(snet, &pair);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_NONE);
	KUNIT_EXPECT_EQ(test, snet->memories.count, 0);
}

/* One caller renews it; if nothing has changed, the time doubles, up to the most. */
static void memory_renews(struct kunit *test)
{
	static const unsigned int want[] = { 60, 120, 240, 480, 960, 1920, 3600, 3600 };
	struct sovia_net *snet = memory_net(test);
	struct sovia_pair pair = memory_pair(0);
	int i;

	for (i = 0; i < ARRAY_SIZE(want); i++) {
		sovia_memory_learn(snet, &pair, SOVIA_WHY_SILENT);
		/* Others learn the same. */
		sovia_memory_learn(snet, &pair, SOVIA_WHY_SILENT);
		sovia_memory_learn(snet, &pair, SOVIA_WHY_WAY);
		KUNIT_EXPECT_EQ(test, memory_seconds(snet, &pair), want[i]);
		KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_TCP);
		memory_expire(snet, &pair);
		KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_RENEW);
		KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_TCP);
	}
	sovia_memories_forget(snet);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_NONE);
}

/* The oldest goes when there are too many. */
static void memory_bounded(struct kunit *test)
{
	struct sovia_net *snet = memory_net(test);
	struct sovia_pair pair;
	u32 i;

	for (i = 0; i <= MEMORIES_MAX; i++) {
		pair = memory_pair(i);
		sovia_memory_learn(snet, &pair, SOVIA_WHY_SILENT);
	}
	KUNIT_EXPECT_EQ(test, snet->memories.count, MEMORIES_MAX);
	pair = memory_pair(0);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_NONE);
	pair = memory_pair(1);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(snet, &pair, NULL), SOVIA_MEMORY_TCP);
	sovia_memories_forget(snet);
	KUNIT_EXPECT_EQ(test, snet->memories.count, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&snet->memories.lru));
}

/* A port of a peer in an L3 domain and scope, from any address here, until the time is over. */
static void memory_services(struct kunit *test)
{
	struct sovia_pair pair = memory_pair(0), other = memory_pair(1);
	struct sovia_net *snet = memory_net(test);
	u64 key = sovia_service_key(snet, &pair, 22);
	struct sovia_service *slot = &snet->memories.services[service_slot(key)];

	snet->memories.services_until = jiffies;
	KUNIT_EXPECT_FALSE(test, sovia_services_any(snet));
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, key));
	sovia_service_learn(snet, key, jiffies);
	KUNIT_EXPECT_TRUE(test, sovia_services_any(snet));
	KUNIT_EXPECT_TRUE(test, sovia_service_is_tcp(snet, key));
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, sovia_service_key(snet, &pair, 23)));
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, sovia_service_key(snet, &other, 22)));
	other = pair;
	other.l3 = 7;
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, sovia_service_key(snet, &other, 22)));
	other = pair;
	other.scope = 7;
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, sovia_service_key(snet, &other, 22)));
	other = pair;
	other.local = other.remote;
	KUNIT_EXPECT_TRUE(test, sovia_service_is_tcp(snet, sovia_service_key(snet, &other, 22)));
	/* Another port takes the slot. */
	sovia_service_learn(snet, key ^ 1ULL << 63, jiffies);
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, key));
	sovia_service_learn(snet, key, jiffies);
	slot->until = jiffies;
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, key));
	/* The connection has lasted longer. */
	sovia_service_learn(snet, key, jiffies - SERVICE_TIME);
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, key));
	sovia_service_learn(snet, key, jiffies);
	sovia_service_forget(snet, key ^ 1ULL << 63);
	KUNIT_EXPECT_TRUE(test, sovia_service_is_tcp(snet, key));
	sovia_service_forget(snet, key);
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, key));
	sovia_service_learn(snet, key, jiffies);
	sovia_memories_forget(snet);
	KUNIT_EXPECT_FALSE(test, sovia_service_is_tcp(snet, key));
}

static struct kunit_case peer_memory_test_cases[] = {
	KUNIT_CASE(memory_keys),
	KUNIT_CASE(memory_renews),
	KUNIT_CASE(memory_bounded),
	KUNIT_CASE(memory_services),
	{}
};

struct kunit_suite sovia_peer_memory_suite = {
	.name = "sovia-peer-memory",
	.test_cases = peer_memory_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of clan/pool.c; included by it. */
#include "suites.h"

#define POOL_TEST_PAGES	64u

static struct sovia_clan_pool *pool_test_make(struct kunit *test)
{
	struct sovia_clan_pool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pool);
	KUNIT_ASSERT_EQ(test, sovia_clan_pool_init(pool, POOL_TEST_PAGES), 0);
	return pool;
}

/* A node gets a quarter, and no page that another one has. */
static void pool_cap(struct kunit *test)
{
	struct sovia_clan_pool *pool = pool_test_make(test);
	bool seen[POOL_TEST_PAGES] = {};
	u32 cookies[16], node, i;

	for (node = 0; node < 4; node++) {
		KUNIT_EXPECT_EQ(test, sovia_clan_pool_lend(pool, node, 17, cookies), -EAGAIN);
		KUNIT_EXPECT_EQ(test, sovia_clan_pool_lend(pool, node, 16, cookies), 0);
		KUNIT_EXPECT_EQ(test, sovia_clan_pool_lend(pool, node, 1, cookies), -EAGAIN);
		for (i = 0; i < 16; i++) {
			KUNIT_ASSERT_LT(test, cookies[i], POOL_TEST_PAGES);
			KUNIT_EXPECT_FALSE(test, seen[cookies[i]]);
			seen[cookies[i]] = true;
		}
	}
	KUNIT_EXPECT_EQ(test, sovia_clan_pool_lend(pool, 4, 1, cookies), -EAGAIN);
	sovia_clan_pool_reclaim(pool, 2);
	KUNIT_EXPECT_EQ(test, sovia_clan_pool_lend(pool, 4, 16, cookies), 0);
	sovia_clan_pool_exit(pool);
}

/* Only what is lent to a node comes back from it, and once. */
static int pool_test_return(struct sovia_clan_pool *pool, u32 node, u32 cookie)
{
	return sovia_clan_pool_return(pool, node, &cookie, 1);
}

static void pool_return(struct kunit *test)
{
	struct sovia_clan_pool *pool = pool_test_make(test);
	u32 cookies[2];

	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 1, 0), -EPROTO);
	KUNIT_ASSERT_EQ(test, sovia_clan_pool_lend(pool, 1, 2, cookies), 0);
	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 0, cookies[0]), -EPROTO);
	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 1, POOL_TEST_PAGES), -EPROTO);
	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 1, U32_MAX), -EPROTO);
	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 1, cookies[0]), 0);
	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 1, cookies[0]), -EPROTO);
	KUNIT_EXPECT_EQ(test, pool->lent[1], 1);
	KUNIT_EXPECT_EQ(test, pool->count, POOL_TEST_PAGES - 1);
	sovia_clan_pool_reclaim(pool, 1);
	KUNIT_EXPECT_EQ(test, pool->count, POOL_TEST_PAGES);
	KUNIT_EXPECT_EQ(test, pool_test_return(pool, 1, cookies[1]), -EPROTO);
	sovia_clan_pool_exit(pool);
}

static struct kunit_case pool_cases[] = {
	KUNIT_CASE(pool_cap),
	KUNIT_CASE(pool_return),
	{}
};

struct kunit_suite sovia_clan_pool_suite = {
	.name = "sovia-clan_pool",
	.test_cases = pool_cases,
};

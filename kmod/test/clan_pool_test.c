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

/* Lends single pages to a node that keeps them, until it is lent no more.  Returns how many. */
static u32 pool_test_keep(struct sovia_clan_pool *pool, u32 node)
{
	u32 count = 0, cookie;

	while (!sovia_clan_pool_lend(pool, node, 1, &cookie))
		count++;
	return count;
}

/* Four nodes that do not read leave enough for a fifth one, whose pages are no other's. */
static void pool_keepers(struct kunit *test)
{
	struct sovia_clan_pool *pool = pool_test_make(test);
	u32 cookies[5], node, kept, i, round;

	for (node = 0; node < 4; node++) {
		kept = pool_test_keep(pool, node);
		KUNIT_EXPECT_GE(test, kept, 5);
		KUNIT_EXPECT_LE(test, kept, POOL_TEST_PAGES / 2);
	}
	for (round = 0; round < 100; round++) {
		KUNIT_ASSERT_EQ(test, sovia_clan_pool_lend(pool, 4, 5, cookies), 0);
		for (i = 0; i < 5; i++)
			KUNIT_EXPECT_EQ(test, pool->reader[cookies[i]], 5);
		KUNIT_ASSERT_EQ(test, sovia_clan_pool_return(pool, 4, cookies, 5), 0);
	}
	/* They get nothing more, whatever comes back. */
	KUNIT_EXPECT_EQ(test, pool_test_keep(pool, 0), 0);
	sovia_clan_pool_reclaim(pool, 0);
	KUNIT_EXPECT_GE(test, pool_test_keep(pool, 0), 5);
	sovia_clan_pool_exit(pool);
}

/* No more than there is room for in the ring of cookies. */
static void pool_cookies(struct kunit *test)
{
	struct sovia_clan_pool *pool = kunit_kzalloc(test, sizeof(*pool), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pool);
	KUNIT_ASSERT_EQ(test, sovia_clan_pool_init(pool, 8 * SOVIA_CLAN_COOKIES), 0);
	KUNIT_EXPECT_EQ(test, pool_test_keep(pool, 0), SOVIA_CLAN_COOKIES);
	KUNIT_EXPECT_EQ(test, pool_test_keep(pool, 1), SOVIA_CLAN_COOKIES);
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
	KUNIT_CASE(pool_keepers),
	KUNIT_CASE(pool_cookies),
	KUNIT_CASE(pool_return),
	{}
};

struct kunit_suite sovia_clan_pool_suite = {
	.name = "sovia-clan_pool",
	.test_cases = pool_cases,
};

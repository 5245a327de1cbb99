// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pages of a node's own messages.  Those that came back last are used last: the reader's
 * processor may still have them in its cache.
 *
 * A node is lent pages while it has less than half as many as are free, as switches share their
 * buffers.  One alone gets a third of the pool; each that keeps its own leaves two thirds of what
 * was there to the others: after four of them a fifth is left, after seven a seventeenth.  One that
 * has none gets what it asks for as long as there is so much.
 */
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/string.h>
#include "pool.h"

/**
 * sovia_clan_pool_init() - make a pool whose pages are all free
 * @pool: the pool
 * @pages: how many it has
 *
 * Context: process.
 * Return: 0 or -ENOMEM.
 */
int sovia_clan_pool_init(struct sovia_clan_pool *pool, u32 pages)
{
	u32 i;

	spin_lock_init(&pool->lock);
	memset(pool->lent, 0, sizeof(pool->lent));
	pool->pages = pages;
	pool->count = pages;
	pool->first = 0;
	pool->free = kvmalloc_array(pages, sizeof(*pool->free), GFP_KERNEL);
	pool->reader = kvzalloc(pages, GFP_KERNEL);
	if (!pool->free || !pool->reader) {
		sovia_clan_pool_exit(pool);
		return -ENOMEM;
	}
	for (i = 0; i < pages; i++)
		pool->free[i] = i;
	return 0;
}

/**
 * sovia_clan_pool_exit() - free a pool
 * @pool: made by sovia_clan_pool_init()
 *
 * Context: process.
 */
void sovia_clan_pool_exit(struct sovia_clan_pool *pool)
{
	kvfree(pool->free);
	kvfree(pool->reader);
}

/* pool->lock held. */
static bool may_lend(const struct sovia_clan_pool *pool, u32 node, u32 count)
{
	return count <= pool->count && 2 * pool->lent[node] < pool->count &&
	       pool->lent[node] + count <= SOVIA_CLAN_COOKIES;
}

/**
 * sovia_clan_pool_lend() - lend pages to a node
 * @pool: the pool
 * @node: whom to
 * @count: how many
 * @cookies: set to their numbers
 *
 * Context: process or softirq.
 * Return: 0, or -EAGAIN if there are not as many, or not for this node.
 */
int sovia_clan_pool_lend(struct sovia_clan_pool *pool, u32 node, u32 count, u32 *cookies)
{
	int err = -EAGAIN;
	u32 i;

	spin_lock_bh(&pool->lock);
	if (may_lend(pool, node, count)) {
		for (i = 0; i < count; i++) {
			cookies[i] = pool->free[pool->first++ % pool->pages];
			pool->reader[cookies[i]] = node + 1;
		}
		pool->count -= count;
		pool->lent[node] += count;
		err = 0;
	}
	spin_unlock_bh(&pool->lock);
	return err;
}

/**
 * sovia_clan_pool_has_plenty() - would a node be lent as much again as it has
 * @pool: the pool
 * @node: the node
 *
 * Context: any; a hint.
 * Return: true if so.
 */
bool sovia_clan_pool_has_plenty(const struct sovia_clan_pool *pool, u32 node)
{
	u32 lent = READ_ONCE(pool->lent[node]);

	return 4 * lent < READ_ONCE(pool->count) && 2 * lent < SOVIA_CLAN_COOKIES;
}

static void pool_free(struct sovia_clan_pool *pool, u32 cookie)
{
	pool->lent[pool->reader[cookie] - 1]--;
	pool->reader[cookie] = 0;
	pool->free[(pool->first + pool->count++) % pool->pages] = cookie;
}

/**
 * sovia_clan_pool_return() - a node gives pages back
 * @pool: the pool
 * @node: the node
 * @cookies: what it says the pages are
 * @count: how many
 *
 * Context: process or softirq.
 * Return: 0, or -EPROTO if one of them is not lent to it.
 */
int sovia_clan_pool_return(struct sovia_clan_pool *pool, u32 node, const u32 *cookies,
			   u32 count)
{
	int err = 0;
	u32 i;

	spin_lock_bh(&pool->lock);
	for (i = 0; i < count && !err; i++) {
		if (cookies[i] < pool->pages && pool->reader[cookies[i]] == node + 1)
			pool_free(pool, cookies[i]);
		else
			err = -EPROTO;
	}
	spin_unlock_bh(&pool->lock);
	return err;
}

/**
 * sovia_clan_pool_reclaim() - a node has gone: take back what it was lent
 * @pool: the pool
 * @node: the node
 *
 * Context: process or softirq.
 */
void sovia_clan_pool_reclaim(struct sovia_clan_pool *pool, u32 node)
{
	u32 i;

	spin_lock_bh(&pool->lock);
	for (i = 0; i < pool->pages && pool->lent[node]; i++)
		if (pool->reader[i] == node + 1)
			pool_free(pool, i);
	spin_unlock_bh(&pool->lock);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/clan_pool_test.c"
#endif

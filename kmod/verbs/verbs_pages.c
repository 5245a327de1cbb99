// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages for receive descriptors, recycled.
 *
 * Pages of a large message move to the socket's receive queue with the
 * sk_buff, and are recycled when it is freed: each CPU has a page_pool, from which
 * its bottom half takes single pages.  A page that still has another reference then
 * (splice) leaves the pool.
 *
 * A kernel without page_pool allocates every time.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include "compat/page_pool.h"
#include "debug/objcount.h"
#include "verbs.h"

#if IS_ENABLED(CONFIG_PAGE_POOL)

/* Maximum of free pages in a CPU's pool, besides its cache. */
#define VERBS_POOL_SIZE		256

static DEFINE_PER_CPU(struct page_pool *, verbs_pool);

/* Free pages in a pool's ring. */
static unsigned int verbs_pool_ring(struct page_pool *pool)
{
	struct ptr_ring *ring = &pool->ring;
	unsigned int n;

	spin_lock_bh(&ring->consumer_lock);
	spin_lock(&ring->producer_lock);
	n = (ring->producer + ring->size - ring->consumer_head) % ring->size;
	/* Is the ring full, or empty? */
	if (!n && !__ptr_ring_empty(ring))
		n = ring->size;
	spin_unlock(&ring->producer_lock);
	spin_unlock_bh(&ring->consumer_lock);
	return n;
}

/* Pages of the pools that are in use.  Exact only while nothing is received. */
static long verbs_pages_out(void)
{
	long out = 0;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_pool *pool = per_cpu(verbs_pool, cpu);

		if (pool)
			out += (s32)(READ_ONCE(pool->pages_state_hold_cnt) -
				     atomic_read(&pool->pages_state_release_cnt)) -
			       READ_ONCE(pool->alloc.count) - verbs_pool_ring(pool);
	}
	return out;
}

/**
 * verbs_pages_init() - create the pools
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno; verbs_pages_exit() cleans up in both cases.
 */
int verbs_pages_init(void)
{
	const struct page_pool_params params = {
		.pool_size	= VERBS_POOL_SIZE,
		.nid		= NUMA_NO_NODE,
	};
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_pool *pool = page_pool_create(&params);

		if (IS_ERR(pool))
			return PTR_ERR(pool);
		per_cpu(verbs_pool, cpu) = pool;
	}
	sovia_objects_count_pages(verbs_pages_out);
	return 0;
}

/**
 * verbs_pages_exit() - free the pools
 *
 * Pages still in use are freed when they are returned.
 *
 * Context: process, may sleep; nothing allocates any more.
 */
void verbs_pages_exit(void)
{
	int cpu;

	WARN_ON(verbs_pages_out());
	for_each_possible_cpu(cpu) {
		if (per_cpu(verbs_pool, cpu))
			page_pool_destroy(per_cpu(verbs_pool, cpu));
		per_cpu(verbs_pool, cpu) = NULL;
	}
}

/* A single page.  Softirq or, with a @gfp that may sleep, process context. */
static struct page *verbs_page_single(gfp_t gfp)
{
	/* Only the bottom half may use the pool's cache. */
	if (gfpflags_allow_blocking(gfp))
		return alloc_page(gfp);
	return page_pool_alloc_pages(this_cpu_read(verbs_pool), gfp);
}

/* Returns a page to its pool, if it has one. */
static bool verbs_page_return(struct page *page)
{
	if (!page_pool_page_is_pp(page))
		return false;
	page_pool_put_full_page(page->pp, page, false);
	return true;
}

#else /* !CONFIG_PAGE_POOL */

int verbs_pages_init(void)
{
	return 0;
}

void verbs_pages_exit(void)
{
}

static struct page *verbs_page_single(gfp_t gfp)
{
	return alloc_page(gfp);
}

static bool verbs_page_return(struct page *page)
{
	return false;
}

#endif

/**
 * verbs_page_alloc() - a page for a receive descriptor
 * @order: its size is PAGE_SIZE << @order
 * @gfp: allocation flags
 *
 * Put it into an sk_buff marked by skb_mark_for_recycle(), or free it with
 * verbs_page_free().
 *
 * Context: bottom halves off, or process if @gfp allows sleeping.
 * Return: the page, or NULL.
 */
struct page *verbs_page_alloc(unsigned int order, gfp_t gfp)
{
	if (!order)
		return verbs_page_single(gfp);
	return alloc_pages(gfp | __GFP_COMP, order);
}

/**
 * verbs_page_free() - free a page of verbs_page_alloc()
 * @page: the caller has the only reference
 * @order: its size is PAGE_SIZE << @order
 *
 * Context: process or softirq.
 */
void verbs_page_free(struct page *page, unsigned int order)
{
	if (!verbs_page_return(page))
		__free_pages(page, order);
}

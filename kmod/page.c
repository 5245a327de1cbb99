// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages of messages that are received, recycled.  (What is sent is charged to the sender's control
 * group, which pages of a pool cannot be: see sock/send_page.c.)
 *
 * Many kernels clear pages that are allocated, which costs as much as a copy.  Pages of large
 * messages stay with the sk_buff, and are recycled when it is freed: each CPU has a page_pool
 * for single pages, and one for larger ones, from which what runs on it takes them.  A page
 * that still has another reference then (splice) leaves the pool.
 *
 * A kernel without page_pool allocates every time.
 */
#include <linux/percpu.h>
#include <linux/slab.h>
#include "compat/page_pool.h"
#include "debug/objcount.h"
#include "page.h"

#if IS_ENABLED(CONFIG_PAGE_POOL)

/* Maximum of free pages in a CPU's pool, besides its cache. */
#define POOL_SIZE		256
#define POOL_SIZE_LARGE		128

static DEFINE_PER_CPU(struct page_pool *, page_pool_single);
static DEFINE_PER_CPU(struct page_pool *, page_pool_large);

/* Free pages in a pool's ring. */
static unsigned int pool_ring(struct page_pool *pool)
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

static long pool_out(struct page_pool *pool)
{
	if (!pool)
		return 0;
	return (s32)(READ_ONCE(pool->pages_state_hold_cnt) -
		     atomic_read(&pool->pages_state_release_cnt)) -
	       READ_ONCE(pool->alloc.count) - pool_ring(pool);
}

/* Pages of the pools that are in use.  Exact only while nothing is received. */
static long pages_out(void)
{
	long out = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		out += pool_out(per_cpu(page_pool_single, cpu)) +
		       pool_out(per_cpu(page_pool_large, cpu));
	return out;
}

static struct page_pool *pool_make(unsigned int order, unsigned int size)
{
	const struct page_pool_params params = {
		.order		= order,
		.pool_size	= size,
		.nid		= NUMA_NO_NODE,
	};
	struct page_pool *pool = page_pool_create(&params);

	return IS_ERR(pool) ? NULL : pool;
}

/**
 * sovia_pages_init() - create the pools
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM; sovia_pages_exit() cleans up in both cases.
 */
int sovia_pages_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		per_cpu(page_pool_single, cpu) = pool_make(0, POOL_SIZE);
		per_cpu(page_pool_large, cpu) = pool_make(SOVIA_PAGE_ORDER, POOL_SIZE_LARGE);
		if (!per_cpu(page_pool_single, cpu) || !per_cpu(page_pool_large, cpu))
			return -ENOMEM;
	}
	sovia_objects_count_pages(pages_out);
	return 0;
}

static void pool_destroy(struct page_pool **pool)
{
	if (*pool)
		page_pool_destroy(*pool);
	*pool = NULL;
}

/**
 * sovia_pages_exit() - free the pools
 *
 * Pages still in use are freed when they are returned.
 *
 * Context: process, may sleep; nothing allocates any more.
 */
void sovia_pages_exit(void)
{
	int cpu;

	WARN_ON(pages_out());
	for_each_possible_cpu(cpu) {
		pool_destroy(per_cpu_ptr(&page_pool_single, cpu));
		pool_destroy(per_cpu_ptr(&page_pool_large, cpu));
	}
}

/* From the CPU's pool for this order, if there is one.  Bottom halves are off. */
static struct page *page_recycled(unsigned int order, gfp_t gfp)
{
	switch (order) {
	case 0:
		return page_pool_alloc_pages(this_cpu_read(page_pool_single), gfp);
	case SOVIA_PAGE_ORDER:
		return page_pool_alloc_pages(this_cpu_read(page_pool_large), gfp);
	}
	return alloc_pages(gfp | __GFP_COMP, order);
}

/* Returns a page to its pool, if it has one. */
static bool page_return(struct page *page)
{
	if (!page_pool_page_is_pp(page))
		return false;
	page_pool_put_full_page(page->pp, page, false);
	return true;
}

#else /* !CONFIG_PAGE_POOL */

int sovia_pages_init(void)
{
	return 0;
}

void sovia_pages_exit(void)
{
}

static struct page *page_recycled(unsigned int order, gfp_t gfp)
{
	return alloc_pages(gfp | __GFP_COMP, order);
}

static bool page_return(struct page *page)
{
	return false;
}

#endif

/**
 * sovia_page_alloc() - a page for a message
 * @order: its size is PAGE_SIZE << @order
 * @gfp: allocation flags
 * @node: NUMA node of the device that will fill it, or NUMA_NO_NODE; a recycled one is of the
 *	CPU's, which the device's interrupts choose
 *
 * Put it into an sk_buff marked by skb_mark_for_recycle(), or free it with
 * sovia_page_free().
 *
 * Context: bottom halves off; or process if @gfp allows sleeping, without recycling.
 * Return: the page, or NULL.
 */
struct page *sovia_page_alloc(unsigned int order, gfp_t gfp, int node)
{
	/* A pool's cache has no other lock. */
	if (gfpflags_allow_blocking(gfp))
		return alloc_pages_node(node, gfp | (order ? __GFP_COMP : 0), order);
	return page_recycled(order, gfp);
}

/**
 * sovia_page_free() - free a page of sovia_page_alloc()
 * @page: the caller has the only reference
 * @order: its size is PAGE_SIZE << @order
 *
 * Context: process or softirq.
 */
void sovia_page_free(struct page *page, unsigned int order)
{
	if (!page_return(page))
		__free_pages(page, order);
}

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
 * Where mapping memory for a device costs something there are further pools of its own, whose pages
 * stay mapped while they are recycled.
 *
 * A kernel without page_pool allocates every time.
 */
#include <linux/dma-mapping.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include "compat/local_lock.h"
#include "compat/page_pool.h"
#include "objcount.h"
#include "page.h"

#if IS_ENABLED(CONFIG_PAGE_POOL)

/* Maximum of free pages in a CPU's pool, besides its cache. */
#define POOL_SIZE		256
#define POOL_SIZE_LARGE		128

static DEFINE_PER_CPU(struct page_pool *, page_pool_single);
static DEFINE_PER_CPU(struct page_pool *, page_pool_large);
/* With PREEMPT_RT, that bottom halves are off does not keep others off this processor's pools. */
static DEFINE_PER_CPU(local_lock_t, pools_lock) = INIT_LOCAL_LOCK(pools_lock);

/**
 * struct sovia_mapped - pools of pages that stay mapped for a device
 * @entry: in mapped_sets
 * @pools: one of each CPU
 */
struct sovia_mapped {
	struct list_head		entry;
	struct page_pool * __percpu	*pools;
};

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

/* Those of devices, to be counted.  One that is destroyed is not, whatever of it is in use. */
static LIST_HEAD(mapped_sets);
static DEFINE_MUTEX(mapped_lock);	/* protects mapped_sets */

/* Pages of the pools that are in use.  Exact only while nothing is received. */
static long pages_out(void)
{
	struct sovia_mapped *mapped;
	long out = 0;
	int cpu;

	mutex_lock(&mapped_lock);
	for_each_possible_cpu(cpu) {
		out += pool_out(per_cpu(page_pool_single, cpu)) +
		       pool_out(per_cpu(page_pool_large, cpu));
		list_for_each_entry(mapped, &mapped_sets, entry)
			out += pool_out(*per_cpu_ptr(mapped->pools, cpu));
	}
	mutex_unlock(&mapped_lock);
	return out;
}

/* @dev: the device that its pages are mapped for, or NULL. */
static struct page_pool *pool_make(unsigned int order, unsigned int size, struct device *dev)
{
	const struct page_pool_params params = {
		.order		= order,
		.pool_size	= size,
		.nid		= NUMA_NO_NODE,
		.flags		= dev ? PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV : 0,
		.dev		= dev,
		.dma_dir	= DMA_FROM_DEVICE,
		.max_len	= PAGE_SIZE << order,
	};
	struct page_pool *pool = page_pool_create(&params);

	return IS_ERR(pool) ? NULL : pool;
}

static void pool_destroy(struct page_pool **pool)
{
	if (*pool)
		page_pool_destroy(*pool);
	*pool = NULL;
}

static void pools_destroy(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		pool_destroy(per_cpu_ptr(&page_pool_single, cpu));
		pool_destroy(per_cpu_ptr(&page_pool_large, cpu));
	}
}

/**
 * sovia_pages_init() - create the pools
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int sovia_pages_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		per_cpu(page_pool_single, cpu) = pool_make(0, POOL_SIZE, NULL);
		per_cpu(page_pool_large, cpu) =
			pool_make(SOVIA_PAGE_ORDER, POOL_SIZE_LARGE, NULL);
		if (!per_cpu(page_pool_single, cpu) || !per_cpu(page_pool_large, cpu)) {
			pools_destroy();
			return -ENOMEM;
		}
	}
	sovia_objects_count_pages(pages_out);
	return 0;
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
	WARN_ON(pages_out());
	pools_destroy();
}

static struct page *pool_alloc(struct page_pool * __percpu *pools, gfp_t gfp)
{
	struct page *page;

	sovia_local_lock_bh(&pools_lock);
	page = page_pool_alloc_pages(this_cpu_read(*pools), gfp);
	sovia_local_unlock_bh(&pools_lock);
	return page;
}

/* From the CPU's pool for this order, if there is one.  Bottom halves are off. */
static struct page *page_recycled(unsigned int order, gfp_t gfp)
{
	switch (order) {
	case 0:
		return pool_alloc(&page_pool_single, gfp);
	case SOVIA_PAGE_ORDER:
		return pool_alloc(&page_pool_large, gfp);
	}
	return alloc_pages(gfp | __GFP_COMP, order);
}

static bool mapped_fill(struct sovia_mapped *mapped, struct device *dev)
{
	struct page_pool **pool;
	int cpu;

	for_each_possible_cpu(cpu) {
		pool = per_cpu_ptr(mapped->pools, cpu);
		*pool = pool_make(SOVIA_MAPPED_ORDER, POOL_SIZE_LARGE, dev);
		if (!*pool)
			return false;
	}
	return true;
}

static void mapped_free(struct sovia_mapped *mapped)
{
	int cpu;

	for_each_possible_cpu(cpu)
		pool_destroy(per_cpu_ptr(mapped->pools, cpu));
	free_percpu(mapped->pools);
	kfree(mapped);
}

/**
 * sovia_mapped_create() - create pools of pages that stay mapped for a device
 * @dev: the device
 *
 * Not where memory is copied to another place for a device (swiotlb): such places are few, and
 * sockets may hold what they have received for long.
 *
 * Context: process, may sleep.
 * Return: the pools, or NULL where there are none: pages are mapped one by one then.
 */
struct sovia_mapped *sovia_mapped_create(struct device *dev)
{
	struct sovia_mapped *mapped;

	if (!SOVIA_POOL_UNMAPS || dma_max_mapping_size(dev) != SIZE_MAX)
		return NULL;
	mapped = kzalloc(sizeof(*mapped), GFP_KERNEL);
	if (!mapped)
		return NULL;
	mapped->pools = alloc_percpu(struct page_pool *);
	if (!mapped->pools) {
		kfree(mapped);
		return NULL;
	}
	if (!mapped_fill(mapped, dev)) {
		mapped_free(mapped);
		return NULL;
	}
	mutex_lock(&mapped_lock);
	list_add(&mapped->entry, &mapped_sets);
	mutex_unlock(&mapped_lock);
	return mapped;
}

/**
 * sovia_mapped_destroy() - free such pools
 * @mapped: the pools, or NULL
 *
 * Pages still in use are unmapped now, and freed when they are returned.
 *
 * Context: process, may sleep; nothing allocates from them any more.
 */
void sovia_mapped_destroy(struct sovia_mapped *mapped)
{
	if (!mapped)
		return;
	mutex_lock(&mapped_lock);
	list_del(&mapped->entry);
	mutex_unlock(&mapped_lock);
	mapped_free(mapped);
}

/**
 * sovia_mapped_alloc() - a page of order SOVIA_MAPPED_ORDER that is mapped
 * @mapped: pools of the device
 * @gfp: allocation flags, without sleeping
 * @addr: where the device may write to it
 *
 * Use it as one of sovia_page_alloc(), and sync it for the processor before it is read.
 *
 * Context: bottom halves off.
 * Return: the page, or NULL.
 */
struct page *sovia_mapped_alloc(struct sovia_mapped *mapped, gfp_t gfp, dma_addr_t *addr)
{
	struct page *page = pool_alloc(mapped->pools, gfp);

	if (page)
		*addr = page_pool_get_dma_addr(page);
	return page;
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

struct sovia_mapped *sovia_mapped_create(struct device *dev)
{
	return NULL;
}

void sovia_mapped_destroy(struct sovia_mapped *mapped)
{
}

struct page *sovia_mapped_alloc(struct sovia_mapped *mapped, gfp_t gfp, dma_addr_t *addr)
{
	return NULL;
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

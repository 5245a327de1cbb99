// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pages that programs' data is copied into, used again.
 *
 * Many kernels clear pages that are allocated, and charging them to a control group costs as
 * well.  A page that is full goes to a ring of its CPU.  When it is the oldest there, and all its
 * messages have been freed, a sender of the same control group, which it is still charged to, gets
 * it.  A full ring drops its oldest.
 *
 * The rings hold no memory of who has stopped sending: they are emptied after a second or two
 * without a page.
 */
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/workqueue.h>
#include "send_page.h"

/* Pages of a CPU: with the largest size 1 MiB, which should be in its cache. */
#define RING_SIZE	32
/* A page with less room than this is full. */
#define ROOM_MIN	32
#define IDLE_TIME	HZ

/**
 * struct page_ring - the full pages of a CPU, oldest first
 * @lock: protects the rest
 * @frags: the pages, each with a reference
 * @first: index of the oldest
 * @count: how many there are
 * @used: one has been added since the last look at idle rings
 */
struct page_ring {
	spinlock_t		lock;	/* process context only */
	struct page_frag	frags[RING_SIZE];
	unsigned int		first;
	unsigned int		count;
	bool			used;
};

static DEFINE_PER_CPU(struct page_ring, page_rings) = {
	.lock = __SPIN_LOCK_UNLOCKED(page_rings.lock),
};

static void rings_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(idle_work, rings_work);

/* The oldest page, whose reference is the caller's; false if there is none. */
static bool ring_get(struct page_ring *ring, struct page_frag *frag)
{
	lockdep_assert_held(&ring->lock);
	if (!ring->count)
		return false;
	*frag = ring->frags[ring->first];
	ring->first = (ring->first + 1) % RING_SIZE;
	ring->count--;
	return true;
}

/* Add a page, and return in it the oldest if the ring was full; false if there was room. */
static bool ring_put(struct page_ring *ring, struct page_frag *frag)
{
	struct page_frag new = *frag;
	bool full;

	lockdep_assert_held(&ring->lock);
	full = ring->count == RING_SIZE && ring_get(ring, frag);
	ring->frags[(ring->first + ring->count++) % RING_SIZE] = new;
	ring->used = true;
	return full;
}

/* Have all messages of the oldest page been freed? */
static bool ring_free(const struct page_ring *ring)
{
	const struct page *page = ring->frags[ring->first].page;

	lockdep_assert_held(&ring->lock);
	return ring->count && page_ref_count(page) == 1;
}

/* Is the page charged to the control group of the process that runs? */
static bool charged_to_us(struct page *page)
{
#ifdef CONFIG_MEMCG
	struct mem_cgroup *ours, *of;
	bool same;

	rcu_read_lock();
	ours = mem_cgroup_from_task(current);
	of = page_memcg_check(page);
	/* Pages of the root group are not charged. */
	same = of ? of == ours : !ours || !parent_mem_cgroup(ours);
	rcu_read_unlock();
	return same;
#else
	return true;
#endif
}

/* Keep a full page for later. */
static void page_keep(struct page_frag *frag)
{
	struct page_ring *ring = raw_cpu_ptr(&page_rings);
	bool more;

	spin_lock(&ring->lock);
	more = ring_put(ring, frag);
	spin_unlock(&ring->lock);
	if (more)
		put_page(frag->page);
	frag->page = NULL;
	if (!delayed_work_pending(&idle_work))
		schedule_delayed_work(&idle_work, IDLE_TIME);
}

static bool page_take(struct page_frag *frag)
{
	struct page_ring *ring = raw_cpu_ptr(&page_rings);
	bool got;

	spin_lock(&ring->lock);
	got = ring_free(ring) && ring_get(ring, frag);
	spin_unlock(&ring->lock);
	if (!got)
		return false;
	frag->offset = 0;
	if (charged_to_us(frag->page))
		return true;
	put_page(frag->page);
	frag->page = NULL;
	return false;
}

static void ring_empty(struct page_ring *ring)
{
	struct page_frag frag;
	bool got;

	do {
		spin_lock(&ring->lock);
		got = ring_get(ring, &frag);
		spin_unlock(&ring->lock);
		if (got)
			put_page(frag.page);
	} while (got);
}

/* Empty the rings that were not used since the last time. */
static void rings_work(struct work_struct *work)
{
	bool again = false, used;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct page_ring *ring = per_cpu_ptr(&page_rings, cpu);

		spin_lock(&ring->lock);
		used = ring->used;
		ring->used = false;
		spin_unlock(&ring->lock);
		if (used)
			again = true;
		else
			ring_empty(ring);
	}
	if (again)
		schedule_delayed_work(&idle_work, IDLE_TIME);
}

/**
 * sovia_send_page_refill() - get a page with room for data that is sent
 * @frag: the page so far, if any
 * @gfp: allocation flags of a page that is charged to the control group of the caller
 *
 * As skb_page_frag_refill().
 *
 * Context: process, may sleep if @gfp allows.
 * Return: false without memory.
 */
bool sovia_send_page_refill(struct page_frag *frag, gfp_t gfp)
{
	if (frag->page && frag->offset + ROOM_MIN <= frag->size)
		return true;
	/* All that was in it may have been freed. */
	if (frag->page && page_ref_count(frag->page) > 1 && !page_is_pfmemalloc(frag->page))
		page_keep(frag);
	if (!frag->page && page_take(frag))
		return true;
	return skb_page_frag_refill(ROOM_MIN, frag, gfp);
}

/**
 * sovia_send_pages_exit() - free the pages
 *
 * Context: module exit; nothing is sent any more.
 */
void sovia_send_pages_exit(void)
{
	int cpu;

	cancel_delayed_work_sync(&idle_work);
	for_each_possible_cpu(cpu)
		ring_empty(per_cpu_ptr(&page_rings, cpu));
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/send_page_test.c"
#endif

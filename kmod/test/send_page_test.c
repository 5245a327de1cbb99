// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of send_page.c; included by it. */
#include <linux/cpumask.h>
#include <linux/sched.h>
#include "suites.h"

static int pages_begin(struct kunit *test)
{
	/* All on one ring.  The thread ends with the case. */
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
	ring_empty(raw_cpu_ptr(&page_rings));
	return 0;
}

/* The whole page is used by a message. */
static struct page *pages_fill(struct page_frag *frag)
{
	get_page(frag->page);
	frag->offset = frag->size;
	return frag->page;
}

/* A page comes back when its messages have been freed. */
static void pages_come_back(struct kunit *test)
{
	struct page_frag frag = {};
	struct page *first, *second;

	KUNIT_ASSERT_TRUE(test, sovia_send_page_refill(&frag, GFP_KERNEL_ACCOUNT));
	first = pages_fill(&frag);
	KUNIT_ASSERT_TRUE(test, sovia_send_page_refill(&frag, GFP_KERNEL_ACCOUNT));
	KUNIT_EXPECT_PTR_NE(test, frag.page, first);
	put_page(first);
	second = pages_fill(&frag);
	KUNIT_ASSERT_TRUE(test, sovia_send_page_refill(&frag, GFP_KERNEL_ACCOUNT));
	KUNIT_EXPECT_PTR_EQ(test, frag.page, first);
	KUNIT_EXPECT_EQ(test, frag.offset, 0);
	KUNIT_EXPECT_EQ(test, page_ref_count(first), 1);
	put_page(second);
	put_page(frag.page);
}

/* One that a message still uses does not. */
static void pages_in_use(struct kunit *test)
{
	struct page_frag frag = {};
	struct page *pages[3];
	int i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		KUNIT_ASSERT_TRUE(test, sovia_send_page_refill(&frag, GFP_KERNEL_ACCOUNT));
		pages[i] = pages_fill(&frag);
	}
	KUNIT_EXPECT_PTR_NE(test, pages[1], pages[0]);
	KUNIT_EXPECT_PTR_NE(test, pages[2], pages[0]);
	KUNIT_EXPECT_PTR_NE(test, pages[2], pages[1]);
	/* The ring and the message have it. */
	KUNIT_EXPECT_EQ(test, page_ref_count(pages[0]), 2);
	put_page(frag.page);
	for (i = 0; i < ARRAY_SIZE(pages); i++)
		put_page(pages[i]);
}

/* A page of which all messages have been freed needs no ring. */
static void pages_stay(struct kunit *test)
{
	struct page_frag frag = {};
	struct page *page;

	KUNIT_ASSERT_TRUE(test, sovia_send_page_refill(&frag, GFP_KERNEL_ACCOUNT));
	page = pages_fill(&frag);
	put_page(page);
	KUNIT_ASSERT_TRUE(test, sovia_send_page_refill(&frag, GFP_KERNEL_ACCOUNT));
	KUNIT_EXPECT_PTR_EQ(test, frag.page, page);
	KUNIT_EXPECT_EQ(test, frag.offset, 0);
	put_page(frag.page);
}

/* A full ring drops its oldest page; an idle one all. */
static void pages_bounded(struct kunit *test)
{
	struct page_ring *ring = raw_cpu_ptr(&page_rings);
	struct page_frag frag;
	struct page *oldest = NULL;
	int i;

	for (i = 0; i <= RING_SIZE; i++) {
		frag = (struct page_frag) { .page = alloc_page(GFP_KERNEL), .size = PAGE_SIZE };
		KUNIT_ASSERT_NOT_NULL(test, frag.page);
		if (!i) {
			oldest = frag.page;
			get_page(oldest);
		}
		page_keep(&frag);
	}
	KUNIT_EXPECT_EQ(test, ring->count, RING_SIZE);
	KUNIT_EXPECT_EQ(test, page_ref_count(oldest), 1);
	put_page(oldest);
	/* Twice: it was used since the last look. */
	cancel_delayed_work_sync(&idle_work);
	rings_work(NULL);
	KUNIT_EXPECT_EQ(test, ring->count, RING_SIZE);
	rings_work(NULL);
	KUNIT_EXPECT_EQ(test, ring->count, 0);
}

static struct kunit_case pages_cases[] = {
	KUNIT_CASE(pages_come_back),
	KUNIT_CASE(pages_in_use),
	KUNIT_CASE(pages_stay),
	KUNIT_CASE(pages_bounded),
	{}
};

struct kunit_suite sovia_send_page_suite = {
	.name = "sovia-send-page",
	.init = pages_begin,
	.test_cases = pages_cases,
};

/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages of received messages, recycled. */
#ifndef _SOVIA_PAGE_H
#define _SOVIA_PAGE_H

#include <linux/mm_types.h>

struct device;
struct page_pool;

/* Besides single pages these are recycled: with fewer fragments copying is faster. */
#define SOVIA_PAGE_ORDER	2
#define SOVIA_PAGE_BYTES	(PAGE_SIZE << SOVIA_PAGE_ORDER)

int sovia_pages_init(void);
void sovia_pages_exit(void);
struct page *sovia_page_alloc(unsigned int order, gfp_t gfp, int node);
void sovia_page_free(struct page *page, unsigned int order);
struct page_pool * __percpu *sovia_mapped_create(struct device *dev);
void sovia_mapped_destroy(struct page_pool * __percpu *pools);
struct page *sovia_mapped_alloc(struct page_pool * __percpu *pools, gfp_t gfp, dma_addr_t *addr);
bool sovia_page_is_mapped(const struct page *page);

#endif /* _SOVIA_PAGE_H */

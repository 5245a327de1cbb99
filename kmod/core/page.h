/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages of received messages, recycled. */
#ifndef _SOVIA_PAGE_H
#define _SOVIA_PAGE_H

#include <linux/mm_types.h>
#include <asm/page.h>

struct device;
struct sovia_mapped;

/* Besides single pages these are recycled: with fewer fragments copying is faster. */
#define SOVIA_PAGE_ORDER	2
#define SOVIA_PAGE_BYTES	(PAGE_SIZE << SOVIA_PAGE_ORDER)

/* What is mapped for a device in one piece, where that costs something: the default payload. */
#define SOVIA_MAPPED_BYTES	16384U
#define SOVIA_MAPPED_ORDER	get_order(SOVIA_MAPPED_BYTES)

int sovia_pages_init(void);
void sovia_pages_exit(void);
struct page *sovia_page_alloc(unsigned int order, gfp_t gfp, int node);
void sovia_page_free(struct page *page, unsigned int order);
struct sovia_mapped *sovia_mapped_create(struct device *dev);
void sovia_mapped_destroy(struct sovia_mapped *mapped);
struct page *sovia_mapped_alloc(struct sovia_mapped *mapped, gfp_t gfp, dma_addr_t *addr);

#endif /* _SOVIA_PAGE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages of received messages, recycled. */
#ifndef _SOVIA_PAGE_H
#define _SOVIA_PAGE_H

#include <linux/mm_types.h>

/* Besides single pages these are recycled: with fewer fragments copying is faster. */
#define SOVIA_PAGE_ORDER	2
#define SOVIA_PAGE_BYTES	(PAGE_SIZE << SOVIA_PAGE_ORDER)

int sovia_pages_init(void);
void sovia_pages_exit(void);
struct page *sovia_page_alloc(unsigned int order, gfp_t gfp, int node);
void sovia_page_free(struct page *page, unsigned int order);

#endif /* _SOVIA_PAGE_H */

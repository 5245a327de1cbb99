/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages of messages that are sent, used again. */
#ifndef _SOVIA_SEND_PAGE_H
#define _SOVIA_SEND_PAGE_H

#include <linux/mm_types.h>

bool sovia_send_page_refill(struct page_frag *frag, gfp_t gfp);
void sovia_send_pages_exit(void);

#endif /* _SOVIA_SEND_PAGE_H */

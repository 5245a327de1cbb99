/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels have changed of pools of pages. */
#ifndef _SOVIA_COMPAT_PAGE_POOL_H
#define _SOVIA_COMPAT_PAGE_POOL_H

#include <linux/mm.h>
#include <linux/version.h>

/* 6.6 cut net/page_pool.h in two. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

/*
 * 6.16 put an index of DMA mappings beside the signature, and says by itself whether a
 * page is of a pool; so do stable kernels to which this went back.
 */
#ifndef PP_MAGIC_MASK
static inline bool page_pool_page_is_pp(const struct page *page)
{
	return (page->pp_magic & ~0x3UL) == PP_SIGNATURE;
}
#endif

/*
 * Does a pool that is destroyed unmap the pages that are in use?  Otherwise those that sockets hold
 * would stay mapped for a device that is gone.  Since 6.16, and in the same stable kernels.
 */
#ifdef PP_DMA_INDEX_LIMIT
#define SOVIA_POOL_UNMAPS	(PP_DMA_INDEX_BITS > 0)
#else
#define SOVIA_POOL_UNMAPS	false
#endif

#endif /* _SOVIA_COMPAT_PAGE_POOL_H */

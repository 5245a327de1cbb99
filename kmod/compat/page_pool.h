/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.6 cut net/page_pool.h in two. */
#ifndef _SOVIA_COMPAT_PAGE_POOL_H
#define _SOVIA_COMPAT_PAGE_POOL_H

#include <linux/version.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#include <net/page_pool/helpers.h>
#else
#include <net/page_pool.h>
#endif

#endif /* _SOVIA_COMPAT_PAGE_POOL_H */

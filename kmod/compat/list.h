/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.3 added list_count_nodes(). */
#ifndef _SOVIA_COMPAT_LIST_H
#define _SOVIA_COMPAT_LIST_H

#include <linux/list.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
static inline size_t sovia_list_count_nodes(struct list_head *head)
{
	struct list_head *entry;
	size_t count = 0;

	list_for_each(entry, head)
		count++;
	return count;
}

#define list_count_nodes sovia_list_count_nodes
#endif

#endif /* _SOVIA_COMPAT_LIST_H */

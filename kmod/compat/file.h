/* SPDX-License-Identifier: GPL-2.0-only */
/* A reference to a file that may just be closed. */
#ifndef _SOVIA_COMPAT_FILE_H
#define _SOVIA_COMPAT_FILE_H

#include <linux/fs.h>
#include <linux/version.h>

/* 6.7 lets files be reused without a grace period, and counts them in another way. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
static inline bool sovia_get_file(struct file *file)
{
	return get_file_active(&file);
}
#else
static inline bool sovia_get_file(struct file *file)
{
	return get_file_rcu(file);
}
#endif

#endif /* _SOVIA_COMPAT_FILE_H */

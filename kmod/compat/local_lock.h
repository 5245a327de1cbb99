/* SPDX-License-Identifier: GPL-2.0-only */
/* Locks of a processor's data, for who has bottom halves off. */
#ifndef _SOVIA_COMPAT_LOCAL_LOCK_H
#define _SOVIA_COMPAT_LOCAL_LOCK_H

#include <linux/local_lock.h>
#include <linux/version.h>

/* Before 6.11, PREEMPT_RT takes a lock of the processor itself where bottom halves are off. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define sovia_local_lock_bh(lock)	local_lock_nested_bh(lock)
#define sovia_local_unlock_bh(lock)	local_unlock_nested_bh(lock)
#else
#define sovia_local_lock_bh(lock)	((void)(lock))
#define sovia_local_unlock_bh(lock)	((void)(lock))
#endif

#endif /* _SOVIA_COMPAT_LOCAL_LOCK_H */

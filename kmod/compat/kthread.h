/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.14 left starting a worker's thread to kthread_run_worker(): creating it did that before. */
#ifndef _SOVIA_COMPAT_KTHREAD_H
#define _SOVIA_COMPAT_KTHREAD_H

#include <linux/kthread.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 14, 0)
#define kthread_run_worker	kthread_create_worker
#endif

#endif /* _SOVIA_COMPAT_KTHREAD_H */

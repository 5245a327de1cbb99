/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.17 named two workqueues anew, and later kernels warn of who uses the old names. */
#ifndef _SOVIA_COMPAT_WORKQUEUE_H
#define _SOVIA_COMPAT_WORKQUEUE_H

#include <linux/version.h>
#include <linux/workqueue.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define system_percpu_wq	system_wq
#define system_dfl_wq		system_unbound_wq
#endif

#endif /* _SOVIA_COMPAT_WORKQUEUE_H */

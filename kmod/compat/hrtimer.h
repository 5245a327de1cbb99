/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.13 added hrtimer_setup(), 6.15 removed hrtimer_init(). */
#ifndef _SOVIA_COMPAT_HRTIMER_H
#define _SOVIA_COMPAT_HRTIMER_H

#include <linux/hrtimer.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif /* _SOVIA_COMPAT_HRTIMER_H */

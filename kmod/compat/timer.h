/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.16 renamed from_timer() to timer_container_of(). */
#ifndef _SOVIA_COMPAT_TIMER_H
#define _SOVIA_COMPAT_TIMER_H

#include <linux/timer.h>

#ifndef timer_container_of
#define timer_container_of(var, timer, field)	from_timer(var, timer, field)
#endif

#endif /* _SOVIA_COMPAT_TIMER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* In 6.1 the header relies on others that it does not include. */
#ifndef _SOVIA_COMPAT_DQL_H
#define _SOVIA_COMPAT_DQL_H

#include <linux/cache.h>
#include <linux/limits.h>
#include <linux/dynamic_queue_limits.h>

#endif /* _SOVIA_COMPAT_DQL_H */

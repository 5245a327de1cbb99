/* SPDX-License-Identifier: GPL-2.0-only */
/* Size of the hash tables of sockets, which exist once for all namespaces. */
#ifndef _SOVIA_SLOTS_H
#define _SOVIA_SLOTS_H

#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>

/* One slot for so many @pages of RAM, a power of two in these limits. */
static inline unsigned long sovia_slots(unsigned long pages, unsigned long min,
					unsigned long max)
{
	return roundup_pow_of_two(clamp(totalram_pages() / pages, min, max));
}

#endif /* _SOVIA_SLOTS_H */

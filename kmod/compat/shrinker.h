/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.7 allocates shrinkers, so that they can be freed by RCU. */
#ifndef _SOVIA_COMPAT_SHRINKER_H
#define _SOVIA_COMPAT_SHRINKER_H

#include <linux/slab.h>
#include <linux/types.h>
#include <linux/shrinker.h>
#include <linux/version.h>

typedef unsigned long (*sovia_shrinker_fn)(struct shrinker *shrinker, struct shrink_control *sc);

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)

static inline struct shrinker *sovia_shrinker_register(const char *name, sovia_shrinker_fn count,
						       sovia_shrinker_fn scan)
{
	struct shrinker *shrinker = shrinker_alloc(0, "%s", name);

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker_register(shrinker);
	return shrinker;
}

static inline void sovia_shrinker_unregister(struct shrinker *shrinker)
{
	shrinker_free(shrinker);
}

#else

static inline struct shrinker *sovia_shrinker_register(const char *name, sovia_shrinker_fn count,
						       sovia_shrinker_fn scan)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (!shrinker)
		return NULL;
	shrinker->count_objects = count;
	shrinker->scan_objects = scan;
	shrinker->seeks = DEFAULT_SEEKS;
	if (register_shrinker(shrinker, "%s", name)) {
		kfree(shrinker);
		return NULL;
	}
	return shrinker;
}

static inline void sovia_shrinker_unregister(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}

#endif

#endif /* _SOVIA_COMPAT_SHRINKER_H */

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Counters and histograms, as the kernel has them. */
#ifndef SOVIA_STAT_H
#define SOVIA_STAT_H

#include <linux/sovia.h>
#include <stdbool.h>
#include <stdint.h>

#define STATS_MAX	256
#define STAT_NAME_MAX	32
#define HISTS_MAX	16

struct stat_value {
	char		name[STAT_NAME_MAX];
	uint64_t	value;
};

struct stat_hist {
	char		name[STAT_NAME_MAX];
	uint64_t	buckets[SOVIA_HIST_BUCKETS];
	uint64_t	sum;
};

/*
 * @cpu: of one processor, or -1 for all
 * @count, @values: counters, in the kernel's order
 * @hist_count, @hists: histograms
 */
struct stats {
	int			cpu;
	unsigned int		count;
	struct stat_value	values[STATS_MAX];
	unsigned int		hist_count;
	struct stat_hist	hists[HISTS_MAX];
};

int stats_read(struct stats *stats);
int stats_each_cpu(int (*show)(const struct stats *stats));
const struct stat_value *stats_find(const struct stats *stats, const char *name);

#endif

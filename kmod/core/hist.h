/* SPDX-License-Identifier: GPL-2.0-only */
/* Histograms of a network namespace, off until net.sovia.histograms is set: observing.rst. */
#ifndef _SOVIA_HIST_H
#define _SOVIA_HIST_H

#include <linux/jump_label_ratelimit.h>
#include <linux/ktime.h>
#include <linux/sovia.h>
#include <linux/types.h>

struct sovia_net;

/**
 * enum sovia_hist - what is counted
 * @SOVIA_HIST_TX_SIZE: payloads of messages sent, bytes
 * @SOVIA_HIST_RX_SIZE: payloads of messages received, bytes
 * @SOVIA_HIST_POST: from posting a signaled message to its completion, ns
 * @SOVIA_HIST_ARRIVAL: from the bottom half to recv(), ns
 * @SOVIA_HIST_COUNT: how many there are
 */
enum sovia_hist {
	SOVIA_HIST_TX_SIZE,
	SOVIA_HIST_RX_SIZE,
	SOVIA_HIST_POST,
	SOVIA_HIST_ARRIVAL,
	SOVIA_HIST_COUNT
};

/**
 * struct sovia_histogram - one of a processor, or of all
 * @buckets: see SOVIA_A_HIST_BUCKETS
 * @sum: of the values
 */
struct sovia_histogram {
	u64	buckets[SOVIA_HIST_BUCKETS];
	u64	sum;
};

/**
 * struct sovia_hists - one processor's
 * @of: each
 */
struct sovia_hists {
	struct sovia_histogram	of[SOVIA_HIST_COUNT];
};

extern struct static_key_false_deferred sovia_hist_key;

void sovia_hist_count(struct sovia_net *snet, enum sovia_hist which, u64 value);
const char *sovia_hist_name(enum sovia_hist which);
bool sovia_hist_any(const struct sovia_net *snet);
void sovia_hist_read(const struct sovia_net *snet, int cpu, enum sovia_hist which,
		     struct sovia_histogram *histogram);
int sovia_hist_net_init(struct sovia_net *snet);
void sovia_hist_net_exit(struct sovia_net *snet);
void sovia_hist_net_free(struct sovia_net *snet);
void sovia_hist_exit(void);

/* Count a value, if any namespace wants it. */
static inline void sovia_hist_add(struct sovia_net *snet, enum sovia_hist which, u64 value)
{
	if (static_branch_unlikely(&sovia_hist_key.key))
		sovia_hist_count(snet, which, value);
}

/* Take the time, for sovia_hist_since(), if any namespace wants it. */
static inline void sovia_hist_begin(u64 *begin)
{
	if (static_branch_unlikely(&sovia_hist_key.key))
		*begin = ktime_get_ns();
}

/* Count the time since @begin, if that is not 0. */
static inline void sovia_hist_since(struct sovia_net *snet, enum sovia_hist which, u64 begin)
{
	if (static_branch_unlikely(&sovia_hist_key.key) && begin)
		sovia_hist_count(snet, which, ktime_get_ns() - begin);
}

#endif /* _SOVIA_HIST_H */

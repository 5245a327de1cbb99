// SPDX-License-Identifier: GPL-2.0-only
/*
 * Histograms of a network namespace: by processor, as the counters are.
 *
 * The first write of 1 to net.sovia.histograms allocates them; they stay until the namespace ends,
 * so that those who count need no reference.
 */
#include <linux/mutex.h>
#include <linux/percpu.h>
#include "compat/sysctl.h"
#include "hist.h"
#include "net.h"

/* An administrator may switch as often as he likes: the code is not patched each time. */
DEFINE_STATIC_KEY_DEFERRED_FALSE(sovia_hist_key, HZ);
static DEFINE_MUTEX(hist_mutex);	/* changes of a namespace's switch */

static const char * const hist_names[SOVIA_HIST_COUNT] = {
	[SOVIA_HIST_TX_SIZE]	= "tx_size",
	[SOVIA_HIST_RX_SIZE]	= "rx_size",
	[SOVIA_HIST_POST]	= "post_to_completion",
	[SOVIA_HIST_ARRIVAL]	= "arrival_to_recv",
};

/**
 * sovia_hist_name() - name of a histogram
 * @which: below SOVIA_HIST_COUNT
 *
 * Return: its name.
 */
const char *sovia_hist_name(enum sovia_hist which)
{
	return hist_names[which];
}

/**
 * sovia_hist_count() - count a value
 * @snet: namespace
 * @which: histogram
 * @value: the value
 *
 * Context: any but hard interrupts.
 */
void sovia_hist_count(struct sovia_net *snet, enum sovia_hist which, u64 value)
{
	unsigned int bucket = min_t(unsigned int, fls64(value), SOVIA_HIST_BUCKETS - 1);
	struct sovia_hists __percpu *hists;

	if (!READ_ONCE(snet->histograms.value))
		return;
	/* Pairs with hist_switch(). */
	hists = smp_load_acquire(&snet->hists);
	if (!hists)
		return;
	this_cpu_inc(hists->of[which].buckets[bucket]);
	this_cpu_add(hists->of[which].sum, value);
}

/**
 * sovia_hist_any() - has a namespace histograms, switched on or not any more
 * @snet: the namespace
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_hist_any(const struct sovia_net *snet)
{
	return READ_ONCE(snet->hists);
}

/**
 * sovia_hist_read() - read a histogram
 * @snet: a namespace that has it
 * @cpu: of a processor, or -1 for the sum
 * @which: histogram
 * @histogram: filled in
 *
 * Context: any.
 */
void sovia_hist_read(const struct sovia_net *snet, int cpu, enum sovia_hist which,
		     struct sovia_histogram *histogram)
{
	const struct sovia_histogram *one;
	int i, other;

	memset(histogram, 0, sizeof(*histogram));
	for_each_possible_cpu(other) {
		if (cpu >= 0 && cpu != other)
			continue;
		one = &per_cpu_ptr(snet->hists, other)->of[which];
		for (i = 0; i < SOVIA_HIST_BUCKETS; i++)
			histogram->buckets[i] += READ_ONCE(one->buckets[i]);
		histogram->sum += READ_ONCE(one->sum);
	}
}

static int hist_switch(struct sovia_net *snet, int old, int new)
{
	struct sovia_hists __percpu *hists;

	if (new && !snet->hists) {
		hists = alloc_percpu(struct sovia_hists);
		if (!hists)
			return -ENOMEM;
		smp_store_release(&snet->hists, hists);	/* readers find it zeroed */
	}
	if (new && !old)
		static_branch_inc(&sovia_hist_key.key);
	else if (old && !new)
		static_branch_slow_dec_deferred(&sovia_hist_key);
	return 0;
}

static int hist_sysctl(sovia_ctl_table *table, int write, void *buffer, size_t *lenp, loff_t *ppos)
{
	struct sovia_net *snet = container_of(table->data, struct sovia_net, histograms.value);
	int err, old;

	mutex_lock(&hist_mutex);
	old = snet->histograms.value;
	err = proc_dointvec_minmax(table, write, buffer, lenp, ppos);
	if (!err && write)
		err = hist_switch(snet, old, snet->histograms.value);
	if (err)
		snet->histograms.value = old;
	mutex_unlock(&hist_mutex);
	return err;
}

/**
 * sovia_hist_net_init() - register a namespace's switch
 * @snet: the namespace
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_hist_net_init(struct sovia_net *snet)
{
	return sovia_sysctl_add(snet->net, &snet->histograms, "histograms", SYSCTL_ONE,
				hist_sysctl);
}

/**
 * sovia_hist_net_exit() - remove it
 * @snet: the namespace
 *
 * Context: pernet pre-exit.
 */
void sovia_hist_net_exit(struct sovia_net *snet)
{
	sovia_sysctl_remove(&snet->histograms);
	hist_switch(snet, snet->histograms.value, 0);
	snet->histograms.value = 0;
}

/**
 * sovia_hist_exit() - finish what was put off
 *
 * Context: module exit, may sleep; no namespaces.
 */
void sovia_hist_exit(void)
{
	static_key_deferred_flush(&sovia_hist_key);
}

/**
 * sovia_hist_net_free() - free the histograms
 * @snet: the namespace; no links
 *
 * Context: pernet exit.
 */
void sovia_hist_net_free(struct sovia_net *snet)
{
	free_percpu(snet->hists);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/hist_test.c"
#endif

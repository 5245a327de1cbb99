// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fault injection: the kinds of faults, and whether one happens now.  fault_vi.c
 * implements them.
 *
 *	/sys/kernel/debug/sovia/fault/
 *		loop, verbs	Y: VIs of this provider that are set up afterwards
 *				can be faulty
 *		FAULT/		a directory for each entry of fault_table[]
 *
 * The files have the meaning of the kernel's own fault injection, which few kernels
 * are built with: it happens with @probability percent, on every @interval-th call
 * only, and at most @times times (-1: no limit).  "fired" counts how often it has
 * happened.
 *
 * struct fault_attr is not used where a kernel has it: should_fail() may take the last
 * of @times on two CPUs at once and counts for fail-nth of the current task, and in 6.1
 * its directories keep dentries when the module is unloaded.  Failing allocations are
 * its business, see tests/vm/e2e_failslab.sh and alloc_failures.sh.
 */
#include <linux/debugfs.h>
#include <linux/errno.h>
#include <linux/random.h>
#include "core/debugfs.h"
#include "fault.h"
#include "fault_kind.h"

/**
 * struct fault - a kind of fault and its debugfs files
 * @name: of the directory
 * @error: a positive errno, or 0 if it has none; the default
 * @delay: in ms, or 0 if it has none; likewise
 * @probability: in percent
 * @interval: happens on every n-th call only
 * @times: how many times more it happens, no limit if negative
 * @seen: number of calls, for @interval
 * @fired: how often it has happened
 */
struct fault {
	const char	*name;
	u32		error;
	u32		delay;
	u32		probability;
	u32		interval;
	atomic_t	times;
	atomic_t	seen;
	atomic_t	fired;
};

#define FAULT(_name, _error, _delay) {					\
	.name = _name, .error = _error, .delay = _delay,		\
	.interval = 1, .times = ATOMIC_INIT(1),				\
}

static struct fault fault_table[FAULT_KINDS] = {
	[FAULT_CONNECT]	= FAULT("connect", ENOMEM, 0),
	[FAULT_SETUP]	= FAULT("setup", ECONNREFUSED, 0),
	[FAULT_HELLO]	= FAULT("hello", 0, 0),
	[FAULT_LATE]	= FAULT("late", 0, 100),
	[FAULT_POST]	= FAULT("post", EAGAIN, 0),
	[FAULT_DELAY]	= FAULT("delay", 0, 20),
	[FAULT_DROP]	= FAULT("drop", ETIMEDOUT, 0),
	[FAULT_CLOSE]	= FAULT("close", ECONNRESET, 0),
	[FAULT_SENT]	= FAULT("sent", 0, 20),
	[FAULT_LOSE]	= FAULT("lose", 0, 0),
	[FAULT_TWICE]	= FAULT("twice", 0, 0),
	[FAULT_SWAP]	= FAULT("swap", 0, 100),
	[FAULT_SHORT]	= FAULT("short", 0, 0),
	[FAULT_STARVE]	= FAULT("starve", 0, 20),
	[FAULT_DRAIN]	= FAULT("drain", 0, 0),
};

static bool fault_loop, fault_verbs;

/**
 * sovia_fault_applies() - can new VIs of a provider be faulty
 * @prov: the provider
 *
 * Return: true if so.
 */
bool sovia_fault_applies(const struct sovia_provider *prov)
{
	return prov->local ? READ_ONCE(fault_loop) : READ_ONCE(fault_verbs);
}

/**
 * sovia_fault_fires() - does a fault happen now
 * @kind: which fault
 *
 * Context: any.
 * Return: true if so, and counts it.
 */
bool sovia_fault_fires(enum fault_kind kind)
{
	struct fault *fault = &fault_table[kind];
	u32 probability = READ_ONCE(fault->probability);
	u32 interval = READ_ONCE(fault->interval);

	if (!probability || !atomic_read(&fault->times))
		return false;
	if (interval > 1 && (u32)atomic_inc_return(&fault->seen) % interval)
		return false;
	if (get_random_u32_below(100) >= probability)
		return false;
	/* Another CPU may have used up the last one. */
	if (atomic_read(&fault->times) > 0 && atomic_dec_if_positive(&fault->times) < 0)
		return false;
	atomic_inc(&fault->fired);
	return true;
}

/**
 * sovia_fault_error() - the errno of a fault
 * @kind: which fault
 *
 * Return: a negative errno.
 */
int sovia_fault_error(enum fault_kind kind)
{
	return -(int)clamp_t(u32, READ_ONCE(fault_table[kind].error), 1, MAX_ERRNO);
}

/**
 * sovia_fault_delay() - the delay of a fault
 * @kind: which fault
 *
 * Return: milliseconds.
 */
unsigned int sovia_fault_delay(enum fault_kind kind)
{
	return READ_ONCE(fault_table[kind].delay);
}

/**
 * sovia_fault_wanted() - is a fault enabled
 * @kind: which fault
 *
 * Return: true if its probability is not 0.
 */
bool sovia_fault_wanted(enum fault_kind kind)
{
	return READ_ONCE(fault_table[kind].probability);
}

/**
 * sovia_fault_drain() - is the queue pair of a VI on verbs not to drain
 *
 * Return: true if so, and counts it.
 */
bool sovia_fault_drain(void)
{
	return READ_ONCE(fault_verbs) && sovia_fault_fires(FAULT_DRAIN);
}

/**
 * sovia_fault_init() - create the files
 *
 * Removed with the module's directory.
 *
 * Context: module init.
 * Return: 0.
 */
int sovia_fault_init(void)
{
	struct dentry *top = debugfs_create_dir("fault", sovia_debugfs_dir()), *folder;
	struct fault *fault;

	debugfs_create_bool("loop", 0600, top, &fault_loop);
	debugfs_create_bool("verbs", 0600, top, &fault_verbs);
	for (fault = fault_table; fault < fault_table + FAULT_KINDS; fault++) {
		folder = debugfs_create_dir(fault->name, top);
		debugfs_create_u32("probability", 0600, folder, &fault->probability);
		debugfs_create_u32("interval", 0600, folder, &fault->interval);
		debugfs_create_atomic_t("times", 0600, folder, &fault->times);
		debugfs_create_atomic_t("fired", 0600, folder, &fault->fired);
		if (fault->error)
			debugfs_create_u32("errno", 0600, folder, &fault->error);
		if (fault->delay)
			debugfs_create_u32("delay", 0600, folder, &fault->delay);
	}
	return 0;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/fault_test.c"
#endif

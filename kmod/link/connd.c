// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection thread, [sovia-connd] (KSOVIA 3.3).
 *
 * Sets links up and tears them down.  One thread for the whole system is the
 * only writer of link state, so link set-up needs locks only to protect
 * readers.  It never waits for a peer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/mutex.h>
#include "compat/kthread.h"
#include "connd.h"

static DEFINE_MUTEX(connd_mutex);
static struct kthread_worker *connd;

/**
 * sovia_connd_start() - start the connection thread unless it runs
 *
 * Called by the first listen() or connect().
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_connd_start(void)
{
	struct kthread_worker *worker;
	int err = 0;

	/* Pairs with the release below: a non-NULL worker is initialised. */
	if (smp_load_acquire(&connd))
		return 0;
	mutex_lock(&connd_mutex);
	if (!connd) {
		worker = kthread_run_worker(0, "sovia-connd");
		if (IS_ERR(worker))
			err = PTR_ERR(worker);
		else
			smp_store_release(&connd, worker); /* for the acquire above */
	}
	mutex_unlock(&connd_mutex);
	return err;
}

/**
 * sovia_connd_stop() - stop the connection thread
 *
 * Context: module exit; nothing queues work any more.
 */
void sovia_connd_stop(void)
{
	if (connd)
		kthread_destroy_worker(connd);
	connd = NULL;
}

/**
 * sovia_connd_queue() - let the connection thread run @work
 * @work: the work
 *
 * Context: any; the thread has been started.
 * Return: true if it was queued, false if it already was.
 */
bool sovia_connd_queue(struct kthread_work *work)
{
	return kthread_queue_work(connd, work);
}

/**
 * sovia_connd_flush() - wait until all work queued so far has run
 *
 * Context: process, may sleep; no locks.
 */
void sovia_connd_flush(void)
{
	if (connd)
		kthread_flush_worker(connd);
}

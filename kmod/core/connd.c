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
#include "compat/kthread.h"
#include "connd.h"

static struct kthread_worker *connd;

/**
 * sovia_connd_start() - start the connection thread
 *
 * Context: module init; nothing queues work yet.
 * Return: 0 or a negative errno.
 */
int __init sovia_connd_start(void)
{
	struct kthread_worker *worker = kthread_run_worker(0, "sovia-connd");

	if (IS_ERR(worker))
		return PTR_ERR(worker);
	connd = worker;
	return 0;
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
 * Context: any.
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
	kthread_flush_worker(connd);
}

/**
 * struct connd_call - a function call in the connection thread, on the stack of its waiter
 * @work: queued once
 * @function: the function
 * @arg: its argument
 */
struct connd_call {
	struct kthread_work	work;
	void			(*function)(void *arg);
	void			*arg;
};

static void connd_call_work(struct kthread_work *work)
{
	struct connd_call *call = container_of(work, struct connd_call, work);

	call->function(call->arg);
}

/**
 * sovia_connd_call() - call a function in the connection thread, after all work queued so far
 * @function: the function
 * @arg: its argument
 *
 * Context: process, may sleep; no locks; not the connection thread.
 */
void sovia_connd_call(void (*function)(void *arg), void *arg)
{
	struct connd_call call = { .function = function, .arg = arg };

	kthread_init_work(&call.work, connd_call_work);
	sovia_connd_queue(&call.work);
	kthread_flush_work(&call.work);
}

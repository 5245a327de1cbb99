// SPDX-License-Identifier: GPL-2.0-only
/*
 * Workqueues for what may block on a device or a peer, so that the connection thread does
 * not: one for making VIs, and one for ending them and for all that frees.  Works that block
 * on the first do not keep back those of the second.  A third one for listening, because
 * there may be as many namespaces as users want, and all wait for a device that is slow.
 * A fourth one for sockets that fall back to TCP: users make as many as they want.
 */
#include <linux/errno.h>
#include "work.h"

struct workqueue_struct *sovia_listen_wq;
struct workqueue_struct *sovia_setup_wq;
struct workqueue_struct *sovia_end_wq;
struct workqueue_struct *sovia_tcp_wq;

/**
 * sovia_work_init() - create the workqueues
 *
 * Context: module init.
 * Return: 0 or -ENOMEM.
 */
int sovia_work_init(void)
{
	sovia_listen_wq = alloc_workqueue("sovia_listen", WQ_UNBOUND, 0);
	sovia_setup_wq = alloc_workqueue("sovia_setup", WQ_UNBOUND | WQ_MEM_RECLAIM,
					 SOVIA_WORKERS_MAX);
	sovia_end_wq = alloc_workqueue("sovia_end", WQ_UNBOUND | WQ_MEM_RECLAIM,
				       SOVIA_WORKERS_MAX);
	sovia_tcp_wq = alloc_workqueue("sovia_tcp", WQ_UNBOUND, 0);
	if (sovia_listen_wq && sovia_setup_wq && sovia_end_wq && sovia_tcp_wq)
		return 0;
	sovia_work_exit();
	return -ENOMEM;
}

/**
 * sovia_work_exit() - finish all works and remove the queues
 *
 * Context: module exit, or a failed init; nothing queues work any more.
 */
void sovia_work_exit(void)
{
	if (sovia_listen_wq)
		destroy_workqueue(sovia_listen_wq);
	if (sovia_setup_wq)
		destroy_workqueue(sovia_setup_wq);
	if (sovia_end_wq)
		destroy_workqueue(sovia_end_wq);
	if (sovia_tcp_wq)
		destroy_workqueue(sovia_tcp_wq);
}

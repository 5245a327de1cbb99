/* SPDX-License-Identifier: GPL-2.0-only */
/* Workqueues for what the connection thread does not wait for: work.c. */
#ifndef _SOVIA_WORK_H
#define _SOVIA_WORK_H

#include <linux/workqueue.h>

/*
 * Works that may run at a time, on each queue.  Set-ups that may block are limited to less
 * than half of it (link_slot.c).
 */
#define SOVIA_WORKERS_MAX	512

extern struct workqueue_struct *sovia_listen_wq;
extern struct workqueue_struct *sovia_setup_wq;
extern struct workqueue_struct *sovia_end_wq;
extern struct workqueue_struct *sovia_tcp_wq;

int sovia_work_init(void);
void sovia_work_exit(void);

#endif /* _SOVIA_WORK_H */

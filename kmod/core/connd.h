/* SPDX-License-Identifier: GPL-2.0-only */
/* The connection thread, [sovia-connd] (KSOVIA 3.3). */
#ifndef _SOVIA_CONND_H
#define _SOVIA_CONND_H

#include <linux/kthread.h>

int sovia_connd_start(void);
void sovia_connd_stop(void);
bool sovia_connd_queue(struct kthread_work *work);
void sovia_connd_flush(void);
void sovia_connd_call(void (*function)(void *arg), void *arg);

#endif /* _SOVIA_CONND_H */

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory is short: ask back windows that peers do not use, from connections of tenants that hold
 * more than their share (Documentation/limits.rst).  The peers answer when they have time.
 */
#include <linux/workqueue.h>
#include "mem.h"
#include "pressure.h"
#include "rx.h"
#include "sock_list.h"

/* Pause between two rounds, in which answers arrive. */
#define PRESSURE_PAUSE	(HZ / 10)
/* Connections that are asked in one round: each costs its lane two messages. */
#define PRESSURE_ASKS	1024
/* Sockets that are looked at. */
#define PRESSURE_LOOKS	16384

static void pressure_work(struct work_struct *work);

static DECLARE_DELAYED_WORK(pressure, pressure_work);
/* Where the next round goes on. */
static loff_t pressure_pos;

/* Ask the next sockets of all, until that is enough. */
static void pressure_work(struct work_struct *work)
{
	int asks = PRESSURE_ASKS, looks = PRESSURE_LOOKS, ends = 2;
	s64 coming = 0;

	while (asks && looks && ends) {
		struct sock *sk = sovia_sock_from(NULL, &pressure_pos);

		if (!sk) {
			pressure_pos = 0;
			ends--;
			continue;
		}
		pressure_pos++;
		looks--;
		if (sovia_mem_excess(sk) > coming) {
			s64 more = sovia_rx_lower(sk);

			coming += more;
			asks -= more > 0;
		}
		sock_put(sk);
	}
	if (!asks)
		sovia_pressure();
}

/**
 * sovia_pressure() - ask tenants for what they hold beyond their share, soon
 *
 * Context: any.
 */
void sovia_pressure(void)
{
	if (!delayed_work_pending(&pressure))
		queue_delayed_work(system_unbound_wq, &pressure, PRESSURE_PAUSE);
}

/**
 * sovia_pressure_exit() - wait until none is asked any more
 *
 * Context: module exit, may sleep; there are no sockets.
 */
void sovia_pressure_exit(void)
{
	cancel_delayed_work_sync(&pressure);
}

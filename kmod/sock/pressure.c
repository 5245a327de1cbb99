// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory is short: ask back windows that peers do not use, from connections of tenants that hold
 * more than their share (Documentation/limits.rst).  The peers answer when they have time.
 *
 * Above the first mark connections are left a message, above the second one the smallest window.
 * Each tenant has a list of those from which there is something to be had (enum sovia_lent); those
 * that have moved data since they were looked at last are passed over once.
 */
#include <linux/workqueue.h>
#include "mem.h"
#include "pressure.h"
#include "rx.h"

/* Pause between two runs, in which answers arrive. */
#define PRESSURE_PAUSE	(HZ / 10)
/* Connections that are asked in one run: each costs its lane two messages. */
#define PRESSURE_ASKS	1024
/* Connections that are looked at in one run, in all and of one tenant, at most twice. */
#define PRESSURE_LOOKS	16384
#define PRESSURE_EACH	2048
/* A peer that has not answered for so long is not waited for: others are asked. */
#define PRESSURE_WAIT	(5 * HZ)

static void pressure_work(struct work_struct *work);

static DECLARE_DELAYED_WORK(pressure, pressure_work);

/* How many times all tenants have been asked, see sovia_tenant::lent_round. */
static unsigned int rounds[] = {
	[SOVIA_LENT_LARGE] = 1,
	[SOVIA_LENT_SOME] = 1,
};

/**
 * struct pressure_run - one run of the work
 * @list: windows of which list are asked back
 * @asks: how many more may be asked
 * @looks: how many more may be looked at
 */
struct pressure_run {
	enum sovia_lent	list;
	int		asks;
	int		looks;
};

/* The next socket of a list, which goes to its end; with a reference, or NULL. */
static struct sock *lent_next(struct sovia_tenant *tenant, enum sovia_lent list)
{
	struct sovia_sock *ss;
	struct sock *sk = NULL;

	spin_lock_bh(&tenant->lent_lock);
	ss = list_first_entry_or_null(&tenant->lent[list], struct sovia_sock, rx.lent);
	if (ss) {
		list_move_tail(&ss->rx.lent, &tenant->lent[list]);
		sk = (struct sock *)ss;
		/* One that is being freed leaves the list before. */
		sock_hold(sk);
	}
	spin_unlock_bh(&tenant->lent_lock);
	return sk;
}

static bool run_is_over(const struct pressure_run *run)
{
	return !run->looks || !run->asks || sovia_mem_excess(run->list) <= 0;
}

static void ask_tenant(struct sovia_tenant *tenant, void *arg)
{
	struct pressure_run *run = arg;
	/* Twice around: those that are passed over once. */
	int looks = min(2 * READ_ONCE(tenant->lent_count[run->list]), PRESSURE_EACH);

	if (tenant->lent_round[run->list] == rounds[run->list] || run_is_over(run))
		return;
	tenant->lent_round[run->list] = rounds[run->list];
	while (looks-- && !run_is_over(run) && sovia_mem_beyond_share(tenant) > 0) {
		struct sock *sk = lent_next(tenant, run->list);

		if (!sk)
			return;
		run->looks--;
		if (READ_ONCE(sovia_sk(sk)->rx.used))
			WRITE_ONCE(sovia_sk(sk)->rx.used, false);
		else if (sovia_rx_lower(sk, run->list))
			run->asks--;
		sock_put(sk);
	}
}

/* Ask for windows of a list, first those tenants that the last run did not reach. */
static void ask_tenants(struct pressure_run *run)
{
	sovia_tenants_each(ask_tenant, run);
	if (run_is_over(run))
		return;
	rounds[run->list]++;
	sovia_tenants_each(ask_tenant, run);
}

static void forget_silent(struct sovia_tenant *tenant, void *arg)
{
	int looks = min(READ_ONCE(tenant->lent_count[SOVIA_LENT_ASKED]), PRESSURE_EACH);

	while (looks--) {
		struct sock *sk = lent_next(tenant, SOVIA_LENT_ASKED);

		if (!sk)
			return;
		if (time_after(jiffies, READ_ONCE(sovia_sk(sk)->rx.asked_time) + PRESSURE_WAIT))
			sovia_rx_forget_asked(sk);
		sock_put(sk);
	}
}

static void pressure_work(struct work_struct *work)
{
	struct pressure_run run = { .asks = PRESSURE_ASKS, .looks = PRESSURE_LOOKS };

	if (sovia_tenants_coming())
		sovia_tenants_each(forget_silent, NULL);
	for (run.list = SOVIA_LENT_LARGE; run.list <= SOVIA_LENT_SOME; run.list++)
		if (sovia_mem_is_due(run.list))
			ask_tenants(&run);
	if (!run.asks || !run.looks)
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

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/pressure_test.c"
#endif

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

/* Pause between two rounds, in which answers arrive. */
#define PRESSURE_PAUSE	(HZ / 10)
/* Connections that are asked in one round: each costs its lane two messages. */
#define PRESSURE_ASKS	1024
/* Connections that are looked at in one round, in all and of one tenant. */
#define PRESSURE_LOOKS	16384
#define PRESSURE_EACH	2048
/* A peer that has not answered for so long is not waited for: others are asked. */
#define PRESSURE_WAIT	(5 * HZ)

static void pressure_work(struct work_struct *work);

static DECLARE_DELAYED_WORK(pressure, pressure_work);

/**
 * struct pressure_round - one run of the work
 * @list: windows of which list are asked back
 * @asks: how many more may be asked
 * @looks: how many more may be looked at
 * @after: tenants with higher numbers only, and with @begin those up to it
 * @begin: the second part
 * @last: the tenant that was looked at last
 */
struct pressure_round {
	enum sovia_lent	list;
	int		asks;
	int		looks;
	u16		after;
	bool		begin;
	u16		last;
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

static void ask_tenant(struct sovia_tenant *tenant, void *arg)
{
	struct pressure_round *round = arg;
	/* Twice around: those that are passed over once. */
	int looks = min(2 * READ_ONCE(tenant->lent_count[round->list]), PRESSURE_EACH);
	bool later = tenant->number > round->after;

	if (later == round->begin)
		return;
	while (looks-- && round->looks && round->asks && sovia_mem_excess(round->list) > 0 &&
	       sovia_mem_beyond_share(tenant) > 0) {
		struct sock *sk = lent_next(tenant, round->list);

		if (!sk)
			return;
		round->looks--;
		round->last = tenant->number;
		if (READ_ONCE(sovia_sk(sk)->rx.used))
			WRITE_ONCE(sovia_sk(sk)->rx.used, false);
		else if (sovia_rx_lower(sk, round->list))
			round->asks--;
		sock_put(sk);
	}
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
	/* A round begins with the tenant after the one that used up the budget of the last one. */
	static u16 after;
	struct pressure_round round = {
		.asks = PRESSURE_ASKS, .looks = PRESSURE_LOOKS, .after = after,
	};

	if (sovia_tenants_coming())
		sovia_tenants_each(forget_silent, NULL);
	for (round.list = SOVIA_LENT_LARGE; round.list <= SOVIA_LENT_SOME; round.list++) {
		if (!sovia_mem_is_due(round.list))
			continue;
		round.begin = false;
		sovia_tenants_each(ask_tenant, &round);
		round.begin = true;
		sovia_tenants_each(ask_tenant, &round);
	}
	if (round.asks && round.looks)
		return;
	after = round.last;
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

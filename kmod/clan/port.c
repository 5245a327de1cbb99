// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node's access to the memory: the bottom half, which is at the other nodes in turn (node.c).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": clan: " fmt

#include "clan.h"
#include "compat/hrtimer.h"
#include "compat/netdevice.h"
#include "compat/timer.h"
#include "core/net.h"

/* Interrupts a second for which no entry has been taken.  Beyond that the timer looks instead. */
#define CLAN_RUNG_MAX		1000
/* How often it waits for messages that come fast. */
#define CLAN_LINGERS		3

static void say_generation(const struct sovia_clan_port *port)
{
	/* Pairs with generation_of(): our areas have been reset. */
	virt_store_release(&port->node[port->number].slot->generation,
			   cpu_to_le32(port->generation));
}

/* What others that have the memory may have changed. */
static void say_again(struct sovia_clan_port *port)
{
	struct sovia_clan_node *node;

	say_generation(port);
	for (node = port->node; node < port->node + port->geometry.nodes; node++) {
		WRITE_ONCE(node->out.own.words->epoch, cpu_to_le32(node->epoch));
		WRITE_ONCE(node->out.own.words->peer, cpu_to_le32(node->seen));
	}
}

static void set_mute(struct sovia_clan_port *port, bool mute)
{
	WRITE_ONCE(port->muted, mute);
	port->mute(port, mute);
}

static void take_pages(struct sovia_clan_port *port)
{
	struct sovia_clan_node *node;

	for (node = port->node; node < port->node + port->geometry.nodes; node++)
		sovia_clan_node_reclaim(node);
}

static void each_second(struct sovia_clan_port *port)
{
	say_again(port);
	take_pages(port);
	port->say_at = jiffies + HZ;
	port->moved = 0;
	WRITE_ONCE(port->rung, 0);
	if (port->muted)
		set_mute(port, false);
}

/* Any that has the memory may ring without a message. */
static void bound_interrupts(struct sovia_clan_port *port)
{
	if (!port->mute || port->muted || READ_ONCE(port->rung) <= CLAN_RUNG_MAX + port->moved)
		return;
	pr_notice_ratelimited("spurious interrupts, polling for a second\n");
	sovia_stat_inc(sovia_net(port->net), clan_mutes);
	set_mute(port, true);
}

/* Each poll begins with another node, so that none can keep the others waiting. */
static int poll_nodes(struct sovia_clan_port *port, int budget)
{
	u32 nodes = port->geometry.nodes, first = port->first++, i;
	int done = 0;

	for (i = 0; i < nodes && done < budget; i++) {
		u32 number = (first + i) % nodes;

		if (number != port->number)
			done += sovia_clan_node_poll(&port->node[number], budget - done);
	}
	return done;
}

/* Have messages come soon after it has gone to sleep?  Then a doorbell for each costs more. */
static void note_wake(struct sovia_clan_port *port)
{
	if (!port->asleep || !port->linger)
		return;
	port->asleep = false;
	if (ktime_get_ns() - port->slept < 2 * port->linger)
		port->lingers = CLAN_LINGERS;
}

/* Returns true if the bottom half will run again without a doorbell. */
static bool port_linger(struct sovia_clan_port *port, int done)
{
	if (!port->lingers)
		return false;
	port->lingers = done ? CLAN_LINGERS : port->lingers - 1;
	hrtimer_start(&port->lingering, ns_to_ktime(port->linger), HRTIMER_MODE_REL_PINNED_SOFT);
	return true;
}

static enum hrtimer_restart port_lingered(struct hrtimer *timer)
{
	struct sovia_clan_port *port = container_of(timer, struct sovia_clan_port, lingering);

	napi_schedule(&port->napi);
	return HRTIMER_NORESTART;
}

/*
 * Have doorbells rung from now on.  Before NAPI is given back: after that another processor may be
 * at it, which knows better what to wait for.
 */
static void port_sleep(struct sovia_clan_port *port)
{
	u32 i;

	lockdep_assert_once(test_bit(NAPI_STATE_SCHED, &port->napi.state));
	for (i = 0; i < port->geometry.nodes; i++)
		if (port->node[i].open)
			sovia_clan_in_sleep(&port->node[i].in);
	if (port->linger) {
		port->asleep = true;
		port->slept = ktime_get_ns();
	}
	WRITE_ONCE(port->sleeps, port->sleeps + 1);
	if (time_after(READ_ONCE(port->look.expires), jiffies + 1))
		mod_timer(&port->look, jiffies + 1);
}

/* Has something come before port_sleep() had doorbells rung?  NAPI has been given back. */
static bool port_has_news(struct sovia_clan_port *port)
{
	u32 i;

	for (i = 0; i < port->geometry.nodes; i++)
		if (i != port->number && sovia_clan_node_has_news(&port->node[i]))
			return true;
	return false;
}

/* Is the section still ours?  The server gives it to another node when it takes us for gone. */
static bool port_is_ours(const struct sovia_clan_port *port)
{
	return !port->lost && READ_ONCE(*port->present) == port->given;
}

/* Nothing is written into the section any more. */
static void port_lose(struct sovia_clan_port *port)
{
	u32 i;

	WRITE_ONCE(port->lost, true);
	for (i = 0; i < port->geometry.nodes; i++)
		if (port->node[i].open)
			sovia_clan_node_close(&port->node[i], -ENODEV);
}

static int port_poll(struct napi_struct *napi, int budget)
{
	struct sovia_clan_port *port = container_of(napi, struct sovia_clan_port, napi);
	int done;

	if (!port_is_ours(port)) {
		port_lose(port);
		napi_complete_done(napi, 0);
		return 0;
	}
	WRITE_ONCE(port->starved, false);
	if (time_after_eq(jiffies, port->say_at))
		each_second(port);
	rcu_read_lock();
	done = poll_nodes(port, budget);
	rcu_read_unlock();
	bound_interrupts(port);
	if (done)
		note_wake(port);
	/* Who is polled needs no doorbell. */
	if (done >= budget || test_bit(NAPI_STATE_IN_BUSY_POLL, &napi->state))
		return done;
	if (port_linger(port, done)) {
		napi_complete_done(napi, done);
		return done;
	}
	port_sleep(port);
	if (napi_complete_done(napi, done) && port_has_news(port))
		napi_schedule(napi);
	return done;
}

/**
 * sovia_clan_port_rung() - have the bottom half run
 * @port: the port
 *
 * Context: process or softirq.
 */
void sovia_clan_port_rung(struct sovia_clan_port *port)
{
	/* A softirq that is raised runs at once. */
	local_bh_disable();
	napi_schedule(&port->napi);
	local_bh_enable();
}

/**
 * sovia_clan_port_interrupt() - one has come
 * @port: the port
 *
 * Context: hardirq, one at a time.
 */
void sovia_clan_port_interrupt(struct sovia_clan_port *port)
{
	WRITE_ONCE(port->rung, port->rung + 1);
	napi_schedule(&port->napi);
}

/*
 * Look again soon after the bottom half has gone to sleep: if an emulator leaves out a barrier,
 * or an interrupt is lost, a message is late, and the connection does not hang.  And when a node
 * has been left alone for long enough; and each second.
 */
static void port_look(struct timer_list *timer)
{
	struct sovia_clan_port *port = timer_container_of(port, timer, look);
	unsigned long next = round_jiffies(jiffies + HZ);
	u32 sleeps = READ_ONCE(port->sleeps), i;
	bool news = READ_ONCE(port->muted) || time_after_eq(jiffies, READ_ONCE(port->say_at));

	for (i = 0; i < port->geometry.nodes; i++)
		if (i != port->number)
			news |= sovia_clan_node_look_later(&port->node[i], &next);
	if (news)
		napi_schedule(&port->napi);
	if (sleeps != port->looked)
		next = jiffies + 1;
	mod_timer(&port->look, next);
	port->looked = sleeps;
}

/* ---- the port ----------------------------------------------------------------------- */

static void port_init_node(struct sovia_clan_port *port, u32 number)
{
	const struct sovia_clan_geometry *geometry = &port->geometry;
	struct sovia_clan_node *node = &port->node[number];

	node->port = port;
	node->number = number;
	node->slot = port->base + sovia_clan_slot_at(geometry, number);
	node->pages = port->base + sovia_clan_pool_at(geometry, number);
	spin_lock_init(&node->lock);
	INIT_LIST_HEAD(&node->control);
	INIT_LIST_HEAD(&node->senders);
	sovia_clan_area_set(&node->out.own,
			    port->base + sovia_clan_area_at(geometry, port->number, number));
	sovia_clan_area_set(&node->out.theirs,
			    port->base + sovia_clan_area_at(geometry, number, port->number));
	node->out.size = geometry->ring;
	node->in.own = node->out.own;
	node->in.theirs = node->out.theirs;
	node->in.size = geometry->ring;
}

/**
 * sovia_clan_port_alloc() - make a port for a memory
 * @base: the memory
 * @size: bytes of it
 * @number: the node's own number
 *
 * Context: process.
 * Return: the port, whose net, prov and doorbell are to be set; or an ERR_PTR of
 * sovia_clan_check_header(), -ERANGE, or -ENOMEM.
 */
struct sovia_clan_port *sovia_clan_port_alloc(void *base, u64 size, u32 number)
{
	struct sovia_clan_geometry geometry;
	struct sovia_clan_port *port;
	u32 i;
	int err;

	err = sovia_clan_check_header(base, size, &geometry);
	if (err)
		return ERR_PTR(err);
	if (number >= geometry.nodes)
		return ERR_PTR(-ERANGE);
	port = kvzalloc(struct_size(port, node, geometry.nodes), GFP_KERNEL);
	if (!port)
		return ERR_PTR(-ENOMEM);
	port->base = base;
	port->geometry = geometry;
	port->number = number;
	port->present = sovia_clan_present(base, number);
	port->given = READ_ONCE(*port->present);
	port->napi_dev = alloc_netdev_dummy(0);
	err = port->napi_dev ? sovia_clan_pool_init(&port->pool, geometry.pool) : -ENOMEM;
	if (err) {
		if (port->napi_dev)
			free_netdev(port->napi_dev);
		kvfree(port);
		return ERR_PTR(err);
	}
	refcount_set(&port->refs, 1);
	init_completion(&port->unused);
	xa_init_flags(&port->vis, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	netif_napi_add(port->napi_dev, &port->napi, port_poll);
	timer_setup(&port->look, port_look, 0);
	hrtimer_setup(&port->lingering, port_lingered, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_SOFT);
	for (i = 0; i < geometry.nodes; i++)
		port_init_node(port, i);
	return port;
}

/**
 * sovia_clan_port_put() - drop a reference
 * @port: the port
 *
 * Context: any.
 */
void sovia_clan_port_put(struct sovia_clan_port *port)
{
	if (refcount_dec_and_test(&port->refs))
		complete(&port->unused);
}

static void ring_all(struct sovia_clan_port *port)
{
	u32 i;

	for (i = 0; i < port->geometry.nodes; i++)
		if (i != port->number)
			sovia_clan_node_ring(&port->node[i]);
}

/**
 * sovia_clan_port_begin() - take part
 * @port: whose net, prov and doorbell are set
 *
 * Context: process.
 */
void sovia_clan_port_begin(struct sovia_clan_port *port)
{
	u32 i;

	napi_enable(&port->napi);
	/* What an earlier one with our number has left. */
	for (i = 0; i < port->geometry.nodes; i++) {
		port->node[i].quiet = jiffies;
		sovia_clan_node_reset(&port->node[i]);
	}
	port->generation = sovia_clan_random();
	say_generation(port);
	port->say_at = jiffies + HZ;
	mod_timer(&port->look, jiffies + 1);
	ring_all(port);
	sovia_clan_port_rung(port);
}

/**
 * sovia_clan_port_stop() - leave
 * @port: it has begun; no new VIs are made
 *
 * Its VIs are closed, and have ended when this returns.
 *
 * Context: process, may sleep.
 */
void sovia_clan_port_stop(struct sovia_clan_port *port)
{
	u32 i;

	napi_disable(&port->napi);
	timer_delete_sync(&port->look);
	hrtimer_cancel(&port->lingering);
	if (port_is_ours(port)) {
		WRITE_ONCE(port->node[port->number].slot->generation, 0);
		ring_all(port);
	}
	for (i = 0; i < port->geometry.nodes; i++)
		sovia_clan_node_close(&port->node[i], -ENODEV);
	sovia_clan_port_put(port);
	wait_for_completion(&port->unused);
}

/**
 * sovia_clan_port_free() - free a port
 * @port: stopped, or never begun; its doorbell is rung no more
 *
 * Context: process, may sleep.
 */
void sovia_clan_port_free(struct sovia_clan_port *port)
{
	u32 i;

	for (i = 0; i < port->geometry.nodes; i++)
		sovia_clan_purge_control(&port->node[i].control);
	netif_napi_del(&port->napi);
	free_netdev(port->napi_dev);
	xa_destroy(&port->vis);
	sovia_clan_pool_exit(&port->pool);
	kvfree(port);
}

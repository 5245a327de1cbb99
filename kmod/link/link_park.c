// SPDX-License-Identifier: GPL-2.0-only
/*
 * Idle links give their VIs up, and get another one for their next message.  See
 * Documentation/recovery.rst, "Parked links".
 *
 * One end asks by PARK; the other one agrees by closing the VI, or answers as to a PROBE.  A parked
 * link is resumed as one that recovers, but for its log messages.
 *
 * Idle: nothing but probes has been sent or received since the link's timer last fired.
 */
#include "compat/shrinker.h"
#include "core/param.h"
#include "lane/lane.h"
#include "lane/lane_park.h"
#include "lane/lane_tx.h"
#include "link_park.h"
#include "link_recover.h"
#include "link_state.h"
#include "link_table.h"
#include "link_vi.h"

static unsigned int idle_links = 64;
sovia_param(idle_links, idle_links, 0, INT_MAX, 0644);
MODULE_PARM_DESC(idle_links, "idle links of a namespace that keep their queue pairs, more are parked (64)");

static bool link_may_park(const struct sovia_link *link)
{
	return link->state == SOVIA_LINK_UP && link->lane.vi && link->lane.parks &&
	       sovia_recovery_wanted(link);
}

/* Have messages other than probes passed since the last call, or are some under way? */
static bool link_is_used(struct sovia_link *link)
{
	struct sovia_lane *lane = &link->lane;
	bool used;
	u32 count;

	spin_lock_bh(&lane->lock);
	count = lane->credit.tx_next + lane->credit.rx_next - lane->probes;
	used = count != link->used || sovia_lane_has_work(lane) ||
	       lane->credit.rx_next != sovia_credit_ack(&lane->credit);
	spin_unlock_bh(&lane->lock);
	link->used = count;
	return used;
}

/**
 * sovia_link_ask_park() - ask the peer to park a link, now or when its timer fires
 * @link: in any state
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if it has been asked.
 */
bool sovia_link_ask_park(struct sovia_link *link)
{
	if (!link->park_wanted)
		link->park_asked = jiffies;
	link->park_wanted = link_may_park(link);
	return link->park_wanted && sovia_lane_ask_park(&link->lane);
}

/* The module's limit, or the namespace's if that is lower. */
static unsigned int idle_most(const struct sovia_net *snet)
{
	return min_t(unsigned int, READ_ONCE(idle_links), READ_ONCE(snet->idle_links.value));
}

/* The most idle link of the namespace is not needed. */
static void spare_one(struct sovia_net *snet)
{
	struct sovia_link *link = sovia_link_idlest(snet);

	if (!link)
		return;
	sovia_link_set_idle(link, false);
	sovia_link_event(link, SOVIA_LINK_EV_SPARE);
	sovia_link_put(link);
}

/**
 * sovia_link_rest() - the timer of a link has fired: is it idle, and is it asked to be parked
 * @link: UP, over a provider that is not local
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if the peer is being asked, so that it is not probed.
 */
bool sovia_link_rest(struct sovia_link *link)
{
	bool idle = !link_is_used(link);

	if (!idle)
		link->park_wanted = false;
	if (link->park_wanted && sovia_lane_ask_park(&link->lane))
		return true;
	sovia_link_set_idle(link, idle && link_may_park(link));
	if (READ_ONCE(link->snet->idle_count) > idle_most(link->snet))
		spare_one(link->snet);
	return false;
}

/**
 * sovia_link_look_parked() - the lane may have agreed to be parked
 * @link: in any state
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_look_parked(struct sovia_link *link)
{
	if (link->state == SOVIA_LINK_UP && sovia_lane_rests(&link->lane) && !link->lane.up)
		sovia_link_park(link);
}

/* If there are too many parked links, one without connections ends. */
static void drop_one(struct sovia_net *snet)
{
	struct sovia_link *link = sovia_link_excess_parked(snet);

	if (!link)
		return;
	sovia_link_retire(link);
	sovia_link_put(link);
}

/**
 * sovia_link_park() - park a link
 * @link: UP; its lane rests
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_park(struct sovia_link *link)
{
	struct sovia_lane *lane = &link->lane;

	sovia_link_drop_vi(link);
	if (!sovia_link_set_state(link, SOVIA_LINK_PARKED))
		return;
	/* For probes; a link that waits for room sets it. */
	sovia_link_stop_timer(link);
	link->park_wanted = false;
	link->doubted = false;
	sovia_link_set_idle(link, false);
	sovia_link_set_parked(link, true);
	drop_one(link->snet);
	sovia_stat_inc(link->snet, link_park);
	spin_lock_bh(&lane->lock);
	lane->parked = true;
	sovia_lane_pump(lane);
	spin_unlock_bh(&lane->lock);
}

/**
 * sovia_link_resume() - a parked link is to be used again
 * @link: in any state
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if it was parked; it is RECOVERING now.
 */
bool sovia_link_resume(struct sovia_link *link)
{
	if (link->state != SOVIA_LINK_PARKED ||
	    !sovia_link_set_state(link, SOVIA_LINK_RECOVERING))
		return false;
	link->resumes = true;
	link->waits_room = false;
	sovia_link_set_parked(link, false);
	sovia_recovery_restart(link);
	return true;
}

/* ---- memory is short ------------------------------------------------- */

static unsigned long park_count(struct shrinker *shrinker, struct shrink_control *sc)
{
	return sovia_links_idle() ?: SHRINK_EMPTY;
}

/* Each idle link is asked; it takes a while until its memory is free. */
static unsigned long park_scan(struct shrinker *shrinker, struct shrink_control *sc)
{
	unsigned long asked = 0;
	struct net *net;

	rcu_read_lock();
	for_each_net_rcu(net) {
		struct sovia_net *snet = sovia_net(net);

		while (asked < sc->nr_to_scan && READ_ONCE(snet->idle_count)) {
			spare_one(snet);
			asked++;
		}
	}
	rcu_read_unlock();
	return asked ?: SHRINK_STOP;
}

static struct shrinker *park_shrinker;

/**
 * sovia_park_init() - begin to park idle links when memory is short
 *
 * Context: module init; namespaces are registered.
 * Return: 0 or a negative errno.
 */
int __init sovia_park_init(void)
{
	park_shrinker = sovia_shrinker_register("sovia-links", park_count, park_scan);
	return park_shrinker ? 0 : -ENOMEM;
}

/**
 * sovia_park_exit() - stop it
 *
 * Context: module exit, before namespaces are unregistered.
 */
void sovia_park_exit(void)
{
	sovia_shrinker_unregister(park_shrinker);
}

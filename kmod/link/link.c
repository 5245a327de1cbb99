// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links: one for each pair of addresses, shared by all connections between them.  With
 * the parameter lanes there are several, one for each lane, independent of each
 * other.  link_table.c looks them up.
 *
 * A link is created by the first connection that needs it, or by a peer's request.
 * Only the connection thread changes its state, driven by event bits, and always
 * through link_enter().
 *
 *	NEW --START--> CONNECTING ----tried-----> UP <------> RECOVERING --> DOWN
 *	                    \                      \----unrecoverable---------^
 *	                     \------------------closed------------------------^
 *
 *	UP ----idle----> PARKED ----needed----> RECOVERING
 *
 * A lane is UP when it has been tried with long messages: link_trial.c.  A link that loses
 * its VI sets up another one and continues: link_recover.c.  An idle one does without: link_park.c.
 *
 * DOWN is final: the link leaves the table, and the connections are notified.  The object
 * stays until its VI has ended.  The next connection to the peer creates a new link.
 *
 * When both sides connect at once, the attempt of the lower address counts: the
 * lower side rejects the other's request (-EAGAIN), the higher side drops its
 * own attempt when the request arrives.
 *
 * References: the table, every attached connection, the VI, and queued work hold one
 * each.  Links hold their namespace.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <net/ipv6.h>
#include "core/event.h"
#include "core/connd.h"
#include "core/objcount.h"
#include "core/param.h"
#include "core/tenant.h"
#include "core/trace.h"
#include "lane/conn_table.h"
#include "lane/lane.h"
#include "lane/lane_park.h"
#include "link.h"
#include "link_conns.h"
#include "link_moved.h"
#include "link_park.h"
#include "link_peer.h"
#include "link_probe.h"
#include "link_recover.h"
#include "link_slot.h"
#include "link_state.h"
#include "link_table.h"
#include "link_trial.h"
#include "link_vi.h"
#include "peer/near.h"
#include "peer/peer.h"
#include "peer/peer_meet.h"
#include "peer/peer_memory.h"

/* How long the higher address waits for the lower one's request. */
#define SOVIA_LINK_CROSS_WAIT	(2 * HZ)

/* Delay of the retries while the peer has no room; doubles each time. */
#define SOVIA_LINK_PAUSE_MIN	(HZ / 20)
#define SOVIA_LINK_PAUSE_MAX	(2 * HZ)

/*
 * Refusals that end a recovery: about 25 seconds of attempts.  siw's device takes ten to
 * be deleted while one of its own connects blocks, and its node refuses until it is back.
 */
#define SOVIA_LINK_REFUSALS	16

/* Requests in a row that a peer may not know: it has another kernel, as its anchor will tell. */
#define SOVIA_LINK_STALE	8

/* How long it may take to set up a link that no connection waits for. */
#define SOVIA_LINK_KEEP		(30 * HZ)

/* Links that have not been freed, of all namespaces. */
static atomic_t links_alive = ATOMIC_INIT(0);

static const char * const link_state_names[SOVIA_LINK_STATES] = {
	[SOVIA_LINK_NEW]	= "NEW",
	[SOVIA_LINK_CONNECTING]	= "CONNECTING",
	[SOVIA_LINK_UP]		= "UP",
	[SOVIA_LINK_RECOVERING]	= "RECOVERING",
	[SOVIA_LINK_PARKED]	= "PARKED",
	[SOVIA_LINK_DOWN]	= "DOWN",
};

/* Which states may follow which. */
static const u8 link_next[SOVIA_LINK_STATES] = {
	[SOVIA_LINK_NEW]	= BIT(SOVIA_LINK_CONNECTING) | BIT(SOVIA_LINK_DOWN),
	[SOVIA_LINK_CONNECTING]	= BIT(SOVIA_LINK_UP) | BIT(SOVIA_LINK_DOWN),
	[SOVIA_LINK_UP]		= BIT(SOVIA_LINK_RECOVERING) | BIT(SOVIA_LINK_PARKED) |
				  BIT(SOVIA_LINK_DOWN),
	[SOVIA_LINK_RECOVERING]	= BIT(SOVIA_LINK_UP) | BIT(SOVIA_LINK_DOWN),
	[SOVIA_LINK_PARKED]	= BIT(SOVIA_LINK_RECOVERING) | BIT(SOVIA_LINK_DOWN),
};

/**
 * sovia_link_state_name() - name of a state, for /proc
 * @state: a state
 *
 * Return: its name.
 */
const char *sovia_link_state_name(enum sovia_link_state state)
{
	return state < SOVIA_LINK_STATES ? link_state_names[state] : "?";
}

/*
 * Change the state if link_next[] allows it; returns true if so.  The attached connections
 * then move to @conns for notification (link_conns.c); later ones have seen the state.
 * @unused: only if there are none.
 */
static bool link_change(struct sovia_link *link, enum sovia_link_state state,
			struct list_head *conns, bool unused)
{
	enum sovia_link_state was;
	bool ok;

	spin_lock_bh(&link->lock);
	was = link->state;
	ok = link_next[was] & BIT(state) && !(unused && link->conn_count);
	if (ok) {
		trace_sovia_link_state(link, was, state);
		/* Readers without the lock: link_table.c, debug/. */
		WRITE_ONCE(link->state, state);
		sovia_link_count_spare(link);
		if (conns)
			list_splice_init(&link->conns, conns);
	}
	spin_unlock_bh(&link->lock);
	return ok;
}

/* Links within the host come and go with their connections: no event tells of them. */
static void link_tell(struct sovia_link *link)
{
	if (!link->lane.prov->local)
		sovia_event(link->snet, SOVIA_EVENT_LINK, link);
}

static bool link_enter(struct sovia_link *link, enum sovia_link_state state,
		       struct list_head *conns)
{
	if (!link_change(link, state, conns, false))
		return false;
	link_tell(link);
	return true;
}

/**
 * sovia_link_enter_unused() - enter DOWN unless there are connections
 * @link: the link; its namespace's link_lock is held
 *
 * Context: connection thread.
 * Return: true if it is DOWN now: none can join.
 */
bool sovia_link_enter_unused(struct sovia_link *link)
{
	return link_change(link, SOVIA_LINK_DOWN, NULL, true);
}

/**
 * sovia_link_set_state() - change the state without notifying connections
 * @link: the link
 * @state: its next state
 *
 * Context: connection thread; no link lock.
 * Return: true if the state was changed.
 */
bool sovia_link_set_state(struct sovia_link *link, enum sovia_link_state state)
{
	return link_enter(link, state, NULL);
}

static void link_free(struct kref *kref)
{
	struct sovia_link *link = container_of(kref, struct sovia_link, kref);

	sovia_lane_free(&link->lane);
	if (link->peering.peer)
		sovia_peer_put(link->peering.peer);
	sovia_link_not_spare(link);
	if (link->tenant)
		sovia_tenant_put(link->tenant);
	put_net_track(link->snet->net, &link->ns_tracker);
	sovia_object_dec(links);
	kfree_rcu(link, rcu);
	/* Pairs with sovia_link_wait(). */
	if (atomic_dec_and_test(&links_alive))
		wake_up_var(&links_alive);
}

/**
 * sovia_link_wait() - wait until all links are gone
 *
 * Context: module exit; all links are DOWN.
 */
void sovia_link_wait(void)
{
	wait_var_event(&links_alive, !atomic_read(&links_alive));
}

/**
 * sovia_link_ref() - take another reference
 * @link: the link; the caller holds one
 *
 * Context: any.
 */
void sovia_link_ref(struct sovia_link *link)
{
	kref_get(&link->kref);
}

/**
 * sovia_link_put() - drop a reference
 * @link: the link
 *
 * Context: any.
 */
void sovia_link_put(struct sovia_link *link)
{
	kref_put(&link->kref, link_free);
}

/**
 * sovia_link_event() - queue an event of a link for the connection thread
 * @link: the link; the caller holds a reference or its lane's lock
 * @event: SOVIA_LINK_EV_*
 *
 * Context: any.
 */
void sovia_link_event(struct sovia_link *link, unsigned int event)
{
	set_bit(event, &link->events);
	kref_get(&link->kref);
	if (!sovia_connd_queue(&link->work))
		sovia_link_put(link);
}

/**
 * sovia_link_set_timer() - queue SOVIA_LINK_EV_TIMER after a delay
 * @link: the link; the caller holds a reference.  The timer holds another one.
 * @delay: in jiffies, from now on, whether the timer is armed already or not
 *
 * Context: any; link->lock may be held.
 */
void sovia_link_set_timer(struct sovia_link *link, unsigned long delay)
{
	clear_bit(SOVIA_LINK_EV_TIMER, &link->events);
	kref_get(&link->kref);
	if (mod_timer(&link->timer, jiffies + delay))
		sovia_link_put(link);
}

/**
 * sovia_link_stop_timer() - take back what sovia_link_set_timer() has begun
 * @link: the link
 *
 * An event that is queued already comes.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_stop_timer(struct sovia_link *link)
{
	if (timer_delete_sync(&link->timer))
		sovia_link_put(link);
}

/*
 * Only queues an event.  Not a delayed work: one cancelled while its timer fires neither
 * runs nor counts as pending, which would leak its reference.
 */
static void link_timeout(struct timer_list *timer)
{
	struct sovia_link *link = timer_container_of(link, timer, timer);

	sovia_link_event(link, SOVIA_LINK_EV_TIMER);
	sovia_link_put(link);
}

static void link_work(struct kthread_work *work);

/* ---- what its lane asks of a link ----------------------------------------- */

static void link_lane_event(struct sovia_lane *lane, enum sovia_lane_event event)
{
	static const u8 events[] = {
		[SOVIA_LANE_UP]		= SOVIA_LINK_EV_UP,
		[SOVIA_LANE_DOWN]	= SOVIA_LINK_EV_DOWN,
		[SOVIA_LANE_TRIED]	= SOVIA_LINK_EV_TRIAL,
		[SOVIA_LANE_PARKED]	= SOVIA_LINK_EV_PARK,
		[SOVIA_LANE_WANTED]	= SOVIA_LINK_EV_START,
	};

	sovia_link_event(sovia_link_of(lane), events[event]);
}

static void link_lane_put(struct sovia_lane *lane)
{
	sovia_link_put(sovia_link_of(lane));
}

static bool link_lane_may_recover(const struct sovia_lane *lane)
{
	return sovia_recovery_wanted(sovia_link_of(lane));
}

static bool link_lane_is_up(const struct sovia_lane *lane)
{
	return READ_ONCE(sovia_link_of(lane)->state) == SOVIA_LINK_UP;
}

static struct sovia_conn *link_find_twin(const struct sovia_conn *conn)
{
	const struct sovia_peer *peer = READ_ONCE(sovia_conn_link(conn)->peering.peer);
	struct sovia_pair pair;
	struct sovia_net *snet;

	snet = peer ? sovia_near_twin(peer, &pair) : NULL;
	return snet ? sovia_conn_find(snet, &pair, conn->rport, conn->lport) : NULL;
}

static const struct sovia_lane_ops link_lane_ops = {
	.event		= link_lane_event,
	.put		= link_lane_put,
	.may_recover	= link_lane_may_recover,
	.is_up		= link_lane_is_up,
	.find_twin	= link_find_twin,
};

/* ---- life ------------------------------------------------------------------- */

/**
 * sovia_link_alloc() - allocate a link
 * @snet: namespace
 * @pair: its addresses
 * @prov: its provider
 * @uid: user that asks for it, invalid for a peer
 * @tenant: the same as a tenant, NULL for a peer
 * @gfp: allocation flags
 *
 * Context: any that @gfp allows.
 * Return: the link with a reference for the caller, in no table, or NULL.
 */
struct sovia_link *sovia_link_alloc(struct sovia_net *snet, const struct sovia_pair *pair,
				    const struct sovia_provider *prov, kuid_t uid,
				    struct sovia_tenant *tenant, gfp_t gfp)
{
	struct sovia_link *link;

	if (!prov->local)
		tenant = NULL;
	/* A tenant within this host may have as many as it has connections: it pays for its end. */
	if (tenant)
		gfp |= __GFP_ACCOUNT;
	link = kzalloc(sizeof(*link), gfp);
	if (!link)
		return NULL;
	kref_init(&link->kref);
	link->snet = snet;
	link->pair = *pair;
	link->uid = uid;
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->conns);
	INIT_LIST_HEAD(&link->slot_behind);
	INIT_LIST_HEAD(&link->peering.node);
	kthread_init_work(&link->work, link_work);
	timer_setup(&link->timer, link_timeout, 0);
	if (sovia_lane_init(&link->lane, &link_lane_ops, snet, &link->pair, prov, gfp)) {
		kfree(link);
		return NULL;
	}
	if (tenant)
		sovia_tenant_ref(tenant);
	link->tenant = tenant;
	get_net_track(snet->net, &link->ns_tracker, gfp);
	atomic_inc(&links_alive);
	sovia_object_inc(links);
	return link;
}

/*
 * The kernels know each other, but there is no way between them.  One that was parked may have been
 * refused for want of room, here or there.
 */
static bool link_has_no_way(const struct sovia_link *link, enum sovia_link_state was, int err)
{
	return !link->lane.prov->local && was != SOVIA_LINK_PARKED && !link->resumes &&
	       (err == -ETIMEDOUT || err == -EHOSTUNREACH || err == -ENETUNREACH ||
		err == -EPROTO);
}

/* A link has entered DOWN, from @was. */
static void link_ended(struct sovia_link *link, enum sovia_link_state was, int err)
{
	if (was == SOVIA_LINK_RECOVERING) {
		sovia_stat_inc(link->snet, link_recover_fail);
		pr_notice_ratelimited("link to %pI6c: %pe, recovery failed\n", &link->pair.remote,
				      ERR_PTR(err));
	}
	if (sovia_link_lives(was))
		sovia_stat_inc(link->snet, link_down);
	else
		sovia_stat_inc(link->snet, link_fail);
	pr_debug("link %pI6c - %pI6c down: %d\n", &link->pair.local, &link->pair.remote, err);
	if (link_has_no_way(link, was, err))
		sovia_memory_learn(link->snet, &link->pair, SOVIA_WHY_WAY);
	sovia_link_drop_vi(link);
	sovia_peer_detach(&link->peering);
	sovia_lane_reset(&link->lane);
}

/* The old link's timer and request: the table knows another one by now, or none. */
static void link_forget(struct sovia_link *link)
{
	sovia_link_stop_timer(link);
	sovia_link_decide_deferred(link);
}

/**
 * sovia_link_retire() - end a link that no connection uses, unless one joins it first
 * @link: the link
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if it is DOWN now.
 */
bool sovia_link_retire(struct sovia_link *link)
{
	enum sovia_link_state was = link->state;

	if (!sovia_link_unlist_unused(link))
		return false;
	link_tell(link);
	link_ended(link, was, -ECONNRESET);
	link_forget(link);
	return true;
}

/*
 * A link has come up, or is to be used again: if there are too many, an unused one ends, or an idle
 * one is parked.  A peer need not agree to that: the next call asks another one, and one without
 * connections whose peer was asked a second ago ends.
 */
static void link_make_room(struct sovia_link *link)
{
	struct sovia_link *other;
	bool done, asked;

	do {
		other = sovia_link_excess(link);
		if (!other)
			break;
		asked = other->park_wanted && time_after(jiffies, other->park_asked + HZ);
		done = (asked && sovia_link_retire(other)) ||
		       sovia_link_ask_park(other) || READ_ONCE(other->conn_count) ||
		       sovia_link_retire(other);
		sovia_link_put(other);
	} while (!done);
}

/* A recovered or resumed link says so. */
static void link_again(struct sovia_link *link)
{
	if (link->resumes) {
		sovia_stat_inc(link->snet, link_resume);
		pr_debug("link %pI6c - %pI6c resumed\n", &link->pair.local, &link->pair.remote);
		link->resumes = false;
	} else {
		sovia_stat_inc(link->snet, link_recover);
		pr_notice_ratelimited("link to %pI6c: recovered\n", &link->pair.remote);
	}
}

static void link_up(struct sovia_link *link)
{
	bool again = link->state == SOVIA_LINK_RECOVERING;
	LIST_HEAD(conns);

	/* Connections of a recovered link were not notified of its loss. */
	if (!link_enter(link, SOVIA_LINK_UP, again ? NULL : &conns))
		return;
	sovia_slot_put(link);
	link_make_room(link);
	link->pause = 0;
	link->stale = 0;
	link->trial_wait = 0;
	link->trials = 0;
	sovia_recovery_established(link);
	sovia_memory_clear(link->snet, &link->pair);
	link->keep_until = 0;
	link->waiting = false;
	link->doubted = false;
	if (again) {
		link_again(link);
	} else {
		sovia_stat_inc(link->snet, link_up);
		pr_debug("link %pI6c - %pI6c up\n", &link->pair.local, &link->pair.remote);
		sovia_link_notify_up(link, &conns);
	}
	sovia_link_probe_start(link);
	/* Its connections may have left before it was up. */
	if (link->lane.prov->local && link->lane.active &&
	    !READ_ONCE(link->conn_count))
		sovia_link_set_timer(link, sovia_link_idle_wait(link));
	/* PARK may have come right behind the end of the trial, before this. */
	sovia_link_look_parked(link);
}

/**
 * sovia_link_catch_up() - see that the lane is up, if it is
 * @link: in any state; the caller holds a reference
 *
 * Messages are taken as soon as the lane is up, and the event of that may be behind a request in
 * the queue.  A link that has taken some is not one that is being set up any more.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_catch_up(struct sovia_link *link)
{
	if (test_and_clear_bit(SOVIA_LINK_EV_UP, &link->events))
		link_up(link);
}

/**
 * sovia_link_down() - end a link and notify its connections
 * @link: in any state; the caller holds a reference
 * @err: negative errno for their down upcall
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_down(struct sovia_link *link, int err)
{
	enum sovia_link_state was = link->state;
	LIST_HEAD(conns);

	/* First: a caller that finds it DOWN retries the lookup. */
	sovia_link_unlist(link);
	if (!link_enter(link, SOVIA_LINK_DOWN, &conns))
		return;
	link_ended(link, was, err);
	sovia_link_notify_down(link, &conns, err);
	link_forget(link);
}

/**
 * sovia_link_own_attempt_counts() - does our attempt win over the peer's simultaneous one
 * @link: the link
 *
 * Return: true if so.
 */
bool sovia_link_own_attempt_counts(const struct sovia_link *link)
{
	return memcmp(&link->pair.local, &link->pair.remote, sizeof(link->pair.local)) < 0;
}

/*
 * Does @err, of the lane or of the last attempt to replace it, end the link?  Returns
 * the errno for its connections, or 0.
 */
static int link_verdict(struct sovia_link *link, int err)
{
	struct sovia_recovery *r = &link->recovery;

	if (!sovia_recovery_wanted(link))
		return err;
	switch (err) {
	case -EPROTO:
	case -EOPNOTSUPP:
		return err;
	case -ESTALE:
		return -ECONNRESET;
	case -ECONNREFUSED:
		/*
		 * May be temporary while the peer's device comes back: iWARP's port is
		 * a TCP port, which a node without the device refuses.  Events of devices here
		 * have the link try more often than it would: they must not end it.
		 */
		r->refused += !r->early;
		return r->refused < SOVIA_LINK_REFUSALS ? 0 : -ECONNRESET;
	default:
		r->refused = 0;
		return 0;
	}
}

/**
 * sovia_link_lose() - handle a lost lane, or a failed attempt to replace it
 * @link: UP or RECOVERING
 * @err: why, a negative errno
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if the link recovers, false if it is DOWN.
 */
bool sovia_link_lose(struct sovia_link *link, int err)
{
	int verdict = link_verdict(link, err);

	if (verdict) {
		sovia_link_down(link, verdict);
		return false;
	}
	sovia_link_drop_vi(link);
	if (sovia_link_set_state(link, SOVIA_LINK_RECOVERING)) {
		sovia_recovery_begin(link);
		pr_notice_ratelimited("link to %pI6c: %pe, recovering\n", &link->pair.remote,
				      ERR_PTR(err));
	}
	return true;
}

static void link_lost(struct sovia_link *link, int err)
{
	unsigned long wait = SOVIA_LINK_CROSS_WAIT;

	if (link->state == SOVIA_LINK_UP && sovia_lane_rests(&link->lane) &&
	    !link_verdict(link, err)) {
		sovia_link_park(link);
		return;
	}
	if (!sovia_link_lose(link, err))
		return;
	if (err != -EAGAIN)
		wait = sovia_recovery_wait(link, sovia_link_own_attempt_counts(link));
	sovia_link_set_timer(link, min(wait, sovia_recovery_left(link)));
}

/* The lane died, or its set-up failed: retry, or end the link. */
static void link_try(struct sovia_link *link)
{
	unsigned long left = sovia_recovery_left(link);

	if (!left) {
		sovia_link_down(link, -ETIMEDOUT);
		return;
	}
	/* For a self-connection only the active end initiates. */
	if (!link->lane.vi && !link->pair.passive) {
		link->recovery.early = time_before(jiffies, link->recovery.due);
		sovia_link_connect(link);
	}
	sovia_link_set_timer(link, left);
}

/* As connections do with a busy listener.  At random, so that those refused together part. */
static unsigned long link_pause(struct sovia_link *link)
{
	link->pause = clamp(2 * link->pause, (unsigned long)SOVIA_LINK_PAUSE_MIN,
			    (unsigned long)SOVIA_LINK_PAUSE_MAX);
	return link->pause / 2 + get_random_u32_below(link->pause);
}

/* May an attempt that failed for this reason be repeated? */
static bool link_may_retry(struct sovia_link *link, int err)
{
	switch (err) {
	case -EAGAIN:
	case -EBUSY:
		return true;
	case -ESTALE:
		return link->peering.peer && ++link->stale < SOVIA_LINK_STALE;
	default:
		return false;
	}
}

/*
 * Try again while there are connections: the peer's attempt counts (-EAGAIN), whose request
 * is to come first, or it has no room now (-EBUSY), or does not know us (-ESTALE): another
 * kernel, as we may learn soon.
 */
static void link_retry(struct sovia_link *link, int err)
{
	if (err == -ESTALE)
		sovia_peer_doubt(link->peering.peer);
	sovia_link_drop_vi(link);
	sovia_lane_reset(&link->lane);
	sovia_link_set_timer(link, err == -EAGAIN ? SOVIA_LINK_CROSS_WAIT : link_pause(link));
}

static void link_failed(struct sovia_link *link, int err)
{
	if (link->state == SOVIA_LINK_CONNECTING)
		err = sovia_link_trial_failed(link, err);
	if (link->state == SOVIA_LINK_UP || link->state == SOVIA_LINK_RECOVERING)
		link_lost(link, err);
	else if (link->state == SOVIA_LINK_CONNECTING && link_may_retry(link, err))
		link_retry(link, err);
	else
		sovia_link_down(link, err == -ESTALE ? -ECONNREFUSED : err);
}

/* The link of the other end, which is on this host as well, or NULL if there is none. */
static struct sovia_link *link_other_end(struct sovia_link *link)
{
	struct sovia_pair pair = link->pair;

	pair.local = link->pair.remote;
	pair.remote = link->pair.local;
	if (ipv6_addr_equal(&pair.local, &pair.remote))
		pair.passive = !pair.passive;
	return sovia_link_lookup(link->snet, &pair);
}

/* Its connections may outlast ours, half closed.  Those that wait for it do not count. */
static bool link_other_end_is_used(struct sovia_link *link)
{
	struct sovia_link *other = link_other_end(link);
	bool used = other && READ_ONCE(other->state) == SOVIA_LINK_UP &&
		    READ_ONCE(other->conn_count);

	if (other)
		sovia_link_put(other);
	return used;
}

/* End a loop link that has had no connections for a while.  The end that is used last does it. */
static void link_idle(struct sovia_link *link)
{
	bool idle;

	spin_lock_bh(&link->lock);
	idle = !link->conn_count;
	spin_unlock_bh(&link->lock);
	if (idle && link_other_end_is_used(link))
		return;
	spin_lock_bh(&link->lane.lock);
	if (link->lane.ctl_count || !skb_queue_empty(&link->lane.unacked))
		idle = false;
	spin_unlock_bh(&link->lane.lock);
	if (!(idle && sovia_link_retire(link)) && !READ_ONCE(link->conn_count))
		sovia_link_set_timer(link, sovia_link_idle_wait(link));
}

/* Has it connections, or is it set up for later ones? */
static bool link_is_wanted(const struct sovia_link *link)
{
	unsigned long keep = READ_ONCE(link->keep_until);

	return READ_ONCE(link->conn_count) || (keep && time_before(jiffies, keep));
}

/**
 * sovia_link_keep() - set a link up although no connection waits for it
 * @link: in any state
 *
 * Context: any; a socket lock may be held.
 */
void sovia_link_keep(struct sovia_link *link)
{
	/* 0 means no. */
	WRITE_ONCE(link->keep_until, (jiffies + SOVIA_LINK_KEEP) | 1);
	sovia_link_event(link, SOVIA_LINK_EV_START);
}

/**
 * sovia_link_ask_room() - a parked link waits for another one to be parked
 * @link: PARKED
 *
 * As often as one link that waits would ask, however many do.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_ask_room(struct sovia_link *link)
{
	struct sovia_net *snet = link->snet;

	if (snet->room_asked && time_before(jiffies, snet->room_asked + SOVIA_LINK_PAUSE_MIN))
		return;
	/* 0 means never. */
	snet->room_asked = jiffies | 1;
	link_make_room(link);
}

/* Wait until other links have been parked, for as long as a recovery may take. */
static void link_wait_for_room(struct sovia_link *link)
{
	if (!link->waits_room)
		sovia_recovery_restart(link);
	link->waits_room = true;
	if (!sovia_recovery_left(link)) {
		sovia_link_down(link, -ETIMEDOUT);
		return;
	}
	sovia_link_ask_room(link);
	sovia_link_set_timer(link, SOVIA_LINK_PAUSE_MIN);
}

/* A parked link is to be used again.  It counts against max_links as a new one does. */
static void link_resume(struct sovia_link *link)
{
	if (!sovia_link_has_room(link->snet)) {
		link_wait_for_room(link);
		return;
	}
	if (sovia_link_resume(link))
		link_try(link);
}

/* The timer fired: retry, probe, or check whether the link is idle. */
static void link_timer(struct sovia_link *link)
{
	switch (link->state) {
	case SOVIA_LINK_PARKED:
		if (link->waits_room)
			link_resume(link);
		break;
	case SOVIA_LINK_CONNECTING:
		if (link->trial_wait)
			sovia_link_trial_go_on(link);
		if (link->lane.vi || link->deferred)
			break;
		if (link_is_wanted(link))
			sovia_link_connect(link);
		else
			sovia_link_down(link, -ECONNRESET);
		break;
	case SOVIA_LINK_UP:
		if (link->lane.prov->local)
			link_idle(link);
		else
			sovia_link_probe(link);
		break;
	case SOVIA_LINK_RECOVERING:
		if (link->trial_wait && sovia_recovery_left(link))
			sovia_link_trial_go_on(link);
		else
			link_try(link);
		break;
	default:
		break;
	}
}

/* The set-up that has waited may start, unless it is not needed any more. */
static void link_slot(struct sovia_link *link)
{
	if (link->state == SOVIA_LINK_CONNECTING && !link_is_wanted(link) && link->wanted)
		sovia_link_down(link, -ECONNRESET);
	else
		sovia_link_go_on(link);
}

/* Connections are to be opened over a link that perhaps only the peer may use for that. */
static void link_open(struct sovia_link *link)
{
	if (!sovia_link_lives(link->state))
		return;
	if (sovia_link_peer_open(link))
		sovia_link_notify_open(link, 0);
}

/* The peer that the link has waited for is known now, or cannot be. */
static void link_introduced(struct sovia_link *link)
{
	int err = link->peering.err;

	link->peering.err = 0;
	/* A link that recovers is not refused: the peer has no way to it yet. */
	if (link->state == SOVIA_LINK_RECOVERING && err == -ECONNREFUSED)
		err = -EHOSTUNREACH;
	if (link->wanted && err)
		link_failed(link, err);
	else if (link->wanted)
		link_slot(link);
	/* Connections may wait as well, also while the link recovers. */
	if (!err)
		link_open(link);
	else if (sovia_link_lives(link->state))
		sovia_link_notify_open(link, err);
}

static void link_start(struct sovia_link *link)
{
	if (link->state == SOVIA_LINK_PARKED)
		link_resume(link);
	/* Its connections have left, or there was no memory for the first one. */
	else if (link->state == SOVIA_LINK_NEW && !link_is_wanted(link))
		sovia_link_retire(link);
	else if (sovia_link_set_state(link, SOVIA_LINK_CONNECTING))
		sovia_link_connect(link);
}

static void link_work(struct kthread_work *work)
{
	struct sovia_link *link = container_of(work, struct sovia_link, work);

	if (test_and_clear_bit(SOVIA_LINK_EV_KILL, &link->events))
		sovia_link_down(link, -ECONNRESET);
	if (test_and_clear_bit(SOVIA_LINK_EV_PARK, &link->events))
		sovia_link_look_parked(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_START, &link->events))
		link_start(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_TRIAL, &link->events))
		sovia_link_trial_start(link);
	sovia_link_catch_up(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_DOWN, &link->events))
		link_failed(link, READ_ONCE(link->lane.err));
	if (test_and_clear_bit(SOVIA_LINK_EV_TIMER, &link->events))
		link_timer(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_DOUBT, &link->events) &&
	    link->state == SOVIA_LINK_UP)
		sovia_link_doubt(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_BREAK, &link->events) &&
	    link->state == SOVIA_LINK_UP && link->lane.vi)
		link->lane.vi->prov->fail(link->lane.vi);
	if (test_and_clear_bit(SOVIA_LINK_EV_SLOT, &link->events))
		link_slot(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_PEER, &link->events))
		link_introduced(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_SPARE, &link->events))
		sovia_link_ask_park(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_FLUSH, &link->events))
		sovia_link_retire(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_MOVED, &link->events))
		sovia_link_moved(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_OPEN, &link->events))
		link_open(link);
	if (test_and_clear_bit(SOVIA_LINK_EV_ENDED, &link->events))
		sovia_link_vi_ended(link);
	sovia_link_put(link);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/link_test.c"
#include "test/link_life_test.c"
#include "test/link_park_test.c"
#include "test/link_vi_test.c"
#include "test/link_trial_test.c"
#endif

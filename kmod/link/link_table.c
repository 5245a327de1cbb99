// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of a namespace's links: found by their pair of addresses, and at most
 * max_links, not counting parked ones.  It holds a reference to each; link.c has their states.
 */
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <net/ipv6.h>
#include "compat/sysctl.h"
#include "core/addr.h"
#include "core/tenant.h"
#include "lane/conn_table.h"
#include "link_state.h"
#include "link_table.h"

/* Memory of a link to another node with default parameters: its receives. */
#define SOVIA_LINK_COST		(1200 << 10)
/* Default: 1/8 of the memory, clamped to [MIN, MAX]. */
#define SOVIA_LINKS_PART	8
#define SOVIA_LINKS_MIN		16U
#define SOVIA_LINKS_MAX		4096U
/* Parked links for each other one that there may be, and at most: each has a peer (peer.c). */
#define SOVIA_LINKS_PARKED	32U
#define SOVIA_LINKS_PARKED_MAX	6144U
/* Links within this host that a tenant may have half open or without connections. */
#define SOVIA_LINKS_LOCAL_SPARE	128
/*
 * If a tenant has more of them, those without connections end at once.  If all tenants have more
 * than MOST, that holds for who has more than FAIR.
 */
#define SOVIA_LINKS_LOCAL_IDLE	64
#define SOVIA_LINKS_LOCAL_FAIR	8
#define SOVIA_LINKS_LOCAL_MOST	(16 * SOVIA_LINKS_LOCAL_IDLE)
/* Links that a user or a peer may have half open, or a quarter of all if that is more. */
#define SOVIA_LINKS_OWN		8U

unsigned int sovia_max_links;
module_param_named(max_links, sovia_max_links, uint, 0644);
MODULE_PARM_DESC(max_links, "maximum of links to other nodes per namespace, unless parked (0: by the size of RAM)");

/* Idle links of all namespaces, and those within this host that tenants have. */
static atomic_t links_idle = ATOMIC_INIT(0);
static atomic_t links_local = ATOMIC_INIT(0);

static u32 pair_hash(const struct sovia_pair *pair)
{
	return jhash_2words(pair->passive, pair->lane, sovia_pair_addr_hash(pair));
}

static struct sovia_link *link_find(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_link *link;

	lockdep_assert_held(&snet->link_lock);
	hash_for_each_possible(snet->links, link, net_node, pair_hash(pair))
		if (sovia_pair_equal(&link->pair, pair))
			return link;
	return NULL;
}

/* The module's limit, or the namespace's if that is lower. */
static unsigned int links_most(const struct sovia_net *snet)
{
	unsigned long most = totalram_pages() / SOVIA_LINKS_PART / (SOVIA_LINK_COST >> PAGE_SHIFT);

	most = clamp_t(unsigned long, most, SOVIA_LINKS_MIN, SOVIA_LINKS_MAX);
	most = READ_ONCE(sovia_max_links) ?: most;
	return min_t(unsigned long, most, READ_ONCE(snet->max_links.value));
}

static unsigned int parked_most(const struct sovia_net *snet)
{
	unsigned int most = min(links_most(snet), SOVIA_LINKS_PARKED_MAX / SOVIA_LINKS_PARKED);

	return most * SOVIA_LINKS_PARKED;
}

static bool link_unused(const struct sovia_link *link)
{
	return !READ_ONCE(link->conn_count) && sovia_link_lives(READ_ONCE(link->state));
}

/* May it be parked, as far as can be seen without its lane's lock? */
static bool link_quiet(const struct sovia_link *link)
{
	const struct sovia_lane *lane = &link->lane;

	return link->idle || (READ_ONCE(lane->parks) && READ_ONCE(lane->up) &&
			      READ_ONCE(lane->credit.tx_next) == READ_ONCE(lane->credit.tx_una) &&
			      list_empty_careful(&lane->turns.active));
}

/* May it be ended, or parked? */
static bool link_spare(const struct sovia_link *link)
{
	return link_unused(link) || link_quiet(link);
}

static void link_set_idle(struct sovia_link *link, bool idle)
{
	lockdep_assert_held(&link->snet->link_lock);
	if (link->idle == idle)
		return;
	link->idle = idle;
	WRITE_ONCE(link->snet->idle_count, link->snet->idle_count + (idle ? 1 : -1));
	atomic_add(idle ? 1 : -1, &links_idle);
}

static void link_list(struct sovia_link *link)
{
	struct sovia_net *snet = link->snet;

	if (link->parked) {
		list_add_tail(&link->far_node, &snet->parked_links);
		snet->parked_count++;
	} else {
		list_add_tail(&link->far_node, &snet->far_links);
		snet->link_count++;
	}
}

static void link_unlist(struct sovia_link *link)
{
	list_del(&link->far_node);
	if (link->parked)
		link->snet->parked_count--;
	else
		link->snet->link_count--;
}

static void local_over(struct sovia_link *link)
{
	if (!link->local_counted)
		return;
	link->local_counted = false;
	atomic_dec(&link->tenant->local_links);
	atomic_dec(&links_local);
}

/* Remove it from the table.  The caller puts the table's reference. */
static void link_unhash(struct sovia_link *link)
{
	lockdep_assert_held(&link->snet->link_lock);
	hash_del(&link->net_node);
	xa_erase(&link->snet->link_ids, link->id);
	link_set_idle(link, false);
	if (!link->lane.prov->local) {
		link_unlist(link);
		return;
	}
	local_over(link);
}

/*
 * A program's connect() makes a link between two addresses of this host.  Its peer is the same
 * kernel, and adds nothing of its own.
 */
static bool local_may_add(struct sovia_link *fresh)
{
	struct sovia_tenant *tenant = fresh->tenant;

	if (!tenant)
		return true;
	if (atomic_inc_return(&tenant->local_spare) > SOVIA_LINKS_LOCAL_SPARE) {
		atomic_dec(&tenant->local_spare);
		return false;
	}
	atomic_inc(&tenant->local_links);
	atomic_inc(&links_local);
	fresh->spare_counted = true;
	fresh->local_counted = true;
	return true;
}

/**
 * sovia_link_not_spare() - a link does not get into the table, or is freed
 * @link: the link; no other context accesses it
 *
 * Context: any.
 */
void sovia_link_not_spare(struct sovia_link *link)
{
	if (link->spare_counted)
		atomic_dec(&link->tenant->local_spare);
	link->spare_counted = false;
}

/* It does not get into the table. */
static void local_undo(struct sovia_link *fresh)
{
	sovia_link_not_spare(fresh);
	local_over(fresh);
}

/**
 * sovia_link_count_spare() - a link's state, or whether it has connections, may have changed
 * @link: the link; its lock is held
 *
 * A program that opens and closes connections to ever new addresses is no faster than the
 * connection thread, which all share: a link that is DOWN counts until it is freed, as it has its
 * lane's memory until then.
 *
 * Context: any.
 */
void sovia_link_count_spare(struct sovia_link *link)
{
	bool spare = link->state != SOVIA_LINK_UP || !link->conn_count;

	lockdep_assert_held(&link->lock);
	if (!link->tenant || spare == link->spare_counted)
		return;
	link->spare_counted = spare;
	atomic_add(spare ? 1 : -1, &link->tenant->local_spare);
}

/**
 * sovia_link_idle_wait() - how long a link within this host stays without connections
 * @link: the link
 *
 * Those of one tenant, in all its network namespaces, do not end those of others sooner.  The end
 * that did not ask waits for the other one, which ends both.
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned long sovia_link_idle_wait(const struct sovia_link *link)
{
	int most = SOVIA_LINKS_LOCAL_IDLE;

	if (!link->tenant)
		return HZ;
	if (atomic_read(&links_local) > SOVIA_LINKS_LOCAL_MOST)
		most = SOVIA_LINKS_LOCAL_FAIR;
	return atomic_read(&link->tenant->local_links) > most ? 0 : HZ;
}

/**
 * struct link_census - what a new link competes with
 * @half: links that are not established yet
 * @own: those of its own user, or of its own peer if the peer asks
 * @unused: links that may be ended or parked
 * @known: its peer has another link that is established
 */
struct link_census {
	unsigned int	half;
	unsigned int	own;
	unsigned int	unused;
	bool		known;
};

static bool link_is_half_open(const struct sovia_link *link)
{
	enum sovia_link_state state = READ_ONCE(link->state);

	return state == SOVIA_LINK_NEW || state == SOVIA_LINK_CONNECTING;
}

static bool link_same_owner(const struct sovia_link *a, const struct sovia_link *b)
{
	if (uid_valid(a->uid) || uid_valid(b->uid))
		return uid_eq(a->uid, b->uid);
	return ipv6_addr_equal(&a->pair.remote, &b->pair.remote);
}

static void link_count(struct sovia_net *snet, const struct sovia_link *fresh,
		       struct link_census *count)
{
	struct sovia_link *link;

	memset(count, 0, sizeof(*count));
	lockdep_assert_held(&snet->link_lock);
	list_for_each_entry(link, &snet->far_links, far_node) {
		if (link_is_half_open(link)) {
			count->half++;
			count->own += link_same_owner(link, fresh);
		} else if (ipv6_addr_equal(&link->pair.remote, &fresh->pair.remote)) {
			count->known = true;
		}
		count->unused += link_spare(link);
	}
}

/*
 * May another link be added?  It is not established yet, so it evicts nothing
 * (sovia_link_excess()), and a flood of its kind must not take what others need: a user or
 * a peer has a quarter of all, and while some are half open, the last quarter is for peers
 * that have a link already.  Beyond the maximum there is room for what will evict others, but
 * these may be in use by then: a quarter at most.
 */
static bool link_may_add(struct sovia_net *snet, struct sovia_link *fresh)
{
	unsigned int most = links_most(snet), quarter = most / 4, room = most;
	struct link_census count;

	/* They take little memory, and end without connections. */
	if (fresh->lane.prov->local)
		return local_may_add(fresh);
	if (snet->parked_count >= parked_most(snet))
		return false;
	link_count(snet, fresh, &count);
	if (count.own >= max(quarter, SOVIA_LINKS_OWN))
		return false;
	if (!count.known && count.half > quarter / 4)
		room -= quarter;
	return snet->link_count < room || (snet->link_count < most + max(quarter, 1U) &&
					   count.unused > count.half && count.half <= quarter);
}

/**
 * sovia_link_has_room() - may a parked link be used again
 * @snet: its namespace
 *
 * Context: connection thread.
 * Return: false if there are too many that are not parked.
 */
bool sovia_link_has_room(struct sovia_net *snet)
{
	unsigned int most = links_most(snet);
	bool room;

	spin_lock_bh(&snet->link_lock);
	room = snet->link_count < most + max(most / 4, 1U);
	spin_unlock_bh(&snet->link_lock);
	return room;
}

/**
 * sovia_link_peer_may_resume() - may a peer use a parked link again
 * @link: PARKED; the peer asks
 *
 * Beyond the maximum it may have a quarter, as a new link of it would: the others go for those.
 *
 * Context: connection thread.
 * Return: false if there are too many that are not parked.
 */
bool sovia_link_peer_may_resume(const struct sovia_link *link)
{
	struct sovia_net *snet = link->snet;
	unsigned int most = links_most(snet), quarter = most / 4, own = 0;
	struct sovia_link *other;
	bool room;

	spin_lock_bh(&snet->link_lock);
	room = snet->link_count < most;
	if (!room && snet->link_count < most + max(quarter, 1U)) {
		list_for_each_entry(other, &snet->far_links, far_node)
			own += ipv6_addr_equal(&other->pair.remote, &link->pair.remote);
		room = own < max(quarter, SOVIA_LINKS_OWN);
	}
	spin_unlock_bh(&snet->link_lock);
	return room;
}

/**
 * sovia_link_excess() - a link is used, or is to be: which other one has to go for it
 * @fresh: UP, or PARKED and waits for room
 *
 * Context: connection thread.
 * Return: the most idle one, or else one that no connection seems to use, with a reference for the
 * caller, or NULL if there are not too many, or all are in use.  It becomes the last one to be
 * found: its peer may refuse to park it.
 */
struct sovia_link *sovia_link_excess(const struct sovia_link *fresh)
{
	struct sovia_net *snet = fresh->snet;
	struct sovia_link *link, *found = NULL;

	spin_lock_bh(&snet->link_lock);
	/* One that is parked does not count yet. */
	if (snet->link_count + fresh->parked <= links_most(snet))
		goto unlock;
	list_for_each_entry(link, &snet->far_links, far_node) {
		if (link == fresh || !link_spare(link) || (found && !link_quiet(link)))
			continue;
		found = link;
		if (link_quiet(link))
			break;
	}
	if (found) {
		kref_get(&found->kref);
		list_move_tail(&found->far_node, &snet->far_links);
	}
unlock:
	spin_unlock_bh(&snet->link_lock);
	return found;
}

static bool link_add(struct sovia_net *snet, struct sovia_link *fresh)
{
	if (!link_may_add(snet, fresh) ||
	    xa_alloc(&snet->link_ids, &fresh->id, fresh, xa_limit_32b,
		     GFP_ATOMIC | __GFP_NOWARN)) {
		local_undo(fresh);
		sovia_stat_inc(snet, no_link);
		return false;
	}
	hash_add(snet->links, &fresh->net_node, pair_hash(&fresh->pair));
	if (!fresh->lane.prov->local)
		link_list(fresh);
	return true;
}

/**
 * sovia_link_get() - find or create the link between two addresses
 * @snet: namespace
 * @pair: the addresses
 * @prov: provider of a link that has to be created
 * @uid: the user that asks for it, invalid for a peer
 * @tenant: the same as a tenant, NULL for a peer
 * @gfp: its allocation flags
 *
 * Context: any that @gfp allows; a socket lock may be held.
 * Return: the link with a reference for the caller, or NULL without memory or at
 * the maximum.
 */
struct sovia_link *sovia_link_get(struct sovia_net *snet, const struct sovia_pair *pair,
				  const struct sovia_provider *prov, kuid_t uid,
				  struct sovia_tenant *tenant, gfp_t gfp)
{
	struct sovia_link *link, *fresh = NULL;
	bool full;

	for (;;) {
		spin_lock_bh(&snet->link_lock);
		link = link_find(snet, pair);
		full = !link && fresh && !link_add(snet, fresh);
		if (!link && fresh && !full) {
			link = fresh;
			fresh = NULL;
		}
		if (link)
			kref_get(&link->kref);
		spin_unlock_bh(&snet->link_lock);
		if (link || full)
			break;
		fresh = sovia_link_alloc(snet, pair, prov, uid, tenant, gfp);
		if (!fresh)
			return NULL;
	}
	if (fresh)
		sovia_link_put(fresh);
	return link;
}

/**
 * sovia_link_from() - go through the links of a namespace
 * @snet: the namespace
 * @id: 0, or one more than the last link's number; set to this link's
 *
 * A link that exists throughout is found once, whatever else comes and goes.
 *
 * Context: process, may sleep.
 * Return: the next link, with a reference for the caller, or NULL.
 */
struct sovia_link *sovia_link_from(struct sovia_net *snet, unsigned long *id)
{
	struct sovia_link *link;
	bool found;

	for (;;) {
		rcu_read_lock();
		link = xa_find(&snet->link_ids, id, ULONG_MAX, XA_PRESENT);
		found = link && kref_get_unless_zero(&link->kref);
		rcu_read_unlock();
		if (!link || found)
			return link;
		++*id;
		cond_resched();
	}
}

/**
 * sovia_link_lookup() - find the link between two addresses
 * @snet: namespace
 * @pair: the addresses
 *
 * Context: any.
 * Return: the link with a reference for the caller, or NULL.
 */
struct sovia_link *sovia_link_lookup(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_link *link;

	spin_lock_bh(&snet->link_lock);
	link = link_find(snet, pair);
	if (link)
		kref_get(&link->kref);
	spin_unlock_bh(&snet->link_lock);
	return link;
}

/**
 * sovia_link_unlist() - remove a link from the table
 * @link: in the table or not; the caller holds a reference
 *
 * Context: any.
 */
void sovia_link_unlist(struct sovia_link *link)
{
	bool listed;

	spin_lock_bh(&link->snet->link_lock);
	listed = !hlist_unhashed(&link->net_node);
	if (listed)
		link_unhash(link);
	spin_unlock_bh(&link->snet->link_lock);
	if (listed)
		sovia_link_put(link);
}

/**
 * sovia_link_unlist_unused() - end a link that no connection uses, and remove it from the table
 * @link: in the table or not; the caller holds a reference
 *
 * At once: a connection that joins the link before keeps it, and one that finds it DOWN has to
 * find another one by its next lookup.
 *
 * Context: connection thread.
 * Return: true if it is DOWN now, false if it was, or if it has connections.
 */
bool sovia_link_unlist_unused(struct sovia_link *link)
{
	bool listed = false, ended;

	spin_lock_bh(&link->snet->link_lock);
	ended = sovia_link_enter_unused(link);
	if (ended)
		listed = !hlist_unhashed(&link->net_node);
	if (listed)
		link_unhash(link);
	spin_unlock_bh(&link->snet->link_lock);
	if (listed)
		sovia_link_put(link);
	return ended;
}

/**
 * sovia_link_set_parked() - a link has given up its VI, or is to have one again
 * @link: in the table or not, over a provider that is not local
 * @parked: which of it
 *
 * Context: connection thread.
 */
void sovia_link_set_parked(struct sovia_link *link, bool parked)
{
	bool listed;

	spin_lock_bh(&link->snet->link_lock);
	listed = !hlist_unhashed(&link->net_node);
	if (listed)
		link_unlist(link);
	link->parked = parked;
	if (listed)
		link_list(link);
	spin_unlock_bh(&link->snet->link_lock);
}

/**
 * sovia_link_set_idle() - note whether a link is idle
 * @link: UP, over a provider that is not local
 * @idle: it is, and may be parked
 *
 * One that is not becomes the last one to be parked.
 *
 * Context: connection thread, or with a reference.
 */
void sovia_link_set_idle(struct sovia_link *link, bool idle)
{
	spin_lock_bh(&link->snet->link_lock);
	if (!hlist_unhashed(&link->net_node) && !link->parked) {
		link_set_idle(link, idle);
		if (!idle)
			list_move_tail(&link->far_node, &link->snet->far_links);
	}
	spin_unlock_bh(&link->snet->link_lock);
}

/**
 * sovia_link_idlest() - the most idle link of a namespace
 * @snet: the namespace
 *
 * Context: any.
 * Return: the link with a reference for the caller, or NULL if none is idle.
 */
struct sovia_link *sovia_link_idlest(struct sovia_net *snet)
{
	struct sovia_link *link, *found = NULL;

	spin_lock_bh(&snet->link_lock);
	list_for_each_entry(link, &snet->far_links, far_node)
		if (link->idle) {
			kref_get(&link->kref);
			found = link;
			break;
		}
	spin_unlock_bh(&snet->link_lock);
	return found;
}

/**
 * sovia_link_excess_parked() - there may be too many parked links: which one has to go
 * @snet: the namespace
 *
 * Context: any.
 * Return: the first parked one that no connection seems to use, with a reference for the caller, or
 * NULL if there are not too many, or all are in use.
 */
struct sovia_link *sovia_link_excess_parked(struct sovia_net *snet)
{
	struct sovia_link *link, *found = NULL;

	spin_lock_bh(&snet->link_lock);
	if (snet->parked_count >= parked_most(snet))
		list_for_each_entry(link, &snet->parked_links, far_node)
			if (link_unused(link)) {
				kref_get(&link->kref);
				found = link;
				break;
			}
	spin_unlock_bh(&snet->link_lock);
	return found;
}

/**
 * sovia_links_idle() - number of idle links of all namespaces
 *
 * Context: any.
 * Return: the number.
 */
unsigned int sovia_links_idle(void)
{
	return atomic_read(&links_idle);
}

/**
 * sovia_link_first() - get any of a namespace's links
 * @snet: namespace
 *
 * Context: any.
 * Return: a link with a reference for the caller, or NULL.
 */
struct sovia_link *sovia_link_first(struct sovia_net *snet)
{
	struct sovia_link *link;
	int bkt;

	spin_lock_bh(&snet->link_lock);
	hash_for_each(snet->links, bkt, link, net_node) {
		kref_get(&link->kref);
		spin_unlock_bh(&snet->link_lock);
		return link;
	}
	spin_unlock_bh(&snet->link_lock);
	return NULL;
}

/**
 * sovia_link_limits_net_init() - register a namespace's own limits
 * @snet: the namespace
 *
 * They hold beside the module's parameters of these names, which they cannot raise: a container's
 * administrator may write them.
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_link_limits_net_init(struct sovia_net *snet)
{
	int err;

	snet->max_links.value = INT_MAX;
	snet->idle_links.value = INT_MAX;
	err = sovia_sysctl_add(snet->net, &snet->max_links, "max_links", SYSCTL_INT_MAX,
			       proc_dointvec_minmax);
	if (err)
		return err;
	err = sovia_sysctl_add(snet->net, &snet->idle_links, "idle_links", SYSCTL_INT_MAX,
			       proc_dointvec_minmax);
	if (err)
		sovia_sysctl_remove(&snet->max_links);
	return err;
}

/**
 * sovia_link_limits_net_exit() - remove them
 * @snet: the namespace
 *
 * Context: pernet pre-exit.
 */
void sovia_link_limits_net_exit(struct sovia_net *snet)
{
	sovia_sysctl_remove(&snet->idle_links);
	sovia_sysctl_remove(&snet->max_links);
}

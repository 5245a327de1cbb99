// SPDX-License-Identifier: GPL-2.0-only
/*
 * The table of a namespace's links: found by their pair of addresses, and at most
 * max_links.  It holds a reference to each; link.c has their states.
 */
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <net/ipv6.h>
#include "conn_table.h"
#include "link_table.h"

/* Memory of a link to another node with default parameters: its receives. */
#define SOVIA_LINK_COST		(1200 << 10)
/* Default: 1/8 of the memory, clamped to [MIN, MAX]. */
#define SOVIA_LINKS_PART	8
#define SOVIA_LINKS_MIN		16U
#define SOVIA_LINKS_MAX		4096U

unsigned int sovia_max_links;
module_param_named(max_links, sovia_max_links, uint, 0644);
MODULE_PARM_DESC(max_links, "maximum of links to other nodes per namespace (0: by the size of RAM)");

static u32 pair_hash(const struct sovia_pair *pair)
{
	return jhash_2words(pair->passive, pair->lane, sovia_pair_addr_hash(pair));
}

static bool pair_equal(const struct sovia_pair *a, const struct sovia_pair *b)
{
	return ipv6_addr_equal(&a->local, &b->local) &&
	       ipv6_addr_equal(&a->remote, &b->remote) &&
	       a->scope == b->scope && a->l3 == b->l3 && a->passive == b->passive &&
	       a->lane == b->lane;
}

static struct sovia_link *link_find(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_link *link;

	lockdep_assert_held(&snet->link_lock);
	hash_for_each_possible(snet->links, link, net_node, pair_hash(pair))
		if (pair_equal(&link->pair, pair))
			return link;
	return NULL;
}

static unsigned int links_most(void)
{
	unsigned long most = totalram_pages() / SOVIA_LINKS_PART / (SOVIA_LINK_COST >> PAGE_SHIFT);

	return READ_ONCE(sovia_max_links) ?: clamp_t(unsigned long, most, SOVIA_LINKS_MIN,
					       SOVIA_LINKS_MAX);
}

static bool link_unused(const struct sovia_link *link)
{
	return !link->prov->local && !READ_ONCE(link->conn_count) &&
	       (link->state == SOVIA_LINK_UP || link->state == SOVIA_LINK_RECOVERING);
}

/* Remove it from the table.  The caller puts the table's reference. */
static void link_unhash(struct sovia_link *link)
{
	lockdep_assert_held(&link->snet->link_lock);
	hash_del(&link->net_node);
	xa_erase(&link->snet->link_ids, link->id);
	link->snet->link_count -= !link->prov->local;
}

/*
 * May another link be added?  At the maximum an unused one is evicted.  It leaves the
 * table at once, so that its peer's messages do not keep it.
 */
static bool link_may_add(struct sovia_net *snet, const struct sovia_link *fresh)
{
	struct sovia_link *link;
	int bkt;

	lockdep_assert_held(&snet->link_lock);
	/* Loop links take hardly any memory, and end without connections. */
	if (fresh->prov->local || snet->link_count < links_most())
		return true;
	hash_for_each(snet->links, bkt, link, net_node)
		if (link_unused(link)) {
			link_unhash(link);
			sovia_link_event(link, SOVIA_LINK_EV_KILL);
			sovia_link_put(link);
			return true;
		}
	return false;
}

static bool link_add(struct sovia_net *snet, struct sovia_link *fresh)
{
	if (!link_may_add(snet, fresh) ||
	    xa_alloc(&snet->link_ids, &fresh->id, fresh, xa_limit_32b,
		     GFP_ATOMIC | __GFP_NOWARN)) {
		sovia_stat_inc(snet, no_link);
		return false;
	}
	hash_add(snet->links, &fresh->net_node, pair_hash(&fresh->pair));
	snet->link_count += !fresh->prov->local;
	return true;
}

/**
 * sovia_link_get() - find or create the link between two addresses
 * @snet: namespace
 * @pair: the addresses
 * @prov: provider of a link that has to be created
 * @gfp: its allocation flags
 *
 * Context: any that @gfp allows; a socket lock may be held.
 * Return: the link with a reference for the caller, or NULL without memory or at
 * the maximum.
 */
struct sovia_link *sovia_link_get(struct sovia_net *snet, const struct sovia_pair *pair,
				  const struct sovia_provider *prov, gfp_t gfp)
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
		fresh = sovia_link_alloc(snet, pair, prov, gfp);
		if (!fresh)
			return NULL;
	}
	if (fresh)
		sovia_link_put(fresh);
	return link;
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

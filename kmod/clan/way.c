// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memories that this kernel has, for the rendezvous: two kernels that have one in common may
 * have links in it.  What a node says of itself there proves nothing; the MACs of a set-up
 * do (Documentation/rendezvous.rst).
 */
#include <linux/list.h>
#include <linux/notifier.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include "clan.h"

/* Protects the list; innermost, bottom halves stay on. */
static DEFINE_SPINLOCK(ways_lock);
static LIST_HEAD(ways_list);
static BLOCKING_NOTIFIER_HEAD(ways_chain);

/**
 * sovia_clan_way_watch() - have a notifier called whenever the memories of a namespace change
 * @nb: the notifier; it gets the namespace
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int sovia_clan_way_watch(struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&ways_chain, nb);
}

/**
 * sovia_clan_way_unwatch() - undo sovia_clan_way_watch()
 * @nb: the notifier, which is not called any more when this returns
 *
 * Context: process.
 */
void sovia_clan_way_unwatch(struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&ways_chain, nb);
}

/**
 * sovia_clan_way_add() - a memory is there
 * @port: ours, which has begun
 *
 * Context: process.
 */
void sovia_clan_way_add(struct sovia_clan_port *port)
{
	spin_lock(&ways_lock);
	list_add_tail(&port->list, &ways_list);
	spin_unlock(&ways_lock);
	blocking_notifier_call_chain(&ways_chain, 0, port->net);
}

/**
 * sovia_clan_way_remove() - a memory goes
 * @port: of sovia_clan_way_add(); to be stopped
 *
 * Context: process.
 */
void sovia_clan_way_remove(struct sovia_clan_port *port)
{
	spin_lock(&ways_lock);
	list_del(&port->list);
	spin_unlock(&ways_lock);
	blocking_notifier_call_chain(&ways_chain, 0, port->net);
}

static void way_of(const struct sovia_clan_port *port, struct sovia_clan_way *way)
{
	memcpy(way->uuid, port->geometry.uuid, sizeof(way->uuid));
	way->number = port->number;
	way->generation = port->generation;
}

/**
 * sovia_clan_ways() - which memories are there
 * @net: namespace
 * @ways: filled in: this kernel's nodes in them
 * @max: how many there is room for
 *
 * Context: process.
 * Return: how many there are, at most @max.
 */
unsigned int sovia_clan_ways(const struct net *net, struct sovia_clan_way *ways,
			     unsigned int max)
{
	const struct sovia_clan_port *port;
	unsigned int count = 0;

	spin_lock(&ways_lock);
	list_for_each_entry(port, &ways_list, list)
		if (port->net == net && count < max)
			way_of(port, &ways[count++]);
	spin_unlock(&ways_lock);
	return count;
}

/* ways_lock held. */
static struct sovia_clan_port *way_find(const struct net *net, const struct sovia_clan_way *theirs)
{
	struct sovia_clan_port *port;

	list_for_each_entry(port, &ways_list, list)
		if (port->net == net &&
		    !memcmp(port->geometry.uuid, theirs->uuid, sizeof(theirs->uuid)) &&
		    sovia_clan_node_is(port, theirs->number, theirs->generation))
			return port;
	return NULL;
}

/**
 * sovia_clan_way_meets() - do we have the same memory
 * @net: namespace
 * @theirs: what another node says of itself
 * @ours: set to our node, or NULL
 *
 * Context: process.
 * Return: true if so, and if that node is there.
 */
bool sovia_clan_way_meets(const struct net *net, const struct sovia_clan_way *theirs,
			  struct sovia_clan_way *ours)
{
	const struct sovia_clan_port *port;

	spin_lock(&ways_lock);
	port = way_find(net, theirs);
	if (port && ours)
		way_of(port, ours);
	spin_unlock(&ways_lock);
	return port;
}

/**
 * sovia_clan_way_open() - may there be links to a node now
 * @net: namespace
 * @theirs: the node
 *
 * Context: process.
 * Return: true if so; false, too, for one that is left alone.
 */
bool sovia_clan_way_open(const struct net *net, const struct sovia_clan_way *theirs)
{
	const struct sovia_clan_port *port;
	bool open;

	spin_lock(&ways_lock);
	port = way_find(net, theirs);
	open = port && READ_ONCE(port->node[theirs->number].open);
	spin_unlock(&ways_lock);
	return open;
}

/**
 * sovia_clan_way_node() - find a node
 * @net: namespace
 * @way: the node
 *
 * Context: process.
 * Return: the node, with a reference to its port; or NULL.
 */
struct sovia_clan_node *sovia_clan_way_node(const struct net *net,
					    const struct sovia_clan_way *way)
{
	struct sovia_clan_port *port;

	spin_lock(&ways_lock);
	port = way_find(net, way);
	if (port)
		refcount_inc(&port->refs);
	spin_unlock(&ways_lock);
	return port ? &port->node[way->number] : NULL;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * How links reach a peer: in this kernel's memory (near.c), in memory that both kernels have
 * (kmod/clan), or over verbs.  HELLO offers the memories that its sender has, ANSWER chooses one;
 * for verbs the routing table decides.
 */
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include "core/way.h"
#include "core/connd.h"
#include "core/addr.h"
#include "near.h"
#include "peer.h"
#include "peer_memory.h"
#include "peer_pair.h"
#include "peer_way.h"
#include "rdv_wire.h"

static void way_write(struct sovia_way *way, const struct sovia_clan_way *clan)
{
	const struct sovia_rdv_clan place = {
		.number = cpu_to_be32(clan->number), .generation = cpu_to_be32(clan->generation),
	};

	memset(way, 0, sizeof(*way));
	way->type = SOVIA_RDV_WAY_CLAN;
	memcpy(way->gid, clan->uuid, sizeof(way->gid));
	memcpy(&way->addr, &place, sizeof(place));
}

static void way_read(const struct sovia_way *way, struct sovia_clan_way *clan)
{
	struct sovia_rdv_clan place;

	memcpy(&place, &way->addr, sizeof(place));
	memcpy(clan->uuid, way->gid, sizeof(clan->uuid));
	clan->number = be32_to_cpu(place.number);
	clan->generation = be32_to_cpu(place.generation);
}

/**
 * sovia_peer_offer_ways() - add the ways that we have to HELLO
 * @net: namespace
 * @offer: to it
 *
 * Context: connection thread.
 */
void sovia_peer_offer_ways(const struct net *net, struct sovia_offer *offer)
{
	struct sovia_clan_way ways[SOVIA_RDV_WAYS];
	unsigned int i;

	offer->nways = sovia_clan_ways(net, ways, SOVIA_RDV_WAYS);
	for (i = 0; i < offer->nways; i++)
		way_write(&offer->ways[i], &ways[i]);
}

/**
 * sovia_peer_choose_way() - choose one of the ways of HELLO, the first that is open
 * @net: namespace
 * @offer: of HELLO
 * @ours: set to our end of it
 * @theirs: set to the peer's end of it, or to none
 *
 * Context: connection thread.
 * Return: true if there is one.
 */
bool sovia_peer_choose_way(const struct net *net, const struct sovia_offer *offer,
			   struct sovia_way *ours, struct sovia_clan_way *theirs)
{
	struct sovia_clan_way clan, way;
	bool found = false;
	unsigned int i;

	memset(theirs, 0, sizeof(*theirs));
	for (i = 0; i < offer->nways; i++) {
		bool open;

		if (offer->ways[i].type != SOVIA_RDV_WAY_CLAN)
			continue;
		way_read(&offer->ways[i], &way);
		/* One that is not open now may be left alone for some time. */
		open = sovia_clan_way_open(net, &way);
		if ((found && !open) || !sovia_clan_way_meets(net, &way, &clan))
			continue;
		way_write(ours, &clan);
		*theirs = way;
		found = true;
		if (open)
			break;
	}
	return found;
}

/**
 * sovia_peer_take_way() - take the way of ANSWER
 * @net: namespace
 * @answer: of it
 * @theirs: set to the peer's end of the way, or to none
 *
 * Context: connection thread.
 */
void sovia_peer_take_way(const struct net *net, const struct sovia_offer *answer,
			 struct sovia_clan_way *theirs)
{
	memset(theirs, 0, sizeof(*theirs));
	if (answer->nways && answer->ways[0].type == SOVIA_RDV_WAY_CLAN)
		way_read(&answer->ways[0], theirs);
	if (!sovia_clan_way_meets(net, theirs, NULL))
		memset(theirs, 0, sizeof(*theirs));
}

/* This end's interface, under RCU; NULL if it has none. */
static struct net_device *own_device(struct net *net, const struct sovia_pair *pair)
{
	return pair->scope ? dev_get_by_index_rcu(net, pair->scope) :
			     sovia_address_device(net, &pair->local, pair->l3);
}

/**
 * sovia_peer_has_device() - has this end of a pair a device that links could use
 * @net: namespace
 * @pair: the addresses
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_peer_has_device(struct net *net, const struct sovia_pair *pair)
{
	const struct sovia_provider * const *prov;
	struct net_device *dev;
	bool yes = false;

	rcu_read_lock();
	dev = own_device(net, pair);
	for (prov = sovia_providers; dev && *prov; prov++)
		yes |= (*prov)->introduced && (*prov)->reaches &&
		       (*prov)->reaches(net, &pair->local, dev);
	rcu_read_unlock();
	return yes;
}

/* Could another namespace of this kernel be behind the interface?  Not if it is hardware. */
static bool near_may_reach(struct sovia_net *snet, const struct sovia_pair *pair)
{
	const struct net_device *dev;
	bool yes;

	if (!sovia_near_any(snet))
		return false;
	rcu_read_lock();
	dev = own_device(snet->net, pair);
	yes = dev && !dev->dev.parent;
	rcu_read_unlock();
	return yes;
}

/**
 * sovia_peer_may_reach() - is it worth asking a peer
 * @snet: namespace
 * @pair: the addresses
 *
 * Context: connection thread.
 * Return: false if there is no way from here.
 */
bool sovia_peer_may_reach(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_clan_way way;

	return sovia_peer_has_device(snet->net, pair) || sovia_clan_ways(snet->net, &way, 1) ||
	       near_may_reach(snet, pair);
}

/**
 * sovia_peer_provider() - the provider of links to a peer
 * @peer: the peer
 *
 * Context: connection thread.
 * Return: it; sovia_verbs_provider if there is none either.
 */
const struct sovia_provider *sovia_peer_provider(const struct sovia_peer *peer)
{
	if (peer->twin)
		return &sovia_near_provider;
	if (sovia_clan_way_open(peer->snet->net, &peer->way))
		return &sovia_clan_provider;
	return &sovia_verbs_provider;
}

/**
 * sovia_peer_lacks_way() - is there nothing to go on with, but a memory that the peer may have
 * @peer: the peer
 *
 * Context: connection thread.
 * Return: true if so: an introduction finds out.
 */
bool sovia_peer_lacks_way(const struct sovia_peer *peer)
{
	struct net *net = peer->snet->net;
	struct sovia_clan_way any;

	return sovia_peer_provider(peer) == &sovia_verbs_provider &&
	       !sovia_peer_has_device(net, &peer->pair) && sovia_clan_ways(net, &any, 1);
}

/* ---- memories come and go ---- */

/**
 * sovia_peer_ways_changed() - offer the memories that there are now to all peers
 * @work: of a namespace
 *
 * Links that are up stay where they are.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_peer_ways_changed(struct kthread_work *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, rdv.ways_work);
	struct hlist_node *next;
	struct sovia_peer *peer;
	int bucket;

	hash_for_each_safe(snet->rdv.peers, bucket, next, peer, net_node)
		sovia_peer_anew(peer);
	/* Others may be reached now. */
	sovia_memories_forget(snet);
}

static int ways_event(struct notifier_block *nb, unsigned long event, void *net)
{
	sovia_connd_queue(&sovia_net(net)->rdv.ways_work);
	return NOTIFY_DONE;
}

static struct notifier_block ways_notifier = {
	.notifier_call = ways_event,
};

/**
 * sovia_peer_ways_init() - begin to watch memories
 *
 * Context: module init; namespaces are registered.
 * Return: 0 or a negative errno.
 */
int sovia_peer_ways_init(void)
{
	return sovia_clan_way_watch(&ways_notifier);
}

/**
 * sovia_peer_ways_exit() - stop it
 *
 * Context: module exit, before namespaces are unregistered.
 */
void sovia_peer_ways_exit(void)
{
	sovia_clan_way_unwatch(&ways_notifier);
}

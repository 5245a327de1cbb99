// SPDX-License-Identifier: GPL-2.0-only
/*
 * Other kernels: who they are, and what both have agreed on.  See
 * Documentation/rendezvous.rst, which has the states and the decisions.
 *
 * All of this belongs to the connection thread, except the secret and its counters, which
 * works that set VIs up use as well.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jhash.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "compat/timer.h"
#include "core/connd.h"
#include "core/addr.h"
#include "core/objcount.h"
#include "near.h"
#include "peer_meet.h"
#include "peer_memory.h"
#include "peer_way.h"
#include "rendezvous.h"

#define PEERS_MAX		8192

/*
 * How long links wait for a peer that is busy, or ends each connection: more than a lane in
 * doubt has to answer.
 */
#define PEER_ASKING_TIME	(60 * HZ)
#define PEER_RETRY		(HZ / 5)

/* The layer above: links.  Set at module init. */
const struct sovia_peer_ops *sovia_peer_ops __ro_after_init;

/**
 * sovia_peer_register_ops() - register the layer that uses peers
 * @ops: its functions
 *
 * Context: module init, before there are peers.
 */
void __init sovia_peer_register_ops(const struct sovia_peer_ops *ops)
{
	sovia_peer_ops = ops;
}

/* ---- the table ---------------------------------------------------------- */

static void peer_free(struct kref *kref)
{
	struct sovia_peer *peer = container_of(kref, struct sovia_peer, kref);

	memzero_explicit(&peer->secret, sizeof(peer->secret));
	kfree_rcu(peer, rcu);
	sovia_object_dec(peers);
}

/**
 * sovia_peer_put() - drop a reference
 * @peer: the peer
 *
 * Context: any.
 */
void sovia_peer_put(struct sovia_peer *peer)
{
	kref_put(&peer->kref, peer_free);
}

static void peer_work(struct kthread_work *work);

static void peer_timeout(struct timer_list *timer)
{
	struct sovia_peer *peer = timer_container_of(peer, timer, timer);

	/* The timer's reference goes on with the work, unless that is queued already. */
	if (!sovia_connd_queue(&peer->work))
		sovia_peer_put(peer);
}

/**
 * sovia_peer_set_timer() - ask again later, if links wait then
 * @peer: the peer
 * @delay: in jiffies
 *
 * Context: connection thread.
 */
void sovia_peer_set_timer(struct sovia_peer *peer, unsigned long delay)
{
	kref_get(&peer->kref);
	if (mod_timer(&peer->timer, jiffies + delay))
		sovia_peer_put(peer);
}

static u32 peer_hash(const struct sovia_pair *pair)
{
	return jhash2((const u32 *)pair, offsetof(struct sovia_pair, scope) / sizeof(u32),
		      pair->passive);
}

/**
 * sovia_peer_find() - find the peer between two addresses
 * @snet: namespace
 * @pair: the addresses, and any lane
 *
 * Context: connection thread.
 * Return: the peer, without a reference, or NULL.
 */
struct sovia_peer *sovia_peer_find(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_pair key = *pair;
	struct sovia_peer *peer;

	key.lane = 0;
	hash_for_each_possible(snet->rdv.peers, peer, net_node, peer_hash(&key))
		if (sovia_pair_equal(&peer->pair, &key)) {
			list_move_tail(&peer->lru_node, &snet->rdv.peer_lru);
			return peer;
		}
	return NULL;
}

static bool peer_has_sealed(struct sovia_peer *peer, const struct sovia_vi_request *req)
{
	bool sealed;

	spin_lock(&peer->lock);
	sealed = sovia_secret_sealed(&peer->secret, SOVIA_SEAL_REQ, &req->hello, &req->path);
	spin_unlock(&peer->lock);
	return sealed;
}

/**
 * sovia_peer_find_sealed() - find the peer of a request that came by no interface
 * @snet: namespace
 * @req: the request, with a whole hello; its scope and L3 domain are set
 *
 * Several peers may have the addresses, on different interfaces or in different L3 domains: the
 * MAC tells.
 *
 * Context: connection thread.
 * Return: the peer, without a reference, or NULL.
 */
struct sovia_peer *sovia_peer_find_sealed(struct sovia_net *snet, struct sovia_vi_request *req)
{
	struct sovia_pair *pair = &req->pair;
	struct sovia_peer *peer;

	hash_for_each_possible(snet->rdv.peers, peer, net_node, peer_hash(pair))
		if (peer->state != SOVIA_PEER_NONE && peer->pair.passive == pair->passive &&
		    ipv6_addr_equal(&peer->pair.local, &pair->local) &&
		    ipv6_addr_equal(&peer->pair.remote, &pair->remote) &&
		    peer_has_sealed(peer, req)) {
			pair->scope = peer->pair.scope;
			pair->l3 = peer->pair.l3;
			return peer;
		}
	return NULL;
}

/* Forget a peer without links.  The caller may use it no more. */
static void peer_remove(struct sovia_peer *peer)
{
	hash_del(&peer->net_node);
	xa_erase(&peer->snet->rdv.peer_ids, peer->id);
	list_del(&peer->lru_node);
	peer->snet->rdv.peer_count--;
	sovia_near_part(peer);
	if (timer_delete_sync(&peer->timer))
		sovia_peer_put(peer);
	sovia_peer_put(peer);
}

/**
 * sovia_peer_drop_anchor() - close a connection of a peer, and forget it
 * @anchor: sovia_peer::anchor or sovia_peer::attempt; NULL afterwards
 *
 * Context: connection thread.
 */
void sovia_peer_drop_anchor(struct sovia_anchor **anchor)
{
	struct sovia_anchor *old = *anchor;

	if (!old)
		return;
	*anchor = NULL;
	sovia_anchor_shut(old);
	/* sovia_peer_lost() puts the peer. */
	sovia_anchor_put(old);
}

/* Make room: the peer that was not needed for the longest time goes. */
static bool peer_evict(struct sovia_net *snet)
{
	struct sovia_peer *peer;

	list_for_each_entry(peer, &snet->rdv.peer_lru, lru_node) {
		if (!list_empty(&peer->users) || peer->attempt)
			continue;
		sovia_peer_drop_anchor(&peer->anchor);
		peer_remove(peer);
		return true;
	}
	return false;
}

/**
 * sovia_peer_get() - find or create the peer between two addresses
 * @snet: namespace
 * @pair: the addresses, and any lane
 *
 * Context: connection thread.
 * Return: the peer, without a reference, or NULL without memory or at the maximum.
 */
struct sovia_peer *sovia_peer_get(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_peer *peer = sovia_peer_find(snet, pair);

	if (peer)
		return peer;
	if (snet->rdv.peer_count >= PEERS_MAX && !peer_evict(snet))
		return NULL;
	peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	if (!peer)
		return NULL;
	kref_init(&peer->kref);
	peer->snet = snet;
	peer->pair = *pair;
	peer->pair.lane = 0;
	INIT_LIST_HEAD(&peer->users);
	timer_setup(&peer->timer, peer_timeout, 0);
	kthread_init_work(&peer->work, peer_work);
	spin_lock_init(&peer->lock);
	/* Readers find it initialised. */
	if (xa_alloc(&snet->rdv.peer_ids, &peer->id, peer, xa_limit_32b, GFP_KERNEL)) {
		kfree(peer);
		return NULL;
	}
	hash_add(snet->rdv.peers, &peer->net_node, peer_hash(&peer->pair));
	list_add_tail(&peer->lru_node, &snet->rdv.peer_lru);
	snet->rdv.peer_count++;
	sovia_object_inc(peers);
	return peer;
}

/* The rendezvous is off, or they are to be flushed: forget the peers that no link needs. */
static void peers_forget(struct kthread_work *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, rdv.forget_work);
	struct sovia_peer *peer, *next;

	if (!xchg(&snet->rdv.flush, false) && sovia_rendezvous_wanted(snet))
		return;
	list_for_each_entry_safe(peer, next, &snet->rdv.peer_lru, lru_node) {
		if (!list_empty(&peer->users) || peer->attempt)
			continue;
		sovia_peer_drop_anchor(&peer->anchor);
		peer_remove(peer);
	}
}

/**
 * sovia_peers_tidy() - a peer is needed less: forget it if the rendezvous is off
 * @snet: namespace
 *
 * Context: any; the connection thread runs.
 */
void sovia_peers_tidy(struct sovia_net *snet)
{
	if (!sovia_rendezvous_wanted(snet))
		sovia_connd_queue(&snet->rdv.forget_work);
}

/**
 * sovia_peers_flush() - forget the peers that no link needs
 * @snet: namespace
 *
 * Context: process, may sleep.
 */
void sovia_peers_flush(struct sovia_net *snet)
{
	/* There are none yet. */
	if (!READ_ONCE(snet->served))
		return;
	WRITE_ONCE(snet->rdv.flush, true);
	sovia_connd_queue(&snet->rdv.forget_work);
}

/**
 * sovia_peers_init() - prepare a namespace's table
 * @snet: the namespace
 *
 * Context: pernet init.
 */
void sovia_peers_init(struct sovia_net *snet)
{
	INIT_LIST_HEAD(&snet->rdv.peer_lru);
	hash_init(snet->rdv.peers);
	xa_init_flags(&snet->rdv.peer_ids, XA_FLAGS_ALLOC1);
	kthread_init_work(&snet->rdv.forget_work, peers_forget);
	kthread_init_work(&snet->rdv.ways_work, sovia_peer_ways_changed);
}

static void peers_stop(void *arg)
{
	struct sovia_peer *peer, *next;
	struct sovia_net *snet = arg;

	list_for_each_entry_safe(peer, next, &snet->rdv.peer_lru, lru_node) {
		if (timer_delete_sync(&peer->timer))
			sovia_peer_put(peer);
		if (kthread_cancel_work_sync(&peer->work))
			sovia_peer_put(peer);
		peer_remove(peer);
	}
}

/**
 * sovia_peers_stop() - forget all peers of a namespace
 * @snet: the namespace, which is exiting: no links, anchors stopped, keys dropped
 *
 * Context: process, may sleep; not the connection thread, in which it is done.
 */
void sovia_peers_stop(struct sovia_net *snet)
{
	/* Most namespaces have never met anyone: they do not wait for what others have queued. */
	kthread_cancel_work_sync(&snet->rdv.forget_work);
	kthread_cancel_work_sync(&snet->rdv.ways_work);
	if (!list_empty(&snet->rdv.peer_lru))
		sovia_connd_call(peers_stop, snet);
}

/* ---- links -------------------------------------------------------------- */

/**
 * sovia_peer_attach() - a link belongs to a peer from now on
 * @peering: of a link that is not DOWN
 * @peer: its peer
 *
 * Context: connection thread.
 */
void sovia_peer_attach(struct sovia_peering *peering, struct sovia_peer *peer)
{
	if (peering->peer)
		return;
	kref_get(&peer->kref);
	WRITE_ONCE(peering->peer, peer);
	list_add_tail(&peering->node, &peer->users);
}

/**
 * sovia_peer_detach() - a link is DOWN
 * @peering: of the link; keeps its reference to the peer until it is freed
 *
 * Context: connection thread.
 */
void sovia_peer_detach(struct sovia_peering *peering)
{
	peering->waits = false;
	if (!peering->peer)
		return;
	list_del_init(&peering->node);
	sovia_peers_tidy(peering->peer->snet);
}

/**
 * sovia_peer_wake() - links that wait for a peer go on, or fail
 * @peer: the peer
 * @err: 0 or a negative errno
 *
 * Context: connection thread.
 */
void sovia_peer_wake(struct sovia_peer *peer, int err)
{
	struct sovia_peering *peering;

	if (err)
		peer->asking = false;
	list_for_each_entry(peering, &peer->users, node)
		if (peering->waits) {
			peering->waits = false;
			peering->err = err;
			sovia_peer_ops->wake(peering);
		}
}

static struct sovia_peering *peer_first_waiting(const struct sovia_peer *peer)
{
	struct sovia_peering *peering;

	list_for_each_entry(peering, &peer->users, node)
		if (peering->waits)
			return peering;
	return NULL;
}

/* ---- our attempts ------------------------------------------------------- */

static void peer_ask(struct sovia_peer *peer, kuid_t uid)
{
	struct sovia_rdv_msg msg = { .type = SOVIA_RDV_HELLO };
	struct sovia_anchor *anchor;
	u16 flags = 0;
	unsigned int len;
	int nkeys;

	nkeys = sovia_keys_offer(peer->snet, &peer->pair, msg.keys);
	if (nkeys < 0) {
		pr_notice_ratelimited("peer %pI6c: all keys are revoked, or have expired\n",
				      &peer->pair.remote);
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_REFUSED);
		sovia_peer_wake(peer, -ECONNREFUSED);
		return;
	}
	msg.nkeys = nkeys;
	anchor = sovia_anchor_ask(peer->snet, &peer->pair, uid);
	if (IS_ERR(anchor)) {
		if (PTR_ERR(anchor) == -EBUSY) {
			sovia_peer_set_timer(peer, PEER_RETRY);
			return;
		}
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_SILENT);
		sovia_peer_wake(peer, PTR_ERR(anchor));
		return;
	}
	if (peer->state != SOVIA_PEER_NONE)
		flags = peer->anchor ? SOVIA_RDV_F_JOIN : SOVIA_RDV_F_AGAIN;
	msg.has_mac = flags;
	sovia_peer_offer(peer->snet, &peer->pair, &msg.offer, flags);
	sovia_peer_offer_ways(peer->snet->net, &msg.offer);
	len = sovia_rdv_build(anchor->out, &msg);
	if (flags)
		sovia_secret_sign(&peer->secret, anchor->out, len);
	kref_get(&peer->kref);
	anchor->peer = peer;
	sovia_near_announce(anchor, peer, msg.offer.nonce);
	peer->attempt = anchor;
	sovia_anchor_send(anchor, len);
}

/**
 * sovia_peer_go_on() - ask, if a link waits and no attempt goes on
 * @peer: the peer
 *
 * Not all the time: a peer may end each connection as soon as it has answered.
 *
 * Context: connection thread.
 */
void sovia_peer_go_on(struct sovia_peer *peer)
{
	const struct sovia_peering *peering = peer_first_waiting(peer);
	unsigned long next = peer->asked + PEER_RETRY;

	if (!peering || peer->attempt || timer_pending(&peer->timer))
		return;
	if (!peer->asking) {
		peer->asking = true;
		peer->asking_since = jiffies;
	} else if (time_after_eq(jiffies, peer->asking_since + PEER_ASKING_TIME)) {
		sovia_peer_wake(peer, -ETIMEDOUT);
		return;
	} else if (time_before(jiffies, next)) {
		sovia_peer_set_timer(peer, next - jiffies);
		return;
	}
	peer->asked = jiffies;
	peer_ask(peer, sovia_peer_ops->uid(peering));
}

static void peer_work(struct kthread_work *work)
{
	struct sovia_peer *peer = container_of(work, struct sovia_peer, work);

	sovia_peer_go_on(peer);
	sovia_peer_put(peer);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two namespaces of one kernel that reach each other's port: their links need no wire.  See
 * Documentation/rendezvous.rst: Containers.
 *
 * That an address is another namespace's is a reason to ask there, no more: networks may have the
 * same addresses.  The proof is that the nonce that has arrived over a TCP connection is one which
 * this kernel sent over a connection between the same addresses.  It is looked for in both
 * directions: HELLO's by who answers, ANSWER's by who asked.
 *
 * No namespace is held between calls.  A peer holds the one at the other end, its twin, which
 * says when it leaves its table, at the latest when its namespace exits.
 */
#include <linux/hashtable.h>
#include <linux/inetdevice.h>
#include <linux/rculist.h>
#include <linux/user_namespace.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include "core/addr.h"
#include "near.h"
#include "peer.h"

#define NEAR_BITS	8

/* Namespaces that answer: sovia_rendezvous::near_node.  Readers use RCU. */
static HLIST_HEAD(near_nets);
/* Offers that have been sent: sovia_anchor::near_node by nonce. */
static DEFINE_HASHTABLE(near_offers, NEAR_BITS);
/*
 * Protects both, sovia_peer::twin of peers in tables, and sovia_peer::gone.  Innermost; bottom
 * halves off.
 */
static DEFINE_SPINLOCK(near_lock);

/**
 * sovia_near_answers() - a namespace answers from now on, or does no more
 * @snet: the namespace
 * @answers: which
 *
 * Context: process; sovia_rendezvous::mutex.  Called before the namespace's memory is freed, and
 * a grace period is between.
 */
void sovia_near_answers(struct sovia_net *snet, bool answers)
{
	struct hlist_node *node = &snet->rdv.near_node;

	spin_lock_bh(&near_lock);
	if (!answers)
		hlist_del_init_rcu(node);
	else if (hlist_unhashed(node))
		hlist_add_head_rcu(node, &near_nets);
	spin_unlock_bh(&near_lock);
}

/* The user namespace below the initial one that it is in, or the initial one. */
static const struct user_namespace *top_user_ns(const struct sovia_net *snet)
{
	const struct user_namespace *ns = snet->net->user_ns;

	while (ns != &init_user_ns && ns->parent != &init_user_ns)
		ns = ns->parent;
	return ns;
}

/*
 * Is it worth asking, as that namespace answers?  One that a user has made is of no use but to that
 * user's others: else any user could have the whole host ask.
 */
static bool near_counts(const struct sovia_net *snet, const struct sovia_net *other)
{
	const struct user_namespace *asks = top_user_ns(snet), *answers = top_user_ns(other);

	if (other == snet)
		return false;
	return answers == &init_user_ns || uid_eq(answers->owner, GLOBAL_ROOT_UID) ||
	       (asks != &init_user_ns && uid_eq(asks->owner, answers->owner));
}

/**
 * sovia_near_any() - does any other namespace of this kernel answer that may be reached
 * @snet: the namespace that asks
 *
 * Its addresses are not looked at: the asking namespace would learn them.
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_near_any(const struct sovia_net *snet)
{
	const struct sovia_net *other;
	bool any = false;

	rcu_read_lock();
	hlist_for_each_entry_rcu(other, &near_nets, rdv.near_node) {
		any = near_counts(snet, other);
		if (any)
			break;
	}
	rcu_read_unlock();
	return any;
}

static u32 nonce_key(const u8 *nonce)
{
	u32 key;

	memcpy(&key, nonce, sizeof(key));
	return key;
}

/**
 * sovia_near_withdraw() - a connection is about to lose its peer
 * @anchor: the connection, announced or not
 *
 * Context: connection thread, or the exit of a namespace in its place.
 */
void sovia_near_withdraw(struct sovia_anchor *anchor)
{
	struct sovia_peer *peer;

	spin_lock_bh(&near_lock);
	hash_del(&anchor->near_node);
	peer = anchor->near_peer;
	anchor->near_peer = NULL;
	spin_unlock_bh(&near_lock);
	if (peer)
		sovia_peer_put(peer);
}

/**
 * sovia_near_announce() - an offer is about to be sent
 * @anchor: over this one, perhaps once more; sovia_near_withdraw() follows
 * @peer: to this peer
 * @nonce: of the offer
 *
 * Context: connection thread.
 */
void sovia_near_announce(struct sovia_anchor *anchor, struct sovia_peer *peer, const u8 *nonce)
{
	sovia_near_withdraw(anchor);
	kref_get(&peer->kref);
	spin_lock_bh(&near_lock);
	memcpy(anchor->nonce, nonce, sizeof(anchor->nonce));
	anchor->near_peer = peer;
	hash_add(near_offers, &anchor->near_node, nonce_key(nonce));
	spin_unlock_bh(&near_lock);
}

/**
 * sovia_near_announced() - does an exchange that goes on have the peer that it began with
 * @anchor: of the exchange
 * @peer: the peer of its addresses now
 *
 * Context: connection thread.
 * Return: false if the other namespace has found one that is not in the table any more.
 */
bool sovia_near_announced(const struct sovia_anchor *anchor, const struct sovia_peer *peer)
{
	return !anchor->near_peer || anchor->near_peer == peer;
}

/*
 * Are these the two ends of a connection?  One asks, from the asking port, and the other one
 * answers, at its port: so the ports need no look.
 */
static bool is_other_end(const struct sovia_anchor *a, const struct sovia_anchor *b)
{
	return a->snet != b->snet && a->active != b->active &&
	       ipv6_addr_equal(&a->pair.local, &b->pair.remote) &&
	       ipv6_addr_equal(&a->pair.remote, &b->pair.local);
}

static void set_twin(struct sovia_peer **twin, struct sovia_peer *peer)
{
	if (*twin)
		sovia_peer_put(*twin);
	*twin = peer;
}

/**
 * sovia_near_meet() - an offer has arrived: is its sender another namespace of this kernel
 * @anchor: over this one; sovia_anchor::twin is set
 * @nonce: of the offer
 *
 * Context: connection thread.
 * Return: true if so.
 */
bool sovia_near_meet(struct sovia_anchor *anchor, const u8 *nonce)
{
	struct sovia_peer *twin = NULL;
	struct sovia_anchor *other;

	spin_lock_bh(&near_lock);
	hash_for_each_possible(near_offers, other, near_node, nonce_key(nonce)) {
		if (memcmp(other->nonce, nonce, sizeof(other->nonce)) ||
		    !is_other_end(anchor, other) || other->near_peer->gone)
			continue;
		twin = other->near_peer;
		kref_get(&twin->kref);
		break;
	}
	spin_unlock_bh(&near_lock);
	set_twin(&anchor->twin, twin);
	return twin;
}

/**
 * sovia_near_join() - an exchange has succeeded
 * @peer: with whom
 * @anchor: over this one; sovia_near_meet() has been called
 *
 * Context: connection thread.
 */
void sovia_near_join(struct sovia_peer *peer, struct sovia_anchor *anchor)
{
	struct sovia_peer *old;

	spin_lock_bh(&near_lock);
	old = peer->twin;
	peer->twin = anchor->twin;
	spin_unlock_bh(&near_lock);
	anchor->twin = NULL;
	if (old)
		sovia_peer_put(old);
}

/**
 * sovia_near_part() - a peer leaves its table
 * @peer: the peer
 *
 * Context: connection thread, or the exit of a namespace in its place.
 */
void sovia_near_part(struct sovia_peer *peer)
{
	struct sovia_peer *twin;

	spin_lock_bh(&near_lock);
	peer->gone = true;
	twin = peer->twin;
	peer->twin = NULL;
	spin_unlock_bh(&near_lock);
	if (twin)
		sovia_peer_put(twin);
}

static bool peer_has_address(struct net *net, const struct sovia_pair *pair)
{
	bool yes;

	rcu_read_lock();
	yes = sovia_address_device(net, &pair->local, pair->l3);
	rcu_read_unlock();
	return yes;
}

/**
 * sovia_near_beyond() - where a link ends
 * @peer: its peer, in another namespace of this kernel
 * @own: its addresses
 * @pair: filled in: its addresses as they are there
 *
 * Like a device, it does not reach an address that has been removed.
 *
 * Context: connection thread.
 * Return: the namespace, with a reference for the caller, or an ERR_PTR: -ECONNREFUSED it has gone,
 * -EADDRNOTAVAIL, -EHOSTUNREACH an address has.
 */
struct net *sovia_near_beyond(const struct sovia_peer *peer, const struct sovia_pair *own,
			      struct sovia_pair *pair)
{
	const struct sovia_peer *twin;
	struct net *net = NULL;

	spin_lock_bh(&near_lock);
	twin = peer->twin;
	if (twin && !twin->gone) {
		net = maybe_get_net(twin->snet->net);
		*pair = twin->pair;
	}
	spin_unlock_bh(&near_lock);
	if (!net)
		return ERR_PTR(-ECONNREFUSED);
	if (!peer_has_address(net, pair)) {
		put_net(net);
		return ERR_PTR(-EHOSTUNREACH);
	}
	if (!peer_has_address(peer->snet->net, own)) {
		put_net(net);
		return ERR_PTR(-EADDRNOTAVAIL);
	}
	return net;
}

/**
 * sovia_near_twin() - the other end of a peer that is another namespace of this kernel
 * @peer: the peer
 * @pair: filled in: the other end's addresses
 *
 * Context: any, under rcu_read_lock(): a grace period is between a namespace's peers, which go
 * before, and its state.
 * Return: the namespace, or NULL.
 */
struct sovia_net *sovia_near_twin(const struct sovia_peer *peer, struct sovia_pair *pair)
{
	const struct sovia_peer *twin;
	struct sovia_net *snet = NULL;

	spin_lock_bh(&near_lock);
	twin = peer->twin;
	if (twin && !twin->gone) {
		snet = twin->snet;
		*pair = twin->pair;
	}
	spin_unlock_bh(&near_lock);
	return snet;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/near_test.c"
#endif

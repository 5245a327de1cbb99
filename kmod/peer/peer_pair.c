// SPDX-License-Identifier: GPL-2.0-only
/*
 * How kernels become peers of each other, and how that ends: Documentation/rendezvous.rst.  All
 * of this belongs to the connection thread.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include "core/event.h"
#include "core/trace.h"
#include "near.h"
#include "peer_memory.h"
#include "peer_pair.h"

/* After a peer has ended, or its connection was reset. */
#define PAIR_RETRY	(HZ / 5)

/* What is known of a peer has changed; @err: or not, a negative errno. */
static void peer_tell(const struct sovia_peer *peer, int err)
{
	trace_sovia_peer(peer, err);
	sovia_event(peer->snet, SOVIA_EVENT_PEER, peer);
}

/**
 * sovia_peer_leave() - the anchor, or the other kernel, is not there any more
 * @peer: the peer
 * @state: its state from now on, not PAIRED
 *
 * Context: connection thread.
 */
void sovia_peer_leave(struct sovia_peer *peer, enum sovia_peer_state state)
{
	peer->state = state;
	WRITE_ONCE(peer->out, false);
	WRITE_ONCE(peer->in, false);
	peer_tell(peer, -ENOTCONN);
}

/**
 * sovia_peer_anew() - have a peer introduced again before connections are opened
 * @peer: the peer; it keeps its secret and its lanes
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_peer_anew(struct sovia_peer *peer)
{
	sovia_peer_drop_anchor(&peer->anchor);
	if (peer->state == SOVIA_PEER_PAIRED)
		sovia_peer_leave(peer, SOVIA_PEER_UNANCHORED);
}

static void peer_agree(struct sovia_peer *peer, const struct sovia_agreement *agreed)
{
	peer->version = agreed->version;
	peer->features = agreed->features;
	peer->way = agreed->way;
	peer->key.serial = agreed->key.serial;
	WRITE_ONCE(peer->key.id, agreed->key.id);
	spin_lock(&peer->lock);
	peer->secret = agreed->secret;
	peer->generation = 0;
	memset(peer->heard, 0, sizeof(peer->heard));
	spin_unlock(&peer->lock);
}

/* Another kernel has taken its place: links that waited for it to come back end. */
static void peer_forget(struct sovia_peer *peer)
{
	struct sovia_peering *peering, *next;

	sovia_peer_leave(peer, SOVIA_PEER_NONE);
	list_for_each_entry_safe(peering, next, &peer->users, node)
		sovia_peer_ops->replaced(peering);
}

/**
 * sovia_peer_adopt() - another kernel takes the place of the one before, if there was any
 * @peer: no lane is UP
 * @agreed: with it
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_peer_adopt(struct sovia_peer *peer, const struct sovia_agreement *agreed)
{
	peer_forget(peer);
	peer_agree(peer, agreed);
}

/**
 * sovia_peer_paired() - an exchange has succeeded
 * @peer: has its secret
 * @anchor: of the exchange
 *
 * Context: connection thread.
 */
void sovia_peer_paired(struct sovia_peer *peer, struct sovia_anchor *anchor)
{
	/* The peer may have lost it before we noticed. */
	sovia_peer_drop_anchor(&peer->anchor);
	kref_get(&anchor->kref);
	peer->anchor = anchor;
	peer->state = SOVIA_PEER_PAIRED;
	sovia_near_join(peer, anchor);
	if (anchor->active)
		WRITE_ONCE(peer->out, true);
	else
		WRITE_ONCE(peer->in, true);
	sovia_anchor_settle(anchor);
	sovia_stat_inc(peer->snet, peer_up);
	sovia_memory_clear(peer->snet, &peer->pair);
	pr_debug("peer %pI6c - %pI6c paired\n", &peer->pair.local, &peer->pair.remote);
	peer_tell(peer, 0);
	sovia_peer_wake(peer, 0);
}

/**
 * sovia_peer_joined() - an exchange has opened one more direction
 * @peer: has an anchor
 * @active: we asked, and may open connections to it; else it may open some to us
 *
 * Context: connection thread.
 */
void sovia_peer_joined(struct sovia_peer *peer, bool active)
{
	sovia_stat_inc(peer->snet, peer_join);
	if (!active) {
		WRITE_ONCE(peer->in, true);
		peer_tell(peer, 0);
		return;
	}
	sovia_peer_drop_anchor(&peer->attempt);
	WRITE_ONCE(peer->out, true);
	peer_tell(peer, 0);
	sovia_memory_clear(peer->snet, &peer->pair);
	sovia_peer_wake(peer, 0);
}

/**
 * sovia_peer_attempt_over() - our attempt has ended without success
 * @peer: the peer
 * @delay: again after that, in jiffies; if 0, links that wait fail
 * @err: with this negative errno
 *
 * Context: connection thread.
 */
void sovia_peer_attempt_over(struct sovia_peer *peer, unsigned long delay, int err)
{
	sovia_peer_drop_anchor(&peer->attempt);
	if (delay) {
		sovia_peer_set_timer(peer, delay);
		return;
	}
	peer_tell(peer, err);
	sovia_peer_wake(peer, err);
}

/* Nothing of it holds any more.  Links that wait for a peer wait on. */
static void peer_end(struct sovia_peer *peer)
{
	struct sovia_agreement none = {};
	struct sovia_peering *peering, *next;

	pr_notice_ratelimited("peer %pI6c: its key is not valid any more, closing its links\n",
			      &peer->pair.remote);
	/* First: requests that wait on a link are decided when that ends. */
	sovia_peer_leave(peer, SOVIA_PEER_NONE);
	/* One that no other kernel has: a set-up that has begun may still use it. */
	get_random_bytes(&none.secret, sizeof(none.secret));
	peer_agree(peer, &none);
	if (peer->attempt)
		sovia_peer_attempt_over(peer, PAIR_RETRY, 0);
	sovia_peer_drop_anchor(&peer->anchor);
	list_for_each_entry_safe(peering, next, &peer->users, node)
		sovia_peer_ops->ended(peering);
}

/**
 * sovia_peer_check_key() - end a peer whose key is revoked, has expired or been deleted, or who
 * has none and needs one now
 * @peer: the peer
 *
 * Context: connection thread; no link or lane lock.
 * Return: false if it has ended.
 */
bool sovia_peer_check_key(struct sovia_peer *peer)
{
	if (peer->state == SOVIA_PEER_NONE ||
	    sovia_keys_permit(peer->snet, &peer->pair, &peer->key))
		return true;
	peer_end(peer);
	return false;
}

/**
 * sovia_peers_check_keys() - keys have changed: sovia_peer_check_key() for all of a namespace
 * @snet: the namespace
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_peers_check_keys(struct sovia_net *snet)
{
	struct hlist_node *next;
	struct sovia_peer *peer;
	int bucket;

	hash_for_each_safe(snet->rdv.peers, bucket, next, peer, net_node)
		sovia_peer_check_key(peer);
}

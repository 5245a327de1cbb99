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
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "connd.h"
#include "debug/objcount.h"
#include "lane.h"
#include "link_probe.h"
#include "link_state.h"
#include "link_table.h"
#include "peer.h"
#include "rdv_wire.h"
#include "rendezvous.h"

#define PEERS_MAX		4096

/* How long links wait for a peer that is busy, or ends each connection. */
#define PEER_ASKING_TIME	(20 * HZ)
#define PEER_RETRY		(HZ / 5)
/* Before ours is repeated, when the peer's attempt counts. */
#define PEER_CROSSED		HZ
/* What a peer may ask us to wait, in milliseconds. */
#define PEER_RETRY_MS_MIN	50
#define PEER_RETRY_MS_MAX	5000
#define PEER_BUSY_MS		1000
/* How often a link that waits looks whether its connections are still there. */
#define PEER_LINK_WAIT		(2 * HZ)

static const char * const code_names[SOVIA_RDV_CODES] = {
	[SOVIA_RDV_OK]		= "welcome",
	[SOVIA_RDV_BUSY]	= "busy",
	[SOVIA_RDV_CROSSED]	= "both asked",
	[SOVIA_RDV_NO_VERSION]	= "no common version",
	[SOVIA_RDV_NO_KEY]	= "no common key",
	[SOVIA_RDV_NAT]		= "another address than it sees",
	[SOVIA_RDV_SHARED]	= "two kernels behind one address",
	[SOVIA_RDV_NO_WAY]	= "no RDMA device",
	[SOVIA_RDV_DENIED]	= "denied",
	[SOVIA_RDV_LEAVING]	= "the module is being unloaded",
	[SOVIA_RDV_IDLE]	= "no sockets there",
};

/* ---- the table ---------------------------------------------------------- */

static void peer_free(struct kref *kref)
{
	/* It has the secret. */
	kfree_sensitive(container_of(kref, struct sovia_peer, kref));
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

static void peer_set_timer(struct sovia_peer *peer, unsigned long delay)
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

/* Forget a peer without links.  The caller may use it no more. */
static void peer_remove(struct sovia_peer *peer)
{
	hash_del(&peer->net_node);
	list_del(&peer->lru_node);
	peer->snet->rdv.peer_count--;
	if (timer_delete_sync(&peer->timer))
		sovia_peer_put(peer);
	sovia_peer_put(peer);
}

static void peer_drop_anchor(struct sovia_anchor **anchor)
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
		if (!list_empty(&peer->links) || peer->attempt)
			continue;
		peer_drop_anchor(&peer->anchor);
		peer_remove(peer);
		return true;
	}
	return false;
}

static struct sovia_peer *peer_get(struct sovia_net *snet, const struct sovia_pair *pair)
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
	INIT_LIST_HEAD(&peer->links);
	timer_setup(&peer->timer, peer_timeout, 0);
	kthread_init_work(&peer->work, peer_work);
	spin_lock_init(&peer->lock);
	hash_add(snet->rdv.peers, &peer->net_node, peer_hash(&peer->pair));
	list_add_tail(&peer->lru_node, &snet->rdv.peer_lru);
	snet->rdv.peer_count++;
	sovia_object_inc(peers);
	return peer;
}

/**
 * sovia_peers_stop() - forget all peers of a namespace
 * @snet: the namespace, which is exiting: no links, anchors stopped
 *
 * Context: process, may sleep.
 */
void sovia_peers_stop(struct sovia_net *snet)
{
	struct sovia_peer *peer, *next;

	list_for_each_entry_safe(peer, next, &snet->rdv.peer_lru, lru_node) {
		if (timer_delete_sync(&peer->timer))
			sovia_peer_put(peer);
		if (kthread_cancel_work_sync(&peer->work))
			sovia_peer_put(peer);
		peer_remove(peer);
	}
}

/* ---- links -------------------------------------------------------------- */

/**
 * sovia_peer_attach() - a link belongs to a peer from now on
 * @link: not DOWN
 * @peer: its peer
 *
 * Context: connection thread.
 */
void sovia_peer_attach(struct sovia_link *link, struct sovia_peer *peer)
{
	if (link->peer)
		return;
	kref_get(&peer->kref);
	link->peer = peer;
	list_add_tail(&link->peer_node, &peer->links);
}

/**
 * sovia_peer_detach() - a link is DOWN
 * @link: the link; keeps its reference to the peer until it is freed
 *
 * Context: connection thread.
 */
void sovia_peer_detach(struct sovia_link *link)
{
	link->peer_waits = false;
	if (link->peer)
		list_del_init(&link->peer_node);
}

/* Links that wait may go on, or if @err, fail. */
static void peer_wake(struct sovia_peer *peer, int err)
{
	struct sovia_link *link;

	peer->asking = false;
	list_for_each_entry(link, &peer->links, peer_node)
		if (link->peer_waits) {
			link->peer_waits = false;
			link->peer_err = err;
			sovia_link_event(link, SOVIA_LINK_EV_PEER);
		}
}

static struct sovia_link *peer_first_waiting(const struct sovia_peer *peer)
{
	struct sovia_link *link;

	list_for_each_entry(link, &peer->links, peer_node)
		if (link->peer_waits)
			return link;
	return NULL;
}

static bool peer_has_up_link(const struct sovia_peer *peer)
{
	const struct sovia_link *link;

	list_for_each_entry(link, &peer->links, peer_node)
		if (link->state == SOVIA_LINK_UP)
			return true;
	return false;
}

/* ---- our attempts ------------------------------------------------------- */

static void offer_build(const struct sovia_peer *peer, struct sovia_offer *offer, bool again)
{
	const struct sovia_pair *pair = &peer->pair;

	memset(offer, 0, sizeof(*offer));
	offer->version_min = SOVIA_WIRE_VERSION;
	offer->version_max = SOVIA_WIRE_VERSION;
	offer->flags = again ? SOVIA_RDV_F_AGAIN : 0;
	memcpy(offer->instance, peer->snet->rdv.instance, sizeof(offer->instance));
	offer->saddr = pair->local;
	offer->daddr = pair->remote;
	get_random_bytes(offer->nonce, sizeof(offer->nonce));
	offer->window = SOVIA_WINDOW_MAX;
	offer->lanes = SOVIA_LANES_MAX;
	offer->payload = SOVIA_PAYLOAD_MAX;
}

static void peer_ask(struct sovia_peer *peer, kuid_t uid)
{
	bool again = peer->state != SOVIA_PEER_NONE;
	struct sovia_rdv_msg msg = { .type = SOVIA_RDV_HELLO, .has_mac = again };
	struct sovia_anchor *anchor;
	unsigned int len;

	anchor = sovia_anchor_ask(peer->snet, &peer->pair, uid);
	if (IS_ERR(anchor)) {
		if (PTR_ERR(anchor) == -EBUSY)
			peer_set_timer(peer, PEER_RETRY);
		else
			peer_wake(peer, PTR_ERR(anchor));
		return;
	}
	offer_build(peer, &msg.offer, again);
	len = sovia_rdv_build(anchor->out, &msg);
	if (again)
		sovia_secret_sign(&peer->secret, anchor->out, len);
	kref_get(&peer->kref);
	anchor->peer = peer;
	peer->attempt = anchor;
	sovia_anchor_send(anchor, len);
}

/* Ask, if a link waits and no attempt goes on. */
static void peer_go_on(struct sovia_peer *peer)
{
	const struct sovia_link *link = peer_first_waiting(peer);

	if (!link || peer->attempt || timer_pending(&peer->timer))
		return;
	if (!peer->asking) {
		peer->asking = true;
		peer->asking_since = jiffies;
	}
	if (time_before(jiffies, peer->asking_since + PEER_ASKING_TIME))
		peer_ask(peer, link->uid);
	else
		peer_wake(peer, -ETIMEDOUT);
}

static void peer_work(struct kthread_work *work)
{
	struct sovia_peer *peer = container_of(work, struct sovia_peer, work);

	peer_go_on(peer);
	sovia_peer_put(peer);
}

/**
 * sovia_peer_ready() - may a link request a VI
 * @link: CONNECTING or RECOVERING, without a live VI
 *
 * Its first request needs an introduction; after a loss the secret is enough.
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if so; false if the link waits now: SOVIA_LINK_EV_PEER follows.
 */
bool sovia_peer_ready(struct sovia_link *link)
{
	struct sovia_peer *peer = link->peer;

	if (!link->prov->introduced)
		return true;
	if (!peer)
		peer = peer_get(link->snet, &link->pair);
	if (!peer) {
		link->peer_err = -ENOMEM;
		sovia_link_event(link, SOVIA_LINK_EV_PEER);
		return false;
	}
	sovia_peer_attach(link, peer);
	if (peer->state == SOVIA_PEER_PAIRED ||
	    (peer->state == SOVIA_PEER_UNANCHORED && link->state == SOVIA_LINK_RECOVERING)) {
		link->peer_waits = false;
		return true;
	}
	link->peer_waits = true;
	sovia_link_set_timer(link, PEER_LINK_WAIT);
	peer_go_on(peer);
	return false;
}

/* ---- messages of the anchor --------------------------------------------- */

static void peer_ping(struct sovia_anchor *anchor, u8 type, u64 number)
{
	const struct sovia_rdv_msg msg = { .type = type, .ping = number };

	if (sovia_anchor_may_send(anchor))
		sovia_anchor_send(anchor, sovia_rdv_build(anchor->out, &msg));
}

/**
 * sovia_peer_doubt() - check whether a peer is still there
 * @peer: the peer
 *
 * If not, its host resets the anchor, and lanes time out.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_peer_doubt(struct sovia_peer *peer)
{
	struct sovia_link *link;

	if (peer->anchor)
		peer_ping(peer->anchor, SOVIA_RDV_PING, 0);
	list_for_each_entry(link, &peer->links, peer_node)
		if (link->state == SOVIA_LINK_UP)
			sovia_link_doubt(link);
}

/* Another kernel has taken its place: links that waited for it to come back end. */
static void peer_forget(struct sovia_peer *peer)
{
	struct sovia_link *link, *next;

	peer->state = SOVIA_PEER_NONE;
	list_for_each_entry_safe(link, next, &peer->links, peer_node) {
		if (link->state != SOVIA_LINK_RECOVERING)
			continue;
		sovia_link_ref(link);
		sovia_link_down(link, -ECONNRESET);
		sovia_link_put(link);
	}
}

static void peer_set_secret(struct sovia_peer *peer, const struct sovia_secret *secret)
{
	spin_lock(&peer->lock);
	peer->secret = *secret;
	peer->generation = 0;
	memset(peer->heard, 0, sizeof(peer->heard));
	spin_unlock(&peer->lock);
}

static void peer_paired(struct sovia_peer *peer, struct sovia_anchor *anchor)
{
	kref_get(&anchor->kref);
	peer->anchor = anchor;
	peer->state = SOVIA_PEER_PAIRED;
	sovia_anchor_settle(anchor);
	sovia_stat_inc(peer->snet, peer_up);
	pr_debug("peer %pI6c - %pI6c paired\n", &peer->pair.local, &peer->pair.remote);
	peer_wake(peer, 0);
}

static bool offer_is_acceptable(const struct sovia_offer *offer)
{
	return offer->version_min <= SOVIA_WIRE_VERSION &&
	       offer->version_max >= SOVIA_WIRE_VERSION;
}

static bool offer_has_addresses(const struct sovia_offer *offer, const struct sovia_pair *pair)
{
	return ipv6_addr_equal(&offer->saddr, &pair->remote) &&
	       ipv6_addr_equal(&offer->daddr, &pair->local);
}

/* Do we wait for the answer to an attempt that counts more than the peer's? */
static bool peer_own_attempt_counts(const struct sovia_peer *peer)
{
	return peer->attempt && sovia_anchor_open(peer->attempt) &&
	       memcmp(&peer->pair.local, &peer->pair.remote, sizeof(peer->pair.local)) < 0;
}

/* May a peer that says to be another kernel than before be believed? */
static bool peer_is_gone(struct sovia_peer *peer)
{
	if (!peer->anchor && !peer_has_up_link(peer))
		return true;
	sovia_peer_doubt(peer);
	return false;
}

/* Documentation/rendezvous.rst: Decisions on a HELLO. */
static enum sovia_rdv_code hello_decide(struct sovia_anchor *anchor,
					const struct sovia_rdv_msg *msg, struct sovia_peer **found,
					bool *again)
{
	struct sovia_net *snet = anchor->snet;
	struct sovia_peer *peer;

	*again = false;
	*found = NULL;
	if (!offer_has_addresses(&msg->offer, &anchor->pair))
		return SOVIA_RDV_NAT;
	if (!offer_is_acceptable(&msg->offer))
		return SOVIA_RDV_NO_VERSION;
	if (!READ_ONCE(snet->listening))
		return SOVIA_RDV_IDLE;
	peer = peer_get(snet, &anchor->pair);
	if (!peer)
		return SOVIA_RDV_BUSY;
	*found = peer;
	if (msg->offer.flags & SOVIA_RDV_F_AGAIN && peer->state != SOVIA_PEER_NONE) {
		*again = sovia_secret_signed(&peer->secret, anchor->in, anchor->in_len);
		if (*again)
			return SOVIA_RDV_OK;
		sovia_stat_inc(snet, bad_mac);
	}
	if (!peer_is_gone(peer))
		return SOVIA_RDV_BUSY;
	return peer_own_attempt_counts(peer) ? SOVIA_RDV_CROSSED : SOVIA_RDV_OK;
}

static void answer_build(struct sovia_anchor *anchor, struct sovia_rdv_msg *answer,
			 const struct sovia_peer *peer, enum sovia_rdv_code code, bool again)
{
	const struct sovia_peer nobody = { .snet = anchor->snet, .pair = anchor->pair };

	*answer = (struct sovia_rdv_msg){
		.type = SOVIA_RDV_ANSWER, .code = code, .nkeys = 1, .has_mac = true,
		.retry_ms = code == SOVIA_RDV_BUSY ? PEER_BUSY_MS : 0,
	};
	offer_build(peer ?: &nobody, &answer->offer, again);
}

static void peer_welcome(struct sovia_peer *peer, struct sovia_anchor *anchor, unsigned int len,
			 bool again)
{
	struct sovia_secret secret;

	peer_drop_anchor(&peer->attempt);
	peer_drop_anchor(&peer->anchor);
	if (!again) {
		peer_forget(peer);
		sovia_secret_derive(&secret, anchor->in, anchor->in_len, anchor->out,
				    len - SOVIA_RDV_MAC_LEN);
		peer_set_secret(peer, &secret);
		memzero_explicit(&secret, sizeof(secret));
	}
	sovia_secret_sign(&peer->secret, anchor->out, len);
	kref_get(&peer->kref);
	anchor->peer = peer;
	peer_paired(peer, anchor);
}

static void peer_heard(struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg)
{
	struct sovia_rdv_msg answer;
	enum sovia_rdv_code code;
	struct sovia_peer *peer;
	unsigned int len;
	bool again;

	if (anchor->active || anchor->peer) {
		sovia_anchor_shut(anchor);
		return;
	}
	code = hello_decide(anchor, msg, &peer, &again);
	answer_build(anchor, &answer, peer, code, again);
	len = sovia_rdv_build(anchor->out, &answer);
	/* The connection of a refusal is the peer's to end, or the deadline's. */
	if (code == SOVIA_RDV_OK)
		peer_welcome(peer, anchor, len, again);
	else
		sovia_stat_inc(anchor->snet, peer_refused);
	sovia_anchor_send(anchor, len);
}

/* Our attempt has ended without success: again after @delay, or if that is 0, fail. */
static void peer_attempt_over(struct sovia_peer *peer, unsigned long delay, int err)
{
	peer_drop_anchor(&peer->attempt);
	if (delay)
		peer_set_timer(peer, delay);
	else
		peer_wake(peer, err);
}

static void peer_refused(struct sovia_peer *peer, const struct sovia_rdv_msg *msg)
{
	unsigned int wait = clamp(msg->retry_ms, PEER_RETRY_MS_MIN, PEER_RETRY_MS_MAX);

	if (msg->code == SOVIA_RDV_BUSY) {
		peer_attempt_over(peer, msecs_to_jiffies(wait), 0);
		return;
	}
	if (msg->code == SOVIA_RDV_CROSSED) {
		peer_attempt_over(peer, PEER_CROSSED, 0);
		return;
	}
	pr_notice_ratelimited("peer %pI6c refuses: %s\n", &peer->pair.remote,
			      msg->code < SOVIA_RDV_CODES ? code_names[msg->code] : "?");
	peer_attempt_over(peer, 0, -ECONNREFUSED);
}

static void peer_answered(struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg)
{
	struct sovia_peer *peer = anchor->peer;
	struct sovia_secret secret;
	bool again;

	if (!peer || peer->attempt != anchor) {
		sovia_anchor_shut(anchor);
		return;
	}
	if (msg->code != SOVIA_RDV_OK) {
		peer_refused(peer, msg);
		return;
	}
	again = msg->offer.flags & SOVIA_RDV_F_AGAIN && peer->state != SOVIA_PEER_NONE;
	if (again)
		secret = peer->secret;
	else
		sovia_secret_derive(&secret, anchor->out, anchor->out_len, anchor->in,
				    anchor->in_len - SOVIA_RDV_MAC_LEN);
	if (!sovia_secret_signed(&secret, anchor->in, anchor->in_len) ||
	    !offer_has_addresses(&msg->offer, &anchor->pair) ||
	    !offer_is_acceptable(&msg->offer)) {
		sovia_stat_inc(anchor->snet, bad_mac);
		peer_attempt_over(peer, 0, -ECONNREFUSED);
	} else if (!again && !peer_is_gone(peer)) {
		peer_attempt_over(peer, msecs_to_jiffies(PEER_BUSY_MS), 0);
	} else {
		peer->attempt = NULL;
		if (!again) {
			peer_forget(peer);
			peer_set_secret(peer, &secret);
		}
		peer_paired(peer, anchor);
		sovia_anchor_put(anchor);
	}
	memzero_explicit(&secret, sizeof(secret));
}

/**
 * sovia_peer_message() - a message has arrived
 * @anchor: has it
 *
 * Context: connection thread.
 */
void sovia_peer_message(struct sovia_anchor *anchor)
{
	struct sovia_rdv_msg msg;

	if (sovia_rdv_parse(anchor->in, anchor->in_len, &msg)) {
		sovia_stat_inc(anchor->snet, bad_hello);
		pr_warn_ratelimited("peer %pI6c: bad message\n", &anchor->pair.remote);
		sovia_anchor_shut(anchor);
		return;
	}
	switch (msg.type) {
	case SOVIA_RDV_HELLO:
		peer_heard(anchor, &msg);
		break;
	case SOVIA_RDV_ANSWER:
		peer_answered(anchor, &msg);
		break;
	case SOVIA_RDV_PING:
		if (anchor->settled)
			peer_ping(anchor, SOVIA_RDV_PONG, msg.ping);
		break;
	case SOVIA_RDV_PONG:
		break;
	default:
		sovia_anchor_shut(anchor);
		break;
	}
}

/* How long until the next attempt, or 0 if the error is the answer. */
static unsigned long peer_retry_delay(int err)
{
	switch (err) {
	case -ECONNRESET:
	case -EPIPE:
	case -EADDRNOTAVAIL:
	case -EADDRINUSE:
	case -ENOBUFS:
		return PEER_RETRY;
	default:
		return 0;
	}
}

/**
 * sovia_peer_lost() - a connection has been closed
 * @anchor: the connection
 *
 * Context: connection thread, or the exit of a namespace in its place.
 */
void sovia_peer_lost(struct sovia_anchor *anchor)
{
	struct sovia_peer *peer = anchor->peer;

	if (!peer)
		return;
	anchor->peer = NULL;
	if (peer->attempt == anchor) {
		peer_attempt_over(peer, peer_retry_delay(anchor->err), anchor->err);
	} else if (peer->anchor == anchor) {
		peer->anchor = NULL;
		peer->state = SOVIA_PEER_UNANCHORED;
		sovia_anchor_put(anchor);
		pr_debug("peer %pI6c - %pI6c lost its anchor: %d\n", &peer->pair.local,
			 &peer->pair.remote, anchor->err);
	}
	sovia_peer_put(peer);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/peer_test.c"
#endif

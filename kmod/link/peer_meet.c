// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kernels say to each other over an anchor, and what follows from it: the decisions of
 * Documentation/rendezvous.rst.  All of this belongs to the connection thread.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <net/ipv6.h>
#include "link_probe.h"
#include "link_state.h"
#include "peer.h"
#include "peer_meet.h"
#include "peer_memory.h"
#include "rule.h"

/* Before ours is repeated, when it was reset, or when the peer's attempt counts. */
#define MEET_RETRY		(HZ / 5)
#define MEET_CROSSED		HZ
/* What a peer may ask us to wait, in milliseconds. */
#define MEET_RETRY_MS_MIN	50
#define MEET_RETRY_MS_MAX	5000
#define MEET_BUSY_MS		1000

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

/**
 * sovia_peer_offer() - what this kernel says of itself
 * @snet: namespace
 * @pair: the addresses
 * @offer: filled in
 * @flags: SOVIA_RDV_F_*
 *
 * Context: connection thread.
 */
void sovia_peer_offer(const struct sovia_net *snet, const struct sovia_pair *pair,
		      struct sovia_offer *offer, u16 flags)
{
	memset(offer, 0, sizeof(*offer));
	offer->version_min = SOVIA_WIRE_VERSION_MIN;
	offer->version_max = SOVIA_WIRE_VERSION;
	offer->features = SOVIA_FEATURES;
	offer->flags = flags;
	memcpy(offer->instance, snet->rdv.instance, sizeof(offer->instance));
	offer->saddr = pair->local;
	offer->daddr = pair->remote;
	get_random_bytes(offer->nonce, sizeof(offer->nonce));
	offer->window = SOVIA_WINDOW_MAX;
	offer->lanes = SOVIA_LANES_MAX;
	offer->payload = SOVIA_PAYLOAD_MAX;
}

static bool peer_has_up_link(const struct sovia_peer *peer)
{
	const struct sovia_link *link;

	list_for_each_entry(link, &peer->links, peer_node)
		if (link->state == SOVIA_LINK_UP)
			return true;
	return false;
}

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

/* The anchor, or the kernel, is not there any more. */
static void peer_leave(struct sovia_peer *peer, enum sovia_peer_state state)
{
	peer->state = state;
	WRITE_ONCE(peer->out, false);
	WRITE_ONCE(peer->in, false);
}

/* Another kernel has taken its place: links that waited for it to come back end. */
static void peer_forget(struct sovia_peer *peer)
{
	struct sovia_link *link, *next;

	peer_leave(peer, SOVIA_PEER_NONE);
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
	/* The peer may have lost it before we noticed. */
	sovia_peer_drop_anchor(&peer->anchor);
	kref_get(&anchor->kref);
	peer->anchor = anchor;
	peer->state = SOVIA_PEER_PAIRED;
	if (anchor->active)
		WRITE_ONCE(peer->out, true);
	else
		WRITE_ONCE(peer->in, true);
	sovia_anchor_settle(anchor);
	sovia_stat_inc(peer->snet, peer_up);
	sovia_memory_clear(peer->snet, &peer->pair);
	pr_debug("peer %pI6c - %pI6c paired\n", &peer->pair.local, &peer->pair.remote);
	sovia_peer_wake(peer, 0);
}

/* We may open connections to it, too. */
static void peer_joined(struct sovia_peer *peer)
{
	sovia_peer_drop_anchor(&peer->attempt);
	WRITE_ONCE(peer->out, true);
	sovia_stat_inc(peer->snet, peer_join);
	sovia_memory_clear(peer->snet, &peer->pair);
	sovia_peer_wake(peer, 0);
}

static bool offer_is_acceptable(const struct sovia_offer *offer)
{
	return offer->version_min <= SOVIA_WIRE_VERSION &&
	       offer->version_max >= SOVIA_WIRE_VERSION_MIN;
}

/* The newest version and the features that both have. */
static void peer_agree(struct sovia_peer *peer, const struct sovia_offer *offer)
{
	peer->version = min_t(u8, offer->version_max, SOVIA_WIRE_VERSION);
	peer->features = offer->features & SOVIA_FEATURES;
}

static bool offer_has_addresses(const struct sovia_offer *offer, const struct sovia_pair *pair)
{
	return ipv6_addr_equal(&offer->saddr, &pair->remote) &&
	       ipv6_addr_equal(&offer->daddr, &pair->local);
}

/*
 * Do we wait for the answer to an attempt that counts more than the peer's, or has it made the
 * anchor?  That may be newer than the peer's HELLO.
 */
static bool peer_own_attempt_counts(const struct sovia_peer *peer)
{
	const struct sovia_anchor *ours = peer->attempt ?: peer->anchor;

	return ours && ours->active && sovia_anchor_open(ours) &&
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

/*
 * Is it from the kernel that we know?  Returns SOVIA_RDV_F_JOIN or SOVIA_RDV_F_AGAIN, whichever
 * it gets, or 0.
 */
static u16 hello_continues(struct sovia_peer *peer, const struct sovia_anchor *anchor, u16 flags)
{
	flags &= SOVIA_RDV_F_JOIN | SOVIA_RDV_F_AGAIN;
	if (!flags || peer->state == SOVIA_PEER_NONE)
		return 0;
	if (!sovia_secret_signed(&peer->secret, anchor->in, anchor->in_len)) {
		sovia_stat_inc(anchor->snet, bad_mac);
		return 0;
	}
	/* It may not know yet that its anchor is lost. */
	return flags & SOVIA_RDV_F_JOIN && peer->anchor ? SOVIA_RDV_F_JOIN : SOVIA_RDV_F_AGAIN;
}

/* Documentation/rendezvous.rst: Decisions on a HELLO. */
static enum sovia_rdv_code hello_decide(struct sovia_anchor *anchor,
					const struct sovia_rdv_msg *msg, struct sovia_peer **found,
					u16 *flags)
{
	struct sovia_net *snet = anchor->snet;
	struct sovia_peer *peer;

	*flags = 0;
	*found = NULL;
	if (!offer_has_addresses(&msg->offer, &anchor->pair))
		return SOVIA_RDV_NAT;
	if (!offer_is_acceptable(&msg->offer))
		return SOVIA_RDV_NO_VERSION;
	if (!sovia_rules_admit_peer(snet, &anchor->pair))
		return SOVIA_RDV_DENIED;
	if (!READ_ONCE(snet->listening))
		return SOVIA_RDV_IDLE;
	if (!sovia_peer_has_way(snet->net, &anchor->pair))
		return SOVIA_RDV_NO_WAY;
	peer = sovia_peer_get(snet, &anchor->pair);
	if (!peer)
		return SOVIA_RDV_BUSY;
	*found = peer;
	*flags = hello_continues(peer, anchor, msg->offer.flags);
	if (*flags & SOVIA_RDV_F_JOIN)
		return SOVIA_RDV_OK;
	if (!*flags && !peer_is_gone(peer))
		return SOVIA_RDV_BUSY;
	if (!peer_own_attempt_counts(peer))
		return SOVIA_RDV_OK;
	/* If the anchor is lost, this finds out. */
	if (peer->anchor)
		sovia_peer_doubt(peer);
	return SOVIA_RDV_CROSSED;
}

static void answer_build(const struct sovia_anchor *anchor, struct sovia_rdv_msg *answer,
			 enum sovia_rdv_code code, u16 flags)
{
	*answer = (struct sovia_rdv_msg){
		.type = SOVIA_RDV_ANSWER, .code = code, .nkeys = 1, .has_mac = true,
		.retry_ms = code == SOVIA_RDV_BUSY ? MEET_BUSY_MS : 0,
	};
	sovia_peer_offer(anchor->snet, &anchor->pair, &answer->offer, flags);
}

static void peer_welcome(struct sovia_peer *peer, struct sovia_anchor *anchor,
			 const struct sovia_rdv_msg *msg, unsigned int len, u16 flags)
{
	struct sovia_secret secret;

	/* Its connection has shown that it may open others, and is needed no more. */
	if (flags & SOVIA_RDV_F_JOIN) {
		WRITE_ONCE(peer->in, true);
		sovia_stat_inc(peer->snet, peer_join);
		sovia_secret_sign(&peer->secret, anchor->out, len);
		return;
	}
	sovia_peer_drop_anchor(&peer->attempt);
	if (!flags) {
		peer_forget(peer);
		peer_agree(peer, &msg->offer);
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
	u16 flags;

	if (anchor->active || anchor->peer) {
		sovia_anchor_shut(anchor);
		return;
	}
	code = hello_decide(anchor, msg, &peer, &flags);
	answer_build(anchor, &answer, code, flags);
	len = sovia_rdv_build(anchor->out, &answer);
	/* The connection of a refusal is the peer's to end, or the deadline's. */
	if (code == SOVIA_RDV_OK)
		peer_welcome(peer, anchor, msg, len, flags);
	else
		sovia_stat_inc(anchor->snet, peer_refused);
	sovia_anchor_send(anchor, len);
}

/* Our attempt has ended without success: again after @delay, or if that is 0, fail. */
static void peer_attempt_over(struct sovia_peer *peer, unsigned long delay, int err)
{
	sovia_peer_drop_anchor(&peer->attempt);
	if (delay)
		sovia_peer_set_timer(peer, delay);
	else
		sovia_peer_wake(peer, err);
}

/**
 * sovia_peer_moved() - our address is not ours any more
 * @peer: a peer of it
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_peer_moved(struct sovia_peer *peer)
{
	if (peer->attempt)
		peer_attempt_over(peer, 0, -EADDRNOTAVAIL);
	sovia_peer_drop_anchor(&peer->anchor);
	if (peer->state == SOVIA_PEER_PAIRED)
		peer_leave(peer, SOVIA_PEER_UNANCHORED);
}

static void peer_refused(struct sovia_peer *peer, const struct sovia_rdv_msg *msg)
{
	unsigned int wait = clamp(msg->retry_ms, MEET_RETRY_MS_MIN, MEET_RETRY_MS_MAX);

	if (msg->code == SOVIA_RDV_BUSY) {
		peer_attempt_over(peer, msecs_to_jiffies(wait), 0);
		return;
	}
	if (msg->code == SOVIA_RDV_CROSSED) {
		peer_attempt_over(peer, MEET_CROSSED, 0);
		return;
	}
	pr_notice_ratelimited("peer %pI6c refuses: %s\n", &peer->pair.remote,
			      msg->code < SOVIA_RDV_CODES ? code_names[msg->code] : "?");
	if (msg->code == SOVIA_RDV_NO_WAY)
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_MEMORY_WAY);
	else if (msg->code == SOVIA_RDV_DENIED)
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_MEMORY_SILENT);
	/* Programs that are just being started there are no reason for TCP. */
	else if (msg->code != SOVIA_RDV_IDLE)
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_MEMORY_REFUSED);
	peer_attempt_over(peer, 0, -ECONNREFUSED);
}

static void peer_answered(struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg)
{
	struct sovia_peer *peer = anchor->peer;
	struct sovia_secret secret;
	u16 flags = 0;

	if (!peer || peer->attempt != anchor) {
		sovia_anchor_shut(anchor);
		return;
	}
	if (msg->code != SOVIA_RDV_OK) {
		peer_refused(peer, msg);
		return;
	}
	if (peer->state != SOVIA_PEER_NONE)
		flags = msg->offer.flags & (SOVIA_RDV_F_JOIN | SOVIA_RDV_F_AGAIN);
	if (flags)
		secret = peer->secret;
	else
		sovia_secret_derive(&secret, anchor->out, anchor->out_len, anchor->in,
				    anchor->in_len - SOVIA_RDV_MAC_LEN);
	if (!sovia_secret_signed(&secret, anchor->in, anchor->in_len) ||
	    !offer_has_addresses(&msg->offer, &anchor->pair) ||
	    !offer_is_acceptable(&msg->offer)) {
		sovia_stat_inc(anchor->snet, bad_mac);
		peer_attempt_over(peer, 0, -ECONNREFUSED);
	} else if (flags & SOVIA_RDV_F_JOIN && peer->anchor) {
		peer_joined(peer);
	} else if (flags & SOVIA_RDV_F_JOIN) {
		peer_attempt_over(peer, MEET_RETRY, 0);
	} else if (!flags && !peer_is_gone(peer)) {
		peer_attempt_over(peer, msecs_to_jiffies(MEET_BUSY_MS), 0);
	} else {
		peer->attempt = NULL;
		if (!flags) {
			peer_forget(peer);
			peer_agree(peer, &msg->offer);
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
		return MEET_RETRY;
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
	unsigned long delay;

	if (!peer)
		return;
	anchor->peer = NULL;
	if (peer->attempt == anchor) {
		delay = peer_retry_delay(anchor->err);
		if (!delay)
			sovia_memory_learn(peer->snet, &peer->pair, SOVIA_MEMORY_SILENT);
		peer_attempt_over(peer, delay, anchor->err);
	} else if (peer->anchor == anchor) {
		peer->anchor = NULL;
		peer_leave(peer, SOVIA_PEER_UNANCHORED);
		sovia_anchor_put(anchor);
		pr_debug("peer %pI6c - %pI6c lost its anchor: %d\n", &peer->pair.local,
			 &peer->pair.remote, anchor->err);
	}
	sovia_peer_put(peer);
	sovia_peers_tidy(anchor->snet);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/peer_test.c"
#endif

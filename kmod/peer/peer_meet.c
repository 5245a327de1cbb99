// SPDX-License-Identifier: GPL-2.0-only
/*
 * What kernels say to each other over an anchor, and what follows from it: the decisions of
 * Documentation/rendezvous.rst.  All of this belongs to the connection thread.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <net/ipv6.h>
#include "near.h"
#include "peer.h"
#include "peer_meet.h"
#include "peer_memory.h"
#include "peer_pair.h"
#include "peer_way.h"
#include "policy/rule.h"

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
	const struct sovia_peering *peering;

	list_for_each_entry(peering, &peer->users, node)
		if (sovia_peer_ops->is_up(peering))
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
	struct sovia_peering *peering;

	if (peer->anchor)
		peer_ping(peer->anchor, SOVIA_RDV_PING, 0);
	list_for_each_entry(peering, &peer->users, node)
		sovia_peer_ops->doubt(peering);
}

static bool offer_is_acceptable(const struct sovia_offer *offer)
{
	return offer->version_min <= SOVIA_WIRE_VERSION &&
	       offer->version_max >= SOVIA_WIRE_VERSION_MIN;
}

static bool offer_has_addresses(const struct sovia_offer *offer, const struct sovia_pair *pair)
{
	return ipv6_addr_equal(&offer->saddr, &pair->remote) &&
	       ipv6_addr_equal(&offer->daddr, &pair->local);
}

static bool peer_own_attempts_win(const struct sovia_peer *peer)
{
	return memcmp(&peer->pair.local, &peer->pair.remote, sizeof(peer->pair.local)) < 0;
}

/*
 * Do we wait for the answer to an attempt that counts more than the peer's, or has it made the
 * anchor?  That may be newer than the peer's HELLO.
 */
static bool peer_own_attempt_counts(const struct sovia_peer *peer)
{
	const struct sovia_anchor *ours = peer->attempt ?: peer->anchor;

	return ours && ours->active && sovia_anchor_open(ours) && peer_own_attempts_win(peer);
}

/* Accept another instance of a peer's kernel only if the one before is dead: is it? */
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

/**
 * struct verdict - on a HELLO
 * @peer: the peer, if the code is OK
 * @flags: SOVIA_RDV_F_JOIN, SOVIA_RDV_F_AGAIN, or 0: another secret
 * @near: it came from another namespace of this kernel
 * @clan: there is memory that both kernels have
 * @ours: this kernel's end of that
 * @theirs: the peer's, or none
 * @key: the key that is taken, or none
 * @key_secret: its secret
 */
struct verdict {
	struct sovia_peer	*peer;
	u16			flags;
	bool			near;
	bool			clan;
	struct sovia_way	ours;
	struct sovia_clan_way	theirs;
	struct sovia_key_use	key;
	struct sovia_secret	key_secret;
};

static enum sovia_rdv_code peer_decide(struct sovia_peer *peer, const struct sovia_anchor *anchor,
				       const struct sovia_rdv_msg *msg, struct verdict *verdict)
{
	verdict->peer = peer;
	sovia_peer_check_key(peer);
	verdict->flags = hello_continues(peer, anchor, msg->offer.flags);
	if (verdict->flags & SOVIA_RDV_F_JOIN)
		return SOVIA_RDV_OK;
	if (!verdict->flags && !peer_is_gone(peer))
		return SOVIA_RDV_BUSY;
	if (!peer_own_attempt_counts(peer))
		return SOVIA_RDV_OK;
	/* If the anchor is lost, this finds out. */
	if (peer->anchor)
		sovia_peer_doubt(peer);
	return SOVIA_RDV_CROSSED;
}

/* Documentation/rendezvous.rst: Decisions on a HELLO. */
static enum sovia_rdv_code hello_decide(struct sovia_anchor *anchor,
					const struct sovia_rdv_msg *msg, struct verdict *verdict)
{
	struct sovia_net *snet = anchor->snet;
	struct sovia_peer *peer;

	memset(verdict, 0, sizeof(*verdict));
	if (!offer_has_addresses(&msg->offer, &anchor->pair))
		return SOVIA_RDV_NAT;
	if (!offer_is_acceptable(&msg->offer))
		return SOVIA_RDV_NO_VERSION;
	if (sovia_keys_take(snet, &anchor->pair, msg->keys, msg->nkeys, &verdict->key,
			    &verdict->key_secret))
		return SOVIA_RDV_NO_KEY;
	if (!sovia_rules_admit_peer(snet, &anchor->pair))
		return SOVIA_RDV_DENIED;
	if (!READ_ONCE(snet->listening))
		return SOVIA_RDV_IDLE;
	verdict->near = sovia_near_meet(anchor, msg->offer.nonce);
	verdict->clan = sovia_peer_choose_way(snet->net, &msg->offer, &verdict->ours,
					      &verdict->theirs);
	if (!verdict->near && !verdict->clan && !sovia_peer_has_device(snet->net, &anchor->pair))
		return SOVIA_RDV_NO_WAY;
	peer = sovia_peer_get(snet, &anchor->pair);
	return peer ? peer_decide(peer, anchor, msg, verdict) : SOVIA_RDV_BUSY;
}

static void answer_build(const struct sovia_anchor *anchor, struct sovia_rdv_msg *answer,
			 enum sovia_rdv_code code, const struct verdict *verdict)
{
	*answer = (struct sovia_rdv_msg){
		.type = SOVIA_RDV_ANSWER, .code = code, .nkeys = 1, .has_mac = true,
		.retry_ms = code == SOVIA_RDV_BUSY ? MEET_BUSY_MS : 0,
	};
	if (code == SOVIA_RDV_OK)
		answer->keys[0] = verdict->key.id;
	sovia_peer_offer(anchor->snet, &anchor->pair, &answer->offer, verdict->flags);
	if (code == SOVIA_RDV_OK && verdict->clan) {
		answer->offer.ways[0] = verdict->ours;
		answer->offer.nways = 1;
	}
}

/* The newest version and the features that both have, and the secret but for its messages. */
static void meet_agree(struct sovia_agreement *agreed, const struct sovia_offer *offer,
		       const struct sovia_key_use *key)
{
	agreed->version = min_t(u8, offer->version_max, SOVIA_WIRE_VERSION);
	agreed->features = offer->features & SOVIA_FEATURES;
	agreed->key = *key;
}

static void peer_take_anchor(struct sovia_peer *peer, struct sovia_anchor *anchor)
{
	sovia_peer_drop_anchor(&peer->attempt);
	kref_get(&peer->kref);
	anchor->peer = peer;
	sovia_peer_paired(peer, anchor);
}

/*
 * With a key nothing changes before the asker has shown that it has it: HELLO and ANSWER can be
 * had without.
 */
static void peer_welcome(struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg,
			 unsigned int len, const struct verdict *verdict)
{
	struct sovia_agreement *agreed = &anchor->agreed;
	struct sovia_peer *peer = verdict->peer;

	if (!verdict->flags) {
		meet_agree(agreed, &msg->offer, &verdict->key);
		agreed->way = verdict->theirs;
		sovia_secret_derive(&agreed->secret, &verdict->key_secret, anchor->in,
				    anchor->in_len, anchor->out, len - SOVIA_RDV_MAC_LEN);
		sovia_secret_sign(&agreed->secret, anchor->out, len);
		anchor->pending = verdict->key.serial;
		if (anchor->pending)
			return;
		sovia_peer_adopt(peer, agreed);
	} else {
		peer->way = verdict->theirs;
		sovia_secret_sign(&peer->secret, anchor->out, len);
	}
	/* JOIN has proved the right to open connections: its own TCP connection may close. */
	if (verdict->flags & SOVIA_RDV_F_JOIN)
		sovia_peer_joined(peer, false);
	else
		peer_take_anchor(peer, anchor);
}

static void peer_heard(struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg)
{
	struct sovia_rdv_msg answer;
	enum sovia_rdv_code code;
	struct verdict verdict;
	unsigned int len;

	if (anchor->active || anchor->peer || anchor->pending) {
		sovia_anchor_shut(anchor);
		return;
	}
	code = hello_decide(anchor, msg, &verdict);
	answer_build(anchor, &answer, code, &verdict);
	len = sovia_rdv_build(anchor->out, &answer);
	/* After a refusal the peer closes the connection; if not, the deadline does. */
	if (code == SOVIA_RDV_OK)
		peer_welcome(anchor, msg, len, &verdict);
	else
		sovia_stat_inc(anchor->snet, peer_refused);
	if (code == SOVIA_RDV_OK && verdict.near)
		sovia_near_announce(anchor, verdict.peer, answer.offer.nonce);
	sovia_anchor_send(anchor, len);
	memzero_explicit(&verdict, sizeof(verdict));
}

/*
 * Does an exchange of the peer count, now that it is proved?  Since its HELLO one of ours may
 * have succeeded: of two that crossed, both ends keep that of the lower address.
 */
static bool peer_may_take(struct sovia_peer *peer)
{
	const struct sovia_anchor *ours = peer->anchor;

	if (ours && ours->active && !peer_own_attempts_win(peer))
		return !peer_has_up_link(peer);
	return peer_is_gone(peer);
}

static void peer_confirmed(struct sovia_anchor *anchor)
{
	struct sovia_agreement *agreed = &anchor->agreed;
	struct sovia_peer *peer = NULL;
	bool proved;

	proved = anchor->pending &&
		 sovia_secret_signed(&agreed->secret, anchor->in, anchor->in_len);
	if (anchor->pending && !proved)
		sovia_stat_inc(anchor->snet, bad_mac);
	anchor->pending = false;
	if (proved && sovia_keys_permit(anchor->snet, &anchor->pair, &agreed->key))
		peer = sovia_peer_get(anchor->snet, &anchor->pair);
	if (peer && sovia_near_announced(anchor, peer) && peer_may_take(peer)) {
		sovia_peer_adopt(peer, agreed);
		peer_take_anchor(peer, anchor);
	} else {
		sovia_anchor_shut(anchor);
	}
	memzero_explicit(agreed, sizeof(*agreed));
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
		sovia_peer_attempt_over(peer, 0, -EADDRNOTAVAIL);
	sovia_peer_anew(peer);
}

static void peer_refused(struct sovia_peer *peer, u16 code, u32 retry_ms)
{
	unsigned int wait = clamp(retry_ms, MEET_RETRY_MS_MIN, MEET_RETRY_MS_MAX);

	if (code == SOVIA_RDV_BUSY) {
		sovia_peer_attempt_over(peer, msecs_to_jiffies(wait), 0);
		return;
	}
	if (code == SOVIA_RDV_CROSSED) {
		sovia_peer_attempt_over(peer, MEET_CROSSED, 0);
		return;
	}
	pr_notice_ratelimited("peer %pI6c refuses: %s\n", &peer->pair.remote,
			      code < SOVIA_RDV_CODES ? code_names[code] : "?");
	if (code == SOVIA_RDV_NO_WAY)
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_WAY);
	else if (code == SOVIA_RDV_DENIED)
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_DENIED);
	/* IDLE is transient, as while programs start there: do not remember it. */
	else if (code != SOVIA_RDV_IDLE)
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_REFUSED);
	sovia_peer_attempt_over(peer, 0, -ECONNREFUSED);
}

/* Returns 0 or -ENOKEY. */
static int answer_agree(const struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg,
			struct sovia_agreement *agreed)
{
	struct sovia_secret key_secret;
	struct sovia_key_use key;
	int err;

	err = sovia_keys_take(anchor->snet, &anchor->pair, msg->keys, msg->keys[0] ? 1 : 0, &key,
			      &key_secret);
	if (err)
		return err;
	meet_agree(agreed, &msg->offer, &key);
	sovia_secret_derive(&agreed->secret, &key_secret, anchor->out, anchor->out_len, anchor->in,
			    anchor->in_len - SOVIA_RDV_MAC_LEN);
	memzero_explicit(&key_secret, sizeof(key_secret));
	return 0;
}

/* HELLO has been sent, or there would be no answer. */
static void peer_confirm(struct sovia_anchor *anchor, const struct sovia_secret *secret)
{
	const struct sovia_rdv_msg msg = { .type = SOVIA_RDV_CONFIRM, .has_mac = true };
	unsigned int len = sovia_rdv_build(anchor->out, &msg);

	sovia_secret_sign(secret, anchor->out, len);
	sovia_anchor_send(anchor, len);
}

/* Another secret: of a kernel that we did not know. */
static void peer_answered_anew(struct sovia_peer *peer, struct sovia_anchor *anchor,
			       const struct sovia_agreement *agreed)
{
	if (!peer_is_gone(peer)) {
		sovia_peer_attempt_over(peer, msecs_to_jiffies(MEET_BUSY_MS), 0);
		return;
	}
	if (agreed->key.serial)
		peer_confirm(anchor, &agreed->secret);
	peer->attempt = NULL;
	sovia_peer_adopt(peer, agreed);
	sovia_peer_paired(peer, anchor);
	sovia_anchor_put(anchor);
}

/* The one that we have. */
static void peer_answered_again(struct sovia_peer *peer, struct sovia_anchor *anchor, u16 flags)
{
	if (flags & SOVIA_RDV_F_JOIN && peer->anchor) {
		sovia_peer_joined(peer, true);
	} else if (flags & SOVIA_RDV_F_JOIN) {
		sovia_peer_attempt_over(peer, MEET_RETRY, 0);
	} else {
		peer->attempt = NULL;
		sovia_peer_paired(peer, anchor);
		sovia_anchor_put(anchor);
	}
}

static void peer_answered_well(struct sovia_peer *peer, struct sovia_anchor *anchor,
			       const struct sovia_agreement *agreed, u16 flags)
{
	if (!anchor->twin && !agreed->way.generation &&
	    !sovia_peer_has_device(peer->snet->net, &peer->pair)) {
		sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_DEVICE);
		sovia_peer_attempt_over(peer, 0, -ENODEV);
	} else if (flags) {
		peer->way = agreed->way;
		peer_answered_again(peer, anchor, flags);
	} else {
		peer_answered_anew(peer, anchor, agreed);
	}
}

static void peer_answered(struct sovia_anchor *anchor, const struct sovia_rdv_msg *msg)
{
	struct sovia_agreement agreed = {};
	struct sovia_peer *peer = anchor->peer;
	u16 flags = 0;

	if (!peer || peer->attempt != anchor) {
		sovia_anchor_shut(anchor);
		return;
	}
	if (msg->code != SOVIA_RDV_OK) {
		peer_refused(peer, msg->code, msg->retry_ms);
		return;
	}
	/* The attempt ends with the peer. */
	if (!sovia_peer_check_key(peer))
		return;
	if (peer->state != SOVIA_PEER_NONE)
		flags = msg->offer.flags & (SOVIA_RDV_F_JOIN | SOVIA_RDV_F_AGAIN);
	if (flags) {
		agreed.secret = peer->secret;
	} else if (answer_agree(anchor, msg, &agreed)) {
		peer_refused(peer, SOVIA_RDV_NO_KEY, 0);
		return;
	}
	if (!sovia_secret_signed(&agreed.secret, anchor->in, anchor->in_len) ||
	    !offer_has_addresses(&msg->offer, &anchor->pair) ||
	    !offer_is_acceptable(&msg->offer)) {
		sovia_stat_inc(anchor->snet, bad_mac);
		sovia_peer_attempt_over(peer, 0, -ECONNREFUSED);
	} else {
		sovia_near_meet(anchor, msg->offer.nonce);
		sovia_peer_take_way(peer->snet->net, &msg->offer, &agreed.way);
		peer_answered_well(peer, anchor, &agreed, flags);
	}
	memzero_explicit(&agreed, sizeof(agreed));
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
	case SOVIA_RDV_CONFIRM:
		peer_confirmed(anchor);
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
 * Context: connection thread.
 */
void sovia_peer_lost(struct sovia_anchor *anchor)
{
	struct sovia_peer *peer = anchor->peer;
	unsigned long delay;

	sovia_near_withdraw(anchor);
	if (!peer)
		return;
	anchor->peer = NULL;
	if (peer->attempt == anchor) {
		delay = peer_retry_delay(anchor->err);
		if (!delay)
			sovia_memory_learn(peer->snet, &peer->pair, SOVIA_WHY_SILENT);
		sovia_peer_attempt_over(peer, delay, anchor->err);
	} else if (peer->anchor == anchor) {
		peer->anchor = NULL;
		sovia_peer_leave(peer, SOVIA_PEER_UNANCHORED);
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

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The VI of a link: made for it, and ended, by the provider, while the connection thread
 * does other things.  See Documentation/locking.rst.
 *
 *	       connect, accept          end                   ended
 *	NONE -------------------> LIVE --------> ENDING -------------------> NONE
 *
 * A link has one VI at most.  link->vi is set until it has ended, lane.vi only while it may
 * be used.  What asks for a VI until then waits: link->wanted for an attempt of ours,
 * link->deferred for a request of the peer.
 */
#include <net/ipv6.h>
#include "debug/fault.h"
#include "lane/lane.h"
#include "lane/lane_rx.h"
#include "link_peer.h"
#include "link_request.h"
#include "link_slot.h"
#include "link_state.h"
#include "link_vi.h"
#include "peer/near.h"
#include "peer/peer.h"
#include "peer/peer_hello.h"
#include "peer/peer_way.h"
#include "policy/tos.h"

/* ---- upcalls of the VI that is set up ------------------------------------- */

static int link_seal(struct sovia_vi *vi, const struct sovia_path *path, struct sovia_hello *hello)
{
	struct sovia_link *link = sovia_link_of(vi->context);
	struct sovia_peer *peer = link->peering.peer;

	if (!peer)
		return 0;
	link->path = *path;
	return sovia_peer_seal(peer, READ_ONCE(link->lane.active), path, &link->generation, hello);
}

static struct net *link_beyond(struct sovia_vi *vi, struct sovia_pair *pair)
{
	struct sovia_link *link = sovia_link_of(vi->context);

	return sovia_near_beyond(link->peering.peer, &link->pair, pair);
}

static void link_way(struct sovia_vi *vi, struct sovia_clan_way *way)
{
	*way = sovia_link_of(vi->context)->peering.peer->way;
}

static void link_established(struct sovia_vi *vi, const struct sovia_hello *hello,
			     unsigned int hello_len)
{
	struct sovia_link *link = sovia_link_of(vi->context);
	struct sovia_peer *peer = link->peering.peer;
	struct sovia_params params;
	int err;

	err = sovia_lane_parse_hello(&link->lane, hello, hello_len, &params);
	if (!err && READ_ONCE(link->lane.active) && peer)
		err = sovia_peer_check_reply(peer, &link->path, link->generation, hello);
	sovia_lane_established(&link->lane, vi, &params, err);
}

static void link_closed(struct sovia_vi *vi, int err)
{
	sovia_lane_fail(vi->context, err);
}

static void link_doubted(struct sovia_vi *vi)
{
	sovia_link_event(sovia_link_of(vi->context), SOVIA_LINK_EV_DOUBT);
}

static void link_vi_gone(struct sovia_vi *vi)
{
	sovia_link_event(sovia_link_of(vi->context), SOVIA_LINK_EV_ENDED);
}

static const struct sovia_vi_client link_vi_client = {
	.seal		= link_seal,
	.beyond		= link_beyond,
	.way		= link_way,
	.established	= link_established,
	.closed		= link_closed,
	.doubted	= link_doubted,
	.receive	= sovia_lane_receive,
	.send_done	= sovia_lane_send_done,
	.rx_unposted	= sovia_lane_rx_unposted,
	.rx_grown	= sovia_lane_rx_grown,
	.ended		= link_vi_gone,
};

/* ---- making and ending it -------------------------------------------------- */

static void link_set_version(struct sovia_link *link)
{
	const struct sovia_peer *peer = link->peering.peer;
	struct sovia_lane *lane = &link->lane;

	if (!peer)
		return;
	lane->version = peer->version;
	lane->trial = !lane->prov->in_memory && peer->features & SOVIA_FEATURE_TRIAL;
	lane->parks = !lane->prov->in_memory && peer->features & SOVIA_FEATURE_PARK &&
		      !ipv6_addr_equal(&link->pair.local, &link->pair.remote);
	lane->grows = lane->prov->post_more && peer->features & SOVIA_FEATURE_GROW;
}

static void link_set_vi(struct sovia_link *link, struct sovia_vi *vi)
{
	if (IS_ERR(vi)) {
		sovia_slot_put(link);
		sovia_lane_fail(&link->lane, PTR_ERR(vi));
		return;
	}
	/* Put by sovia_link_vi_ended(). */
	sovia_link_ref(link);
	link->vi = vi;
	spin_lock_bh(&link->lane.lock);
	link->lane.vi = vi;
	spin_unlock_bh(&link->lane.lock);
}

/* How often a link that waits for a slot looks whether its connections are still there. */
#define SOVIA_LINK_SLOT_WAIT	(2 * HZ)

/* The provider may change between VIs: without one nothing reads it. */
static void link_set_prov(struct sovia_link *link, const struct sovia_provider *prov)
{
	if (link->lane.prov->introduced && prov->introduced &&
	    (link->lane.prov->in_memory || prov->in_memory))
		WRITE_ONCE(link->lane.prov, prov);
}

static bool link_may_start(struct sovia_link *link)
{
	if (link->state == SOVIA_LINK_RECOVERING)
		return sovia_slot_get(link, SOVIA_SLOT_RECOVERY);
	if (sovia_slot_get(link, SOVIA_SLOT_USER))
		return true;
	sovia_link_set_timer(link, SOVIA_LINK_SLOT_WAIT);
	return false;
}

/**
 * sovia_link_go_on() - start the attempt that a link waits for, unless it must go on waiting
 * @link: in any state
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_go_on(struct sovia_link *link)
{
	struct sovia_vi_attr attr;
	struct sovia_hello hello;
	int err;

	if (!link->wanted || link->vi || link->deferred || !sovia_link_peer_ready(link))
		return;
	if (link->peering.peer)
		link_set_prov(link, sovia_peer_provider(link->peering.peer));
	if (!link_may_start(link))
		return;
	link->wanted = false;
	link_set_version(link);
	err = sovia_lane_prepare(&link->lane, true, link->lane.peer_id);
	if (err) {
		link_set_vi(link, ERR_PTR(err));
		return;
	}
	sovia_lane_vi_attr(&link->lane, &attr);
	attr.tos = sovia_tos(link->snet, &link->pair);
	sovia_lane_hello(&link->lane, &hello);
	link_set_vi(link, sovia_fault_connect(link->lane.prov, link->snet->net, &link->pair, &attr,
					      &hello, &link_vi_client, &link->lane));
}

/**
 * sovia_link_connect() - request a VI from the peer, as soon as that is possible
 * @link: CONNECTING or RECOVERING, without a live VI
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_connect(struct sovia_link *link)
{
	link->wanted = true;
	sovia_link_go_on(link);
}

/* The VI of before has not ended yet.  A peer that asks again has given up its first try. */
static void link_defer(struct sovia_link *link, struct sovia_vi_request *req)
{
	if (link->deferred)
		sovia_link_request_reject(link->deferred, -EAGAIN);
	link->deferred = req;
}

/**
 * sovia_link_accept() - answer a peer's request with a VI
 * @link: CONNECTING or RECOVERING, without a live VI
 * @req: the request; consumed
 * @peer_id: of the peer's end of the link
 *
 * If the previous VI has not ended yet, the request waits and is decided again then.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_accept(struct sovia_link *link, struct sovia_vi_request *req, u64 peer_id)
{
	struct net *net = req->net;
	struct sovia_vi_attr attr;
	struct sovia_hello hello;
	int err;

	if (link->vi) {
		link_defer(link, req);
		return;
	}
	link_set_prov(link, req->prov);
	sovia_slot_get(link, SOVIA_SLOT_PEER);
	link->generation = be32_to_cpu(req->hello.generation);
	link_set_version(link);
	err = sovia_lane_prepare(&link->lane, false, peer_id);
	if (err) {
		sovia_link_request_reject(req, -EBUSY);
		link_set_vi(link, ERR_PTR(err));
		return;
	}
	sovia_lane_vi_attr(&link->lane, &attr);
	sovia_lane_hello(&link->lane, &hello);
	link_set_vi(link, sovia_fault_accept(req, &attr, &hello,
					     &link_vi_client, &link->lane));
	put_net(net);
}

/**
 * sovia_link_drop_vi() - end the VI of a link, and forget that another one is wanted
 * @link: the link
 *
 * No event of the VI but its end follows: lane.dead stays set until another one is made, and
 * its upcalls look at that under the lane's lock.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_drop_vi(struct sovia_link *link)
{
	struct sovia_vi *vi;

	link->wanted = false;
	/* Connections of a link that was UP may wait for their direction, without a VI. */
	if (!sovia_link_lives(link->state))
		link->peering.waits = false;
	link->trial_wait = 0;
	spin_lock_bh(&link->lane.lock);
	vi = link->lane.vi;
	link->lane.vi = NULL;
	link->lane.up = false;
	link->lane.dead = true;
	spin_unlock_bh(&link->lane.lock);
	clear_bit(SOVIA_LINK_EV_TRIAL, &link->events);
	clear_bit(SOVIA_LINK_EV_UP, &link->events);
	clear_bit(SOVIA_LINK_EV_DOWN, &link->events);
	if (vi)
		vi->prov->end(vi);
	/* Otherwise the VI that ends has it. */
	if (!link->vi)
		sovia_slot_put(link);
}

/**
 * sovia_link_decide_deferred() - decide the request that waits on a link, if there is one
 * @link: DOWN, or without a VI
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_decide_deferred(struct sovia_link *link)
{
	struct sovia_vi_request *req = link->deferred;

	link->deferred = NULL;
	if (req)
		sovia_link_request_decide(req);
}

/**
 * sovia_link_vi_ended() - the VI is gone: go on with what waited for that
 * @link: in any state
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_vi_ended(struct sovia_link *link)
{
	link->vi = NULL;
	if (link->state == SOVIA_LINK_PARKED)
		sovia_lane_room_free(&link->lane);
	sovia_slot_put(link);
	sovia_link_decide_deferred(link);
	sovia_link_go_on(link);
	sovia_link_put(link);
}

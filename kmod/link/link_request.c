// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peers' requests for a link, or to resume one, and how they affect an existing link.
 * Received in the provider's upcall, handled in the connection thread.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "core/connd.h"
#include "lane/lane.h"
#include "lane/lane_park.h"
#include "link_park.h"
#include "link_probe.h"
#include "link_recover.h"
#include "link_request.h"
#include "link_slot.h"
#include "link_state.h"
#include "link_table.h"
#include "link_vi.h"
#include "peer/peer.h"
#include "peer/peer_hello.h"

/* Yield an existing link to a request for a fresh one, or return an errno to reject it. */
static int link_yield(struct sovia_link *link, u64 peer_id)
{
	sovia_link_catch_up(link);
	switch (link->state) {
	case SOVIA_LINK_CONNECTING:
		/* lane.active: an unfinished attempt of the peer does not count as ours. */
		if (link->lane.vi && link->lane.active && sovia_link_own_attempt_counts(link))
			return -EAGAIN;
		sovia_link_drop_vi(link);
		sovia_lane_reset(&link->lane);
		return 0;
	case SOVIA_LINK_UP:
		/* From our peer: a simultaneous attempt, overtaken by its answer to ours. */
		if (link->lane.peer_id != peer_id)
			sovia_link_doubt(link);
		return -EAGAIN;
	case SOVIA_LINK_RECOVERING:
	case SOVIA_LINK_PARKED:
		if (link->lane.peer_id == peer_id)
			return -EAGAIN;
		/* The lane is dead, and the peer has lost its end. */
		sovia_link_down(link, -ECONNRESET);
		return 0;
	default:
		return 0;
	}
}

/* The peer asks to resume a link.  Returns an errno to reject with. */
static int request_resume(struct sovia_link *link, const struct sovia_params *params)
{
	if (link->lane.id != params->peer_id || link->lane.peer_id != params->id)
		return -ESTALE;
	sovia_link_catch_up(link);
	switch (link->state) {
	case SOVIA_LINK_CONNECTING:
		/* It was established at the peer and lost again before it was here. */
		sovia_link_drop_vi(link);
		return 0;
	case SOVIA_LINK_RECOVERING:
		if (link->lane.vi && link->lane.active && sovia_link_own_attempt_counts(link))
			return -EAGAIN;
		sovia_link_drop_vi(link);
		break;
	case SOVIA_LINK_UP:
		/* The peer has agreed to park it, which we have not noticed yet. */
		if (sovia_lane_rests(&link->lane)) {
			sovia_link_park(link);
			sovia_link_resume(link);
		} else if (!sovia_link_lose(link, -ECONNRESET)) {
			return -ESTALE;
		}
		break;
	case SOVIA_LINK_PARKED:
		/* It is one more, as a new one would be. */
		if (!sovia_link_peer_may_resume(link)) {
			sovia_link_ask_room(link);
			return -EBUSY;
		}
		sovia_link_resume(link);
		break;
	default:
		return -ESTALE;
	}
	/* If it fails, lane_closed() is called. */
	sovia_link_set_timer(link, sovia_recovery_left(link));
	return 0;
}

static struct sovia_link *link_to_resume(struct sovia_net *snet,
					 const struct sovia_vi_request *req,
					 const struct sovia_params *params, int *err)
{
	struct sovia_link *link = sovia_link_lookup(snet, &req->pair);

	*err = link ? request_resume(link, params) : -ESTALE;
	if (!*err || !link)
		return link;
	sovia_link_put(link);
	return NULL;
}

static struct sovia_link *link_for_request(struct sovia_net *snet,
					   const struct sovia_vi_request *req, u64 peer_id,
					   int *err)
{
	struct sovia_link *link;

	for (;;) {
		link = sovia_link_get(snet, &req->pair, req->prov, INVALID_UID, NULL,
				      GFP_KERNEL);
		*err = link ? link_yield(link, peer_id) : -ENOMEM;
		/* If link_yield() ended the link, get another one. */
		if (!*err && link->state != SOVIA_LINK_DOWN)
			break;
		if (link)
			sovia_link_put(link);
		if (*err)
			return NULL;
	}
	sovia_link_set_state(link, SOVIA_LINK_CONNECTING);
	return link;
}

/**
 * sovia_link_request_reject() - refuse a request
 * @req: the request; consumed
 * @err: why, as of sovia_provider::reject
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_request_reject(struct sovia_vi_request *req, int err)
{
	struct net *net = req->net;

	req->prov->reject(req, err);
	put_net(net);
}

/* Has the last socket of the namespace gone?  It may have ended its links already. */
static bool link_request_late(struct sovia_net *snet)
{
	return !READ_ONCE(snet->listening) && !atomic_read(&snet->socks);
}

/**
 * sovia_link_request_decide() - accept or reject a request, or let it wait on its link
 * @req: the request; consumed
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_request_decide(struct sovia_vi_request *req)
{
	struct sovia_net *snet = sovia_net(req->net);
	struct sovia_params params;
	struct sovia_link *link;
	struct sovia_peer *peer;
	int err;

	if (link_request_late(snet)) {
		sovia_link_request_reject(req, -ECONNREFUSED);
		return;
	}
	err = sovia_hello_parse(&req->hello, req->hello_len, &params);
	if (err) {
		sovia_stat_inc(snet, bad_hello);
		pr_warn_ratelimited("link request of %pI6c: bad hello (%d)\n",
				    &req->pair.remote, err);
		sovia_link_request_reject(req, -EPROTO);
		return;
	}
	err = sovia_peer_check_request(snet, req, params.lane, params.generation, &peer);
	if (!err && peer && params.version != peer->version)
		err = -EPROTO;
	if (err) {
		sovia_link_request_reject(req, err);
		return;
	}
	req->pair.lane = params.lane;
	if (!req->prov->in_memory && !sovia_slot_peer_has_room(snet, &req->pair.remote)) {
		sovia_link_request_reject(req, -EBUSY);
		return;
	}
	if (params.peer_id)
		link = link_to_resume(snet, req, &params, &err);
	else
		link = link_for_request(snet, req, params.id, &err);
	if (!link) {
		sovia_link_request_reject(req, err);
		return;
	}
	if (peer)
		sovia_peer_attach(&link->peering, peer);
	sovia_link_accept(link, req, params.id);
	sovia_link_put(link);
}

static void link_request_work(struct kthread_work *work)
{
	sovia_link_request_decide(container_of(work, struct sovia_vi_request, work));
}

/**
 * sovia_link_request() - a provider's upcall: a peer requests a VI
 * @req: the request; answered by now or later
 *
 * Context: process, may sleep; no locks.
 */
void sovia_link_request(struct sovia_vi_request *req)
{
	get_net(req->net);
	kthread_init_work(&req->work, link_request_work);
	sovia_connd_queue(&req->work);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Links and their peers: when a link may request a VI, and when connections may be opened over it.
 * See Documentation/rendezvous.rst.
 */
#include "link_net.h"
#include "link_peer.h"
#include "link_probe.h"
#include "link_state.h"
#include "peer/peer_memory.h"
#include "peer/peer_way.h"

/* How often a link that waits looks whether its connections are still there. */
#define LINK_PEER_WAIT		(2 * HZ)

/* No more than the link's event. */
static bool peer_ready_failed(struct sovia_link *link, int err)
{
	link->peering.err = err;
	sovia_link_event(link, SOVIA_LINK_EV_PEER);
	return false;
}

/**
 * sovia_link_peer_ready() - may a link request a VI
 * @link: CONNECTING or RECOVERING, without a live VI
 *
 * Its first request needs an introduction of ours; after a loss the secret is enough, unless a way
 * has to be found.
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if so; false if the link waits now: SOVIA_LINK_EV_PEER follows.
 */
bool sovia_link_peer_ready(struct sovia_link *link)
{
	struct sovia_peer *peer = link->peering.peer;

	if (!link->lane.prov->introduced)
		return true;
	if (!peer)
		peer = sovia_peer_get(link->snet, &link->pair);
	if (!peer)
		return peer_ready_failed(link, -ENOMEM);
	sovia_peer_attach(&link->peering, peer);
	if (peer->out || (peer->state != SOVIA_PEER_NONE && link->state == SOVIA_LINK_RECOVERING &&
			  !sovia_peer_lacks_way(peer))) {
		/* Else connections may wait for the direction. */
		if (peer->out) {
			link->peering.waits = false;
			peer->asking = false;
		}
		return true;
	}
	if (!sovia_peer_may_reach(link->snet, &link->pair)) {
		sovia_memory_learn(link->snet, &link->pair, SOVIA_WHY_DEVICE);
		return peer_ready_failed(link, -ENODEV);
	}
	link->peering.waits = true;
	sovia_link_set_timer(link, LINK_PEER_WAIT);
	sovia_peer_go_on(peer);
	return false;
}

/**
 * sovia_link_peer_open() - may connections be opened over a link
 * @link: UP, RECOVERING or PARKED
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if so; false if the link waits now: SOVIA_LINK_EV_PEER follows.
 */
bool sovia_link_peer_open(struct sovia_link *link)
{
	struct sovia_peer *peer = link->peering.peer;

	if (!peer)
		return true;
	if (peer->out) {
		link->peering.waits = false;
		peer->asking = false;
		return true;
	}
	link->peering.waits = true;
	sovia_peer_go_on(peer);
	return false;
}

/* ---- what a peer asks of its links ------------------------------------------ */

static struct sovia_link *link_of(const struct sovia_peering *peering)
{
	return container_of((struct sovia_peering *)peering, struct sovia_link, peering);
}

static void link_peer_wake(struct sovia_peering *peering)
{
	sovia_link_event(link_of(peering), SOVIA_LINK_EV_PEER);
}

static kuid_t link_peer_uid(const struct sovia_peering *peering)
{
	const struct sovia_link *link = link_of(peering);

	return link->wanted ? link->uid : READ_ONCE(link->opener);
}

static bool link_peer_is_up(const struct sovia_peering *peering)
{
	return link_of(peering)->state == SOVIA_LINK_UP;
}

static void link_peer_doubt(struct sovia_peering *peering)
{
	struct sovia_link *link = link_of(peering);

	if (link->state == SOVIA_LINK_UP)
		sovia_link_doubt(link);
}

static void link_peer_end(struct sovia_link *link)
{
	sovia_link_ref(link);
	sovia_link_down(link, -ECONNRESET);
	sovia_link_put(link);
}

static void link_peer_replaced(struct sovia_peering *peering)
{
	struct sovia_link *link = link_of(peering);

	if (link->state == SOVIA_LINK_RECOVERING || link->state == SOVIA_LINK_PARKED)
		link_peer_end(link);
}

static void link_peer_ended(struct sovia_peering *peering)
{
	struct sovia_link *link = link_of(peering);

	if (link->state != SOVIA_LINK_CONNECTING || !peering->waits)
		link_peer_end(link);
}

static const struct sovia_peer_ops link_peer_ops = {
	.wake		= link_peer_wake,
	.uid		= link_peer_uid,
	.is_up		= link_peer_is_up,
	.doubt		= link_peer_doubt,
	.replaced	= link_peer_replaced,
	.ended		= link_peer_ended,
	.listen		= sovia_link_listen,
};

/**
 * sovia_link_peer_init() - have peers call links
 *
 * Context: module init, before there are peers.
 * Return: 0.
 */
int __init sovia_link_peer_init(void)
{
	sovia_peer_register_ops(&link_peer_ops);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: events, for those who listen. */
#include "core/net.h"
#include "genl.h"
#include "genl_event.h"
#include "link/link.h"
#include "peer/peer.h"
#include "sock/tcp_log.h"

/* @put adds the attributes of @object. */
static void send_event(struct net *net, int (*put)(struct sk_buff *skb, const void *object),
		       const void *object)
{
	struct sk_buff *skb;
	void *hdr;

	if (!genl_has_listeners(&sovia_genl, net, SOVIA_GENL_GROUP_EVENTS))
		return;
	skb = genlmsg_new(NLMSG_GOODSIZE, GFP_KERNEL);
	if (!skb)
		return;
	hdr = genlmsg_put(skb, 0, 0, &sovia_genl, 0, SOVIA_CMD_EVENT);
	if (!hdr || put(skb, object)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, hdr);
	genlmsg_multicast_netns(&sovia_genl, net, skb, 0, SOVIA_GENL_GROUP_EVENTS, GFP_KERNEL);
}

/**
 * sovia_event_link() - a link has changed its state
 * @link: the link, with a reference
 *
 * Context: process, may sleep; no link or lane lock.
 */
void sovia_event_link(struct sovia_link *link)
{
	/* Links within the host come and go with their connections. */
	if (!link->prov->local)
		send_event(link->snet->net, sovia_genl_put_link, link);
}

/**
 * sovia_event_peer() - something has become known of a peer
 * @peer: the peer, in its namespace's table
 *
 * Context: connection thread.
 */
void sovia_event_peer(const struct sovia_peer *peer)
{
	send_event(peer->snet->net, sovia_genl_put_peer, peer);
}

/**
 * sovia_event_tcp() - a connection has become TCP's
 * @snet: its namespace
 * @entry: which one, and why
 *
 * Context: process, may sleep.
 */
void sovia_event_tcp(struct sovia_net *snet, const struct sovia_tcp_entry *entry)
{
	send_event(snet->net, sovia_genl_put_tcp, entry);
}

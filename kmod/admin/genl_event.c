// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: events, for those who listen. */
#include "core/event.h"
#include "core/net.h"
#include "genl.h"

/* @put adds the attributes of @object. */
static void genl_send_event(struct net *net, int (*put)(struct sk_buff *skb, const void *object),
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

static int genl_event(struct notifier_block *nb, unsigned long event, void *data)
{
	const struct sovia_event_info *info = data;
	struct net *net = info->snet->net;

	switch (event) {
	case SOVIA_EVENT_LINK:
		genl_send_event(net, sovia_genl_put_link, info->object);
		break;
	case SOVIA_EVENT_PEER:
		genl_send_event(net, sovia_genl_put_peer, info->object);
		break;
	case SOVIA_EVENT_TCP:
		genl_send_event(net, sovia_genl_put_tcp, info->object);
		break;
	}
	return NOTIFY_DONE;
}

struct notifier_block sovia_genl_events = { .notifier_call = genl_event };

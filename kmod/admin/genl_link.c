// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: links. */
#include <net/sock.h>
#include "genl.h"
#include "link/link_conns.h"
#include "link/link_table.h"

/**
 * struct lane_snapshot - what is read under a lane's lock
 * @version: of the wire format
 * @payload: largest payload
 * @window: messages that may be unacknowledged
 * @window_max: how far this end lets its own grow
 * @flight: messages that are
 * @has_tos: it is known what type of service its packets have
 * @tos: which one
 * @count: what has been sent and received
 */
struct lane_snapshot {
	u8			version;
	u32			payload;
	u32			window;
	u32			window_max;
	u32			flight;
	bool			has_tos;
	u8			tos;
	struct sovia_lane_count	count;
};

static void take_snapshot(struct sovia_lane *lane, struct lane_snapshot *snapshot)
{
	spin_lock_bh(&lane->lock);
	*snapshot = (struct lane_snapshot) {
		.version = lane->version,
		.payload = lane->payload,
		.window = lane->credit.window,
		.window_max = lane->credit.limit,
		.flight = sovia_credit_flight(&lane->credit),
		.has_tos = lane->up && lane->vi->has_tos,
		.tos = lane->up ? lane->vi->tos : 0,
		.count = lane->count,
	};
	spin_unlock_bh(&lane->lock);
}

static int put_count(struct sk_buff *skb, const struct sovia_lane_count *count)
{
	const struct {
		int	attribute;
		u64	value;
	} counts[] = {
		{ SOVIA_A_LINK_TX_MSGS, count->tx_msgs },
		{ SOVIA_A_LINK_TX_BYTES, count->tx_bytes },
		{ SOVIA_A_LINK_RX_MSGS, count->rx_msgs },
		{ SOVIA_A_LINK_RX_BYTES, count->rx_bytes },
		{ SOVIA_A_LINK_TX_ACKS, count->tx_acks },
		{ SOVIA_A_LINK_STALLS, count->stalls },
		{ SOVIA_A_LINK_RETRANSMITS, count->retransmits },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		if (nla_put_u64_64bit(skb, counts[i].attribute, counts[i].value, SOVIA_A_LINK_PAD))
			return -EMSGSIZE;
	return 0;
}

static int put_lane(struct sk_buff *skb, struct sovia_lane *lane)
{
	u32 idle = jiffies_to_msecs(jiffies - READ_ONCE(lane->rx_time));
	struct lane_snapshot snapshot;

	take_snapshot(lane, &snapshot);
	if (nla_put_u8(skb, SOVIA_A_LINK_VERSION, snapshot.version) ||
	    nla_put_u32(skb, SOVIA_A_LINK_PAYLOAD, snapshot.payload) ||
	    nla_put_u32(skb, SOVIA_A_LINK_WINDOW, snapshot.window) ||
	    nla_put_u32(skb, SOVIA_A_LINK_WINDOW_MAX, snapshot.window_max) ||
	    nla_put_u32(skb, SOVIA_A_LINK_FLIGHT, snapshot.flight) ||
	    (snapshot.has_tos && nla_put_u8(skb, SOVIA_A_LINK_TOS, snapshot.tos)) ||
	    (snapshot.count.rx_msgs && nla_put_u32(skb, SOVIA_A_LINK_IDLE, idle)))
		return -EMSGSIZE;
	return put_count(skb, &snapshot.count);
}

static int put_rights(struct sk_buff *skb, const struct sovia_link *link)
{
	u64 key = sovia_link_key(link);

	if ((key && nla_put_u64_64bit(skb, SOVIA_A_LINK_KEY, key, SOVIA_A_LINK_PAD)) ||
	    (sovia_link_may_open(link) && nla_put_flag(skb, SOVIA_A_LINK_OUT)) ||
	    (sovia_link_takes_requests(link) && nla_put_flag(skb, SOVIA_A_LINK_IN)))
		return -EMSGSIZE;
	return 0;
}

/**
 * sovia_genl_put_link() - add a link to a message
 * @skb: the message
 * @object: the link, with a reference
 *
 * Context: process; no link or lane lock.
 * Return: 0 or -EMSGSIZE.
 */
int sovia_genl_put_link(struct sk_buff *skb, const void *object)
{
	/* Its locks are taken. */
	struct sovia_link *link = (struct sovia_link *)object;
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_LINK);

	if (!nest || nla_put_u32(skb, SOVIA_A_LINK_ID, link->id) ||
	    nla_put_string(skb, SOVIA_A_LINK_STATE,
			   sovia_link_state_name(READ_ONCE(link->state))) ||
	    sovia_genl_put_pair(skb, &link->pair, SOVIA_A_LINK_LOCAL) ||
	    nla_put_string(skb, SOVIA_A_LINK_WAY, link->lane.prov->name) ||
	    nla_put_u32(skb, SOVIA_A_LINK_LANE, link->pair.lane) ||
	    nla_put_u32(skb, SOVIA_A_LINK_CONNS, READ_ONCE(link->conn_count)) ||
	    put_rights(skb, link) || put_lane(skb, &link->lane))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * sovia_genl_link_dump() - SOVIA_CMD_LINK_GET
 * @skb: the reply
 * @cb: of the request; args[0] is the next number
 *
 * Context: process, may sleep.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_link_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct sovia_net *snet = sovia_net(sock_net(skb->sk));
	unsigned long id = cb->args[0];
	struct sovia_link *link;
	int err;

	while ((link = sovia_link_from(snet, &id))) {
		err = sovia_genl_put(skb, cb, SOVIA_CMD_LINK_GET, sovia_genl_put_link, link);
		sovia_link_put(link);
		cb->args[0] = id;
		if (err)
			return skb->len ?: err;
		id++;
	}
	cb->args[0] = LONG_MAX;
	return skb->len;
}

/**
 * sovia_genl_link_flush() - SOVIA_CMD_LINK_FLUSH
 * @skb: the request
 * @info: of it
 *
 * The connection thread ends those that no connection uses then.
 *
 * Context: process, may sleep.
 * Return: 0.
 */
int sovia_genl_link_flush(struct sk_buff *skb, struct genl_info *info)
{
	struct sovia_net *snet = sovia_net(genl_info_net(info));
	struct sovia_link *link;
	unsigned long id = 0;

	while ((link = sovia_link_from(snet, &id))) {
		sovia_link_event(link, SOVIA_LINK_EV_FLUSH);
		sovia_link_put(link);
		id++;
	}
	return 0;
}

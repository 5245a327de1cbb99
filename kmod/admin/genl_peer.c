// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: peers, and what is not reached. */
#include <net/sock.h>
#include "genl.h"
#include "peer/peer.h"
#include "peer/peer_memory.h"
#include "peer/peer_way.h"
#include "peer/rendezvous.h"

static const char * const peer_states[] = {
	[SOVIA_PEER_NONE]	= "NONE",
	[SOVIA_PEER_PAIRED]	= "PAIRED",
	[SOVIA_PEER_UNANCHORED]	= "UNANCHORED",
};

static int put_agreement(struct sk_buff *skb, const struct sovia_peer *peer)
{
	u64 key = READ_ONCE(peer->key.id);

	if (nla_put_u8(skb, SOVIA_A_PEER_VERSION, READ_ONCE(peer->version)) ||
	    nla_put_u64_64bit(skb, SOVIA_A_PEER_FEATURES, READ_ONCE(peer->features),
			      SOVIA_A_PEER_PAD) ||
	    (key && nla_put_u64_64bit(skb, SOVIA_A_PEER_KEY, key, SOVIA_A_PEER_PAD)) ||
	    nla_put_string(skb, SOVIA_A_PEER_WAY, sovia_peer_provider(peer)->name))
		return -EMSGSIZE;
	return 0;
}

/**
 * sovia_genl_put_peer() - add a peer to a message
 * @skb: the message
 * @object: the peer
 *
 * Context: connection thread, or under RCU: what it writes then may be seen in part.
 * Return: 0 or -EMSGSIZE.
 */
int sovia_genl_put_peer(struct sk_buff *skb, const void *object)
{
	const struct sovia_peer *peer = object;
	enum sovia_peer_state state = READ_ONCE(peer->state);
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_PEER);

	if (!nest || sovia_genl_put_pair(skb, &peer->pair, SOVIA_A_PEER_LOCAL) ||
	    nla_put_string(skb, SOVIA_A_PEER_STATE, peer_states[state]) ||
	    (READ_ONCE(peer->out) && nla_put_flag(skb, SOVIA_A_PEER_OUT)) ||
	    (READ_ONCE(peer->in) && nla_put_flag(skb, SOVIA_A_PEER_IN)) ||
	    (state != SOVIA_PEER_NONE && put_agreement(skb, peer)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* The first peer from number @id on, or NULL; under RCU. */
static struct sovia_peer *peer_from(struct sovia_net *snet, unsigned long *id)
{
	return xa_find(&snet->rdv.peer_ids, id, ULONG_MAX, XA_PRESENT);
}

/**
 * sovia_genl_peer_dump() - SOVIA_CMD_PEER_GET
 * @skb: the reply
 * @cb: of the request; args[0] is the next number
 *
 * Context: process.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct sovia_net *snet = sovia_net(sock_net(skb->sk));
	unsigned long id = cb->args[0];
	struct sovia_peer *peer;

	rcu_read_lock();
	for (peer = peer_from(snet, &id); peer; id++, peer = peer_from(snet, &id))
		if (sovia_genl_put(skb, cb, SOVIA_CMD_PEER_GET, sovia_genl_put_peer, peer))
			break;
	rcu_read_unlock();
	cb->args[0] = peer ? id : LONG_MAX;
	return skb->len;
}

/**
 * sovia_genl_peer_flush() - SOVIA_CMD_PEER_FLUSH
 * @skb: the request
 * @info: of it
 *
 * The connection thread forgets the peers that no link needs then.
 *
 * Context: process.
 * Return: 0.
 */
int sovia_genl_peer_flush(struct sk_buff *skb, struct genl_info *info)
{
	struct sovia_net *snet = sovia_net(genl_info_net(info));

	sovia_memories_forget(snet);
	sovia_peers_flush(snet);
	return 0;
}

static int put_unreached(struct sk_buff *skb, const void *object)
{
	const struct sovia_unreached *unreached = object;
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_UNREACHED);

	if (!nest || sovia_genl_put_pair(skb, &unreached->pair, SOVIA_A_UNREACHED_LOCAL) ||
	    nla_put_u8(skb, SOVIA_A_UNREACHED_WHY, unreached->why) ||
	    nla_put_u32(skb, SOVIA_A_UNREACHED_LEFT, unreached->left))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * struct unreached_dump - a dump of what is not reached
 * @skb: the reply
 * @cb: of the request
 */
struct unreached_dump {
	struct sk_buff		*skb;
	struct netlink_callback	*cb;
};

static int take_unreached(const struct sovia_unreached *unreached, void *context)
{
	const struct unreached_dump *dump = context;

	return sovia_genl_put(dump->skb, dump->cb, SOVIA_CMD_UNREACHED_GET, put_unreached,
			      unreached);
}

/**
 * sovia_genl_unreached_dump() - SOVIA_CMD_UNREACHED_GET
 * @skb: the reply
 * @cb: of the request; args[0] is the next bucket
 *
 * A bucket is in one reply, whole: there is no order in it that a later reply could go on with.
 *
 * Context: process.
 * Return: bytes in @skb, 0 at the end, or -EMSGSIZE.
 */
int sovia_genl_unreached_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct sovia_net *snet = sovia_net(sock_net(skb->sk));
	struct unreached_dump dump = { skb, cb };
	unsigned int whole;

	for (; cb->args[0] < 1 << SOVIA_MEMORY_BITS; cb->args[0]++) {
		whole = skb->len;
		if (sovia_memory_walk(snet, cb->args[0], take_unreached, &dump)) {
			skb_trim(skb, whole);
			return whole ?: -EMSGSIZE;
		}
	}
	return skb->len;
}

// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: connections that fell back to TCP. */
#include <net/sock.h>
#include "genl.h"
#include "sock/tcp_log.h"

/**
 * sovia_genl_put_tcp() - add an entry of the log to a message
 * @skb: the message
 * @object: struct sovia_tcp_entry
 *
 * Context: any.
 * Return: 0 or -EMSGSIZE.
 */
int sovia_genl_put_tcp(struct sk_buff *skb, const void *object)
{
	const struct sovia_tcp_entry *entry = object;
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_TCP);

	if (!nest ||
	    nla_put_u64_64bit(skb, SOVIA_A_TCP_COOKIE, entry->cookie, SOVIA_A_TCP_PAD) ||
	    nla_put_u8(skb, SOVIA_A_TCP_DIRECTION, entry->direction) ||
	    nla_put_u8(skb, SOVIA_A_TCP_WHY, entry->why) ||
	    nla_put_u32(skb, SOVIA_A_TCP_ERROR, entry->err) ||
	    nla_put_in6_addr(skb, SOVIA_A_TCP_LOCAL, &entry->local) ||
	    nla_put_in6_addr(skb, SOVIA_A_TCP_REMOTE, &entry->remote) ||
	    nla_put_u16(skb, SOVIA_A_TCP_LPORT, entry->lport) ||
	    nla_put_u16(skb, SOVIA_A_TCP_RPORT, entry->rport))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * sovia_genl_tcp_dump() - SOVIA_CMD_TCP_GET
 * @skb: the reply
 * @cb: of the request; ctx is the number of the next entry
 *
 * Context: process.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_tcp_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct sovia_net *snet = sovia_net(sock_net(skb->sk));
	struct sovia_tcp_entry entry;
	u64 *number = (void *)cb->ctx;

	while (sovia_tcp_log_from(snet, number, &entry) &&
	       !sovia_genl_put(skb, cb, SOVIA_CMD_TCP_GET, sovia_genl_put_tcp, &entry))
		++*number;
	return skb->len;
}

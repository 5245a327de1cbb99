// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: RDMA devices. */
#include <net/sock.h>
#include "genl.h"

static int put_info(struct sk_buff *skb, const void *object)
{
	const struct sovia_device_info *info = object;
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_DEVICE);

	if (!nest || nla_put_string(skb, SOVIA_A_DEVICE_NAME, info->name) ||
	    nla_put_u32(skb, SOVIA_A_DEVICE_VIS, info->vis) ||
	    nla_put_u32(skb, SOVIA_A_DEVICE_CQS, info->cqs) ||
	    nla_put_u32(skb, SOVIA_A_DEVICE_STUCK, info->stuck))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * sovia_genl_device_dump() - SOVIA_CMD_DEVICE_GET
 * @skb: the reply
 * @cb: of the request; args[0] is the next index
 *
 * Context: process, may sleep.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_device_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct sovia_device_info info;
	u32 index = cb->args[0];

	while (sovia_verbs_device_from(sock_net(skb->sk), &index, &info) &&
	       !sovia_genl_put(skb, cb, SOVIA_CMD_DEVICE_GET, put_info, &info))
		index++;
	cb->args[0] = index;
	return skb->len;
}

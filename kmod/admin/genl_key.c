// SPDX-License-Identifier: GPL-2.0-only
/*
 * Generic netlink: which keys there are.  Their secrets leave the kernel in no way, and enter it
 * by add_key(2) alone.
 */
#include <net/sock.h>
#include "genl.h"
#include "peer/key.h"

/* Of requests. */
const struct nla_policy sovia_genl_key_policy[SOVIA_A_KEY_MAX + 1] = {
	[SOVIA_A_KEY_ID]		= { .type = NLA_U64 },
	[SOVIA_A_KEY_PEER]		= { .type = NLA_REJECT },
	[SOVIA_A_KEY_PREFIX]		= { .type = NLA_REJECT },
	[SOVIA_A_KEY_OWN]		= { .type = NLA_REJECT },
	[SOVIA_A_KEY_OWN_PREFIX]	= { .type = NLA_REJECT },
	[SOVIA_A_KEY_NUMBER]		= { .type = NLA_REJECT },
	[SOVIA_A_KEY_ERROR]		= { .type = NLA_REJECT },
	[SOVIA_A_KEY_PAD]		= { .type = NLA_REJECT },
};

static int put_key(struct sk_buff *skb, const void *object)
{
	const struct sovia_key_info *info = object;
	const struct sovia_key_name *name = &info->name;
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_KEY);

	if (!nest || nla_put_u64_64bit(skb, SOVIA_A_KEY_ID, name->id, SOVIA_A_KEY_PAD) ||
	    nla_put_in6_addr(skb, SOVIA_A_KEY_PEER, &name->peer) ||
	    nla_put_u8(skb, SOVIA_A_KEY_PREFIX, name->prefix) ||
	    nla_put_in6_addr(skb, SOVIA_A_KEY_OWN, &name->own) ||
	    nla_put_u8(skb, SOVIA_A_KEY_OWN_PREFIX, name->own_prefix) ||
	    nla_put_s32(skb, SOVIA_A_KEY_NUMBER, info->number) ||
	    nla_put_u32(skb, SOVIA_A_KEY_ERROR, -info->err))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * sovia_genl_key_dump() - SOVIA_CMD_KEY_GET
 * @skb: the reply
 * @cb: of the request; args[0] is the next key
 *
 * Context: process.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_key_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct sovia_net *snet = sovia_net(sock_net(skb->sk));
	struct sovia_key_info info;

	while (sovia_keys_show(snet, cb->args[0], &info, &cb->seq) &&
	       !sovia_genl_put(skb, cb, SOVIA_CMD_KEY_GET, put_key, &info))
		cb->args[0]++;
	return skb->len;
}

/* Does something to the keys of the number in a request. */
static int with_key(struct genl_info *info, int (*action)(struct sovia_net *snet, u64 id))
{
	struct nlattr *attrs[SOVIA_A_KEY_MAX + 1];
	int err;

	if (!info->attrs[SOVIA_A_KEY] ||
	    nla_parse_nested(attrs, SOVIA_A_KEY_MAX, info->attrs[SOVIA_A_KEY],
			     sovia_genl_key_policy, info->extack) || !attrs[SOVIA_A_KEY_ID])
		return -EINVAL;
	err = action(sovia_net(genl_info_net(info)), nla_get_u64(attrs[SOVIA_A_KEY_ID]));
	if (err == -ENOENT)
		NL_SET_ERR_MSG(info->extack, "no key has this number, or none that is valid");
	return err;
}

/**
 * sovia_genl_key_delete() - SOVIA_CMD_KEY_DELETE
 * @skb: the request
 * @info: of it
 *
 * Context: process.
 * Return: 0, -EINVAL or -ENOENT.
 */
int sovia_genl_key_delete(struct sk_buff *skb, struct genl_info *info)
{
	return with_key(info, sovia_keys_delete);
}

/**
 * sovia_genl_key_revoke() - SOVIA_CMD_KEY_REVOKE
 * @skb: the request
 * @info: of it
 *
 * Context: process.
 * Return: 0, -EINVAL or -ENOENT.
 */
int sovia_genl_key_revoke(struct sk_buff *skb, struct genl_info *info)
{
	return with_key(info, sovia_keys_revoke);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: the family, its commands and policies, and what the dumps share. */
#include <net/sock.h>
#include "core/event.h"
#include "genl.h"

/*
 * Each command takes what it needs, or nothing: one type has to be named all the same, as a command
 * without a policy ignores all.
 */
static const struct nla_policy no_policy[] = {
	[SOVIA_A_RULE]	= { .type = NLA_REJECT },
};

static const struct nla_policy rules_policy[] = {
	[SOVIA_A_RULE]	= NLA_POLICY_NESTED(sovia_genl_rule_policy),
};

static const struct nla_policy keys_policy[] = {
	[SOVIA_A_KEY]	= NLA_POLICY_NESTED(sovia_genl_key_policy),
};

/**
 * sovia_genl_put() - add a message to a dump
 * @skb: the reply
 * @cb: of the request
 * @cmd: enum sovia_cmd
 * @put: adds the attributes of @object; returns 0 or -EMSGSIZE
 * @object: what is shown
 *
 * Context: process; @put's.
 * Return: 0, or -EMSGSIZE if it does not fit: nothing has been added.
 */
int sovia_genl_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		   int (*put)(struct sk_buff *skb, const void *object), const void *object)
{
	void *hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &sovia_genl,
				NLM_F_MULTI, cmd);

	if (!hdr)
		return -EMSGSIZE;
	if (put(skb, object)) {
		genlmsg_cancel(skb, hdr);
		return -EMSGSIZE;
	}
	genl_dump_check_consistent(cb, hdr);
	genlmsg_end(skb, hdr);
	return 0;
}

/**
 * sovia_genl_put_pair() - add the addresses of a link or peer
 * @skb: the message
 * @pair: the addresses
 * @local: attribute of the local one; those of the remote one, of the interface of link-local ones
 *	and of the VRF follow
 *
 * Context: any.
 * Return: 0 or -EMSGSIZE.
 */
int sovia_genl_put_pair(struct sk_buff *skb, const struct sovia_pair *pair, int local)
{
	if (nla_put_in6_addr(skb, local, &pair->local) ||
	    nla_put_in6_addr(skb, local + 1, &pair->remote) ||
	    (pair->scope && nla_put_u32(skb, local + 2, pair->scope)) ||
	    (pair->l3 && nla_put_u32(skb, local + 3, pair->l3)))
		return -EMSGSIZE;
	return 0;
}

#define DUMP(which, function) {						\
	.cmd		= SOVIA_CMD_##which##_GET,			\
	.dumpit		= function,					\
	.policy		= no_policy,					\
	.maxattr	= ARRAY_SIZE(no_policy) - 1,			\
}

#define FLUSH(which, function) {					\
	.cmd		= SOVIA_CMD_##which##_FLUSH,			\
	.doit		= function,					\
	.policy		= no_policy,					\
	.maxattr	= ARRAY_SIZE(no_policy) - 1,			\
	.flags		= GENL_UNS_ADMIN_PERM,				\
}

static const struct genl_ops sovia_genl_ops[] = {
	DUMP(RULE, sovia_genl_rule_dump),
	{
		.cmd		= SOVIA_CMD_RULE_REPLACE,
		.doit		= sovia_genl_rule_replace,
		.policy		= rules_policy,
		.maxattr	= ARRAY_SIZE(rules_policy) - 1,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= SOVIA_CMD_KEY_GET,
		.dumpit		= sovia_genl_key_dump,
		.policy		= no_policy,
		.maxattr	= ARRAY_SIZE(no_policy) - 1,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd		= SOVIA_CMD_KEY_DELETE,
		.doit		= sovia_genl_key_delete,
		.policy		= keys_policy,
		.maxattr	= ARRAY_SIZE(keys_policy) - 1,
		.flags		= GENL_UNS_ADMIN_PERM,
	}, {
		.cmd		= SOVIA_CMD_KEY_REVOKE,
		.doit		= sovia_genl_key_revoke,
		.policy		= keys_policy,
		.maxattr	= ARRAY_SIZE(keys_policy) - 1,
		.flags		= GENL_UNS_ADMIN_PERM,
	},
	DUMP(SOCK, sovia_genl_sock_dump),
	DUMP(TCP, sovia_genl_tcp_dump),
	DUMP(LINK, sovia_genl_link_dump),
	FLUSH(LINK, sovia_genl_link_flush),
	DUMP(PEER, sovia_genl_peer_dump),
	FLUSH(PEER, sovia_genl_peer_flush),
	DUMP(UNREACHED, sovia_genl_unreached_dump),
	DUMP(DEVICE, sovia_genl_device_dump),
	{
		.cmd		= SOVIA_CMD_STAT_GET,
		.doit		= sovia_genl_stat_get,
		.dumpit		= sovia_genl_stat_dump,
		.policy		= no_policy,
		.maxattr	= ARRAY_SIZE(no_policy) - 1,
	},
};

static const struct genl_multicast_group sovia_genl_groups[SOVIA_GENL_GROUPS] = {
	[SOVIA_GENL_GROUP_EVENTS] = { .name = SOVIA_GENL_EVENTS },
};

struct genl_family sovia_genl __ro_after_init = {
	.name		= SOVIA_GENL_NAME,
	.version	= SOVIA_GENL_VERSION,
	.module		= THIS_MODULE,
	.netnsok	= true,
	/* A dump must not keep other families waiting; what is changed has locks of its own. */
	.parallel_ops	= true,
	.ops		= sovia_genl_ops,
	.n_ops		= ARRAY_SIZE(sovia_genl_ops),
	.mcgrps		= sovia_genl_groups,
	.n_mcgrps	= ARRAY_SIZE(sovia_genl_groups),
	.resv_start_op	= SOVIA_CMD_UNSPEC + 1,
};

/**
 * sovia_genl_init() - make the family known
 *
 * Context: module init; namespaces are registered.
 * Return: 0 or a negative errno.
 */
int sovia_genl_init(void)
{
	int err = genl_register_family(&sovia_genl);

	if (err)
		return err;
	err = sovia_event_subscribe(&sovia_genl_events);
	if (err)
		genl_unregister_family(&sovia_genl);
	return err;
}

/**
 * sovia_genl_exit() - remove it
 *
 * Context: module exit, before namespaces are unregistered.
 */
void sovia_genl_exit(void)
{
	sovia_event_unsubscribe(&sovia_genl_events);
	genl_unregister_family(&sovia_genl);
}

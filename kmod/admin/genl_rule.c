// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: a namespace's rules. */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/netlink.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include "genl.h"
#include "peer/peer_memory.h"
#include "policy/rule.h"
#include "policy/tos.h"

/* Of requests. */
const struct nla_policy sovia_genl_rule_policy[SOVIA_A_RULE_MAX + 1] = {
	[SOVIA_A_RULE_ACTION]		= NLA_POLICY_MAX(NLA_U8, SOVIA_ACTION_MAX),
	[SOVIA_A_RULE_DIRECTIONS]	= NLA_POLICY_RANGE(NLA_U8, SOVIA_RULE_IN,
							   SOVIA_RULE_IN | SOVIA_RULE_OUT),
	[SOVIA_A_RULE_PEER]		= NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[SOVIA_A_RULE_PREFIX]		= NLA_POLICY_MAX(NLA_U8, 128),
	[SOVIA_A_RULE_PORT_MIN]		= { .type = NLA_U16 },
	[SOVIA_A_RULE_PORT_MAX]		= { .type = NLA_U16 },
	[SOVIA_A_RULE_UID_MIN]		= { .type = NLA_U32 },
	[SOVIA_A_RULE_UID_MAX]		= { .type = NLA_U32 },
	[SOVIA_A_RULE_GID_MIN]		= { .type = NLA_U32 },
	[SOVIA_A_RULE_GID_MAX]		= { .type = NLA_U32 },
	[SOVIA_A_RULE_CGROUP]		= { .type = NLA_U64 },
	[SOVIA_A_RULE_DEVICE]		= { .type = NLA_NUL_STRING, .len = IFNAMSIZ - 1 },
	[SOVIA_A_RULE_WAIT]		= { .type = NLA_U32 },
	[SOVIA_A_RULE_HITS]		= { .type = NLA_REJECT },
	[SOVIA_A_RULE_PAD]		= { .type = NLA_REJECT },
	[SOVIA_A_RULE_TOS]		= { .type = NLA_U8 },
};

/* ---- replacing the rules ------------------------------------------------ */

static void read_numbers(struct sovia_rule *rule, struct nlattr **attrs)
{
	if (attrs[SOVIA_A_RULE_ACTION])
		rule->action = nla_get_u8(attrs[SOVIA_A_RULE_ACTION]);
	if (attrs[SOVIA_A_RULE_DIRECTIONS])
		rule->directions = nla_get_u8(attrs[SOVIA_A_RULE_DIRECTIONS]);
	if (attrs[SOVIA_A_RULE_PORT_MIN])
		rule->port_min = nla_get_u16(attrs[SOVIA_A_RULE_PORT_MIN]);
	if (attrs[SOVIA_A_RULE_PORT_MAX])
		rule->port_max = nla_get_u16(attrs[SOVIA_A_RULE_PORT_MAX]);
	if (attrs[SOVIA_A_RULE_UID_MIN])
		rule->uid_min = nla_get_u32(attrs[SOVIA_A_RULE_UID_MIN]);
	if (attrs[SOVIA_A_RULE_UID_MAX])
		rule->uid_max = nla_get_u32(attrs[SOVIA_A_RULE_UID_MAX]);
	if (attrs[SOVIA_A_RULE_GID_MIN])
		rule->gid_min = nla_get_u32(attrs[SOVIA_A_RULE_GID_MIN]);
	if (attrs[SOVIA_A_RULE_GID_MAX])
		rule->gid_max = nla_get_u32(attrs[SOVIA_A_RULE_GID_MAX]);
	if (attrs[SOVIA_A_RULE_CGROUP])
		rule->cgroup = nla_get_u64(attrs[SOVIA_A_RULE_CGROUP]);
	if (attrs[SOVIA_A_RULE_WAIT])
		rule->wait = nla_get_u32(attrs[SOVIA_A_RULE_WAIT]);
	if (attrs[SOVIA_A_RULE_TOS])
		rule->tos = nla_get_u8(attrs[SOVIA_A_RULE_TOS]);
}

static int read_peer(struct sovia_rule *rule, struct nlattr **attrs,
		     struct netlink_ext_ack *extack)
{
	struct in6_addr masked;

	if (!attrs[SOVIA_A_RULE_PEER]) {
		if (!attrs[SOVIA_A_RULE_PREFIX])
			return 0;
		NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_PREFIX],
				    "prefix without an address");
		return -EINVAL;
	}
	rule->peer = nla_get_in6_addr(attrs[SOVIA_A_RULE_PEER]);
	rule->prefix = 128;
	if (attrs[SOVIA_A_RULE_PREFIX])
		rule->prefix = nla_get_u8(attrs[SOVIA_A_RULE_PREFIX]);
	ipv6_addr_prefix(&masked, &rule->peer, rule->prefix);
	if (ipv6_addr_equal(&masked, &rule->peer))
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_PEER], "address has bits beyond the prefix");
	return -EINVAL;
}

/* A lane is for all connections to the peer; and see tos.c. */
static int check_tos(const struct sk_buff *skb, const struct sovia_rule *rule,
		     struct nlattr **attrs, struct netlink_ext_ack *extack)
{
	const struct nlattr *tos = attrs[SOVIA_A_RULE_TOS];

	if (!tos)
		return 0;
	if (sovia_rule_is_partial(rule)) {
		NL_SET_ERR_MSG_ATTR(extack, tos, "tos is a peer's, not a port's or a program's");
		return -EINVAL;
	}
	if (!(rule->directions & SOVIA_RULE_OUT)) {
		NL_SET_ERR_MSG_ATTR(extack, tos, "who connects chooses the tos: out");
		return -EINVAL;
	}
	if (rule->action != SOVIA_AUTO && rule->action != SOVIA_ONLY_SOVIA) {
		NL_SET_ERR_MSG_ATTR(extack, tos, "only AF_SOVIA's connections have a tos");
		return -EINVAL;
	}
	if (!netlink_capable(skb, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG_ATTR(extack, tos, "tos is up to the host's administrator");
		return -EPERM;
	}
	return 0;
}

static int check_rule(const struct sovia_rule *rule, struct nlattr **attrs,
		      struct netlink_ext_ack *extack)
{
	if (rule->port_min > rule->port_max) {
		NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_PORT_MIN],
				    "ports: first beyond last");
		return -EINVAL;
	}
	if (rule->uid_min > rule->uid_max) {
		NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_UID_MIN],
				    "users: first beyond last");
		return -EINVAL;
	}
	if (rule->gid_min > rule->gid_max) {
		NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_GID_MIN],
				    "groups: first beyond last");
		return -EINVAL;
	}
	if (rule->wait != SOVIA_WAIT_DEFAULT && rule->wait > SOVIA_WAIT_MAX) {
		NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_WAIT], "longer than a minute");
		return -EINVAL;
	}
	if (rule->wait != SOVIA_WAIT_DEFAULT && rule->action != SOVIA_AUTO) {
		NL_SET_ERR_MSG_ATTR(extack, attrs[SOVIA_A_RULE_WAIT], "only auto waits before TCP");
		return -EINVAL;
	}
	return 0;
}

static int read_rule(const struct sk_buff *skb, struct sovia_rule *rule,
		     const struct nlattr *nest, struct netlink_ext_ack *extack)
{
	struct nlattr *attrs[SOVIA_A_RULE_MAX + 1];
	int err;

	sovia_rule_init(rule);
	err = nla_parse_nested(attrs, SOVIA_A_RULE_MAX, nest, sovia_genl_rule_policy,
			       extack);
	if (err)
		return err;
	if (!attrs[SOVIA_A_RULE_ACTION]) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "no action");
		return -EINVAL;
	}
	read_numbers(rule, attrs);
	if (attrs[SOVIA_A_RULE_DEVICE])
		nla_strscpy(rule->device, attrs[SOVIA_A_RULE_DEVICE], sizeof(rule->device));
	err = read_peer(rule, attrs, extack);
	return err ?: check_rule(rule, attrs, extack) ?: check_tos(skb, rule, attrs, extack);
}

static unsigned int count_rules(const struct nlmsghdr *nlh)
{
	const struct nlattr *nest;
	unsigned int count = 0;
	int rest;

	nlmsg_for_each_attr(nest, nlh, GENL_HDRLEN, rest)
		count += nla_type(nest) == SOVIA_A_RULE;
	return count;
}

static int read_rules(const struct sk_buff *skb, struct sovia_rules *rules, struct genl_info *info)
{
	struct sovia_rule *rule = rules->rule;
	const struct nlattr *nest;
	int err, rest;

	nlmsg_for_each_attr(nest, info->nlhdr, GENL_HDRLEN, rest) {
		if (nla_type(nest) != SOVIA_A_RULE)
			continue;
		err = read_rule(skb, rule++, nest, info->extack);
		if (err)
			return err;
	}
	return 0;
}

/**
 * sovia_genl_rule_replace() - SOVIA_CMD_RULE_REPLACE
 * @skb: the request
 * @info: of it
 *
 * Context: process.
 * Return: 0, -EINVAL, -EPERM, -E2BIG or -ENOMEM.
 */
int sovia_genl_rule_replace(struct sk_buff *skb, struct genl_info *info)
{
	unsigned int count = count_rules(info->nlhdr);
	struct sovia_rules *rules;
	int err;

	if (count > SOVIA_RULES_MAX) {
		NL_SET_ERR_MSG(info->extack, "too many rules");
		return -E2BIG;
	}
	rules = sovia_rules_alloc(count);
	if (!rules)
		return -ENOMEM;
	err = read_rules(skb, rules, info);
	if (err) {
		kvfree(rules);
		return err;
	}
	sovia_rules_replace(sovia_net(genl_info_net(info)), rules);
	/* They may allow what did not come about. */
	sovia_memories_forget(sovia_net(genl_info_net(info)));
	return 0;
}

/* ---- reading the rules -------------------------------------------------- */

static int put_range(struct sk_buff *skb, int min_attr, u32 min, u32 max)
{
	if (!min && max == U32_MAX)
		return 0;
	return nla_put_u32(skb, min_attr, min) ?: nla_put_u32(skb, min_attr + 1, max);
}

static int put_rule(struct sk_buff *skb, const void *object)
{
	const struct sovia_rule *rule = object;
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_RULE);

	if (!nest || nla_put_u8(skb, SOVIA_A_RULE_ACTION, rule->action) ||
	    nla_put_u8(skb, SOVIA_A_RULE_DIRECTIONS, rule->directions) ||
	    put_range(skb, SOVIA_A_RULE_UID_MIN, rule->uid_min, rule->uid_max) ||
	    put_range(skb, SOVIA_A_RULE_GID_MIN, rule->gid_min, rule->gid_max) ||
	    nla_put_u64_64bit(skb, SOVIA_A_RULE_HITS, atomic64_read(&rule->hits), SOVIA_A_RULE_PAD))
		return -EMSGSIZE;
	if ((rule->prefix || !ipv6_addr_any(&rule->peer)) &&
	    (nla_put_in6_addr(skb, SOVIA_A_RULE_PEER, &rule->peer) ||
	     nla_put_u8(skb, SOVIA_A_RULE_PREFIX, rule->prefix)))
		return -EMSGSIZE;
	if ((rule->port_min || rule->port_max != U16_MAX) &&
	    (nla_put_u16(skb, SOVIA_A_RULE_PORT_MIN, rule->port_min) ||
	     nla_put_u16(skb, SOVIA_A_RULE_PORT_MAX, rule->port_max)))
		return -EMSGSIZE;
	if (rule->cgroup && nla_put_u64_64bit(skb, SOVIA_A_RULE_CGROUP, rule->cgroup,
					      SOVIA_A_RULE_PAD))
		return -EMSGSIZE;
	if (rule->device[0] && nla_put_string(skb, SOVIA_A_RULE_DEVICE, rule->device))
		return -EMSGSIZE;
	if (rule->wait != SOVIA_WAIT_DEFAULT && nla_put_u32(skb, SOVIA_A_RULE_WAIT, rule->wait))
		return -EMSGSIZE;
	if (rule->tos != SOVIA_TOS_DEFAULT && nla_put_u8(skb, SOVIA_A_RULE_TOS, rule->tos))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * sovia_genl_rule_dump() - SOVIA_CMD_RULE_GET
 * @skb: the reply
 * @cb: of the request; args[0] is the next rule
 *
 * Context: process.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_rule_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	const struct sovia_rules *rules;

	rcu_read_lock();
	rules = rcu_dereference(sovia_net(sock_net(skb->sk))->rules);
	if (rules) {
		cb->seq = rules->generation;
		while (cb->args[0] < rules->count &&
		       !sovia_genl_put(skb, cb, SOVIA_CMD_RULE_GET, put_rule,
				       &rules->rule[cb->args[0]]))
			cb->args[0]++;
	}
	rcu_read_unlock();
	return skb->len;
}

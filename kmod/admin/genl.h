/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Generic netlink: what administrators read and change.  The attributes are in
 * uapi/linux/sovia.h, described by Documentation/netlink/specs/sovia.yaml.
 */
#ifndef _SOVIA_GENL_H
#define _SOVIA_GENL_H

#include <net/genetlink.h>
#include <linux/sovia.h>
#include "core/provider.h"

/* Multicast groups. */
enum sovia_genl_group {
	SOVIA_GENL_GROUP_EVENTS,
	SOVIA_GENL_GROUPS
};

extern struct genl_family sovia_genl;
extern const struct nla_policy sovia_genl_rule_policy[SOVIA_A_RULE_MAX + 1];
extern const struct nla_policy sovia_genl_key_policy[SOVIA_A_KEY_MAX + 1];

/* genl_event.c */
extern struct notifier_block sovia_genl_events;

/* genl_family.c */
int sovia_genl_put(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd,
		   int (*put)(struct sk_buff *skb, const void *object), const void *object);
int sovia_genl_put_pair(struct sk_buff *skb, const struct sovia_pair *pair, int local);
int sovia_genl_init(void);
void sovia_genl_exit(void);

/* genl_rule.c, and so on */
int sovia_genl_rule_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_rule_replace(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_key_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_key_delete(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_key_revoke(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_sock_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_tcp_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_put_tcp(struct sk_buff *skb, const void *object);
int sovia_genl_link_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_link_flush(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_put_link(struct sk_buff *skb, const void *object);
int sovia_genl_peer_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_peer_flush(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_put_peer(struct sk_buff *skb, const void *object);
int sovia_genl_unreached_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_device_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_stat_get(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_stat_dump(struct sk_buff *skb, struct netlink_callback *cb);

#endif /* _SOVIA_GENL_H */

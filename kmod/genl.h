/* SPDX-License-Identifier: GPL-2.0-only */
/* Generic netlink: what administrators read and change. */
#ifndef _SOVIA_GENL_H
#define _SOVIA_GENL_H

#include <net/genetlink.h>
#include <linux/sovia.h>

extern struct genl_family sovia_genl;
extern const struct nla_policy sovia_genl_key_policy[SOVIA_A_KEY_COUNT];

int sovia_genl_key_dump(struct sk_buff *skb, struct netlink_callback *cb);
int sovia_genl_key_delete(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_key_revoke(struct sk_buff *skb, struct genl_info *info);
int sovia_genl_init(void);
void sovia_genl_exit(void);

#endif /* _SOVIA_GENL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* A namespace's rules: what becomes of a connection.  Documentation/rules.rst. */
#ifndef _SOVIA_RULE_H
#define _SOVIA_RULE_H

#include <linux/netdevice.h>
#include <linux/sovia.h>
#include "core/net.h"
#include "core/provider.h"

/* The namespace's default, fallback_wait. */
#define SOVIA_WAIT_DEFAULT	U32_MAX

/**
 * struct sovia_rule - one rule
 * @action: enum sovia_action
 * @directions: SOVIA_RULE_IN, SOVIA_RULE_OUT
 * @prefix: bits of @peer that count
 * @peer: address, IPv4 as v4-mapped
 * @port_min: first port of the listener
 * @port_max: last one
 * @uid_min: first user, in the namespace's user namespace
 * @uid_max: last one; U32_MAX: also users without a number there
 * @gid_min: first group
 * @gid_max: last one; likewise
 * @cgroup: number of a control group, or 0
 * @device: name of an interface, or ""
 * @wait: milliseconds, or SOVIA_WAIT_DEFAULT
 * @tos: type of service of the peer's lanes, or SOVIA_TOS_DEFAULT
 * @hits: how many connections it has decided
 */
struct sovia_rule {
	u8		action;
	u8		directions;
	u8		prefix;
	struct in6_addr	peer;
	u16		port_min;
	u16		port_max;
	u32		uid_min;
	u32		uid_max;
	u32		gid_min;
	u32		gid_max;
	u64		cgroup;
	char		device[IFNAMSIZ];
	u32		wait;
	u16		tos;
	atomic64_t	hits;
};

/**
 * struct sovia_rules - a namespace's list
 * @rcu: readers use RCU
 * @generation: differs from that of the list before
 * @count: of @rule
 * @rule: the first that matches decides
 */
struct sovia_rules {
	struct rcu_head		rcu;
	u32			generation;
	unsigned int		count;
	struct sovia_rule	rule[];
};

void sovia_rule_init(struct sovia_rule *rule);
struct sovia_rules *sovia_rules_alloc(unsigned int count);
void sovia_rules_replace(struct sovia_net *snet, struct sovia_rules *rules);
u8 sovia_rules_ask(struct sovia_net *snet, struct sock *sk, u8 direction,
		   const struct sovia_pair *pair, u16 port, u32 *wait);
bool sovia_rules_admit_peer(struct sovia_net *snet, const struct sovia_pair *pair);
bool sovia_rule_is_partial(const struct sovia_rule *rule);
unsigned int sovia_rules_tos(struct sovia_net *snet, const struct sovia_pair *pair);

/* What becomes of a connection; see sovia_rules_ask(). */
static inline u8 sovia_rules_decide(struct sovia_net *snet, struct sock *sk, u8 direction,
				    const struct sovia_pair *pair, u16 port, u32 *wait)
{
	if (!rcu_access_pointer(snet->rules))
		return SOVIA_AUTO;
	return sovia_rules_ask(snet, sk, direction, pair, port, wait);
}

#endif /* _SOVIA_RULE_H */

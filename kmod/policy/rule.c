// SPDX-License-Identifier: GPL-2.0-only
/*
 * A namespace's rules (Documentation/rules.rst): the first that a connection matches decides
 * what becomes of it.  genl.c reads and replaces the list.
 *
 * A list never changes.  Readers have it under RCU, and count in it.
 */
#include <linux/cgroup.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "compat/sock.h"
#include "core/addr.h"
#include "core/trace.h"
#include "rule.h"
#include "tos.h"

/* Protects sovia_net::rules of all namespaces; innermost. */
static DEFINE_SPINLOCK(rules_lock);

/**
 * sovia_rule_init() - a rule that every connection matches
 * @rule: filled in
 *
 * Context: any.
 */
void sovia_rule_init(struct sovia_rule *rule)
{
	*rule = (struct sovia_rule){
		.action = SOVIA_AUTO,
		.directions = SOVIA_RULE_IN | SOVIA_RULE_OUT,
		.port_max = U16_MAX,
		.uid_max = U32_MAX,
		.gid_max = U32_MAX,
		.wait = SOVIA_WAIT_DEFAULT,
		.tos = SOVIA_TOS_DEFAULT,
	};
}

/**
 * sovia_rules_alloc() - a list to be filled in
 * @count: of rules
 *
 * Context: process, may sleep.
 * Return: the list, or NULL; kvfree() it, or sovia_rules_replace().
 */
struct sovia_rules *sovia_rules_alloc(unsigned int count)
{
	struct sovia_rules *rules;

	rules = kvzalloc(struct_size(rules, rule, count), GFP_KERNEL_ACCOUNT);
	if (rules)
		rules->count = count;
	return rules;
}

/**
 * sovia_rules_replace() - replace a namespace's list
 * @snet: the namespace
 * @rules: the new one, or NULL
 *
 * Connections that there are stay as they are.
 *
 * Context: process.
 */
void sovia_rules_replace(struct sovia_net *snet, struct sovia_rules *rules)
{
	struct sovia_rules *old;

	spin_lock(&rules_lock);
	old = rcu_dereference_protected(snet->rules, lockdep_is_held(&rules_lock));
	snet->rules_generation++;
	if (rules)
		rules->generation = snet->rules_generation;
	rcu_assign_pointer(snet->rules, rules);
	spin_unlock(&rules_lock);
	if (old)
		kvfree_rcu(old, rcu);
}

/**
 * struct flow - what a connection is judged by
 * @sk: the socket that connects, or listens
 * @net: its namespace
 * @direction: SOVIA_RULE_IN or SOVIA_RULE_OUT
 * @pair: its addresses
 * @port: the listener's
 */
struct flow {
	struct sock			*sk;
	struct net			*net;
	u8				direction;
	const struct sovia_pair		*pair;
	u16				port;
};

static bool peer_matches(const struct sovia_rule *rule, const struct sovia_pair *pair)
{
	return ipv6_prefix_equal(&pair->remote, &rule->peer, rule->prefix);
}

static bool uid_matches(const struct sovia_rule *rule, const struct flow *flow)
{
	u32 uid;

	if (!rule->uid_min && rule->uid_max == U32_MAX)
		return true;
	uid = from_kuid(flow->net->user_ns, sk_uid(flow->sk));
	return uid >= rule->uid_min && uid <= rule->uid_max;
}

static u32 flow_gid(const struct flow *flow)
{
	u32 gid = U32_MAX;

	/* Of who opened the socket, as netfilter's: fchown() changes the inode's group. */
	read_lock_bh(&flow->sk->sk_callback_lock);
	if (flow->sk->sk_socket && flow->sk->sk_socket->file)
		gid = from_kgid(flow->net->user_ns, flow->sk->sk_socket->file->f_cred->fsgid);
	read_unlock_bh(&flow->sk->sk_callback_lock);
	return gid;
}

static bool gid_matches(const struct sovia_rule *rule, const struct flow *flow)
{
	u32 gid;

	if (!rule->gid_min && rule->gid_max == U32_MAX)
		return true;
	gid = flow_gid(flow);
	return gid >= rule->gid_min && gid <= rule->gid_max;
}

#ifdef CONFIG_SOCK_CGROUP_DATA
static bool cgroup_matches(const struct sovia_rule *rule, const struct flow *flow)
{
	struct cgroup *cgroup;

	if (!rule->cgroup)
		return true;
	for (cgroup = sock_cgroup_ptr(&flow->sk->sk_cgrp_data); cgroup;
	     cgroup = cgroup_parent(cgroup))
		if (cgroup_id(cgroup) == rule->cgroup)
			return true;
	return false;
}
#else
static bool cgroup_matches(const struct sovia_rule *rule, const struct flow *flow)
{
	return !rule->cgroup;
}
#endif

static bool device_matches(const struct sovia_rule *rule, struct net *net,
			   const struct sovia_pair *pair)
{
	struct net_device *dev, *master = NULL;
	int ifindex;

	if (!rule->device[0])
		return true;
	ifindex = sovia_pair_device(net, pair);
	dev = dev_get_by_index_rcu(net, ifindex);
	if (pair->l3)
		master = dev_get_by_index_rcu(net, pair->l3);
	return (dev && !strcmp(dev->name, rule->device)) ||
	       (master && !strcmp(master->name, rule->device));
}

static bool flow_matches(const struct sovia_rule *rule, const struct flow *flow)
{
	return rule->directions & flow->direction &&
	       flow->port >= rule->port_min && flow->port <= rule->port_max &&
	       peer_matches(rule, flow->pair) && uid_matches(rule, flow) &&
	       gid_matches(rule, flow) && cgroup_matches(rule, flow) &&
	       device_matches(rule, flow->net, flow->pair);
}

/**
 * sovia_rules_ask() - what becomes of a connection, if there are rules
 * @snet: namespace of the socket
 * @sk: the socket that connects, or listens
 * @direction: SOVIA_RULE_OUT or SOVIA_RULE_IN
 * @pair: its addresses
 * @port: the listener's
 * @wait: set to the rule's, if one matches; may be NULL
 *
 * Context: any; sk_callback_lock is not held.
 * Return: enum sovia_action; SOVIA_AUTO if no rule matches.
 */
u8 sovia_rules_ask(struct sovia_net *snet, struct sock *sk, u8 direction,
		   const struct sovia_pair *pair, u16 port, u32 *wait)
{
	const struct flow flow = {
		.sk = sk, .net = snet->net, .direction = direction, .pair = pair, .port = port,
	};
	u8 action = SOVIA_AUTO;
	struct sovia_rules *rules;
	unsigned int i;

	rcu_read_lock();
	rules = rcu_dereference(snet->rules);
	for (i = 0; rules && i < rules->count; i++) {
		if (!flow_matches(&rules->rule[i], &flow))
			continue;
		atomic64_inc(&rules->rule[i].hits);
		action = rules->rule[i].action;
		trace_sovia_rule(pair, port, direction, i, action);
		if (wait)
			*wait = rules->rule[i].wait;
		break;
	}
	rcu_read_unlock();
	return action;
}

/**
 * sovia_rule_is_partial() - does it matter whose socket it is, or on which port
 * @rule: the rule
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_rule_is_partial(const struct sovia_rule *rule)
{
	return rule->port_min || rule->port_max != U16_MAX || rule->uid_min ||
	       rule->uid_max != U32_MAX || rule->gid_min || rule->gid_max != U32_MAX ||
	       rule->cgroup;
}

/**
 * sovia_rules_admit_peer() - do the rules let any connection of a peer use AF_SOVIA
 * @snet: namespace
 * @pair: the addresses
 *
 * Context: any.
 * Return: false if rules keep out each connection from there.
 */
bool sovia_rules_admit_peer(struct sovia_net *snet, const struct sovia_pair *pair)
{
	const struct sovia_rules *rules;
	const struct sovia_rule *rule;
	bool closed, admitted = true;
	unsigned int i;

	rcu_read_lock();
	rules = rcu_dereference(snet->rules);
	for (i = 0; rules && i < rules->count; i++) {
		rule = &rules->rule[i];
		if (!(rule->directions & SOVIA_RULE_IN) || !peer_matches(rule, pair) ||
		    !device_matches(rule, snet->net, pair))
			continue;
		closed = rule->action == SOVIA_ONLY_TCP || rule->action == SOVIA_DENY;
		if (closed && sovia_rule_is_partial(rule))
			continue;
		admitted = !closed;
		break;
	}
	rcu_read_unlock();
	return admitted;
}

/**
 * sovia_rules_tos() - the type of service that rules say for a peer's lanes
 * @snet: namespace
 * @pair: the addresses
 *
 * Of the first rule that all connections to there match: a lane is for all of them.
 *
 * Context: any.
 * Return: 0 to 255, or SOVIA_TOS_DEFAULT.
 */
unsigned int sovia_rules_tos(struct sovia_net *snet, const struct sovia_pair *pair)
{
	unsigned int i, tos = SOVIA_TOS_DEFAULT;
	const struct sovia_rules *rules;
	const struct sovia_rule *rule;

	rcu_read_lock();
	rules = rcu_dereference(snet->rules);
	for (i = 0; rules && i < rules->count; i++) {
		rule = &rules->rule[i];
		if (!(rule->directions & SOVIA_RULE_OUT) || sovia_rule_is_partial(rule) ||
		    !peer_matches(rule, pair) || !device_matches(rule, snet->net, pair))
			continue;
		tos = rule->tos;
		break;
	}
	rcu_read_unlock();
	return tos;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/rule_test.c"
#endif

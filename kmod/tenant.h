/* SPDX-License-Identifier: GPL-2.0-only */
/* Tenants: who shares this host, and what each of them holds. */
#ifndef _SOVIA_TENANT_H
#define _SOVIA_TENANT_H

#include <linux/refcount.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <net/net_namespace.h>

struct seq_file;

/**
 * struct sovia_tenant - one of those who share what this host has
 * @refs: each socket, each connection, and each link of @local_links
 * @net: cookie of a network namespace, or 0
 * @user_ns: number of a user namespace that root has made, or 0
 * @uid: a user of the initial user namespace, or invalid: then, without @user_ns, it is shared by
 *	those for whom there is no other one
 * @number: one more than the last one's, for tables of tenants; others may have the same
 * @held: bytes in the ledger, but for what @part has
 * @part: the rest, of each processor
 * @streams: connections with an entry in the ledger
 * @orphans: closed sockets that wait for their peers
 * @local_links: links within this host that it has made, in all network namespaces
 * @local_spare: of these, how many are half open, or have no connections
 * @node: in the table, see tenant.c
 * @rcu: readers find it in the table
 */
struct sovia_tenant {
	refcount_t		refs;
	u64			net;
	u32			user_ns;
	kuid_t			uid;
	u16			number;
	atomic_long_t		held;
	s32 __percpu		*part;
	atomic_t		streams;
	atomic_t		orphans;
	atomic_t		local_links;
	atomic_t		local_spare;
	struct hlist_node	node;
	struct rcu_head		rcu;
};

struct sovia_tenant *sovia_tenant_get(const struct net *net, kuid_t uid);
void sovia_tenant_free(struct sovia_tenant *tenant);
void sovia_tenant_charge(struct sovia_tenant *tenant, s64 bytes);
void sovia_tenant_streams(struct sovia_tenant *tenant, int more);
s64 sovia_tenant_held(const struct sovia_tenant *tenant);
s64 sovia_tenants_held(void);
unsigned int sovia_tenants_active(void);
s64 sovia_tenants_sum(void);
void sovia_tenants_show(struct seq_file *seq);

static inline void sovia_tenant_ref(struct sovia_tenant *tenant)
{
	refcount_inc(&tenant->refs);
}

/* Any context. */
static inline void sovia_tenant_put(struct sovia_tenant *tenant)
{
	if (refcount_dec_and_test(&tenant->refs))
		sovia_tenant_free(tenant);
}

#endif /* _SOVIA_TENANT_H */

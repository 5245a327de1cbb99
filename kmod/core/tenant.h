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
 * enum sovia_lent - windows of a tenant, by what can be had of them
 * @SOVIA_LENT_LARGE: of more than a message, SOVIA_WINDOW_FIRST
 * @SOVIA_LENT_SOME: of more than the smallest window
 * @SOVIA_LENT_ASKED: the peer has been asked for a part of it, and has not answered
 * @SOVIA_LENT_LISTS: number of lists
 * @SOVIA_LENT_NONE: in no list: there is nothing to be had
 */
enum sovia_lent {
	SOVIA_LENT_LARGE,
	SOVIA_LENT_SOME,
	SOVIA_LENT_ASKED,
	SOVIA_LENT_LISTS,
	SOVIA_LENT_NONE = SOVIA_LENT_LISTS,
};

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
 * @coming: bytes of @held that peers have been asked to give back, and have not answered
 * @lent_lock: of @lent; innermost
 * @lent: sovia_rx::lent of its sockets; the one that was looked at last is at the end
 * @lent_count: how many are in each of them
 * @lent_round: in which round of pressure.c the tenant was asked for windows of a list last
 * @streams: connections with an entry in the ledger
 * @orphans: closed sockets that wait for their peers
 * @local_links: links within this host that it has made, in all network namespaces
 * @local_spare: such links that are half open, have no connections, or are DOWN and not freed
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
	atomic_long_t		coming;
	spinlock_t		lent_lock;	/* innermost */
	struct list_head	lent[SOVIA_LENT_LISTS];
	unsigned int		lent_count[SOVIA_LENT_LISTS];
	unsigned int		lent_round[SOVIA_LENT_LISTS];
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
void sovia_tenant_asked(struct sovia_tenant *tenant, s64 bytes);
s64 sovia_tenant_coming(const struct sovia_tenant *tenant);
s64 sovia_tenants_coming(void);
unsigned int sovia_tenants_active(void);
s64 sovia_tenants_sum(void);
void sovia_tenants_each(void (*visit)(struct sovia_tenant *tenant, void *arg), void *arg);
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

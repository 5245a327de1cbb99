// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tenants (Documentation/limits.rst): who shares this host.  A tenant is
 *
 * - a user, in the initial network namespace, and with all programs in user namespaces that the
 *	user has made, whatever their uids and network namespaces
 * - a user within a network namespace that root has made
 * - all programs in a user namespace that root has made, and in those within: neither their uids
 *	nor their network namespaces are told apart, as they can make both
 *
 * A process with CAP_SETUID could be any number of users.  So a network namespace has no more than
 * TENANTS_NET of them, and the host no more than TENANTS_ALL; sockets that are opened beyond that
 * share one tenant.
 *
 * The ledger has what each tenant holds, in bytes.  Sums of a processor are added to the others
 * in batches, so what the ledger says is off by one batch a processor and tenant at most.
 */
#include <linux/cred.h>
#include <linux/hashtable.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/user_namespace.h>
#include <linux/xarray.h>
#include "objcount.h"
#include "tenant.h"

#define TENANT_BITS	10
/* Batch of a processor, in bytes. */
#define TENANT_BATCH	SZ_64K
/* Users of a network namespace, and tenants in all, that have one of their own. */
#define TENANTS_NET	1024
#define TENANTS_ALL	65536

/* Protects changes of the table, with bottom halves off; readers are under RCU. */
static DEFINE_SPINLOCK(tenants_lock);
static DEFINE_HASHTABLE(tenants, TENANT_BITS);
static atomic_t tenant_numbers = ATOMIC_INIT(0);
/* How many there are, and of each network namespace by its cookie, without shared ones. */
static unsigned int tenants_all;
static DEFINE_XARRAY_FLAGS(tenants_of_net, XA_FLAGS_ACCOUNT);

/* What all hold, but for the batches, and how many have connections. */
static atomic_long_t tenants_held = ATOMIC_LONG_INIT(0);
static atomic_long_t tenants_coming = ATOMIC_LONG_INIT(0);
static atomic_t tenants_active = ATOMIC_INIT(0);

/* By the user namespace of the caller: uids of any but the initial one are for the taking. */
static void tenant_key(const struct net *net, kuid_t uid, struct sovia_tenant *key)
{
	const struct user_namespace *ns = current_user_ns();

	key->net = net == &init_net ? 0 : net->net_cookie;
	key->user_ns = 0;
	key->uid = uid;
	if (ns == &init_user_ns)
		return;
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	/* Its root can make network namespaces, each with a cookie. */
	key->net = 0;
	if (uid_eq(ns->owner, GLOBAL_ROOT_UID)) {
		key->user_ns = ns->ns.inum;
		key->uid = INVALID_UID;
	} else {
		key->uid = ns->owner;
	}
}

/* Is it of those who have no other one? */
static bool tenant_is_shared(const struct sovia_tenant *tenant)
{
	return !tenant->user_ns && !uid_valid(tenant->uid);
}

static unsigned long tenant_count_of_net(const struct sovia_tenant *tenant)
{
	return xa_to_value(xa_load(&tenants_of_net, tenant->net));
}

/* Make it the key of the shared one if there are too many others.  Exact under the lock. */
static void tenant_key_limit(struct sovia_tenant *key)
{
	bool full = READ_ONCE(tenants_all) >= TENANTS_ALL;

	if (tenant_is_shared(key) ||
	    (!full && (key->user_ns || tenant_count_of_net(key) < TENANTS_NET)))
		return;
	if (full)
		key->net = 0;
	key->user_ns = 0;
	key->uid = INVALID_UID;
}

/* Count one more, or one less; false without memory for the first of a network namespace. */
static bool tenant_count(const struct sovia_tenant *tenant, int more)
{
	unsigned long count;

	lockdep_assert_held(&tenants_lock);
	if (tenant_is_shared(tenant))
		return true;
	if (!tenant->user_ns) {
		count = tenant_count_of_net(tenant) + more;
		if (xa_is_err(xa_store(&tenants_of_net, tenant->net,
				       count ? xa_mk_value(count) : NULL,
				       GFP_ATOMIC | __GFP_NOWARN)))
			return false;
	}
	WRITE_ONCE(tenants_all, tenants_all + more);
	return true;
}

static u32 tenant_hash(const struct sovia_tenant *key)
{
	u32 who = key->user_ns ?: __kuid_val(key->uid);

	return hash_64(key->net ^ (u64)who << 32, TENANT_BITS);
}

static struct sovia_tenant *tenant_find_key(const struct sovia_tenant *key)
{
	struct sovia_tenant *tenant;

	hlist_for_each_entry_rcu(tenant, &tenants[tenant_hash(key)], node,
				 lockdep_is_held(&tenants_lock))
		if (tenant->net == key->net && tenant->user_ns == key->user_ns &&
		    tenant->uid.val == key->uid.val &&
		    refcount_inc_not_zero(&tenant->refs))
			return tenant;
	return NULL;
}

/*
 * With a reference for the caller, or NULL, and @key is that of the one to be made.  Under RCU or
 * the lock.
 */
static struct sovia_tenant *tenant_find(struct sovia_tenant *key)
{
	struct sovia_tenant *tenant = tenant_find_key(key);

	if (tenant)
		return tenant;
	tenant_key_limit(key);
	return tenant_is_shared(key) ? tenant_find_key(key) : NULL;
}

static void tenant_release(struct sovia_tenant *tenant)
{
	free_percpu(tenant->part);
	kfree(tenant);
	sovia_object_dec(tenants);
}

static struct sovia_tenant *tenant_alloc(void)
{
	struct sovia_tenant *tenant = kzalloc(sizeof(*tenant), GFP_KERNEL_ACCOUNT);
	int i;

	if (!tenant)
		return NULL;
	sovia_object_inc(tenants);
	refcount_set(&tenant->refs, 1);
	spin_lock_init(&tenant->lent_lock);
	for (i = 0; i < SOVIA_LENT_LISTS; i++)
		INIT_LIST_HEAD(&tenant->lent[i]);
	tenant->number = atomic_inc_return(&tenant_numbers);
	tenant->part = alloc_percpu_gfp(s32, GFP_KERNEL_ACCOUNT);
	if (tenant->part)
		return tenant;
	tenant_release(tenant);
	return NULL;
}

/**
 * sovia_tenant_get() - the tenant of a socket
 * @net: namespace of the socket
 * @uid: its user
 *
 * Context: the process that opens it, may sleep.
 * Return: the tenant with a reference for the caller, shared if there are too many, or NULL
 * without memory.
 */
struct sovia_tenant *sovia_tenant_get(const struct net *net, kuid_t uid)
{
	struct sovia_tenant key, *tenant, *fresh;
	bool added = false;

	tenant_key(net, uid, &key);
	rcu_read_lock();
	tenant = tenant_find(&key);
	rcu_read_unlock();
	if (tenant)
		return tenant;
	fresh = tenant_alloc();
	if (!fresh)
		return NULL;
	spin_lock_bh(&tenants_lock);
	tenant = tenant_find(&key);
	if (!tenant) {
		fresh->net = key.net;
		fresh->user_ns = key.user_ns;
		fresh->uid = key.uid;
		added = tenant_count(fresh, 1);
	}
	if (added)
		hlist_add_head_rcu(&fresh->node, &tenants[tenant_hash(&key)]);
	spin_unlock_bh(&tenants_lock);
	if (added)
		return fresh;
	tenant_release(fresh);
	return tenant;
}

static void tenant_free_rcu(struct rcu_head *rcu)
{
	tenant_release(container_of(rcu, struct sovia_tenant, rcu));
}

/* Add what the processors have to the rest.  What it holds is 0 now, in all. */
static void tenant_settle(struct sovia_tenant *tenant)
{
	long rest = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		rest += *per_cpu_ptr(tenant->part, cpu);
	atomic_long_add(rest, &tenants_held);
	WARN_ON_ONCE(atomic_long_read(&tenant->held) + rest || atomic_read(&tenant->streams) ||
		     atomic_long_read(&tenant->coming) ||
		     atomic_read(&tenant->orphans) || atomic_read(&tenant->local_links));
}

/**
 * sovia_tenant_free() - the last reference is gone: use sovia_tenant_put()
 * @tenant: the tenant
 *
 * Context: any.
 */
void sovia_tenant_free(struct sovia_tenant *tenant)
{
	spin_lock_bh(&tenants_lock);
	hlist_del_rcu(&tenant->node);
	tenant_count(tenant, -1);
	spin_unlock_bh(&tenants_lock);
	tenant_settle(tenant);
	call_rcu(&tenant->rcu, tenant_free_rcu);
}

static void tenant_add(struct sovia_tenant *tenant, s64 bytes)
{
	atomic_long_add(bytes, &tenant->held);
	atomic_long_add(bytes, &tenants_held);
}

/**
 * sovia_tenant_charge() - enter memory in the ledger, or strike it out
 * @tenant: who has it
 * @bytes: how much more, or less if negative
 *
 * Context: any.
 */
void sovia_tenant_charge(struct sovia_tenant *tenant, s64 bytes)
{
	s32 part;

	if (unlikely(abs(bytes) >= TENANT_BATCH)) {
		tenant_add(tenant, bytes);
		return;
	}
	part = this_cpu_add_return(*tenant->part, (s32)bytes);
	if (unlikely(abs(part) >= TENANT_BATCH))
		tenant_add(tenant, this_cpu_xchg(*tenant->part, 0));
}

/**
 * sovia_tenant_streams() - a tenant has another connection, or one less
 * @tenant: whose
 * @more: 1 or -1
 *
 * Context: any.
 */
void sovia_tenant_streams(struct sovia_tenant *tenant, int more)
{
	int now = atomic_add_return(more, &tenant->streams);

	/* The first one, or the last one. */
	if (now == max(more, 0))
		atomic_add(more, &tenants_active);
}

/**
 * sovia_tenant_held() - what a tenant holds
 * @tenant: the tenant
 *
 * Context: any.
 * Return: bytes, but for the batches.
 */
s64 sovia_tenant_held(const struct sovia_tenant *tenant)
{
	return atomic_long_read(&tenant->held);
}

/**
 * sovia_tenants_held() - what all hold
 *
 * Context: any.
 * Return: bytes, but for the batches.
 */
s64 sovia_tenants_held(void)
{
	return atomic_long_read(&tenants_held);
}

/**
 * sovia_tenant_asked() - peers have been asked to give back more, or less
 * @tenant: what it holds
 * @bytes: how much more, or less if negative
 *
 * Context: any.
 */
void sovia_tenant_asked(struct sovia_tenant *tenant, s64 bytes)
{
	atomic_long_add(bytes, &tenant->coming);
	atomic_long_add(bytes, &tenants_coming);
}

/**
 * sovia_tenant_coming() - what a tenant's peers have been asked for
 * @tenant: the tenant
 *
 * Context: any.
 * Return: bytes.
 */
s64 sovia_tenant_coming(const struct sovia_tenant *tenant)
{
	return atomic_long_read(&tenant->coming);
}

/**
 * sovia_tenants_coming() - what all peers have been asked for
 *
 * Context: any.
 * Return: bytes.
 */
s64 sovia_tenants_coming(void)
{
	return atomic_long_read(&tenants_coming);
}

/**
 * sovia_tenants_active() - how many have connections
 *
 * Context: any.
 * Return: their number.
 */
unsigned int sovia_tenants_active(void)
{
	return atomic_read(&tenants_active);
}

static s64 tenant_sum(const struct sovia_tenant *tenant)
{
	s64 sum = sovia_tenant_held(tenant);
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*per_cpu_ptr(tenant->part, cpu));
	return sum;
}

/**
 * sovia_tenants_sum() - what all hold, with the batches
 *
 * Context: process; slow.
 * Return: bytes.
 */
s64 sovia_tenants_sum(void)
{
	struct sovia_tenant *tenant;
	s64 sum = 0;
	int bkt;

	rcu_read_lock();
	hash_for_each_rcu(tenants, bkt, tenant, node)
		sum += tenant_sum(tenant);
	rcu_read_unlock();
	return max(sum, 0LL);
}

/**
 * sovia_tenants_each() - visit all
 * @visit: called with each, under RCU
 * @arg: passed on
 *
 * Context: process or softirq.
 */
void sovia_tenants_each(void (*visit)(struct sovia_tenant *tenant, void *arg), void *arg)
{
	struct sovia_tenant *tenant;
	int bkt;

	rcu_read_lock();
	hash_for_each_rcu(tenants, bkt, tenant, node)
		visit(tenant, arg);
	rcu_read_unlock();
}

/**
 * sovia_tenants_show() - a line for each
 * @seq: where to
 *
 * The cookie of a network namespace, or the number of a user namespace, or 0; the user, or -1;
 * pages, connections, orphans.
 *
 * Context: process.
 */
void sovia_tenants_show(struct seq_file *seq)
{
	struct sovia_tenant *tenant;
	int bkt;

	rcu_read_lock();
	hash_for_each_rcu(tenants, bkt, tenant, node)
		seq_printf(seq, "tenant %llu %d %lld %d %d\n", tenant->net ?: tenant->user_ns,
			   (int)__kuid_val(tenant->uid), max(tenant_sum(tenant), 0LL) >> PAGE_SHIFT,
			   atomic_read(&tenant->streams), atomic_read(&tenant->orphans));
	rcu_read_unlock();
}

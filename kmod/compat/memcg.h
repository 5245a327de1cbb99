/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory control groups of sockets. */
#ifndef _SOVIA_COMPAT_MEMCG_H
#define _SOVIA_COMPAT_MEMCG_H

#include <linux/memcontrol.h>
#include <linux/version.h>
#include <net/sock.h>

#ifdef CONFIG_MEMCG
/* The group that the socket charges, or NULL: the root group, or no group counts sockets. */
static inline struct mem_cgroup *sovia_memcg(const struct sock *sk)
{
	return mem_cgroup_sockets_enabled ? sk->sk_memcg : NULL;
}

static inline void sovia_memcg_set(struct sock *sk, struct mem_cgroup *memcg)
{
	sk->sk_memcg = memcg;
}

/* Might a socket that the current task opens charge a group?  The root group counts none. */
static inline bool sovia_memcg_of_task(void)
{
	struct mem_cgroup *memcg;
	bool some;

	if (!mem_cgroup_sockets_enabled)
		return false;
	rcu_read_lock();
	memcg = mem_cgroup_from_task(current);
	some = memcg && parent_mem_cgroup(memcg);
	rcu_read_unlock();
	return some;
}

/* Does its group reclaim with little success?  It has one. */
static inline bool sovia_memcg_short(const struct sock *sk)
{
	/* 6.18 counts it as an event of the group. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
	return mem_cgroup_sk_under_memory_pressure(sk);
#else
	return mem_cgroup_under_socket_pressure(sk->sk_memcg);
#endif
}
#else
static inline struct mem_cgroup *sovia_memcg(const struct sock *sk)
{
	return NULL;
}

static inline void sovia_memcg_set(struct sock *sk, struct mem_cgroup *memcg)
{
}

static inline bool sovia_memcg_of_task(void)
{
	return false;
}

static inline bool sovia_memcg_short(const struct sock *sk)
{
	return false;
}
#endif

#endif /* _SOVIA_COMPAT_MEMCG_H */

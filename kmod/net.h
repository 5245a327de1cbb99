/* SPDX-License-Identifier: GPL-2.0-only */
/* AF_SOVIA's state of each network namespace. */
#ifndef _SOVIA_NET_H
#define _SOVIA_NET_H

#include <linux/hashtable.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "stat.h"

#define SOVIA_LINK_BITS		8

/**
 * struct sovia_net - per network namespace
 * @net: the namespace
 * @mib: counters
 * @conns: connections by link and ports; lookups under RCU take the reference
 * @link_lock: protects @links and @link_count; innermost but for the connection
 *	thread's queue, bottom halves off
 * @links: struct sovia_link::net_node by hash of the address pair
 * @far_links: struct sovia_link::far_node of links to other nodes.  Protected by @link_lock.
 * @link_count: how many these are
 * @link_ids: all links in @links, by a number of their own; for /proc
 * @listen_mutex: protects @listening
 * @listening: providers accept requests in this namespace, or try to
 * @listen_tracker: of the reference to the namespace while they do
 * @served: they did at least once, so the connection thread runs
 * @served_node: in the list of such namespaces: link_net.c
 * @listen_work: makes verbs listen, and retries until that succeeds
 * @listen_wait: jiffies until its next try; private to it
 * @socks: number of sockets, including those whose memory is still charged
 * @idle_work: stops listening after the last socket; holds the namespace while queued
 * @sweep_work: ends the links then; runs in the connection thread
 *
 * Lives from the pernet init to the pernet exit.  Sockets hold the namespace, and so do
 * listening and links, which end with the
 * last socket, except in the initial namespace, which never dies.
 */
struct sovia_net {
	struct net			*net;
	DEFINE_SNMP_STAT(struct sovia_mib, mib);
	struct rhashtable		conns;
	spinlock_t			link_lock;	/* see above */
	DECLARE_HASHTABLE(links, SOVIA_LINK_BITS);
	struct list_head		far_links;
	unsigned int			link_count;
	struct xarray			link_ids;
	struct mutex			listen_mutex;	/* see above */
	bool				listening;
	netns_tracker			listen_tracker;
	bool				served;
	struct list_head		served_node;
	struct delayed_work		listen_work;
	unsigned long			listen_wait;
	atomic_t			socks;
	struct work_struct		idle_work;
	struct kthread_work		sweep_work;
};

/* net.c */
extern unsigned int sovia_net_id;

/**
 * sovia_net() - AF_SOVIA's state of a namespace
 * @net: the namespace
 *
 * Context: any, while @net lives.
 * Return: never NULL.
 */
static inline struct sovia_net *sovia_net(const struct net *net)
{
	return net_generic(net, sovia_net_id);
}

/* netns.c */
int sovia_net_register(void);
void sovia_net_unregister(void);

/* sock/proc.c */
int sovia_proc_net_init(struct net *net);
void sovia_proc_net_exit(struct net *net);

#endif /* _SOVIA_NET_H */

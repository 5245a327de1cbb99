/* SPDX-License-Identifier: GPL-2.0-only */
/* AF_SOVIA's state of each network namespace. */
#ifndef _SOVIA_NET_H
#define _SOVIA_NET_H

#include <linux/hashtable.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rhashtable-types.h>
#include <linux/siphash.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include "stat.h"
#include "sysctl.h"

struct socket;
struct sovia_hists;
struct sovia_rules;
struct sovia_tcp_entry;

#define SOVIA_LINK_BITS		8

/**
 * struct sovia_rendezvous - a namespace's part in peer/rendezvous.c, anchor.c and peer.c
 * @mode: enum sovia_rendezvous_mode, net.sovia.rendezvous
 * @instance: random, tells this kernel and namespace from others; set before @ready
 * @ready: the sockets of @mode are there
 * @near_node: in the list of namespaces that answer: near.c
 * @work: makes and closes the sockets, and retries what failed
 * @retry: jiffies until its next try; private to it
 * @accept_work: takes connections of other kernels
 * @mutex: protects @holders and @listeners
 * @holders: sockets that keep the asking port from programs, IPv4's and IPv6's, or NULL
 * @listeners: struct rdv_listener, one for each L3 domain
 * @lock: protects @anchors; bottom halves off
 * @anchors: struct sovia_anchor::net_node
 * @peers: struct sovia_peer::net_node by hash of the addresses; of the connection thread
 * @peer_lru: struct sovia_peer::lru_node, the least recently used first; likewise
 * @peer_count: how many; likewise
 * @peer_ids: all in @peers, by a number of their own; readers use RCU
 * @flush: forget those without links, whatever @mode is
 * @forget_work: forgets them when @mode is off; runs in the connection thread
 * @ways_work: has them introduced again; likewise
 */
struct sovia_rendezvous {
	struct sovia_sysctl	mode;
	u8			instance[16];
	bool			ready;
	struct hlist_node	near_node;
	struct delayed_work	work;
	unsigned long		retry;
	struct work_struct	accept_work;
	struct mutex		mutex;	/* see above */
	struct socket		*holders[2];
	struct list_head	listeners;
	spinlock_t		lock;	/* see above */
	struct list_head	anchors;
	DECLARE_HASHTABLE(peers, SOVIA_LINK_BITS);
	struct list_head	peer_lru;
	unsigned int		peer_count;
	struct xarray		peer_ids;
	bool			flush;
	struct kthread_work	forget_work;
	struct kthread_work	ways_work;
};

/**
 * struct sovia_keys - keys for peers of a namespace: peer/key.c
 * @list: of struct entry, the newest first
 * @count: how many
 * @generation: grows with each change
 * @look: finds those that have expired
 * @changed: ends peers whose key is not valid any more; runs in the connection thread
 *
 * The first three are protected by a lock of key.c.
 */
struct sovia_keys {
	struct list_head	list;
	unsigned int		count;
	u32			generation;
	struct delayed_work	look;
	struct kthread_work	changed;
};

/* Buckets of sovia_memories::hash. */
#define SOVIA_MEMORY_BITS	8

/* Slots of sovia_memories::services. */
#define SOVIA_SERVICE_BITS	8

/**
 * struct sovia_service - a port where TCP has a listener, AF_SOVIA none
 * @key: a hash of the peer and the port, not 0
 * @until: when that is over, jiffies
 *
 * Written and read without a lock: a mix of what two writers write makes one connection fall back.
 */
struct sovia_service {
	u64			key;
	unsigned long		until;
};

/**
 * struct sovia_memories - peers that AF_SOVIA does not reach: peer/peer_memory.c
 * @lock: protects them; innermost, bottom halves off
 * @hash: struct memory::node by address; readers use RCU
 * @lru: struct memory::lru_node
 * @count: how many; read without the lock
 * @services: by key; the newest takes the slot
 * @services_until: when the last of them is over, jiffies
 * @secret: of the keys
 */
struct sovia_memories {
	spinlock_t		lock;	/* see above */
	DECLARE_HASHTABLE(hash, SOVIA_MEMORY_BITS);
	struct list_head	lru;
	unsigned int		count;
	struct sovia_service	services[1 << SOVIA_SERVICE_BITS];
	unsigned long		services_until;
	siphash_key_t		secret;
};

/**
 * struct sovia_tcp_log - the last connections that fell back to TCP: sock/tcp_log.c
 * @lock: protects them; innermost
 * @next: number of the next entry
 * @ring: by number, or NULL before the first one
 */
struct sovia_tcp_log {
	spinlock_t		lock;	/* see above */
	u64			next;
	struct sovia_tcp_entry	*ring;
};

/**
 * struct sovia_net - per network namespace
 * @net: the namespace
 * @mib: counters
 * @hists: histograms, or NULL: hist.c
 * @histograms: net.sovia.histograms: they are counted
 * @tos: net.sovia.tos: type of service of lanes
 * @tcp_log: which connections fell back to TCP
 * @conns: connections by link and ports; lookups under RCU take the reference
 * @link_lock: protects @links and what follows up to @idle_count; bottom halves off
 * @links: struct sovia_link::net_node by hash of the address pair
 * @far_links: struct sovia_link::far_node of links to other nodes, the most idle ones first
 * @parked_links: the same, of parked ones
 * @link_count: length of @far_links
 * @room_asked: when a parked link last asked for room, jiffies.  Connection thread.
 * @parked_count: length of @parked_links
 * @idle_count: how many of @far_links have been idle for a while
 * @link_ids: all links in @links, by a number of their own, for administrators
 * @max_links: net.sovia.max_links: no more of @far_links that are not parked
 * @idle_links: net.sovia.idle_links: no more idle ones keep their queue pairs
 * @listen_mutex: protects @listening
 * @listening: providers accept requests in this namespace, or try to
 * @may_listen: @listen_work may be queued, see sovia_link_devices_changed()
 * @listen_tracker: of the reference to the namespace while they do
 * @served: they did at least once
 * @served_node: in the list of such namespaces: link_net.c
 * @listen_work: makes verbs listen, and retries until that succeeds
 * @listen_wait: jiffies until its next try; private to it
 * @socks: number of sockets, including those whose memory is still charged
 * @idle_work: stops listening after the last socket; holds the namespace while queued
 * @sweep_work: ends the links then; runs in the connection thread
 * @devices_work: RDMA devices or addresses of them have come; likewise, and likewise holds it
 * @rdv: how other kernels are met
 * @keys: for whom a key is needed, and which
 * @memories: peers that are not reached
 * @fallback: net.sovia.fallback: sockets take their port in TCP, too
 * @netfilter: net.sovia.netfilter: it is asked for each connection
 * @rules: what becomes of connections, or NULL: rule.c; readers use RCU
 * @rules_generation: of the last list
 *
 * Lives from the pernet init to the pernet exit.  Sockets hold the namespace, and so do
 * listening and links, which end with the
 * last socket, except in the initial namespace, which never dies.
 */
struct sovia_net {
	struct net			*net;
	DEFINE_SNMP_STAT(struct sovia_mib, mib);
	struct sovia_hists __percpu	*hists;
	struct sovia_sysctl		histograms;
	struct sovia_sysctl		tos;
	struct sovia_tcp_log		tcp_log;
	struct rhashtable		conns;
	spinlock_t			link_lock;	/* see above */
	DECLARE_HASHTABLE(links, SOVIA_LINK_BITS);
	struct list_head		far_links;
	struct list_head		parked_links;
	unsigned int			link_count;
	unsigned long			room_asked;
	unsigned int			parked_count;
	unsigned int			idle_count;
	struct xarray			link_ids;
	struct sovia_sysctl		max_links;
	struct sovia_sysctl		idle_links;
	struct mutex			listen_mutex;	/* see above */
	bool				listening;
	bool				may_listen;
	netns_tracker			listen_tracker;
	bool				served;
	struct list_head		served_node;
	struct delayed_work		listen_work;
	unsigned long			listen_wait;
	atomic_t			socks;
	struct work_struct		idle_work;
	struct kthread_work		sweep_work;
	struct kthread_work		devices_work;
	struct sovia_rendezvous		rdv;
	struct sovia_keys		keys;
	struct sovia_memories		memories;
	struct sovia_sysctl		fallback;
	struct sovia_sysctl		netfilter;
	struct sovia_rules __rcu	*rules;
	u32				rules_generation;
};

/* main.c */
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

/* Type of service of a namespace's listener, and of its lanes unless a rule says something else. */
static inline unsigned int sovia_tos_of_net(const struct sovia_net *snet)
{
	return READ_ONCE(snet->tos.value);
}

#endif /* _SOVIA_NET_H */

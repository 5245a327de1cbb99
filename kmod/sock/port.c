// SPDX-License-Identifier: GPL-2.0-only
/*
 * The port space: which sockets are bound to a port.
 *
 * A bucket for each port in use, with a list of its owners: sockets bound to it, the
 * children of listeners, and sockets whose connect() chose the port.  Those of the last
 * kind borrow the port: they share it with each other, as long as the four-tuples differ, and
 * with no other socket.  CONN does not look at any of this: listener.c has the listeners.
 *
 * Ports conflict as TCP's do: two sockets may share a port when their
 * addresses or devices differ, when both allow SO_REUSEADDR and none of them
 * listens, or when both allow SO_REUSEPORT and belong to one user.
 *
 * A port may have any number of owners, and each of them may matter.  As TCP does, the bucket
 * remembers what makes most checks unnecessary: that all owners allow SO_REUSEADDR, or which
 * SO_REUSEPORT group has no conflict.  Other checks drop the lock from time to time.  The
 * list is in the order of the checks: a socket is appended first, then checked against all
 * before it, so of two at the same time one sees the other.
 */
#include <linux/bpf.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ip.h>
#include <net/netns/hash.h>
#include "compat/addr.h"
#include "port.h"
#include "slots.h"

#define SLOT_PAGES	64
#define SLOTS_MIN	256UL
#define SLOTS_MAX	16384UL

/* Owners checked without dropping the lock. */
#define SCAN_BATCH	64

struct port_slot;

/**
 * struct sovia_bucket - a port in use
 * @node: in its slot
 * @slot: the slot
 * @net: namespace; its sockets pin it
 * @l3: L3 domain that the sockets are bound to: the ifindex of its device, or 0.  Always 0
 *	with net.ipv4.tcp_l3mdev_accept.
 * @port: the port
 * @bound: owners that do not borrow it
 * @owners: struct sovia_bind::node, and the markers of checks under way
 * @all_reuse: all of @bound allowed SO_REUSEADDR and did not listen when they were checked
 * @group: sockets with SO_REUSEPORT, of @group_uid and with an address that @group_addr
 *	includes, conflict with none of the owners
 * @group_any: with any address
 * @group_v6only: IPV6_V6ONLY of the socket whose address @group_addr is
 * @group_uid: see @group
 * @group_addr: see @group; IPv4 as v4-mapped
 *
 * Lives while it has owners.  All but @slot, @net, @l3 and @port under the slot's lock.
 */
struct sovia_bucket {
	struct hlist_node	node;
	struct port_slot	*slot;
	struct net		*net;
	int			l3;
	u16			port;
	unsigned int		bound;
	struct list_head	owners;
	bool			all_reuse;
	bool			group;
	bool			group_any;
	bool			group_v6only;
	kuid_t			group_uid;
	struct in6_addr		group_addr;
};

/**
 * struct port_slot - buckets of one hash value
 * @lock: protects the buckets; bottom halves off, inside a socket lock
 * @buckets: struct sovia_bucket::node
 * @spare: one for the next port, or NULL.  Not accounted to control groups, unlike the
 *	sockets, of which each bucket has one at least.
 */
struct port_slot {
	spinlock_t		lock;	/* see above */
	struct hlist_head	buckets;
	struct sovia_bucket	*spare;
};

static struct port_slot *port_slots;
static unsigned int port_slots_mask;
static u32 port_seed;

static struct port_slot *port_slot(const struct net *net, u16 port)
{
	return &port_slots[jhash_1word(port ^ net_hash_mix(net), port_seed) & port_slots_mask];
}

/* Of a socket that has a bucket. */
static struct port_slot *slot_of(const struct sock *sk)
{
	return sovia_sk(sk)->bind.bucket->slot;
}

/* Also for sockets without a descriptor: the user who opened it, or its listener. */
static bool same_user(const struct sock *sk, const struct sock *sk2)
{
	return uid_eq(READ_ONCE(sk->sk_uid), READ_ONCE(sk2->sk_uid));
}

/* Do both allow SO_REUSEPORT?  Once in a group, a socket joins no other one. */
static bool share_group(const struct sock *sk, const struct sock *sk2)
{
	/* The option may change at any time. */
	return sk->sk_reuseport && data_race(!!sk2->sk_reuseport) &&
	       !rcu_access_pointer(sk->sk_reuseport_cb) && same_user(sk, sk2);
}

static bool port_conflict(const struct sock *sk, const struct sock *sk2,
			  const struct sovia_sharing *sharing)
{
	int dev2 = READ_ONCE(sk2->sk_bound_dev_if);
	bool free;

	if (sk == sk2)
		return false;
	if (sk->sk_bound_dev_if && dev2 && sk->sk_bound_dev_if != dev2)
		return false;
	/*
	 * Allows a listener to bind again while its children exist.  The option may change at
	 * any time.
	 */
	if (sk->sk_reuse && data_race(!!sk2->sk_reuse) && READ_ONCE(sk2->sk_state) != TCP_LISTEN)
		free = sharing->reuse && (sharing->reuseport || !share_group(sk, sk2));
	else
		free = sharing->reuseport && share_group(sk, sk2);
	return !free && sovia_rcv_saddr_equal(sk, sk2);
}

static struct sovia_bucket *bucket_find(struct port_slot *slot, const struct net *net, u16 port,
					int l3)
{
	struct sovia_bucket *bucket;

	lockdep_assert_held(&slot->lock);
	hlist_for_each_entry(bucket, &slot->buckets, node)
		if (bucket->port == port && bucket->net == net && bucket->l3 == l3)
			return bucket;
	return NULL;
}

/* The bucket of @port, a new one if there is none; NULL without memory. */
static struct sovia_bucket *bucket_get(struct port_slot *slot, const struct sock *sk, u16 port)
{
	struct net *net = sock_net(sk);
	int l3 = inet_sk_bound_l3mdev(sk);
	struct sovia_bucket *bucket = bucket_find(slot, net, port, l3);

	if (bucket)
		return bucket;
	bucket = slot->spare ?: kmalloc(sizeof(*bucket), GFP_ATOMIC | __GFP_NOWARN);
	if (!bucket)
		return NULL;
	slot->spare = NULL;
	memset(bucket, 0, sizeof(*bucket));
	bucket->slot = slot;
	bucket->net = net;
	bucket->l3 = l3;
	bucket->port = port;
	INIT_LIST_HEAD(&bucket->owners);
	hlist_add_head(&bucket->node, &slot->buckets);
	return bucket;
}

static void bucket_add(struct port_slot *slot, struct sovia_bucket *bucket, struct sock *sk,
		       bool borrowed)
{
	struct sovia_bind *bind = &sovia_sk(sk)->bind;

	lockdep_assert_held(&slot->lock);
	bind->sk = sk;
	bind->bucket = bucket;
	bind->borrowed = borrowed;
	bucket->bound += !borrowed;
	list_add_tail(&bind->node, &bucket->owners);
}

/* It has the port from now on, and shows it. */
static void bucket_show(struct sock *sk)
{
	WRITE_ONCE(inet_sk(sk)->inet_num, sovia_sk(sk)->bind.bucket->port);
}

static void bucket_remove(struct port_slot *slot, struct sock *sk)
{
	struct sovia_bind *bind = &sovia_sk(sk)->bind;
	struct sovia_bucket *bucket = bind->bucket;

	lockdep_assert_held(&slot->lock);
	list_del(&bind->node);
	bucket->bound -= !bind->borrowed;
	bind->bucket = NULL;
	WRITE_ONCE(inet_sk(sk)->inet_num, 0);
	if (list_empty(&bucket->owners)) {
		hlist_del(&bucket->node);
		if (slot->spare)
			kfree(bucket);
		else
			slot->spare = bucket;
	}
}

/* Does it allow SO_REUSEADDR, as far as others are concerned? */
static bool port_reusable(const struct sock *sk)
{
	return sk->sk_reuse && sk->sk_state != TCP_LISTEN;
}

static bool in_group(const struct sovia_bucket *bucket, const struct sock *sk)
{
	struct in6_addr addr = sovia_rcv_saddr(sk);

	return bucket->group && sk->sk_reuseport && !rcu_access_pointer(sk->sk_reuseport_cb) &&
	       uid_eq(bucket->group_uid, READ_ONCE(sk->sk_uid)) &&
	       (bucket->group_any || sovia_rcv_saddr_covers(&bucket->group_addr,
							    bucket->group_v6only, &addr));
}

/* @sk conflicts with none of the owners, and is the first one if it is @alone. */
static void bucket_learn(struct sovia_bucket *bucket, const struct sock *sk, bool alone)
{
	bucket->all_reuse = port_reusable(sk) && (alone || bucket->all_reuse);
	if (!alone && in_group(bucket, sk))
		return;
	bucket->group = sk->sk_reuseport;
	bucket->group_any = alone;
	bucket->group_v6only = ipv6_only_sock(sk);
	bucket->group_uid = READ_ONCE(sk->sk_uid);
	bucket->group_addr = sovia_rcv_saddr(sk);
}

/* Let others have the lock.  They must not overlook @sk, which is still being checked. */
static void scan_pause(struct port_slot *slot, struct sock *sk)
	__releases(&slot->lock) __acquires(&slot->lock)
{
	struct sovia_bucket *bucket = sovia_sk(sk)->bind.bucket;

	bucket->all_reuse &= port_reusable(sk);
	bucket->group = false;
	spin_unlock_bh(&slot->lock);
	/* A BPF program that binds must not sleep. */
	if (!has_current_bpf_ctx())
		cond_resched();
	spin_lock_bh(&slot->lock);
}

/* Does @sk conflict with one of the owners before it? */
static bool bucket_conflict(struct port_slot *slot, struct sock *sk,
			    const struct sovia_sharing *sharing)
{
	struct sovia_bind *self = &sovia_sk(sk)->bind, *bind, marker = {};
	struct list_head *owners = &self->bucket->owners;
	unsigned int n = 0;

	lockdep_assert_held(&slot->lock);
	for (bind = list_first_entry(owners, struct sovia_bind, node); bind != self;
	     bind = list_next_entry(bind, node)) {
		if (bind->sk && port_conflict(sk, bind->sk, sharing))
			return true;
		if (++n % SCAN_BATCH)
			continue;
		list_add(&marker.node, &bind->node);
		scan_pause(slot, sk);
		bind = list_prev_entry(&marker, node);
		list_del(&marker.node);
	}
	return false;
}

/**
 * sovia_port_bind() - bind to a port, or check again that a listener may have its port
 * @sk: not bound, or bound to @port
 * @port: the port
 * @sharing: with whom it may be shared
 *
 * Context: process, socket lock held.
 * Return: 0; with -EADDRINUSE or -ENOMEM @sk is as before.
 */
int sovia_port_bind(struct sock *sk, u16 port, const struct sovia_sharing *sharing)
{
	struct port_slot *slot = port_slot(sock_net(sk), port);
	struct sovia_bind *self = &sovia_sk(sk)->bind;
	bool again = self->bucket;
	struct sovia_bucket *bucket;
	bool alone, known;
	int err = 0;

	spin_lock_bh(&slot->lock);
	bucket = self->bucket ?: bucket_get(slot, sk, port);
	if (!bucket) {
		err = -ENOMEM;
		goto unlock;
	}
	alone = list_empty(&bucket->owners);
	known = sharing->reuseport && !alone &&
		((bucket->all_reuse && port_reusable(sk)) || in_group(bucket, sk));
	if (again)
		list_move_tail(&self->node, &bucket->owners);
	else
		bucket_add(slot, bucket, sk, false);
	if (!known && bucket_conflict(slot, sk, sharing)) {
		err = -EADDRINUSE;
		if (!again)
			bucket_remove(slot, sk);
		goto unlock;
	}
	bucket_learn(bucket, sk, alone);
	bucket_show(sk);
unlock:
	spin_unlock_bh(&slot->lock);
	return err;
}

/**
 * sovia_port_borrow() - take a port for a connection
 * @sk: in connect(), not bound
 * @port: the port
 *
 * Succeeds if all other owners are of that kind, too: the caller must make sure that the
 * four-tuples differ.
 *
 * Context: process, socket lock held.
 * Return: 0, -EADDRINUSE or -ENOMEM.
 */
int sovia_port_borrow(struct sock *sk, u16 port)
{
	struct port_slot *slot = port_slot(sock_net(sk), port);
	struct sovia_bucket *bucket;
	int err = 0;

	spin_lock_bh(&slot->lock);
	bucket = bucket_get(slot, sk, port);
	if (!bucket)
		err = -ENOMEM;
	else if (bucket->bound)
		err = -EADDRINUSE;
	if (!err) {
		bucket_add(slot, bucket, sk, true);
		bucket_show(sk);
	}
	spin_unlock_bh(&slot->lock);
	return err;
}

/**
 * sovia_inherit_port() - bind a child to its listener's port
 * @listener: perhaps it has just been closed
 * @child: with inet_num already set
 *
 * Context: softirq; @child has no other user yet.
 * Return: false if @listener has no port any more.
 */
bool sovia_inherit_port(struct sock *listener, struct sock *child)
{
	struct port_slot *slot = port_slot(sock_net(child), inet_sk(child)->inet_num);
	bool bound;

	spin_lock_bh(&slot->lock);
	/* If so, this is its slot, and the bucket stays. */
	bound = READ_ONCE(inet_sk(listener)->inet_num) == inet_sk(child)->inet_num;
	if (bound)
		bucket_add(slot, sovia_sk(listener)->bind.bucket, child, false);
	spin_unlock_bh(&slot->lock);
	return bound;
}

/**
 * sovia_put_port() - release the port
 * @sk: bound or not
 *
 * The address stays: getsockname() works as for a dead TCP connection.
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_put_port(struct sock *sk)
{
	struct port_slot *slot;

	if (!sovia_sk(sk)->bind.bucket)
		return;
	slot = slot_of(sk);
	spin_lock_bh(&slot->lock);
	bucket_remove(slot, sk);
	spin_unlock_bh(&slot->lock);
}

/**
 * sovia_port_set_local() - set the local address of a socket that may be bound
 * @sk: the socket
 * @addr: IPv4 as v4-mapped
 *
 * Those who check a port read the addresses of its owners.
 *
 * Context: socket lock held.
 */
void sovia_port_set_local(struct sock *sk, const struct in6_addr *addr)
{
	struct port_slot *slot;

	if (!sovia_sk(sk)->bind.bucket) {
		sovia_set_local(sk, addr);
		return;
	}
	slot = slot_of(sk);
	spin_lock_bh(&slot->lock);
	sovia_set_local(sk, addr);
	spin_unlock_bh(&slot->lock);
}

/**
 * sovia_port_reset_local() - forget the local address unless bind() has set it
 * @sk: the socket, bound to a port or not
 *
 * Context: socket lock held.
 */
void sovia_port_reset_local(struct sock *sk)
{
	struct port_slot *slot;

	if (sk->sk_userlocks & SOCK_BINDADDR_LOCK)
		return;
	if (!sovia_sk(sk)->bind.bucket) {
		inet_reset_saddr(sk);
		return;
	}
	slot = slot_of(sk);
	spin_lock_bh(&slot->lock);
	inet_reset_saddr(sk);
	spin_unlock_bh(&slot->lock);
}

/**
 * sovia_ports_init() - allocate the table, before the first socket
 *
 * Return: 0 or -ENOMEM.
 */
int __init sovia_ports_init(void)
{
	unsigned long i, slots = sovia_slots(SLOT_PAGES, SLOTS_MIN, SLOTS_MAX);

	port_slots = kvmalloc_array(slots, sizeof(*port_slots), GFP_KERNEL);
	if (!port_slots)
		return -ENOMEM;
	for (i = 0; i < slots; i++) {
		spin_lock_init(&port_slots[i].lock);
		INIT_HLIST_HEAD(&port_slots[i].buckets);
		port_slots[i].spare = NULL;
	}
	port_slots_mask = slots - 1;
	port_seed = get_random_u32();
	return 0;
}

/**
 * sovia_ports_exit() - free the table, after the last socket
 */
void sovia_ports_exit(void)
{
	unsigned int i;

	for (i = 0; i <= port_slots_mask; i++)
		kfree(port_slots[i].spare);
	kvfree(port_slots);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/port_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The listeners, and which of them gets a connection.
 *
 * Like TCP's: a hash of address and port, so that listeners on other addresses or ports, and
 * connections, cost CONN nothing.  A listener on the address itself comes before one on any
 * address; between several of a kind the score decides.  Those of an SO_REUSEPORT group are
 * all in the same slot, and the first of them that fits stands for the group, which chooses.
 *
 * Lookups take no lock.  A listener that is closed and listens again elsewhere, while a lookup
 * looks at it, takes the lookup with it to another slot; the slot counts those that leave it,
 * and a lookup during which the count changes is repeated under the lock.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/netns/hash.h>
#include <net/sock_reuseport.h>
#include "compat/addr.h"
#include "core/addr.h"
#include "listener.h"
#include "policy/route.h"
#include "program.h"
#include "slots.h"

#define SLOT_PAGES	256
#define SLOTS_MIN	64UL
#define SLOTS_MAX	4096UL

/**
 * struct sovia_listen_slot - listeners of one hash value
 * @lock: protects changes; bottom halves off, inside a socket lock
 * @socks: struct sovia_sock::listening.node; read under RCU
 * @left: how many have been removed
 */
struct sovia_listen_slot {
	spinlock_t		lock;	/* see above */
	struct hlist_head	socks;
	unsigned int		left;
};

static struct sovia_listen_slot *listen_slots;
static unsigned int listen_slots_mask;
static u32 listen_seed;

/**
 * struct wanted - what a lookup looks for
 * @net: namespace
 * @pair: addresses of the link
 * @msg: CONN
 * @addr: address of the listener: @pair's or any
 * @v4: the addresses are IPv4's
 */
struct wanted {
	struct net			*net;
	const struct sovia_pair		*pair;
	const struct sovia_msg		*msg;
	const struct in6_addr		*addr;
	bool				v4;
};

static struct sovia_listen_slot *listen_slot(const struct net *net, const struct in6_addr *addr,
					     u16 port)
{
	u32 hash = __ipv6_addr_jhash(addr, port ^ net_hash_mix(net) ^ listen_seed);

	return &listen_slots[hash & listen_slots_mask];
}

/* The address a socket is bound to; any address is the same for both families. */
static struct in6_addr listen_address(const struct sock *sk)
{
	struct in6_addr addr = sovia_rcv_saddr(sk);

	return ipv6_addr_v4mapped(&addr) && !addr.s6_addr32[3] ? in6addr_any : addr;
}

/* ---- joining and leaving --------------------------------------------- */

/* Do two listeners belong to the same SO_REUSEPORT group? */
static bool same_group(const struct sock *sk, const struct sock *sk2)
{
	/* The option may change at any time. */
	return data_race(!!sk2->sk_reuseport) && net_eq(sock_net(sk2), sock_net(sk)) &&
	       sovia_sk(sk2)->bind.bucket == sovia_sk(sk)->bind.bucket &&
	       sk2->sk_family == sk->sk_family && ipv6_only_sock(sk2) == ipv6_only_sock(sk) &&
	       READ_ONCE(sk2->sk_bound_dev_if) == sk->sk_bound_dev_if &&
	       uid_eq(READ_ONCE(sk2->sk_uid), READ_ONCE(sk->sk_uid)) &&
	       sovia_rcv_saddr_same(sk, sk2);
}

static int listener_join_group(struct sovia_listen_slot *slot, struct sock *sk, bool any)
{
	struct sovia_sock *ls;

	lockdep_assert_held(&slot->lock);
	if (!sk->sk_reuseport)
		return 0;
	hlist_for_each_entry(ls, &slot->socks, listening.node)
		if (same_group(sk, (struct sock *)ls))
			return reuseport_add_sock(sk, (struct sock *)ls, any);
	return reuseport_alloc(sk, any);
}

/* Groups of IPv6 behind all others: the first that fits is taken, and IPv4's fit better. */
static void slot_add(struct sovia_listen_slot *slot, struct sock *sk)
{
	struct hlist_node *node = &sovia_sk(sk)->listening.node;

	lockdep_assert_held(&slot->lock);
	if (sk->sk_reuseport && sk->sk_family == AF_INET6)
		hlist_add_tail_rcu(node, &slot->socks);
	else
		hlist_add_head_rcu(node, &slot->socks);
}

/**
 * sovia_listener_add() - make a listener known
 * @sk: in LISTEN, bound; it joins the SO_REUSEPORT group of other listeners
 *
 * Context: process, socket lock held.
 * Return: 0 or a negative errno.
 */
int sovia_listener_add(struct sock *sk)
{
	struct in6_addr addr = listen_address(sk);
	struct sovia_listen_slot *slot = listen_slot(sock_net(sk), &addr, inet_sk(sk)->inet_num);
	int err;

	spin_lock_bh(&slot->lock);
	err = listener_join_group(slot, sk, ipv6_addr_any(&addr));
	if (!err) {
		slot_add(slot, sk);
		sovia_sk(sk)->listening.slot = slot;
	}
	spin_unlock_bh(&slot->lock);
	return err;
}

/**
 * sovia_listener_remove() - the reverse of sovia_listener_add()
 * @sk: was a listener, and still has its address
 *
 * Lookups may still return it: callers check its state under its lock.
 *
 * Context: process, socket lock held.
 */
void sovia_listener_remove(struct sock *sk)
{
	struct sovia_listening *listening = &sovia_sk(sk)->listening;
	struct sovia_listen_slot *slot = listening->slot;

	if (!slot)
		return;
	spin_lock_bh(&slot->lock);
	if (rcu_access_pointer(sk->sk_reuseport_cb))
		reuseport_detach_sock(sk);
	hlist_del_init_rcu(&listening->node);
	WRITE_ONCE(slot->left, slot->left + 1);
	/* Before the node can be added to another slot; pairs with slot_find(). */
	smp_wmb();
	listening->slot = NULL;
	spin_unlock_bh(&slot->lock);
}

/* ---- lookup ---------------------------------------------------------- */

/* Does the listener's address match?  IPv6's any address includes IPv4, if it wants to. */
static bool address_fits(const struct sock *sk, const struct wanted *want)
{
	struct in6_addr addr;

	if (want->v4) {
		if (ipv6_only_sock(sk))
			return false;
		addr = listen_address(sk);
		return ipv6_addr_equal(&addr, want->addr);
	}
	return sk->sk_family == AF_INET6 && ipv6_addr_equal(&sk->sk_v6_rcv_saddr, want->addr);
}

/* Is the listener bound to the interface, or its L3 domain, or does it take what comes? */
static bool device_fits(const struct sock *sk, const struct wanted *want)
{
	int bound = READ_ONCE(sk->sk_bound_dev_if), l3 = want->pair->l3;

	if (!bound)
		return !l3 || sovia_l3mdev_accept(want->net);
	return bound == l3 || bound == sovia_pair_iif(want->net, want->pair);
}

/* How well a listener fits, as with TCP; 0: not at all. */
static int listener_score(const struct sock *sk, const struct wanted *want)
{
	if (READ_ONCE(sk->sk_state) != TCP_LISTEN || !net_eq(sock_net(sk), want->net) ||
	    READ_ONCE(inet_sk(sk)->inet_num) != want->msg->dport ||
	    !address_fits(sk, want) || !device_fits(sk, want))
		return 0;
	return 1 + !!READ_ONCE(sk->sk_bound_dev_if) + (want->v4 && sk->sk_family == AF_INET) +
	       (READ_ONCE(sk->sk_incoming_cpu) == raw_smp_processor_id());
}

/* The best one in a slot, without a reference. */
static struct sock *slot_best(const struct sovia_listen_slot *slot, const struct wanted *want)
{
	struct sovia_sock *ls;
	struct sock *best = NULL, *member;
	int score, high = 0;

	hlist_for_each_entry_rcu(ls, &slot->socks, listening.node) {
		score = listener_score((struct sock *)ls, want);
		if (score <= high)
			continue;
		high = score;
		best = (struct sock *)ls;
		member = sovia_choose_listener(best, want->pair, want->msg);
		/* One that is being closed may still be in the group. */
		if (member && READ_ONCE(member->sk_state) == TCP_LISTEN)
			return member;
	}
	return best;
}

/* Take a reference, unless it has just been closed. */
static struct sock *listener_hold(struct sock *sk)
{
	if (!sk || !refcount_inc_not_zero(&sk->sk_refcnt))
		return NULL;
	if (READ_ONCE(sk->sk_state) == TCP_LISTEN)
		return sk;
	sock_put(sk);
	return NULL;
}

static struct sock *slot_find(struct sovia_listen_slot *slot, const struct wanted *want)
{
	unsigned int left = READ_ONCE(slot->left);
	struct sock *best, *sk;

	/* Read the nodes after the count: those that leave from now on change it. */
	smp_rmb();
	best = slot_best(slot, want);
	sk = listener_hold(best);
	/* Pairs with sovia_listener_remove(): a node seen elsewhere implies the new count. */
	smp_rmb();
	if (READ_ONCE(slot->left) == left && sk == best)
		return sk;
	if (sk)
		sock_put(sk);
	spin_lock_bh(&slot->lock);
	sk = listener_hold(slot_best(slot, want));
	spin_unlock_bh(&slot->lock);
	return sk;
}

static struct sock *find_at(struct wanted *want, const struct in6_addr *addr)
{
	want->addr = addr;
	return slot_find(listen_slot(want->net, addr, want->msg->dport), want);
}

/**
 * sovia_find_listener() - find the listener for a connection
 * @net: namespace
 * @pair: addresses of the link that CONN arrived on
 * @msg: CONN
 *
 * Context: process or softirq; no locks.
 * Return: the listener that fits best, or the one that its SO_REUSEPORT group chooses, with a
 * reference for the caller; or NULL.  It may be closed at any time: its state counts only under
 * its lock.
 */
struct sock *sovia_find_listener(struct net *net, const struct sovia_pair *pair,
				 const struct sovia_msg *msg)
{
	struct wanted want = {
		.net = net, .pair = pair, .msg = msg,
		.v4 = ipv6_addr_v4mapped(&pair->local),
	};
	struct sock *sk;

	rcu_read_lock();
	sk = find_at(&want, &pair->local) ?: find_at(&want, &in6addr_any);
	rcu_read_unlock();
	return sk;
}

/**
 * sovia_listeners_init() - allocate the table, before the first socket
 *
 * Return: 0 or -ENOMEM.
 */
int __init sovia_listeners_init(void)
{
	unsigned long i, slots = sovia_slots(SLOT_PAGES, SLOTS_MIN, SLOTS_MAX);

	listen_slots = kvcalloc(slots, sizeof(*listen_slots), GFP_KERNEL);
	if (!listen_slots)
		return -ENOMEM;
	for (i = 0; i < slots; i++)
		spin_lock_init(&listen_slots[i].lock);
	listen_slots_mask = slots - 1;
	listen_seed = get_random_u32();
	return 0;
}

/**
 * sovia_listeners_exit() - free the table, after the last socket
 */
void sovia_listeners_exit(void)
{
	kvfree(listen_slots);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/listener_test.c"
#endif

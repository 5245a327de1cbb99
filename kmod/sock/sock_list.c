// SPDX-License-Identifier: GPL-2.0-only
/*
 * All sockets, for /proc.
 *
 * A hash of their addresses in memory, which costs a socket little.  Each slot numbers those
 * that are added to it.  Slot and number are a cursor: a socket that exists throughout is
 * found once, whatever else comes and goes.  Readers are under RCU.
 */
#include <linux/export.h>
#include <linux/hash.h>
#include <linux/slab.h>
#include "slots.h"
#include "sock_list.h"

#define SLOT_PAGES	64
#define SLOTS_MIN	256UL
#define SLOTS_MAX	16384UL

/* A cursor: the number of the slot, and how far the socket's is below the largest possible. */
#define NUMBER_BITS	40
#define NUMBER_MAX	((1ULL << NUMBER_BITS) - 1)

/**
 * struct list_slot - sockets of one hash value
 * @lock: protects changes; bottom halves off, inside a socket lock
 * @socks: struct sovia_sock::listed, the last one added first; read under RCU
 * @last: number of the last one
 */
struct list_slot {
	spinlock_t		lock;	/* see above */
	struct hlist_head	socks;
	u64			last;
};

static struct list_slot *list_slots;
static unsigned int list_bits;

static struct list_slot *list_slot(const struct sock *sk)
{
	return &list_slots[hash_ptr(sk, list_bits)];
}

/**
 * sovia_sock_list() - make a socket visible
 * @sk: a new socket
 *
 * Context: any but hard interrupt.
 */
void sovia_sock_list(struct sock *sk)
{
	struct list_slot *slot = list_slot(sk);

	spin_lock_bh(&slot->lock);
	sovia_sk(sk)->number = ++slot->last;
	hlist_add_head_rcu(&sovia_sk(sk)->listed, &slot->socks);
	spin_unlock_bh(&slot->lock);
}

/**
 * sovia_sock_unlist() - the reverse of sovia_sock_list()
 * @sk: listed or not; its memory must stay for a grace period
 *
 * Context: any but hard interrupt.
 */
void sovia_sock_unlist(struct sock *sk)
{
	struct list_slot *slot = list_slot(sk);

	if (hlist_unhashed(&sovia_sk(sk)->listed))
		return;
	spin_lock_bh(&slot->lock);
	hlist_del_init_rcu(&sovia_sk(sk)->listed);
	spin_unlock_bh(&slot->lock);
}

/* The first socket whose number is @most or less.  Only bound and connected ones count. */
static struct sock *slot_from(const struct list_slot *slot, const struct net *net, u64 most)
{
	struct sovia_sock *ss;

	hlist_for_each_entry_rcu(ss, &slot->socks, listed) {
		struct sock *sk = (struct sock *)ss;

		if (ss->number <= most && (!net || net_eq(sock_net(sk), net)) &&
		    READ_ONCE(inet_sk(sk)->inet_num) && refcount_inc_not_zero(&sk->sk_refcnt))
			return sk;
	}
	return NULL;
}

/**
 * sovia_sock_from() - go through the bound and connected sockets of a namespace
 * @net: the namespace, or NULL for all
 * @pos: 0, or one more than the last socket's; set to this socket's
 *
 * Context: process, may sleep.
 * Return: the next socket, with a reference for the caller, or NULL.
 */
struct sock *sovia_sock_from(const struct net *net, loff_t *pos)
{
	u64 slot = *pos >> NUMBER_BITS, most = NUMBER_MAX - (*pos & NUMBER_MAX);
	struct sock *sk;

	for (; slot >> list_bits == 0; slot++, most = NUMBER_MAX) {
		rcu_read_lock();
		sk = slot_from(&list_slots[slot], net, most);
		rcu_read_unlock();
		if (sk) {
			*pos = slot << NUMBER_BITS | (NUMBER_MAX - sovia_sk(sk)->number);
			return sk;
		}
		cond_resched();
	}
	return NULL;
}
EXPORT_SYMBOL_GPL(sovia_sock_from);

/**
 * sovia_sock_list_init() - allocate the table, before the first socket
 *
 * Return: 0 or -ENOMEM.
 */
int __init sovia_sock_list_init(void)
{
	unsigned long i, slots = sovia_slots(SLOT_PAGES, SLOTS_MIN, SLOTS_MAX);

	list_slots = kvcalloc(slots, sizeof(*list_slots), GFP_KERNEL);
	if (!list_slots)
		return -ENOMEM;
	for (i = 0; i < slots; i++)
		spin_lock_init(&list_slots[i].lock);
	list_bits = ilog2(slots);
	return 0;
}

/**
 * sovia_sock_list_exit() - free the table, after the last socket
 */
void sovia_sock_list_exit(void)
{
	kvfree(list_slots);
}

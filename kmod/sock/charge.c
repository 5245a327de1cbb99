// SPDX-License-Identifier: GPL-2.0-only
/*
 * Received data is charged to the memory control group of the socket that holds it.
 *
 * As with TCP, pages are charged, and sk_forward_alloc is what has been charged beyond the memory
 * of the receive queue.  Here the queue's lock protects it, as data comes without the socket lock.
 * So struct proto must not have the kernel's accounting, with which 6.1 lets programs change
 * sk_forward_alloc (SO_RESERVE_MEM).  But what the kernel has for modules charges the group of a
 * struct sock with that accounting: each processor has one, which lends itself to any socket.
 *
 * What was promised to the peer is taken, whatever the group's limit.  Version 2 lets a group
 * exceed it where nothing can wait, and its programs reclaim.  Version 1 refuses: then
 * sk_forward_alloc is negative, until the next charge succeeds.  Either way, windows are the
 * smallest while a group is short of memory.
 *
 * Data within this host stays in the sender's memory, which is charged to the sender's group;
 * only copies are the receiver's (struct sovia_rx_cb::own).
 *
 * A child charges the group of the program that accepts it, from then on, and for what has come
 * before.  Until then its queue does not count in sk_rmem_alloc: in newer kernels their part of
 * accept() charges that much (7.2 does), with no regard to the queue's lock.
 */
#include <linux/percpu.h>
#include "charge.h"
#include "compat/local_lock.h"
#include "core/objcount.h"
#include "recv.h"

static atomic_long_t pages_all;
static DEFINE_PER_CPU(int, pages_here);
/* The ledger limits the total: mem.c. */
static long pages_limits[3] = { LONG_MAX, LONG_MAX, LONG_MAX };
/* The tracepoint of refused charges reads it. */
static int buffer_min;

/* Of the sockets that lend themselves.  Not registered: programs cannot open any. */
static struct proto charge_prot = {
	.name			= "SOVIA-CHARGE",
	.owner			= THIS_MODULE,
	.memory_allocated	= &pages_all,
	.per_cpu_fw_alloc	= &pages_here,
	.sysctl_mem		= pages_limits,
	.sysctl_rmem		= &buffer_min,
	.sysctl_wmem		= &buffer_min,
	.obj_size		= sizeof(struct sock),
};

static struct sock __percpu *lenders;
/* With PREEMPT_RT, that bottom halves are off does not keep others off this processor. */
static DEFINE_PER_CPU(local_lock_t, lenders_lock) = INIT_LOCAL_LOCK(lenders_lock);

/* Charge pages for at least so many bytes.  Returns how many bytes, 0 if the group refuses. */
static int charge_pages(const struct sock *sk, int bytes)
{
	struct sock *lender;
	int got;

	sovia_local_lock_bh(&lenders_lock);
	lender = this_cpu_ptr(lenders);
	sovia_memcg_set(lender, sovia_memcg(sk));
	lender->sk_forward_alloc = 0;
	__sk_mem_schedule(lender, bytes, SK_MEM_RECV);
	got = lender->sk_forward_alloc;
	sovia_object_add(charges, got >> PAGE_SHIFT);
	sovia_local_unlock_bh(&lenders_lock);
	return got;
}

static void uncharge_pages(const struct sock *sk, int bytes)
{
	struct sock *lender;

	sovia_local_lock_bh(&lenders_lock);
	lender = this_cpu_ptr(lenders);
	sovia_memcg_set(lender, sovia_memcg(sk));
	lender->sk_forward_alloc = bytes;
	__sk_mem_reclaim(lender, bytes);
	sovia_object_add(charges, -(bytes >> PAGE_SHIFT));
	sovia_local_unlock_bh(&lenders_lock);
}

/**
 * sovia_charge() - a buffer has been put on the receive queue
 * @sk: its socket
 * @skb: the buffer
 *
 * Context: any but hard interrupts, the receive queue's lock held.
 */
void sovia_charge(struct sock *sk, const struct sk_buff *skb)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;
	int got;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (unlikely(!rx->counts))
		return;
	atomic_add(skb->truesize, &sk->sk_rmem_alloc);
	if (!rx->pays || !SOVIA_RX_CB(skb)->own)
		return;
	sk_forward_alloc_add(sk, -(int)skb->truesize);
	if (sk->sk_forward_alloc >= 0)
		return;
	got = charge_pages(sk, -sk->sk_forward_alloc);
	sk_forward_alloc_add(sk, got);
	if (unlikely(!got))
		sovia_stat_inc(sovia_net(sock_net(sk)), uncharged);
}

/**
 * sovia_uncharge() - a buffer leaves the receive queue
 * @sk: its socket
 * @skb: the buffer
 *
 * Context: any but hard interrupts, the receive queue's lock held.
 */
void sovia_uncharge(struct sock *sk, const struct sk_buff *skb)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;
	int more;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (unlikely(!rx->counts))
		return;
	atomic_sub(skb->truesize, &sk->sk_rmem_alloc);
	if (!rx->pays || !SOVIA_RX_CB(skb)->own)
		return;
	sk_forward_alloc_add(sk, skb->truesize);
	more = round_down(sk->sk_forward_alloc, (int)PAGE_SIZE);
	if (more <= 0)
		return;
	sk_forward_alloc_add(sk, -more);
	uncharge_pages(sk, more);
}

/* From now on, the queue counts; @pays: for a group, too. */
static void count_from_now(struct sock *sk, bool pays)
{
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	const struct sk_buff *skb;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	rx->counts = true;
	WRITE_ONCE(rx->pays, pays);
	skb_queue_walk(&sk->sk_receive_queue, skb)
		sovia_charge(sk, skb);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
}

/*
 * A child has no group yet: older kernels give one in accept() to TCP sockets only.  To learn the
 * task's, a socket is opened and freed.
 */
static void charge_join_group(struct sock *sk)
{
	struct sock *example;

	example = sk_alloc(sock_net(sk), PF_INET, GFP_KERNEL, &charge_prot, 1);
	if (!example)
		return;
	sovia_memcg_set(sk, sovia_memcg(example));
	sovia_memcg_set(example, NULL);
	sk_free(example);
}

/**
 * sovia_charge_begin() - received data counts from now on
 * @sk: new, or a child that is being accepted
 *
 * Context: process, may sleep; no locks.
 */
void sovia_charge_begin(struct sock *sk)
{
	if (!sovia_memcg(sk) && sovia_memcg_of_task())
		charge_join_group(sk);
	count_from_now(sk, sovia_memcg(sk));
}

/**
 * sovia_charge_init() - prepare for charging
 *
 * Context: module init.
 * Return: 0 or -ENOMEM.
 */
int __init sovia_charge_init(void)
{
	int cpu;

	lenders = alloc_percpu(struct sock);
	if (!lenders)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct sock *lender = per_cpu_ptr(lenders, cpu);

		sock_net_set(lender, &init_net);
		lender->sk_prot = &charge_prot;
	}
	return 0;
}

/**
 * sovia_charge_exit() - the reverse of sovia_charge_init()
 *
 * Context: module exit; no sockets are left.
 */
void sovia_charge_exit(void)
{
	free_percpu(lenders);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/charge_test.c"
#endif

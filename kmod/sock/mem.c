// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of all sockets together (Documentation/limits.rst): memory of messages
 * that wait to be read or acknowledged, and orphans, which RLIMIT_NOFILE does not
 * bound.
 *
 * Memory is limited as TCP's is (net.ipv4.tcp_mem): above three quarters of the first
 * number no buffer grows, and above that number windows and send buffers are
 * minimal.  Data within windows already advertised is still accepted.  Above the last
 * number TCP would drop it and the peer would retransmit; a lane cannot, so a
 * connection is reset that holds more than the smallest window and receives more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/percpu_counter.h>
#include <linux/seq_file.h>
#include "debug/debugfs.h"
#include "mem.h"
#include "param.h"
#include "send.h"

/* Batch of the per-CPU counter. */
#define SOVIA_MEM_BATCH		SZ_128K

/* With less, a single connection's data in flight would reset it. */
#define SOVIA_MEM_MIN		1024UL

static unsigned long mem[2];

static unsigned long mem_default(const unsigned long *which)
{
	return which == mem ? totalram_pages() / 16 : totalram_pages() / 32 * 3;
}

static int mem_set(const char *text, const struct kernel_param *kp)
{
	unsigned long pages;
	int err;

	err = kstrtoul(text, 0, &pages);
	if (err || (pages && pages < SOVIA_MEM_MIN)) {
		pr_err("mem must be two page counts, at least %lu, or 0\n", SOVIA_MEM_MIN);
		return -EINVAL;
	}
	WRITE_ONCE(*(unsigned long *)kp->arg, pages ?: mem_default(kp->arg));
	return 0;
}

static const struct kernel_param_ops param_ops_pages = {
	.set	= mem_set,
	.get	= param_get_ulong,
};

#define param_check_pages	param_check_ulong
module_param_array(mem, pages, NULL, 0644);
MODULE_PARM_DESC(mem, "pages for messages: buffers shrink above, connections end above (1/16, 3/32 of RAM)");

static unsigned int max_orphans;
sovia_param(max_orphans, max_orphans, 0, INT_MAX, 0644);
MODULE_PARM_DESC(max_orphans, "maximum of closed sockets that wait for their peers (0: by the size of RAM)");

static struct percpu_counter mem_used;	/* bytes */
static atomic_t orphans = ATOMIC_INIT(0);

static int orphans_most(void)
{
	return READ_ONCE(max_orphans) ?: totalram_pages() / 32;
}

static bool mem_beyond(unsigned long pages)
{
	return percpu_counter_read_positive(&mem_used) >> PAGE_SHIFT > pages;
}

/**
 * sovia_mem_ample() - may buffers grow
 *
 * TCP's first number is three quarters of its second one, too.
 *
 * Context: any.
 * Return: true if buffers may grow.
 */
bool sovia_mem_ample(void)
{
	return likely(!mem_beyond(READ_ONCE(mem[0]) / 4 * 3));
}

/**
 * sovia_mem_short() - is memory for messages running short
 *
 * Context: any.
 * Return: true if buffers and windows should be the smallest.
 */
bool sovia_mem_short(void)
{
	return unlikely(mem_beyond(READ_ONCE(mem[0])));
}

/**
 * sovia_mem_none() - is there no memory left for messages
 *
 * Context: any.
 * Return: true if no connection may hold more than the smallest window.
 */
bool sovia_mem_none(void)
{
	return unlikely(mem_beyond(READ_ONCE(mem[1])));
}

static void mem_add(s64 bytes)
{
	percpu_counter_add_batch(&mem_used, bytes, SOVIA_MEM_BATCH);
}

static void rx_free(struct sk_buff *skb)
{
	mem_add(-(s64)skb->truesize);
	sock_rfree(skb);
}

/* The sender has no part in it any more. */
static void tx_uncharge(struct sk_buff *skb)
{
	struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
	struct sock *sk = skb->sk;

	if (conn)
		sovia_conn_put(conn);
	/* One byte stays charged to pin the socket until its writer is woken. */
	WARN_ON(refcount_sub_and_test(skb->truesize - 1, &sk->sk_wmem_alloc));
	sovia_check_space(sk);
	sk_free(sk);
}

static void tx_free(struct sk_buff *skb)
{
	mem_add(-(s64)skb->truesize);
	tx_uncharge(skb);
}

/**
 * sovia_own_rx() - charge a received message to its socket
 * @skb: the message, which may still be the sender's; its size must not change afterwards
 * @sk: the socket
 *
 * Context: any.
 */
void sovia_own_rx(struct sk_buff *skb, struct sock *sk)
{
	if (skb->destructor == tx_free) {
		/* The same memory stays in use. */
		tx_uncharge(skb);
		skb->destructor = NULL;
		skb->sk = NULL;
	} else {
		mem_add(skb->truesize);
	}
	skb_set_owner_r(skb, sk);
	skb->destructor = rx_free;
}

/**
 * sovia_own_tx() - charge a message to be sent to its socket, until it is acknowledged
 * @skb: the message; sovia_grow_tx() charges more
 * @sk: the socket
 *
 * Context: any.
 */
void sovia_own_tx(struct sk_buff *skb, struct sock *sk)
{
	skb_set_owner_w(skb, sk);
	skb->destructor = tx_free;
	mem_add(skb->truesize);
}

/**
 * sovia_grow_tx() - charge more memory for a message to be sent
 * @skb: the message, owned by its socket
 * @len: additional bytes
 *
 * Context: any.
 */
void sovia_grow_tx(struct sk_buff *skb, u32 len)
{
	skb->truesize += len;
	refcount_add(len, &skb->sk->sk_wmem_alloc);
	mem_add(len);
}

/**
 * sovia_orphan_begin() - count a socket as an orphan
 * @sk: closed, not CLOSE
 *
 * Context: socket lock held.
 * Return: false if there are too many orphans, or too little memory.
 */
bool sovia_orphan_begin(struct sock *sk)
{
	sovia_sk(sk)->end.orphan = true;
	return atomic_inc_return(&orphans) <= orphans_most() && !sovia_mem_none();
}

/**
 * sovia_orphan_end() - stop counting a socket as an orphan
 * @sk: an orphan or not
 *
 * Context: socket lock held.
 */
void sovia_orphan_end(struct sock *sk)
{
	if (sovia_sk(sk)->end.orphan)
		atomic_dec(&orphans);
	sovia_sk(sk)->end.orphan = false;
}

/* Name, current value, and limits. */
static int limits_show(struct seq_file *seq, void *v)
{
	u64 used = percpu_counter_sum_positive(&mem_used);

	seq_printf(seq, "memory %llu %lu %lu\n", used >> PAGE_SHIFT, READ_ONCE(mem[0]),
		   READ_ONCE(mem[1]));
	seq_printf(seq, "orphans %d %d\n", atomic_read(&orphans), orphans_most());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(limits);

/**
 * sovia_mem_init() - set default limits, start counting
 *
 * Context: module init.
 * Return: 0 or -ENOMEM.
 */
int sovia_mem_init(void)
{
	if (!mem[0])
		mem[0] = totalram_pages() / 16;
	if (!mem[1])
		mem[1] = mem[0] + mem[0] / 2;
	debugfs_create_file("limits", 0444, sovia_debugfs_dir(), NULL, &limits_fops);
	return percpu_counter_init(&mem_used, 0, GFP_KERNEL);
}

/**
 * sovia_mem_exit() - stop counting
 *
 * Context: module exit; sockets and debugfs files are gone.
 */
void sovia_mem_exit(void)
{
	percpu_counter_destroy(&mem_used);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/mem_test.c"
#endif

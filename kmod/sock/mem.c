// SPDX-License-Identifier: GPL-2.0-only
/*
 * Limits of all sockets together (Documentation/limits.rst): memory of messages
 * that wait to be read or acknowledged, and orphans, which RLIMIT_NOFILE does not
 * bound.
 *
 * Memory is entered in a ledger (tenant.c) before it is needed: what a connection lets its peer
 * send, until its program has read it, and what a program sends, until it is acknowledged.  So
 * what has been promised can always be taken.
 *
 * Limits are as TCP's (net.ipv4.tcp_mem), but each tenant has a share of the first one, whatever
 * others do.  Beyond their shares, tenants may have up to three quarters of it, first come, first
 * served; what they hold beyond is asked back (pressure.c), and ends at the second limit.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/seq_file.h>
#include "core/param.h"
#include "core/tenant.h"
#include "core/debugfs.h"
#include "mem.h"
#include "pressure.h"
#include "send.h"

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
MODULE_PARM_DESC(mem, "pages for messages: buffers shrink above, none grows above (1/16, 3/32 of RAM)");

static unsigned int max_orphans;
sovia_param(max_orphans, max_orphans, 0, INT_MAX, 0644);
MODULE_PARM_DESC(max_orphans, "maximum of closed sockets that wait for their peers (0: by the size of RAM)");

static atomic_t orphans = ATOMIC_INIT(0);

static int orphans_most(void)
{
	return READ_ONCE(max_orphans) ?: totalram_pages() / 32;
}

static s64 mem_limit(const unsigned long *which)
{
	return (s64)READ_ONCE(*which) << PAGE_SHIFT;
}

/* Up to here, it is first come, first served. */
static s64 mem_free_for_all(void)
{
	/* TCP's first number is three quarters of its second one, too. */
	return mem_limit(&mem[0]) / 4 * 3;
}

/* From here on, windows of a list are asked back. */
static s64 mem_mark(enum sovia_lent list)
{
	return list == SOVIA_LENT_LARGE ? mem_free_for_all() : mem_limit(&mem[0]);
}

/* A part of @all for each tenant, and for the next one. */
static s64 share_of(s64 all)
{
	return div_s64(all, sovia_tenants_active() + 1);
}

/* Would the tenant still be within its share with so many bytes more? */
static bool within_share(const struct sock *sk, s64 more)
{
	return sovia_tenant_held(sovia_sk(sk)->tenant) + more <= share_of(mem_limit(&mem[0]));
}

/* May the tenant have so many bytes more? */
static bool may_hold(const struct sock *sk, s64 more)
{
	return likely(sovia_tenants_held() + more <= mem_free_for_all()) || within_share(sk, more);
}

/* Is so much held, and by this tenant more than its share? */
static bool mem_beyond(const struct sock *sk, const unsigned long *limit)
{
	if (likely(sovia_tenants_held() <= mem_limit(limit)) || within_share(sk, 0))
		return false;
	sovia_pressure();
	return true;
}

/**
 * sovia_mem_ample() - may buffers grow
 * @sk: whose
 *
 * Context: any.
 * Return: true if buffers may grow.
 */
bool sovia_mem_ample(const struct sock *sk)
{
	return may_hold(sk, 0);
}

/**
 * sovia_mem_short() - is memory for messages running short
 * @sk: for which socket
 *
 * Context: any.
 * Return: true if its buffers and windows should be the smallest.
 */
bool sovia_mem_short(const struct sock *sk)
{
	return mem_beyond(sk, &mem[0]);
}

/**
 * sovia_mem_none() - is there no memory left for messages
 * @sk: for which socket
 *
 * Context: any.
 * Return: true if it may have one message to send, and its tenant no other connection.
 */
bool sovia_mem_none(const struct sock *sk)
{
	return mem_beyond(sk, &mem[1]);
}

/**
 * sovia_mem_cost() - memory for a window
 * @sk: whose
 * @bytes: of the window
 *
 * When it is full of messages of SOVIA_COPYBREAK + 1 bytes, which take a page and the sk_buff.  A
 * single byte between any two of them takes another tenth, a fifth since Linux 6.3.  What arrives
 * in the smallest one is gathered, in buffers that are counted.
 *
 * Context: any, the receive queue's lock held.
 * Return: bytes.
 */
s64 sovia_mem_cost(const struct sock *sk, u32 bytes)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;
	bool least = bytes <= SOVIA_WINDOW_LEAST;

	if (!bytes)
		return 0;
	if (least && (rx->gathers || rx->copied == rx->nxt))
		return SOVIA_LEAST_COST;
	/* A buffer of which a part has been read is there as a whole. */
	return max_t(s64, least ? SOVIA_LEAST_COST_OLD : (s64)bytes * 5 / 2,
		     (s64)(rx->nxt - rx->base) * 5 / 2);
}

/**
 * sovia_mem_floor() - the smallest window, which each connection has
 * @sk: the socket
 *
 * Context: any.
 * Return: bytes.
 */
u32 sovia_mem_floor(const struct sock *sk)
{
	return clamp_t(u32, READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[0]) / 2, 1,
		       SOVIA_WINDOW_LEAST);
}

/**
 * sovia_mem_least_sndbuf() - the smallest send buffer, which each connection has
 * @sk: the socket
 *
 * Context: any.
 * Return: bytes.
 */
int sovia_mem_least_sndbuf(const struct sock *sk)
{
	return min(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[0]), SOVIA_SNDBUF_LEAST);
}

/**
 * sovia_mem_buffers() - set the sizes of a new connection's buffers that its program has not set
 * @sk: its socket, which has had those of TCP
 *
 * Context: socket lock held, or a new socket.
 */
void sovia_mem_buffers(struct sock *sk)
{
	const struct netns_ipv4 *ipv4 = &sock_net(sk)->ipv4;

	if (!(sk->sk_userlocks & SOCK_SNDBUF_LOCK))
		WRITE_ONCE(sk->sk_sndbuf, max(sk->sk_sndbuf,
					      min(READ_ONCE(ipv4->sysctl_tcp_wmem[2]),
						  SOVIA_BUF_FIRST)));
	if (!(sk->sk_userlocks & SOCK_RCVBUF_LOCK))
		WRITE_ONCE(sk->sk_rcvbuf, max(sk->sk_rcvbuf,
					      min(READ_ONCE(ipv4->sysctl_tcp_rmem[2]),
						  SOVIA_BUF_FIRST)));
}

/* How large may a connection's first window be, which most do not use up? */
static u32 first_window(const struct sock *sk, u32 size)
{
	s64 share = share_of(mem_limit(&mem[0]));
	s64 held = sovia_tenant_held(sovia_sk(sk)->tenant) + sovia_mem_cost(sk, size);
	s64 all = sovia_tenants_held();

	/* Where all hold much, a tenant that comes has many connections in its share. */
	if (held > share || all > mem_limit(&mem[0]))
		return min(size, sovia_mem_floor(sk));
	if (held > share / 2 || all > mem_free_for_all())
		return min_t(u32, size, SOVIA_WINDOW_FIRST);
	return size;
}

/**
 * sovia_mem_window() - how large may a window be
 * @sk: the socket
 * @size: how large it should be, in bytes
 * @kept: how large it is, of what the ledger has
 *
 * Never less than @kept.
 *
 * Context: any, the receive queue's lock held.
 * Return: bytes.
 */
u32 sovia_mem_window(const struct sock *sk, u32 size, u32 kept)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;

	if (likely(size <= kept))
		return size;
	if (!rx->promised)
		return first_window(sk, size);
	if (may_hold(sk, sovia_mem_cost(sk, size) - rx->cost))
		return size;
	sovia_pressure();
	return max(kept, min(size, sovia_mem_floor(sk)));
}

/**
 * sovia_mem_promise() - change what the ledger has of a window
 * @sk: the socket
 * @bytes: what the peer may send, and what it has sent and the program has not read
 *
 * Context: any, the receive queue's lock held.
 */
void sovia_mem_promise(struct sock *sk, u32 bytes)
{
	struct sovia_sock *ss = sovia_sk(sk);
	struct sovia_rx *rx = &ss->rx;
	u32 was = rx->promised;
	s64 cost;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	/* From when everything has been read, what arrives in the smallest window is gathered. */
	rx->gathers = bytes <= SOVIA_WINDOW_LEAST && (rx->gathers || rx->copied == rx->nxt);
	cost = sovia_mem_cost(sk, bytes);
	if (likely(bytes == was && cost == rx->cost))
		return;
	if (!was != !bytes)
		sovia_tenant_streams(ss->tenant, was ? -1 : 1);
	rx->promised = bytes;
	sovia_mem_lend(sk);
	sovia_tenant_charge(ss->tenant, cost - rx->cost);
	rx->cost = cost;
}

/**
 * sovia_mem_asked() - change what the ledger expects to come back of a window
 * @sk: the socket
 * @bytes: what its peer has been asked for and has not answered
 *
 * Context: any, the receive queue's lock held.
 */
void sovia_mem_asked(struct sock *sk, s64 bytes)
{
	struct sovia_sock *ss = sovia_sk(sk);
	s64 was = ss->rx.asked;

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (likely(bytes == was))
		return;
	ss->rx.asked = bytes;
	ss->rx.asked_time = jiffies;
	sovia_tenant_asked(ss->tenant, bytes - was);
	sovia_mem_lend(sk);
}

/* What can be had of a window. */
static enum sovia_lent lent_list(const struct sock *sk)
{
	const struct sovia_rx *rx = &sovia_sk(sk)->rx;

	if (rx->over)
		return SOVIA_LENT_NONE;
	if (rx->lowering)
		return rx->asked ? SOVIA_LENT_ASKED : SOVIA_LENT_NONE;
	if (rx->promised > SOVIA_WINDOW_FIRST)
		return SOVIA_LENT_LARGE;
	/* All of those up to it cost the same. */
	return rx->promised > SOVIA_WINDOW_LEAST ? SOVIA_LENT_SOME : SOVIA_LENT_NONE;
}

/**
 * sovia_mem_lend() - put a socket into the list where its window is looked for when memory is short
 * @sk: the window, or whether it may be asked for, has changed
 *
 * Context: any, the receive queue's lock held.
 */
void sovia_mem_lend(struct sock *sk)
{
	struct sovia_tenant *tenant = sovia_sk(sk)->tenant;
	struct sovia_rx *rx = &sovia_sk(sk)->rx;
	enum sovia_lent list = lent_list(sk);

	lockdep_assert_held(&sk->sk_receive_queue.lock);
	if (likely(list == rx->list))
		return;
	spin_lock(&tenant->lent_lock);
	if (rx->list != SOVIA_LENT_NONE)
		tenant->lent_count[rx->list]--;
	list_del_init(&rx->lent);
	if (list != SOVIA_LENT_NONE) {
		tenant->lent_count[list]++;
		list_add_tail(&rx->lent, &tenant->lent[list]);
	}
	spin_unlock(&tenant->lent_lock);
	rx->list = list;
}

/**
 * sovia_mem_is_due() - have windows of a list to be asked back
 * @list: SOVIA_LENT_LARGE or SOVIA_LENT_SOME
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_mem_is_due(enum sovia_lent list)
{
	return sovia_tenants_held() - sovia_tenants_coming() > mem_mark(list);
}

/**
 * sovia_mem_excess() - how much has to be given back, beside what has been asked for
 * @list: once windows of it are asked back
 *
 * It ends below the mark where it began, or each connection that opens would make it begin again.
 *
 * Context: any.
 * Return: bytes, 0 or less if none.
 */
s64 sovia_mem_excess(enum sovia_lent list)
{
	s64 mark = mem_mark(list);

	return sovia_tenants_held() - sovia_tenants_coming() - (mark - mark / 16);
}

/**
 * sovia_mem_beyond_share() - what a tenant holds beyond its share, and has not been asked for
 * @tenant: the tenant
 *
 * Context: any.
 * Return: bytes, 0 or less if none.
 */
s64 sovia_mem_beyond_share(const struct sovia_tenant *tenant)
{
	return sovia_tenant_held(tenant) - sovia_tenant_coming(tenant) -
	       share_of(mem_limit(&mem[0]));
}

static void mem_add(const struct sock *sk, s64 bytes)
{
	sovia_tenant_charge(sovia_sk(sk)->tenant, bytes);
}

/* Destructor of a message: uncharge the sender. */
static void tx_free(struct sk_buff *skb)
{
	struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
	struct sock *sk = skb->sk;

	mem_add(sk, -(s64)skb->truesize);
	if (conn)
		sovia_conn_put(conn);
	/* One byte stays charged to pin the socket until its writer is woken. */
	WARN_ON(refcount_sub_and_test(skb->truesize - 1, &sk->sk_wmem_alloc));
	sovia_check_space(sk);
	sk_free(sk);
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
	mem_add(sk, skb->truesize);
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
	mem_add(skb->sk, len);
}

/**
 * sovia_orphan_begin() - count a socket as an orphan
 * @sk: closed, not CLOSE
 *
 * The last quarter is for tenants that have less than their share.
 *
 * Context: socket lock held.
 * Return: false if there are too many orphans, or too little memory.
 */
bool sovia_orphan_begin(struct sock *sk)
{
	struct sovia_tenant *tenant = sovia_sk(sk)->tenant;
	int most = orphans_most(), all, own;

	sovia_sk(sk)->end.orphan = true;
	all = atomic_inc_return(&orphans);
	own = atomic_inc_return(&tenant->orphans);
	return all <= most && (all <= most - most / 4 || own <= share_of(most)) &&
	       !sovia_mem_none(sk);
}

/**
 * sovia_orphan_end() - stop counting a socket as an orphan
 * @sk: an orphan or not
 *
 * Context: socket lock held.
 */
void sovia_orphan_end(struct sock *sk)
{
	if (sovia_sk(sk)->end.orphan) {
		atomic_dec(&orphans);
		atomic_dec(&sovia_sk(sk)->tenant->orphans);
	}
	sovia_sk(sk)->end.orphan = false;
}

/* Name, current value, and limits; then each tenant. */
static int limits_show(struct seq_file *seq, void *v)
{
	seq_printf(seq, "memory %lld %lu %lu\n", sovia_tenants_sum() >> PAGE_SHIFT,
		   READ_ONCE(mem[0]), READ_ONCE(mem[1]));
	seq_printf(seq, "orphans %d %d\n", atomic_read(&orphans), orphans_most());
	sovia_tenants_show(seq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(limits);

/**
 * sovia_mem_init() - set default limits
 *
 * Context: module init.
 * Return: 0.
 */
int __init sovia_mem_init(void)
{
	if (!mem[0])
		mem[0] = totalram_pages() / 16;
	if (!mem[1])
		mem[1] = mem[0] + mem[0] / 2;
	debugfs_create_file("limits", 0444, sovia_debugfs_dir(), NULL, &limits_fops);
	return 0;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/mem_test.c"
#endif

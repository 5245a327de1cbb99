// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of the limits of all sockets together; included by mem.c. */
#include <linux/prandom.h>
#include <net/ip.h>
#include "sock/recv.h"
#include "sock/rx.h"
#include "sock/send.h"
#include "sock_helper.h"
#include "suites.h"

/* The module's limits, and the memory in use, before the test. */
static unsigned long limits_mem[2];
static unsigned int limits_orphans;
/* The tenant of the test's sockets, and another one. */
static struct sovia_tenant *limits_tenant, *limits_other;

static int limits_begin(struct kunit *test)
{
	memcpy(limits_mem, mem, sizeof(mem));
	limits_orphans = max_orphans;
	limits_tenant = sovia_tenant_get(&init_net, GLOBAL_ROOT_UID);
	limits_other = sovia_tenant_get(&init_net, KUIDT_INIT(12345));
	KUNIT_ASSERT_NOT_NULL(test, limits_tenant);
	KUNIT_ASSERT_NOT_NULL(test, limits_other);
	return 0;
}

static void limits_restore(struct kunit *test)
{
	memcpy(mem, limits_mem, sizeof(mem));
	max_orphans = limits_orphans;
}

static void limits_end(struct kunit *test)
{
	limits_restore(test);
	sovia_tenant_put(limits_tenant);
	sovia_tenant_put(limits_other);
}

/* Simulate memory held by other sockets of the same tenant. */
static void limits_use(s64 bytes)
{
	sovia_tenant_charge(limits_tenant, bytes);
}

static int limits_send(struct socket *sock, int len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_len = len };
	int ret;

	vec.iov_base = kzalloc(len, GFP_KERNEL);
	ret = kernel_sendmsg(sock, &msg, &vec, 1, len);
	kfree(vec.iov_base);
	return ret;
}

static int limits_recv(struct socket *sock, int len)
{
	struct kvec vec = { .iov_len = len };
	struct msghdr msg = {};
	int ret;

	vec.iov_base = kzalloc(len, GFP_KERNEL);
	ret = kernel_recvmsg(sock, &msg, &vec, 1, len, MSG_WAITALL);
	kfree(vec.iov_base);
	return ret;
}

/* Wait for the other end and for RCU. */
#define limits_wait(cond)						\
do {									\
	int tries;							\
									\
	for (tries = 0; tries < 1000 && !(cond); tries++)		\
		msleep(20);						\
} while (0)

static unsigned long limits_no_room(void)
{
	return snmp_fold_field(sovia_net(&init_net)->mib, SOVIA_STAT_no_room);
}

/* New connections start with the smallest window, and writers get the smallest buffer. */
static void limits_short(struct kunit *test)
{
	const struct netns_ipv4 *ipv4 = &init_net.ipv4;
	struct socket *a, *b;

	mem[0] = 0;
	limits_use(SZ_1M);
	test_connected(test, &a, &b);
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, sovia_mem_floor(b->sk));
	KUNIT_EXPECT_EQ(test, test_conn(a)->rcv_wnd_end, sovia_mem_floor(a->sk));
	KUNIT_EXPECT_TRUE(test, sovia_stream_memory_free(a->sk, 0));
	/* Fills the window, and then the smallest buffer. */
	while (limits_send(a, 1000) > 0)
		;
	KUNIT_EXPECT_FALSE(test, sovia_stream_memory_free(a->sk, 0));
	KUNIT_EXPECT_LT(test, sk_wmem_alloc_get(a->sk), 2 * ipv4->sysctl_tcp_wmem[0]);
	KUNIT_EXPECT_EQ(test, a->sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, 0);
	limits_use(-SZ_1M);
	limits_restore(test);
	KUNIT_EXPECT_TRUE(test, sovia_stream_memory_free(a->sk, 0));
	sock_release(a);
	sock_release(b);
}

/*
 * What has been promised is taken, whatever the limit is by then, and no connection is reset.
 * Beyond that one message waits, and the writer is told so.
 */
static void limits_none(struct kunit *test)
{
	unsigned long before = limits_no_room();
	int ret, sent = 3000, queued;
	struct socket *a, *b;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_EQ(test, limits_send(a, 3000), 3000);
	mem[0] = 0;
	mem[1] = 0;
	limits_use(SZ_1M);
	KUNIT_EXPECT_TRUE(test, sovia_mem_none(a->sk));
	/* Once the message has arrived. */
	limits_wait(sovia_stream_memory_free(a->sk, 1));
	KUNIT_EXPECT_TRUE(test, sovia_stream_memory_free(a->sk, 1));
	/* What is under way has to arrive before there may be another; the last one waits. */
	limits_wait(({
		ret = limits_send(a, 3000);
		sent += max(ret, 0);
		ret == -EAGAIN && sovia_sk(a->sk)->tx.queued;
	}));
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_EXPECT_FALSE(test, sovia_stream_memory_free(a->sk, 0));
	KUNIT_EXPECT_EQ(test, skb_queue_len(&a->sk->sk_write_queue), 1);
	queued = sovia_sk(a->sk)->tx.queued;
	KUNIT_EXPECT_GT(test, queued, 0);
	limits_wait(sovia_inq(b->sk) == sent - queued);
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), sent - queued);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, a->sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, limits_no_room(), before);
	limits_use(-SZ_1M);
	limits_restore(test);
	KUNIT_EXPECT_FALSE(test, sovia_mem_none(a->sk));
	sock_release(a);
	sock_release(b);
}

/* Windows that are not used come back, and grow again when data moves and there is memory. */
static void limits_return(struct kunit *test)
{
	u32 first, other_first;
	struct sovia_rx *rx, *other;
	struct socket *a, *b;
	s64 held;

	/* Sockets of other cases are freed later. */
	limits_wait(!sovia_tenants_sum());
	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	other = &sovia_sk(a->sk)->rx;
	first = rx->promised;
	other_first = other->promised;
	KUNIT_ASSERT_GT(test, first, sovia_mem_floor(b->sk));
	KUNIT_EXPECT_EQ(test, limits_send(a, 3000), 3000);
	limits_wait(sovia_inq(b->sk) == 3000);
	held = sovia_tenants_sum();
	KUNIT_EXPECT_EQ(test, sovia_rx_lower(b->sk, SOVIA_LENT_SOME),
			sovia_mem_cost(b->sk, first) - sovia_mem_cost(b->sk, 3000));
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_EQ(test, rx->promised, 3000U);
	KUNIT_EXPECT_EQ(test, rx->most, rx->nxt);
	/* Memory is not short: it grows again when data moves. */
	KUNIT_EXPECT_EQ(test, limits_recv(b, 3000), 3000);
	KUNIT_EXPECT_EQ(test, rx->promised, first);
	KUNIT_EXPECT_EQ(test, limits_send(a, 3000), 3000);
	limits_wait(sovia_inq(b->sk) == 3000);
	mem[0] = 0;
	limits_use(SZ_1M);
	sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	limits_wait(READ_ONCE(rx->promised) == 3000);
	KUNIT_EXPECT_EQ(test, rx->promised, 3000U);
	KUNIT_EXPECT_EQ(test, rx->most, rx->nxt);
	KUNIT_EXPECT_EQ(test, sovia_sk(a->sk)->tx.wnd_end, rx->most);
	/* The other end's may have been asked for as well, by pressure_work(). */
	limits_wait(!READ_ONCE(other->lowering));
	held -= sovia_mem_cost(b->sk, first) - sovia_mem_cost(b->sk, 3000);
	held -= sovia_mem_cost(a->sk, other_first) - sovia_mem_cost(a->sk, other->promised);
	KUNIT_EXPECT_EQ(test, sovia_tenants_sum() - SZ_1M, held);
	/* Not a second time. */
	KUNIT_EXPECT_EQ(test, sovia_rx_lower(b->sk, SOVIA_LENT_SOME), 0LL);
	limits_use(-SZ_1M);
	limits_restore(test);
	sock_release(a);
	sock_release(b);
}

/* Of a large buffer that has been read in part, asking for the window takes no more memory. */
static void limits_part_read(struct kunit *test)
{
	struct socket *a, *b;
	struct sovia_rx *rx;
	s64 held;

	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	KUNIT_EXPECT_EQ(test, limits_send(a, 40000), 40000);
	limits_wait(sovia_inq(b->sk) == 40000);
	KUNIT_EXPECT_EQ(test, limits_recv(b, 36000), 36000);
	mem[0] = 0;
	limits_use(SZ_1M);
	held = rx->cost;
	sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_LT(test, rx->cost, held);
	KUNIT_EXPECT_EQ(test, rx->promised, 4000U);
	/* What has been read of a buffer does not make it smaller. */
	KUNIT_EXPECT_GE(test, rx->cost, (s64)sk_rmem_alloc_get(b->sk));
	/* Nor does reading a byte open a large window. */
	KUNIT_EXPECT_EQ(test, limits_recv(b, 1), 1);
	KUNIT_EXPECT_LE(test, rx->promised, 4000U);
	limits_use(-SZ_1M);
	limits_restore(test);
	sock_release(a);
	sock_release(b);
}

/* A lowered window grows for a receiver that waits for more bytes without reading. */
static void limits_only_looked_at(struct kunit *test)
{
	struct socket *a, *b;
	struct sovia_rx *rx;

	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	mem[0] = 0;
	limits_use(SZ_1M);
	sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_LE(test, rx->promised, SOVIA_WINDOW_LEAST);
	limits_use(-SZ_1M);
	limits_restore(test);
	KUNIT_EXPECT_EQ(test, limits_send(a, 8192), 8192);
	limits_wait(sovia_inq(b->sk) == 8192);
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), 8192);
	sock_release(a);
	sock_release(b);
}

/* PRESSURE is not sent over a parked link. */
static void limits_parked(struct kunit *test)
{
	struct sovia_lane *lane;
	struct socket *a, *b;

	test_connected(test, &a, &b);
	lock_sock(b->sk);
	lane = sovia_conn_of(b->sk)->lane;
	release_sock(b->sk);
	mem[0] = 0;
	limits_use(SZ_1M);
	WRITE_ONCE(lane->parked, true);
	KUNIT_EXPECT_EQ(test, sovia_rx_lower(b->sk, SOVIA_LENT_SOME), 0);
	WRITE_ONCE(lane->parked, false);
	KUNIT_EXPECT_GT(test, sovia_rx_lower(b->sk, SOVIA_LENT_SOME), 0);
	limits_use(-SZ_1M);
	limits_restore(test);
	sock_release(a);
	sock_release(b);
}

/* Above the mark from which windows are asked back, but below the limit. */
static void limits_between_begin(void)
{
	mem[0] = 4096;
	mem[1] = 6144;
	limits_use(3584LL << PAGE_SHIFT);
}

static void limits_between_end(struct kunit *test)
{
	limits_use(-(3584LL << PAGE_SHIFT));
	limits_restore(test);
}

/* What came back stays back. */
static void limits_stay_back(struct kunit *test)
{
	struct sovia_rx *rx;
	struct socket *a, *b;

	limits_wait(!sovia_tenants_sum());
	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	KUNIT_EXPECT_EQ(test, limits_send(a, 3000), 3000);
	limits_wait(sovia_inq(b->sk) == 3000);
	limits_between_begin();
	sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_FALSE(test, sovia_mem_short(b->sk));
	KUNIT_EXPECT_EQ(test, rx->promised, 3000U);
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, rx->nxt);
	limits_between_end(test);
	sock_release(a);
	sock_release(b);
}

/* Below the mark nothing shrinks, though nothing moves: the next request needs no round trip. */
static void limits_below_mark(struct kunit *test)
{
	struct sovia_rx *rx;
	struct socket *a, *b;
	u32 first;

	limits_wait(!sovia_tenants_sum());
	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	first = rx->promised;
	KUNIT_EXPECT_GE(test, first, (u32)SZ_8K);
	mem[0] = 4096;
	mem[1] = 6144;
	limits_use(2560LL << PAGE_SHIFT);
	KUNIT_EXPECT_FALSE(test, sovia_mem_is_due(SOVIA_LENT_LARGE));
	sovia_pressure();
	msleep(300);
	KUNIT_EXPECT_FALSE(test, rx->lowering);
	KUNIT_EXPECT_EQ(test, rx->promised, first);
	/* A bit more, and it is asked for. */
	limits_use(1024LL << PAGE_SHIFT);
	WRITE_ONCE(rx->used, false);
	sovia_pressure();
	limits_wait(READ_ONCE(rx->promised) == SOVIA_WINDOW_FIRST);
	KUNIT_EXPECT_EQ(test, rx->promised, (u32)SOVIA_WINDOW_FIRST);
	limits_use(-(3584LL << PAGE_SHIFT));
	limits_restore(test);
	sock_release(a);
	sock_release(b);
}

/* What peers have been asked for is not asked of others, too. */
static void limits_coming(struct kunit *test)
{
	struct sovia_rx *rx;
	struct socket *a, *b;
	s64 excess, asked;

	limits_wait(!sovia_tenants_sum());
	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	limits_between_begin();
	excess = sovia_mem_excess(SOVIA_LENT_LARGE);
	KUNIT_EXPECT_GT(test, excess, 0LL);
	/* It cannot answer. */
	lock_sock(a->sk);
	asked = sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	KUNIT_EXPECT_GT(test, asked, 0LL);
	KUNIT_EXPECT_EQ(test, sovia_mem_excess(SOVIA_LENT_LARGE), excess - asked);
	KUNIT_EXPECT_EQ(test, sovia_tenants_coming(), asked);
	release_sock(a->sk);
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_EQ(test, sovia_tenants_coming(), 0LL);
	limits_between_end(test);
	/* Nor is it expected of a connection that has ended. */
	lock_sock_nested(a->sk, SINGLE_DEPTH_NESTING);
	mem[0] = 0;
	limits_use(SZ_1M);
	sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	sock_release(b);
	KUNIT_EXPECT_EQ(test, sovia_tenants_coming(), 0LL);
	release_sock(a->sk);
	limits_use(-SZ_1M);
	limits_restore(test);
	sock_release(a);
}

/* Which windows there is something to be had of. */
static void limits_lists(struct kunit *test)
{
	unsigned int *count = limits_tenant->lent_count;
	unsigned int large = count[SOVIA_LENT_LARGE], some = count[SOVIA_LENT_SOME];
	struct sovia_rx *rx;
	struct socket *a, *b;

	limits_wait(!sovia_tenants_sum());
	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	KUNIT_EXPECT_EQ(test, count[SOVIA_LENT_LARGE], large + 2);
	limits_between_begin();
	/* A message is left. */
	sovia_rx_lower(b->sk, SOVIA_LENT_LARGE);
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_EQ(test, rx->promised, (u32)SOVIA_WINDOW_FIRST);
	KUNIT_EXPECT_EQ(test, sovia_rx_lower(b->sk, SOVIA_LENT_LARGE), 0LL);
	KUNIT_EXPECT_EQ(test, count[SOVIA_LENT_LARGE], large + 1);
	KUNIT_EXPECT_EQ(test, count[SOVIA_LENT_SOME], some + 1);
	/* The smallest window is. */
	sovia_rx_lower(b->sk, SOVIA_LENT_SOME);
	limits_wait(!READ_ONCE(rx->lowering));
	KUNIT_EXPECT_EQ(test, rx->promised, sovia_mem_floor(b->sk));
	KUNIT_EXPECT_EQ(test, count[SOVIA_LENT_SOME], some);
	KUNIT_EXPECT_EQ(test, count[SOVIA_LENT_ASKED], 0U);
	limits_between_end(test);
	sock_release(a);
	sock_release(b);
	limits_wait(count[SOVIA_LENT_LARGE] == large);
	KUNIT_EXPECT_EQ(test, count[SOVIA_LENT_LARGE], large);
}

/* The smallest window takes no more memory than it counts, however data comes and is read. */
static void limits_least(struct kunit *test)
{
	struct socket *a, *b;
	u32 sent = 0, read = 0;
	struct rnd_state rnd;
	u8 *data;
	int i;

	data = kunit_kzalloc(test, 2 * SOVIA_WINDOW_LEAST, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, data);
	prandom_seed_state(&rnd, 38);
	mem[0] = 0;
	limits_use(SZ_1M);
	test_connected_far(test, &a, &b);
	for (i = 0; i < 3000; i++) {
		u32 random = prandom_u32_state(&rnd);
		u32 len = 1 + (random >> 8) % (random & 1 ? SOVIA_WINDOW_LEAST : 60);
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
		struct kvec vec = { data, len };
		int ret, at;

		if (random & 2) {
			for (at = 0; at < len; at++)
				data[at] = sent + at;
			ret = kernel_sendmsg(a, &msg, &vec, 1, len);
			sent += max(ret, 0);
		} else {
			ret = kernel_recvmsg(b, &msg, &vec, 1, len, MSG_DONTWAIT);
			for (at = 0; at < ret; at++)
				if (data[at] != (u8)(read + at))
					break;
			KUNIT_ASSERT_EQ(test, at, max(ret, 0));
			read += max(ret, 0);
		}
		KUNIT_ASSERT_LE(test, sk_rmem_alloc_get(b->sk), (int)SOVIA_LEAST_COST);
	}
	limits_wait(sovia_inq(b->sk) == sent - read);
	KUNIT_EXPECT_GT(test, read, 100000U);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, 0);
	limits_use(-SZ_1M);
	limits_restore(test);
	sock_release(a);
	sock_release(b);
}

/* A tenant that holds more than its share does not keep another one from growing. */
static void limits_shares(struct kunit *test)
{
	struct socket *a, *b;
	u32 size;

	test_connected(test, &a, &b);
	mem[0] = 4096;
	mem[1] = 6144;
	size = sovia_sk(b->sk)->rx.promised * 2;
	sovia_tenant_streams(limits_other, 1);
	sovia_tenant_charge(limits_other, 4096LL << PAGE_SHIFT);
	/* Two tenants: each may have a third. */
	spin_lock_bh(&b->sk->sk_receive_queue.lock);
	KUNIT_EXPECT_EQ(test, sovia_mem_window(b->sk, size, sovia_sk(b->sk)->rx.promised), size);
	spin_unlock_bh(&b->sk->sk_receive_queue.lock);
	KUNIT_EXPECT_FALSE(test, sovia_mem_short(b->sk));
	KUNIT_EXPECT_LT(test, sovia_mem_beyond_share(limits_tenant), 0LL);
	/* But not beyond its own. */
	limits_use(1400LL << PAGE_SHIFT);
	spin_lock_bh(&b->sk->sk_receive_queue.lock);
	KUNIT_EXPECT_LT(test, sovia_mem_window(b->sk, size, sovia_sk(b->sk)->rx.promised), size);
	spin_unlock_bh(&b->sk->sk_receive_queue.lock);
	KUNIT_EXPECT_TRUE(test, sovia_mem_short(b->sk));
	KUNIT_EXPECT_FALSE(test, sovia_mem_none(b->sk));
	limits_use(-(1400LL << PAGE_SHIFT));
	sovia_tenant_charge(limits_other, -(4096LL << PAGE_SHIFT));
	sovia_tenant_streams(limits_other, -1);
	sock_release(a);
	sock_release(b);
}

/* A socket closed with unacknowledged data is an orphan; one beyond the limit is reset. */
static void limits_of_orphans(struct kunit *test)
{
	unsigned long before = limits_no_room();
	struct socket *a, *b, *c, *d;
	int already = atomic_read(&orphans);

	test_connected(test, &a, &b);
	test_connected(test, &c, &d);
	while (limits_send(a, 16384) > 0)
		;
	while (limits_send(c, 16384) > 0)
		;
	max_orphans = already + 1;
	sock_release(a);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), already + 1);
	KUNIT_EXPECT_EQ(test, limits_no_room(), before);
	sock_release(c);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), already + 1);
	KUNIT_EXPECT_EQ(test, limits_no_room(), before + 1);
	limits_wait(d->sk->sk_err);
	KUNIT_EXPECT_EQ(test, d->sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, 0);
	sock_release(b);
	sock_release(d);
	limits_wait(atomic_read(&orphans) == already);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), already);
}

/* All memory has been uncharged. */
static void limits_balance(struct kunit *test)
{
	s64 before = sovia_tenants_sum();
	struct socket *a, *b;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_EQ(test, limits_send(a, 50000), 50000);
	KUNIT_EXPECT_GE(test, sovia_tenants_sum(), before + 50000);
	sock_release(b);
	sock_release(a);
	limits_wait(sovia_tenants_sum() == before);
	KUNIT_EXPECT_EQ(test, sovia_tenants_sum(), before);
}

/* Who may take any uid has a namespace's tenants at most; the rest of its users share one. */
static void limits_of_tenants(struct kunit *test)
{
	const unsigned int many = 1100, first = 200000;
	struct sovia_tenant **users, *again;
	unsigned int i;

	users = kunit_kcalloc(test, many, sizeof(*users), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, users);
	for (i = 0; i < many; i++) {
		users[i] = sovia_tenant_get(&init_net, KUIDT_INIT(first + i));
		if (!users[i])
			break;
	}
	KUNIT_EXPECT_EQ(test, i, many);
	if (i == many) {
		KUNIT_EXPECT_PTR_NE(test, users[0], users[1]);
		KUNIT_EXPECT_PTR_EQ(test, users[many - 2], users[many - 1]);
		again = sovia_tenant_get(&init_net, KUIDT_INIT(first));
		KUNIT_EXPECT_PTR_EQ(test, again, users[0]);
		sovia_tenant_put(again);
	}
	while (i--)
		sovia_tenant_put(users[i]);
	again = sovia_tenant_get(&init_net, KUIDT_INIT(first + many));
	KUNIT_ASSERT_NOT_NULL(test, again);
	KUNIT_EXPECT_TRUE(test, uid_eq(again->uid, KUIDT_INIT(first + many)));
	sovia_tenant_put(again);
}

static struct kunit_case limits_test_cases[] = {
	KUNIT_CASE(limits_short),
	KUNIT_CASE(limits_none),
	KUNIT_CASE(limits_return),
	KUNIT_CASE(limits_part_read),
	KUNIT_CASE(limits_only_looked_at),
	KUNIT_CASE(limits_parked),
	KUNIT_CASE(limits_stay_back),
	KUNIT_CASE(limits_below_mark),
	KUNIT_CASE(limits_coming),
	KUNIT_CASE(limits_lists),
	KUNIT_CASE(limits_least),
	KUNIT_CASE(limits_shares),
	KUNIT_CASE(limits_of_orphans),
	KUNIT_CASE(limits_of_tenants),
	KUNIT_CASE(limits_balance),
	{}
};

struct kunit_suite sovia_limits_suite = {
	.name = "sovia-mem",
	.init = limits_begin,
	.exit = limits_end,
	.test_cases = limits_test_cases,
};

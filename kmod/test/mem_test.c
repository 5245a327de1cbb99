// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of the limits of all sockets together; included by mem.c. */
#include <net/ip.h>
#include "sock/recv.h"
#include "sock/send.h"
#include "sock_helper.h"
#include "suites.h"

/* The module's limits, and the memory in use, before the test. */
static unsigned long limits_mem[2];
static unsigned int limits_orphans;

static int limits_begin(struct kunit *test)
{
	memcpy(limits_mem, mem, sizeof(mem));
	limits_orphans = max_orphans;
	return 0;
}

static void limits_restore(struct kunit *test)
{
	memcpy(mem, limits_mem, sizeof(mem));
	max_orphans = limits_orphans;
}

/* Simulate memory held by other sockets. */
static void limits_use(s64 bytes)
{
	percpu_counter_add(&mem_used, bytes);
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
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, ipv4->sysctl_tcp_rmem[0] / 2);
	KUNIT_EXPECT_EQ(test, test_conn(a)->rcv_wnd_end, ipv4->sysctl_tcp_rmem[0] / 2);
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

/* Only a connection that holds more than the minimum and receives more is reset. */
static void limits_none(struct kunit *test)
{
	unsigned long before = limits_no_room();
	struct socket *a, *b, *c, *d;

	test_connected(test, &a, &b);
	test_connected(test, &c, &d);
	mem[1] = 0;
	limits_use(SZ_1M);
	KUNIT_EXPECT_EQ(test, limits_send(c, 100), 100);
	KUNIT_EXPECT_EQ(test, limits_send(a, 20000), 20000);
	limits_wait(sovia_inq(b->sk) == 20000 && sovia_inq(d->sk) == 100);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, limits_send(a, 100), 100);
	limits_wait(b->sk->sk_state == TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, d->sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, limits_no_room(), before + 1);
	limits_use(-SZ_1M);
	sock_release(a);
	sock_release(b);
	sock_release(c);
	sock_release(d);
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
	s64 before = percpu_counter_sum(&mem_used);
	struct socket *a, *b;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_EQ(test, limits_send(a, 50000), 50000);
	KUNIT_EXPECT_GE(test, percpu_counter_sum(&mem_used), before + 50000);
	sock_release(b);
	sock_release(a);
	limits_wait(percpu_counter_sum(&mem_used) == before);
	KUNIT_EXPECT_EQ(test, percpu_counter_sum(&mem_used), before);
}

static struct kunit_case limits_test_cases[] = {
	KUNIT_CASE(limits_short),
	KUNIT_CASE(limits_none),
	KUNIT_CASE(limits_of_orphans),
	KUNIT_CASE(limits_balance),
	{}
};

struct kunit_suite sovia_limits_suite = {
	.name = "sovia-mem",
	.init = limits_begin,
	.exit = limits_restore,
	.test_cases = limits_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of received data that a control group pays for; included by charge.c. */
#include <net/ip.h>
#include "sock/rx.h"
#include "sock/upcall.h"
#include "sock_helper.h"
#include "suites.h"

#define CHARGE_LEN	200
#define CHARGE_COUNT	50
#define CHARGE_ALL	(CHARGE_LEN * CHARGE_COUNT)

/* Pages that are charged, for all sockets. */
static long charge_pages_sum(void)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += per_cpu(sovia_objects, cpu).count[SOVIA_OBJECT_charges];
	return sum;
}

/* The socket is the only one that pays: it pays for what it holds, by the page. */
static void charge_expect_exact(struct kunit *test, struct sock *sk)
{
	const struct sk_buff *skb;
	int own = 0, all = 0;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	skb_queue_walk(&sk->sk_receive_queue, skb) {
		all += skb->truesize;
		own += SOVIA_RX_CB(skb)->own ? skb->truesize : 0;
	}
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	KUNIT_EXPECT_EQ(test, sk_rmem_alloc_get(sk), all);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), (long)DIV_ROUND_UP(own, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, charge_pages_sum() << PAGE_SHIFT,
			(long)own + sk->sk_forward_alloc);
}

static void charge_expect_none(struct kunit *test, struct sock *sk)
{
	KUNIT_EXPECT_TRUE(test, skb_queue_empty(&sk->sk_receive_queue));
	KUNIT_EXPECT_EQ(test, sk_rmem_alloc_get(sk), 0);
	KUNIT_EXPECT_EQ(test, sk->sk_forward_alloc, 0);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
}

/* @b pays, though the test is in the root group. */
static void charge_connected(struct kunit *test, struct socket **a, struct socket **b)
{
	test_connected(test, a, b);
	KUNIT_EXPECT_TRUE(test, sovia_sk((*b)->sk)->rx.counts);
	KUNIT_EXPECT_FALSE(test, sovia_sk((*b)->sk)->rx.pays);
	sovia_sk((*b)->sk)->rx.pays = true;
}

static void charge_message(struct kunit *test, struct sock *sk)
{
	struct sovia_conn *conn = rcu_dereference_protected(sovia_sk(sk)->conn, 1);
	struct sovia_msg msg = { .type = SOVIA_DATA, .len = CHARGE_LEN };
	struct sk_buff *skb = alloc_skb(CHARGE_LEN, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_zero(skb, CHARGE_LEN);
	local_bh_disable();
	if (!sovia_sock_rx_data(conn, skb, &msg))
		kfree_skb(skb);
	local_bh_enable();
}

/* Most of them are copied to buffers of the receiver's. */
static void charge_messages(struct kunit *test, struct sock *sk)
{
	int i;

	for (i = 0; i < CHARGE_COUNT; i++)
		charge_message(test, sk);
	KUNIT_EXPECT_EQ(test, sovia_sk(sk)->rx.nxt - sovia_sk(sk)->rx.copied, CHARGE_ALL);
}

static int charge_read(struct socket *sock, int len, int flags)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_len = len };
	int ret;

	vec.iov_base = kmalloc(len, GFP_KERNEL);
	ret = kernel_recvmsg(sock, &msg, &vec, 1, len, MSG_DONTWAIT | flags);
	kfree(vec.iov_base);
	return ret;
}

static void charge_until_read(struct kunit *test)
{
	struct socket *a, *b;
	int i;

	charge_connected(test, &a, &b);
	charge_expect_none(test, b->sk);
	charge_messages(test, b->sk);
	KUNIT_EXPECT_GE(test, charge_pages_sum(), 3L);
	charge_expect_exact(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL, MSG_PEEK), CHARGE_ALL);
	charge_expect_exact(test, b->sk);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL / 10 - 1, 0), CHARGE_ALL / 10 - 1);
		charge_expect_exact(test, b->sk);
	}
	/* Appended to the buffer that is being read. */
	charge_message(test, b->sk);
	charge_expect_exact(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL, 0), 10 + CHARGE_LEN);
	charge_expect_none(test, b->sk);
	sock_release(a);
	sock_release(b);
}

/* As splice() does when the pipe has little room. */
static int charge_take_some(struct sovia_sink *sink, struct sock *sk, struct sk_buff *skb,
			    u32 off, u32 len)
{
	return min_t(u32, len, 700);
}

static void charge_until_taken(struct kunit *test)
{
	struct sovia_sink sink = { .recv_actor = charge_take_some, .stops = true };
	struct socket *a, *b;
	int got = 0, ret;

	charge_connected(test, &a, &b);
	charge_messages(test, b->sk);
	while ((ret = sovia_recv(b->sk, &sink, 1500, MSG_DONTWAIT, 1)) > 0) {
		charge_expect_exact(test, b->sk);
		got += ret;
	}
	KUNIT_EXPECT_EQ(test, got, CHARGE_ALL);
	charge_expect_none(test, b->sk);
	sock_release(a);
	sock_release(b);
}

static void charge_urgent(struct kunit *test)
{
	struct sovia_msg mark = { .type = SOVIA_URGENT, .ref = CHARGE_ALL / 2 };
	struct socket *a, *b;

	charge_connected(test, &a, &b);
	local_bh_disable();
	sovia_sock_client.control(test_conn(b), &mark);
	local_bh_enable();
	charge_messages(test, b->sk);
	charge_expect_exact(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_read(b, 1, MSG_OOB), 1);
	charge_expect_exact(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL, 0), CHARGE_ALL / 2);
	charge_expect_exact(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL, 0), CHARGE_ALL / 2 - 1);
	charge_expect_none(test, b->sk);
	sock_release(a);
	sock_release(b);
}

/* By close(), and by connect() to AF_UNSPEC. */
static void charge_until_discarded(struct kunit *test)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct socket *a, *b;

	charge_connected(test, &a, &b);
	charge_messages(test, b->sk);
	KUNIT_EXPECT_EQ(test, kernel_connect(b, (struct sockaddr_unsized *)&none, sizeof(none), 0),
			0);
	charge_expect_none(test, b->sk);
	sock_release(a);
	sock_release(b);
	charge_connected(test, &a, &b);
	charge_messages(test, b->sk);
	sock_release(b);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
	sock_release(a);
}

/* What the sender's group pays for is not charged again. */
static void charge_of_sender(struct kunit *test)
{
	struct socket *a, *b;

	charge_connected(test, &a, &b);
	charge_message(test, b->sk);
	KUNIT_EXPECT_GT(test, sk_rmem_alloc_get(b->sk), 0);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_LEN, 0), CHARGE_LEN);
	charge_expect_none(test, b->sk);
	sock_release(a);
	sock_release(b);
}

/* Returns the only child that waits for accept(). */
static struct sock *charge_child(struct kunit *test, struct socket *listener, struct socket **a)
{
	struct sovia_sock *ls = sovia_sk(listener->sk);

	*a = test_socket(test);
	KUNIT_ASSERT_EQ(test, test_connect(*a, listener, 0), 0);
	KUNIT_ASSERT_FALSE(test, list_empty(&ls->accept.ready));
	return (struct sock *)list_first_entry(&ls->accept.ready, struct sovia_sock, accept.node);
}

/* What came before accept() is charged by it. */
static void charge_accepted(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 1);
	struct socket *a, *b;
	struct sock *child;

	child = charge_child(test, listener, &a);
	charge_messages(test, child);
	KUNIT_EXPECT_EQ(test, sk_rmem_alloc_get(child), 0);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &b, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, b->sk, child);
	KUNIT_EXPECT_GT(test, sk_rmem_alloc_get(child), CHARGE_ALL);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
	/* Once more, as if by a program in a group. */
	atomic_set(&child->sk_rmem_alloc, 0);
	count_from_now(child, true);
	KUNIT_EXPECT_GE(test, charge_pages_sum(), 3L);
	charge_expect_exact(test, child);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL, 0), CHARGE_ALL);
	charge_expect_none(test, child);
	sock_release(listener);
	sock_release(a);
	sock_release(b);
}

static void charge_not_accepted(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 1);
	struct socket *a;

	charge_messages(test, charge_child(test, listener, &a));
	sock_release(listener);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
	sock_release(a);
}

/* At the limit of a group what was promised is taken, and charged later or not at all. */
static void charge_refused(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	unsigned long before = snmp_fold_field(snet->mib, SOVIA_STAT_uncharged);
	struct socket *a, *b;
	int i;

	charge_connected(test, &a, &b);
	for (i = 0; i < 3; i++)
		pages_limits[i] = -1;
	charge_messages(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_pages_sum(), 0L);
	KUNIT_EXPECT_LT(test, b->sk->sk_forward_alloc, 0);
	KUNIT_EXPECT_GE(test, snmp_fold_field(snet->mib, SOVIA_STAT_uncharged), before + 3);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL / 2, 0), CHARGE_ALL / 2);
	for (i = 0; i < 3; i++)
		pages_limits[i] = LONG_MAX;
	for (i = 0; i < CHARGE_COUNT / 2; i++)
		charge_message(test, b->sk);
	charge_expect_exact(test, b->sk);
	KUNIT_EXPECT_EQ(test, charge_read(b, CHARGE_ALL, 0), CHARGE_ALL);
	charge_expect_none(test, b->sk);
	sock_release(a);
	sock_release(b);
}

static struct kunit_case charge_test_cases[] = {
	KUNIT_CASE(charge_until_read),
	KUNIT_CASE(charge_until_taken),
	KUNIT_CASE(charge_urgent),
	KUNIT_CASE(charge_until_discarded),
	KUNIT_CASE(charge_of_sender),
	KUNIT_CASE(charge_accepted),
	KUNIT_CASE(charge_not_accepted),
	KUNIT_CASE(charge_refused),
	{}
};

struct kunit_suite sovia_charge_suite = {
	.name = "sovia-charge",
	.test_cases = charge_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of direct.c; included by it. */
#include <linux/delay.h>
#include <net/ip.h>
#include "sock_helper.h"
#include "suites.h"

static int direct_begin(struct kunit *test)
{
	*test_loop_lane() = false;
	return 0;
}

static void direct_end(struct kunit *test)
{
	*test_loop_lane() = true;
}

static int direct_move(struct socket *from, struct socket *to, int len, int flags)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	struct kvec vec = { .iov_len = len };
	int ret;

	vec.iov_base = kzalloc(len, GFP_KERNEL);
	ret = kernel_sendmsg(from, &msg, &vec, 1, len);
	memset(&msg, 0, sizeof(msg));
	if (ret == len)
		ret = kernel_recvmsg(to, &msg, &vec, 1, len, flags);
	kfree(vec.iov_base);
	return ret;
}

/* Both ends know each other, and no message goes by the lane. */
static void direct_pairs(struct kunit *test)
{
	struct socket *a, *b;
	u32 sent;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_TRUE(test, test_conn(a)->direct && test_conn(b)->direct);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(test_conn(a)->mate), test_conn(b));
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(test_conn(b)->mate), test_conn(a));
	sent = test_conn(a)->link->lane.credit.tx_next;
	KUNIT_EXPECT_EQ(test, direct_move(a, b, 4, MSG_DONTWAIT), 4);
	KUNIT_EXPECT_EQ(test, direct_move(b, a, 4, MSG_DONTWAIT), 4);
	KUNIT_EXPECT_EQ(test, direct_move(a, b, 30000, MSG_DONTWAIT), 30000);
	KUNIT_EXPECT_EQ(test, test_conn(a)->link->lane.credit.tx_next, sent);
	sock_release(a);
	sock_release(b);
}

/* What has left is not kept by who has not. */
static void direct_parts(struct kunit *test)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = "x", .iov_len = 1 };
	struct socket *a, *b;
	struct sovia_conn *left;
	int tries, ret = 1;

	test_connected(test, &a, &b);
	left = test_conn(b);
	sovia_conn_get(left);
	sock_release(b);
	/* FIN comes first, and then the answer to data without a reader. */
	for (tries = 0; tries < 100 && ret == 1; tries++) {
		ret = kernel_sendmsg(a, &msg, &vec, 1, 1);
		msleep(20);
	}
	KUNIT_EXPECT_TRUE(test, ret == -EPIPE || ret == -ECONNRESET);
	sock_release(a);
	rcu_barrier();
	/* Only the test has it now. */
	KUNIT_EXPECT_EQ(test, refcount_read(&left->refs), 1);
	KUNIT_EXPECT_NULL(test, rcu_access_pointer(left->mate));
	sovia_conn_put(left);
}

/* A connection that was refused once is paired with the child that takes it. */
static void direct_again(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 0);
	struct socket *first = test_socket(test), *second = test_socket(test), *b, *c;

	KUNIT_ASSERT_EQ(test, test_connect(first, listener, 0), 0);
	KUNIT_ASSERT_EQ(test, test_connect(second, listener, O_NONBLOCK), -EINPROGRESS);
	msleep(50);
	KUNIT_EXPECT_EQ(test, second->sk->sk_state, TCP_SYN_SENT);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &b, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &c, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(test_conn(second)->mate), test_conn(c));
	KUNIT_EXPECT_EQ(test, direct_move(c, second, 100, MSG_DONTWAIT), 100);
	sock_release(first);
	sock_release(second);
	sock_release(b);
	sock_release(c);
	sock_release(listener);
}

static struct kunit_case direct_cases[] = {
	KUNIT_CASE(direct_pairs),
	KUNIT_CASE(direct_parts),
	KUNIT_CASE(direct_again),
	{}
};

struct kunit_suite sovia_direct_suite = {
	.name = "sovia-direct",
	.init = direct_begin,
	.exit = direct_end,
	.test_cases = direct_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of urgent data: marks that a peer may send; included by urgent.c. */
#include "sock/recv.h"
#include "sock/upcall.h"
#include "sock/urgent.h"
#include "sock_helper.h"
#include "suites.h"

static void urgent_inject(struct socket *sock, u32 pos)
{
	struct sovia_conn *conn = test_conn(sock);
	struct sovia_msg msg = { .type = SOVIA_URGENT, .ref = pos };

	local_bh_disable();
	sovia_sock_client.control(conn, &msg);
	local_bh_enable();
}

static void urgent_data(struct kunit *test, struct socket *sock, const char *text)
{
	struct sovia_conn *conn = test_conn(sock);
	struct sovia_msg msg = { .type = SOVIA_DATA, .len = strlen(text) };
	struct sk_buff *skb = alloc_skb(msg.len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_data(skb, text, msg.len);
	local_bh_disable();
	if (!sovia_sock_client.data(conn, skb, &msg))
		kfree_skb(skb);
	local_bh_enable();
}

static int urgent_recv(struct socket *sock, char *buf, int len, int flags)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_base = buf, .iov_len = len };

	return kernel_recvmsg(sock, &msg, &vec, 1, len, flags | MSG_DONTWAIT);
}

static void urgent_in_order(struct kunit *test)
{
	struct socket *a, *b;
	char buf[16];

	test_connected(test, &a, &b);
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, 1, MSG_OOB), -EINVAL);
	urgent_inject(b, 2);
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, 1, MSG_OOB), -EAGAIN);
	urgent_data(test, b, "ab!cd");
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, 1, MSG_OOB), 1);
	KUNIT_EXPECT_EQ(test, buf[0], '!');
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), 2);
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, sizeof(buf), 0), 2);
	KUNIT_EXPECT_TRUE(test, sovia_at_mark(b->sk, 2));
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, sizeof(buf), 0), 2);
	KUNIT_EXPECT_EQ(test, memcmp(buf, "cd", 2), 0);
	sock_release(a);
	sock_release(b);
}

/* A mark on a byte that has arrived, or before an earlier mark, is ignored. */
static void urgent_too_late(struct kunit *test)
{
	struct socket *a, *b;
	char buf[16];

	test_connected(test, &a, &b);
	urgent_data(test, b, "abc");
	urgent_inject(b, 1);
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, 1, MSG_OOB), -EINVAL);
	urgent_inject(b, 5);
	urgent_inject(b, 4);
	KUNIT_EXPECT_EQ(test, sovia_sk(b->sk)->urg.pos, 5);
	urgent_inject(b, U32_MAX / 2 + 100);
	KUNIT_EXPECT_EQ(test, sovia_sk(b->sk)->urg.pos, 5);
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, sizeof(buf), 0), 3);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_ESTABLISHED);
	sock_release(a);
	sock_release(b);
}

/* A mark that is never reached does not block readers. */
static void urgent_never_comes(struct kunit *test)
{
	struct socket *a, *b;
	char buf[16];

	test_connected(test, &a, &b);
	urgent_inject(b, 1000000);
	urgent_data(test, b, "abc");
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, sizeof(buf), 0), 3);
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, 1, MSG_OOB), -EAGAIN);
	sock_release(a);
	sock_release(b);
}

/* Two marks while the reader is at the first: its byte is skipped. */
static void urgent_twice(struct kunit *test)
{
	struct socket *a, *b;
	char buf[16];

	test_connected(test, &a, &b);
	urgent_inject(b, 0);
	urgent_data(test, b, "!");
	urgent_inject(b, 2);
	urgent_data(test, b, "x?yz");
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, sizeof(buf), 0), 1);
	KUNIT_EXPECT_EQ(test, buf[0], 'x');
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, 1, MSG_OOB), 1);
	KUNIT_EXPECT_EQ(test, buf[0], '?');
	KUNIT_EXPECT_EQ(test, urgent_recv(b, buf, sizeof(buf), 0), 2);
	KUNIT_EXPECT_EQ(test, memcmp(buf, "yz", 2), 0);
	sock_release(a);
	sock_release(b);
}

static struct kunit_case urgent_test_cases[] = {
	KUNIT_CASE(urgent_in_order),
	KUNIT_CASE(urgent_too_late),
	KUNIT_CASE(urgent_never_comes),
	KUNIT_CASE(urgent_twice),
	{}
};

struct kunit_suite sovia_urgent_suite = {
	.name = "sovia-urgent",
	.test_cases = urgent_test_cases,
};

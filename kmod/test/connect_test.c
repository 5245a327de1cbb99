// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of connect.c; included by it. */
#include <linux/delay.h>
#include "sock_helper.h"
#include "suites.h"

/* The connection table is full: ENOBUFS, and the socket is unchanged. */
static void connect_no_room(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 1);
	struct rhashtable *conns = &sovia_net(&init_net)->conns;
	struct socket *sock = test_socket(test);
	unsigned int most = conns->max_elems;

	conns->max_elems = 0;
	KUNIT_EXPECT_EQ(test, test_connect(sock, listener, 0), -ENOBUFS);
	conns->max_elems = most;
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_FALSE(test, inet_sk(sock->sk)->inet_saddr);
	KUNIT_EXPECT_FALSE(test, inet_sk(sock->sk)->inet_rcv_saddr);
	KUNIT_EXPECT_EQ(test, test_connect(sock, listener, 0), 0);
	sock_release(sock);
	sock_release(listener);
}

/* An address bound by the program stays. */
static void connect_keeps_bound(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 1);
	struct rhashtable *conns = &sovia_net(&init_net)->conns;
	struct socket *sock = test_socket(test);
	unsigned int most = conns->max_elems;

	KUNIT_ASSERT_EQ(test, test_bind(sock, htonl(INADDR_LOOPBACK + 2), 0), 0);
	conns->max_elems = 0;
	KUNIT_EXPECT_EQ(test, test_connect(sock, listener, 0), -ENOBUFS);
	conns->max_elems = most;
	KUNIT_EXPECT_EQ(test, ntohl(inet_sk(sock->sk)->inet_saddr), INADDR_LOOPBACK + 2);
	sock_release(sock);
	sock_release(listener);
}

/* A link that has just begun to recover is waited for, also where TCP is the alternative. */
static void connect_patience(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 0);
	struct socket *first = test_socket(test), *second = test_socket(test);
	struct sovia_connecting *connect = &sovia_sk(second->sk)->connect;
	struct sovia_link *link;
	int tries = 500;

	KUNIT_ASSERT_EQ(test, test_connect(first, listener, 0), 0);
	KUNIT_ASSERT_EQ(test, test_connect(second, listener, O_NONBLOCK), -EINPROGRESS);
	while (!sovia_conn_is_heard(test_conn(second)) && tries--)
		msleep(20);
	lock_sock(second->sk);
	/* The listener is busy, which is an answer. */
	KUNIT_ASSERT_EQ(test, second->sk->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_FALSE(test, silent_too_long(second->sk));
	KUNIT_EXPECT_EQ(test, connect->silent, 0);
	link = sovia_conn_link(sovia_conn_of(second->sk));
	spin_lock_bh(&link->lock);
	link->state = SOVIA_LINK_RECOVERING;
	KUNIT_EXPECT_FALSE(test, silent_too_long(second->sk));
	KUNIT_EXPECT_TRUE(test, time_after(connect->silent, jiffies));
	connect->silent = (jiffies - 1) | 1;
	KUNIT_EXPECT_TRUE(test, silent_too_long(second->sk));
	link->state = SOVIA_LINK_UP;
	spin_unlock_bh(&link->lock);
	KUNIT_EXPECT_FALSE(test, silent_too_long(second->sk));
	KUNIT_EXPECT_EQ(test, connect->silent, 0);
	release_sock(second->sk);
	sock_release(second);
	sock_release(first);
	sock_release(listener);
}

static struct kunit_case connect_test_cases[] = {
	KUNIT_CASE(connect_patience),
	KUNIT_CASE(connect_no_room),
	KUNIT_CASE(connect_keeps_bound),
	{}
};

struct kunit_suite sovia_connect_suite = {
	.name = "sovia-connect",
	.test_cases = connect_test_cases,
};

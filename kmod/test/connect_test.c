// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of connect.c; included by it. */
#include "suites.h"
#include "sock_helper.h"

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

static struct kunit_case connect_test_cases[] = {
	KUNIT_CASE(connect_no_room),
	KUNIT_CASE(connect_keeps_bound),
	{}
};

struct kunit_suite sovia_connect_suite = {
	.name = "sovia-connect",
	.test_cases = connect_test_cases,
};

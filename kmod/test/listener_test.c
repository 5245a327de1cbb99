// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of listener.c; included by it. */
#include "sock/close.h"
#include "sock/listener.h"
#include "sock/port.h"
#include "sock_helper.h"
#include "suites.h"

#define LISTENER_TEST_PORT	54322

/* The listener for a connection to an address here, without its reference. */
static struct sock *listener_test_find(const struct in6_addr *local, u16 port)
{
	const struct sovia_msg msg = { .sport = 1, .dport = port };
	struct sovia_pair pair = { .local = *local };
	struct sock *sk;

	local_bh_disable();
	sk = sovia_find_listener(&init_net, &pair, &msg);
	local_bh_enable();
	if (sk)
		sock_put(sk);
	return sk;
}

static struct sock *listener_test_find4(u32 local, u16 port)
{
	struct in6_addr addr;

	ipv6_addr_set_v4mapped(htonl(local), &addr);
	return listener_test_find(&addr, port);
}

static struct socket *listener_test_bound(struct kunit *test, u32 addr)
{
	struct socket *sock = test_socket(test);

	sock->sk->sk_reuseport = 1;
	KUNIT_ASSERT_EQ(test, test_bind(sock, htonl(addr), LISTENER_TEST_PORT), 0);
	return sock;
}

/* The address counts more than anything else. */
static void listener_addresses(struct kunit *test)
{
	struct socket *any = listener_test_bound(test, 0);
	struct socket *one = listener_test_bound(test, 0x7f000003);

	/* A bound socket is not a listener. */
	KUNIT_EXPECT_NULL(test, listener_test_find4(0x7f000003, LISTENER_TEST_PORT));
	KUNIT_EXPECT_EQ(test, kernel_listen(any, 1), 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(one, 1), 0);
	KUNIT_EXPECT_PTR_EQ(test, listener_test_find4(0x7f000003, LISTENER_TEST_PORT), one->sk);
	KUNIT_EXPECT_PTR_EQ(test, listener_test_find4(0x7f000004, LISTENER_TEST_PORT), any->sk);
	KUNIT_EXPECT_NULL(test, listener_test_find4(0x7f000003, LISTENER_TEST_PORT + 1));
	/* An IPv4 listener does not take IPv6 connections. */
	KUNIT_EXPECT_NULL(test, listener_test_find(&in6addr_loopback, LISTENER_TEST_PORT));
	sock_release(one);
	KUNIT_EXPECT_PTR_EQ(test, listener_test_find4(0x7f000003, LISTENER_TEST_PORT), any->sk);
	sock_release(any);
	KUNIT_EXPECT_NULL(test, listener_test_find4(0x7f000003, LISTENER_TEST_PORT));
}

/* Closed and open again, on another port: only there. */
static void listener_moves(struct kunit *test)
{
	struct socket *sock = listener_test_bound(test, 0);
	u16 port;

	KUNIT_EXPECT_EQ(test, kernel_listen(sock, 1), 0);
	lock_sock(sock->sk);
	sovia_disconnect(sock->sk, 0);
	sovia_put_port(sock->sk);
	release_sock(sock->sk);
	KUNIT_EXPECT_NULL(test, listener_test_find4(0x7f000001, LISTENER_TEST_PORT));
	KUNIT_EXPECT_EQ(test, kernel_listen(sock, 1), 0);
	port = inet_sk(sock->sk)->inet_num;
	KUNIT_EXPECT_NULL(test, listener_test_find4(0x7f000001, LISTENER_TEST_PORT));
	KUNIT_EXPECT_PTR_EQ(test, listener_test_find4(0x7f000001, port), sock->sk);
	sock_release(sock);
}

/* All members of a group are found, and no other listener. */
static void listener_group(struct kunit *test)
{
	struct socket *socks[4];
	unsigned int i, tries;
	struct sock *sk;

	for (i = 0; i < ARRAY_SIZE(socks); i++) {
		socks[i] = listener_test_bound(test, 0);
		KUNIT_ASSERT_EQ(test, kernel_listen(socks[i], 1), 0);
	}
	for (i = 0; i < ARRAY_SIZE(socks); i++) {
		for (tries = 0; tries < 1000; tries++)
			if (listener_test_find4(0x7f000001, LISTENER_TEST_PORT) == socks[i]->sk)
				break;
		KUNIT_EXPECT_LT(test, tries, 1000U);
	}
	for (i = 1; i < ARRAY_SIZE(socks); i++)
		sock_release(socks[i]);
	sk = listener_test_find4(0x7f000001, LISTENER_TEST_PORT);
	KUNIT_EXPECT_PTR_EQ(test, sk, socks[0]->sk);
	sock_release(socks[0]);
}

static struct kunit_case listener_test_cases[] = {
	KUNIT_CASE(listener_addresses),
	KUNIT_CASE(listener_moves),
	KUNIT_CASE(listener_group),
	{}
};

struct kunit_suite sovia_listener_suite = {
	.name = "sovia-listener",
	.test_cases = listener_test_cases,
};

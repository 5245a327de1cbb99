/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets for KUnit suites, opened from the kernel. */
#ifndef _SOVIA_TEST_SOCK_HELPER_H
#define _SOVIA_TEST_SOCK_HELPER_H

#include <kunit/test.h>
#include <linux/net.h>
#include <net/inet_sock.h>
#include "core/connd.h"
#include "core/work.h"
#include "sock/sock.h"

/* The parameter loop_lane, for tests: most of those with two sockets are of lanes. */
static inline bool *test_loop_lane(void)
{
	return (bool *)sovia_loop_provider.by_lane;
}

/* For tests, which know that nothing changes it now. */
static inline struct sovia_conn *test_conn(const struct socket *sock)
{
	return rcu_dereference_protected(sovia_sk(sock->sk)->conn, 1);
}

static inline struct socket *test_socket(struct kunit *test)
{
	struct socket *sock = NULL;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, sovia_family_number(), SOCK_STREAM,
					       0, &sock), 0);
	return sock;
}

static inline int test_bind(struct socket *sock, __be32 addr, u16 port)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = addr, .sin_port = htons(port),
	};

	return kernel_bind(sock, (struct sockaddr_unsized *)&sin, sizeof(sin));
}

/* Opens a listener at the address. */
static inline struct socket *test_listener(struct kunit *test, __be32 addr, int backlog)
{
	struct socket *listener = test_socket(test);

	KUNIT_ASSERT_EQ(test, test_bind(listener, addr, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(listener, backlog), 0);
	return listener;
}

static inline int test_connect(struct socket *sock, struct socket *listener, int flags)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = inet_sk(listener->sk)->inet_rcv_saddr,
		.sin_port = htons(inet_sk(listener->sk)->inet_num),
	};

	return kernel_connect(sock, (struct sockaddr_unsized *)&sin, sizeof(sin), flags);
}

/* Connects two sockets over the loop provider. */
static inline void test_connected(struct kunit *test, struct socket **a, struct socket **b)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 1);

	*a = test_socket(test);
	KUNIT_ASSERT_EQ(test, test_connect(*a, listener, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, b, 0), 0);
	sock_release(listener);
}

/*
 * The same with two addresses, so that each end has its own link and VI.
 * Returns connect()'s result.
 */
static inline int test_connected_far(struct kunit *test, struct socket **a, struct socket **b)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK + 1), 1);
	int err;

	*a = test_socket(test);
	KUNIT_ASSERT_EQ(test, test_bind(*a, htonl(INADDR_LOOPBACK), 0), 0);
	(*a)->sk->sk_sndtimeo = 30 * HZ;
	err = test_connect(*a, listener, 0);
	if (!err)
		KUNIT_ASSERT_EQ(test, kernel_accept(listener, b, 0), 0);
	sock_release(listener);
	return err;
}

/* Wait until the connection thread, and what works for it, have nothing to do. */
static inline void test_settle(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		flush_workqueue(sovia_listen_wq);
		sovia_connd_flush();
		flush_workqueue(sovia_setup_wq);
		flush_workqueue(sovia_end_wq);
	}
	sovia_connd_flush();
}

#endif /* _SOVIA_TEST_SOCK_HELPER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Sockets for KUnit suites: the real ones, opened from the kernel. */
#ifndef _SOVIA_TEST_SOCK_HELPER_H
#define _SOVIA_TEST_SOCK_HELPER_H

#include <kunit/test.h>
#include <linux/net.h>

int sovia_family_number(void);

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

	return kernel_bind(sock, (struct sockaddr *)&sin, sizeof(sin));
}

/* Two connected sockets over the loop provider. */
static inline void test_connected(struct kunit *test, struct socket **a, struct socket **b)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct socket *listener = test_socket(test);

	KUNIT_ASSERT_EQ(test, test_bind(listener, sin.sin_addr.s_addr, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(listener, 1), 0);
	sin.sin_port = htons(inet_sk(listener->sk)->inet_num);
	*a = test_socket(test);
	KUNIT_ASSERT_EQ(test, kernel_connect(*a, (struct sockaddr *)&sin, sizeof(sin), 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, b, 0), 0);
	sock_release(listener);
}

#endif /* _SOVIA_TEST_SOCK_HELPER_H */

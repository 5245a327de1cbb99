// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of port.c; included by it. */
#include "sock/port.h"
#include "sock_helper.h"
#include "suites.h"

#define PORT_TEST_PORT	54321

enum port_opt { PLAIN, REUSE, REUSE_PORT };

/* Two sockets on the same port. */
static const struct port_case {
	const char *name;
	enum port_opt first, second;
	__be32 addr1, addr2;
	bool listen1, listen2;
	int err;
} port_cases[] = {
	{ "same address", PLAIN, PLAIN, .err = -EADDRINUSE },
	{ "one allows reuse", REUSE, PLAIN, .err = -EADDRINUSE },
	{ "the other allows reuse", PLAIN, REUSE, .err = -EADDRINUSE },
	{ "both allow reuse", REUSE, REUSE },
	{ "both allow reuse, first listens", REUSE, REUSE, .listen1 = true,
	  .err = -EADDRINUSE },
	{ "both allow reuse, both would listen", REUSE, REUSE, .listen2 = true },
	{ "both share the port", REUSE_PORT, REUSE_PORT, .listen1 = true, .listen2 = true },
	{ "one shares the port", REUSE_PORT, PLAIN, .err = -EADDRINUSE },
	{ "two addresses", PLAIN, PLAIN, cpu_to_be32(0x7f000001), cpu_to_be32(0x7f000002),
	  true, true },
	{ "any and one address", PLAIN, PLAIN, 0, cpu_to_be32(0x7f000002), .err = -EADDRINUSE },
	{ "one address and any", PLAIN, PLAIN, cpu_to_be32(0x7f000002), 0, .err = -EADDRINUSE },
};

static void port_case_name(const struct port_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(port, port_cases, port_case_name);

static struct socket *port_open(struct kunit *test, enum port_opt opt)
{
	struct socket *sock = test_socket(test);

	sock->sk->sk_reuse = opt == REUSE ? SK_CAN_REUSE : SK_NO_REUSE;
	sock->sk->sk_reuseport = opt == REUSE_PORT;
	return sock;
}

static void port_conflicts(struct kunit *test)
{
	const struct port_case *c = test->param_value;
	struct socket *a = port_open(test, c->first), *b = port_open(test, c->second);
	int err;

	KUNIT_EXPECT_EQ(test, test_bind(a, c->addr1, PORT_TEST_PORT), 0);
	if (c->listen1)
		KUNIT_EXPECT_EQ(test, kernel_listen(a, 1), 0);
	err = test_bind(b, c->addr2, PORT_TEST_PORT);
	KUNIT_EXPECT_EQ(test, err, c->err);
	if (!err && c->listen2)
		KUNIT_EXPECT_EQ(test, kernel_listen(b, 1), 0);
	sock_release(a);
	sock_release(b);
}

/* Two sockets may share a port with SO_REUSEADDR, but only one may listen. */
static void port_second_listener(struct kunit *test)
{
	struct socket *a = port_open(test, REUSE), *b = port_open(test, REUSE);

	KUNIT_EXPECT_EQ(test, test_bind(a, 0, PORT_TEST_PORT), 0);
	KUNIT_EXPECT_EQ(test, test_bind(b, 0, PORT_TEST_PORT), 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(a, 1), 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(b, 1), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_CLOSE);
	sock_release(a);
	/* Then the port can be bound again. */
	KUNIT_EXPECT_EQ(test, kernel_listen(b, 1), 0);
	sock_release(b);
}

static void port_ephemeral(struct kunit *test)
{
	struct socket *a = test_socket(test), *b = test_socket(test);
	int low, high;

	inet_get_local_port_range(&init_net, &low, &high);
	KUNIT_EXPECT_EQ(test, test_bind(a, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, test_bind(b, 0, 0), 0);
	KUNIT_EXPECT_GE(test, (int)inet_sk(a->sk)->inet_num, low);
	KUNIT_EXPECT_LE(test, (int)inet_sk(a->sk)->inet_num, high);
	KUNIT_EXPECT_NE(test, inet_sk(a->sk)->inet_num, inet_sk(b->sk)->inet_num);
	sock_release(a);
	sock_release(b);
}

static void port_listener_choice(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *any = test_socket(test), *one = test_socket(test);
	struct sovia_pair pair = {};
	struct sock *found;

	any->sk->sk_reuseport = 1;
	one->sk->sk_reuseport = 1;
	ipv6_addr_set_v4mapped(cpu_to_be32(0x7f000003), &pair.local);
	KUNIT_EXPECT_NULL(test, sovia_find_listener(snet, &pair, PORT_TEST_PORT));
	KUNIT_EXPECT_EQ(test, test_bind(any, 0, PORT_TEST_PORT), 0);
	KUNIT_EXPECT_EQ(test, test_bind(one, cpu_to_be32(0x7f000003), PORT_TEST_PORT), 0);
	/* A bound socket is not a listener. */
	KUNIT_EXPECT_NULL(test, sovia_find_listener(snet, &pair, PORT_TEST_PORT));
	KUNIT_EXPECT_EQ(test, kernel_listen(any, 1), 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(one, 1), 0);
	/* The specific one wins, and the caller gets a reference. */
	found = sovia_find_listener(snet, &pair, PORT_TEST_PORT);
	KUNIT_EXPECT_PTR_EQ(test, found, one->sk);
	KUNIT_EXPECT_EQ(test, refcount_read(&one->sk->sk_refcnt), 2);
	if (found)
		sock_put(found);
	ipv6_addr_set_v4mapped(cpu_to_be32(0x7f000004), &pair.local);
	found = sovia_find_listener(snet, &pair, PORT_TEST_PORT);
	KUNIT_EXPECT_PTR_EQ(test, found, any->sk);
	if (found)
		sock_put(found);
	KUNIT_EXPECT_NULL(test, sovia_find_listener(snet, &pair, PORT_TEST_PORT + 1));
	/* An IPv4 listener does not take IPv6 connections. */
	pair.local = in6addr_loopback;
	KUNIT_EXPECT_NULL(test, sovia_find_listener(snet, &pair, PORT_TEST_PORT));
	sock_release(any);
	sock_release(one);
}

static struct kunit_case port_test_cases[] = {
	KUNIT_CASE_PARAM(port_conflicts, port_gen_params),
	KUNIT_CASE(port_second_listener),
	KUNIT_CASE(port_ephemeral),
	KUNIT_CASE(port_listener_choice),
	{}
};

struct kunit_suite sovia_port_suite = {
	.name = "sovia-port",
	.test_cases = port_test_cases,
};

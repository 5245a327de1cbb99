// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of port.c; included by it. */
#include "sock/port.h"
#include "sock/port_search.h"
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

/* More owners than are checked at once: only the last one conflicts. */
static void port_many_owners(struct kunit *test)
{
	struct socket *owners[2 * SCAN_BATCH + 3], *last, *sock;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(owners); i++) {
		owners[i] = port_open(test, REUSE);
		KUNIT_EXPECT_EQ(test, test_bind(owners[i], cpu_to_be32(0x7f000002),
						PORT_TEST_PORT), 0);
	}
	sock = port_open(test, PLAIN);
	KUNIT_EXPECT_EQ(test, test_bind(sock, cpu_to_be32(0x7f000003), PORT_TEST_PORT), 0);
	sock_release(sock);
	last = port_open(test, PLAIN);
	KUNIT_EXPECT_EQ(test, test_bind(last, cpu_to_be32(0x7f000001), PORT_TEST_PORT), 0);
	sock = port_open(test, REUSE);
	KUNIT_EXPECT_EQ(test, test_bind(sock, 0, PORT_TEST_PORT), -EADDRINUSE);
	sock_release(last);
	KUNIT_EXPECT_EQ(test, test_bind(sock, 0, PORT_TEST_PORT), 0);
	/* A listener is checked against all of them again. */
	KUNIT_EXPECT_EQ(test, kernel_listen(owners[0], 1), 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(sock, 1), -EADDRINUSE);
	for (i = 0; i < ARRAY_SIZE(owners); i++)
		sock_release(owners[i]);
	KUNIT_EXPECT_EQ(test, kernel_listen(sock, 1), 0);
	sock_release(sock);
}

/* connect() shares a port with other connections, and with no other socket. */
static void port_borrowed(struct kunit *test)
{
	struct socket *a = test_socket(test), *b = test_socket(test), *c = test_socket(test);

	KUNIT_EXPECT_EQ(test, sovia_port_borrow(a->sk, PORT_TEST_PORT), 0);
	KUNIT_EXPECT_EQ(test, sovia_port_borrow(b->sk, PORT_TEST_PORT), 0);
	KUNIT_EXPECT_EQ(test, inet_sk(b->sk)->inet_num, PORT_TEST_PORT);
	KUNIT_EXPECT_EQ(test, test_bind(c, 0, PORT_TEST_PORT), -EADDRINUSE);
	sock_release(a);
	sock_release(b);
	KUNIT_EXPECT_EQ(test, test_bind(c, 0, PORT_TEST_PORT), 0);
	a = test_socket(test);
	KUNIT_EXPECT_EQ(test, sovia_port_borrow(a->sk, PORT_TEST_PORT), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, inet_sk(a->sk)->inet_num, 0);
	sock_release(c);
	KUNIT_EXPECT_EQ(test, sovia_port_borrow(a->sk, PORT_TEST_PORT), 0);
	sock_release(a);
}

/* Children keep the port when the listener is gone, and may not be borrowed from. */
static void port_children(struct kunit *test)
{
	struct socket *listener = test_socket(test), *a = test_socket(test), *b, *c;

	KUNIT_ASSERT_EQ(test, test_bind(listener, htonl(INADDR_LOOPBACK), PORT_TEST_PORT), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(listener, 1), 0);
	KUNIT_ASSERT_EQ(test, test_connect(a, listener, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &b, 0), 0);
	sock_release(listener);
	c = test_socket(test);
	KUNIT_EXPECT_EQ(test, sovia_port_borrow(c->sk, PORT_TEST_PORT), -EADDRINUSE);
	KUNIT_EXPECT_EQ(test, test_bind(c, 0, PORT_TEST_PORT), -EADDRINUSE);
	sock_release(a);
	sock_release(b);
	sock_release(c);
}

/* What a search of connect() finds: all ports of the first parity are in use. */
struct port_search {
	int low;
	unsigned int looks;
};

static int port_second_parity(struct sock *sk, void *context)
{
	struct port_search *search = context;

	search->looks++;
	return (inet_sk(sk)->inet_num - search->low) & 1 ? 0 : -EADDRNOTAVAIL;
}

/* They are looked at now and then, and not by each search. */
static void port_first_parity_used(struct kunit *test)
{
	struct port_search search = {};
	struct socket *sock;
	int high, i;

	inet_get_local_port_range(&init_net, &search.low, &high);
	for (i = 0; i < 1000; i++) {
		sock = test_socket(test);
		inet_sk(sock->sk)->inet_dport = htons(PORT_TEST_PORT);
		KUNIT_EXPECT_EQ(test, sovia_connect_port(sock->sk, port_second_parity, &search), 0);
		sock_release(sock);
	}
	/* Each search that does costs half of the range: sixteen of 1000 are expected. */
	KUNIT_EXPECT_GE(test, search.looks, (unsigned int)(high - search.low + 1) / 2);
	KUNIT_EXPECT_LE(test, search.looks, (unsigned int)(high - search.low + 1) / 2 * 60);
}

static struct kunit_case port_test_cases[] = {
	KUNIT_CASE_PARAM(port_conflicts, port_gen_params),
	KUNIT_CASE(port_second_listener),
	KUNIT_CASE(port_ephemeral),
	KUNIT_CASE(port_many_owners),
	KUNIT_CASE(port_borrowed),
	KUNIT_CASE(port_children),
	KUNIT_CASE(port_first_parity_used),
	{}
};

struct kunit_suite sovia_port_suite = {
	.name = "sovia-port",
	.test_cases = port_test_cases,
};

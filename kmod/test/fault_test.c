// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of faulty providers: each fault is injected into a pair of sockets, over two
 * VIs of the loop provider.  The connection survives, or ends at both sides;
 * no byte is wrong, and the next connection works.  Included by fault.c.
 */
#include <net/ip.h>
#include "core/connd.h"
#include "sock/sock.h"
#include "sock_helper.h"
#include "suites.h"

#define FAULT_TEST_ROUNDS	20
#define FAULT_TEST_BYTES	300

/* Effect on the sockets. */
enum fault_outcome { GOES_ON, ENDS, NO_CONNECTION };

/**
 * struct fault_case - a fault, and its expected effect
 * @kind: enum fault_kind
 * @early: it happens during the set-up
 * @error: a positive errno, or 0 for the fault's own
 * @interval: as the file of that name; 2 spares the side with the first chance: the
 *	connecting side for FAULT_CONNECT, the accepting side for later faults
 * @times: as the file of that name
 * @outcome: effect on the sockets
 * @answer: positive errno of connect(), or 0 for any: which end fails first is open
 */
struct fault_case {
	enum fault_kind		kind;
	bool			early;
	int			error;
	int			interval;
	int			times;
	enum fault_outcome	outcome;
	int			answer;
};

static const struct fault_case fault_cases[] = {
	{ FAULT_CONNECT, true, ENOMEM, 1, 1, NO_CONNECTION, ENOBUFS },
	/* The other side has no memory: retried. */
	{ FAULT_CONNECT, true, ENOMEM, 2, 1, GOES_ON },
	{ FAULT_CONNECT, true, EHOSTUNREACH, 1, 1, NO_CONNECTION, EHOSTUNREACH },
	{ FAULT_CONNECT, true, ENODEV, 1, 1, NO_CONNECTION, ENETUNREACH },
	/* The other side is notified of its peer's death, and retries. */
	{ FAULT_SETUP, true, ECONNREFUSED, 1, 1, GOES_ON },
	{ FAULT_SETUP, true, ECONNREFUSED, 2, 1, NO_CONNECTION, ECONNREFUSED },
	{ FAULT_SETUP, true, ETIMEDOUT, 2, 1, GOES_ON },
	{ FAULT_SETUP, true, ETIMEDOUT, 1, -1, NO_CONNECTION },
	/* It waits for the other side's attempt, which does not come, and retries. */
	{ FAULT_SETUP, true, EAGAIN, 2, 1, GOES_ON },
	{ FAULT_HELLO, true, 0, 1, 1, GOES_ON },
	{ FAULT_HELLO, true, 0, 2, 1, NO_CONNECTION, ECONNREFUSED },
	{ FAULT_LATE, true, 0, 1, 2, GOES_ON },
	{ FAULT_POST, false, EAGAIN, 1, 5, GOES_ON },
	{ FAULT_POST, false, ENOMEM, 1, 1, ENDS },
	{ FAULT_POST, false, EIO, 3, 1, ENDS },
	{ FAULT_DELAY, false, 0, 3, -1, GOES_ON },
	{ FAULT_DROP, false, ETIMEDOUT, 3, 1, ENDS },
	{ FAULT_CLOSE, false, ECONNRESET, 3, 1, ENDS },
	{ FAULT_CLOSE, false, ENODEV, 1, 1, ENDS },
	{ FAULT_SENT, false, 0, 1, -1, GOES_ON },
	{ FAULT_LOSE, false, 0, 1, 1, ENDS },
	{ FAULT_TWICE, false, 0, 1, 1, ENDS },
	{ FAULT_SWAP, false, 0, 1, 1, ENDS },
	{ FAULT_STARVE, false, 0, 2, -1, GOES_ON },
};

static void fault_case_name(const struct fault_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %d, %d x %d", fault_table[c->kind].name,
		 c->error, c->interval, c->times);
}

KUNIT_ARRAY_PARAM(fault, fault_cases, fault_case_name);

static void fault_arm(const struct fault_case *c)
{
	struct fault *fault = &fault_table[c->kind];

	if (c->error)
		fault->error = c->error;
	fault->interval = c->interval;
	atomic_set(&fault->times, c->times);
	atomic_set(&fault->seen, 0);
	atomic_set(&fault->fired, 0);
	fault->probability = 100;
}

static void fault_disarm(const struct fault_case *c)
{
	fault_table[c->kind].probability = 0;
}

/* Nothing is in flight between two connected sockets, in either direction. */
static void fault_wait_still(struct socket *sock)
{
	struct sovia_credit *credit = &test_conn(sock)->lane->credit;

	while (sovia_credit_flight(credit) || sovia_credit_ack_pending(credit))
		msleep(20);
}

static bool fault_send(struct socket *sock)
{
	u8 bytes[FAULT_TEST_BYTES];
	bool ok = true;
	int i, n;

	for (i = 0; i < FAULT_TEST_ROUNDS && ok; i++) {
		struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
		struct kvec vec = { bytes, sizeof(bytes) };

		for (n = 0; n < sizeof(bytes); n++)
			bytes[n] = i * 7 + n;
		ok = kernel_sendmsg(sock, &msg, &vec, 1, sizeof(bytes)) == sizeof(bytes);
	}
	return ok;
}

/* Read everything that was sent, or a part of it and then an error, unless @told. */
static bool fault_receive_all(struct kunit *test, struct socket *sock, bool told)
{
	u8 bytes[FAULT_TEST_BYTES];
	int i, n, ret;

	sock->sk->sk_rcvtimeo = 30 * HZ;
	for (i = 0; i < FAULT_TEST_ROUNDS; i++) {
		struct msghdr msg = {};
		struct kvec vec = { bytes, sizeof(bytes) };

		ret = kernel_recvmsg(sock, &msg, &vec, 1, sizeof(bytes), MSG_WAITALL);
		for (n = 0; n < ret; n++)
			KUNIT_EXPECT_EQ(test, bytes[n], (u8)(i * 7 + n));
		/* No call hangs, and no end of a connection goes unnoticed. */
		KUNIT_EXPECT_NE(test, ret, -EAGAIN);
		if (!told)
			KUNIT_EXPECT_NE(test, ret, 0);
		if (ret != sizeof(bytes))
			return false;
	}
	return true;
}

/* Wait until the links and all their users are gone. */
static void fault_kill_links(void)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_link *link;
	int bkt;

	spin_lock_bh(&snet->link_lock);
	hash_for_each(snet->links, bkt, link, net_node)
		sovia_link_event(link, SOVIA_LINK_EV_KILL);
	spin_unlock_bh(&snet->link_lock);
	test_settle();
}

static void fault_data(struct kunit *test, const struct fault_case *c, struct socket *a,
		       struct socket *b)
{
	u8 state = c->outcome == GOES_ON ? TCP_ESTABLISHED : TCP_CLOSE;
	bool sent, there, back;

	fault_wait_still(a);
	fault_wait_still(b);
	if (!c->early)
		fault_arm(c);
	sent = fault_send(a);
	there = fault_receive_all(test, b, false);
	back = fault_send(b);
	back &= fault_receive_all(test, a, !sent);
	KUNIT_EXPECT_EQ(test, sent && there && back, c->outcome == GOES_ON);
	KUNIT_EXPECT_EQ(test, a->sk->sk_state, state);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, state);
}

static void fault_provider_test(struct kunit *test)
{
	const struct fault_case *c = test->param_value;
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *a, *b;
	int err, socks;

	fault_kill_links();
	rcu_barrier();
	socks = atomic_read(&snet->socks);
	fault_loop = true;
	if (c->early)
		fault_arm(c);
	err = test_connected_far(test, &a, &b);
	KUNIT_EXPECT_EQ(test, err < 0, c->outcome == NO_CONNECTION);
	if (c->answer)
		KUNIT_EXPECT_EQ(test, err, -c->answer);
	if (!err) {
		fault_data(test, c, a, b);
		sock_release(b);
	}
	fault_disarm(c);
	KUNIT_EXPECT_GT(test, atomic_read(&fault_table[c->kind].fired), 0);
	sock_release(a);

	/* After any fault the next connection works. */
	KUNIT_ASSERT_EQ(test, test_connected_far(test, &a, &b), 0);
	KUNIT_EXPECT_TRUE(test, fault_send(a));
	KUNIT_EXPECT_TRUE(test, fault_receive_all(test, b, false));
	sock_release(a);
	sock_release(b);
	fault_loop = false;
	fault_kill_links();
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, atomic_read(&snet->socks), socks);
}

static struct kunit_case fault_test_cases[] = {
	KUNIT_CASE_PARAM(fault_provider_test, fault_gen_params),
	{}
};

struct kunit_suite sovia_fault_suite = {
	.name = "sovia-fault",
	.test_cases = fault_test_cases,
};

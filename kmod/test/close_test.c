// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of orphaned sockets; included by close.c. */
#include <linux/delay.h>
#include <net/ip.h>
#include "sock/close.h"
#include "sock_helper.h"
#include "suites.h"

/* Its timeout is a minute. */
static void orphan_time_is_up(struct sock *sk)
{
	local_bh_disable();
	bh_lock_sock(sk);
	sovia_orphan_timeout(sk);
	bh_unlock_sock(sk);
	local_bh_enable();
}

/* Messages in flight may still be acknowledged, but no more are sent. */
static void orphan_expect_end(struct kunit *test, struct sock *sk)
{
	int tries;

	for (tries = 0; tries < 500 && sk->sk_state != TCP_CLOSE; tries++) {
		msleep(20);
		orphan_time_is_up(sk);
	}
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_FALSE(test, timer_pending(&sk->sk_timer));
}

/* Closed while the peer, which reads nothing, has no room for all data. */
static struct sock *orphan_make(struct kunit *test, struct socket **peer)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_len = 16384 };
	struct socket *sock;
	struct sock *sk;

	vec.iov_base = kunit_kzalloc(test, vec.iov_len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, vec.iov_base);
	test_connected(test, &sock, peer);
	while (kernel_sendmsg(sock, &msg, &vec, 1, vec.iov_len) > 0)
		;
	sk = sock->sk;
	/* A timer that a program still holds the socket of means something else. */
	orphan_time_is_up(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_ESTABLISHED);
	sock_hold(sk);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_FIN_WAIT1);
	return sk;
}

/* With progress now and then, the orphan lives longer than its timeout. */
static void orphan_goes_on(struct kunit *test)
{
	struct socket *peer;
	struct sock *sk = orphan_make(test, &peer);

	atomic64_inc(&rcu_dereference_protected(sovia_sk(sk)->conn, 1)->acked);
	orphan_time_is_up(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_FIN_WAIT1);
	KUNIT_EXPECT_TRUE(test, timer_pending(&sk->sk_timer));
	KUNIT_EXPECT_EQ(test, peer->sk->sk_err, 0);
	orphan_expect_end(test, sk);
	sock_put(sk);
	sock_release(peer);
}

/* A peer that takes nothing for a minute gets a RESET. */
static void orphan_is_given_up(struct kunit *test)
{
	struct socket *peer;
	struct sock *sk = orphan_make(test, &peer);
	int tries;

	orphan_expect_end(test, sk);
	for (tries = 0; tries < 500 && !peer->sk->sk_err; tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, peer->sk->sk_err, ECONNRESET);
	sock_put(sk);
	sock_release(peer);
}

static struct kunit_case close_test_cases[] = {
	KUNIT_CASE(orphan_goes_on),
	KUNIT_CASE(orphan_is_given_up),
	{}
};

struct kunit_suite sovia_close_suite = {
	.name = "sovia-close",
	.test_cases = close_test_cases,
};

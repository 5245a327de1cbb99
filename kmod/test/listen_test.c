// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of CONN for a listener that is owned by a process, here by the test
 * itself.  Included by listen.c.
 */
#include <linux/delay.h>
#include "lane/lane_tx.h"
#include "sock/close.h"
#include "sock/upcall.h"
#include "sock_helper.h"
#include "suites.h"

/* The listener's lock nests outside a client's, for lockdep. */
#define LISTEN_TEST_LOCK	2

/* Let pending softirqs run, at the latest when the processor is yielded. */
#define LISTEN_TEST_SOON(condition)					\
({									\
	int tries_ = 500;						\
	bool done_;							\
									\
	while (!(done_ = (condition)) && tries_--)			\
		msleep(20);						\
	done_;								\
})

static struct socket *listen_test_listener(struct kunit *test, int backlog)
{
	struct socket *listener = test_socket(test);

	KUNIT_ASSERT_EQ(test, test_bind(listener, htonl(INADDR_LOOPBACK), 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_listen(listener, backlog), 0);
	return listener;
}

static struct socket *listen_test_connect(struct kunit *test, struct socket *listener)
{
	struct sockaddr_in sin = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
		.sin_port = htons(inet_sk(listener->sk)->inet_num),
	};
	struct socket *sock = test_socket(test);

	KUNIT_EXPECT_EQ(test, kernel_connect(sock, (struct sockaddr_unsized *)&sin, sizeof(sin),
					     O_NONBLOCK), -EINPROGRESS);
	return sock;
}

/* Children wait, and are admitted up to the backlog when the owner releases the listener. */
static void listen_pending(struct kunit *test)
{
	struct socket *listener = listen_test_listener(test, 0);
	struct sovia_sock *ls = sovia_sk(listener->sk);
	struct socket *first, *second, *child;

	lock_sock_nested(listener->sk, LISTEN_TEST_LOCK);
	first = listen_test_connect(test, listener);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(ls->accept.pending_count) == 1));
	second = listen_test_connect(test, listener);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(ls->accept.pending_count) == 2));
	KUNIT_EXPECT_EQ(test, first->sk->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_TRUE(test, list_empty(&ls->accept.ready));
	release_sock(listener->sk);

	KUNIT_EXPECT_EQ(test, ls->accept.pending_count, 0);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(first->sk->sk_state == TCP_ESTABLISHED));
	/* The second client gets BUSY, retries, and connects when there is room. */
	KUNIT_EXPECT_EQ(test, second->sk->sk_state, TCP_SYN_SENT);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &child, O_NONBLOCK), 0);
	sock_release(child);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(second->sk->sk_state == TCP_ESTABLISHED));
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &child, O_NONBLOCK), 0);
	sock_release(child);
	sock_release(first);
	sock_release(second);
	sock_release(listener);
}

/* The owner closes the listener: children are refused, and nothing is left. */
static void listen_pending_closed(struct kunit *test)
{
	struct socket *listener = listen_test_listener(test, 1);
	struct sovia_sock *ls = sovia_sk(listener->sk);
	struct socket *sock;

	lock_sock_nested(listener->sk, LISTEN_TEST_LOCK);
	sock = listen_test_connect(test, listener);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(ls->accept.pending_count) == 1));
	sovia_disconnect(listener->sk, 0);
	release_sock(listener->sk);

	KUNIT_EXPECT_TRUE(test, list_empty(&ls->accept.pending));
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(sock->sk->sk_state == TCP_CLOSE));
	KUNIT_EXPECT_EQ(test, sock->sk->sk_err, ECONNREFUSED);
	sock_release(sock);
	sock_release(listener);
}

/* A late message for the previous connection on the same ports. */
static void listen_test_late(struct socket *sock, u8 type)
{
	struct sovia_msg msg = { .type = type };

	local_bh_disable();
	sovia_sock_client.control(test_conn(sock), &msg);
	local_bh_enable();
}

/* Its FIN does not end the stream of the connection being set up. */
static void listen_late_fin(struct kunit *test)
{
	struct socket *listener = listen_test_listener(test, 1);
	struct sovia_sock *ls = sovia_sk(listener->sk);
	struct socket *sock;

	lock_sock_nested(listener->sk, LISTEN_TEST_LOCK);
	sock = listen_test_connect(test, listener);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(ls->accept.pending_count) == 1));
	listen_test_late(sock, SOVIA_FIN);
	release_sock(listener->sk);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(sock->sk->sk_state == TCP_ESTABLISHED));
	KUNIT_EXPECT_FALSE(test, sovia_sk(sock->sk)->rx.fin);
	/* The connection's own FIN does. */
	listen_test_late(sock, SOVIA_FIN);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_CLOSE_WAIT);
	sock_release(sock);
	sock_release(listener);
}

/* Its RESET does not end the connection being set up, whether the socket is owned or not. */
static void listen_late_reset(struct kunit *test)
{
	struct socket *listener = listen_test_listener(test, 1);
	struct sovia_sock *ls = sovia_sk(listener->sk);
	struct socket *sock;

	lock_sock_nested(listener->sk, LISTEN_TEST_LOCK);
	sock = listen_test_connect(test, listener);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(ls->accept.pending_count) == 1));
	lock_sock(sock->sk);
	listen_test_late(sock, SOVIA_RESET);
	release_sock(listener->sk);
	/* ACCEPT has arrived, and is deferred as well. */
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(sovia_sk(sock->sk)->rx.open)));
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_SYN_SENT);
	release_sock(sock->sk);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(sock->sk->sk_state != TCP_SYN_SENT));
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_ESTABLISHED);
	sock_release(sock);
	sock_release(listener);
}

/* Set the credits of the lane of @sock; it has nothing in flight. */
static void listen_test_credit(struct socket *sock, u32 window)
{
	struct sovia_lane *lane = test_conn(sock)->lane;

	spin_lock_bh(&lane->lock);
	lane->credit.window = window;
	spin_unlock_bh(&lane->lock);
	/* A PROBE also sends the queued messages. */
	if (window)
		sovia_lane_probe(lane);
}

/* An ACCEPT that waits for credit is sent before the RESET of its connection. */
static void listen_reset_after_accept(struct kunit *test)
{
	struct socket *listener = listen_test_listener(test, 1);
	struct sovia_sock *ls = sovia_sk(listener->sk);
	struct socket *sock, *child;
	u32 window;

	lock_sock_nested(listener->sk, LISTEN_TEST_LOCK);
	sock = listen_test_connect(test, listener);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(READ_ONCE(ls->accept.pending_count) == 1));
	window = test_conn(sock)->lane->credit.window;
	listen_test_credit(sock, 0);
	release_sock(listener->sk);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &child, O_NONBLOCK), 0);
	sock_no_linger(child->sk);
	sock_release(child);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_SYN_SENT);
	listen_test_credit(sock, window);
	KUNIT_EXPECT_TRUE(test, LISTEN_TEST_SOON(sock->sk->sk_state == TCP_CLOSE));
	KUNIT_EXPECT_EQ(test, sock->sk->sk_err, ECONNRESET);
	sock_release(sock);
	sock_release(listener);
}

/* A CONN that waits for credit is dropped, not replaced by RESET, if connect() gives up. */
static void listen_conn_given_up(struct kunit *test)
{
	struct socket *listener = listen_test_listener(test, 1);
	struct socket *a, *b, *sock;
	struct sovia_lane *lane;
	u32 window;

	test_connected(test, &a, &b);
	lane = test_conn(a)->lane;
	window = lane->credit.window;
	listen_test_credit(a, 0);
	sock = listen_test_connect(test, listener);
	KUNIT_EXPECT_EQ(test, lane->ctl_count, 1U);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, lane->ctl_count, 0U);
	listen_test_credit(a, window);
	sock_release(a);
	sock_release(b);
	sock_release(listener);
}

/* However a listener is opened, its lock is of another class than TCP's beside it, for lockdep. */
static void listen_by_protocol(struct kunit *test)
{
	struct socket *listener;

	/* As a program does: sockets of the kernel have classes of their own. */
	KUNIT_ASSERT_EQ(test, sock_create(PF_INET, SOCK_STREAM, SOVIAPROTO_INET, &listener), 0);
	KUNIT_EXPECT_EQ(test, test_bind(listener, htonl(INADDR_LOOPBACK), 0), 0);
	KUNIT_EXPECT_EQ(test, kernel_listen(listener, 1), 0);
	sock_release(listener);
}

static struct kunit_case listen_test_cases[] = {
	KUNIT_CASE(listen_by_protocol),
	KUNIT_CASE(listen_pending),
	KUNIT_CASE(listen_pending_closed),
	KUNIT_CASE(listen_late_fin),
	KUNIT_CASE(listen_late_reset),
	KUNIT_CASE(listen_reset_after_accept),
	KUNIT_CASE(listen_conn_given_up),
	{}
};

struct kunit_suite sovia_listen_suite = {
	.name = "sovia-listen",
	.test_cases = listen_test_cases,
};

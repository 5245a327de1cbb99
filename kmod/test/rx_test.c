// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of windows, over a connection of the loop provider; included by rx_window.c. */
#include <net/ip.h>
#include "sock/recv.h"
#include "sock/rx.h"
#include "sock_helper.h"
#include "suites.h"

static int window_send(struct socket *sock, int len)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_len = len };
	int ret;

	vec.iov_base = kzalloc(len, GFP_KERNEL);
	ret = kernel_sendmsg(sock, &msg, &vec, 1, len);
	kfree(vec.iov_base);
	return ret;
}

/* The bottom half may run in ksoftirqd: wait for @len bytes. */
static int window_read(struct socket *sock, int len, int flags)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_len = len };
	int ret;

	sock->sk->sk_rcvtimeo = 20 * HZ;
	vec.iov_base = kmalloc(len, GFP_KERNEL);
	ret = kernel_recvmsg(sock, &msg, &vec, 1, len, MSG_WAITALL | flags);
	kfree(vec.iov_base);
	return ret;
}

static int window_recv(struct socket *sock, int len)
{
	return window_read(sock, len, 0);
}

/* Pass the bottom half a message as if received from the peer. */
static bool window_inject(struct kunit *test, struct socket *sock, u32 len)
{
	struct sovia_conn *conn = test_conn(sock);
	struct sovia_msg msg = { .type = SOVIA_DATA, .len = len };
	struct sk_buff *skb;
	bool taken;

	skb = alloc_skb(len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put_zero(skb, len);
	local_bh_disable();
	taken = sovia_sock_rx_data(conn, skb, &msg);
	local_bh_enable();
	if (!taken)
		kfree_skb(skb);
	return taken;
}

static void window_advertised(struct kunit *test)
{
	struct socket *a, *b;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, window_size(b->sk));
	KUNIT_EXPECT_EQ(test, sovia_sk(a->sk)->tx.wnd_end, test_conn(b)->rcv_wnd_end);
	KUNIT_EXPECT_EQ(test, window_send(a, 1000), 1000);
	KUNIT_EXPECT_EQ(test, window_read(b, 1000, MSG_PEEK), 1000);
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), 1000);
	/* Only data that is read moves the window. */
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, window_size(b->sk));
	KUNIT_EXPECT_EQ(test, window_recv(b, 400), 400);
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, window_size(b->sk) + 400);
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), 600);
	sock_release(a);
	sock_release(b);
}

/* A smaller buffer does not shrink the window. */
static void window_never_shrinks(struct kunit *test)
{
	struct socket *a, *b;
	u32 adv;

	test_connected(test, &a, &b);
	adv = test_conn(b)->rcv_wnd_end;
	b->sk->sk_rcvbuf = SOCK_MIN_RCVBUF;
	KUNIT_EXPECT_EQ(test, window_send(a, 100), 100);
	KUNIT_EXPECT_EQ(test, window_recv(b, 100), 100);
	KUNIT_EXPECT_EQ(test, test_conn(b)->rcv_wnd_end, adv);
	sock_release(a);
	sock_release(b);
}

/* What MSG_MORE holds back goes when data of the peer's arrives. */
static void window_more_until_arrival(struct kunit *test)
{
	struct msghdr msg = { .msg_flags = MSG_MORE | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = "abc", .iov_len = 3 };
	struct socket *a, *b;
	struct sovia_tx *tx;
	int tries = 500;

	test_connected(test, &a, &b);
	tx = &sovia_sk(a->sk)->tx;
	KUNIT_EXPECT_EQ(test, kernel_sendmsg(a, &msg, &vec, 1, 3), 3);
	KUNIT_EXPECT_EQ(test, tx->queued, 3U);
	/* Not the timer. */
	sk_stop_timer(a->sk, &tx->cork_timer);
	window_inject(test, a, 5);
	while (READ_ONCE(tx->queued) && tries--)
		msleep(20);
	KUNIT_EXPECT_EQ(test, tx->queued, 0U);
	KUNIT_EXPECT_EQ(test, window_recv(b, 3), 3);
	sock_release(a);
	sock_release(b);
}

static void window_overrun(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	unsigned long before = snmp_fold_field(snet->mib, SOVIA_STAT_bad_window);
	struct socket *a, *b;
	u32 left;

	test_connected(test, &a, &b);
	left = test_conn(b)->rcv_wnd_end - sovia_sk(b->sk)->rx.nxt;
	window_inject(test, b, left);
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), left);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_ESTABLISHED);
	/* A byte beyond the window resets the connection, and is not queued. */
	KUNIT_EXPECT_FALSE(test, window_inject(test, b, 1));
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), left);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, snmp_fold_field(snet->mib, SOVIA_STAT_bad_window), before + 1);
	sock_release(a);
	sock_release(b);
}

/* A single small message stays in its buffer; a thousand do not pin as many buffers. */
static void window_gathers(struct kunit *test)
{
	struct socket *a, *b;
	int i;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_TRUE(test, window_inject(test, b, 1));
	for (i = 0; i < 1000; i++)
		KUNIT_EXPECT_FALSE(test, window_inject(test, b, 1));
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), 1001);
	KUNIT_EXPECT_EQ(test, skb_queue_len(&b->sk->sk_receive_queue), 2);
	KUNIT_EXPECT_LE(test, sk_rmem_alloc_get(b->sk), 8192);
	sock_release(a);
	sock_release(b);
}

/* A window full of messages of the worst size takes no more than the ledger has. */
static void window_truesize(struct kunit *test)
{
	struct socket *a, *b;
	struct sovia_sock *ss;
	int n = 0;

	test_connected(test, &a, &b);
	ss = sovia_sk(b->sk);
	while (test_conn(b)->rcv_wnd_end - ss->rx.nxt >= SOVIA_COPYBREAK) {
		window_inject(test, b, SOVIA_COPYBREAK);
		n++;
	}
	KUNIT_EXPECT_GT(test, n, 10);
	KUNIT_EXPECT_LE(test, sk_rmem_alloc_get(b->sk), b->sk->sk_rcvbuf * 3 / 2);
	KUNIT_EXPECT_LE(test, (s64)sk_rmem_alloc_get(b->sk),
			sovia_mem_cost(b->sk, ss->rx.promised));
	sock_release(a);
	sock_release(b);
}

static void window_data_after_fin(struct kunit *test)
{
	struct socket *a, *b;

	test_connected(test, &a, &b);
	sovia_sk(b->sk)->rx.fin = true;
	KUNIT_EXPECT_FALSE(test, window_inject(test, b, 10));
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_CLOSE);
	sock_release(a);
	sock_release(b);
}

static struct kunit_case window_test_cases[] = {
	KUNIT_CASE(window_advertised),
	KUNIT_CASE(window_never_shrinks),
	KUNIT_CASE(window_more_until_arrival),
	KUNIT_CASE(window_overrun),
	KUNIT_CASE(window_gathers),
	KUNIT_CASE(window_truesize),
	KUNIT_CASE(window_data_after_fin),
	{}
};

struct kunit_suite sovia_window_suite = {
	.name = "sovia-rx",
	.test_cases = window_test_cases,
};

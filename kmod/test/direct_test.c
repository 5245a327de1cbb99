// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of direct.c; included by it. */
#include <linux/delay.h>
#include <net/ip.h>
#include "lane/lane_tx.h"
#include "sock/mem.h"
#include "sock/recv.h"
#include "sock/send.h"
#include "sock_helper.h"
#include "suites.h"

/* Class of a listener's lock while others are used (lockdep). */
#define DIRECT_TEST_LOCK	2

static int direct_begin(struct kunit *test)
{
	*test_loop_lane() = false;
	return 0;
}

static void direct_end(struct kunit *test)
{
	*test_loop_lane() = true;
}

static int direct_move(struct socket *from, struct socket *to, int len, int flags)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	struct kvec vec = { .iov_len = len };
	int ret;

	vec.iov_base = kzalloc(len, GFP_KERNEL);
	ret = kernel_sendmsg(from, &msg, &vec, 1, len);
	memset(&msg, 0, sizeof(msg));
	if (ret == len)
		ret = kernel_recvmsg(to, &msg, &vec, 1, len, flags);
	kfree(vec.iov_base);
	return ret;
}

/* Both ends know each other, and no message goes by the lane. */
static void direct_pairs(struct kunit *test)
{
	struct socket *a, *b;
	u32 sent;

	test_connected(test, &a, &b);
	KUNIT_EXPECT_TRUE(test, test_conn(a)->direct && test_conn(b)->direct);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(test_conn(a)->mate), test_conn(b));
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(test_conn(b)->mate), test_conn(a));
	sent = test_conn(a)->lane->credit.tx_next;
	KUNIT_EXPECT_EQ(test, direct_move(a, b, 4, MSG_DONTWAIT), 4);
	KUNIT_EXPECT_EQ(test, direct_move(b, a, 4, MSG_DONTWAIT), 4);
	KUNIT_EXPECT_EQ(test, direct_move(a, b, 30000, MSG_DONTWAIT), 30000);
	KUNIT_EXPECT_EQ(test, test_conn(a)->lane->credit.tx_next, sent);
	sock_release(a);
	sock_release(b);
}

/* What has left is not kept by who has not. */
static void direct_parts(struct kunit *test)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = "x", .iov_len = 1 };
	struct socket *a, *b;
	struct sovia_conn *left;
	int tries, ret = 1;

	test_connected(test, &a, &b);
	left = test_conn(b);
	sovia_conn_get(left);
	sock_release(b);
	/* FIN comes first, and then the answer to data without a reader. */
	for (tries = 0; tries < 100 && ret == 1; tries++) {
		ret = kernel_sendmsg(a, &msg, &vec, 1, 1);
		msleep(20);
	}
	KUNIT_EXPECT_TRUE(test, ret == -EPIPE || ret == -ECONNRESET);
	sock_release(a);
	rcu_barrier();
	/* Only the test has it now. */
	KUNIT_EXPECT_EQ(test, refcount_read(&left->refs), 1);
	KUNIT_EXPECT_NULL(test, rcu_access_pointer(left->mate));
	sovia_conn_put(left);
}

/* A connection that was refused once is paired with the child that takes it. */
static void direct_again(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 0);
	struct socket *first = test_socket(test), *second = test_socket(test), *b, *c;

	KUNIT_ASSERT_EQ(test, test_connect(first, listener, 0), 0);
	KUNIT_ASSERT_EQ(test, test_connect(second, listener, O_NONBLOCK), -EINPROGRESS);
	msleep(50);
	KUNIT_EXPECT_EQ(test, second->sk->sk_state, TCP_SYN_SENT);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &b, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &c, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, rcu_access_pointer(test_conn(second)->mate), test_conn(c));
	KUNIT_EXPECT_EQ(test, direct_move(c, second, 100, MSG_DONTWAIT), 100);
	sock_release(first);
	sock_release(second);
	sock_release(b);
	sock_release(c);
	sock_release(listener);
}

/* The child that refuses a client is paired with it, the one that takes it is not. */
static void direct_no_more(struct kunit *test)
{
	struct socket *listener = test_listener(test, htonl(INADDR_LOOPBACK), 0);
	struct socket *first = test_socket(test), *second = test_socket(test), *b, *c;
	struct sovia_sock *ls = sovia_sk(listener->sk);
	int tries;

	/* Children wait for its owner, who has room for one. */
	lock_sock_nested(listener->sk, DIRECT_TEST_LOCK);
	KUNIT_EXPECT_EQ(test, test_connect(first, listener, O_NONBLOCK), -EINPROGRESS);
	KUNIT_EXPECT_EQ(test, test_connect(second, listener, O_NONBLOCK), -EINPROGRESS);
	for (tries = 0; tries < 500 && READ_ONCE(ls->accept.pending_count) < 2; tries++)
		msleep(20);
	KUNIT_EXPECT_EQ(test, ls->accept.pending_count, 2U);
	KUNIT_EXPECT_TRUE(test, test_conn(first)->direct && test_conn(second)->direct);
	*test_loop_lane() = true;
	release_sock(listener->sk);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &b, 0), 0);
	KUNIT_ASSERT_EQ(test, kernel_accept(listener, &c, 0), 0);
	/* Whichever was refused. */
	if (inet_sk(c->sk)->inet_dport == inet_sk(first->sk)->inet_sport)
		swap(first, second);
	KUNIT_EXPECT_FALSE(test, test_conn(c)->direct);
	for (tries = 0; tries < 500 && second->sk->sk_state == TCP_SYN_SENT; tries++)
		msleep(20);
	KUNIT_EXPECT_FALSE(test, test_conn(second)->direct);
	second->sk->sk_rcvtimeo = 10 * HZ;
	c->sk->sk_rcvtimeo = 10 * HZ;
	KUNIT_EXPECT_EQ(test, direct_move(second, c, 100, 0), 100);
	KUNIT_EXPECT_EQ(test, direct_move(c, second, 100, 0), 100);
	*test_loop_lane() = false;
	sock_release(first);
	sock_release(second);
	sock_release(b);
	sock_release(c);
	sock_release(listener);
}

static int direct_put(struct socket *sock, char *data, int len)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL | MSG_DONTWAIT };
	struct kvec vec = { .iov_base = data, .iov_len = len };

	return kernel_sendmsg(sock, &msg, &vec, 1, len);
}

static int direct_get(struct socket *sock, char *data, int len)
{
	struct msghdr msg = {};
	struct kvec vec = { .iov_base = data, .iov_len = len };

	return kernel_recvmsg(sock, &msg, &vec, 1, len, MSG_DONTWAIT);
}

/* Small writes share a buffer, which is used again, and leaves when a message comes. */
static void direct_small(struct kunit *test)
{
	char *data = kunit_kzalloc(test, 30000, GFP_KERNEL);
	struct sk_buff_head *queue;
	struct sk_buff *first;
	struct socket *a, *b;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, data);
	test_connected(test, &a, &b);
	queue = &b->sk->sk_receive_queue;
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, direct_put(a, "0123456789" + i, 1), 1);
	KUNIT_EXPECT_EQ(test, skb_queue_len(queue), 1);
	first = skb_peek(queue);
	KUNIT_EXPECT_EQ(test, direct_get(b, data, 4), 4);
	KUNIT_EXPECT_EQ(test, direct_put(a, "a", 1), 1);
	KUNIT_EXPECT_EQ(test, direct_get(b, data + 4, 100), 7);
	KUNIT_EXPECT_EQ(test, memcmp(data, "0123456789a", 11), 0);
	KUNIT_EXPECT_EQ(test, sovia_inq(b->sk), 0);
	KUNIT_EXPECT_EQ(test, direct_put(a, "bc", 2), 2);
	KUNIT_EXPECT_PTR_EQ(test, skb_peek(queue), first);
	KUNIT_EXPECT_EQ(test, direct_get(b, data, 2), 2);
	KUNIT_EXPECT_EQ(test, direct_put(a, data, 30000), 30000);
	KUNIT_EXPECT_PTR_NE(test, skb_peek(queue), first);
	KUNIT_EXPECT_EQ(test, direct_put(a, "d", 1), 1);
	KUNIT_EXPECT_EQ(test, direct_get(b, data, 30000), 30000);
	KUNIT_EXPECT_EQ(test, memcmp(data, "bc", 2), 0);
	KUNIT_EXPECT_EQ(test, direct_get(b, data, 100), 1);
	KUNIT_EXPECT_EQ(test, data[0], 'd');
	sock_release(a);
	sock_release(b);
}

/* Nothing beyond the window, or the end of the stream, is copied. */
static void direct_small_limits(struct kunit *test)
{
	char *data = kunit_kzalloc(test, SOVIA_COPYBREAK, GFP_KERNEL);
	struct socket *a, *b;
	struct sovia_rx *rx;
	int ret, sent = 0;

	KUNIT_ASSERT_NOT_NULL(test, data);
	test_connected(test, &a, &b);
	rx = &sovia_sk(b->sk)->rx;
	while ((ret = direct_put(a, data, SOVIA_COPYBREAK)) > 0)
		sent += ret;
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	KUNIT_EXPECT_EQ(test, rx->nxt, rx->most);
	KUNIT_EXPECT_LE(test, (s64)sk_rmem_alloc_get(b->sk), sovia_mem_cost(b->sk, rx->promised));
	while ((ret = direct_get(b, data, SOVIA_COPYBREAK)) > 0 || sovia_outq(a->sk)) {
		sent -= max(ret, 0);
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, sent, 0);
	KUNIT_EXPECT_EQ(test, kernel_sock_shutdown(b, SHUT_RDWR), 0);
	while ((ret = direct_put(a, data, 1)) == 1)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, ret == -EPIPE || ret == -ECONNRESET);
	sock_release(a);
	sock_release(b);
}

#define ECHOES	1000

/**
 * struct direct_echo - two ends that answer each other
 * @left: how many answers are left
 * @depth: callbacks that run
 * @nested: one has been called from inside another
 * @done: no answers are left
 */
struct direct_echo {
	atomic_t		left;
	atomic_t		depth;
	bool			nested;
	struct completion	done;
};

/* Under the socket's lock: what sendmsg() does once it has copied the data. */
static void direct_push(struct sock *sk)
{
	struct sk_buff *skb = sovia_msg_alloc(1, GFP_ATOMIC);

	skb_put_zero(skb, 1);
	SOVIA_TX_CB(skb)->type = SOVIA_DATA;
	SOVIA_TX_CB(skb)->len = 1;
	sovia_own_tx(skb, sk);
	__skb_queue_tail(&sk->sk_write_queue, skb);
	atomic_inc(&sovia_conn_of(sk)->outq);
	sovia_sk(sk)->tx.queued++;
	sovia_push(sk);
}

/* A kernel user's sk_data_ready that sends at once. */
static void direct_answer(struct sock *sk)
{
	struct direct_echo *echo = sk->sk_user_data;

	if (atomic_inc_return(&echo->depth) > 1)
		echo->nested = true;
	else if (atomic_dec_return(&echo->left) >= 0)
		direct_push(sk);
	else
		complete(&echo->done);
	atomic_dec(&echo->depth);
}

static void direct_own(struct socket *sock, void *user, void (*ready)(struct sock *sk))
{
	write_lock_bh(&sock->sk->sk_callback_lock);
	sock->sk->sk_user_data = user;
	sock->sk->sk_data_ready = ready;
	write_unlock_bh(&sock->sk->sk_callback_lock);
}

/* What a kernel user does when data comes is not done inside the call that sent it. */
static void direct_kernel_users(struct kunit *test)
{
	struct direct_echo echo = { .left = ATOMIC_INIT(ECHOES) };
	void (*plain)(struct sock *sk);
	struct socket *a, *b;
	int left;

	init_completion(&echo.done);
	test_connected(test, &a, &b);
	plain = a->sk->sk_data_ready;
	direct_own(a, &echo, direct_answer);
	direct_own(b, &echo, direct_answer);
	lock_sock(a->sk);
	local_bh_disable();
	direct_push(a->sk);
	left = atomic_read(&echo.left);
	local_bh_enable();
	release_sock(a->sk);
	KUNIT_EXPECT_EQ(test, left, ECHOES);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&echo.done, 60 * HZ), 0);
	KUNIT_EXPECT_FALSE(test, echo.nested);
	direct_own(a, NULL, plain);
	direct_own(b, NULL, plain);
	KUNIT_EXPECT_EQ(test, sovia_inq(a->sk) + sovia_inq(b->sk), ECHOES + 1);
	sock_release(a);
	sock_release(b);
}

static struct kunit_case direct_cases[] = {
	KUNIT_CASE(direct_pairs),
	KUNIT_CASE(direct_parts),
	KUNIT_CASE(direct_again),
	KUNIT_CASE(direct_no_more),
	KUNIT_CASE(direct_small),
	KUNIT_CASE(direct_small_limits),
	KUNIT_CASE(direct_kernel_users),
	{}
};

struct kunit_suite sovia_direct_suite = {
	.name = "sovia-direct",
	.init = direct_begin,
	.exit = direct_end,
	.test_cases = direct_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of sovia_lane_rewind(): to the peer's rx_next; included by lane_rx.c. */
#include "lane/lane.h"
#include "lane/lane_tx.h"
#include "sock/sock.h"
#include "sock_helper.h"
#include "suites.h"

/* Numbers of a lane, the peer's rx_next, and whether it is valid. */
static const struct rewind_case {
	const char	*name;
	u32		una;
	u32		next;
	u32		rx_next;
	int		err;
} rewind_cases[] = {
	{ "nothing was under way", 7, 7, 7, 0 },
	{ "nothing has arrived", 7, 12, 7, 0 },
	{ "some has arrived", 7, 12, 9, 0 },
	{ "all has arrived", 7, 12, 12, 0 },
	{ "what was never sent", 7, 12, 13, -EPROTO },
	{ "what was acknowledged", 7, 12, 6, -EPROTO },
	{ "half the world away", 7, 12, 0x80000009, -EPROTO },
	{ "beyond the last number", 0xfffffffe, 3, 1, 0 },
	{ "all of it, beyond the last number", 0xfffffffe, 3, 3, 0 },
	{ "never sent, beyond the last number", 0xfffffffe, 3, 4, -EPROTO },
	{ "acknowledged, before the last number", 0xfffffffe, 3, 0xfffffffd, -EPROTO },
};

static void rewind_case_name(const struct rewind_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rewind, rewind_cases, rewind_case_name);

/* A message in unacked, whose payload is its sequence number. */
static struct sk_buff *rewind_message(struct kunit *test, struct sovia_conn *conn, u32 seq,
				      bool header)
{
	struct sk_buff *skb = sovia_msg_alloc(sizeof(seq), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	/* Without a destructor that puts a reference. */
	SOVIA_TX_CB(skb)->conn = conn;
	SOVIA_TX_CB(skb)->seq = seq;
	SOVIA_TX_CB(skb)->len = sizeof(seq);
	SOVIA_TX_CB(skb)->type = SOVIA_DATA;
	atomic_add(sizeof(seq), &conn->outq);
	skb_put_data(skb, &seq, sizeof(seq));
	if (header)
		skb_push(skb, sizeof(struct sovia_hdr));
	return skb;
}

/* Expect in rtx_queue: messages from @seq to before @end, in order and without headers. */
static void rewind_expect_again(struct kunit *test, struct sovia_lane *lane, u32 seq, u32 end)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&lane->rtx_queue))) {
		KUNIT_EXPECT_EQ(test, skb->len, sizeof(seq));
		KUNIT_EXPECT_EQ(test, *(u32 *)skb->data, seq);
		seq++;
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, seq, end);
}

/* The lane is the test's, without a link. */
static void rewind_put(struct sovia_lane *lane)
{
}

static const struct sovia_lane_ops rewind_ops = { .put = rewind_put };

static void rewind_lane(struct kunit *test)
{
	const struct rewind_case *c = test->param_value;
	struct sovia_lane *lane = kunit_kzalloc(test, sizeof(*lane), GFP_KERNEL);
	const struct sovia_pair pair = {};
	struct socket *sock = test_socket(test);
	u32 sent = c->next - c->una, seq;
	struct sovia_conn *conn;
	struct sk_buff_head arrived;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, lane);
	KUNIT_ASSERT_EQ(test, sovia_lane_init(lane, &rewind_ops, sovia_net(&init_net), &pair,
					      &sovia_verbs_provider, GFP_KERNEL), 0);
	conn = sovia_conn_create(lane, sock->sk, 1, 2, 0, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	lane->credit.tx_una = c->una;
	lane->credit.tx_next = c->next;
	for (seq = c->una; seq != c->next; seq++)
		__skb_queue_tail(&lane->unacked, rewind_message(test, conn, seq, seq & 1));
	/* It has a number, but the provider had no room for it. */
	__skb_queue_tail(&lane->rtx_queue, rewind_message(test, conn, c->next, false));
	conn->inflight = 1;
	conn->fin = skb_peek(&lane->unacked);

	__skb_queue_head_init(&arrived);
	spin_lock_bh(&lane->lock);
	err = sovia_lane_rewind(lane, c->rx_next, &arrived);
	spin_unlock_bh(&lane->lock);
	KUNIT_EXPECT_EQ(test, err, c->err);
	if (err) {
		KUNIT_EXPECT_EQ(test, lane->credit.tx_una, c->una);
		KUNIT_EXPECT_EQ(test, lane->credit.tx_next, c->next);
		KUNIT_EXPECT_EQ(test, skb_queue_len(&lane->unacked), sent);
		__skb_queue_purge(&lane->unacked);
		__skb_queue_purge(&lane->rtx_queue);
	} else {
		KUNIT_EXPECT_EQ(test, lane->credit.tx_una, c->rx_next);
		KUNIT_EXPECT_EQ(test, lane->credit.tx_next, c->rx_next);
		KUNIT_EXPECT_TRUE(test, skb_queue_empty(&lane->unacked));
		KUNIT_EXPECT_EQ(test, skb_queue_len(&arrived), c->rx_next - c->una);
		sovia_lane_arrived(lane, &arrived);
		/* The first was a FIN, and has been delivered if it has arrived. */
		KUNIT_EXPECT_EQ(test, !conn->fin, c->rx_next != c->una || !sent);
		KUNIT_EXPECT_EQ(test, atomic64_read(&conn->acked), 4 * (c->rx_next - c->una));
		KUNIT_EXPECT_EQ(test, conn->inflight, 1 + c->next - c->rx_next);
		rewind_expect_again(test, lane, c->rx_next, c->next + 1);
	}
	timer_delete_sync(&lane->ack_timer);
	sovia_lane_free(lane);
	sovia_conn_put(conn);
	rcu_barrier();
	sock_release(sock);
}

/* The other direction: the hello acknowledges all received messages, and all is posted. */
static void restart_credit(struct kunit *test)
{
	struct sovia_credit c;

	sovia_credit_init(&c, 8, 4);
	c.rx_next = 20;
	c.rx_acked = 13;
	c.rx_unposted = 3;
	c.asked = true;
	sovia_credit_restart(&c);
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_pending(&c));
	KUNIT_EXPECT_EQ(test, sovia_credit_ack(&c), 20);
	/* The whole window is free, and the expected number is unchanged. */
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&c, 19), -EPROTO);
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&c, 20), 0);
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&c));
}

static struct kunit_case recover_test_cases[] = {
	KUNIT_CASE_PARAM(rewind_lane, rewind_gen_params),
	KUNIT_CASE(restart_credit),
	{}
};

struct kunit_suite sovia_recover_suite = {
	.name = "sovia-link-recover",
	.test_cases = recover_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of the life of a VI on verbs, without a device; included by verbs.c. */
#include <net/ipv6.h>
#include "suites.h"
#include "verbs_helper.h"

/* The client is notified of the first cause, once. */
static void vi_dies_once(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	KUNIT_EXPECT_TRUE(test, verbs_vi_usable(v));
	verbs_vi_die(v, -ENODEV);
	told_expect(test, &told, -ENODEV);
	verbs_vi_die(v, -EPROTO);
	told_expect(test, &told, -ENODEV);
	KUNIT_EXPECT_FALSE(test, verbs_vi_usable(v));
	/* established is not called after that. */
	verbs_vi_opened(v);
	KUNIT_EXPECT_EQ(test, told.opened, 0);
	verbs_vi_free(v);
}

/* A VI that dies while it is being opened is closed afterwards, with the first cause. */
static void vi_dies_opening(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	told.die = -EPROTO;
	verbs_vi_opened(v);
	KUNIT_EXPECT_EQ(test, told.opened, 1);
	told_expect(test, &told, -EPROTO);
	KUNIT_EXPECT_EQ(test, v->state, VERBS_DEAD);
	verbs_vi_free(v);
}

static void vi_opens_once(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	verbs_vi_opened(v);
	verbs_vi_opened(v);
	KUNIT_EXPECT_EQ(test, told.opened, 1);
	KUNIT_EXPECT_EQ(test, v->state, VERBS_OPEN);
	told_expect(test, &told, 0);
	verbs_vi_free(v);
}

/* Only the set-up has deadlines. */
static void vi_deadline(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	verbs_vi_step(v);
	mod_delayed_work(sovia_end_wq, &v->deadline, 0);
	flush_delayed_work(&v->deadline);
	told_expect(test, &told, -ETIMEDOUT);
	verbs_vi_free(v);

	v = told_vi(test, &told);
	verbs_vi_opened(v);
	verbs_vi_step(v);
	mod_delayed_work(sovia_end_wq, &v->deadline, 0);
	flush_delayed_work(&v->deadline);
	told_expect(test, &told, 0);
	verbs_vi_free(v);
}

/* The errno of a failed completion in each state. */
static void vi_failed_completions(struct kunit *test)
{
	static const struct {
		enum ib_wc_status	status;
		enum verbs_state	state;
		int			err;
	} rows[] = {
		{ IB_WC_RETRY_EXC_ERR,		VERBS_OPEN,		-ETIMEDOUT },
		{ IB_WC_RNR_RETRY_EXC_ERR,	VERBS_OPEN,		-ETIMEDOUT },
		{ IB_WC_REM_ACCESS_ERR,		VERBS_OPEN,		-ECONNRESET },
		{ IB_WC_LOC_LEN_ERR,		VERBS_CONNECTING,	-ECONNRESET },
		{ IB_WC_REM_INV_REQ_ERR,	VERBS_DEAD,		0 },
		/* Closed after a delay, so that the cause is reported first. */
		{ IB_WC_WR_FLUSH_ERR,		VERBS_OPEN,		-ECONNRESET },
		{ IB_WC_WR_FLUSH_ERR,		VERBS_CONNECTING,	0 },
		{ IB_WC_WR_FLUSH_ERR,		VERBS_DEAD,		0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct ib_wc wc = { .status = rows[i].status };
		struct told told;
		struct verbs_vi *v = told_vi(test, &told);

		v->state = rows[i].state;
		verbs_vi_failed_wc(v, &wc);
		if (wc.status == IB_WC_WR_FLUSH_ERR) {
			told_expect(test, &told, 0);
			flush_delayed_work(&v->fail_work);
		}
		told_expect(test, &told, rows[i].err);
		verbs_vi_free(v);
	}
}

/* Asynchronous events of a queue pair. */
static void vi_device_events(struct kunit *test)
{
	static const struct {
		enum ib_event_type	type;
		int			err;
	} rows[] = {
		{ IB_EVENT_QP_FATAL,		-ECONNRESET },
		{ IB_EVENT_QP_REQ_ERR,		-ECONNRESET },
		{ IB_EVENT_QP_ACCESS_ERR,	-ECONNRESET },
		{ IB_EVENT_SQ_DRAINED,		0 },
		{ IB_EVENT_QP_LAST_WQE_REACHED,	0 },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ib_event event = { .event = rows[i].type };
		struct told told;
		struct verbs_vi *v = told_vi(test, &told);

		v->state = VERBS_OPEN;
		verbs_qp_event(&event, v);
		flush_delayed_work(&v->fail_work);
		told_expect(test, &told, rows[i].err);
		verbs_vi_free(v);
	}
}

/* The largest message fits into the device's max_sge, or the device is unusable. */
static void vi_receive_pieces(struct kunit *test)
{
	static const struct {
		int	sge;
		int	err;
	} rows[] = {
		{ 32, 0 }, { 5, 0 }, { 4, 0 }, { 3, 0 }, { 2, 0 }, { 1, -EOPNOTSUPP },
	};
	struct ib_device *ibdev = kzalloc(sizeof(*ibdev), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ibdev);
	ibdev->dev.init_name = "test";
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct told told;
		struct verbs_vi *v = told_vi(test, &told);

		ibdev->attrs.max_recv_sge = rows[i].sge;
		v->vi.attr.msg_size = 16384;
		KUNIT_EXPECT_EQ(test, verbs_size_rx(v, ibdev), rows[i].err);
		if (!rows[i].err) {
			KUNIT_EXPECT_LT(test, v->rx_num_pages, rows[i].sge);
			KUNIT_EXPECT_GE(test, VERBS_HEAD +
					v->rx_num_pages * (PAGE_SIZE << v->rx_order), 16384);
		}
		/* Messages that fit into the head need no pages. */
		v->vi.attr.msg_size = VERBS_HEAD;
		KUNIT_EXPECT_EQ(test, verbs_size_rx(v, ibdev), 0);
		KUNIT_EXPECT_EQ(test, v->rx_num_pages, 0);
		verbs_vi_free(v);
	}
	kfree(ibdev);
}

/* Queues of a device that are too short are found before it is asked for them. */
static void vi_depths(struct kunit *test)
{
	struct ib_device *ibdev = kzalloc(sizeof(*ibdev), GFP_KERNEL);
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);
	int need = max(v->vi.attr.send_depth, verbs_rx_depth(v)) + 1;

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, ibdev);
	ibdev->dev.init_name = "test";
	ibdev->attrs.max_qp_wr = need;
	KUNIT_EXPECT_EQ(test, verbs_check_depth(v, ibdev), 0);
	ibdev->attrs.max_qp_wr = need - 1;
	KUNIT_EXPECT_EQ(test, verbs_check_depth(v, ibdev), -EOPNOTSUPP);
	v->vi.attr.send_depth = need;
	ibdev->attrs.max_qp_wr = need;
	KUNIT_EXPECT_EQ(test, verbs_check_depth(v, ibdev), -EOPNOTSUPP);
	verbs_vi_free(v);
	kfree(ibdev);
}

/* Only an open VI posts messages. */
static void vi_posts_when_open(struct kunit *test)
{
	const struct sovia_post how = {};
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);
	struct sk_buff *skb = alloc_skb(100, GFP_KERNEL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, verbs_post_send(&v->vi, skb, &how), -ENOTCONN);
	verbs_vi_opened(v);
	/* More than the VI takes. */
	skb->len = v->vi.attr.msg_size + 1;
	KUNIT_EXPECT_EQ(test, verbs_post_send(&v->vi, skb, &how), -EMSGSIZE);
	skb->len = 0;
	v->tx_head = v->vi.attr.send_depth;
	KUNIT_EXPECT_EQ(test, verbs_post_send(&v->vi, skb, &how), -EAGAIN);
	verbs_vi_die(v, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, verbs_post_send(&v->vi, skb, &how), -ENOTCONN);
	KUNIT_EXPECT_FALSE(test, skb_shared(skb));
	kfree_skb(skb);
	verbs_vi_free(v);
}

static struct kunit_case verbs_test_cases[] = {
	KUNIT_CASE(vi_dies_once),
	KUNIT_CASE(vi_dies_opening),
	KUNIT_CASE(vi_opens_once),
	KUNIT_CASE(vi_deadline),
	KUNIT_CASE(vi_failed_completions),
	KUNIT_CASE(vi_device_events),
	KUNIT_CASE(vi_receive_pieces),
	KUNIT_CASE(vi_depths),
	KUNIT_CASE(vi_posts_when_open),
	{}
};

struct kunit_suite sovia_verbs_suite = {
	.name = "sovia-verbs",
	.test_cases = verbs_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of loop.c; included by it. */
#include <linux/completion.h>
#include "suites.h"

/**
 * struct loop_test_end - the client of one end
 * @established: its upcall has returned, or is about to
 * @early: a message was received before that
 * @received: completed by a message
 * @ended: completed by that upcall
 */
struct loop_test_end {
	bool			established;
	bool			early;
	struct completion	received;
	struct completion	ended;
};

static int loop_test_seal(struct sovia_vi *vi, const struct sovia_path *path,
			  struct sovia_hello *hello)
{
	return 0;
}

/* As a link that recovers: it has something to send.  Softirqs run when that is done. */
static void loop_test_established(struct sovia_vi *vi, const struct sovia_hello *hello,
				  unsigned int hello_len)
{
	static const struct sovia_post how;
	struct loop_test_end *end = vi->context;
	struct sk_buff *skb = alloc_skb(1, GFP_KERNEL);

	if (skb) {
		local_bh_disable();
		vi->prov->post_send(vi, skb, &how);
		local_bh_enable();
		kfree_skb(skb);
	}
	WRITE_ONCE(end->established, true);
}

static void loop_test_closed(struct sovia_vi *vi, int err)
{
}

static bool loop_test_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm)
{
	struct loop_test_end *end = vi->context;

	end->early |= !READ_ONCE(end->established);
	complete(&end->received);
	return false;
}

static void loop_test_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool done)
{
}

static void loop_test_ended(struct sovia_vi *vi)
{
	struct loop_test_end *end = vi->context;

	complete(&end->ended);
}

static const struct sovia_vi_client loop_test_client = {
	.seal		= loop_test_seal,
	.established	= loop_test_established,
	.closed		= loop_test_closed,
	.receive	= loop_test_receive,
	.send_done	= loop_test_send_done,
	.ended		= loop_test_ended,
};

static struct sovia_vi_request *loop_test_request(struct loop_vi *lv)
{
	struct loop_request *lr = kzalloc(sizeof(*lr), GFP_KERNEL);

	if (!lr)
		return NULL;
	sovia_object_inc(requests);
	kref_get(&lv->wire->kref);
	lr->wire = lv->wire;
	lr->req.prov = lv->vi.prov;
	return &lr->req;
}

/* What either end sends as soon as it may is received when the other one is established. */
static void loop_send_when_established(struct kunit *test)
{
	static const struct sovia_vi_attr attr = { .send_depth = 4 };
	static const struct sovia_hello hello;
	static const struct sovia_pair pair;
	struct sovia_vi_request *req;
	struct loop_test_end ends[2];
	struct sovia_vi *passive;
	struct loop_vi *active;
	int i;

	memset(ends, 0, sizeof(ends));
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		init_completion(&ends[i].received);
		init_completion(&ends[i].ended);
	}
	active = loop_begin(&sovia_near_provider, &pair, &attr, &loop_test_client, &ends[0]);
	KUNIT_ASSERT_NOT_NULL(test, active);
	req = loop_test_request(active);
	KUNIT_ASSERT_NOT_NULL(test, req);
	passive = loop_accept(req, &attr, &hello, &loop_test_client, &ends[1]);
	KUNIT_ASSERT_FALSE(test, IS_ERR(passive));
	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&ends[i].received, 30 * HZ), 0UL);
		KUNIT_EXPECT_FALSE(test, ends[i].early);
	}
	loop_end(&active->vi);
	loop_end(passive);
	for (i = 0; i < ARRAY_SIZE(ends); i++)
		wait_for_completion(&ends[i].ended);
}

static struct kunit_case loop_test_cases[] = {
	KUNIT_CASE(loop_send_when_established),
	{}
};

struct kunit_suite sovia_loop_suite = {
	.name = "sovia-loop",
	.test_cases = loop_test_cases,
};

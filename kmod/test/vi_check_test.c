// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of the checks of VIs: each violation of the contract is noticed, and none
 * where there is none.  Included by vi_check.c.
 */
#include "suites.h"

#define CHECK_TEST_DEPTH	2
#define CHECK_TEST_SIZE		1000

#define EXPECT_FINE(test, violation)		KUNIT_EXPECT_NULL(test, violation)
#define EXPECT_VIOLATION(test, violation, what)	KUNIT_EXPECT_STREQ(test, (violation) ?: "", what)

static const struct sovia_post signaled, unsignaled = { .unsignaled = true };

/* Established, unless it is to be @fresh. */
static struct vi_check *check_test_vi(struct kunit *test, bool fresh)
{
	const struct sovia_vi_attr attr = {
		.send_depth = CHECK_TEST_DEPTH, .msg_size = CHECK_TEST_SIZE,
	};
	const struct sovia_pair pair = {};
	struct vi_check *vc = check_alloc(&sovia_loop_provider, &pair, &attr, NULL, NULL);

	KUNIT_ASSERT_NOT_NULL(test, vc);
	if (!fresh) {
		EXPECT_FINE(test, check_established(vc, sizeof(struct sovia_hello)));
		set_bit(SEEN_OPEN, &vc->seen);
	}
	return vc;
}

/* The tests have looked at what remains. */
static void check_test_free(struct vi_check *vc)
{
	kvfree(vc);
}

static struct sk_buff *check_test_skb(struct kunit *test, unsigned int len)
{
	struct sk_buff *skb = alloc_skb(len, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb_put(skb, len);
	return skb;
}

static const char *check_test_post(struct vi_check *vc, struct sk_buff *skb,
				   const struct sovia_post *how, int ret)
{
	const char *violation = check_post(vc, skb, how);
	const char *after = check_posted(vc, skb, how, ret);

	return violation ?: after;
}

static const char *check_test_done(struct vi_check *vc, const struct sk_buff *skb, bool ok)
{
	const char *violation;

	local_bh_disable();
	violation = check_send_done(vc, skb, ok);
	local_bh_enable();
	return violation;
}

/* A whole upcall. */
static const char *check_test_receive(struct vi_check *vc, const struct sk_buff *skb,
				      const u32 *imm)
{
	const char *violation;

	local_bh_disable();
	violation = check_receive(vc, skb, imm);
	local_bh_enable();
	clear_bit(SEEN_RECEIVING, &vc->seen);
	return violation;
}

static void check_life(struct kunit *test)
{
	struct vi_check *vc = check_test_vi(test, false);

	EXPECT_VIOLATION(test, check_established(vc, 0), "established twice");
	EXPECT_FINE(test, check_closed(vc, -ECONNRESET));
	EXPECT_VIOLATION(test, check_closed(vc, -ECONNRESET), "closed twice");
	EXPECT_FINE(test, check_end(vc));
	EXPECT_VIOLATION(test, check_end(vc), "end twice");
	EXPECT_FINE(test, check_ended(vc));
	EXPECT_VIOLATION(test, check_rx_unposted(vc, 1), "an upcall after ended");
	EXPECT_VIOLATION(test, check_ended(vc), "an upcall after ended");
	check_test_free(vc);

	vc = check_test_vi(test, true);
	EXPECT_VIOLATION(test, check_established(vc, sizeof(struct sovia_hello) + 1),
			 "established with a hello that is too long");
	EXPECT_VIOLATION(test, check_closed(vc, 0), "closed without an error");
	EXPECT_VIOLATION(test, check_ended(vc), "ended without end");
	check_test_free(vc);

	vc = check_test_vi(test, true);
	EXPECT_FINE(test, check_closed(vc, -ECONNREFUSED));
	EXPECT_VIOLATION(test, check_established(vc, 0), "established after closed");
	check_test_free(vc);
}

static void check_messages_in(struct kunit *test)
{
	struct vi_check *vc = check_test_vi(test, true);
	struct sk_buff *skb = check_test_skb(test, CHECK_TEST_SIZE);
	u32 imm = 0;

	EXPECT_FINE(test, check_established(vc, 0));
	EXPECT_VIOLATION(test, check_test_receive(vc, skb, NULL),
			 "a message received before established has returned");
	set_bit(SEEN_OPEN, &vc->seen);
	EXPECT_FINE(test, check_test_receive(vc, skb, NULL));
	EXPECT_VIOLATION(test, check_test_receive(vc, skb, &imm),
			 "a message received with immediate data");
	vc->vi.imm = true;
	EXPECT_FINE(test, check_test_receive(vc, skb, &imm));
	vc->vi.attr.msg_size--;
	EXPECT_VIOLATION(test, check_test_receive(vc, skb, NULL),
			 "a message received that is too large");
	vc->vi.attr.msg_size++;
	EXPECT_VIOLATION(test, check_receive(vc, skb, NULL),
			 "a message received with bottom halves on");
	/* That one has not returned. */
	EXPECT_VIOLATION(test, check_receive(vc, skb, NULL), "two messages received at a time");
	EXPECT_FINE(test, check_end(vc));
	EXPECT_VIOLATION(test, check_ended(vc), "ended during an upcall");
	kfree_skb(skb);
	check_test_free(vc);
}

static void check_messages_out(struct kunit *test)
{
	struct vi_check *vc = check_test_vi(test, true);
	struct sk_buff *skb = check_test_skb(test, CHECK_TEST_SIZE);
	const struct sovia_post with_imm = { .has_imm = true };

	EXPECT_VIOLATION(test, check_test_post(vc, skb, &signaled, -ENOTCONN),
			 "a post before established");
	EXPECT_FINE(test, check_established(vc, 0));
	EXPECT_FINE(test, check_test_post(vc, skb, &signaled, -EAGAIN));
	EXPECT_FINE(test, check_test_post(vc, skb, &unsignaled, SOVIA_POSTED_TAKEN));
	EXPECT_VIOLATION(test, check_test_post(vc, skb, &signaled, SOVIA_POSTED_UNSIGNALED),
			 "no send_done, though it was asked for");
	vc->count = 0;
	EXPECT_VIOLATION(test, check_test_post(vc, skb, &with_imm, -EINVAL),
			 "a post with immediate data");
	skb_get(skb);
	EXPECT_VIOLATION(test, check_test_post(vc, skb, &unsignaled, SOVIA_POSTED_UNSIGNALED),
			 "an unsignaled post with another reference");
	kfree_skb(skb);
	vc->vi.attr.msg_size--;
	EXPECT_VIOLATION(test, check_test_post(vc, skb, &signaled, -EMSGSIZE),
			 "a post of a message that is too large");
	vc->vi.attr.msg_size++;
	EXPECT_FINE(test, check_post(vc, skb, &signaled));
	EXPECT_VIOLATION(test, check_closed(vc, -EIO), "an upcall from inside post_send");
	EXPECT_VIOLATION(test, check_post(vc, skb, &signaled), "two posts at a time");
	EXPECT_FINE(test, check_posted(vc, skb, &signaled, SOVIA_POSTED));
	EXPECT_FINE(test, check_end(vc));
	EXPECT_VIOLATION(test, check_test_post(vc, skb, &signaled, -ENOTCONN),
			 "a post after end");
	kfree_skb(skb);
	check_test_free(vc);
}

static void check_completions(struct kunit *test)
{
	struct vi_check *vc = check_test_vi(test, false);
	struct sk_buff *skb[CHECK_TEST_DEPTH + CHECK_SPARE + 1];
	int i;

	for (i = 0; i < ARRAY_SIZE(skb); i++)
		skb[i] = check_test_skb(test, 1);
	for (i = 0; i < ARRAY_SIZE(skb) - 1; i++)
		EXPECT_FINE(test, check_test_post(vc, skb[i], &signaled, SOVIA_POSTED));
	EXPECT_VIOLATION(test, check_test_post(vc, skb[i], &signaled, SOVIA_POSTED),
			 "more messages under way than send_depth");
	EXPECT_FINE(test, check_test_done(vc, skb[0], true));
	EXPECT_VIOLATION(test, check_test_done(vc, skb[0], true),
			 "send_done without a message, or twice");
	EXPECT_VIOLATION(test, check_test_done(vc, skb[2], true), "send_done out of order");
	EXPECT_VIOLATION(test, check_send_done(vc, skb[1], true),
			 "send_done with bottom halves on");
	EXPECT_FINE(test, check_end(vc));
	EXPECT_VIOLATION(test, check_ended(vc), "ended without a send_done that was due");
	clear_bit(SEEN_END, &vc->seen);
	clear_bit(SEEN_ENDED, &vc->seen);
	/* In any order, when the VI has died. */
	EXPECT_FINE(test, check_test_post(vc, skb[0], &signaled, SOVIA_POSTED));
	EXPECT_FINE(test, check_test_done(vc, skb[0], false));
	EXPECT_FINE(test, check_test_done(vc, skb[3], false));
	EXPECT_FINE(test, check_end(vc));
	EXPECT_FINE(test, check_ended(vc));
	for (i = 0; i < ARRAY_SIZE(skb); i++)
		kfree_skb(skb[i]);
	check_test_free(vc);
}

static void check_descriptors(struct kunit *test)
{
	struct vi_check *vc = check_test_vi(test, false);

	EXPECT_FINE(test, check_rx_unposted(vc, 2));
	EXPECT_FINE(test, check_rx_unposted(vc, -2));
	EXPECT_VIOLATION(test, check_rx_unposted(vc, -1),
			 "more descriptors posted again than were missing");
	check_test_free(vc);
}

static struct kunit_case vi_check_cases[] = {
	KUNIT_CASE(check_life),
	KUNIT_CASE(check_messages_in),
	KUNIT_CASE(check_messages_out),
	KUNIT_CASE(check_completions),
	KUNIT_CASE(check_descriptors),
	{}
};

struct kunit_suite sovia_vi_check_suite = {
	.name = "sovia-vi-check",
	.test_cases = vi_check_cases,
};

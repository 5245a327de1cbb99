// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of credit.h; included by lane.c. */
#include "suites.h"
#include <linux/random.h>

static void credit_pair_init(struct sovia_credit *a, struct sovia_credit *b, u32 w, u32 t)
{
	sovia_credit_init(a, w, t);
	sovia_credit_init(b, w, t);
	a->window = w;
	b->window = w;
}

/* A message of @a to @b, with a piggybacked acknowledgment. */
static void credit_message(struct kunit *test, struct sovia_credit *a, struct sovia_credit *b)
{
	u32 ack = sovia_credit_ack(a);

	KUNIT_ASSERT_TRUE(test, sovia_credit_may_send(a));
	KUNIT_EXPECT_EQ(test, sovia_credit_acked(b, ack), 0);
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(b, a->tx_next), 0);
	sovia_credit_ack_sent(a);
	a->tx_next++;
}

static void credit_explicit_ack(struct kunit *test, struct sovia_credit *a,
				struct sovia_credit *b)
{
	KUNIT_EXPECT_EQ(test, sovia_credit_acked(b, sovia_credit_ack(a)), 0);
	sovia_credit_ack_sent(a);
}

static void credit_window(struct kunit *test)
{
	struct sovia_credit a, b;
	int i;

	credit_pair_init(&a, &b, 32, 16);
	for (i = 0; i < 32; i++)
		credit_message(test, &a, &b);
	KUNIT_EXPECT_FALSE(test, sovia_credit_may_send(&a));
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 32);
	/* The receiver would not accept one more either. */
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&b, a.tx_next), -ENOBUFS);
	credit_explicit_ack(test, &b, &a);
	KUNIT_EXPECT_TRUE(test, sovia_credit_may_send(&a));
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 0);
}

static void credit_threshold(struct kunit *test)
{
	struct sovia_credit a, b;
	int i;

	credit_pair_init(&a, &b, 32, 16);
	for (i = 0; i < 15; i++) {
		credit_message(test, &a, &b);
		KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));
		KUNIT_EXPECT_TRUE(test, sovia_credit_ack_pending(&b));
	}
	credit_message(test, &a, &b);
	KUNIT_EXPECT_TRUE(test, sovia_credit_ack_due(&b));
	/* A message in the other direction carries the acknowledgment, too. */
	credit_message(test, &b, &a);
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_pending(&b));
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 0);
}

static void credit_asked(struct kunit *test)
{
	struct sovia_credit a, b;

	credit_pair_init(&a, &b, 32, 16);
	b.asked = true;
	/* Nothing to acknowledge, nothing to send. */
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));
	credit_message(test, &a, &b);
	KUNIT_EXPECT_TRUE(test, sovia_credit_ack_due(&b));
	credit_explicit_ack(test, &b, &a);
	KUNIT_EXPECT_FALSE(test, b.asked);
	credit_message(test, &a, &b);
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));
}

/* Descriptors that are not reposted do not return credit. */
static void credit_starved(struct kunit *test)
{
	struct sovia_credit a, b;
	int i;

	credit_pair_init(&a, &b, 4, 1);
	for (i = 0; i < 4; i++)
		credit_message(test, &a, &b);
	b.rx_unposted = 3;
	credit_explicit_ack(test, &b, &a);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 3);
	credit_message(test, &a, &b);
	KUNIT_EXPECT_FALSE(test, sovia_credit_may_send(&a));
	/* More unposted descriptors must not revoke credit. */
	b.rx_unposted = 5;
	KUNIT_EXPECT_EQ(test, sovia_credit_ack(&b), b.rx_acked);
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));
	b.rx_unposted = 0;
	KUNIT_EXPECT_TRUE(test, sovia_credit_ack_due(&b));
	credit_explicit_ack(test, &b, &a);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 0);
}

/* @a sends until it has to wait. */
static void credit_fill(struct kunit *test, struct sovia_credit *a, struct sovia_credit *b)
{
	while (sovia_credit_may_send(a))
		credit_message(test, a, b);
}

static void credit_grows(struct kunit *test)
{
	struct sovia_credit a, b;

	credit_pair_init(&a, &b, 32, 16);
	sovia_credit_begin(&a, 4);
	sovia_credit_begin(&b, 4);
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&a, 4), 0);
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&b, 4), 0);
	KUNIT_EXPECT_EQ(test, a.threshold, 4);
	credit_fill(test, &a, &b);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 4);
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&b, a.tx_next), -ENOBUFS);
	KUNIT_EXPECT_EQ(test, sovia_credit_goal(&b, false), 4);
	KUNIT_EXPECT_EQ(test, sovia_credit_goal(&b, true), 8);
	credit_explicit_ack(test, &b, &a);

	/* Not told without something to acknowledge; then at once. */
	sovia_credit_take(&b, 8);
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));
	credit_message(test, &a, &b);
	KUNIT_EXPECT_TRUE(test, sovia_credit_ack_due(&b));
	credit_explicit_ack(test, &b, &a);
	b.told = 8;
	KUNIT_EXPECT_FALSE(test, sovia_credit_ack_due(&b));

	/* Only as much as its own receives allow. */
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&a, 8), 0);
	KUNIT_EXPECT_EQ(test, a.window, 4);
	KUNIT_EXPECT_EQ(test, sovia_credit_goal(&a, false), 8);
	sovia_credit_take(&a, 8);
	KUNIT_EXPECT_EQ(test, a.window, 8);
	KUNIT_EXPECT_EQ(test, b.window, 4);
	credit_fill(test, &a, &b);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 8);

	/* Bulk of one that takes less than we do does not wait. */
	KUNIT_EXPECT_EQ(test, b.threshold, 4);
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&b, 8), 0);
	KUNIT_EXPECT_EQ(test, b.threshold, 7);

	/* Not beyond the limit, and not back. */
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&a, 64), 0);
	KUNIT_EXPECT_EQ(test, sovia_credit_goal(&a, true), 32);
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&a, 63), -EPROTO);
	KUNIT_EXPECT_EQ(test, sovia_credit_granted(&a, SOVIA_WINDOW_MAX + 1), -EPROTO);
	KUNIT_EXPECT_EQ(test, a.window, 8);
	sovia_credit_take(&a, 32);
	KUNIT_EXPECT_EQ(test, a.threshold, 16);
	/* The next VI. */
	sovia_credit_begin(&a, 4);
	KUNIT_EXPECT_EQ(test, a.own_window, 4);
	KUNIT_EXPECT_EQ(test, sovia_credit_receives(a.own_window), 10);
	KUNIT_EXPECT_EQ(test, sovia_credit_of_receives(10), 4);
}

static void credit_bad_peer(struct kunit *test)
{
	struct sovia_credit a, b;

	credit_pair_init(&a, &b, 8, 4);
	credit_message(test, &a, &b);
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&b, 0), -EPROTO);
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&b, 2), -EPROTO);
	KUNIT_EXPECT_EQ(test, sovia_credit_receive(&b, 0x80000001), -EPROTO);
	/* Acknowledging unsent messages. */
	KUNIT_EXPECT_EQ(test, sovia_credit_acked(&a, 2), -EPROTO);
	KUNIT_EXPECT_EQ(test, sovia_credit_acked(&a, 1), 0);
	/* A stale acknowledgment is harmless and changes nothing. */
	KUNIT_EXPECT_EQ(test, sovia_credit_acked(&a, 0), 0);
	KUNIT_EXPECT_EQ(test, a.tx_una, 1);
}

static void credit_wraps(struct kunit *test)
{
	struct sovia_credit a, b;
	int i;

	credit_pair_init(&a, &b, 8, 4);
	a.tx_next = 0xfffffffa;
	a.tx_una = 0xfffffffa;
	b.rx_next = 0xfffffffa;
	b.rx_acked = 0xfffffffa;
	for (i = 0; i < 64; i++) {
		credit_message(test, &a, &b);
		if (sovia_credit_ack_due(&b))
			credit_explicit_ack(test, &b, &a);
	}
	KUNIT_EXPECT_EQ(test, a.tx_next, 0xfffffffa + 64);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&a), 0);
}

/*
 * Random traffic both ways: neither side is ever stuck when ACKs are sent at
 * the threshold, and no more than 2w descriptors are ever needed.
 */
static void credit_random(struct kunit *test)
{
	static const u32 sizes[][2] = { { 1, 1 }, { 2, 1 }, { 2, 2 }, { 32, 16 }, { 7, 5 } };
	struct sovia_credit c[2];
	int i, n, from;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		credit_pair_init(&c[0], &c[1], sizes[i][0], sizes[i][1]);
		for (n = 0; n < 5000; n++) {
			from = get_random_u32() & 1;
			if (!sovia_credit_may_send(&c[from])) {
				/* Stuck only until the peer's threshold or its ACK timer. */
				KUNIT_EXPECT_TRUE(test,
						  sovia_credit_ack_pending(&c[!from]));
				credit_explicit_ack(test, &c[!from], &c[from]);
			}
			credit_message(test, &c[from], &c[!from]);
			if (sovia_credit_ack_due(&c[!from]))
				credit_explicit_ack(test, &c[!from], &c[from]);
			KUNIT_EXPECT_LE(test, sovia_credit_flight(&c[from]), sizes[i][0]);
		}
	}
}

static struct kunit_case credit_test_cases[] = {
	KUNIT_CASE(credit_window),
	KUNIT_CASE(credit_threshold),
	KUNIT_CASE(credit_asked),
	KUNIT_CASE(credit_starved),
	KUNIT_CASE(credit_grows),
	KUNIT_CASE(credit_bad_peer),
	KUNIT_CASE(credit_wraps),
	KUNIT_CASE(credit_random),
	{}
};

struct kunit_suite sovia_credit_suite = {
	.name = "sovia-credit",
	.test_cases = credit_test_cases,
};

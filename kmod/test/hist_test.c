// SPDX-License-Identifier: GPL-2.0-only
/* Included by hist.c. */
#include <kunit/test.h>
#include "suites.h"

static u64 hist_bucket(const struct sovia_net *snet, enum sovia_hist which, unsigned int bucket)
{
	struct sovia_histogram histogram;

	sovia_hist_read(snet, -1, which, &histogram);
	return histogram.buckets[bucket];
}

static u64 hist_sum(const struct sovia_net *snet, enum sovia_hist which)
{
	struct sovia_histogram histogram;

	sovia_hist_read(snet, -1, which, &histogram);
	return histogram.sum;
}

static void hist_buckets(struct kunit *test)
{
	static const struct {
		u64		value;
		unsigned int	bucket;
	} cases[] = {
		{ 0, 0 }, { 1, 1 }, { 2, 2 }, { 3, 2 }, { 4, 3 }, { 1023, 10 }, { 1024, 11 },
		{ (1ULL << 30) - 1, 30 }, { 1ULL << 30, 31 }, { 1ULL << 31, 31 }, { U64_MAX, 31 },
	};
	struct sovia_net *snet = sovia_net(&init_net);
	u64 before, sum;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, hist_switch(snet, snet->histograms.value, 1), 0);
	snet->histograms.value = 1;
	KUNIT_EXPECT_TRUE(test, sovia_hist_any(snet));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		before = hist_bucket(snet, SOVIA_HIST_POST, cases[i].bucket);
		sum = hist_sum(snet, SOVIA_HIST_POST);
		sovia_hist_add(snet, SOVIA_HIST_POST, cases[i].value);
		KUNIT_EXPECT_EQ(test, hist_bucket(snet, SOVIA_HIST_POST, cases[i].bucket),
				before + 1);
		KUNIT_EXPECT_EQ(test, hist_sum(snet, SOVIA_HIST_POST), sum + cases[i].value);
	}
	hist_switch(snet, 1, 0);
	snet->histograms.value = 0;
}

static void hist_off(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	u64 begin = 0, before;

	/* The code is patched a while after the last namespace has switched. */
	sovia_hist_exit();
	sovia_hist_begin(&begin);
	KUNIT_EXPECT_EQ(test, begin, 0);
	KUNIT_ASSERT_TRUE(test, sovia_hist_any(snet));
	before = hist_bucket(snet, SOVIA_HIST_POST, 3);
	/* Another namespace may have switched them on. */
	sovia_hist_count(snet, SOVIA_HIST_POST, 4);
	KUNIT_EXPECT_EQ(test, hist_bucket(snet, SOVIA_HIST_POST, 3), before);
}

static struct kunit_case hist_cases[] = {
	KUNIT_CASE(hist_buckets),
	KUNIT_CASE(hist_off),
	{}
};

struct kunit_suite sovia_hist_suite = {
	.name = "sovia-hist",
	.test_cases = hist_cases,
};

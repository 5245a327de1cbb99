// SPDX-License-Identifier: GPL-2.0-only
/* Included by tcp_log.c. */
#include <kunit/test.h>
#include "suites.h"

static void log_add(struct sovia_net *snet, u64 cookie)
{
	const struct sovia_tcp_entry entry = { .cookie = cookie };

	log_put(snet, &entry);
}

static void log_order(struct kunit *test)
{
	struct sovia_net *snet = kunit_kzalloc(test, sizeof(*snet), GFP_KERNEL);
	struct sovia_tcp_entry entry;
	u64 number = 0, cookie;

	KUNIT_ASSERT_NOT_NULL(test, snet);
	sovia_tcp_log_net_init(snet);
	KUNIT_EXPECT_FALSE(test, sovia_tcp_log_from(snet, &number, &entry));
	for (cookie = 1; cookie <= 3; cookie++)
		log_add(snet, cookie);
	for (cookie = 1; cookie <= 3; cookie++, number++) {
		KUNIT_ASSERT_TRUE(test, sovia_tcp_log_from(snet, &number, &entry));
		KUNIT_EXPECT_EQ(test, entry.cookie, cookie);
	}
	KUNIT_EXPECT_FALSE(test, sovia_tcp_log_from(snet, &number, &entry));
	sovia_tcp_log_net_free(snet);
}

/* The oldest ones go; a reader that was among them goes on with what there is. */
static void log_wraps(struct kunit *test)
{
	struct sovia_net *snet = kunit_kzalloc(test, sizeof(*snet), GFP_KERNEL);
	struct sovia_tcp_entry entry;
	u64 number = 0, cookie, seen = 0;

	KUNIT_ASSERT_NOT_NULL(test, snet);
	sovia_tcp_log_net_init(snet);
	for (cookie = 0; cookie < TCP_LOG_SIZE + 5; cookie++)
		log_add(snet, cookie);
	for (; sovia_tcp_log_from(snet, &number, &entry); number++, seen++)
		KUNIT_EXPECT_EQ(test, entry.cookie, seen + 5);
	KUNIT_EXPECT_EQ(test, seen, TCP_LOG_SIZE);
	sovia_tcp_log_net_free(snet);
}

static struct kunit_case log_cases[] = {
	KUNIT_CASE(log_order),
	KUNIT_CASE(log_wraps),
	{}
};

struct kunit_suite sovia_tcp_log_suite = {
	.name = "sovia-tcp-log",
	.test_cases = log_cases,
};

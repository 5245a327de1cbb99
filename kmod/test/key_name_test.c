// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of key_name.c; included by it. */
#include "suites.h"

static void key_name_is_read(struct kunit *test)
{
	struct sovia_key_name name;
	struct in6_addr want;

	KUNIT_ASSERT_EQ(test, sovia_key_name_parse(&name, "aF:10.1.0.0/16"), 0);
	KUNIT_EXPECT_EQ(test, name.id, 0xaf);
	ipv6_addr_set_v4mapped(htonl(0x0a010000), &want);
	KUNIT_EXPECT_TRUE(test, ipv6_addr_equal(&name.peer, &want));
	KUNIT_EXPECT_EQ(test, name.prefix, 112);
	KUNIT_EXPECT_EQ(test, name.own_prefix, 0);
	KUNIT_ASSERT_EQ(test, sovia_key_name_parse(&name, "ffffffffffffffff:::1,fd00::/8"), 0);
	KUNIT_EXPECT_EQ(test, name.id, U64_MAX);
	KUNIT_EXPECT_TRUE(test, ipv6_addr_equal(&name.peer, &in6addr_loopback));
	KUNIT_EXPECT_EQ(test, name.prefix, 128);
	KUNIT_EXPECT_EQ(test, name.own_prefix, 8);
	KUNIT_EXPECT_EQ(test, name.own.s6_addr[0], 0xfd);
	KUNIT_EXPECT_EQ(test, sovia_key_name_parse(&name, "1:0.0.0.0/0"), 0);
	KUNIT_EXPECT_EQ(test, name.prefix, 96);
	KUNIT_EXPECT_EQ(test, sovia_key_name_parse(&name, "1:::/0"), 0);
	KUNIT_EXPECT_EQ(test, name.prefix, 0);
}

static void key_name_is_wrong(struct kunit *test)
{
	static const char * const wrong[] = {
		"", "1", ":::/0", "0:::/0", "g:::/0", "00000000000000001:::/0", "1:", "1:x",
		"1:10.0.0.0/33", "1:10.0.0.1/8", "1:10.0.0/8", "1:::/129", "1:::/0000", "1:::/",
		"1:::/-1", "1:::/0,", "1:::/0,1.2.3.4/0", "1:::/0,::/0,", "1:::/0 ", "1:fe80::1%1",
	};
	struct sovia_key_name name;
	int i;

	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KUNIT_EXPECT_EQ_MSG(test, sovia_key_name_parse(&name, wrong[i]), -EINVAL, "%s",
				    wrong[i]);
}

static struct kunit_case key_name_test_cases[] = {
	KUNIT_CASE(key_name_is_read),
	KUNIT_CASE(key_name_is_wrong),
	{}
};

struct kunit_suite sovia_key_name_suite = {
	.name = "sovia-key-name",
	.test_cases = key_name_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of key.c; included by it. */
#include "suites.h"

/* As add_key(2) would.  Returns the key, which the list has as well, or an ERR_PTR. */
static struct key *key_test_add(const char *description, u8 fill)
{
	u8 bytes[KEY_LEN_MIN];
	struct key *key;
	int err;

	key = key_alloc(&sovia_key_type, description, GLOBAL_ROOT_UID, GLOBAL_ROOT_GID,
			current_cred(), KEY_USR_VIEW, KEY_ALLOC_NOT_IN_QUOTA, NULL);
	if (IS_ERR(key))
		return key;
	memset(bytes, fill, sizeof(bytes));
	err = key_instantiate_and_link(key, bytes, sizeof(bytes), NULL, NULL);
	key_put(key);
	return err ? ERR_PTR(err) : key;
}

/* From 198.51.100.1 to 192.0.2.1. */
static void key_test_pair(struct sovia_pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	ipv6_addr_set_v4mapped(htonl(0xc6336401), &pair->local);
	ipv6_addr_set_v4mapped(htonl(0xc0000201), &pair->remote);
}

static void key_test_exit(struct kunit *test)
{
	u64 id;

	for (id = 1; id < 16; id++)
		sovia_keys_delete(sovia_net(&init_net), id);
}

static void keys_are_selected(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	u64 ids[SOVIA_RDV_KEYS], other = 9;
	struct sovia_secret a, b;
	struct sovia_key_use use;
	struct sovia_pair pair;

	key_test_pair(&pair);
	KUNIT_EXPECT_EQ(test, sovia_keys_offer(snet, &pair, ids), 0);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, NULL, 0, &use, &a), 0);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, &other, 1, &use, &a), -ENOKEY);
	KUNIT_EXPECT_FALSE(test, IS_ERR(key_test_add("1:192.0.2.0/24", 1)));
	KUNIT_EXPECT_FALSE(test, IS_ERR(key_test_add("2:192.0.2.0/24", 2)));
	KUNIT_EXPECT_FALSE(test, IS_ERR(key_test_add("3:192.0.0.0/16", 3)));
	KUNIT_EXPECT_EQ(test, PTR_ERR(key_test_add("2:192.0.2.0/24", 4)), -EEXIST);
	/* The newest first. */
	KUNIT_ASSERT_EQ(test, sovia_keys_offer(snet, &pair, ids), 2);
	KUNIT_EXPECT_EQ(test, ids[0], 2);
	KUNIT_EXPECT_EQ(test, ids[1], 1);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, NULL, 0, &use, &a), -ENOKEY);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, &other, 1, &use, &a), -ENOKEY);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, ids, 2, &use, &a), 0);
	KUNIT_EXPECT_EQ(test, use.id, 2);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, &ids[1], 1, &use, &b), 0);
	KUNIT_EXPECT_EQ(test, use.id, 1);
	KUNIT_EXPECT_NE(test, memcmp(&a, &b, sizeof(a)), 0);
	/* A longer prefix of this end. */
	KUNIT_EXPECT_FALSE(test, IS_ERR(key_test_add("4:192.0.2.0/24,198.51.100.1", 5)));
	KUNIT_ASSERT_EQ(test, sovia_keys_offer(snet, &pair, ids), 1);
	KUNIT_EXPECT_EQ(test, ids[0], 4);
	KUNIT_EXPECT_FALSE(test, sovia_keys_permit(snet, &pair, &use));
	KUNIT_EXPECT_EQ(test, sovia_keys_delete(snet, 4), 0);
	KUNIT_EXPECT_EQ(test, sovia_keys_delete(snet, 4), -ENOENT);
	KUNIT_EXPECT_TRUE(test, sovia_keys_permit(snet, &pair, &use));
}

/* A key of the same number is another one. */
static void keys_close(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_key_use use, none = {};
	u64 ids[SOVIA_RDV_KEYS], id = 5;
	struct sovia_secret secret;
	struct sovia_pair pair;

	key_test_pair(&pair);
	KUNIT_EXPECT_TRUE(test, sovia_keys_permit(snet, &pair, &none));
	KUNIT_EXPECT_FALSE(test, IS_ERR(key_test_add("5:192.0.2.1", 1)));
	KUNIT_EXPECT_FALSE(test, sovia_keys_permit(snet, &pair, &none));
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, &id, 1, &use, &secret), 0);
	KUNIT_EXPECT_EQ(test, sovia_keys_revoke(snet, 5), 0);
	KUNIT_EXPECT_EQ(test, sovia_keys_revoke(snet, 5), -ENOENT);
	KUNIT_EXPECT_FALSE(test, sovia_keys_permit(snet, &pair, &use));
	KUNIT_EXPECT_FALSE(test, sovia_keys_permit(snet, &pair, &none));
	KUNIT_EXPECT_EQ(test, sovia_keys_offer(snet, &pair, ids), -ENOKEY);
	KUNIT_EXPECT_EQ(test, sovia_keys_take(snet, &pair, NULL, 0, &use, &secret), -ENOKEY);
	KUNIT_EXPECT_FALSE(test, IS_ERR(key_test_add("5:192.0.2.1", 1)));
	KUNIT_EXPECT_EQ(test, sovia_keys_offer(snet, &pair, ids), 1);
	KUNIT_EXPECT_FALSE(test, sovia_keys_permit(snet, &pair, &use));
	KUNIT_EXPECT_EQ(test, sovia_keys_delete(snet, 5), 0);
	KUNIT_EXPECT_TRUE(test, sovia_keys_permit(snet, &pair, &none));
}

static struct kunit_case key_test_cases[] = {
	KUNIT_CASE(keys_are_selected),
	KUNIT_CASE(keys_close),
	{}
};

struct kunit_suite sovia_key_suite = {
	.name = "sovia-key",
	.exit = key_test_exit,
	.test_cases = key_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of secret.c; included by it. */
#include "suites.h"

static const struct sovia_path secret_test_path = {
	.local = { 0xfe, 0x80, [15] = 1 }, .remote = { 0xfe, 0x80, [15] = 2 },
};

/* The same from the other end. */
static const struct sovia_path secret_test_back = {
	.local = { 0xfe, 0x80, [15] = 2 }, .remote = { 0xfe, 0x80, [15] = 1 },
};

static void secret_test_make(struct sovia_secret *secret, u8 fill)
{
	const struct sovia_secret none = {};
	u8 hello[40], answer[50];

	memset(hello, fill, sizeof(hello));
	memset(answer, 7, sizeof(answer));
	sovia_secret_derive(secret, &none, hello, sizeof(hello), answer, sizeof(answer));
}

static void secret_depends_on_messages(struct kunit *test)
{
	struct sovia_secret a, b, c;

	secret_test_make(&a, 1);
	secret_test_make(&b, 1);
	secret_test_make(&c, 2);
	KUNIT_EXPECT_EQ(test, memcmp(&a, &b, sizeof(a)), 0);
	KUNIT_EXPECT_NE(test, memcmp(&a, &c, sizeof(a)), 0);
	KUNIT_EXPECT_NOT_NULL(test, memchr_inv(&a, 0, sizeof(a)));
}

static void secret_depends_on_key(struct kunit *test)
{
	struct sovia_secret key, other, a, b;
	u8 bytes[64], msg[40] = {};

	memset(bytes, 9, sizeof(bytes));
	sovia_secret_of_key(&key, bytes, sizeof(bytes));
	sovia_secret_of_key(&other, bytes, sizeof(bytes) - 1);
	KUNIT_EXPECT_NE(test, memcmp(&key, &other, sizeof(key)), 0);
	/* The last byte counts, beyond what BLAKE2s takes for a key. */
	bytes[63]++;
	sovia_secret_of_key(&other, bytes, sizeof(bytes));
	KUNIT_EXPECT_NE(test, memcmp(&key, &other, sizeof(key)), 0);
	sovia_secret_derive(&a, &key, msg, sizeof(msg), msg, sizeof(msg));
	sovia_secret_derive(&b, &other, msg, sizeof(msg), msg, sizeof(msg));
	KUNIT_EXPECT_NE(test, memcmp(&a, &b, sizeof(a)), 0);
	KUNIT_EXPECT_NE(test, memcmp(&a, &key, sizeof(a)), 0);
}

static void secret_signs(struct kunit *test)
{
	struct sovia_secret secret, other;
	unsigned int i;
	u8 msg[56];

	secret_test_make(&secret, 1);
	secret_test_make(&other, 2);
	memset(msg, 3, sizeof(msg));
	sovia_secret_sign(&secret, msg, sizeof(msg));
	KUNIT_EXPECT_TRUE(test, sovia_secret_signed(&secret, msg, sizeof(msg)));
	KUNIT_EXPECT_FALSE(test, sovia_secret_signed(&other, msg, sizeof(msg)));
	for (i = 0; i < sizeof(msg); i++) {
		msg[i] ^= 0x10;
		KUNIT_EXPECT_FALSE(test, sovia_secret_signed(&secret, msg, sizeof(msg)));
		msg[i] ^= 0x10;
	}
	KUNIT_EXPECT_FALSE(test, sovia_secret_signed(&secret, msg, sizeof(msg) - 1));
}

static void secret_seals(struct kunit *test)
{
	struct sovia_secret secret, other;
	struct sovia_hello hello;
	unsigned int i;

	secret_test_make(&secret, 1);
	secret_test_make(&other, 2);
	memset(&hello, 3, sizeof(hello));
	sovia_secret_seal(&secret, SOVIA_SEAL_REQ, &hello, &secret_test_path);
	KUNIT_EXPECT_TRUE(test, sovia_secret_sealed(&secret, SOVIA_SEAL_REQ, &hello,
						    &secret_test_back));
	/* Another secret, a reply, sent back to its sender. */
	KUNIT_EXPECT_FALSE(test, sovia_secret_sealed(&other, SOVIA_SEAL_REQ, &hello,
						     &secret_test_back));
	KUNIT_EXPECT_FALSE(test, sovia_secret_sealed(&secret, SOVIA_SEAL_REP, &hello,
						     &secret_test_back));
	KUNIT_EXPECT_FALSE(test, sovia_secret_sealed(&secret, SOVIA_SEAL_REQ, &hello,
						     &secret_test_path));
	for (i = 0; i < sizeof(hello); i++) {
		((u8 *)&hello)[i] ^= 0x80;
		KUNIT_EXPECT_FALSE(test, sovia_secret_sealed(&secret, SOVIA_SEAL_REQ, &hello,
							     &secret_test_back));
		((u8 *)&hello)[i] ^= 0x80;
	}
}

/* From another place, or to another one. */
static void secret_seals_path(struct kunit *test)
{
	struct sovia_path path = secret_test_back;
	struct sovia_secret secret;
	struct sovia_hello hello;
	unsigned int i;

	secret_test_make(&secret, 1);
	memset(&hello, 3, sizeof(hello));
	sovia_secret_seal(&secret, SOVIA_SEAL_REQ, &hello, &secret_test_path);
	for (i = 0; i < sizeof(path); i++) {
		((u8 *)&path)[i] ^= 1;
		KUNIT_EXPECT_FALSE(test, sovia_secret_sealed(&secret, SOVIA_SEAL_REQ, &hello,
							     &path));
		((u8 *)&path)[i] ^= 1;
	}
}

static struct kunit_case secret_test_cases[] = {
	KUNIT_CASE(secret_depends_on_messages),
	KUNIT_CASE(secret_depends_on_key),
	KUNIT_CASE(secret_signs),
	KUNIT_CASE(secret_seals),
	KUNIT_CASE(secret_seals_path),
	{}
};

struct kunit_suite sovia_secret_suite = {
	.name = "sovia-secret",
	.test_cases = secret_test_cases,
};

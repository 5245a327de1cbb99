// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of rdv_wire.c; included by it. */
#include "suites.h"

static const struct sovia_rdv_msg rdv_test_hello = {
	.type = SOVIA_RDV_HELLO,
	.offer = {
		.version_min = 5, .version_max = 6, .flags = SOVIA_RDV_F_AGAIN,
		.features = 0x0102030405060708, .instance = { 1, 2, 3 }, .nonce = { 4, 5 },
		.window = 32, .lanes = 4,
		.payload = 16384, .early = 1024, .reads = 1, .rmem = 2, .nways = 2,
		.ways = { { .type = SOVIA_RDV_WAY_ROCE, .gid_type = 2, .mtu = 1024,
			    .gid = { 0xfe, 0x80 } },
			  { .type = SOVIA_RDV_WAY_IWARP, .pkey = 0xffff } },
	},
	.nkeys = 3, .keys = { 11, 12, 13 },
	.has_mac = true, .mac = { 0xaa, [31] = 0xbb },
};

/* Aligned as the code expects. */
union rdv_test_buf {
	u8	bytes[SOVIA_RDV_LEN_MAX];
	u64	align;
};

static void rdv_test_same(struct kunit *test, const struct sovia_rdv_msg *msg, unsigned int want)
{
	union rdv_test_buf *buf = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	union rdv_test_buf *again = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	struct sovia_rdv_msg *out = kunit_kzalloc(test, sizeof(*out), GFP_KERNEL);
	unsigned int len;

	KUNIT_ASSERT_TRUE(test, buf && again && out);
	len = sovia_rdv_build(buf, msg);
	KUNIT_EXPECT_EQ(test, len, want);
	KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, len), (int)len);
	KUNIT_EXPECT_EQ(test, sovia_rdv_parse(buf, len, out), 0);
	KUNIT_EXPECT_EQ(test, sovia_rdv_build(again, out), len);
	KUNIT_EXPECT_EQ(test, memcmp(buf, again, sizeof(*buf)), 0);
	/* Nothing but the whole message. */
	KUNIT_EXPECT_EQ(test, sovia_rdv_parse(buf, len - 8, out), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, sovia_rdv_parse(buf, len + 8, out), -EMSGSIZE);
}

static void rdv_round_trips(struct kunit *test)
{
	struct sovia_rdv_msg msg = rdv_test_hello;

	rdv_test_same(test, &msg, 120 + 2 * 40 + 3 * 8 + 32);
	msg.offer.flags = 0;
	msg.has_mac = false;
	rdv_test_same(test, &msg, 120 + 2 * 40 + 3 * 8);
	msg.type = SOVIA_RDV_ANSWER;
	msg.has_mac = true;
	msg.nkeys = 1;
	msg.offer.nways = 1;
	rdv_test_same(test, &msg, 208);
	msg.offer.nways = 0;
	rdv_test_same(test, &msg, 168);
	msg.code = SOVIA_RDV_BUSY;
	msg.retry_ms = 1000;
	rdv_test_same(test, &msg, 168);
	msg = (struct sovia_rdv_msg){ .type = SOVIA_RDV_PING, .ping = 0x8000000000000001 };
	rdv_test_same(test, &msg, 16);
	msg.type = SOVIA_RDV_PONG;
	rdv_test_same(test, &msg, 16);
	msg = (struct sovia_rdv_msg){ .type = SOVIA_RDV_CLOSE, .code = SOVIA_RDV_LEAVING };
	rdv_test_same(test, &msg, 16);
	msg = (struct sovia_rdv_msg){
		.type = SOVIA_RDV_CONFIRM, .has_mac = true, .mac = { 0xcc, [31] = 0xdd },
	};
	rdv_test_same(test, &msg, 40);
}

static const struct rdv_case {
	const char *name;
	unsigned int at;
	unsigned int bytes;	/* set to @value, big endian */
	u64 value;
	int err;
} rdv_cases[] = {
	{ "unchanged", 8, 1, 5, 0 },
	{ "version 0", 8, 1, 0, -ERANGE },
	{ "versions the wrong way round", 8, 1, 7, -ERANGE },
	{ "five ways", 12, 1, 5, -ERANGE },
	{ "five keys", 13, 1, 5, -ERANGE },
	{ "one way fewer than there are", 12, 1, 1, -EMSGSIZE },
	{ "one key more than there are", 13, 1, 4, -EMSGSIZE },
	{ "MAC without its flag", 10, 2, 0, -EMSGSIZE },
	{ "MAC with the other flag", 10, 2, SOVIA_RDV_F_JOIN, 0 },
	{ "unknown flags", 10, 2, 0xfffd, 0 },
	{ "reserved field", 14, 2, 0xffff, 0 },
	{ "window 0", 104, 2, 0, -ERANGE },
	{ "window beyond the limit", 104, 2, SOVIA_WINDOW_MAX + 1, -ERANGE },
	{ "no lane", 106, 2, 0, -ERANGE },
	{ "too many lanes", 106, 2, SOVIA_LANES_MAX + 1, -ERANGE },
	{ "payload too small", 108, 4, SOVIA_PAYLOAD_MIN - 1, -ERANGE },
	{ "payload too large", 108, 4, SOVIA_PAYLOAD_MAX + 1, -ERANGE },
	{ "unknown way", 120, 1, 99, 0 },
	{ "CONFIRM of another length", 4, 1, 6, -EMSGSIZE },
	{ "unknown type", 4, 1, 7, -EOPNOTSUPP },
	{ "type 0", 4, 1, 0, -EOPNOTSUPP },
};

static void rdv_case_name(const struct rdv_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(rdv, rdv_cases, rdv_case_name);

static void rdv_hello_checks(struct kunit *test)
{
	const struct rdv_case *c = test->param_value;
	union rdv_test_buf *buf = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	struct sovia_rdv_msg *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	unsigned int i, len;

	KUNIT_ASSERT_TRUE(test, buf && msg);
	len = sovia_rdv_build(buf, &rdv_test_hello);
	for (i = 0; i < c->bytes; i++)
		buf->bytes[c->at + i] = c->value >> 8 * (c->bytes - 1 - i);
	KUNIT_EXPECT_EQ(test, sovia_rdv_parse(buf, len, msg), c->err);
}

static void rdv_answer_checks(struct kunit *test)
{
	union rdv_test_buf *buf = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	struct sovia_rdv_msg *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);
	unsigned int len;

	KUNIT_ASSERT_TRUE(test, buf && msg);
	*msg = rdv_test_hello;
	msg->type = SOVIA_RDV_ANSWER;
	msg->nkeys = 1;
	/* OK with two ways; a refusal with one. */
	len = sovia_rdv_build(buf, msg);
	KUNIT_EXPECT_EQ(test, sovia_rdv_parse(buf, len, msg), -ERANGE);
	*msg = rdv_test_hello;
	msg->type = SOVIA_RDV_ANSWER;
	msg->offer.nways = 1;
	msg->code = SOVIA_RDV_NO_WAY;
	len = sovia_rdv_build(buf, msg);
	KUNIT_EXPECT_EQ(test, sovia_rdv_parse(buf, len, msg), -ERANGE);
}

static void rdv_framing(struct kunit *test)
{
	union rdv_test_buf *buf = kunit_kzalloc(test, sizeof(*buf), GFP_KERNEL);
	unsigned int i;
	int len;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	len = sovia_rdv_build(buf, &rdv_test_hello);
	for (i = 0; i < sizeof(struct sovia_rdv_hdr); i++)
		KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, i), 0);
	KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, i), len);
	buf->bytes[6] = 0xff;
	KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, i), -EMSGSIZE);
	buf->bytes[6] = 0;
	buf->bytes[7] = 7;
	KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, i), -EMSGSIZE);
	buf->bytes[5]++;
	KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, i), -EPROTONOSUPPORT);
	buf->bytes[0] = 'G';
	KUNIT_EXPECT_EQ(test, sovia_rdv_length(buf, i), -EPROTO);
}

static struct kunit_case rdv_wire_test_cases[] = {
	KUNIT_CASE(rdv_round_trips),
	KUNIT_CASE_PARAM(rdv_hello_checks, rdv_gen_params),
	KUNIT_CASE(rdv_answer_checks),
	KUNIT_CASE(rdv_framing),
	{}
};

struct kunit_suite sovia_rdv_wire_suite = {
	.name = "sovia-rdv-wire",
	.test_cases = rdv_wire_test_cases,
};

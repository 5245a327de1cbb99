// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of wire.c; included by it. */
#include "suites.h"

static struct sk_buff *wire_message(struct kunit *test, const struct sovia_msg *msg,
				    unsigned int payload)
{
	struct sk_buff *skb = alloc_skb(sizeof(struct sovia_hdr) + payload, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	sovia_msg_build(skb_put(skb, sizeof(struct sovia_hdr)), msg, SOVIA_WIRE_VERSION);
	skb_put_zero(skb, payload);
	return skb;
}

static void wire_round_trip(struct kunit *test)
{
	const struct sovia_msg in = {
		.type = SOVIA_DATA, .flags = SOVIA_F_ACKREQ, .len = 5, .seq = 0xfffffffe,
		.ack = 0x01020304, .sport = 80, .dport = 0xfffe, .window = 0x80000000,
		.ref = 7, .code = SOVIA_CODE_BUSY,
	};
	struct sk_buff *skb = wire_message(test, &in, 5);
	struct sovia_msg out;

	KUNIT_EXPECT_EQ(test, sovia_msg_parse(skb, 16384, SOVIA_WIRE_VERSION, &out), 0);
	KUNIT_EXPECT_EQ(test, out.type, in.type);
	KUNIT_EXPECT_EQ(test, out.flags, in.flags);
	KUNIT_EXPECT_EQ(test, out.len, in.len);
	KUNIT_EXPECT_EQ(test, out.seq, in.seq);
	KUNIT_EXPECT_EQ(test, out.ack, in.ack);
	KUNIT_EXPECT_EQ(test, out.sport, in.sport);
	KUNIT_EXPECT_EQ(test, out.dport, in.dport);
	KUNIT_EXPECT_EQ(test, out.window, in.window);
	KUNIT_EXPECT_EQ(test, out.ref, in.ref);
	KUNIT_EXPECT_EQ(test, out.code, in.code);
	/* Big endian on the wire on every host. */
	KUNIT_EXPECT_EQ(test, skb->data[12], 1);
	KUNIT_EXPECT_EQ(test, skb->data[15], 4);
	kfree_skb(skb);
}

static const struct wire_case {
	const char *name;
	struct sovia_msg msg;
	unsigned int payload;
	int err;
} wire_cases[] = {
	{ "data", { SOVIA_DATA, .len = 1, .sport = 1, .dport = 2 }, 1, 0 },
	{ "data at the limit", { SOVIA_DATA, .len = 4096, .sport = 1, .dport = 2 }, 4096, 0 },
	{ "data beyond the limit", { SOVIA_DATA, .len = 4097, .sport = 1, .dport = 2 }, 4097,
	  -EMSGSIZE },
	{ "empty data", { SOVIA_DATA, .sport = 1, .dport = 2 }, 0, -EMSGSIZE },
	{ "length beyond the message", { SOVIA_DATA, .len = 9, .sport = 1, .dport = 2 }, 8,
	  -EMSGSIZE },
	{ "length short of the message", { SOVIA_DATA, .len = 7, .sport = 1, .dport = 2 }, 8,
	  -EMSGSIZE },
	{ "length that wraps", { SOVIA_DATA, .len = 0xffffffff, .sport = 1, .dport = 2 }, 8,
	  -EMSGSIZE },
	{ "data without source port", { SOVIA_DATA, .len = 1, .dport = 2 }, 1, -EINVAL },
	{ "data without destination port", { SOVIA_DATA, .len = 1, .sport = 2 }, 1, -EINVAL },
	{ "ack", { SOVIA_ACK }, 0, 0 },
	{ "ack with a port", { SOVIA_ACK, .sport = 1 }, 0, -EINVAL },
	{ "padded ack", { SOVIA_ACK, .len = 4096 }, 4096, 0 },
	{ "ack with too much", { SOVIA_ACK, .len = 4097 }, 4097, -EMSGSIZE },
	{ "probe", { SOVIA_PROBE }, 0, 0 },
	{ "probe with payload", { SOVIA_PROBE, .len = 1 }, 1, -EMSGSIZE },
	{ "fin", { SOVIA_FIN, .sport = 1, .dport = 2 }, 0, 0 },
	{ "fin with payload", { SOVIA_FIN, .len = 3, .sport = 1, .dport = 2 }, 3, -EMSGSIZE },
	{ "what was finack", { 5, .sport = 1, .dport = 2 }, 0, -EOPNOTSUPP },
	{ "wakeup", { SOVIA_WAKEUP, .sport = 1, .dport = 2 }, 0, 0 },
	{ "wakeup without ports", { SOVIA_WAKEUP }, 0, -EINVAL },
	{ "conn", { SOVIA_CONN, .len = 32, .sport = 1, .dport = 2 }, 32, 0 },
	{ "conn too short", { SOVIA_CONN, .len = 31, .sport = 1, .dport = 2 }, 31, -EMSGSIZE },
	{ "conn too long", { SOVIA_CONN, .len = 33, .sport = 1, .dport = 2 }, 33, -EMSGSIZE },
	{ "accept", { SOVIA_ACCEPT, .sport = 1, .dport = 2 }, 0, 0 },
	{ "refuse", { SOVIA_REFUSE, .sport = 1, .dport = 2 }, 0, 0 },
	{ "reset", { SOVIA_RESET, .sport = 1, .dport = 2 }, 0, 0 },
	{ "type 0", { 0, .sport = 1, .dport = 2 }, 0, -EOPNOTSUPP },
	{ "type one past the last", { SOVIA_TYPE_COUNT, .sport = 1, .dport = 2 }, 0,
	  -EOPNOTSUPP },
	{ "type 255", { 255, .sport = 1, .dport = 2 }, 0, -EOPNOTSUPP },
};

static void wire_case_name(const struct wire_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wire, wire_cases, wire_case_name);

static void wire_check(struct kunit *test)
{
	const struct wire_case *c = test->param_value;
	struct sk_buff *skb = wire_message(test, &c->msg, c->payload);
	struct sovia_msg out;

	KUNIT_EXPECT_EQ(test, sovia_msg_parse(skb, 4096, SOVIA_WIRE_VERSION, &out), c->err);
	kfree_skb(skb);
}

static void wire_version(struct kunit *test)
{
	const struct sovia_msg msg = { .type = SOVIA_ACK };
	struct sk_buff *skb = wire_message(test, &msg, 0);
	struct sovia_msg out;

	skb->data[0] = SOVIA_WIRE_VERSION + 1;
	KUNIT_EXPECT_EQ(test, sovia_msg_parse(skb, 4096, SOVIA_WIRE_VERSION, &out),
			-EPROTONOSUPPORT);
	kfree_skb(skb);
}

/* The header is reconstructed from 32 bits. */
static void wire_compact(struct kunit *test)
{
	const struct sovia_msg in = {
		.type = SOVIA_DATA, .flags = SOVIA_F_ACKREQ | SOVIA_F_FIN, .len = 5,
		.seq = 0x10004, .ack = 0x10002, .sport = 40000, .dport = 80, .compact = true,
	};
	struct sovia_slots *slots = kunit_kzalloc(test, sizeof(*slots), GFP_KERNEL);
	u32 imm = sovia_imm_build(&in);
	struct sovia_msg out = { .seq = 0xfffe, .ack = 0xfff0 };

	KUNIT_ASSERT_NOT_NULL(test, slots);
	KUNIT_EXPECT_FALSE(test, sovia_slots_has(slots, in.sport, in.dport));
	KUNIT_EXPECT_EQ(test, sovia_imm_parse(imm, slots, 5, 4096, &out), -EINVAL);
	sovia_slots_set(slots, in.sport, in.dport);
	KUNIT_EXPECT_TRUE(test, sovia_slots_has(slots, in.sport, in.dport));
	KUNIT_EXPECT_FALSE(test, sovia_slots_has(slots, in.dport, in.sport));
	KUNIT_EXPECT_EQ(test, sovia_imm_parse(imm, slots, 5, 4096, &out), 0);
	KUNIT_EXPECT_EQ(test, out.type, SOVIA_DATA);
	KUNIT_EXPECT_EQ(test, out.flags, in.flags);
	KUNIT_EXPECT_EQ(test, out.len, 5);
	/* The lower bits of ack are relative to the last known one. */
	KUNIT_EXPECT_EQ(test, out.seq, 0x10004);
	KUNIT_EXPECT_EQ(test, out.ack, 0x10002);
	KUNIT_EXPECT_EQ(test, out.sport, in.sport);
	KUNIT_EXPECT_EQ(test, out.dport, in.dport);
	KUNIT_EXPECT_TRUE(test, out.compact);
	KUNIT_EXPECT_EQ(test, sovia_imm_parse(imm, slots, 0, 4096, &out), -EMSGSIZE);
	KUNIT_EXPECT_EQ(test, sovia_imm_parse(imm, slots, 4097, 4096, &out), -EMSGSIZE);
	/* Another connection with the same slot replaces it. */
	sovia_slots_set(slots, in.sport + SOVIA_SLOTS, in.dport);
	KUNIT_EXPECT_FALSE(test, sovia_slots_has(slots, in.sport, in.dport));
}

static void wire_truncated(struct kunit *test)
{
	const struct sovia_msg msg = { .type = SOVIA_ACK };
	struct sk_buff *skb = wire_message(test, &msg, 0);
	struct sovia_msg out;
	int len;

	for (len = sizeof(struct sovia_hdr) - 1; len >= 0; len--) {
		skb_trim(skb, len);
		KUNIT_EXPECT_EQ(test, sovia_msg_parse(skb, 4096, SOVIA_WIRE_VERSION, &out),
				-EMSGSIZE);
	}
	kfree_skb(skb);
}

/* An unknown reason must not be used as an index later. */
static void wire_code_bounded(struct kunit *test)
{
	const struct sovia_msg msg = {
		.type = SOVIA_RESET, .sport = 1, .dport = 2, .code = 0x7fffffff,
	};
	struct sk_buff *skb = wire_message(test, &msg, 0);
	struct sovia_msg out;

	KUNIT_EXPECT_EQ(test, sovia_msg_parse(skb, 4096, SOVIA_WIRE_VERSION, &out), 0);
	KUNIT_EXPECT_EQ(test, out.code, (u32)SOVIA_CODE_NONE);
	kfree_skb(skb);
}

static void wire_hello(struct kunit *test)
{
	static const struct {
		u16 window;
		u32 payload;
		u8 lane;
		int err;
		u32 rx_next;
		u64 id;
		u64 peer_id;
	} cases[] = {
		{ 1, SOVIA_PAYLOAD_MIN, 0, 0, 0, 1, 0 },
		{ 32, 16384, 3, 0, 0xfffffffe, 0x0102030405060708, 9 },
		{ 32, 16384, 3, 0, 0, U64_MAX, U64_MAX },
		{ SOVIA_WINDOW_MAX, SOVIA_PAYLOAD_MAX, SOVIA_LANES_MAX - 1, 0, 0, 1, 0 },
		{ 0, 16384, 0, -ERANGE, 0, 1, 0 },
		{ SOVIA_WINDOW_MAX + 1, 16384, 0, -ERANGE, 0, 1, 0 },
		{ 32, SOVIA_PAYLOAD_MIN - 1, 0, -ERANGE, 0, 1, 0 },
		{ 32, SOVIA_PAYLOAD_MAX + 1, 0, -ERANGE, 0, 1, 0 },
		{ 32, 16384, SOVIA_LANES_MAX, -ERANGE, 0, 1, 0 },
		{ 32, 16384, 255, -ERANGE, 0, 1, 0 },
		/* a peer ID of 0, or rx_next without a peer ID */
		{ 32, 16384, 0, -ERANGE, 0, 0, 1 },
		{ 32, 16384, 0, -ERANGE, 1, 1, 0 },
	};
	struct sovia_params in = {}, out;
	struct sovia_hello hello;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		in.window = cases[i].window;
		in.payload = cases[i].payload;
		in.lane = cases[i].lane;
		in.rx_next = cases[i].rx_next;
		in.id = cases[i].id;
		in.peer_id = cases[i].peer_id;
		sovia_hello_build(&hello, &in, SOVIA_WIRE_VERSION);
		KUNIT_EXPECT_EQ(test, sovia_hello_parse(&hello, sizeof(hello), &out),
				cases[i].err);
		if (cases[i].err)
			continue;
		KUNIT_EXPECT_EQ(test, out.window, in.window);
		KUNIT_EXPECT_EQ(test, out.payload, in.payload);
		KUNIT_EXPECT_EQ(test, out.lane, in.lane);
		KUNIT_EXPECT_EQ(test, out.rx_next, in.rx_next);
		KUNIT_EXPECT_EQ(test, out.id, in.id);
		KUNIT_EXPECT_EQ(test, out.peer_id, in.peer_id);
	}
	/* Private data may be padded, but not shorter. */
	KUNIT_EXPECT_EQ(test, sovia_hello_parse(&hello, sizeof(hello) - 1, &out), -EMSGSIZE);
	in.window = 32;
	in.payload = 16384;
	in.lane = 0;
	in.rx_next = 0;
	sovia_hello_build(&hello, &in, SOVIA_WIRE_VERSION);
	KUNIT_EXPECT_EQ(test, sovia_hello_parse(&hello, 56, &out), 0);
	hello.version++;
	KUNIT_EXPECT_EQ(test, sovia_hello_parse(&hello, 56, &out), -EPROTONOSUPPORT);
	hello.magic = 0;
	KUNIT_EXPECT_EQ(test, sovia_hello_parse(&hello, 56, &out), -EPROTO);
}

static void wire_order(struct kunit *test)
{
	KUNIT_EXPECT_TRUE(test, sovia_before(1, 2));
	KUNIT_EXPECT_FALSE(test, sovia_before(2, 2));
	KUNIT_EXPECT_FALSE(test, sovia_before(3, 2));
	KUNIT_EXPECT_TRUE(test, sovia_before(0xffffffff, 0));
	KUNIT_EXPECT_FALSE(test, sovia_before(0, 0xffffffff));
}

static struct kunit_case wire_test_cases[] = {
	KUNIT_CASE(wire_round_trip),
	KUNIT_CASE_PARAM(wire_check, wire_gen_params),
	KUNIT_CASE(wire_version),
	KUNIT_CASE(wire_compact),
	KUNIT_CASE(wire_truncated),
	KUNIT_CASE(wire_code_bounded),
	KUNIT_CASE(wire_hello),
	KUNIT_CASE(wire_order),
	{}
};

struct kunit_suite sovia_wire_suite = {
	.name = "sovia-wire",
	.test_cases = wire_test_cases,
};

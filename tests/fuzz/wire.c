// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of kmod/lane/wire.c: decoding headers, immediate data and hellos.
 *
 * Accepted input conforms to include/sovia/wire.h, and encoding it again
 * gives the same bytes, except those that the format ignores.
 *
 * The first byte of the input says what follows: a message, immediate data, a
 * hello, or a valid one of these that the input modifies.
 */
#include "input.h"
#include "../../kmod/lane/wire.h"

#define MAX_PAYLOAD	SOVIA_PAYLOAD_MIN

int fuzz_skbs;
bool fuzz_no_memory(void) { return false; }

static struct sk_buff *skb_of(const void *data, size_t size)
{
	struct sk_buff *skb = alloc_skb(size, GFP_KERNEL);

	memcpy(skb_put(skb, size), data, size);
	return skb;
}

static bool has_ports(u8 type)
{
	return type != SOVIA_ACK && type != SOVIA_PROBE && type != SOVIA_PARK;
}

/* Checks an accepted message. */
static void check_msg(const struct sovia_msg *msg, size_t size)
{
	MUST(msg->type >= SOVIA_DATA && msg->type < SOVIA_TYPE_COUNT && msg->type != 5);
	MUST(msg->len + sizeof(struct sovia_hdr) == size);
	MUST(msg->code < SOVIA_CODE_COUNT);
	MUST(!msg->compact);
	MUST(has_ports(msg->type) ? msg->sport && msg->dport : !msg->sport && !msg->dport);
	if (msg->type == SOVIA_DATA || msg->type == SOVIA_ACK)
		MUST((msg->len || msg->type == SOVIA_ACK) && msg->len <= MAX_PAYLOAD);
	else
		MUST(msg->len == (msg->type == SOVIA_CONN ? sizeof(struct sovia_conn_body) : 0));
}

static void fuzz_msg(const u8 *data, size_t size)
{
	struct sk_buff *skb = skb_of(data, size);
	struct sovia_msg msg, again;
	struct sovia_hdr hdr;
	int err;

	/* Fields left unset must be detected. */
	memset(&msg, 0xa5, sizeof(msg));
	memset(&again, 0x5a, sizeof(again));
	err = sovia_msg_parse(skb, MAX_PAYLOAD, SOVIA_WIRE_VERSION, &msg);
	MUST(skb->len == size && !memcmp(skb->data, data, size));
	if (!err) {
		check_msg(&msg, size);
		sovia_msg_build(&hdr, &msg, SOVIA_WIRE_VERSION);
		/* An unknown reason is decoded as none. */
		if (be32_to_cpu(((struct sovia_hdr *)skb->data)->code) >= SOVIA_CODE_COUNT)
			((struct sovia_hdr *)skb->data)->code = 0;
		MUST(!memcmp(&hdr, skb->data, sizeof(hdr)));
		MUST(!sovia_msg_parse(skb, MAX_PAYLOAD, SOVIA_WIRE_VERSION, &again));
		MUST(again.seq == msg.seq && again.ack == msg.ack && again.ref == msg.ref &&
		     again.window == msg.window && again.flags == msg.flags);
	} else {
		MUST(err == -EMSGSIZE || err == -EPROTONOSUPPORT || err == -EOPNOTSUPP ||
		     err == -EINVAL);
	}
	kfree_skb(skb);
}

/* Often near the limit. */
static u32 take_size(struct input *in, u32 limit)
{
	u8 how = take8(in);

	return how & 1 ? limit + how / 2 % 3 - 1 : take16(in) % limit;
}

/* A valid header with one byte changed, and its length adjusted. */
static void fuzz_almost(struct input *in)
{
	u8 bytes[sizeof(struct sovia_hdr) + MAX_PAYLOAD + 2] = { 0 };
	struct sovia_msg msg = { .type = take8(in) % (SOVIA_TYPE_COUNT + 1), .flags = take16(in) };
	u8 where = take8(in), what = take8(in);

	if (msg.type == SOVIA_CONN)
		msg.len = sizeof(struct sovia_conn_body);
	else if (msg.type == SOVIA_DATA)
		msg.len = take_size(in, MAX_PAYLOAD);
	msg.seq = take32(in);
	msg.ack = take32(in);
	msg.window = take32(in);
	msg.ref = take32(in);
	msg.code = take8(in) % (SOVIA_CODE_COUNT + 1);
	if (has_ports(msg.type)) {
		msg.sport = take16(in);
		msg.dport = take16(in);
	}
	sovia_msg_build((struct sovia_hdr *)bytes, &msg, SOVIA_WIRE_VERSION);
	if (where < sizeof(struct sovia_hdr))
		bytes[where] ^= what;
	fuzz_msg(bytes, sizeof(struct sovia_hdr) + msg.len);
}

static void fuzz_imm(struct input *in)
{
	struct sovia_slots slots = { { 0 } };
	struct sovia_msg msg, was;
	u16 sport = take16(in), dport = take16(in);
	u32 imm = take32(in), len = take_size(in, MAX_PAYLOAD);
	int err;

	if (sport && dport) {
		sovia_slots_set(&slots, sport, dport);
		MUST(sovia_slots_has(&slots, sport, dport));
		MUST(sovia_slot(sport, dport) == sovia_slot(dport, sport));
	}
	memset(&msg, 0xa5, sizeof(msg));
	msg.seq = take32(in);
	msg.ack = take32(in);
	was = msg;
	err = sovia_imm_parse(imm, &slots, len, MAX_PAYLOAD, &msg);
	if (err) {
		MUST(err == -EMSGSIZE || err == -EINVAL);
		return;
	}
	MUST(msg.type == SOVIA_DATA && msg.compact);
	MUST(msg.len == len && len && len <= MAX_PAYLOAD);
	MUST(msg.sport == sport && msg.dport == dport && sport && dport);
	MUST(msg.seq - was.seq <= SOVIA_IMM_CHECK_MASK && msg.ack - was.ack <= SOVIA_IMM_ACK_MASK);
	MUST(!msg.window && !msg.ref && !msg.code);
	MUST(sovia_imm_build(&msg) == imm);
}

static void fuzz_hello(const u8 *data, size_t size)
{
	struct sovia_hello hello, again;
	struct sovia_params params, twice;
	u8 *exact;
	int err;

	/* A separate block, so that ASan detects reads beyond its end. */
	exact = malloc(size);
	memcpy(exact, data, size);
	memset(&params, 0xa5, sizeof(params));
	err = sovia_hello_parse((struct sovia_hello *)exact, size, &params);
	if (!err) {
		MUST(size >= sizeof(hello));
		MUST(params.window && params.window <= SOVIA_WINDOW_MAX);
		MUST(params.payload >= SOVIA_PAYLOAD_MIN && params.payload <= SOVIA_PAYLOAD_MAX);
		MUST(params.lane < SOVIA_LANES_MAX);
		/* rx_next can only be set for a link that both ends know. */
		MUST(params.id && (params.peer_id || !params.rx_next));
		sovia_hello_build(&hello, &params, SOVIA_WIRE_VERSION);
		MUST(!memcmp(&hello, exact, offsetof(struct sovia_hello, zero)));
		MUST(!sovia_hello_parse(&hello, sizeof(hello), &twice));
		sovia_hello_build(&again, &twice, SOVIA_WIRE_VERSION);
		MUST(!memcmp(&hello, &again, sizeof(hello)));
	} else {
		MUST(err == -EMSGSIZE || err == -EPROTO || err == -EPROTONOSUPPORT ||
		     err == -ERANGE);
	}
	free(exact);
}

/* A valid hello with one byte changed, and possibly a wrong length. */
static void fuzz_almost_hello(struct input *in)
{
	u8 bytes[2 * sizeof(struct sovia_hello)] = { 0 };
	struct sovia_params params = { .window = take_size(in, SOVIA_WINDOW_MAX) };
	u8 where, what;

	params.lane = take_size(in, SOVIA_LANES_MAX);
	params.payload = take_size(in, take8(in) & 1 ? SOVIA_PAYLOAD_MIN : SOVIA_PAYLOAD_MAX);
	params.id = take8(in);
	params.peer_id = take8(in);
	params.rx_next = take8(in);
	where = take8(in);
	what = take8(in);
	sovia_hello_build((struct sovia_hello *)bytes, &params, SOVIA_WIRE_VERSION);
	if (where < sizeof(struct sovia_hello))
		bytes[where] ^= what;
	fuzz_hello(bytes, where & 128 ? sizeof(struct sovia_hello) + what % 3 - 1 :
		   sizeof(struct sovia_hello));
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };

	switch (take8(&in) % 5) {
	case 0:
		fuzz_msg(in.data, in.left);
		break;
	case 1:
		fuzz_almost(&in);
		break;
	case 2:
		fuzz_imm(&in);
		break;
	case 3:
		fuzz_hello(in.data, in.left);
		break;
	case 4:
		fuzz_almost_hello(&in);
		break;
	}
	MUST(!fuzz_skbs);
	return 0;
}

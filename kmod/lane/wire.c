// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages and hellos, between wire and host order.
 *
 * What arrives is checked here once, against what its type allows; the layers
 * above see struct sovia_msg only.  Checks that need state (sequence, credit,
 * window, ports) belong to the owner of that state.
 */
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include "wire.h"

/* What each type may carry. */
static const struct {
	bool	known;
	bool	ports;		/* needs both ports, otherwise must have none */
	u8	least;		/* bytes of payload */
	bool	more;		/* may have more, otherwise exactly @least */
} sovia_types[SOVIA_TYPE_COUNT] = {
	[SOVIA_DATA]	= { .known = true, .ports = true, .least = 1, .more = true },
	[SOVIA_ACK]	= { .known = true, .more = true },
	[SOVIA_WAKEUP]	= { .known = true, .ports = true },
	[SOVIA_FIN]	= { .known = true, .ports = true },
	[SOVIA_CONN]	= { .known = true, .ports = true,
			    .least = sizeof(struct sovia_conn_body) },
	[SOVIA_ACCEPT]	= { .known = true, .ports = true },
	[SOVIA_REFUSE]	= { .known = true, .ports = true },
	[SOVIA_RESET]	= { .known = true, .ports = true },
	[SOVIA_PROBE]	= { .known = true },
	[SOVIA_URGENT]	= { .known = true, .ports = true },
	[SOVIA_PRESSURE] = { .known = true, .ports = true },
	[SOVIA_RETURN]	= { .known = true, .ports = true },
	[SOVIA_PARK]	= { .known = true },
};

/**
 * sovia_msg_parse() - check a received message and read its header
 * @skb: the message; its data starts at the header
 * @max_payload: what this side announced in its hello
 * @version: of the lane
 * @msg: the result, valid on success only
 *
 * Context: any.
 * Return: 0, -EMSGSIZE bad length, -EPROTONOSUPPORT bad version, -EOPNOTSUPP
 * unknown type, -EINVAL fields that the type does not allow.
 */
int sovia_msg_parse(const struct sk_buff *skb, u32 max_payload, u8 version,
		    struct sovia_msg *msg)
{
	struct sovia_hdr buf;
	const struct sovia_hdr *hdr;

	hdr = skb_header_pointer(skb, 0, sizeof(buf), &buf);
	if (!hdr)
		return -EMSGSIZE;
	if (hdr->version != version)
		return -EPROTONOSUPPORT;
	if (hdr->type >= SOVIA_TYPE_COUNT || !sovia_types[hdr->type].known)
		return -EOPNOTSUPP;

	msg->type = hdr->type;
	msg->flags = be16_to_cpu(hdr->flags);
	msg->len = be32_to_cpu(hdr->len);
	msg->seq = be32_to_cpu(hdr->seq);
	msg->ack = be32_to_cpu(hdr->ack);
	msg->sport = be16_to_cpu(hdr->sport);
	msg->dport = be16_to_cpu(hdr->dport);
	msg->window = be32_to_cpu(hdr->window);
	msg->ref = be32_to_cpu(hdr->ref);
	msg->code = be32_to_cpu(hdr->code);

	if (msg->len != skb->len - sizeof(*hdr))
		return -EMSGSIZE;
	if (msg->len < sovia_types[msg->type].least ||
	    msg->len > (sovia_types[msg->type].more ? max_payload : sovia_types[msg->type].least))
		return -EMSGSIZE;
	if (sovia_types[msg->type].ports ? !msg->sport || !msg->dport :
					   msg->sport || msg->dport)
		return -EINVAL;
	if (msg->code >= SOVIA_CODE_COUNT)
		msg->code = SOVIA_CODE_NONE;
	msg->compact = false;
	return 0;
}

/**
 * sovia_imm_parse() - read the header of compact DATA
 * @imm: the immediate data, in host order
 * @slots: what the peer has sent with headers
 * @len: bytes of the message
 * @max_payload: what this side announced in its hello
 * @msg: the result, valid on success only; @msg->seq and @msg->ack come in as this
 *	side knows them, for their upper bits
 *
 * Context: any.
 * Return: 0, -EMSGSIZE bad length, -EINVAL an empty slot.
 */
int sovia_imm_parse(u32 imm, const struct sovia_slots *slots, u32 len, u32 max_payload,
		    struct sovia_msg *msg)
{
	u32 ports = slots->ports[imm >> SOVIA_IMM_SLOT_SHIFT];

	if (!len || len > max_payload)
		return -EMSGSIZE;
	if (!ports)
		return -EINVAL;
	msg->type = SOVIA_DATA;
	msg->flags = imm >> SOVIA_IMM_FLAGS_SHIFT & SOVIA_IMM_FLAGS_MASK;
	msg->len = len;
	msg->seq += ((imm >> SOVIA_IMM_CHECK_SHIFT) - sovia_imm_check(msg->seq, len)) &
		    SOVIA_IMM_CHECK_MASK;
	msg->ack += (imm - msg->ack) & SOVIA_IMM_ACK_MASK;
	msg->sport = ports >> 16;
	msg->dport = (u16)ports;
	msg->window = 0;
	msg->ref = 0;
	msg->code = SOVIA_CODE_NONE;
	msg->compact = true;
	return 0;
}

/**
 * sovia_imm_build() - write the header of compact DATA
 * @msg: what
 *
 * Context: any.
 * Return: the immediate data, in host order.
 */
u32 sovia_imm_build(const struct sovia_msg *msg)
{
	BUILD_BUG_ON(SOVIA_IMM_ACK_MASK <= SOVIA_WINDOW_MAX);
	return sovia_imm(sovia_slot(msg->sport, msg->dport), msg->flags, msg->seq, msg->len,
			 msg->ack);
}

/**
 * sovia_msg_build() - write a header
 * @hdr: where to
 * @msg: what
 * @version: of the lane
 *
 * Context: any.
 */
void sovia_msg_build(struct sovia_hdr *hdr, const struct sovia_msg *msg, u8 version)
{
	BUILD_BUG_ON(sizeof(struct sovia_hdr) != 32);
	BUILD_BUG_ON(sizeof(struct sovia_hello) != 56);
	BUILD_BUG_ON(sizeof(struct sovia_conn_body) != 32);

	hdr->version = version;
	hdr->type = msg->type;
	hdr->flags = cpu_to_be16(msg->flags);
	hdr->len = cpu_to_be32(msg->len);
	hdr->seq = cpu_to_be32(msg->seq);
	hdr->ack = cpu_to_be32(msg->ack);
	hdr->sport = cpu_to_be16(msg->sport);
	hdr->dport = cpu_to_be16(msg->dport);
	hdr->window = cpu_to_be32(msg->window);
	hdr->ref = cpu_to_be32(msg->ref);
	hdr->code = cpu_to_be32(msg->code);
}

/**
 * sovia_hello_parse() - check the peer's hello
 * @hello: what came; private data may be padded, so @len may be larger
 * @len: bytes that came
 * @params: the result, valid on success only
 *
 * Context: any.
 * Return: 0, -EMSGSIZE too short, -EPROTO not ours, -EPROTONOSUPPORT another
 * version, -ERANGE a limit or a number that makes no sense.
 */
int sovia_hello_parse(const struct sovia_hello *hello, unsigned int len,
		      struct sovia_params *params)
{
	if (len < sizeof(*hello))
		return -EMSGSIZE;
	if (be32_to_cpu(hello->magic) != SOVIA_WIRE_MAGIC)
		return -EPROTO;
	if (hello->version < SOVIA_WIRE_VERSION_MIN || hello->version > SOVIA_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	params->version = hello->version;
	params->window = be16_to_cpu(hello->window);
	params->payload = be32_to_cpu(hello->payload);
	params->lane = hello->lane;
	params->rx_next = be32_to_cpu(hello->rx_next);
	params->id = be64_to_cpu(hello->id);
	params->peer_id = be64_to_cpu(hello->peer_id);
	params->generation = be32_to_cpu(hello->generation);
	if (!params->window || params->window > SOVIA_WINDOW_MAX)
		return -ERANGE;
	if (params->payload < SOVIA_PAYLOAD_MIN || params->payload > SOVIA_PAYLOAD_MAX)
		return -ERANGE;
	/* Nothing has arrived on a link that is to be. */
	if (!params->id || (!params->peer_id && params->rx_next))
		return -ERANGE;
	return params->lane < SOVIA_LANES_MAX ? 0 : -ERANGE;
}

/**
 * sovia_hello_build() - write a hello
 * @hello: where to
 * @params: what; its version is not looked at
 * @version: of the lane
 *
 * Context: any.
 */
void sovia_hello_build(struct sovia_hello *hello, const struct sovia_params *params, u8 version)
{
	memset(hello, 0, sizeof(*hello));
	hello->magic = cpu_to_be32(SOVIA_WIRE_MAGIC);
	hello->version = version;
	hello->lane = params->lane;
	hello->window = cpu_to_be16(params->window);
	hello->payload = cpu_to_be32(params->payload);
	hello->rx_next = cpu_to_be32(params->rx_next);
	hello->id = cpu_to_be64(params->id);
	hello->peer_id = cpu_to_be64(params->peer_id);
	hello->generation = cpu_to_be32(params->generation);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/wire_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of the rendezvous, between wire and host order: what arrives is checked here
 * once.  Whether its addresses, numbers and MAC are right is up to the peer's owner.
 */
#include <linux/build_bug.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <sovia/wire.h>
#include "rdv_wire.h"

/* HELLO has a MAC with any of these. */
#define RDV_F_MAC	(SOVIA_RDV_F_AGAIN | SOVIA_RDV_F_JOIN)

/**
 * sovia_rdv_length() - length of the first message in a stream
 * @buf: what has arrived, aligned to 8 bytes
 * @have: bytes of it
 *
 * Context: any.
 * Return: bytes of the whole message, which may not have arrived yet; 0 if its header has not;
 * -EPROTO not ours, -EPROTONOSUPPORT another framing, -EMSGSIZE a length that cannot be.
 */
int sovia_rdv_length(const void *buf, unsigned int have)
{
	const struct sovia_rdv_hdr *hdr = buf;
	unsigned int len;

	if (have < sizeof(*hdr))
		return 0;
	if (be32_to_cpu(hdr->magic) != SOVIA_RDV_MAGIC)
		return -EPROTO;
	if (hdr->framing != SOVIA_RDV_FRAMING)
		return -EPROTONOSUPPORT;
	len = be16_to_cpu(hdr->len);
	return len >= sizeof(*hdr) && len <= SOVIA_RDV_LEN_MAX ? len : -EMSGSIZE;
}

/* ---- parse ---- */

static int offer_check(const struct sovia_offer *offer)
{
	if (!offer->version_min || offer->version_min > offer->version_max)
		return -ERANGE;
	if (!offer->window || offer->window > SOVIA_WINDOW_MAX)
		return -ERANGE;
	if (offer->payload < SOVIA_PAYLOAD_MIN || offer->payload > SOVIA_PAYLOAD_MAX)
		return -ERANGE;
	return offer->lanes && offer->lanes <= SOVIA_LANES_MAX ? 0 : -ERANGE;
}

static int offer_parse(const struct sovia_rdv_hello *hello, struct sovia_offer *offer)
{
	offer->version_min = hello->version_min;
	offer->version_max = hello->version_max;
	offer->flags = be16_to_cpu(hello->flags);
	offer->features = be64_to_cpu(hello->features);
	memcpy(offer->instance, hello->instance, sizeof(offer->instance));
	memcpy(&offer->saddr, hello->saddr, sizeof(offer->saddr));
	memcpy(&offer->daddr, hello->daddr, sizeof(offer->daddr));
	memcpy(offer->nonce, hello->nonce, sizeof(offer->nonce));
	offer->window = be16_to_cpu(hello->window);
	offer->lanes = be16_to_cpu(hello->lanes);
	offer->payload = be32_to_cpu(hello->payload);
	offer->early = be32_to_cpu(hello->early);
	offer->reads = be16_to_cpu(hello->reads);
	offer->rmem = be16_to_cpu(hello->rmem);
	return offer_check(offer);
}

static void way_parse(const struct sovia_rdv_way *from, struct sovia_way *way)
{
	way->type = from->type;
	way->gid_type = from->gid_type;
	way->flags = be16_to_cpu(from->flags);
	way->pkey = be16_to_cpu(from->pkey);
	way->mtu = be16_to_cpu(from->mtu);
	memcpy(way->gid, from->gid, sizeof(way->gid));
	memcpy(&way->addr, from->addr, sizeof(way->addr));
}

/* What follows the fixed part: ways, keys, MAC.  All multiples of 8 bytes. */
static int tail_parse(const void *pos, unsigned int len, struct sovia_rdv_msg *msg)
{
	unsigned int i;

	if (len != msg->offer.nways * sizeof(struct sovia_rdv_way) +
		   (msg->type == SOVIA_RDV_HELLO ? msg->nkeys * sizeof(__be64) : 0) +
		   msg->has_mac * SOVIA_RDV_MAC_LEN)
		return -EMSGSIZE;
	for (i = 0; i < msg->offer.nways; i++, pos += sizeof(struct sovia_rdv_way))
		way_parse(pos, &msg->offer.ways[i]);
	if (msg->type == SOVIA_RDV_HELLO)
		for (i = 0; i < msg->nkeys; i++, pos += sizeof(__be64))
			msg->keys[i] = be64_to_cpu(*(const __be64 *)pos);
	if (msg->has_mac)
		memcpy(msg->mac, pos, SOVIA_RDV_MAC_LEN);
	return 0;
}

static int hello_parse(const struct sovia_rdv_hello *hello, unsigned int len,
		       struct sovia_rdv_msg *msg)
{
	if (len < sizeof(*hello))
		return -EMSGSIZE;
	if (hello->nways > SOVIA_RDV_WAYS || hello->nkeys > SOVIA_RDV_KEYS)
		return -ERANGE;
	msg->offer.nways = hello->nways;
	msg->nkeys = hello->nkeys;
	msg->has_mac = be16_to_cpu(hello->flags) & RDV_F_MAC;
	return offer_parse(hello, &msg->offer) ?: tail_parse(hello + 1, len - sizeof(*hello), msg);
}

static int answer_parse(const struct sovia_rdv_answer *answer, unsigned int len,
			struct sovia_rdv_msg *msg)
{
	if (len < sizeof(*answer))
		return -EMSGSIZE;
	msg->code = be16_to_cpu(answer->code);
	msg->retry_ms = be32_to_cpu(answer->retry_ms);
	/* A refusal chooses no way. */
	msg->offer.nways = answer->hello.nways;
	if (answer->hello.nkeys || msg->offer.nways > !msg->code)
		return -ERANGE;
	msg->nkeys = 1;
	msg->keys[0] = be64_to_cpu(answer->key);
	msg->has_mac = true;
	return offer_parse(&answer->hello, &msg->offer) ?:
	       tail_parse(answer + 1, len - sizeof(*answer), msg);
}

static int ping_parse(const struct sovia_rdv_ping *ping, unsigned int len,
		      struct sovia_rdv_msg *msg)
{
	if (len != sizeof(*ping))
		return -EMSGSIZE;
	msg->ping = be64_to_cpu(ping->number);
	return 0;
}

static int close_parse(const struct sovia_rdv_close *close, unsigned int len,
		       struct sovia_rdv_msg *msg)
{
	if (len != sizeof(*close))
		return -EMSGSIZE;
	msg->code = be16_to_cpu(close->code);
	msg->retry_ms = be32_to_cpu(close->retry_ms);
	return 0;
}

static int confirm_parse(const struct sovia_rdv_hdr *hdr, unsigned int len,
			 struct sovia_rdv_msg *msg)
{
	if (len != sizeof(*hdr) + SOVIA_RDV_MAC_LEN)
		return -EMSGSIZE;
	msg->has_mac = true;
	memcpy(msg->mac, hdr + 1, SOVIA_RDV_MAC_LEN);
	return 0;
}

/**
 * sovia_rdv_parse() - check a message and read it
 * @buf: the message, aligned to 8 bytes
 * @len: its length, as of sovia_rdv_length()
 * @msg: the result, valid on success only
 *
 * Context: any.
 * Return: 0, -EMSGSIZE bad length, -ERANGE a number that makes no sense, -EOPNOTSUPP an
 * unknown type.
 */
int sovia_rdv_parse(const void *buf, unsigned int len, struct sovia_rdv_msg *msg)
{
	const struct sovia_rdv_hdr *hdr = buf;

	memset(msg, 0, sizeof(*msg));
	msg->type = hdr->type;
	switch (msg->type) {
	case SOVIA_RDV_HELLO:
		return hello_parse(buf, len, msg);
	case SOVIA_RDV_ANSWER:
		return answer_parse(buf, len, msg);
	case SOVIA_RDV_PING:
	case SOVIA_RDV_PONG:
		return ping_parse(buf, len, msg);
	case SOVIA_RDV_CLOSE:
		return close_parse(buf, len, msg);
	case SOVIA_RDV_CONFIRM:
		return confirm_parse(buf, len, msg);
	default:
		return -EOPNOTSUPP;
	}
}

/* ---- build ---- */

static void offer_build(struct sovia_rdv_hello *hello, const struct sovia_offer *offer)
{
	hello->version_min = offer->version_min;
	hello->version_max = offer->version_max;
	hello->flags = cpu_to_be16(offer->flags);
	hello->nways = offer->nways;
	hello->features = cpu_to_be64(offer->features);
	memcpy(hello->instance, offer->instance, sizeof(hello->instance));
	memcpy(hello->saddr, &offer->saddr, sizeof(hello->saddr));
	memcpy(hello->daddr, &offer->daddr, sizeof(hello->daddr));
	memcpy(hello->nonce, offer->nonce, sizeof(hello->nonce));
	hello->window = cpu_to_be16(offer->window);
	hello->lanes = cpu_to_be16(offer->lanes);
	hello->payload = cpu_to_be32(offer->payload);
	hello->early = cpu_to_be32(offer->early);
	hello->reads = cpu_to_be16(offer->reads);
	hello->rmem = cpu_to_be16(offer->rmem);
}

static void *ways_build(struct sovia_rdv_way *to, const struct sovia_offer *offer)
{
	const struct sovia_way *way;

	for (way = offer->ways; way < offer->ways + offer->nways; way++, to++) {
		to->type = way->type;
		to->gid_type = way->gid_type;
		to->flags = cpu_to_be16(way->flags);
		to->pkey = cpu_to_be16(way->pkey);
		to->mtu = cpu_to_be16(way->mtu);
		memcpy(to->gid, way->gid, sizeof(to->gid));
		memcpy(to->addr, &way->addr, sizeof(to->addr));
	}
	return to;
}

static void *mac_build(void *pos, const struct sovia_rdv_msg *msg)
{
	if (!msg->has_mac)
		return pos;
	memcpy(pos, msg->mac, SOVIA_RDV_MAC_LEN);
	return pos + SOVIA_RDV_MAC_LEN;
}

static void *hello_build(struct sovia_rdv_hello *hello, const struct sovia_rdv_msg *msg)
{
	__be64 *pos;
	int i;

	offer_build(hello, &msg->offer);
	hello->nkeys = msg->nkeys;
	pos = ways_build((struct sovia_rdv_way *)(hello + 1), &msg->offer);
	for (i = 0; i < msg->nkeys; i++)
		*pos++ = cpu_to_be64(msg->keys[i]);
	return mac_build(pos, msg);
}

static void *rdv_build_answer(struct sovia_rdv_answer *answer, const struct sovia_rdv_msg *msg)
{
	offer_build(&answer->hello, &msg->offer);
	answer->code = cpu_to_be16(msg->code);
	answer->retry_ms = cpu_to_be32(msg->retry_ms);
	answer->key = cpu_to_be64(msg->keys[0]);
	return mac_build(ways_build((struct sovia_rdv_way *)(answer + 1), &msg->offer), msg);
}

static void *ping_build(struct sovia_rdv_ping *ping, const struct sovia_rdv_msg *msg)
{
	ping->number = cpu_to_be64(msg->ping);
	return ping + 1;
}

static void *close_build(struct sovia_rdv_close *close, const struct sovia_rdv_msg *msg)
{
	close->code = cpu_to_be16(msg->code);
	close->retry_ms = cpu_to_be32(msg->retry_ms);
	return close + 1;
}

/**
 * sovia_rdv_build() - write a message
 * @buf: SOVIA_RDV_LEN_MAX bytes, aligned to 8
 * @msg: what; HELLO has a MAC if its flags say so
 *
 * Context: any.
 * Return: its length.
 */
unsigned int sovia_rdv_build(void *buf, const struct sovia_rdv_msg *msg)
{
	struct sovia_rdv_hdr *hdr = buf;
	void *end = buf;

	BUILD_BUG_ON(sizeof(struct sovia_rdv_hello) != 120);
	BUILD_BUG_ON(sizeof(struct sovia_rdv_way) != 40);
	BUILD_BUG_ON(sizeof(struct sovia_rdv_answer) != 136);
	BUILD_BUG_ON(sizeof(struct sovia_rdv_hello) +
		     SOVIA_RDV_WAYS * sizeof(struct sovia_rdv_way) +
		     SOVIA_RDV_KEYS * sizeof(__be64) + SOVIA_RDV_MAC_LEN > SOVIA_RDV_LEN_MAX);

	memset(buf, 0, SOVIA_RDV_LEN_MAX);
	switch (msg->type) {
	case SOVIA_RDV_HELLO:
		end = hello_build(buf, msg);
		break;
	case SOVIA_RDV_ANSWER:
		end = rdv_build_answer(buf, msg);
		break;
	case SOVIA_RDV_PING:
	case SOVIA_RDV_PONG:
		end = ping_build(buf, msg);
		break;
	case SOVIA_RDV_CLOSE:
		end = close_build(buf, msg);
		break;
	case SOVIA_RDV_CONFIRM:
		end = mac_build(hdr + 1, msg);
		break;
	}
	hdr->magic = cpu_to_be32(SOVIA_RDV_MAGIC);
	hdr->type = msg->type;
	hdr->framing = SOVIA_RDV_FRAMING;
	hdr->len = cpu_to_be16(end - buf);
	return end - buf;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/rdv_wire_test.c"
#endif

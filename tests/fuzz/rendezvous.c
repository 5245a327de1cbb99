// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of kmod/peer/rdv_wire.c: the stream of an anchor, taken apart into messages.
 *
 * An accepted message conforms to include/sovia/rendezvous.h, and encoding it again gives the
 * same bytes, except those that the format ignores.
 *
 * The first byte of the input says whether the rest is a stream, or one message whose header is
 * mended: its type is the byte's, its length what there is.
 */
#include "input.h"
#include "../../kmod/peer/rdv_wire.h"
#include <sovia/wire.h>

int fuzz_skbs;
bool fuzz_no_memory(void) { return false; }

union message {
	u8			bytes[SOVIA_RDV_LEN_MAX];
	struct sovia_rdv_hdr	hdr;
	struct sovia_rdv_hello	hello;
	struct sovia_rdv_answer	answer;
	struct sovia_rdv_close	close;
};

static void check_offer(const struct sovia_offer *offer)
{
	MUST(offer->version_min && offer->version_min <= offer->version_max);
	MUST(offer->window && offer->window <= SOVIA_WINDOW_MAX);
	MUST(offer->payload >= SOVIA_PAYLOAD_MIN && offer->payload <= SOVIA_PAYLOAD_MAX);
	MUST(offer->lanes && offer->lanes <= SOVIA_LANES_MAX);
	MUST(offer->nways <= SOVIA_RDV_WAYS);
}

static void clear_ignored(union message *m)
{
	if (m->hdr.type == SOVIA_RDV_HELLO || m->hdr.type == SOVIA_RDV_ANSWER)
		m->hello.zero = 0;
	if (m->hdr.type == SOVIA_RDV_ANSWER)
		m->answer.zero = 0;
	if (m->hdr.type == SOVIA_RDV_CLOSE)
		m->close.zero = 0;
}

static void fuzz_message(const union message *in, unsigned int len)
{
	union message was = *in, built;
	struct sovia_rdv_msg msg, again;
	int err;

	/* Fields left unset must be detected. */
	memset(&msg, 0xa5, sizeof(msg));
	memset(&again, 0x5a, sizeof(again));
	err = sovia_rdv_parse(in, len, &msg);
	MUST(!memcmp(in, &was, sizeof(was)));
	if (err) {
		MUST(err == -EMSGSIZE || err == -ERANGE || err == -EOPNOTSUPP);
		return;
	}
	if (msg.type == SOVIA_RDV_HELLO || msg.type == SOVIA_RDV_ANSWER)
		check_offer(&msg.offer);
	MUST(msg.nkeys <= SOVIA_RDV_KEYS);
	MUST(msg.type != SOVIA_RDV_ANSWER ||
	     (msg.has_mac && msg.offer.nways <= (msg.code == SOVIA_RDV_OK)));
	MUST(msg.type != SOVIA_RDV_CONFIRM ||
	     (msg.has_mac && len == sizeof(in->hdr) + SOVIA_RDV_MAC_LEN));
	MUST(sovia_rdv_build(&built, &msg) == len);
	clear_ignored(&was);
	MUST(!memcmp(&built, &was, len));
	MUST(!sovia_rdv_parse(&built, len, &again));
	MUST(!memcmp(&msg, &again, sizeof(msg)));
}

static void fuzz_stream(const u8 *data, size_t size)
{
	union message m;
	size_t have;
	int len;

	while (size) {
		have = size < sizeof(m) ? size : sizeof(m);
		memset(&m, 0, sizeof(m));
		memcpy(&m, data, have);
		len = sovia_rdv_length(&m, have);
		MUST(len <= (int)sizeof(m));
		if (len <= 0 || len > (int)size)
			return;
		MUST(len >= (int)sizeof(m.hdr));
		memset(m.bytes + len, 0, sizeof(m) - len);
		fuzz_message(&m, len);
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	union message m;

	if (!size)
		return 0;
	if (data[0] & 0x80) {
		fuzz_stream(data + 1, size - 1);
		return 0;
	}
	if (size > sizeof(m))
		size = sizeof(m);
	memset(&m, 0, sizeof(m));
	memcpy(&m, data, size);
	m.hdr.magic = cpu_to_be32(SOVIA_RDV_MAGIC);
	m.hdr.framing = SOVIA_RDV_FRAMING;
	m.hdr.type = data[0] % (SOVIA_RDV_CONFIRM + 2);
	m.hdr.len = cpu_to_be16(size);
	fuzz_message(&m, size);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only */
/* Encoding and checking of messages; nothing else reads raw wire fields. */
#ifndef _SOVIA_WIRE_KMOD_H
#define _SOVIA_WIRE_KMOD_H

#include <linux/skbuff.h>
#include <sovia/wire.h>

/**
 * struct sovia_msg - a message header in host order
 * @type: enum sovia_type
 * @flags: SOVIA_F_*
 * @len: payload bytes
 * @seq: number in the lane
 * @ack: cumulative acknowledgment
 * @sport: the sender's port
 * @dport: the receiver's port
 * @window: stream offset limit
 * @ref: number of the message answered, or a stream offset
 * @code: enum sovia_code
 * @compact: the header was left out: @window, @ref and @code say nothing
 */
struct sovia_msg {
	u8	type;
	u16	flags;
	u32	len;
	u32	seq;
	u32	ack;
	u16	sport;
	u16	dport;
	u32	window;
	u32	ref;
	u32	code;
	bool	compact;
};

/**
 * struct sovia_slots - whose DATA may be compact in one direction of a lane
 * @ports: of the last DATA with a header: the sender's in the upper half, the
 *	receiver's in the lower one; 0 if there was none
 */
struct sovia_slots {
	u32	ports[SOVIA_SLOTS];
};

/**
 * struct sovia_params - what a hello says, in host order
 * @window: messages the peer takes unacknowledged
 * @payload: largest payload the peer takes
 * @lane: which lane between the two nodes this is
 * @rx_next: number of the message the peer expects next
 * @id: of the peer's end of the link
 * @peer_id: of our end as the peer knows it, 0 if it does not
 * @generation: of the request
 * @version: of the lane
 */
struct sovia_params {
	u16	window;
	u32	payload;
	u8	lane;
	u32	rx_next;
	u64	id;
	u64	peer_id;
	u32	generation;
	u8	version;
};

int sovia_msg_parse(const struct sk_buff *skb, u32 max_payload, u8 version,
		    struct sovia_msg *msg);
void sovia_msg_build(struct sovia_hdr *hdr, const struct sovia_msg *msg, u8 version);
int sovia_imm_parse(u32 imm, const struct sovia_slots *slots, u32 len, u32 max_payload,
		    struct sovia_msg *msg);
u32 sovia_imm_build(const struct sovia_msg *msg);
int sovia_hello_parse(const struct sovia_hello *hello, unsigned int len,
		      struct sovia_params *params);
void sovia_hello_build(struct sovia_hello *hello, const struct sovia_params *params, u8 version);

/**
 * sovia_before() - is offset or sequence number @a before @b, modulo 2^32
 * @a: first number
 * @b: second number
 *
 * Return: true if it is.
 */
static inline bool sovia_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/**
 * sovia_slots_set() - DATA of a connection may be compact from now on
 * @slots: of this direction
 * @sport: the sender's port
 * @dport: the receiver's port
 */
static inline void sovia_slots_set(struct sovia_slots *slots, u16 sport, u16 dport)
{
	slots->ports[sovia_slot(sport, dport)] = (u32)sport << 16 | dport;
}

/**
 * sovia_slots_has() - may DATA of a connection be compact
 * @slots: of this direction
 * @sport: the sender's port
 * @dport: the receiver's port
 *
 * Return: true if so.
 */
static inline bool sovia_slots_has(const struct sovia_slots *slots, u16 sport, u16 dport)
{
	return slots->ports[sovia_slot(sport, dport)] == ((u32)sport << 16 | dport);
}

/**
 * sovia_sequenced() - does a message of this type take a number of the lane
 * @type: enum sovia_type
 *
 * Return: true for every type but ACK.
 */
static inline bool sovia_sequenced(u8 type)
{
	return type != SOVIA_ACK;
}

/**
 * sovia_is_probe() - does a message of this type only ask for an acknowledgment
 * @type: enum sovia_type
 *
 * Return: true for PROBE and PARK.
 */
static inline bool sovia_is_probe(u8 type)
{
	return type == SOVIA_PROBE || type == SOVIA_PARK;
}

#endif /* _SOVIA_WIRE_KMOD_H */

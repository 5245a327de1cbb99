/* SPDX-License-Identifier: GPL-2.0-only */
/* Encoding and checking of the rendezvous; nothing else reads its raw fields. */
#ifndef _SOVIA_RDV_WIRE_H
#define _SOVIA_RDV_WIRE_H

#include <linux/in6.h>
#include <sovia/rendezvous.h>

/**
 * struct sovia_way - how RDMA can reach a node, in host order
 * @type: SOVIA_RDV_WAY_*
 * @gid_type: of RoCE
 * @flags: none yet
 * @pkey: of InfiniBand
 * @mtu: of the path, in bytes
 * @gid: the device's
 * @addr: of the device's interface, IPv4 as v4-mapped
 */
struct sovia_way {
	u8		type;
	u8		gid_type;
	u16		flags;
	u16		pkey;
	u16		mtu;
	u8		gid[16];
	struct in6_addr	addr;
};

/**
 * struct sovia_offer - what HELLO and ANSWER say of their sender, in host order
 * @version_min: oldest wire format
 * @version_max: newest one
 * @flags: SOVIA_RDV_F_*
 * @features: bits
 * @instance: which kernel
 * @saddr: the sender's address
 * @daddr: the receiver's
 * @nonce: random
 * @window: messages it takes unacknowledged
 * @lanes: maximum between the two addresses
 * @payload: largest payload it takes
 * @early: bytes of CONN it takes
 * @reads: one-sided READs it takes at once
 * @rmem: one-sided requests it takes
 * @nways: of @ways
 * @ways: offered, or the one chosen
 */
struct sovia_offer {
	u8			version_min;
	u8			version_max;
	u16			flags;
	u64			features;
	u8			instance[16];
	struct in6_addr		saddr;
	struct in6_addr		daddr;
	u8			nonce[32];
	u16			window;
	u16			lanes;
	u32			payload;
	u32			early;
	u16			reads;
	u16			rmem;
	u8			nways;
	struct sovia_way	ways[SOVIA_RDV_WAYS];
};

/**
 * struct sovia_rdv_msg - a message of the rendezvous
 * @type: enum sovia_rdv_type
 * @offer: HELLO, ANSWER
 * @nkeys: HELLO: of @keys
 * @keys: HELLO: offered; ANSWER: the first is the one chosen, or 0
 * @code: ANSWER, CLOSE: enum sovia_rdv_code
 * @retry_ms: ANSWER, CLOSE
 * @ping: PING, PONG: its number
 * @mac: of the message, if @has_mac; it is always the end of it
 * @has_mac: ANSWER, CONFIRM, and HELLO with some flags
 */
struct sovia_rdv_msg {
	u8			type;
	struct sovia_offer	offer;
	u8			nkeys;
	u64			keys[SOVIA_RDV_KEYS];
	u16			code;
	u32			retry_ms;
	u64			ping;
	u8			mac[SOVIA_RDV_MAC_LEN];
	bool			has_mac;
};

int sovia_rdv_length(const void *buf, unsigned int have);
int sovia_rdv_parse(const void *buf, unsigned int len, struct sovia_rdv_msg *msg);
unsigned int sovia_rdv_build(void *buf, const struct sovia_rdv_msg *msg);

#endif /* _SOVIA_RDV_WIRE_H */

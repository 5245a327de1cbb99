/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What two kernels say to each other over TCP before there is a link: see
 * Documentation/rendezvous.rst.
 *
 * A message is struct sovia_rdv_hdr and hdr.len - 8 bytes more.  All numbers are big endian; the
 * structs have no padding, and every field is naturally aligned.  Fields named zero are
 * sent as 0 and ignored.
 *
 *	HELLO	struct sovia_rdv_hello, nways times struct sovia_rdv_way, nkeys times the number
 *		of a key (8 bytes); with AGAIN or JOIN a MAC
 *	ANSWER	struct sovia_rdv_answer; if its code is OK, perhaps the way chosen; a MAC
 *	PING	struct sovia_rdv_ping
 *	PONG	the same
 *	CLOSE	struct sovia_rdv_close
 *	CONFIRM	struct sovia_rdv_hdr and a MAC; after an ANSWER with a key
 */
#ifndef _SOVIA_RENDEZVOUS_H
#define _SOVIA_RENDEZVOUS_H

#include <linux/types.h>

#define SOVIA_RDV_MAGIC		0x534f5652U	/* "SOVR" */
#define SOVIA_RDV_FRAMING	1		/* the header's own version */
#define SOVIA_RDV_LEN_MAX	512

#define SOVIA_RDV_WAYS		4
#define SOVIA_RDV_KEYS		4
#define SOVIA_RDV_MAC_LEN	32

enum sovia_rdv_type {
	SOVIA_RDV_HELLO		= 1,
	SOVIA_RDV_ANSWER	= 2,
	SOVIA_RDV_PING		= 3,
	SOVIA_RDV_PONG		= 4,
	SOVIA_RDV_CLOSE		= 5,
	SOVIA_RDV_CONFIRM	= 6,
};

/* struct sovia_rdv_hello::flags */
#define SOVIA_RDV_F_AGAIN	0x0001	/* another anchor, the same secret; HELLO: with a MAC */
#define SOVIA_RDV_F_JOIN	0x0002	/* the other direction, too; with a MAC */

/* struct sovia_rdv_answer::code, struct sovia_rdv_close::code */
enum sovia_rdv_code {
	SOVIA_RDV_OK		= 0,
	SOVIA_RDV_BUSY		= 1,	/* no room, or another instance is alive: retry */
	SOVIA_RDV_CROSSED	= 2,	/* the answerer's own attempt goes on */
	SOVIA_RDV_NO_VERSION	= 3,
	SOVIA_RDV_NO_KEY	= 4,
	SOVIA_RDV_NAT		= 5,	/* the addresses are not the connection's */
	SOVIA_RDV_SHARED	= 6,	/* two instances behind one address */
	SOVIA_RDV_NO_WAY	= 7,	/* no device, or another kind */
	SOVIA_RDV_DENIED	= 8,	/* by a rule */
	SOVIA_RDV_LEAVING	= 9,	/* the module is being unloaded */
	SOVIA_RDV_IDLE		= 10,	/* no sockets there */
	SOVIA_RDV_CODES
};

/* struct sovia_rdv_way::type; others are ignored */
#define SOVIA_RDV_WAY_IB	1
#define SOVIA_RDV_WAY_ROCE	2
#define SOVIA_RDV_WAY_IWARP	3
#define SOVIA_RDV_WAY_CLAN	4	/* gid: the memory's uuid; addr: struct sovia_rdv_clan */

struct sovia_rdv_hdr {
	__be32	magic;
	__u8	type;
	__u8	framing;
	__be16	len;		/* of the whole message */
};

struct sovia_rdv_hello {
	struct sovia_rdv_hdr hdr;
	__u8	version_min;	/* of the lanes' wire format */
	__u8	version_max;
	__be16	flags;
	__u8	nways;
	__u8	nkeys;
	__be16	zero;
	__be64	features;
	__u8	instance[16];
	__u8	saddr[16];	/* IPv4 as v4-mapped */
	__u8	daddr[16];
	__u8	nonce[32];
	__be16	window;
	__be16	lanes;
	__be32	payload;
	__be32	early;		/* bytes that CONN may bring */
	__be16	reads;		/* one-sided READs at once */
	__be16	rmem;		/* one-sided requests taken */
};

struct sovia_rdv_way {
	__u8	type;
	__u8	gid_type;
	__be16	flags;
	__be16	pkey;
	__be16	mtu;		/* of the path, in bytes */
	__u8	gid[16];
	__u8	addr[16];
};

/* A node of shared memory. */
struct sovia_rdv_clan {
	__be32	number;
	__be32	generation;
	__u8	zero[8];
};

struct sovia_rdv_answer {
	struct sovia_rdv_hello hello;	/* nways 0 or 1, nkeys 0 */
	__be16	code;
	__be16	zero;
	__be32	retry_ms;
	__be64	key;		/* the key chosen, 0 if none */
};

struct sovia_rdv_ping {
	struct sovia_rdv_hdr hdr;
	__be64	number;
};

struct sovia_rdv_close {
	struct sovia_rdv_hdr hdr;
	__be16	code;
	__be16	zero;
	__be32	retry_ms;
};

#endif /* _SOVIA_RENDEZVOUS_H */

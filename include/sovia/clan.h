/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory that virtual machines of a host share (Documentation/clan.rst), for the kernel and
 * for the server.
 *
 *	page 0		struct sovia_clan_header	written by the server
 *	page 1		__le32 present[nodes]		likewise: random while a node has the
 *							memory, else 0
 *	section i	written by node i alone:
 *	  page 0	struct sovia_clan_slot
 *	  area j	one for each node: what i sends to j, and what it has taken from j
 *	    page	struct sovia_clan_words, cookies
 *	    pages	struct sovia_clan_entry[ring]
 *	  pool		pages of i's messages, to all nodes
 *
 * Numbers are little endian.  Indices of rings run freely; sizes of rings are powers of two.
 */
#ifndef _SOVIA_CLAN_H
#define _SOVIA_CLAN_H

#include <linux/types.h>

#define SOVIA_CLAN_MAGIC	"SOVACLAN"
#define SOVIA_CLAN_VERSION	1
#define SOVIA_CLAN_PAGE		4096u

#define SOVIA_CLAN_NODES_MAX	64u
#define SOVIA_CLAN_RING_MIN	32u
#define SOVIA_CLAN_RING_MAX	4096u
#define SOVIA_CLAN_POOL_MIN	64u
#define SOVIA_CLAN_POOL_MAX	65536u

/* Entries of a ring of cookies: no less than the pages that one node may be lent. */
#define SOVIA_CLAN_COOKIES	512u

/* Bytes that an entry has room for, and pages that it can name. */
#define SOVIA_CLAN_INLINE	112u
#define SOVIA_CLAN_PAGES	(SOVIA_CLAN_INLINE / 4)

/**
 * struct sovia_clan_header - page 0
 * @magic: SOVIA_CLAN_MAGIC, without its NUL
 * @version: SOVIA_CLAN_VERSION
 * @nodes: how many sections there are
 * @ring: entries of a ring
 * @pool: pages of a pool
 * @uuid: random: names the memory
 */
struct sovia_clan_header {
	__u8	magic[8];
	__le32	version;
	__le32	nodes;
	__le32	ring;
	__le32	pool;
	__u8	uuid[16];
};

/**
 * struct sovia_clan_slot - what a node says of itself
 * @generation: random, not 0; changes with each boot, and when the device is bound anew
 */
struct sovia_clan_slot {
	__le32	generation;
};

/**
 * enum sovia_clan_kind - what an entry is
 * @SOVIA_CLAN_DATA: a message of a VI
 * @SOVIA_CLAN_REQ: asks for a VI
 * @SOVIA_CLAN_REP: there is one
 * @SOVIA_CLAN_REJ: there is none
 * @SOVIA_CLAN_RTU: REP has arrived
 * @SOVIA_CLAN_BYE: the VI has ended
 * @SOVIA_CLAN_KINDS: number of values
 */
enum sovia_clan_kind {
	SOVIA_CLAN_DATA = 1,
	SOVIA_CLAN_REQ,
	SOVIA_CLAN_REP,
	SOVIA_CLAN_REJ,
	SOVIA_CLAN_RTU,
	SOVIA_CLAN_BYE,
	SOVIA_CLAN_KINDS,
};

/* Flags of an entry. */
#define SOVIA_CLAN_F_IMM	0x01	/* the message has immediate data */

/**
 * struct sovia_clan_entry - a message from one node to another
 * @vi: the receiver's VI; in REQ 0
 * @kind: enum sovia_clan_kind
 * @flags: SOVIA_CLAN_F_*
 * @epoch: of that VI, from REQ or REP: what belongs to an earlier one is dropped
 * @len: bytes of the message
 * @imm: immediate data
 * @data: the message, if it has at most SOVIA_CLAN_INLINE bytes
 * @cookie: else its pages: their numbers in the sender's pool
 */
struct sovia_clan_entry {
	__le16	vi;
	__u8	kind;
	__u8	flags;
	__le32	epoch;
	__le32	len;
	__le32	imm;
	union {
		__u8	data[SOVIA_CLAN_INLINE];
		__le32	cookie[SOVIA_CLAN_PAGES];
	};
};

/**
 * struct sovia_clan_words - the indices of an area
 * @write: entries written to the ring, for j
 * @epoch: random, not 0: of what i and j have between them.  It changes, and the rest begins at 0,
 *	when either of them begins anew.
 * @peer: j's epoch that i has seen since then; 0 before
 * @space: j is to ring when its @read goes beyond this
 * @read: entries of j's ring taken
 * @event: j is to ring when its @write goes beyond this
 * @returned: cookies written, of pages that j had lent
 * @pad1: unused
 * @pad2: unused
 * @pad3: unused
 * @pad4: unused
 *
 * A cache line for each, so that the reader of one does not wait for the writer of another.
 */
struct sovia_clan_words {
	__le32	write;
	__le32	epoch;
	__le32	peer;
	__u8	pad1[52];
	__le32	space;
	__u8	pad2[60];
	__le32	read;
	__le32	returned;
	__u8	pad3[56];
	__le32	event;
	__u8	pad4[60];
};

/* Offset of the cookies in their page. */
#define SOVIA_CLAN_COOKIES_AT	(SOVIA_CLAN_PAGE - 4 * SOVIA_CLAN_COOKIES)

/* Bytes of an area. */
static inline __u64 sovia_clan_area(__u32 ring)
{
	return SOVIA_CLAN_PAGE + (__u64)ring * sizeof(struct sovia_clan_entry);
}

/* Bytes of a section. */
static inline __u64 sovia_clan_section(__u32 nodes, __u32 ring, __u32 pool)
{
	return SOVIA_CLAN_PAGE + nodes * sovia_clan_area(ring) + (__u64)pool * SOVIA_CLAN_PAGE;
}

/* Bytes of all: what is behind them is unused. */
static inline __u64 sovia_clan_size(__u32 nodes, __u32 ring, __u32 pool)
{
	return 2 * SOVIA_CLAN_PAGE + nodes * sovia_clan_section(nodes, ring, pool);
}

#endif /* _SOVIA_CLAN_H */

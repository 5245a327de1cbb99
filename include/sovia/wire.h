/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The whole wire format of AF_SOVIA, for the kernel and for userland.
 *
 * Link set-up
 *	Each side sends struct sovia_hello as private data of the connection
 *	manager's request and reply.  Another version than agreed on, a window of 0, a
 *	payload limit or lane out of range, or a reply for another lane than
 *	was asked for ends the attempt.  A rejection carries
 *	struct sovia_reject.
 *
 *	The two ends of a link have random numbers, which a request for a fresh
 *	link and its answer introduce.  A request that names the number of its
 *	receiver resumes the link, whose lane is lost: both sides tell which
 *	message they expect next, and the other one retransmits from there.
 *
 * Messages
 *	Every descriptor carries one message: struct sovia_hdr and hdr.len bytes
 *	of payload.  All numbers are big endian.
 *
 *	seq	every message but ACK takes the next number of its lane.  ACK
 *		repeats the number that the next message will take.
 *	ack	all messages below this number have arrived and their
 *		descriptors have been reposted.  The sender may have
 *		hello.window messages beyond it in flight: the credit is an
 *		absolute number, so any message replaces a stale one.
 *	window	offset in the connection's stream up to which the receiver of
 *		this message may send, modulo 2^32.  It never moves backwards, but by
 *		PRESSURE and RETURN.
 *	sport,	ports of the connection; 0 in ACK, PROBE and PARK, which belong
 *	dport	to the lane.
 *	ref	CONN: sovia_conn_ref().  ACCEPT and REFUSE: seq of the CONN that
 *		is answered.  With SOVIA_F_TAKEN: offset in the receiver's stream
 *		up to which the sender's socket has taken it.  URGENT:
 *		offset of the urgent byte in the sender's stream.  RETURN: offset up
 *		to which the sender may still send.  ACK: messages that its sender
 *		takes unacknowledged by now.
 *	code	REFUSE and RESET: enum sovia_code.
 *
 * Types
 *	DATA	stream bytes		FIN	end of the stream
 *	ACK	lane credits; padding	RESET	the connection is gone
 *		if the lane is on trial
 *	WAKEUP	window update	URGENT	a byte of the stream is urgent
 *	CONN	connection request	ACCEPT	connection accepted
 *	REFUSE	connection refused	PROBE	requests an ACK
 *	PRESSURE give back your		RETURN	done, as of the messages
 *		window down to this		before this one
 *	PARK	a PROBE; close the VI if
 *		nothing is under way
 *
 *	The structs have no padding; every field is naturally aligned.
 *
 * Compact DATA
 *	InfiniBand and RoCE carry 32 bits of immediate data beside a message.
 *	They can stand for the header of DATA, which then is payload alone:
 *
 *	31-24	slot: the ports are those of the last DATA with a header whose
 *		ports give this slot, sovia_slot()
 *	23-20	flags, the lower four
 *	19-11	check: the lower nine bits of seq and length, sovia_imm_check(), so
 *		that a truncated message is out of sequence
 *	10-0	ack, the lower eleven bits; it is not before the last one
 *
 *	window is unchanged.
 *
 *	DATA, ACK, WAKEUP and FIN are SOVIA's own (figure 11), the rest is what
 *	multiplexing sockets over one VI needs.  SOVIA's FINACK is omitted: the
 *	lane's acknowledgments cover FIN.
 *
 * Versions
 *	1	FINACK (type 5) answered FIN.
 *	2	No FINACK; FIN may be a flag of DATA and tell that its sender is gone.
 *		Compact DATA.
 *	3	A link recovers with another VI: id, peer_id, rx_next, NO_LINK.
 *		Compact DATA has low bits of seq.
 *	4	Compact DATA has a check of seq and length.
 *	5	Two kernels know each other before (rendezvous.h): hello has a MAC.
 */
#ifndef _SOVIA_WIRE_H
#define _SOVIA_WIRE_H

#include <linux/types.h>

#define SOVIA_WIRE_MAGIC	0x534f5641U	/* "SOVA" */
/* The newest version that this code speaks, and the oldest one: a peer's kernel may differ. */
#ifndef SOVIA_WIRE_VERSION
#define SOVIA_WIRE_VERSION	5
#endif
#define SOVIA_WIRE_VERSION_MIN	5

/* What this code offers beyond its version: bits that both have are granted (rendezvous.h). */
#define SOVIA_FEATURE_TRIAL	0x1	/* a lane is tried with long messages before it is used */
#define SOVIA_FEATURE_RETURN	0x2	/* PRESSURE and RETURN */
#define SOVIA_FEATURE_GROW	0x4	/* WANT; ACK tells what its sender takes by now */
#define SOVIA_FEATURE_PARK	0x8	/* PARK */
#ifndef SOVIA_FEATURES
#define SOVIA_FEATURES	(SOVIA_FEATURE_TRIAL | SOVIA_FEATURE_RETURN | SOVIA_FEATURE_GROW | \
			 SOVIA_FEATURE_PARK)
#endif

/* Padding of the ACK that tries a lane; the payload limit, if that is less. */
#define SOVIA_TRIAL_LEN		8192

/*
 * Both ends of the connection manager's requests (RDMA_PS_TCP) have ports that need
 * CAP_NET_BIND_SERVICE: this one, which is the service's, and any below the other.
 */
#define SOVIA_SERVICE_PORT	299
#define SOVIA_PORTS_RESERVED	1024

#define SOVIA_HELLO_MAC_LEN	16

/* Limits of struct sovia_hello. */
#define SOVIA_WINDOW_MAX	1024
#define SOVIA_PAYLOAD_MIN	2048
#define SOVIA_PAYLOAD_MAX	65536
#define SOVIA_LANES_MAX		16

/* Slots of compact DATA, in each direction of a lane. */
#define SOVIA_SLOTS		256

/* The slot of a connection; the same from both sides. */
#define sovia_slot(sport, dport)	(((sport) ^ (dport)) % SOVIA_SLOTS)

/* Immediate data of compact DATA. */
#define SOVIA_IMM_SLOT_SHIFT	24
#define SOVIA_IMM_FLAGS_SHIFT	20
#define SOVIA_IMM_FLAGS_MASK	0xfU
#define SOVIA_IMM_CHECK_SHIFT	11
#define SOVIA_IMM_CHECK_MASK	0x1ffU
#define SOVIA_IMM_ACK_MASK	0x7ffU	/* more than SOVIA_WINDOW_MAX */

/*
 * Devices split messages into packets of at least 256 bytes.  A lost or extra packet
 * changes the check by 4 or more, so it does not look like a lost or extra message.
 */
#define sovia_imm_check(seq, len)	((__u32)(seq) + (__u32)(len) / 256 * 4)

#define sovia_imm(slot, flags, seq, len, ack)				\
	((__u32)(slot) << SOVIA_IMM_SLOT_SHIFT |			\
	 ((flags) & SOVIA_IMM_FLAGS_MASK) << SOVIA_IMM_FLAGS_SHIFT |	\
	 (sovia_imm_check(seq, len) & SOVIA_IMM_CHECK_MASK) <<		\
	 SOVIA_IMM_CHECK_SHIFT |					\
	 ((ack) & SOVIA_IMM_ACK_MASK))

/* CONN: what packets of its sender would have in their header; a TTL of 0: not known. */
#define sovia_conn_ref(tos, ttl)	((__u32)(ttl) << 8 | (__u8)(tos))

enum sovia_type {
	SOVIA_DATA	= 1,
	SOVIA_ACK	= 2,
	SOVIA_WAKEUP	= 3,
	SOVIA_FIN	= 4,
	/* 5 was FINACK */
	SOVIA_CONN	= 6,
	SOVIA_ACCEPT	= 7,
	SOVIA_REFUSE	= 8,
	SOVIA_RESET	= 9,
	SOVIA_PROBE	= 10,
	SOVIA_URGENT	= 11,
	/* 12 to 18 are reserved: Documentation/protocol.rst, How the format grows */
	SOVIA_PRESSURE	= 19,
	SOVIA_RETURN	= 20,
	SOVIA_PARK	= 21,
	SOVIA_TYPE_COUNT
};

/* struct sovia_hdr::flags */
#define SOVIA_F_ACKREQ		0x0001	/* acknowledge at once */
#define SOVIA_F_FIN		0x0002	/* DATA: the stream ends after it */
#define SOVIA_F_GONE		0x0004	/* FIN: its sender has closed, not just its half */
/* 0x0008 to 0x0020 are reserved: Documentation/protocol.rst, How the format grows */
#define SOVIA_F_WANT		0x0040	/* it takes the last credit, and more is waiting */
#define SOVIA_F_TAKEN		0x0080	/* FIN, RESET: takes no data past ref */

/* struct sovia_hdr::code */
enum sovia_code {
	SOVIA_CODE_NONE		= 0,
	SOVIA_CODE_NO_LISTENER	= 1,	/* no listener on the port */
	SOVIA_CODE_BUSY		= 2,	/* backlog full: retry */
	SOVIA_CODE_NO_MEMORY	= 3,	/* retry */
	SOVIA_CODE_BAD_ADDRESS	= 4,	/* addresses are not the link's */
	SOVIA_CODE_ABORT	= 5,	/* aborted by the program */
	SOVIA_CODE_NO_SOCKET	= 6,	/* no connection with these ports */
	SOVIA_CODE_PROTOCOL	= 7,	/* protocol violation */
	SOVIA_CODE_NO_LINK	= 8,	/* the link to resume does not exist */
	/* 9 is reserved: Documentation/protocol.rst, How the format grows */
	SOVIA_CODE_USE_TCP	= 10,	/* the listener takes TCP connections only */
	SOVIA_CODE_DENIED	= 11,	/* a rule: no connection, not of TCP either */
	SOVIA_CODE_NO_DIRECTION	= 12,	/* no rendezvous from there: JOIN first */
	SOVIA_CODE_COUNT
};

/**
 * struct sovia_hdr - header of every message
 * @version: that the two kernels have agreed on
 * @type: enum sovia_type
 * @flags: SOVIA_F_*; unknown ones are ignored
 * @len: payload bytes after this header
 * @seq: number of this message in its lane
 * @ack: first number that the sender of this message has not received
 * @sport: port of the sender's socket
 * @dport: port of the receiver's socket
 * @window: stream offset up to which the receiver may send
 * @ref: number of the message that this one answers, a stream offset, or of CONN TTL and TOS
 * @code: enum sovia_code
 */
struct sovia_hdr {
	__u8	version;
	__u8	type;
	__be16	flags;
	__be32	len;
	__be32	seq;
	__be32	ack;
	__be16	sport;
	__be16	dport;
	__be32	window;
	__be32	ref;
	__be32	code;
};

/**
 * struct sovia_hello - link set-up, both directions
 * @magic: SOVIA_WIRE_MAGIC
 * @version: that the two kernels have agreed on
 * @lane: which of the lanes between the two nodes, from 0
 * @window: messages that the sender of this hello takes unacknowledged, at first
 * @payload: largest payload that it takes, in bytes
 * @rx_next: number of the message that it expects next, 0 on a fresh link
 * @id: of the sender's end of the link, not 0
 * @peer_id: of the receiver's end, 0 in a request for a fresh link
 * @generation: of the request; each of a lane has a higher one than those before, modulo
 *	2^32.  A reply repeats it.
 * @zero: sent as 0, ignored
 * @mac: under the secret of the two kernels, over the fields above and the GIDs of the path
 *
 * As long as private data of a request can be.
 */
struct sovia_hello {
	__be32	magic;
	__u8	version;
	__u8	lane;
	__be16	window;
	__be32	payload;
	__be32	rx_next;
	__be64	id;
	__be64	peer_id;
	__be32	generation;
	__be32	zero;
	__u8	mac[SOVIA_HELLO_MAC_LEN];
};

/**
 * struct sovia_reject - reason for refusing a link, private data of the rejection
 * @magic: SOVIA_WIRE_MAGIC
 * @code: enum sovia_code
 */
struct sovia_reject {
	__be32	magic;
	__be32	code;
};

/**
 * struct sovia_conn_body - payload of CONN
 * @saddr: address of the connecting socket, IPv4 as v4-mapped
 * @daddr: address it connects to, IPv4 as v4-mapped
 */
struct sovia_conn_body {
	__u8	saddr[16];
	__u8	daddr[16];
};

#endif /* _SOVIA_WIRE_H */

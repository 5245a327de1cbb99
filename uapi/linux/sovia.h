/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * AF_SOVIA: stream sockets on RDMA.
 *
 * Opening
 *	socket(AF_SOVIA, SOCK_STREAM, SOVIAPROTO_V4)	IPv4 addresses (protocol 0)
 *	socket(AF_SOVIA, SOCK_STREAM, SOVIAPROTO_V6)	IPv6 addresses
 *
 *	SOCK_NONBLOCK and SOCK_CLOEXEC may be or-ed into the type as usual.
 *	Any other type fails with ESOCKTNOSUPPORT, any other protocol
 *	with EPROTONOSUPPORT.
 *
 *	socket(AF_INET or AF_INET6, SOCK_STREAM, SOVIAPROTO_INET) opens the same
 *	kind of socket.  SO_DOMAIN and SO_PROTOCOL return these numbers, so
 *	that a program can open another socket of the same kind.
 *
 * Family number
 *	Linux has no number left for a family of a module (AF_MAX is fixed when
 *	the kernel is built), so AF_SOVIA borrows one that Linux no longer
 *	implements: 19, once AF_ECONET.  Another may be chosen with
 *	"modprobe sovia family=N"; the number in use can be read from
 *	/sys/module/sovia/parameters/family.
 *
 * Addresses
 *	Calls take and return struct sockaddr_in with AF_INET, or struct
 *	sockaddr_in6 with AF_INET6.  SO_DOMAIN returns AF_INET or AF_INET6.
 *	bind() takes the port in TCP, too, and a listener accepts TCP
 *	connections as well: they are TCP sockets.  connect() goes on with TCP
 *	where AF_SOVIA does not connect: then SO_PROTOCOL is IPPROTO_TCP.  The
 *	sysctl net.sovia.fallback of a namespace switches that off.
 *	An IPv6 socket accepts IPv4 peers as v4-mapped addresses unless
 *	IPV6_V6ONLY is set.
 *
 * The rest is in the manual, sovia(7): calls, options of every level, errors.
 */
#ifndef _UAPI_LINUX_SOVIA_H
#define _UAPI_LINUX_SOVIA_H

#define SOVIA_FAMILY_DEFAULT	19

#ifndef AF_SOVIA
#define AF_SOVIA		SOVIA_FAMILY_DEFAULT
#define PF_SOVIA		AF_SOVIA
#endif

/* Protocols of socket(AF_SOVIA, SOCK_STREAM, protocol). */
#define SOVIAPROTO_V4		0	/* addresses are struct sockaddr_in */
#define SOVIAPROTO_V6		1	/* addresses are struct sockaddr_in6 */

/* The protocol of socket(AF_INET or AF_INET6, SOCK_STREAM, protocol). */
#define SOVIAPROTO_INET		254

/* The level of options of AF_SOVIA alone. */
#define SOL_SOVIA		SOVIAPROTO_INET

#define SOVIA_ACTION		1	/* int: SOVIA_AUTO, SOVIA_ONLY_SOVIA or SOVIA_ONLY_TCP */
#define SOVIA_WAIT		2	/* int: milliseconds, or -1 for the namespace's default */

/* The longest time that connect() may wait for a link before it uses TCP, in milliseconds. */
#define SOVIA_WAIT_MAX		60000

/*
 * What becomes of a connection.
 *
 * @SOVIA_AUTO: AF_SOVIA if it connects, else TCP
 * @SOVIA_ONLY_SOVIA: AF_SOVIA, or an error
 * @SOVIA_ONLY_TCP: TCP
 * @SOVIA_DENY: none; in rules only
 */
enum sovia_action {
	SOVIA_AUTO,
	SOVIA_ONLY_SOVIA,
	SOVIA_ONLY_TCP,
	SOVIA_DENY,
	SOVIA_ACTION_COUNT
};

/* Generic netlink: see Documentation/rules.rst and Documentation/netlink/specs/sovia.yaml. */
#define SOVIA_GENL_NAME		"sovia"
#define SOVIA_GENL_VERSION	1

/* Of a namespace's list of rules. */
#define SOVIA_RULES_MAX		1024

/* struct sovia_rule, attribute DIRECTIONS. */
#define SOVIA_RULE_IN		0x1	/* connections that a listener takes */
#define SOVIA_RULE_OUT		0x2	/* connect() */

/*
 * @SOVIA_CMD_RULE_GET: dump: SOVIA_A_RULE a message
 * @SOVIA_CMD_RULE_REPLACE: replace the list: SOVIA_A_RULE for each rule, in order
 * @SOVIA_CMD_KEY_GET: dump: SOVIA_A_KEY a message
 * @SOVIA_CMD_KEY_DELETE: forget keys: SOVIA_A_KEY with their number
 * @SOVIA_CMD_KEY_REVOKE: revoke keys; likewise
 */
enum sovia_cmd {
	SOVIA_CMD_UNSPEC,
	SOVIA_CMD_RULE_GET,
	SOVIA_CMD_RULE_REPLACE,
	SOVIA_CMD_KEY_GET,
	SOVIA_CMD_KEY_DELETE,
	SOVIA_CMD_KEY_REVOKE,
	SOVIA_CMD_COUNT
};

enum sovia_attr {
	SOVIA_A_UNSPEC,
	SOVIA_A_RULE,			/* nest: enum sovia_rule_attr */
	SOVIA_A_KEY,			/* nest: enum sovia_key_attr */
	SOVIA_A_COUNT
};

/*
 * A connection has to match all that are there.
 *
 * @SOVIA_A_RULE_ACTION: u8, enum sovia_action; required
 * @SOVIA_A_RULE_DIRECTIONS: u8, SOVIA_RULE_IN | SOVIA_RULE_OUT
 * @SOVIA_A_RULE_PEER: 16 bytes, the peer's address, IPv4 as v4-mapped
 * @SOVIA_A_RULE_PREFIX: u8, how many bits of it count (128)
 * @SOVIA_A_RULE_PORT_MIN: u16, the listener's port
 * @SOVIA_A_RULE_PORT_MAX: u16
 * @SOVIA_A_RULE_UID_MIN: u32, owner of the socket, as the namespace's user namespace sees it
 * @SOVIA_A_RULE_UID_MAX: u32
 * @SOVIA_A_RULE_GID_MIN: u32, its group
 * @SOVIA_A_RULE_GID_MAX: u32
 * @SOVIA_A_RULE_CGROUP: u64, number of a control group (v2) that it is in, or below
 * @SOVIA_A_RULE_DEVICE: string, the interface that has the local address, or its VRF's
 * @SOVIA_A_RULE_WAIT: u32, milliseconds: how long connect() waits for a link before it uses TCP
 * @SOVIA_A_RULE_HITS: u64, how many connections this rule has decided; from the kernel
 * @SOVIA_A_RULE_PAD: alignment
 */
enum sovia_rule_attr {
	SOVIA_A_RULE_UNSPEC,
	SOVIA_A_RULE_ACTION,
	SOVIA_A_RULE_DIRECTIONS,
	SOVIA_A_RULE_PEER,
	SOVIA_A_RULE_PREFIX,
	SOVIA_A_RULE_PORT_MIN,
	SOVIA_A_RULE_PORT_MAX,
	SOVIA_A_RULE_UID_MIN,
	SOVIA_A_RULE_UID_MAX,
	SOVIA_A_RULE_GID_MIN,
	SOVIA_A_RULE_GID_MAX,
	SOVIA_A_RULE_CGROUP,
	SOVIA_A_RULE_DEVICE,
	SOVIA_A_RULE_WAIT,
	SOVIA_A_RULE_HITS,
	SOVIA_A_RULE_PAD,
	SOVIA_A_RULE_COUNT
};

/*
 * Keys are added with add_key(2): type "sovia", description "ID:PREFIX[,OWNPREFIX]", 32 to 64
 * bytes.  See Documentation/rendezvous.rst.
 *
 * @SOVIA_A_KEY_ID: u64, its number, not 0; the only one of a request
 * @SOVIA_A_KEY_PEER: 16 bytes, whom it is for, IPv4 as v4-mapped
 * @SOVIA_A_KEY_PREFIX: u8, how many bits of it count
 * @SOVIA_A_KEY_OWN: 16 bytes, from which addresses of this end
 * @SOVIA_A_KEY_OWN_PREFIX: u8
 * @SOVIA_A_KEY_NUMBER: s32, of the kernel's key, for keyctl(2)
 * @SOVIA_A_KEY_ERROR: u32, 0, or why it is not used: EKEYREVOKED, EKEYEXPIRED or ENOKEY
 * @SOVIA_A_KEY_PAD: alignment
 */
enum sovia_key_attr {
	SOVIA_A_KEY_UNSPEC,
	SOVIA_A_KEY_ID,
	SOVIA_A_KEY_PEER,
	SOVIA_A_KEY_PREFIX,
	SOVIA_A_KEY_OWN,
	SOVIA_A_KEY_OWN_PREFIX,
	SOVIA_A_KEY_NUMBER,
	SOVIA_A_KEY_ERROR,
	SOVIA_A_KEY_PAD,
	SOVIA_A_KEY_COUNT
};

#endif /* _UAPI_LINUX_SOVIA_H */

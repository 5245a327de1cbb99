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
	__SOVIA_ACTION_MAX
};

#define SOVIA_ACTION_MAX	(__SOVIA_ACTION_MAX - 1)

/* Generic netlink: see Documentation/observing.rst and Documentation/netlink/specs/sovia.yaml. */
#define SOVIA_GENL_NAME		"sovia"
#define SOVIA_GENL_VERSION	1
#define SOVIA_GENL_EVENTS	"events"	/* its multicast group */

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
 * @SOVIA_CMD_SOCK_GET: dump: SOVIA_A_SOCK a message
 * @SOVIA_CMD_TCP_GET: dump: SOVIA_A_TCP a message
 * @SOVIA_CMD_LINK_GET: dump: SOVIA_A_LINK a message
 * @SOVIA_CMD_LINK_FLUSH: end the links that no connection uses; has no attributes
 * @SOVIA_CMD_PEER_GET: dump: SOVIA_A_PEER a message
 * @SOVIA_CMD_PEER_FLUSH: forget peers without links and unreached ones; has no attributes
 * @SOVIA_CMD_UNREACHED_GET: dump: SOVIA_A_UNREACHED a message
 * @SOVIA_CMD_DEVICE_GET: dump: SOVIA_A_DEVICE a message
 * @SOVIA_CMD_STAT_GET: SOVIA_A_STAT and SOVIA_A_HIST for each; dump: a message for each
 *	processor, with SOVIA_A_CPU
 * @SOVIA_CMD_EVENT: to the members of the group SOVIA_GENL_EVENTS: one of SOVIA_A_LINK,
 *	SOVIA_A_PEER and SOVIA_A_TCP
 */
enum sovia_cmd {
	SOVIA_CMD_UNSPEC,
	SOVIA_CMD_RULE_GET,
	SOVIA_CMD_RULE_REPLACE,
	SOVIA_CMD_KEY_GET,
	SOVIA_CMD_KEY_DELETE,
	SOVIA_CMD_KEY_REVOKE,
	SOVIA_CMD_SOCK_GET,
	SOVIA_CMD_TCP_GET,
	SOVIA_CMD_LINK_GET,
	SOVIA_CMD_LINK_FLUSH,
	SOVIA_CMD_PEER_GET,
	SOVIA_CMD_PEER_FLUSH,
	SOVIA_CMD_UNREACHED_GET,
	SOVIA_CMD_DEVICE_GET,
	SOVIA_CMD_STAT_GET,
	SOVIA_CMD_EVENT,
	__SOVIA_CMD_MAX
};

#define SOVIA_CMD_MAX	(__SOVIA_CMD_MAX - 1)

enum sovia_attr {
	SOVIA_A_UNSPEC,
	SOVIA_A_RULE,			/* nest: enum sovia_rule_attr */
	SOVIA_A_KEY,			/* nest: enum sovia_key_attr */
	SOVIA_A_SOCK,			/* nest: enum sovia_sock_attr */
	SOVIA_A_TCP,			/* nest: enum sovia_tcp_attr */
	SOVIA_A_LINK,			/* nest: enum sovia_link_attr */
	SOVIA_A_PEER,			/* nest: enum sovia_peer_attr */
	SOVIA_A_UNREACHED,		/* nest: enum sovia_unreached_attr */
	SOVIA_A_DEVICE,			/* nest: enum sovia_device_attr */
	SOVIA_A_STAT,			/* nest: enum sovia_stat_attr */
	SOVIA_A_HIST,			/* nest: enum sovia_hist_attr */
	SOVIA_A_CPU,			/* u32 */
	__SOVIA_A_MAX
};

#define SOVIA_A_MAX	(__SOVIA_A_MAX - 1)

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
 * @SOVIA_A_RULE_TOS: u8, type of service of lanes to the peer; no port, user, group or control
 *	group, and CAP_NET_ADMIN of the initial user namespace
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
	SOVIA_A_RULE_TOS,
	__SOVIA_A_RULE_MAX
};

#define SOVIA_A_RULE_MAX	(__SOVIA_A_RULE_MAX - 1)

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
	__SOVIA_A_KEY_MAX
};

#define SOVIA_A_KEY_MAX	(__SOVIA_A_KEY_MAX - 1)

/*
 * Addresses are 16 bytes, IPv4 as v4-mapped; ports are in host order.
 *
 * @SOVIA_A_SOCK_FAMILY: u16, AF_INET or AF_INET6
 * @SOVIA_A_SOCK_STATE: u8, TCP_* as in struct tcp_info
 * @SOVIA_A_SOCK_ACTION: u8, enum sovia_action: the option SOVIA_ACTION
 * @SOVIA_A_SOCK_LOCAL: address
 * @SOVIA_A_SOCK_REMOTE: address
 * @SOVIA_A_SOCK_LPORT: u16
 * @SOVIA_A_SOCK_RPORT: u16
 * @SOVIA_A_SOCK_IFINDEX: u32, SO_BINDTODEVICE
 * @SOVIA_A_SOCK_UID: u32, owner
 * @SOVIA_A_SOCK_INODE: u64
 * @SOVIA_A_SOCK_COOKIE: u64, SO_COOKIE
 * @SOVIA_A_SOCK_RQUEUE: u32, bytes to read; of a listener, connections to accept
 * @SOVIA_A_SOCK_WQUEUE: u32, bytes not acknowledged; of a listener, its backlog
 * @SOVIA_A_SOCK_RMEM: u32, memory of received data, bytes
 * @SOVIA_A_SOCK_WMEM: u32, memory of sent data, bytes
 * @SOVIA_A_SOCK_RCVBUF: u32, SO_RCVBUF
 * @SOVIA_A_SOCK_SNDBUF: u32, SO_SNDBUF
 * @SOVIA_A_SOCK_RWINDOW: u32, bytes that the peer may send
 * @SOVIA_A_SOCK_SWINDOW: u32, bytes that the peer takes
 * @SOVIA_A_SOCK_RX_BYTES: u64, received so far
 * @SOVIA_A_SOCK_TX_BYTES: u64, sent so far
 * @SOVIA_A_SOCK_LINK: u32, number of its link
 * @SOVIA_A_SOCK_LANE: u32, its lane
 * @SOVIA_A_SOCK_WAY: string, the provider that carries it
 * @SOVIA_A_SOCK_DIRECT: flag, from socket to socket, without a lane
 * @SOVIA_A_SOCK_TCP: flag, there is a TCP socket beside it
 * @SOVIA_A_SOCK_PAD: alignment
 */
enum sovia_sock_attr {
	SOVIA_A_SOCK_UNSPEC,
	SOVIA_A_SOCK_FAMILY,
	SOVIA_A_SOCK_STATE,
	SOVIA_A_SOCK_ACTION,
	SOVIA_A_SOCK_LOCAL,
	SOVIA_A_SOCK_REMOTE,
	SOVIA_A_SOCK_LPORT,
	SOVIA_A_SOCK_RPORT,
	SOVIA_A_SOCK_IFINDEX,
	SOVIA_A_SOCK_UID,
	SOVIA_A_SOCK_INODE,
	SOVIA_A_SOCK_COOKIE,
	SOVIA_A_SOCK_RQUEUE,
	SOVIA_A_SOCK_WQUEUE,
	SOVIA_A_SOCK_RMEM,
	SOVIA_A_SOCK_WMEM,
	SOVIA_A_SOCK_RCVBUF,
	SOVIA_A_SOCK_SNDBUF,
	SOVIA_A_SOCK_RWINDOW,
	SOVIA_A_SOCK_SWINDOW,
	SOVIA_A_SOCK_RX_BYTES,
	SOVIA_A_SOCK_TX_BYTES,
	SOVIA_A_SOCK_LINK,
	SOVIA_A_SOCK_LANE,
	SOVIA_A_SOCK_WAY,
	SOVIA_A_SOCK_DIRECT,
	SOVIA_A_SOCK_TCP,
	SOVIA_A_SOCK_PAD,
	__SOVIA_A_SOCK_MAX
};

#define SOVIA_A_SOCK_MAX	(__SOVIA_A_SOCK_MAX - 1)

/*
 * Why a connection fell back to TCP.
 *
 * @SOVIA_WHY_PEER: the peer connected over TCP
 * @SOVIA_WHY_RULE: a rule or the option SOVIA_ACTION says so
 * @SOVIA_WHY_SILENT: no kernel answers at the other end, or not in time
 * @SOVIA_WHY_WAY: one does, but RDMA does not work between the two
 * @SOVIA_WHY_DEVICE: this end has no device for the address
 * @SOVIA_WHY_REFUSED: the other kernel does not want this one
 * @SOVIA_WHY_LISTENER: there is no AF_SOVIA listener at the port
 * @SOVIA_WHY_MEMORY: a limit or a lack of memory
 * @SOVIA_WHY_FILTER: netfilter, IPsec, or an option that only TCP has
 * @SOVIA_WHY_DENIED: denied by the peer's rules
 */
enum sovia_why {
	SOVIA_WHY_PEER,
	SOVIA_WHY_RULE,
	SOVIA_WHY_SILENT,
	SOVIA_WHY_WAY,
	SOVIA_WHY_DEVICE,
	SOVIA_WHY_REFUSED,
	SOVIA_WHY_LISTENER,
	SOVIA_WHY_MEMORY,
	SOVIA_WHY_FILTER,
	SOVIA_WHY_DENIED,
	__SOVIA_WHY_MAX
};

#define SOVIA_WHY_MAX	(__SOVIA_WHY_MAX - 1)

/*
 * @SOVIA_A_TCP_COOKIE: u64, SO_COOKIE of the TCP socket
 * @SOVIA_A_TCP_DIRECTION: u8, SOVIA_RULE_IN or SOVIA_RULE_OUT
 * @SOVIA_A_TCP_WHY: u8, enum sovia_why
 * @SOVIA_A_TCP_ERROR: u32, the errno that AF_SOVIA would have returned, or 0
 * @SOVIA_A_TCP_LOCAL: address
 * @SOVIA_A_TCP_REMOTE: address
 * @SOVIA_A_TCP_LPORT: u16
 * @SOVIA_A_TCP_RPORT: u16
 * @SOVIA_A_TCP_PAD: alignment
 */
enum sovia_tcp_attr {
	SOVIA_A_TCP_UNSPEC,
	SOVIA_A_TCP_COOKIE,
	SOVIA_A_TCP_DIRECTION,
	SOVIA_A_TCP_WHY,
	SOVIA_A_TCP_ERROR,
	SOVIA_A_TCP_LOCAL,
	SOVIA_A_TCP_REMOTE,
	SOVIA_A_TCP_LPORT,
	SOVIA_A_TCP_RPORT,
	SOVIA_A_TCP_PAD,
	__SOVIA_A_TCP_MAX
};

#define SOVIA_A_TCP_MAX	(__SOVIA_A_TCP_MAX - 1)

/*
 * @SOVIA_A_LINK_ID: u32, its number, as in tracepoints
 * @SOVIA_A_LINK_STATE: string
 * @SOVIA_A_LINK_LOCAL: address
 * @SOVIA_A_LINK_REMOTE: address
 * @SOVIA_A_LINK_IFINDEX: u32, of link-local addresses
 * @SOVIA_A_LINK_L3: u32, interface of the VRF that the addresses belong to
 * @SOVIA_A_LINK_WAY: string, its provider
 * @SOVIA_A_LINK_LANE: u32, number of the lane
 * @SOVIA_A_LINK_CONNS: u32, connections
 * @SOVIA_A_LINK_VERSION: u8, of the wire format
 * @SOVIA_A_LINK_PAYLOAD: u32, largest payload of a message
 * @SOVIA_A_LINK_WINDOW: u32, messages that may be unacknowledged
 * @SOVIA_A_LINK_WINDOW_MAX: u32, how far this end lets its own grow
 * @SOVIA_A_LINK_FLIGHT: u32, messages that are
 * @SOVIA_A_LINK_KEY: u64, number of the key that it was met with
 * @SOVIA_A_LINK_OUT: flag, this end may open connections
 * @SOVIA_A_LINK_IN: flag, the other one may
 * @SOVIA_A_LINK_TX_MSGS: u64
 * @SOVIA_A_LINK_TX_BYTES: u64, payload
 * @SOVIA_A_LINK_RX_MSGS: u64
 * @SOVIA_A_LINK_RX_BYTES: u64
 * @SOVIA_A_LINK_TX_ACKS: u64, of the messages those that were explicit ACKs
 * @SOVIA_A_LINK_STALLS: u64, how often credits had run out
 * @SOVIA_A_LINK_RETRANSMITS: u64, messages posted again on another VI
 * @SOVIA_A_LINK_IDLE: u32, milliseconds since the last message from the peer
 * @SOVIA_A_LINK_PAD: alignment
 * @SOVIA_A_LINK_TOS: u8, type of service of its packets, if it is UP and RDMA's
 */
enum sovia_link_attr {
	SOVIA_A_LINK_UNSPEC,
	SOVIA_A_LINK_ID,
	SOVIA_A_LINK_STATE,
	SOVIA_A_LINK_LOCAL,
	SOVIA_A_LINK_REMOTE,
	SOVIA_A_LINK_IFINDEX,
	SOVIA_A_LINK_L3,
	SOVIA_A_LINK_WAY,
	SOVIA_A_LINK_LANE,
	SOVIA_A_LINK_CONNS,
	SOVIA_A_LINK_VERSION,
	SOVIA_A_LINK_PAYLOAD,
	SOVIA_A_LINK_WINDOW,
	SOVIA_A_LINK_WINDOW_MAX,
	SOVIA_A_LINK_FLIGHT,
	SOVIA_A_LINK_KEY,
	SOVIA_A_LINK_OUT,
	SOVIA_A_LINK_IN,
	SOVIA_A_LINK_TX_MSGS,
	SOVIA_A_LINK_TX_BYTES,
	SOVIA_A_LINK_RX_MSGS,
	SOVIA_A_LINK_RX_BYTES,
	SOVIA_A_LINK_TX_ACKS,
	SOVIA_A_LINK_STALLS,
	SOVIA_A_LINK_RETRANSMITS,
	SOVIA_A_LINK_IDLE,
	SOVIA_A_LINK_PAD,
	SOVIA_A_LINK_TOS,
	__SOVIA_A_LINK_MAX
};

#define SOVIA_A_LINK_MAX	(__SOVIA_A_LINK_MAX - 1)

/*
 * @SOVIA_A_PEER_LOCAL: address
 * @SOVIA_A_PEER_REMOTE: address
 * @SOVIA_A_PEER_IFINDEX: u32, of link-local addresses
 * @SOVIA_A_PEER_L3: u32, interface of the VRF that the addresses belong to
 * @SOVIA_A_PEER_STATE: string
 * @SOVIA_A_PEER_OUT: flag, this end may open connections
 * @SOVIA_A_PEER_IN: flag, the other one may
 * @SOVIA_A_PEER_VERSION: u8, of the wire format
 * @SOVIA_A_PEER_FEATURES: u64, that both have
 * @SOVIA_A_PEER_KEY: u64, number of the key that it was met with
 * @SOVIA_A_PEER_WAY: string, the provider that reaches it
 * @SOVIA_A_PEER_PAD: alignment
 */
enum sovia_peer_attr {
	SOVIA_A_PEER_UNSPEC,
	SOVIA_A_PEER_LOCAL,
	SOVIA_A_PEER_REMOTE,
	SOVIA_A_PEER_IFINDEX,
	SOVIA_A_PEER_L3,
	SOVIA_A_PEER_STATE,
	SOVIA_A_PEER_OUT,
	SOVIA_A_PEER_IN,
	SOVIA_A_PEER_VERSION,
	SOVIA_A_PEER_FEATURES,
	SOVIA_A_PEER_KEY,
	SOVIA_A_PEER_WAY,
	SOVIA_A_PEER_PAD,
	__SOVIA_A_PEER_MAX
};

#define SOVIA_A_PEER_MAX	(__SOVIA_A_PEER_MAX - 1)

/*
 * @SOVIA_A_UNREACHED_LOCAL: address
 * @SOVIA_A_UNREACHED_REMOTE: address
 * @SOVIA_A_UNREACHED_IFINDEX: u32, of link-local addresses
 * @SOVIA_A_UNREACHED_L3: u32, interface of the VRF that the addresses belong to
 * @SOVIA_A_UNREACHED_WHY: u8, enum sovia_why
 * @SOVIA_A_UNREACHED_LEFT: u32, seconds until a connection tries again
 */
enum sovia_unreached_attr {
	SOVIA_A_UNREACHED_UNSPEC,
	SOVIA_A_UNREACHED_LOCAL,
	SOVIA_A_UNREACHED_REMOTE,
	SOVIA_A_UNREACHED_IFINDEX,
	SOVIA_A_UNREACHED_L3,
	SOVIA_A_UNREACHED_WHY,
	SOVIA_A_UNREACHED_LEFT,
	__SOVIA_A_UNREACHED_MAX
};

#define SOVIA_A_UNREACHED_MAX	(__SOVIA_A_UNREACHED_MAX - 1)

/*
 * @SOVIA_A_DEVICE_NAME: string, as rdma(8) has it
 * @SOVIA_A_DEVICE_VIS: u32, its VIs: queue pairs
 * @SOVIA_A_DEVICE_CQS: u32, its completion queues
 * @SOVIA_A_DEVICE_STUCK: u32, VIs whose queue pair did not drain
 */
enum sovia_device_attr {
	SOVIA_A_DEVICE_UNSPEC,
	SOVIA_A_DEVICE_NAME,
	SOVIA_A_DEVICE_VIS,
	SOVIA_A_DEVICE_CQS,
	SOVIA_A_DEVICE_STUCK,
	__SOVIA_A_DEVICE_MAX
};

#define SOVIA_A_DEVICE_MAX	(__SOVIA_A_DEVICE_MAX - 1)

/*
 * @SOVIA_A_STAT_NAME: string, as in /proc/net/sovia/stat
 * @SOVIA_A_STAT_VALUE: u64
 * @SOVIA_A_STAT_PAD: alignment
 */
enum sovia_stat_attr {
	SOVIA_A_STAT_UNSPEC,
	SOVIA_A_STAT_NAME,
	SOVIA_A_STAT_VALUE,
	SOVIA_A_STAT_PAD,
	__SOVIA_A_STAT_MAX
};

#define SOVIA_A_STAT_MAX	(__SOVIA_A_STAT_MAX - 1)

/* Of a histogram. */
#define SOVIA_HIST_BUCKETS	32

/*
 * @SOVIA_A_HIST_NAME: string
 * @SOVIA_A_HIST_BUCKETS: SOVIA_HIST_BUCKETS numbers of 64 bits: number n counts the values from
 *	2^(n-1) to 2^n - 1, the first one zeros, the last one all that are larger as well
 * @SOVIA_A_HIST_SUM: u64, of the values
 * @SOVIA_A_HIST_PAD: alignment
 */
enum sovia_hist_attr {
	SOVIA_A_HIST_UNSPEC,
	SOVIA_A_HIST_NAME,
	SOVIA_A_HIST_BUCKETS,
	SOVIA_A_HIST_SUM,
	SOVIA_A_HIST_PAD,
	__SOVIA_A_HIST_MAX
};

#define SOVIA_A_HIST_MAX	(__SOVIA_A_HIST_MAX - 1)

#endif /* _UAPI_LINUX_SOVIA_H */

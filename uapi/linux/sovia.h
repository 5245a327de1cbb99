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
 * Options
 *	SOL_SOCKET, IPPROTO_IP and IPPROTO_IPV6 options are those of the kernel.
 *	SO_ZEROCOPY fails with EOPNOTSUPP.  Of IPPROTO_TCP, these have an effect:
 *	TCP_NODELAY, TCP_CORK, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT,
 *	TCP_USER_TIMEOUT, TCP_SYNCNT, TCP_LINGER2, TCP_DEFER_ACCEPT,
 *	TCP_WINDOW_CLAMP, TCP_NOTSENT_LOWAT, TCP_INQ and, to read, TCP_INFO.
 *	These are checked and stored only: TCP_MAXSEG, TCP_QUICKACK,
 *	TCP_CONGESTION, TCP_FASTOPEN, TCP_FASTOPEN_CONNECT,
 *	TCP_THIN_LINEAR_TIMEOUTS and TCP_THIN_DUPACK.  TCP_ULP has no names.
 *	Any other fails with ENOPROTOOPT.
 *
 * TCP_INFO
 *	tcpi_state, tcpi_options (0), tcpi_rto (0), tcpi_snd_mss, tcpi_rcv_mss,
 *	tcpi_unacked (messages queued or in flight), tcpi_rcv_space,
 *	tcpi_notsent_bytes, tcpi_bytes_acked, tcpi_bytes_received,
 *	tcpi_bytes_sent and tcpi_snd_wnd (6.12 and later) have TCP's meaning;
 *	every other field is 0.
 *
 * Observation
 *	/proc/net/sovia/stat	counters of the namespace, "name value" lines
 *	/proc/net/sovia/sock	one line a socket
 *	/proc/net/sovia/link	one line a link
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

#endif /* _UAPI_LINUX_SOVIA_H */

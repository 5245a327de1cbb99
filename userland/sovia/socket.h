/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Sockets of AF_SOVIA, and those that fell back to TCP. */
#ifndef SOVIA_SOCKET_H
#define SOVIA_SOCKET_H

#include <libmnl/libmnl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A socket, as far as both kinds have it.
 *
 * @state: TCP_*
 * @family: AF_INET or AF_INET6
 * @local, @remote: addresses
 * @lport, @rport: ports
 * @rqueue, @wqueue: bytes, or of a listener connections
 * @uid: owner
 * @inode, @cookie: its numbers
 * @ifindex: that it is bound to, or 0
 */
struct shown {
	uint8_t		state;
	uint16_t	family;
	struct in6_addr	local;
	struct in6_addr	remote;
	uint16_t	lport;
	uint16_t	rport;
	uint32_t	rqueue;
	uint32_t	wqueue;
	uint32_t	uid;
	uint64_t	inode;
	uint64_t	cookie;
	uint32_t	ifindex;
};

/* socket.c */
bool socket_is_wanted(const struct shown *shown, const char *way);
void socket_show_begin(const struct shown *shown);
void socket_show_end(const struct shown *shown);

/* socket_tcp.c */
int socket_show_all_tcp(void);
int socket_show_tcp(const struct nlattr *nest);

/* process.c */
void process_show(uint64_t inode);

#endif

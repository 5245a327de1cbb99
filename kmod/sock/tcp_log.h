/* SPDX-License-Identifier: GPL-2.0-only */
/* Which connections fell back to TCP, and why. */
#ifndef _SOVIA_TCP_LOG_H
#define _SOVIA_TCP_LOG_H

#include <linux/in6.h>
#include <linux/sovia.h>
#include "core/net.h"

struct sock;

/**
 * struct sovia_tcp_entry - a connection
 * @cookie: SO_COOKIE of TCP's socket
 * @local: own address, IPv4 as v4-mapped
 * @remote: the peer's address
 * @lport: own port
 * @rport: the peer's port
 * @direction: SOVIA_RULE_IN or SOVIA_RULE_OUT
 * @why: enum sovia_why
 * @err: what AF_SOVIA would have returned, a positive errno, or 0
 */
struct sovia_tcp_entry {
	u64		cookie;
	struct in6_addr	local;
	struct in6_addr	remote;
	u16		lport;
	u16		rport;
	u8		direction;
	u8		why;
	u16		err;
};

void sovia_tcp_log_add(struct sovia_net *snet, struct sock *tcp, u8 direction, enum sovia_why why,
		       int err);
bool sovia_tcp_log_from(struct sovia_net *snet, u64 *number, struct sovia_tcp_entry *entry);
void sovia_tcp_log_net_init(struct sovia_net *snet);
void sovia_tcp_log_net_free(struct sovia_net *snet);

#endif /* _SOVIA_TCP_LOG_H */

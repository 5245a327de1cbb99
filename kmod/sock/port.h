/* SPDX-License-Identifier: GPL-2.0-only */
/* The port space: bound sockets.  port_search.c finds ports, listener.c has the listeners. */
#ifndef _SOVIA_PORT_H
#define _SOVIA_PORT_H

#include "sock.h"

/**
 * struct sovia_sharing - how far a port may be shared
 * @reuse: by sockets that allow SO_REUSEADDR
 * @reuseport: by sockets that allow SO_REUSEPORT
 *
 * Sockets that name their port share it either way.  One that takes any port shares none,
 * or with @reuse those of SO_REUSEADDR as a last resort.
 */
struct sovia_sharing {
	bool	reuse;
	bool	reuseport;
};

int sovia_ports_init(void);
void sovia_ports_exit(void);

int sovia_port_bind(struct sock *sk, u16 port, const struct sovia_sharing *sharing);
int sovia_port_borrow(struct sock *sk, u16 port);
bool sovia_inherit_port(struct sock *listener, struct sock *child);
void sovia_put_port(struct sock *sk);
void sovia_port_set_local(struct sock *sk, const struct in6_addr *addr);
void sovia_port_reset_local(struct sock *sk);

/* port_search.c */
int sovia_get_port(struct sock *sk, unsigned short snum);

#endif /* _SOVIA_PORT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Choosing a port for a connection. */
#ifndef _SOVIA_PORT_SEARCH_H
#define _SOVIA_PORT_SEARCH_H

struct sock;

int sovia_connect_port(struct sock *sk, int (*use)(struct sock *sk, void *context),
		       void *context);

#endif /* _SOVIA_PORT_SEARCH_H */

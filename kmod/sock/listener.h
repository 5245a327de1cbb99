/* SPDX-License-Identifier: GPL-2.0-only */
/* The listeners, and which of them gets a connection. */
#ifndef _SOVIA_LISTENER_H
#define _SOVIA_LISTENER_H

#include "sock.h"

int sovia_listeners_init(void);
void sovia_listeners_exit(void);

int sovia_listener_add(struct sock *sk);
void sovia_listener_remove(struct sock *sk);
struct sock *sovia_find_listener(struct net *net, const struct sovia_pair *pair,
				 const struct sovia_msg *msg);

#endif /* _SOVIA_LISTENER_H */

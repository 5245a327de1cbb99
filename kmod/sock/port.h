/* SPDX-License-Identifier: GPL-2.0-only */
/* Binding, and finding listeners. */
#ifndef _SOVIA_PORT_H
#define _SOVIA_PORT_H

#include "sock.h"

int sovia_get_port(struct sock *sk, unsigned short snum);
void sovia_put_port(struct sock *sk);
void sovia_inherit_port(struct sock *child);
struct sock *sovia_find_listener(struct sovia_net *snet, const struct sovia_pair *pair,
				 u16 port);

int sovia_join_group(struct sock *sk);
void sovia_leave_group(struct sock *sk);

#endif /* _SOVIA_PORT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* All sockets, for /proc. */
#ifndef _SOVIA_SOCK_LIST_H
#define _SOVIA_SOCK_LIST_H

#include "sock.h"

int sovia_sock_list_init(void);
void sovia_sock_list_exit(void);
void sovia_sock_list(struct sock *sk);
void sovia_sock_unlist(struct sock *sk);
struct sock *sovia_sock_from(const struct net *net, loff_t *pos);

#endif /* _SOVIA_SOCK_LIST_H */

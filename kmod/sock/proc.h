/* SPDX-License-Identifier: GPL-2.0-only */
/* The sockets that /proc/net/sovia shows. */
#ifndef _SOVIA_PROC_H
#define _SOVIA_PROC_H

#include "sock.h"

int sovia_sock_list(struct sock *sk, gfp_t gfp);
void sovia_sock_unlist(struct sock *sk);

#endif /* _SOVIA_PROC_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Options of IPPROTO_TCP. */
#ifndef _SOVIA_SOCKOPT_TCP_H
#define _SOVIA_SOCKOPT_TCP_H

#include "sock.h"

int sovia_set_tcp(struct sock *sk, int optname, sockptr_t optval, unsigned int optlen);
int sovia_get_tcp(struct sock *sk, int optname, char __user *optval, int __user *optlen);

#endif /* _SOVIA_SOCKOPT_TCP_H */

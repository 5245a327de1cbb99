/* SPDX-License-Identifier: GPL-2.0-only */
/* Options and ioctls. */
#ifndef _SOVIA_SOCKOPT_H
#define _SOVIA_SOCKOPT_H

#include "sock.h"

void sovia_default_options(struct sock *sk);
int sovia_refuse_option(const struct sock *sk, int level, int optname, unsigned int optlen);
int sovia_ops_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
			 unsigned int optlen);
int sovia_setsockopt(struct sock *sk, int level, int optname, sockptr_t optval,
		     unsigned int optlen);
int sovia_getsockopt(struct sock *sk, int level, int optname, char __user *optval,
		     int __user *optlen);
int sovia_ioctl_value(struct sock *sk, int cmd, int *value);

#endif /* _SOVIA_SOCKOPT_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Types and calls of sockets that kernels have given other names. */
#ifndef _SOVIA_COMPAT_SOCK_H
#define _SOVIA_COMPAT_SOCK_H

#include <linux/version.h>
#include <net/inet_common.h>
#include <net/sock.h>

/* 6.19 gave addresses of any length a type of their own. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
#define sockaddr_unsized	sockaddr
#endif

/* 6.17 replaced sock_i_uid() by sk_uid(), which 6.16 has from 6.16.6 on. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 17, 0)
#define sk_uid(sk)	READ_ONCE((sk)->sk_uid)
#endif

/* 7.1 left it to msg_namelen to say how long an address is. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
static inline int sovia_recv_error(struct sock *sk, struct msghdr *msg, size_t len)
{
	return inet_recv_error(sk, msg, len);
}
#else
static inline int sovia_recv_error(struct sock *sk, struct msghdr *msg, size_t len)
{
	int addr_len = 0;
	int ret = inet_recv_error(sk, msg, len, &addr_len);

	msg->msg_namelen = addr_len;
	return ret;
}
#endif

#endif /* _SOVIA_COMPAT_SOCK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Calls of struct proto whose arguments changed between kernels. */
#ifndef _SOVIA_COMPAT_PROTO_H
#define _SOVIA_COMPAT_PROTO_H

#include <linux/bpf-cgroup.h>
#include <linux/version.h>
#include <net/inet_common.h>
#include <net/sock.h>

/* 6.10 gathered the arguments of proto.accept in struct proto_accept_arg. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define SOVIA_DEFINE_PROT_ACCEPT(name, accept)						\
static struct sock *name(struct sock *sk, struct proto_accept_arg *arg)			\
{											\
	return accept(sk, arg->flags, &arg->err);					\
}
#else
#define SOVIA_DEFINE_PROT_ACCEPT(name, accept)						\
static struct sock *name(struct sock *sk, int flags, int *err, bool kern)		\
{											\
	return accept(sk, flags, err);							\
}
#endif

/*
 * Kernels between 6.1 and 6.12 got a flag of struct socket that brings SOL_SOCKET to
 * proto_ops.setsockopt; Kbuild looks for it.  Sockets that accept() makes need it, too.
 */
static inline void sovia_see_sol_socket(struct socket *sock)
{
#ifdef SOVIA_CUSTOM_SOCKOPT
	set_bit(SOCK_CUSTOM_SOCKOPT, &sock->flags);
#endif
}

/* Does the family see all options being set? */
static inline bool sovia_sees_sol_socket(void)
{
#ifdef SOVIA_CUSTOM_SOCKOPT
	return true;
#else
	return false;
#endif
}

/* 7.1 dropped the pointer to the address's length from proto.recvmsg: msg_namelen says it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 1, 0)
#define SOVIA_DEFINE_PROT_RECVMSG(name, recvmsg)					\
static int name(struct sock *sk, struct msghdr *msg, size_t len, int flags)		\
{											\
	return recvmsg(sk, msg, len, flags);						\
}
#else
#define SOVIA_DEFINE_PROT_RECVMSG(name, recvmsg)					\
static int name(struct sock *sk, struct msghdr *msg, size_t len, int flags,		\
		int *addr_len)								\
{											\
	int ret;									\
											\
	msg->msg_namelen = 0;								\
	ret = recvmsg(sk, msg, len, flags);						\
	*addr_len = msg->msg_namelen;							\
	return ret;									\
}
#endif

/* 6.5 took the copy to the user out of proto.ioctl. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define SOVIA_DEFINE_PROT_IOCTL(name, ioctl)						\
static int name(struct sock *sk, int cmd, int *value)					\
{											\
	return ioctl(sk, cmd, value);							\
}
#else
#define SOVIA_DEFINE_PROT_IOCTL(name, ioctl)						\
static int name(struct sock *sk, int cmd, unsigned long arg)				\
{											\
	int value, err = ioctl(sk, cmd, &value);					\
											\
	return err ? err : put_user(value, (int __user *)arg);				\
}
#endif

/* 6.7 lets programs of control groups change the length of an address. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 7, 0)
#define SOVIA_RUN_INET4_CONNECT(sk, uaddr, len)	\
	BPF_CGROUP_RUN_PROG_INET4_CONNECT(sk, uaddr, &(len))
#define SOVIA_RUN_INET6_CONNECT(sk, uaddr, len)	\
	BPF_CGROUP_RUN_PROG_INET6_CONNECT(sk, uaddr, &(len))
#else
#define SOVIA_RUN_INET4_CONNECT(sk, uaddr, len)	BPF_CGROUP_RUN_PROG_INET4_CONNECT(sk, uaddr)
#define SOVIA_RUN_INET6_CONNECT(sk, uaddr, len)	BPF_CGROUP_RUN_PROG_INET6_CONNECT(sk, uaddr)
#endif

/* 6.9 gave TCP SO_PEEK_OFF. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define SOVIA_OPS_PEEK_OFF	.set_peek_off = sk_set_peek_off,
#else
#define SOVIA_OPS_PEEK_OFF
#endif

#endif /* _SOVIA_COMPAT_PROTO_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Prototypes in struct proto that changed between kernels. */
#ifndef _SOVIA_COMPAT_PROTO_H
#define _SOVIA_COMPAT_PROTO_H

#include <linux/version.h>
#include <net/sock.h>

/* 6.10 gathered the arguments of proto.accept in struct proto_accept_arg. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define SOVIA_DEFINE_PROTO_ACCEPT(name, fn)				\
static struct sock *name(struct sock *sk, struct proto_accept_arg *arg)	\
{									\
	return fn(sk, arg->flags, &arg->err);				\
}
#else
#define SOVIA_DEFINE_PROTO_ACCEPT(name, fn)				\
static struct sock *name(struct sock *sk, int flags, int *err, bool kern) \
{									\
	return fn(sk, flags, err);					\
}
#endif

/* 6.5 took the copy to the user out of proto.ioctl. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0)
#define SOVIA_DEFINE_PROTO_IOCTL(name, fn)				\
static int name(struct sock *sk, int cmd, int *value)			\
{									\
	return fn(sk, cmd, value);					\
}
#else
#define SOVIA_DEFINE_PROTO_IOCTL(name, fn)				\
static int name(struct sock *sk, int cmd, unsigned long arg)		\
{									\
	int value, err = fn(sk, cmd, &value);				\
									\
	return err ? err : put_user(value, (int __user *)arg);		\
}
#endif

#endif /* _SOVIA_COMPAT_PROTO_H */

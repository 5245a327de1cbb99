/* SPDX-License-Identifier: GPL-2.0-only */
/* The arguments of accept(), which 6.10 gathered in a structure. */
#ifndef _SOVIA_COMPAT_ACCEPT_H
#define _SOVIA_COMPAT_ACCEPT_H

#include <linux/fcntl.h>
#include <linux/version.h>
#include <net/inet_common.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define sovia_accept_arg	proto_accept_arg

#define SOVIA_ACCEPT_ARGS	struct proto_accept_arg *arg
#define SOVIA_ACCEPT_ARG	arg

static inline int sovia_inet_accept(struct socket *sock, struct socket *newsock,
				    struct sovia_accept_arg *arg)
{
	return inet_accept(sock, newsock, arg);
}

/* accept() of another socket's operations, without waiting. */
static inline int sovia_accept_now(struct socket *sock, struct socket *newsock,
				   const struct sovia_accept_arg *arg)
{
	struct proto_accept_arg now = *arg;

	now.flags |= O_NONBLOCK;
	return sock->ops->accept(sock, newsock, &now);
}
#else
/**
 * struct sovia_accept_arg - as struct proto_accept_arg
 * @flags: O_NONBLOCK or 0
 * @kern: for the kernel's use
 */
struct sovia_accept_arg {
	int	flags;
	bool	kern;
};

#define SOVIA_ACCEPT_ARGS	int flags, bool kern
#define SOVIA_ACCEPT_ARG	(&(struct sovia_accept_arg){ flags, kern })

static inline int sovia_inet_accept(struct socket *sock, struct socket *newsock,
				    struct sovia_accept_arg *arg)
{
	return inet_accept(sock, newsock, arg->flags, arg->kern);
}

static inline int sovia_accept_now(struct socket *sock, struct socket *newsock,
				   const struct sovia_accept_arg *arg)
{
	return sock->ops->accept(sock, newsock, arg->flags | O_NONBLOCK, arg->kern);
}
#endif

#endif /* _SOVIA_COMPAT_ACCEPT_H */

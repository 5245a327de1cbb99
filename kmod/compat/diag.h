/* SPDX-License-Identifier: GPL-2.0-only */
/* inet_diag of different kernels. */
#ifndef _SOVIA_COMPAT_DIAG_H
#define _SOVIA_COMPAT_DIAG_H

#include <linux/inet_diag.h>
#include <linux/module.h>
#include <linux/version.h>

/* Since 6.9 a handler has its owner, instead of being looked up under a mutex. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define SOVIA_DIAG_OWNER	.owner = THIS_MODULE,
#else
#define SOVIA_DIAG_OWNER
#endif

/* Does a socket pass the filter of the request? */
static inline bool sovia_diag_passes(const struct netlink_callback *cb, struct sock *sk)
{
	const struct inet_diag_dump_data *data = cb->data;

#ifdef SOVIA_DIAG_BC_DATA
	return inet_diag_bc_sk(data, sk);
#else
	return inet_diag_bc_sk(data->inet_diag_nla_bc, sk);
#endif
}

#endif /* _SOVIA_COMPAT_DIAG_H */

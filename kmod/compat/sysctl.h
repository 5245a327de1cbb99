/* SPDX-License-Identifier: GPL-2.0-only */
/* Changes of sysctl tables between kernels. */
#ifndef _SOVIA_COMPAT_SYSCTL_H
#define _SOVIA_COMPAT_SYSCTL_H

#include <linux/sysctl.h>
#include <linux/version.h>
#include <net/net_namespace.h>

/* 6.11 made the table that handlers get const. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define sovia_ctl_table	const struct ctl_table
#else
#define sovia_ctl_table	struct ctl_table
#endif

/* 6.6 passes the size; before, an empty entry ended the table: @table has room for it. */
static inline struct ctl_table_header *
sovia_register_sysctl(struct net *net, const char *path, struct ctl_table *table, size_t size)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
	return register_net_sysctl_sz(net, path, table, size);
#else
	return register_net_sysctl(net, path, table);
#endif
}

#endif /* _SOVIA_COMPAT_SYSCTL_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Switches of a network namespace: net.sovia.* */
#ifndef _SOVIA_SYSCTL_H
#define _SOVIA_SYSCTL_H

#include <linux/sysctl.h>
#include <net/net_namespace.h>

/**
 * struct sovia_sysctl - a switch
 * @value: its value
 * @table: of the sysctl
 * @header: its registration
 */
struct sovia_sysctl {
	int			value;
	struct ctl_table	*table;
	struct ctl_table_header	*header;
};

int sovia_sysctl_add(struct net *net, struct sovia_sysctl *sysctl, const char *name, int *max,
		     proc_handler *handler);
void sovia_sysctl_remove(struct sovia_sysctl *sysctl);

#endif /* _SOVIA_SYSCTL_H */

// SPDX-License-Identifier: GPL-2.0-only
/* Switches of a network namespace: net.sovia.* */
#include <linux/slab.h>
#include "compat/sysctl.h"
#include "sysctl.h"

/**
 * sovia_sysctl_add() - register a switch
 * @net: its namespace
 * @sysctl: the switch, its value already set; stays where it is
 * @name: below net.sovia
 * @max: its values are 0 to this
 * @handler: reads and writes it
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_sysctl_add(struct net *net, struct sovia_sysctl *sysctl, const char *name, int *max,
		     proc_handler *handler)
{
	/* One more than there are: kernels before 6.6 look for the end. */
	struct ctl_table *table = kcalloc(2, sizeof(*table), GFP_KERNEL);

	if (!table)
		return -ENOMEM;
	table->procname = name;
	table->data = &sysctl->value;
	table->maxlen = sizeof(sysctl->value);
	table->mode = 0644;
	table->proc_handler = handler;
	table->extra1 = SYSCTL_ZERO;
	table->extra2 = max;
	sysctl->header = sovia_register_sysctl(net, "net/sovia", table, 1);
	if (!sysctl->header) {
		kfree(table);
		return -ENOMEM;
	}
	sysctl->table = table;
	return 0;
}

/**
 * sovia_sysctl_remove() - remove a switch
 * @sysctl: the switch
 *
 * Context: process, may sleep; waits for its handler.
 */
void sovia_sysctl_remove(struct sovia_sysctl *sysctl)
{
	unregister_net_sysctl_table(sysctl->header);
	kfree(sysctl->table);
}

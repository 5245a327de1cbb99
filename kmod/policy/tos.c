// SPDX-License-Identifier: GPL-2.0-only
/*
 * Type of service of lanes: the DSCP and the ECN bits of RoCE's and iWARP's packets, for switches
 * that keep RDMA apart from the rest.  A lane is one for many connections, so that theirs (IP_TOS)
 * do not matter.  Documentation/roce.rst.
 *
 * A rule for the peer decides, or else the namespace's switch net.sovia.tos, which begins with the
 * module's parameter.
 *
 * A class that is lossless can be filled for all hosts of the fabric, so that it takes
 * CAP_NET_ADMIN of the initial user namespace to choose it.
 */
#include <linux/capability.h>
#include <linux/user_namespace.h>
#include "compat/sysctl.h"
#include "core/param.h"
#include "core/sysctl.h"
#include "rule.h"
#include "tos.h"

static unsigned int tos = SOVIA_TOS_DEFAULT;
sovia_param(tos, tos, 0, SOVIA_TOS_DEFAULT, 0444);
MODULE_PARM_DESC(tos, "type of service of RDMA packets, DSCP << 2, 0-255 (256: as rdma_cm's configfs has it)");

static int tos_max = SOVIA_TOS_DEFAULT;

static int tos_sysctl(sovia_ctl_table *table, int write, void *buffer, size_t *len, loff_t *pos)
{
	if (write && !capable(CAP_NET_ADMIN))
		return -EPERM;
	return proc_dointvec_minmax(table, write, buffer, len, pos);
}

/**
 * sovia_tos_net_init() - register a namespace's switch
 * @snet: the namespace
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_tos_net_init(struct sovia_net *snet)
{
	int err;

	snet->tos.value = tos;
	err = sovia_sysctl_add(snet->net, &snet->tos, "tos", &tos_max, tos_sysctl);
	/* Nor may its root open it and have a privileged program write. */
	if (!err && snet->net->user_ns != &init_user_ns)
		snet->tos.table->mode = 0444;
	return err;
}

/**
 * sovia_tos_net_exit() - remove it
 * @snet: the namespace
 *
 * Context: pernet pre-exit.
 */
void sovia_tos_net_exit(struct sovia_net *snet)
{
	sovia_sysctl_remove(&snet->tos);
}

/**
 * sovia_tos() - the type of service for a lane that this end asks for
 * @snet: the namespace
 * @pair: its addresses
 *
 * Context: any.
 * Return: 0 to 255, or SOVIA_TOS_DEFAULT.
 */
unsigned int sovia_tos(struct sovia_net *snet, const struct sovia_pair *pair)
{
	unsigned int ruled = sovia_rules_tos(snet, pair);

	return ruled == SOVIA_TOS_DEFAULT ? sovia_tos_of_net(snet) : ruled;
}

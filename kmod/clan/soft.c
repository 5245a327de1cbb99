// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two nodes in this kernel, in plain memory, whose doorbells are softirqs: for tests.  With the
 * parameter connections within the host go from the one to the other.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include "clan.h"

#define SOFT_NODES	2u
#define SOFT_RING	256u
#define SOFT_POOL	512u

static bool clan_soft;
module_param(clan_soft, bool, 0444);
MODULE_PARM_DESC(clan_soft, "connect within the host through memory laid out as shared, for tests (N)");

static void *soft_memory;
static struct sovia_clan_port *soft_port[SOFT_NODES];

static void soft_doorbell(struct sovia_clan_port *port, u32 node)
{
	if (soft_port[node])
		sovia_clan_port_rung(soft_port[node]);
}

/**
 * sovia_clan_is_soft() - do connections within the host go through memory
 * @net: a namespace
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_clan_is_soft(const struct net *net)
{
	return clan_soft && net == &init_net;
}

/**
 * sovia_clan_soft_node() - whom to ask for a VI within this host
 * @net: namespace
 *
 * Context: connection thread.
 * Return: the node, with a reference to its port; or NULL.
 */
struct sovia_clan_node *sovia_clan_soft_node(const struct net *net)
{
	if (!sovia_clan_is_soft(net))
		return NULL;
	refcount_inc(&soft_port[0]->refs);
	return &soft_port[0]->node[1];
}

static void write_header(struct sovia_clan_header *header)
{
	memcpy(header->magic, SOVIA_CLAN_MAGIC, sizeof(header->magic));
	header->version = cpu_to_le32(SOVIA_CLAN_VERSION);
	header->nodes = cpu_to_le32(SOFT_NODES);
	header->ring = cpu_to_le32(SOFT_RING);
	header->pool = cpu_to_le32(SOFT_POOL);
	get_random_bytes(header->uuid, sizeof(header->uuid));
}

static void free_ports(void)
{
	u32 i;

	for (i = 0; i < SOFT_NODES; i++) {
		if (soft_port[i])
			sovia_clan_port_free(soft_port[i]);
		soft_port[i] = NULL;
	}
	vfree(soft_memory);
}

/**
 * sovia_clan_soft_init() - make the two nodes, if they are wanted
 *
 * Context: module init.
 * Return: 0 or a negative errno.
 */
int sovia_clan_soft_init(void)
{
	u64 size = sovia_clan_size(SOFT_NODES, SOFT_RING, SOFT_POOL);
	struct sovia_clan_port *port;
	u32 i;

	if (!clan_soft)
		return 0;
	soft_memory = vzalloc(size);
	if (!soft_memory)
		return -ENOMEM;
	write_header(soft_memory);
	for (i = 0; i < SOFT_NODES; i++) {
		port = sovia_clan_port_alloc(soft_memory, size, i);
		if (IS_ERR(port)) {
			free_ports();
			return PTR_ERR(port);
		}
		port->net = &init_net;
		port->prov = &sovia_clan_soft_provider;
		port->doorbell = soft_doorbell;
		soft_port[i] = port;
	}
	for (i = 0; i < SOFT_NODES; i++)
		sovia_clan_port_begin(soft_port[i]);
	return 0;
}

/**
 * sovia_clan_soft_exit() - free the two nodes
 *
 * Context: module exit; there are no VIs.
 */
void sovia_clan_soft_exit(void)
{
	u32 i;

	for (i = 0; i < SOFT_NODES; i++)
		if (soft_port[i])
			sovia_clan_port_stop(soft_port[i]);
	free_ports();
}

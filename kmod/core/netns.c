// SPDX-License-Identifier: GPL-2.0-only
/* Network namespaces: init and exit of their state. */
#include "hist.h"
#include "lane/conn_table.h"
#include "link/link_net.h"
#include "link/link_table.h"
#include "net.h"
#include "peer/peer_memory.h"
#include "peer/rendezvous.h"
#include "policy/rule.h"
#include "policy/tos.h"
#include "sock/dry_syn.h"
#include "sock/fallback.h"
#include "sock/tcp_log.h"

static int __net_init net_begin(struct net *net)
{
	struct sovia_net *snet = sovia_net(net);
	int err;

	snet->net = net;
	spin_lock_init(&snet->link_lock);
	hash_init(snet->links);
	INIT_LIST_HEAD(&snet->far_links);
	INIT_LIST_HEAD(&snet->parked_links);
	mutex_init(&snet->listen_mutex);
	sovia_link_net_init(snet);
	sovia_memories_init(snet);
	sovia_tcp_log_net_init(snet);
	snet->mib = alloc_percpu(struct sovia_mib);
	if (!snet->mib)
		return -ENOMEM;
	err = sovia_conn_table_init(snet);
	if (err)
		goto free_mib;
	err = sovia_proc_net_init(net);
	if (err)
		goto free_conn_table;
	err = sovia_fallback_net_init(snet);
	if (err)
		goto free_proc;
	err = sovia_dry_syn_net_init(snet);
	if (err)
		goto free_fallback;
	err = sovia_hist_net_init(snet);
	if (err)
		goto free_dry_syn;
	err = sovia_link_limits_net_init(snet);
	if (err)
		goto free_hist;
	err = sovia_tos_net_init(snet);
	if (err)
		goto free_limits;
	err = sovia_rendezvous_net_init(snet);
	if (err)
		goto free_tos;
	return 0;

free_tos:
	sovia_tos_net_exit(snet);
free_limits:
	sovia_link_limits_net_exit(snet);
free_hist:
	sovia_hist_net_exit(snet);
free_dry_syn:
	sovia_dry_syn_net_exit(snet);
free_fallback:
	sovia_fallback_net_exit(snet);
free_proc:
	sovia_proc_net_exit(net);
free_conn_table:
	sovia_conn_table_exit(snet);
free_mib:
	free_percpu(snet->mib);
	return err;
}

static void __net_exit net_before_end(struct net *net)
{
	sovia_rendezvous_net_pre_exit(sovia_net(net));
	sovia_tos_net_exit(sovia_net(net));
	sovia_link_limits_net_exit(sovia_net(net));
	sovia_hist_net_exit(sovia_net(net));
	sovia_dry_syn_net_exit(sovia_net(net));
	sovia_fallback_net_exit(sovia_net(net));
}

static void __net_exit net_end(struct net *net)
{
	struct sovia_net *snet = sovia_net(net);

	sovia_proc_net_exit(net);
	sovia_link_net_exit(snet);
	sovia_rules_replace(snet, NULL);
	sovia_conn_table_exit(snet);
	sovia_tcp_log_net_free(snet);
	sovia_hist_net_free(snet);
	free_percpu(snet->mib);
}

static struct pernet_operations sovia_net_ops = {
	.init		= net_begin,
	.pre_exit	= net_before_end,
	.exit		= net_end,
	.id		= &sovia_net_id,
	.size		= sizeof(struct sovia_net),
};

/**
 * sovia_net_register() - set up all present and future namespaces
 *
 * Return: 0 or a negative errno.
 */
int sovia_net_register(void)
{
	return register_pernet_device(&sovia_net_ops);
}

/**
 * sovia_net_unregister() - clean up all namespaces
 */
void sovia_net_unregister(void)
{
	unregister_pernet_device(&sovia_net_ops);
}

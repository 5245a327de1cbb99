// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module: what begins and ends with it, and with each network namespace, in one order each.
 * Only this file knows all rooms (kmod/rooms).
 */
#include <linux/module.h>
#include "admin/genl.h"
#include "admin/proc.h"
#include "clan/vi_bench.h"
#include "core/connd.h"
#include "core/debugfs.h"
#include "core/hist.h"
#include "core/net.h"
#include "core/objcount.h"
#include "core/page.h"
#include "core/provider.h"
#include "core/work.h"
#include "debug/fault.h"
#include "lane/conn_table.h"
#include "link/link.h"
#include "link/link_break.h"
#include "link/link_moved.h"
#include "link/link_net.h"
#include "link/link_park.h"
#include "link/link_peer.h"
#include "link/link_table.h"
#include "peer/key.h"
#include "peer/peer_memory.h"
#include "peer/peer_way.h"
#include "peer/rendezvous.h"
#include "policy/rule.h"
#include "policy/tos.h"
#include "sock/charge.h"
#include "policy/dry_syn.h"
#include "sock/fallback.h"
#include "sock/later.h"
#include "sock/listener.h"
#include "sock/mem.h"
#include "sock/port.h"
#include "sock/pressure.h"
#include "sock/send_page.h"
#include "sock/sock.h"
#include "sock/sock_list.h"
#include "sock/tcp_log.h"

/* For sovia_net(). */
unsigned int sovia_net_id;

const struct sovia_provider * const sovia_providers[] = {
	&sovia_loop_provider,
	&sovia_near_provider,
	&sovia_clan_soft_provider,
	&sovia_clan_provider,
	&sovia_verbs_provider,
	NULL
};

/* ---- namespaces ------------------------------------------------------ */

static int main_init_mib(struct sovia_net *snet)
{
	snet->mib = alloc_percpu(struct sovia_mib);
	return snet->mib ? 0 : -ENOMEM;
}

static void main_exit_mib(struct sovia_net *snet)
{
	free_percpu(snet->mib);
}

static void main_exit_rules(struct sovia_net *snet)
{
	sovia_rules_replace(snet, NULL);
}

/**
 * struct main_net_step - a part of a namespace's state
 * @init: or NULL; returns 0 or a negative errno, and leaves nothing if it fails
 * @pre_exit: or NULL; ends what others may use
 * @exit: or NULL; frees it
 */
struct main_net_step {
	int	(*init)(struct sovia_net *snet);
	void	(*pre_exit)(struct sovia_net *snet);
	void	(*exit)(struct sovia_net *snet);
};

/* Ended in the opposite order. */
static const struct main_net_step main_net_steps[] = {
	{ main_init_mib, NULL, main_exit_mib },
	{ sovia_fallback_net_init, sovia_fallback_net_exit },
	{ sovia_dry_syn_net_init, sovia_dry_syn_net_exit },
	{ sovia_hist_net_init, sovia_hist_net_exit, sovia_hist_net_free },
	{ NULL, NULL, sovia_tcp_log_net_free },
	{ sovia_conn_table_init, NULL, sovia_conn_table_exit },
	{ NULL, NULL, main_exit_rules },
	{ NULL, NULL, sovia_memories_forget },
	{ NULL, NULL, sovia_link_net_exit },
	{ sovia_proc_net_init, NULL, sovia_proc_net_exit },
	{ sovia_link_limits_net_init, sovia_link_limits_net_exit },
	{ sovia_tos_net_init, sovia_tos_net_exit },
	{ sovia_rendezvous_net_init, sovia_rendezvous_net_pre_exit },
};

/* Of the first @count steps. */
static void main_net_pre_exit_steps(struct sovia_net *snet, unsigned int count)
{
	while (count--)
		if (main_net_steps[count].pre_exit)
			main_net_steps[count].pre_exit(snet);
}

static void main_net_exit_steps(struct sovia_net *snet, unsigned int count)
{
	while (count--)
		if (main_net_steps[count].exit)
			main_net_steps[count].exit(snet);
}

static int __net_init main_net_init(struct net *net)
{
	struct sovia_net *snet = sovia_net(net);
	unsigned int i;
	int err;

	snet->net = net;
	sovia_link_net_init(snet);
	sovia_memories_init(snet);
	sovia_tcp_log_net_init(snet);
	for (i = 0; i < ARRAY_SIZE(main_net_steps); i++) {
		err = main_net_steps[i].init ? main_net_steps[i].init(snet) : 0;
		if (err) {
			main_net_pre_exit_steps(snet, i);
			main_net_exit_steps(snet, i);
			return err;
		}
	}
	return 0;
}

static void __net_exit main_net_pre_exit(struct net *net)
{
	main_net_pre_exit_steps(sovia_net(net), ARRAY_SIZE(main_net_steps));
}

static void __net_exit main_net_exit(struct net *net)
{
	main_net_exit_steps(sovia_net(net), ARRAY_SIZE(main_net_steps));
}

static struct pernet_operations main_net_ops = {
	.init		= main_net_init,
	.pre_exit	= main_net_pre_exit,
	.exit		= main_net_exit,
	.id		= &sovia_net_id,
	.size		= sizeof(struct sovia_net),
};

/* ---- module ---------------------------------------------------------- */

static int main_init_net(void)
{
	return register_pernet_device(&main_net_ops);
}

/* Closes the anchors, whose works and the connection thread go on until then. */
static void main_exit_net(void)
{
	unregister_pernet_device(&main_net_ops);
	sovia_hist_exit();
}

/*
 * Sockets are freed after a grace period, connections perhaps after another one, and
 * tenants after a third.
 */
static void main_exit_rcu(void)
{
	rcu_barrier();
	rcu_barrier();
	rcu_barrier();
}

/**
 * struct main_step - a part of the module
 * @init: or NULL; returns 0 or a negative errno, and leaves nothing if it fails
 * @exit: or NULL
 */
struct main_step {
	int	(*init)(void);
	void	(*exit)(void);
};

/* Ended in the opposite order. */
static const struct main_step main_steps[] __refconst = {
	{ sovia_debugfs_init, sovia_debugfs_exit },
	{ sovia_objects_init, sovia_objects_exit },
	{ sovia_prot_init, sovia_prot_exit },
	{ sovia_ports_init, sovia_ports_exit },
	{ sovia_listeners_init, sovia_listeners_exit },
	{ sovia_sock_list_init, sovia_sock_list_exit },
	{ sovia_charge_init, sovia_charge_exit },
	{ sovia_pages_init, sovia_pages_exit },
	{ NULL, sovia_send_pages_exit },
	{ sovia_conn_init, sovia_conn_exit },
	{ NULL, sovia_fallback_exit },
	{ NULL, main_exit_rcu },
	{ sovia_mem_init, sovia_pressure_exit },
	{ sovia_later_init, sovia_later_exit },
	{ sovia_fault_init, NULL },
	{ sovia_vi_bench_init, sovia_vi_bench_exit },
	{ sovia_sock_client_init, NULL },
	{ sovia_link_peer_init, NULL },
	{ sovia_connd_start, sovia_connd_stop },
	/* Works may use the thread. */
	{ sovia_work_init, sovia_work_exit },
	{ main_init_net, main_exit_net },
	{ sovia_keys_init, sovia_keys_exit },
	{ sovia_clan_soft_init, sovia_clan_soft_exit },
	{ sovia_clan_pci_init, sovia_clan_pci_exit },
	{ NULL, sovia_link_wait },
	/* The end also releases VIs that could not be drained. */
	{ sovia_verbs_init, sovia_verbs_exit },
	{ NULL, sovia_link_stop },
	{ sovia_peer_ways_init, sovia_peer_ways_exit },
	{ sovia_moved_init, sovia_moved_exit },
	/* Peers may make links from here on. */
	{ sovia_rendezvous_init, sovia_rendezvous_exit },
	{ sovia_park_init, sovia_park_exit },
	{ sovia_genl_init, sovia_genl_exit },
	{ sovia_break_init, NULL },
	/*
	 * Last: this makes the family visible.  What may fail goes first, as a socket that a user
	 * has opened would outlive the module.
	 */
	{ sovia_family_init, sovia_family_exit },
};

/* Of the first @count steps. */
static void main_exit_steps(unsigned int count)
{
	while (count--)
		if (main_steps[count].exit)
			main_steps[count].exit();
}

static int __init sovia_init(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(main_steps); i++) {
		err = main_steps[i].init ? main_steps[i].init() : 0;
		if (err) {
			main_exit_steps(i);
			return err;
		}
	}
	return 0;
}

static void __exit sovia_exit(void)
{
	main_exit_steps(ARRAY_SIZE(main_steps));
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/suites.c"
#else
module_init(sovia_init);
module_exit(sovia_exit);
#endif

MODULE_DESCRIPTION("AF_SOVIA: stream sockets on RDMA");
MODULE_AUTHOR("The AF_SOVIA authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(SOVIA_VERSION);
/*
 * No MODULE_ALIAS of the family, the protocols and the netlink family: any user's request, from a
 * container as well, would load a module into the host that answers other nodes.
 */

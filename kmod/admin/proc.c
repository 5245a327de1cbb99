// SPDX-License-Identifier: GPL-2.0-only
/* /proc/net/sovia: counters, sockets and links of a namespace. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <net/ip.h>
#include "link/link_conns.h"
#include "link/link_table.h"
#include "peer/peer_memory.h"
#include "proc.h"
#include "sock/recv.h"
#include "sock/send.h"
#include "sock/sock_list.h"

static int stat_show(struct seq_file *seq, void *v)
{
	const struct sovia_net *snet = sovia_net(seq_file_single_net(seq));
	int i;

	for (i = 0; i < SOVIA_STAT_COUNT; i++)
		seq_printf(seq, "%s %llu\n", sovia_stat_name(i), sovia_stat_sum(snet, i));
	return 0;
}

static void show_address(struct seq_file *seq, const struct sock *sk, bool peer)
{
	const struct inet_sock *inet = inet_sk(sk);
	u16 port = peer ? ntohs(inet->inet_dport) : inet->inet_num;

	if (sk->sk_family == AF_INET)
		seq_printf(seq, " %pI4:%u", peer ? &inet->inet_daddr : &inet->inet_rcv_saddr,
			   port);
	else
		seq_printf(seq, " [%pI6c]:%u", peer ? &sk->sk_v6_daddr : &sk->sk_v6_rcv_saddr,
			   port);
}

static void show_sock(struct seq_file *seq, struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	const struct sovia_conn *conn;

	seq_printf(seq, "%s", sovia_state_name(sk->sk_state));
	show_address(seq, sk, false);
	show_address(seq, sk, true);
	rcu_read_lock();
	conn = rcu_dereference(ss->conn);
	seq_printf(seq, " %s inq=%d outq=%d rmem=%d wmem=%d uid=%u\n",
		   conn ? conn->lane->prov->name : "-", sovia_inq(sk), sovia_outq(sk),
		   sk_rmem_alloc_get(sk), sk_wmem_alloc_get(sk),
		   from_kuid_munged(seq_user_ns(seq), sk_uid(sk)));
	rcu_read_unlock();
}

/* Each entry is shown without locks, with a reference. */

static void *sock_start(struct seq_file *seq, loff_t *pos)
{
	return sovia_sock_from(seq_file_net(seq), pos);
}

static void *sock_next(struct seq_file *seq, void *v, loff_t *pos)
{
	sock_put(v);
	++*pos;
	return sovia_sock_from(seq_file_net(seq), pos);
}

static void sock_stop(struct seq_file *seq, void *v)
{
	if (v)
		sock_put(v);
}

static int sock_show(struct seq_file *seq, void *v)
{
	show_sock(seq, v);
	return 0;
}

static const struct seq_operations sock_seq_ops = {
	.start	= sock_start,
	.next	= sock_next,
	.stop	= sock_stop,
	.show	= sock_show,
};

static void show_link(struct seq_file *seq, struct sovia_link *link)
{
	struct sovia_lane *lane = &link->lane;

	seq_printf(seq, "%s %pI6c %pI6c %s lane=%d conns=%u",
		   sovia_link_state_name(READ_ONCE(link->state)), &link->pair.local,
		   &link->pair.remote, link->lane.prov->name, link->pair.lane,
		   READ_ONCE(link->conn_count));
	spin_lock_bh(&lane->lock);
	seq_printf(seq, " window=%u flight=%u sent=%u received=%u payload=%u unacked=%u l3=%d version=%u key=%llx out=%d in=%d\n",
		   lane->credit.window, sovia_credit_flight(&lane->credit),
		   lane->credit.tx_next, lane->credit.rx_next, lane->payload,
		   skb_queue_len(&lane->unacked), link->pair.l3, lane->version,
		   sovia_link_key(link), sovia_link_may_open(link),
		   sovia_link_takes_requests(link));
	spin_unlock_bh(&lane->lock);
}

static void *proc_link_start(struct seq_file *seq, loff_t *pos)
{
	unsigned long id = *pos;
	struct sovia_link *link = sovia_link_from(sovia_net(seq_file_net(seq)), &id);

	*pos = id;
	return link;
}

static void *link_next(struct seq_file *seq, void *v, loff_t *pos)
{
	sovia_link_put(v);
	++*pos;
	return proc_link_start(seq, pos);
}

static void link_stop(struct seq_file *seq, void *v)
{
	if (v)
		sovia_link_put(v);
}

static int link_show(struct seq_file *seq, void *v)
{
	show_link(seq, v);
	return 0;
}

static const struct seq_operations link_seq_ops = {
	.start	= proc_link_start,
	.next	= link_next,
	.stop	= link_stop,
	.show	= link_show,
};

/* A bucket a step. */

static void *memory_start(struct seq_file *seq, loff_t *pos)
{
	return *pos < 1 << SOVIA_MEMORY_BITS ? pos : NULL;
}

static void *memory_next(struct seq_file *seq, void *v, loff_t *pos)
{
	++*pos;
	return memory_start(seq, pos);
}

static void memory_stop(struct seq_file *seq, void *v)
{
}

static int show_unreached(const struct sovia_unreached *unreached, void *context)
{
	const struct sovia_pair *pair = &unreached->pair;

	seq_printf(context, "%pI6c %pI6c l3=%d scope=%d left=%u of=%u\n", &pair->local,
		   &pair->remote, pair->l3, pair->scope, unreached->left, unreached->whole);
	return 0;
}

static int memory_show(struct seq_file *seq, void *v)
{
	return sovia_memory_walk(sovia_net(seq_file_net(seq)), *(loff_t *)v, show_unreached, seq);
}

static const struct seq_operations memory_seq_ops = {
	.start	= memory_start,
	.next	= memory_next,
	.stop	= memory_stop,
	.show	= memory_show,
};

/**
 * sovia_proc_net_init() - create /proc/net/sovia
 * @snet: the namespace
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_proc_net_init(struct sovia_net *snet)
{
	struct net *net = snet->net;
	struct proc_dir_entry *dir = proc_net_mkdir(net, "sovia", net->proc_net);

	if (dir && proc_create_net_single("stat", 0444, dir, stat_show, NULL) &&
	    proc_create_net("link", 0444, dir, &link_seq_ops, sizeof(struct seq_net_private)) &&
	    proc_create_net("memory", 0444, dir, &memory_seq_ops,
			    sizeof(struct seq_net_private)) &&
	    proc_create_net("sock", 0444, dir, &sock_seq_ops, sizeof(struct seq_net_private)))
		return 0;
	sovia_proc_net_exit(snet);
	return -ENOMEM;
}

/**
 * sovia_proc_net_exit() - remove /proc/net/sovia
 * @snet: the namespace
 *
 * Context: pernet exit, or where its creation failed.
 */
void sovia_proc_net_exit(struct sovia_net *snet)
{
	remove_proc_subtree("sovia", snet->net->proc_net);
}

// SPDX-License-Identifier: GPL-2.0-only
/* /proc/net/sovia: counters, sockets and links of a namespace. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include "sock.h"

static const char * const stat_names[SOVIA_STAT_COUNT] = {
#define SOVIA_STAT_NAME(name, help) #name,
	SOVIA_STATS(SOVIA_STAT_NAME)
#undef SOVIA_STAT_NAME
};

static int stat_show(struct seq_file *seq, void *v)
{
	struct sovia_net *snet = sovia_net(seq_file_single_net(seq));
	int i, cpu;
	u64 sum;

	for (i = 0; i < SOVIA_STAT_COUNT; i++) {
		sum = 0;
		for_each_possible_cpu(cpu)
			sum += per_cpu_ptr(snet->mib, cpu)->val[i];
		seq_printf(seq, "%s %llu\n", stat_names[i], sum);
	}
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

static void show_sock(struct seq_file *seq, struct sovia_sock *ss)
{
	struct sock *sk = (struct sock *)ss;
	struct sovia_link *link = READ_ONCE(ss->conn.key.link);

	seq_printf(seq, "%s", sovia_state_name(sk->sk_state));
	show_address(seq, sk, false);
	show_address(seq, sk, true);
	/* The socket is bound, so it has not given its link back yet. */
	seq_printf(seq, " %s inq=%d outq=%d rmem=%d wmem=%d uid=%u\n",
		   link ? link->prov->name : "-", sovia_inq(sk), sovia_outq(sk),
		   sk_rmem_alloc_get(sk), sk_wmem_alloc_get(sk),
		   from_kuid_munged(seq_user_ns(seq), sock_i_uid(sk)));
}

static void *bucket_at(struct sovia_net *snet, loff_t pos)
{
	return pos < ARRAY_SIZE(snet->ports) ? &snet->ports[pos] : NULL;
}

static void *sock_start(struct seq_file *seq, loff_t *pos)
{
	return bucket_at(sovia_net(seq_file_net(seq)), *pos);
}

static void *sock_next(struct seq_file *seq, void *v, loff_t *pos)
{
	return bucket_at(sovia_net(seq_file_net(seq)), ++*pos);
}

static void sock_stop(struct seq_file *seq, void *v)
{
}

static int sock_show(struct seq_file *seq, void *v)
{
	struct sovia_port_bucket *bucket = v;
	struct sovia_sock *ss;

	spin_lock_bh(&bucket->lock);
	hlist_for_each_entry(ss, &bucket->socks, port_node)
		show_sock(seq, ss);
	spin_unlock_bh(&bucket->lock);
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

	seq_printf(seq, "%s %pI6c %pI6c %s conns=%u", sovia_link_state_name(link->state),
		   &link->pair.local, &link->pair.remote, link->prov->name,
		   READ_ONCE(link->conn_count));
	spin_lock_bh(&lane->lock);
	seq_printf(seq, " window=%u flight=%u sent=%u received=%u payload=%u unacked=%u\n",
		   lane->credit.window, sovia_credit_flight(&lane->credit),
		   lane->credit.tx_next, lane->credit.rx_next, lane->payload,
		   skb_queue_len(&lane->unacked));
	spin_unlock_bh(&lane->lock);
}

static int link_show(struct seq_file *seq, void *v)
{
	struct sovia_net *snet = sovia_net(seq_file_single_net(seq));
	struct sovia_link *link;
	int bkt;

	spin_lock_bh(&snet->link_lock);
	hash_for_each(snet->links, bkt, link, net_node)
		show_link(seq, link);
	spin_unlock_bh(&snet->link_lock);
	return 0;
}

/**
 * sovia_proc_net_init() - make /proc/net/sovia
 * @net: the namespace
 *
 * Return: 0 or -ENOMEM.
 */
int sovia_proc_net_init(struct net *net)
{
	struct proc_dir_entry *dir = proc_net_mkdir(net, "sovia", net->proc_net);

	if (dir && proc_create_net_single("stat", 0444, dir, stat_show, NULL) &&
	    proc_create_net_single("link", 0444, dir, link_show, NULL) &&
	    proc_create_net("sock", 0444, dir, &sock_seq_ops, sizeof(struct seq_net_private)))
		return 0;
	sovia_proc_net_exit(net);
	return -ENOMEM;
}

/**
 * sovia_proc_net_exit() - take it away
 * @net: the namespace
 */
void sovia_proc_net_exit(struct net *net)
{
	remove_proc_subtree("sovia", net->proc_net);
}

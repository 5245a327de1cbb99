// SPDX-License-Identifier: GPL-2.0-only
/* /proc/net/sovia: counters, sockets and links of a namespace. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <net/ip.h>
#include "link/link_conns.h"
#include "link/peer_memory.h"
#include "recv.h"
#include "send.h"
#include "sock_list.h"

static const struct snmp_mib stat_list[] = {
	SNMP_MIB_ITEM("verbs_tx_msgs", SOVIA_STAT_verbs_tx_msgs),
	SNMP_MIB_ITEM("verbs_tx_bytes", SOVIA_STAT_verbs_tx_bytes),
	SNMP_MIB_ITEM("verbs_rx_msgs", SOVIA_STAT_verbs_rx_msgs),
	SNMP_MIB_ITEM("verbs_rx_bytes", SOVIA_STAT_verbs_rx_bytes),
	SNMP_MIB_ITEM("loop_tx_msgs", SOVIA_STAT_loop_tx_msgs),
	SNMP_MIB_ITEM("loop_tx_bytes", SOVIA_STAT_loop_tx_bytes),
	SNMP_MIB_ITEM("loop_rx_msgs", SOVIA_STAT_loop_rx_msgs),
	SNMP_MIB_ITEM("loop_rx_bytes", SOVIA_STAT_loop_rx_bytes),
	SNMP_MIB_ITEM("clan_tx_msgs", SOVIA_STAT_clan_tx_msgs),
	SNMP_MIB_ITEM("clan_tx_bytes", SOVIA_STAT_clan_tx_bytes),
	SNMP_MIB_ITEM("clan_rx_msgs", SOVIA_STAT_clan_rx_msgs),
	SNMP_MIB_ITEM("clan_rx_bytes", SOVIA_STAT_clan_rx_bytes),
	SNMP_MIB_ITEM("compact_tx", SOVIA_STAT_compact_tx),
	SNMP_MIB_ITEM("ack_tx", SOVIA_STAT_ack_tx),
	SNMP_MIB_ITEM("ack_rx", SOVIA_STAT_ack_rx),
	SNMP_MIB_ITEM("wakeup_tx", SOVIA_STAT_wakeup_tx),
	SNMP_MIB_ITEM("pressure_tx", SOVIA_STAT_pressure_tx),
	SNMP_MIB_ITEM("return_tx", SOVIA_STAT_return_tx),
	SNMP_MIB_ITEM("credit_stall", SOVIA_STAT_credit_stall),
	SNMP_MIB_ITEM("window_grow", SOVIA_STAT_window_grow),
	SNMP_MIB_ITEM("window_stall", SOVIA_STAT_window_stall),
	SNMP_MIB_ITEM("combined", SOVIA_STAT_combined),
	SNMP_MIB_ITEM("link_up", SOVIA_STAT_link_up),
	SNMP_MIB_ITEM("link_down", SOVIA_STAT_link_down),
	SNMP_MIB_ITEM("link_fail", SOVIA_STAT_link_fail),
	SNMP_MIB_ITEM("link_park", SOVIA_STAT_link_park),
	SNMP_MIB_ITEM("link_resume", SOVIA_STAT_link_resume),
	SNMP_MIB_ITEM("link_recover", SOVIA_STAT_link_recover),
	SNMP_MIB_ITEM("link_recover_fail", SOVIA_STAT_link_recover_fail),
	SNMP_MIB_ITEM("tx_again", SOVIA_STAT_tx_again),
	SNMP_MIB_ITEM("busy_hit", SOVIA_STAT_busy_hit),
	SNMP_MIB_ITEM("busy_miss", SOVIA_STAT_busy_miss),
	SNMP_MIB_ITEM("conn_active", SOVIA_STAT_conn_active),
	SNMP_MIB_ITEM("conn_passive", SOVIA_STAT_conn_passive),
	SNMP_MIB_ITEM("conn_refused", SOVIA_STAT_conn_refused),
	SNMP_MIB_ITEM("conn_retry", SOVIA_STAT_conn_retry),
	SNMP_MIB_ITEM("fallback", SOVIA_STAT_fallback),
	SNMP_MIB_ITEM("fallback_known", SOVIA_STAT_fallback_known),
	SNMP_MIB_ITEM("dry_syn", SOVIA_STAT_dry_syn),
	SNMP_MIB_ITEM("dry_syn_tcp", SOVIA_STAT_dry_syn_tcp),
	SNMP_MIB_ITEM("reset_tx", SOVIA_STAT_reset_tx),
	SNMP_MIB_ITEM("reset_rx", SOVIA_STAT_reset_rx),
	SNMP_MIB_ITEM("no_socket", SOVIA_STAT_no_socket),
	SNMP_MIB_ITEM("nomem", SOVIA_STAT_nomem),
	SNMP_MIB_ITEM("no_room", SOVIA_STAT_no_room),
	SNMP_MIB_ITEM("uncharged", SOVIA_STAT_uncharged),
	SNMP_MIB_ITEM("no_link", SOVIA_STAT_no_link),
	SNMP_MIB_ITEM("bad_message", SOVIA_STAT_bad_message),
	SNMP_MIB_ITEM("bad_sequence", SOVIA_STAT_bad_sequence),
	SNMP_MIB_ITEM("bad_ack", SOVIA_STAT_bad_ack),
	SNMP_MIB_ITEM("bad_window", SOVIA_STAT_bad_window),
	SNMP_MIB_ITEM("bad_state", SOVIA_STAT_bad_state),
	SNMP_MIB_ITEM("bad_hello", SOVIA_STAT_bad_hello),
	SNMP_MIB_ITEM("bad_port", SOVIA_STAT_bad_port),
	SNMP_MIB_ITEM("bad_mac", SOVIA_STAT_bad_mac),
	SNMP_MIB_ITEM("peer_up", SOVIA_STAT_peer_up),
	SNMP_MIB_ITEM("peer_join", SOVIA_STAT_peer_join),
	SNMP_MIB_ITEM("peer_refused", SOVIA_STAT_peer_refused),
	SNMP_MIB_ITEM("clan_late", SOVIA_STAT_clan_late),
	SNMP_MIB_ITEM("clan_rings", SOVIA_STAT_clan_rings),
	SNMP_MIB_ITEM("clan_mutes", SOVIA_STAT_clan_mutes),
};

/* snmp_fold_field() is not exported. */
static u64 stat_sum(struct sovia_net *snet, int entry)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += snmp_get_cpu_field(snet->mib, cpu, entry);
	return sum;
}

static int stat_show(struct seq_file *seq, void *v)
{
	struct sovia_net *snet = sovia_net(seq_file_single_net(seq));
	int i;

	BUILD_BUG_ON(ARRAY_SIZE(stat_list) != SOVIA_STAT_COUNT);
	for (i = 0; i < ARRAY_SIZE(stat_list); i++)
		seq_printf(seq, "%s %llu\n", stat_list[i].name,
			   stat_sum(snet, stat_list[i].entry));
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
		   conn ? conn->link->prov->name : "-", sovia_inq(sk), sovia_outq(sk),
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
		   &link->pair.remote, link->prov->name, link->pair.lane,
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

/*
 * The first link from number *@pos on, with a reference; @pos is set to its number.  A link that
 * exists throughout is shown once, whatever else comes and goes.
 */
static struct sovia_link *link_from(struct sovia_net *snet, loff_t *pos)
{
	unsigned long id = *pos;
	struct sovia_link *link;
	bool found;

	do {
		rcu_read_lock();
		link = xa_find(&snet->link_ids, &id, ULONG_MAX, XA_PRESENT);
		found = link && kref_get_unless_zero(&link->kref);
		rcu_read_unlock();
		*pos = id++;
		cond_resched();
	} while (link && !found);
	return link;
}

static void *link_start(struct seq_file *seq, loff_t *pos)
{
	return link_from(sovia_net(seq_file_net(seq)), pos);
}

static void *link_next(struct seq_file *seq, void *v, loff_t *pos)
{
	sovia_link_put(v);
	++*pos;
	return link_from(sovia_net(seq_file_net(seq)), pos);
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
	.start	= link_start,
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

static int memory_show(struct seq_file *seq, void *v)
{
	sovia_memory_show(sovia_net(seq_file_net(seq)), seq, *(loff_t *)v);
	return 0;
}

static const struct seq_operations memory_seq_ops = {
	.start	= memory_start,
	.next	= memory_next,
	.stop	= memory_stop,
	.show	= memory_show,
};

/**
 * sovia_proc_net_init() - create /proc/net/sovia
 * @net: the namespace
 *
 * Return: 0 or -ENOMEM.
 */
int sovia_proc_net_init(struct net *net)
{
	struct sovia_net *snet = sovia_net(net);
	struct proc_dir_entry *dir;

	xa_init_flags(&snet->link_ids, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	dir = proc_net_mkdir(net, "sovia", net->proc_net);

	if (dir && proc_create_net_single("stat", 0444, dir, stat_show, NULL) &&
	    proc_create_net("link", 0444, dir, &link_seq_ops, sizeof(struct seq_net_private)) &&
	    proc_create_net("memory", 0444, dir, &memory_seq_ops,
			    sizeof(struct seq_net_private)) &&
	    proc_create_net("sock", 0444, dir, &sock_seq_ops, sizeof(struct seq_net_private)))
		return 0;
	sovia_proc_net_exit(net);
	return -ENOMEM;
}

/**
 * sovia_proc_net_exit() - remove /proc/net/sovia
 * @net: the namespace
 */
void sovia_proc_net_exit(struct net *net)
{
	remove_proc_subtree("sovia", net->proc_net);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * BPF programs attached by users: they select the listener of an SO_REUSEPORT group for
 * a connection (SO_ATTACH_REUSEPORT_CBPF, _EBPF), or filter connections and data
 * (SO_ATTACH_FILTER, SO_ATTACH_BPF).
 *
 * Programs expect TCP segments.  They get one: headers of IP and TCP made up from
 * the connection's addresses and ports, a SYN for a request, and the payload of a message.
 *
 * The kernel manages the groups (net/core/sock_reuseport.c).  A listener is in one from
 * listen() until it stops listening; the lock of its slot (listener.c) serialises joining
 * and leaving.
 */
#include <linux/filter.h>
#include <linux/tcp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock_reuseport.h>
#include "policy/route.h"
#include "policy/segment.h"
#include "program.h"

/*
 * The segment for a program, starting with the TCP header.  @payload is shared, not
 * copied; NULL for a SYN.  Returns NULL without memory.
 */
static struct sk_buff *program_segment(struct sock *sk, const struct sovia_pair *pair,
				       const struct sovia_msg *msg, struct sk_buff *payload)
{
	const struct sovia_tuple tuple = {
		.saddr = pair->remote,
		.daddr = pair->local,
		.sport = msg->sport,
		.dport = msg->dport,
	};
	struct net *net = sock_net(sk);
	struct sk_buff *skb;

	if (payload)
		skb = __pskb_copy(payload, SOVIA_SEGMENT_ROOM, GFP_ATOMIC | __GFP_NOWARN);
	else
		skb = alloc_skb(SOVIA_SEGMENT_ROOM, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb)
		return NULL;
	if (!payload)
		skb_reserve(skb, SOVIA_SEGMENT_ROOM);
	/* Clear fields that providers and the lane have used. */
	skb->mark = 0;
	skb->queue_mapping = 0;
	sovia_segment_push(skb, &tuple, !payload, IPDEFTTL);
	skb_reset_mac_header(skb);
	__skb_pull(skb, skb_transport_offset(skb));
	/* Some loads of a program need the interface. */
	skb->dev = dev_get_by_index_rcu(net, sovia_pair_device(net, pair)) ?: net->loopback_dev;
	return skb;
}

/* Does the filter of a socket pass this?  Without a filter: yes; without memory: no. */
static bool filter_passes(struct sock *sk, const struct sovia_pair *pair,
			  const struct sovia_msg *msg, struct sk_buff *payload)
{
	const struct sk_filter *filter;
	struct sk_buff *skb;
	bool passes = true;

	rcu_read_lock();
	filter = rcu_dereference(sk->sk_filter);
	if (filter) {
		skb = program_segment(sk, pair, msg, payload);
		passes = false;
		if (skb) {
			skb->sk = sk;
			passes = bpf_prog_run_save_cb(filter->prog, skb);
			skb->sk = NULL;
		}
		kfree_skb(skb);
	}
	rcu_read_unlock();
	return passes;
}

/**
 * sovia_filter_request() - does the listener's filter pass a request
 * @listener: the listener
 * @pair: addresses of the link that it arrived on
 * @msg: CONN
 *
 * Context: softirq; no locks.
 * Return: true if so.
 */
bool sovia_filter_request(struct sock *listener, const struct sovia_pair *pair,
			  const struct sovia_msg *msg)
{
	if (likely(!rcu_access_pointer(listener->sk_filter)))
		return true;
	return filter_passes(listener, pair, msg, NULL);
}

/**
 * sovia_filter_run() - does the socket's filter pass data
 * @sk: the socket, with a filter
 * @msg: DATA
 * @payload: its payload; the caller keeps it
 *
 * Context: softirq; no locks.
 * Return: true if so.
 */
bool sovia_filter_run(struct sock *sk, const struct sovia_msg *msg, struct sk_buff *payload)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct sovia_pair pair = {};

	if (sk->sk_family == AF_INET6) {
		pair.local = sk->sk_v6_rcv_saddr;
		pair.remote = sk->sk_v6_daddr;
	} else {
		ipv6_addr_set_v4mapped(inet->inet_rcv_saddr, &pair.local);
		ipv6_addr_set_v4mapped(inet->inet_daddr, &pair.remote);
	}
	return filter_passes(sk, &pair, msg, payload);
}

/* Does the group of a listener have a program?  Under RCU. */
static bool has_program(const struct sock *listener)
{
	const struct sock_reuseport *group = rcu_dereference(listener->sk_reuseport_cb);

	return group && rcu_access_pointer(group->prog);
}

/**
 * sovia_program_syn() - the SYN that a program sees which chooses of a listener's group
 * @listener: in a group or not
 * @pair: addresses of the link that the request arrived on
 * @msg: CONN
 *
 * Context: softirq; under RCU.
 * Return: an sk_buff that the caller owns, or NULL: no program, or no memory.
 */
struct sk_buff *sovia_program_syn(struct sock *listener, const struct sovia_pair *pair,
				  const struct sovia_msg *msg)
{
	return has_program(listener) ? program_segment(listener, pair, msg, NULL) : NULL;
}

/**
 * sovia_choose_listener() - choose the listener of a group for a connection
 * @listener: a listener that fits
 * @pair: addresses of the link that the request arrived on
 * @msg: CONN
 *
 * The program chooses; without one, a random choice that prefers SO_INCOMING_CPU.
 *
 * Context: softirq; under RCU.
 * Return: a member of its group, perhaps one that is being closed, without a reference; NULL
 * if it is in none.
 */
struct sock *sovia_choose_listener(struct sock *listener, const struct sovia_pair *pair,
				   const struct sovia_msg *msg)
{
	struct sk_buff *skb;
	struct sock *chosen;

	/* The option may change at any time. */
	if (data_race(!listener->sk_reuseport) || !rcu_access_pointer(listener->sk_reuseport_cb))
		return NULL;
	skb = sovia_program_syn(listener, pair, msg);
	chosen = reuseport_select_sock(listener, get_random_u32(), skb, sizeof(struct tcphdr));
	kfree_skb(skb);
	return chosen;
}

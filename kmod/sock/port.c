// SPDX-License-Identifier: GPL-2.0-only
/*
 * The port space: bound sockets and listeners.
 *
 * The rules of conflict are TCP's: two sockets may share a port when their
 * addresses or devices differ, when both allow SO_REUSEADDR and none of them
 * listens, or when both allow SO_REUSEPORT and belong to one user.
 */
#include <linux/random.h>
#include <net/addrconf.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/sock_reuseport.h>
#include "compat/addr.h"
#include "port.h"
#include "route.h"

static struct sovia_port_bucket *port_bucket(struct sovia_net *snet, u16 port)
{
	return &snet->ports[port & ((1 << SOVIA_PORT_BITS) - 1)];
}

/* Also for sockets without a descriptor: the user who opened it, or its listener. */
static bool same_user(const struct sock *sk, const struct sock *sk2)
{
	return uid_eq(READ_ONCE(sk->sk_uid), READ_ONCE(sk2->sk_uid));
}

static bool port_share(struct sock *sk, struct sock *sk2)
{
	if (sk->sk_bound_dev_if && sk2->sk_bound_dev_if &&
	    sk->sk_bound_dev_if != sk2->sk_bound_dev_if)
		return true;
	/* Allows a listener to bind again while its children exist. */
	if (sk->sk_reuse && sk2->sk_reuse && sk2->sk_state != TCP_LISTEN)
		return true;
	if (sk->sk_reuseport && sk2->sk_reuseport && same_user(sk, sk2))
		return true;
	return !sovia_rcv_saddr_equal(sk, sk2);
}

static bool port_conflict(struct sovia_port_bucket *bucket, struct sock *sk, u16 port)
{
	struct sovia_sock *ss;

	lockdep_assert_held(&bucket->lock);
	hlist_for_each_entry(ss, &bucket->socks, port_node) {
		struct sock *sk2 = (struct sock *)ss;

		if (sk2 != sk && ss->inet.inet_num == port && !port_share(sk, sk2))
			return true;
	}
	return false;
}

static bool port_used(struct sovia_port_bucket *bucket, u16 port)
{
	struct sovia_sock *ss;

	lockdep_assert_held(&bucket->lock);
	hlist_for_each_entry(ss, &bucket->socks, port_node)
		if (ss->inet.inet_num == port)
			return true;
	return false;
}

static void port_bind(struct sovia_port_bucket *bucket, struct sock *sk, u16 port)
{
	struct sovia_sock *ss = sovia_sk(sk);

	lockdep_assert_held(&bucket->lock);
	ss->inet.inet_num = port;
	if (!ss->port_bound) {
		ss->port_bound = true;
		hlist_add_head(&ss->port_node, &bucket->socks);
	}
}

/* Take @port if no bound socket conflicts. */
static bool port_try(struct sock *sk, u16 port, bool exclusive)
{
	struct sovia_port_bucket *bucket = port_bucket(sovia_net(sock_net(sk)), port);
	bool ok;

	spin_lock_bh(&bucket->lock);
	ok = exclusive ? !port_used(bucket, port) : !port_conflict(bucket, sk, port);
	if (ok)
		port_bind(bucket, sk, port);
	spin_unlock_bh(&bucket->lock);
	return ok;
}

/* Any free port of the ephemeral range. */
static int port_any(struct sock *sk)
{
	struct net *net = sock_net(sk);
	int low, high, i, n, start, port;

	inet_get_local_port_range(net, &low, &high);
	n = high - low + 1;
	if (n <= 0)
		return -EADDRINUSE;
	start = get_random_u32() % n;
	for (i = 0; i < n; i++) {
		port = low + (start + i) % n;
		if (inet_is_local_reserved_port(net, port))
			continue;
		if (port_try(sk, port, true))
			return 0;
		if (!(i % 1024))
			cond_resched();
	}
	return -EADDRINUSE;
}

/**
 * sovia_get_port() - bind to a port (struct proto::get_port)
 * @sk: not bound, or a listener that checks its port again
 * @snum: the port, or 0 for any
 *
 * Context: process, socket lock held.
 * Return: 0 or -EADDRINUSE.
 */
int sovia_get_port(struct sock *sk, unsigned short snum)
{
	if (!snum)
		return port_any(sk);
	return port_try(sk, snum, false) ? 0 : -EADDRINUSE;
}

/**
 * sovia_put_port() - release the port
 * @sk: bound or not
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_put_port(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	struct sovia_port_bucket *bucket;

	if (!ss->port_bound)
		return;
	bucket = port_bucket(sovia_net(sock_net(sk)), ss->inet.inet_num);
	spin_lock_bh(&bucket->lock);
	hlist_del_init(&ss->port_node);
	ss->port_bound = false;
	spin_unlock_bh(&bucket->lock);
	/* The address stays: getsockname() works as for a dead TCP connection. */
	ss->inet.inet_num = 0;
}

/**
 * sovia_inherit_port() - bind a child to its listener's port
 * @child: with inet_num already set
 *
 * Context: softirq; @child has no other user yet.
 */
void sovia_inherit_port(struct sock *child)
{
	struct sovia_port_bucket *bucket;
	u16 port = inet_sk(child)->inet_num;

	bucket = port_bucket(sovia_net(sock_net(child)), port);
	spin_lock_bh(&bucket->lock);
	port_bind(bucket, child, port);
	spin_unlock_bh(&bucket->lock);
}

/* Do two listeners on one port belong to the same SO_REUSEPORT group? */
static bool same_group(const struct sock *sk, const struct sock *sk2)
{
	return sk2 != sk && sk2->sk_state == TCP_LISTEN && sk2->sk_reuseport &&
	       rcu_access_pointer(sk2->sk_reuseport_cb) &&
	       inet_sk(sk2)->inet_num == inet_sk(sk)->inet_num &&
	       sk2->sk_family == sk->sk_family && ipv6_only_sock(sk2) == ipv6_only_sock(sk) &&
	       sk2->sk_bound_dev_if == sk->sk_bound_dev_if && same_user(sk, sk2) &&
	       sovia_rcv_saddr_same(sk, sk2);
}

/**
 * sovia_join_group() - join the SO_REUSEPORT group of other listeners
 * @sk: becomes a listener
 *
 * Context: process, socket lock held.
 * Return: 0 or -ENOMEM.
 */
int sovia_join_group(struct sock *sk)
{
	struct sovia_port_bucket *bucket;
	struct sovia_sock *ss;
	int err = -ENOENT;

	if (!sk->sk_reuseport)
		return 0;
	bucket = port_bucket(sovia_net(sock_net(sk)), inet_sk(sk)->inet_num);
	spin_lock_bh(&bucket->lock);
	hlist_for_each_entry(ss, &bucket->socks, port_node)
		if (same_group(sk, (struct sock *)ss)) {
			err = reuseport_add_sock(sk, (struct sock *)ss, false);
			break;
		}
	if (err == -ENOENT)
		err = reuseport_alloc(sk, false);
	spin_unlock_bh(&bucket->lock);
	return err;
}

/**
 * sovia_leave_group() - leave the SO_REUSEPORT group
 * @sk: was a listener, and is still bound
 *
 * Context: process, socket lock held.
 */
void sovia_leave_group(struct sock *sk)
{
	struct sovia_port_bucket *bucket;

	bucket = port_bucket(sovia_net(sock_net(sk)), inet_sk(sk)->inet_num);
	spin_lock_bh(&bucket->lock);
	if (rcu_access_pointer(sk->sk_reuseport_cb))
		reuseport_detach_sock(sk);
	spin_unlock_bh(&bucket->lock);
}

/* Does a listener's address match a connection?  -1: no, 0: any address, 1: exactly. */
static int address_fits(const struct sock *sk, const struct in6_addr *addr)
{
	bool v4 = ipv6_addr_v4mapped(addr);

	if (sk->sk_family == AF_INET) {
		if (!v4)
			return -1;
		if (!sk->sk_rcv_saddr)
			return 0;
		return sk->sk_rcv_saddr == addr->s6_addr32[3] ? 1 : -1;
	}
	if (v4 && ipv6_only_sock(sk))
		return -1;
	if (ipv6_addr_any(&sk->sk_v6_rcv_saddr))
		return 0;
	return ipv6_addr_equal(&sk->sk_v6_rcv_saddr, addr) ? 1 : -1;
}

/*
 * Score of a listener for a connection over the link @pair; 0: no match.  As with TCP,
 * the address counts more than the device, the family, and the processor.
 */
static int listener_score(const struct sock *sk, const struct sovia_pair *pair)
{
	int fits, score;

	if (sk->sk_state != TCP_LISTEN)
		return 0;
	if (sk->sk_bound_dev_if && sk->sk_bound_dev_if != sovia_pair_device(sock_net(sk), pair))
		return 0;
	fits = address_fits(sk, &pair->local);
	if (fits < 0)
		return 0;
	score = fits ? 5 : 1;
	score += !!sk->sk_bound_dev_if + (sk->sk_family == AF_INET);
	return score + (READ_ONCE(sk->sk_incoming_cpu) == raw_smp_processor_id());
}

/**
 * sovia_find_listener() - find the listener for a connection
 * @snet: namespace
 * @pair: addresses of the link that CONN arrived on
 * @port: destination port
 *
 * Returns any member of a SO_REUSEPORT group: sovia_choose_listener() chooses.
 *
 * Context: process or softirq.
 * Return: the listener that fits best, with a reference for the caller, or NULL.
 */
struct sock *sovia_find_listener(struct sovia_net *snet, const struct sovia_pair *pair,
				 u16 port)
{
	struct sovia_port_bucket *bucket = port_bucket(snet, port);
	struct sock *best = NULL;
	struct sovia_sock *ss;
	int score, high = 0;

	spin_lock_bh(&bucket->lock);
	hlist_for_each_entry(ss, &bucket->socks, port_node) {
		if (ss->inet.inet_num != port)
			continue;
		score = listener_score((struct sock *)ss, pair);
		if (score > high) {
			high = score;
			best = (struct sock *)ss;
		}
	}
	if (best)
		sock_hold(best);
	spin_unlock_bh(&bucket->lock);
	return best;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/port_test.c"
#endif

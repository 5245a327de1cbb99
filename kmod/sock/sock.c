// SPDX-License-Identifier: GPL-2.0-only
/* A socket's lifetime: initialise, set addresses, free. */
#include <net/ipv6.h>
#include <net/transp_v6.h>
#include <net/xfrm.h>
#include "charge.h"
#include "compat/proto.h"
#include "core/objcount.h"
#include "fallback.h"
#include "link/link_net.h"
#include "mem.h"
#include "send.h"
#include "upcall.h"

/* The sk_data_ready that the kernel gives each new socket: it only wakes.  Not exported. */
void (*sovia_plain_ready)(struct sock *sk) __read_mostly;

/* Runs when the lane has freed the last message and a grace period has passed. */
static void sock_destruct(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	WARN_ON_ONCE(rcu_access_pointer(ss->conn));
	if (ss->left)
		sovia_conn_put_later(ss->left);
	sovia_fallback_free(sk);
	/* Of the socket, or of the listener that it is a child of. */
	xfrm_sk_free_policy(sk);
	if (sk->sk_family == AF_INET6)
		inet6_sock_destruct(sk);
	else
		inet_sock_destruct(sk);
	sovia_tenant_put(ss->tenant);
	sovia_object_dec(sockets);
	sovia_link_sock_put(sovia_net(sock_net(sk)));
}

/**
 * sovia_lock_class() - set the lockdep classes of the socket locks
 * @sk: new, not locked
 *
 * TCP sockets have the same families, and RDMA drivers use them.
 *
 * Context: the socket has no other user yet.
 */
void sovia_lock_class(struct sock *sk)
{
	static struct lock_class_key slock, sk_lock, clock;

	sock_lock_init_class_and_name(sk, "slock-AF_SOVIA", &slock, "sk_lock-AF_SOVIA", &sk_lock);
	lockdep_set_class_and_name(&sk->sk_callback_lock, &clock, "clock-AF_SOVIA");
}

/**
 * sovia_sock_init() - initialise AF_SOVIA's part of a new socket
 * @sk: after sk_alloc() and sock_init_data(), or a clone; this part is zeroed
 * @tenant: its tenant; the caller's reference goes to the socket
 *
 * Context: the socket has no other user yet.
 */
void sovia_sock_init(struct sock *sk, struct sovia_tenant *tenant)
{
	struct sovia_sock *ss = sovia_sk(sk);

	ss->tenant = tenant;
	INIT_LIST_HEAD(&ss->rx.lent);
	ss->rx.list = SOVIA_LENT_NONE;
	INIT_LIST_HEAD(&ss->accept.ready);
	INIT_LIST_HEAD(&ss->accept.node);
	INIT_LIST_HEAD(&ss->accept.pending);
	timer_setup(&sk->sk_timer, sovia_sk_timeout, 0);
	timer_setup(&ss->tx.cork_timer, sovia_cork_timeout, 0);
	sk->sk_destruct = sock_destruct;
	sk->sk_write_space = sovia_write_space;
	/* The first socket has no listener that it could have another one from. */
	if (unlikely(!READ_ONCE(sovia_plain_ready)))
		WRITE_ONCE(sovia_plain_ready, sk->sk_data_ready);
	/* Charge the sender's control group; no OOM kill to make room for a message. */
	sk->sk_allocation = GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	sock_set_flag(sk, SOCK_RCU_FREE);
	atomic_inc(&sovia_net(sock_net(sk))->socks);
	sovia_object_inc(sockets);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, 1);
	/* Not of a child. */
	if (sk->sk_socket) {
		/* As TCP does: net.core's defaults are for other families. */
		sk->sk_sndbuf = min(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[1]),
				    SOVIA_BUF_MOST);
		sk->sk_rcvbuf = min(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_rmem[1]),
				    SOVIA_BUF_MOST);
		sovia_see_sol_socket(sk->sk_socket);
		sovia_charge_begin(sk);
	}
}

/**
 * sovia_sock_init_v6() - initialise IPv6's part of a new socket
 * @sk: an IPv6 socket, fresh from sk_alloc() and sock_init_data()
 *
 * Context: the socket has no other user yet.
 */
void sovia_sock_init_v6(struct sock *sk)
{
	struct ipv6_pinfo *np = &sovia_sk(sk)->inet6;

	inet_sk(sk)->pinet6 = np;
	np->hop_limit = -1;
	np->mcast_hops = IPV6_DEFAULT_MCASTHOPS;
	np->pmtudisc = IPV6_PMTUDISC_WANT;
	sk->sk_ipv6only = sock_net(sk)->ipv6.sysctl.bindv6only;
}

/**
 * sovia_set_local() - set the connection's local address
 * @sk: the socket
 * @addr: IPv4 as v4-mapped
 *
 * Context: socket lock held, or a new socket.
 */
void sovia_set_local(struct sock *sk, const struct in6_addr *addr)
{
	struct inet_sock *inet = inet_sk(sk);

	if (ipv6_addr_v4mapped(addr)) {
		inet->inet_saddr = addr->s6_addr32[3];
		inet->inet_rcv_saddr = addr->s6_addr32[3];
	} else {
		inet->inet_saddr = LOOPBACK4_IPV6;
		inet->inet_rcv_saddr = LOOPBACK4_IPV6;
	}
	if (sk->sk_family == AF_INET6) {
		inet6_sk(sk)->saddr = *addr;
		sk->sk_v6_rcv_saddr = *addr;
	}
}

/**
 * sovia_set_peer() - set the connection's remote address
 * @sk: the socket
 * @addr: IPv4 as v4-mapped
 * @port: host order
 *
 * Context: socket lock held, or a new socket.
 */
void sovia_set_peer(struct sock *sk, const struct in6_addr *addr, u16 port)
{
	struct inet_sock *inet = inet_sk(sk);

	inet->inet_dport = htons(port);
	inet->inet_daddr = ipv6_addr_v4mapped(addr) ? addr->s6_addr32[3] : LOOPBACK4_IPV6;
	if (sk->sk_family == AF_INET6)
		sk->sk_v6_daddr = *addr;
}

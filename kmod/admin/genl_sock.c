// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: sockets. */
#include <net/ipv6.h>
#include <linux/sock_diag.h>
#include "genl.h"
#include "link/link.h"
#include "sock/fallback.h"
#include "sock/recv.h"
#include "sock/send.h"
#include "sock/sock_list.h"

/**
 * struct shown_sock - a socket that is shown
 * @sk: the socket, with a reference
 * @user_ns: of the reader
 */
struct shown_sock {
	struct sock		*sk;
	struct user_namespace	*user_ns;
};

static int put_addresses(struct sk_buff *skb, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	struct in6_addr local = sk->sk_v6_rcv_saddr, remote = sk->sk_v6_daddr;

	if (sk->sk_family == AF_INET) {
		ipv6_addr_set_v4mapped(inet->inet_rcv_saddr, &local);
		ipv6_addr_set_v4mapped(inet->inet_daddr, &remote);
	}
	if (nla_put_in6_addr(skb, SOVIA_A_SOCK_LOCAL, &local) ||
	    nla_put_in6_addr(skb, SOVIA_A_SOCK_REMOTE, &remote) ||
	    nla_put_u16(skb, SOVIA_A_SOCK_LPORT, READ_ONCE(inet->inet_num)) ||
	    nla_put_u16(skb, SOVIA_A_SOCK_RPORT, ntohs(READ_ONCE(inet->inet_dport))))
		return -EMSGSIZE;
	if (sk->sk_bound_dev_if &&
	    nla_put_u32(skb, SOVIA_A_SOCK_IFINDEX, READ_ONCE(sk->sk_bound_dev_if)))
		return -EMSGSIZE;
	return 0;
}

static int put_identity(struct sk_buff *skb, const struct shown_sock *shown)
{
	struct sock *sk = shown->sk;
	u32 cookie[2];

	sock_diag_save_cookie(sk, cookie);
	if (nla_put_u32(skb, SOVIA_A_SOCK_UID, from_kuid_munged(shown->user_ns, sk_uid(sk))) ||
	    nla_put_u64_64bit(skb, SOVIA_A_SOCK_INODE, sock_i_ino(sk), SOVIA_A_SOCK_PAD) ||
	    nla_put_u64_64bit(skb, SOVIA_A_SOCK_COOKIE, (u64)cookie[1] << 32 | cookie[0],
			      SOVIA_A_SOCK_PAD))
		return -EMSGSIZE;
	return 0;
}

static int put_queues(struct sk_buff *skb, struct sock *sk, u8 state)
{
	u32 rqueue, wqueue;

	if (state == TCP_LISTEN) {
		rqueue = READ_ONCE(sk->sk_ack_backlog);
		wqueue = READ_ONCE(sk->sk_max_ack_backlog);
	} else {
		rqueue = sovia_inq(sk);
		wqueue = sovia_outq(sk);
	}
	if (nla_put_u32(skb, SOVIA_A_SOCK_RQUEUE, rqueue) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_WQUEUE, wqueue) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_RMEM, sk_rmem_alloc_get(sk)) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_WMEM, sk_wmem_alloc_get(sk)) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_RCVBUF, READ_ONCE(sk->sk_rcvbuf)) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_SNDBUF, READ_ONCE(sk->sk_sndbuf)))
		return -EMSGSIZE;
	return 0;
}

/* Windows may be moved while they are read; one that seems negative is empty. */
static u32 left_of(u32 end, u32 at)
{
	return sovia_before(at, end) ? end - at : 0;
}

static int put_stream(struct sk_buff *skb, const struct sovia_sock *ss)
{
	const struct sovia_rx *rx = &ss->rx;
	const struct sovia_tx *tx = &ss->tx;

	if (nla_put_u32(skb, SOVIA_A_SOCK_RWINDOW,
			left_of(READ_ONCE(rx->most), READ_ONCE(rx->nxt))) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_SWINDOW,
			left_of(READ_ONCE(tx->wnd_end), READ_ONCE(tx->nxt))) ||
	    nla_put_u64_64bit(skb, SOVIA_A_SOCK_RX_BYTES, READ_ONCE(rx->bytes),
			      SOVIA_A_SOCK_PAD) ||
	    nla_put_u64_64bit(skb, SOVIA_A_SOCK_TX_BYTES, READ_ONCE(tx->bytes), SOVIA_A_SOCK_PAD))
		return -EMSGSIZE;
	return 0;
}

/* Under RCU. */
static int put_conn(struct sk_buff *skb, const struct sovia_conn *conn)
{
	const struct sovia_link *link = sovia_conn_link(conn);

	if (nla_put_u32(skb, SOVIA_A_SOCK_LINK, link->id) ||
	    nla_put_u32(skb, SOVIA_A_SOCK_LANE, link->pair.lane) ||
	    nla_put_string(skb, SOVIA_A_SOCK_WAY, link->lane.prov->name) ||
	    (READ_ONCE(conn->direct) && nla_put_flag(skb, SOVIA_A_SOCK_DIRECT)))
		return -EMSGSIZE;
	return 0;
}

static int put_way(struct sk_buff *skb, const struct sovia_sock *ss)
{
	/* Pairs with its allocation. */
	const struct sovia_fallback *fb = smp_load_acquire(&ss->fallback);
	const struct sovia_conn *conn;
	int err = 0;

	if (fb && sovia_fallback_has_tcp(fb) && nla_put_flag(skb, SOVIA_A_SOCK_TCP))
		return -EMSGSIZE;
	rcu_read_lock();
	conn = rcu_dereference(ss->conn);
	if (conn)
		err = put_conn(skb, conn);
	rcu_read_unlock();
	return err;
}

static int put_sock(struct sk_buff *skb, const void *object)
{
	const struct shown_sock *shown = object;
	const struct sovia_sock *ss = sovia_sk(shown->sk);
	u8 state = READ_ONCE(shown->sk->sk_state);
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_SOCK);

	if (!nest || nla_put_u16(skb, SOVIA_A_SOCK_FAMILY, shown->sk->sk_family) ||
	    nla_put_u8(skb, SOVIA_A_SOCK_STATE, state) ||
	    nla_put_u8(skb, SOVIA_A_SOCK_ACTION, READ_ONCE(ss->opt.action)) ||
	    put_addresses(skb, shown->sk) || put_identity(skb, shown) ||
	    put_queues(skb, shown->sk, state) || put_stream(skb, ss) || put_way(skb, ss))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * sovia_genl_sock_dump() - SOVIA_CMD_SOCK_GET
 * @skb: the reply
 * @cb: of the request; ctx is the cursor of sovia_sock_from()
 *
 * Context: process, may sleep.
 * Return: bytes in @skb, 0 at the end.
 */
int sovia_genl_sock_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct shown_sock shown = { .user_ns = sk_user_ns(NETLINK_CB(cb->skb).sk) };
	loff_t *pos = (void *)cb->ctx;
	int err;

	while ((shown.sk = sovia_sock_from(sock_net(skb->sk), pos))) {
		err = sovia_genl_put(skb, cb, SOVIA_CMD_SOCK_GET, put_sock, &shown);
		sock_put(shown.sk);
		if (err)
			return skb->len ?: err;
		++*pos;
	}
	/* Nothing is behind it. */
	*pos = LLONG_MAX;
	return skb->len;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * listen() and accept(), the server's half of connection set-up.
 *
 * A CONN is answered in softirq: the child is created and queued for accept(), then
 * ACCEPT is sent, in that order and under the listener's lock, so that data that
 * the program sends after accept() follows ACCEPT on the lane.  While
 * a process owns the listener, children wait on its pending list, and
 * release_sock() admits them.
 *
 * (In KSOVIA 3.3 the connection thread does this.  Here the thread only sets up links,
 * which may sleep; a connection on an existing link never sleeps.)
 */
#include <linux/slab.h>
#include <net/inet_ecn.h>
#include <net/ipv6.h>
#include "charge.h"
#include "close.h"
#include "compat/ipv6.h"
#include "compat/proto.h"
#include "core/addr.h"
#include "defer.h"
#include "defer_accept.h"
#include "policy/dry_syn.h"
#include "fallback.h"
#include "keepalive.h"
#include "lane/conn_table.h"
#include "lane/direct.h"
#include "lane/lane_tx.h"
#include "link/link_conns.h"
#include "link/link_net.h"
#include "listen.h"
#include "listener.h"
#include "mem.h"
#include "policy/route.h"
#include "policy/rule.h"
#include "port.h"
#include "program.h"
#include "recv.h"
#include "rx.h"
#include "sock_list.h"
#include "upcall.h"

/* Maximum of children that wait for the process that owns their listener. */
#define SOVIA_PENDING_MAX	1024

/* ---- children -------------------------------------------------------- */

/* Reset fields that sk_clone_lock() copied but must not be shared. */
static void child_reset(struct sock *child)
{
	struct sovia_sock *ss = sovia_sk(child);
	struct sovia_tenant *tenant = ss->tenant;

	sovia_tenant_ref(tenant);
	RCU_INIT_POINTER(inet_sk(child)->inet_opt, NULL);
	RCU_INIT_POINTER(inet_sk(child)->mc_list, NULL);
	if (child->sk_family == AF_INET6) {
		struct ipv6_pinfo *np = &ss->inet6;

		inet_sk(child)->pinet6 = np;
		RCU_INIT_POINTER(np->opt, NULL);
		np->ipv6_mc_list = NULL;
		np->ipv6_ac_list = NULL;
		sovia_forget_flow_labels(child);
		np->pktoptions = NULL;
	}
	/* The clone is in state LISTEN, too, but is in no listener table. */
	sovia_state_event(child, SOVIA_EV_ABORT);
	/* Of the listener's fields keep only IPv6's and the kernel's part. */
	memset((char *)ss + offsetof(struct sovia_sock, conn), 0,
	       offsetof(struct sovia_sock, inet6) - offsetof(struct sovia_sock, conn));
	sovia_sock_init(child, tenant);
}

/* What TCP takes from the packets of the handshake: IP_PKTOPTIONS and others say it. */
static void child_note_packet(struct sock *child, const struct sovia_pair *pair, u32 fields)
{
	bool v4 = ipv6_addr_v4mapped(&pair->remote);
	struct inet_sock *inet = inet_sk(child);
	/* In an L3 domain that of its master, as TCP. */
	int device = pair->scope ?: pair->l3 ?: sovia_pair_iif(sock_net(child), pair);
	u8 tos = (u8)fields, ttl = fields >> 8;
	bool reflect = READ_ONCE(sock_net(child)->ipv4.sysctl_tcp_reflect_tos);

	if (!ttl)
		ttl = READ_ONCE(sock_net(child)->ipv4.sysctl_ip_default_ttl);
	if (v4) {
		inet->mc_index = device;
		inet->mc_ttl = ttl;
		inet->rcv_tos = tos;
		if (reflect)
			inet->tos = tos & ~INET_ECN_MASK;
	}
	if (child->sk_family == AF_INET6) {
		struct ipv6_pinfo *np = inet6_sk(child);

		np->mcast_oif = device;
		np->mcast_hops = ttl;
		np->rcv_flowinfo = v4 ? 0 : ip6_make_flowinfo(tos, 0);
		if (reflect && !v4)
			np->tclass = tos & ~INET_ECN_MASK;
	}
}

static struct sock *child_create(struct sock *listener, struct sovia_link *link,
				 const struct sovia_msg *msg)
{
	struct sovia_sock *ss;
	struct sock *child;

	child = sk_clone_lock(listener, GFP_ATOMIC | __GFP_NOWARN);
	if (!child)
		return NULL;
	/* sk_clone_lock() returned it locked, which its prototype does not show. */
	__acquire(&child->sk_lock.slock);
	child_reset(child);
	__sock_put(child);
	bh_unlock_sock(child);
	sovia_lock_class(child);
	ss = sovia_sk(child);
	ss->opt = sovia_sk(listener)->opt;
	/* These two are about the queue of the listener. */
	ss->opt.defer_accept = 0;
	ss->opt.fastopen = 0;
	inet_sk(child)->inet_num = msg->dport;
	inet_sk(child)->inet_sport = htons(msg->dport);
	sovia_set_local(child, &link->pair.local);
	sovia_set_peer(child, &link->pair.remote, msg->sport);
	child_note_packet(child, &link->pair, msg->ref);
	if (link->pair.scope)
		child->sk_bound_dev_if = link->pair.scope;
	else if (!child->sk_bound_dev_if)
		child->sk_bound_dev_if = link->pair.l3;
	sovia_sock_list(child);
	if (sovia_inherit_port(listener, child))
		return child;
	/* The listener has just been closed. */
	sovia_discard_child(child);
	return NULL;
}

/* Attach the child to the link.  Returns 0 or a negative errno. */
static int child_start(struct sock *child, struct sovia_link *link,
		       const struct sovia_msg *msg)
{
	struct sovia_conn *conn;
	int err;

	sovia_link_ref(link);
	conn = sovia_conn_create(&link->lane, child, msg->dport, msg->sport,
				 sovia_sk(child)->tenant->number, GFP_ATOMIC | __GFP_NOWARN);
	if (!conn) {
		sovia_link_put(link);
		return -ENOMEM;
	}
	conn->ref = msg->seq;
	sovia_sk(child)->tx.wnd_end = msg->window;
	sovia_rx_join(child, conn, true);
	/* The lane is up, even if the connection thread has not set the link UP yet. */
	err = sovia_link_attach(conn);
	if (err >= 0)
		err = sovia_conn_hash(conn);
	if (err)
		return err;
	sovia_state_event(child, SOVIA_EV_PASSIVE);
	sovia_direct_pair(conn, msg->seq);
	return 0;
}

/* A child whose connection is in the table, or an ERR_PTR(). */
static struct sock *child_make(struct sock *listener, struct sovia_link *link,
			       const struct sovia_msg *msg)
{
	struct sock *child = child_create(listener, link, msg);
	int err;

	if (!child)
		return ERR_PTR(-ENOMEM);
	bh_lock_sock_nested(child);
	err = child_start(child, link, msg);
	bh_unlock_sock(child);
	if (!err)
		return child;
	sovia_discard_child(child);
	return ERR_PTR(err);
}

/* Reset a connection with these ports that the peer has left or lost. */
static void drop_predecessor(struct sovia_link *link, const struct sovia_msg *msg)
{
	struct sovia_conn *old;
	bool open = false;

	rcu_read_lock();
	old = sovia_conn_occupant(&link->lane, msg->dport, msg->sport);
	if (old) {
		spin_lock(&old->lock);
		/* Not one that is being set up by connect(). */
		open = old->sk && READ_ONCE(sovia_sk(old->sk)->rx.open);
		spin_unlock(&old->lock);
	}
	if (open)
		sovia_defer(old, SOVIA_DEFER_RESET, SOVIA_CODE_NONE);
	rcu_read_unlock();
}

/*
 * A socket that connects to its own address and port receives its own CONN: as with
 * TCP's simultaneous open, that is the reply.  From then on it is connected to itself:
 * it receives what it sends on the same link, with the same ports.
 */
static bool accept_itself(struct sovia_link *link, const struct sovia_msg *msg)
{
	struct sovia_msg answer = { .type = SOVIA_ACCEPT, .ref = msg->seq, .window = msg->window };
	struct sovia_conn *conn;
	bool own = false;

	if (msg->sport != msg->dport ||
	    !ipv6_addr_equal(&link->pair.local, &link->pair.remote))
		return false;
	rcu_read_lock();
	conn = sovia_conn_lookup(&link->lane, msg->dport, msg->sport);
	if (conn) {
		spin_lock(&conn->lock);
		own = conn->sk && READ_ONCE(conn->sk->sk_state) == TCP_SYN_SENT &&
		      READ_ONCE(conn->conn_seq) == msg->seq;
		spin_unlock(&conn->lock);
	}
	if (own)
		sovia_sock_client.control(conn, &answer);
	rcu_read_unlock();
	return own;
}

/* A child keeps its connection while its listener has it. */
static struct sovia_conn *child_conn(const struct sock *child)
{
	return rcu_dereference_protected(sovia_sk(child)->conn, 1);
}

/* Queue the child for accept(), then answer.  The listener's lock is held. */
static u32 child_queue(struct sock *listener, struct sock *child)
{
	struct sovia_sock *ls = sovia_sk(listener), *ss = sovia_sk(child);

	if (listener->sk_state != TCP_LISTEN)
		return SOVIA_CODE_NO_LISTENER;
	if (sovia_fallback_full(listener))
		return SOVIA_CODE_BUSY;
	ss->accept.tcp_arrived = sovia_fallback_arrived(listener);
	list_add_tail(&ss->accept.node, &ls->accept.ready);
	sk_acceptq_added(listener);
	sovia_fallback_backlog(listener);
	if (ls->opt.defer_accept)
		sovia_await_start(listener, child);
	sovia_conn_control(child_conn(child), SOVIA_ACCEPT, 0);
	sovia_rx_may_ask(child);
	sovia_stat_inc(sovia_net(sock_net(child)), conn_passive);
	listener->sk_data_ready(listener);
	return SOVIA_CODE_NONE;
}

/* The connection owes the peer a REFUSE. */
static void refuse_child(struct sock *child, u32 code)
{
	sovia_conn_control(child_conn(child), SOVIA_REFUSE, code);
	sovia_discard_child(child);
}

/**
 * sovia_children_pending() - admit the children that came while the listener was owned
 * @listener: was owned by a process, which may have closed it
 *
 * Context: the listener's spinlock held, bottom halves off.
 */
void sovia_children_pending(struct sock *listener)
{
	struct sovia_sock *ls = sovia_sk(listener), *ss, *next;
	u32 code;

	ls->accept.pending_count = 0;
	list_for_each_entry_safe(ss, next, &ls->accept.pending, accept.node) {
		struct sock *child = (struct sock *)ss;

		list_del_init(&ss->accept.node);
		code = child_queue(listener, child);
		if (code)
			refuse_child(child, code);
	}
}

/* Queue the child until the listener's owner releases it. */
static u32 child_wait(struct sock *listener, struct sock *child)
{
	struct sovia_sock *ls = sovia_sk(listener);

	if (ls->accept.pending_count >= SOVIA_PENDING_MAX)
		return SOVIA_CODE_BUSY;
	ls->accept.pending_count++;
	list_add_tail(&sovia_sk(child)->accept.node, &ls->accept.pending);
	return SOVIA_CODE_NONE;
}

/* Returns an enum sovia_code to refuse with, if there is no connection that does that. */
static u32 answer_conn(struct sock *listener, struct sovia_link *link,
		       const struct sovia_msg *msg)
{
	struct sock *child;
	u32 code;

	if (sovia_mem_none(listener)) {
		sovia_stat_inc(link->snet, no_room);
		return SOVIA_CODE_NO_MEMORY;
	}
	/* A hint; child_queue() decides.  The client also retries if a filter drops CONN. */
	if (sovia_fallback_full(listener) || !sovia_filter_request(listener, &link->pair, msg))
		return SOVIA_CODE_BUSY;
	child = child_make(listener, link, msg);
	if (PTR_ERR(child) == -EADDRNOTAVAIL) {
		drop_predecessor(link, msg);
		child = child_make(listener, link, msg);
	}
	if (IS_ERR(child))
		return SOVIA_CODE_NO_MEMORY;
	bh_lock_sock(listener);
	if (sock_owned_by_user(listener))
		code = child_wait(listener, child);
	else
		code = child_queue(listener, child);
	bh_unlock_sock(listener);
	if (code)
		refuse_child(child, code);
	return SOVIA_CODE_NONE;
}

/* Returns an enum sovia_code to refuse with. */
static u32 judge_request(struct sock *listener, const struct sovia_link *link,
			 const struct sovia_msg *msg)
{
	u8 action = sovia_rules_decide(link->snet, listener, SOVIA_RULE_IN, &link->pair,
				       msg->dport, NULL);
	int err;

	if (action == SOVIA_DENY)
		return SOVIA_CODE_DENIED;
	if (action == SOVIA_AUTO)
		action = READ_ONCE(sovia_sk(listener)->opt.action);
	if (sovia_packets_are_seen(listener))
		return SOVIA_CODE_USE_TCP;
	if (action == SOVIA_ONLY_TCP || (action == SOVIA_AUTO && sovia_needs_tcp(listener)))
		return SOVIA_CODE_USE_TCP;
	if (sovia_fallback_outdone(listener, &link->pair, msg))
		return SOVIA_CODE_USE_TCP;
	if (sovia_check_ipsec(listener, &link->pair, msg->dport, msg->sport))
		return SOVIA_CODE_USE_TCP;
	/* Within this host connect() has asked. */
	err = link->lane.prov->local ? 0 : sovia_dry_syn_in(listener, &link->pair, msg->dport,
							    msg->sport);
	if (err)
		return err == -ENOBUFS ? SOVIA_CODE_NO_MEMORY : SOVIA_CODE_USE_TCP;
	return SOVIA_CODE_NONE;
}

static bool body_matches(const struct sovia_link *link, const struct sk_buff *skb)
{
	struct sovia_conn_body body;

	/* Cannot fail: its length has been checked. */
	skb_copy_bits(skb, 0, &body, sizeof(body));
	return !memcmp(body.saddr, &link->pair.remote, sizeof(body.saddr)) &&
	       !memcmp(body.daddr, &link->pair.local, sizeof(body.daddr));
}

/**
 * sovia_sock_rx_conn() - struct sovia_client::request
 * @lane: the lane it came on
 * @skb: the message; the caller keeps it
 * @msg: its header
 *
 * Context: softirq.
 */
void sovia_sock_rx_conn(struct sovia_lane *lane, struct sk_buff *skb,
			const struct sovia_msg *msg)
{
	struct sovia_link *link = sovia_link_of(lane);
	u32 code = SOVIA_CODE_NO_LISTENER;
	struct sock *listener;

	if (!body_matches(link, skb)) {
		sovia_link_refuse(link, msg, SOVIA_CODE_BAD_ADDRESS);
		return;
	}
	if (!sovia_link_takes_requests(link)) {
		sovia_link_refuse(link, msg, SOVIA_CODE_NO_DIRECTION);
		return;
	}
	if (sovia_lane_clogged(&link->lane)) {
		sovia_link_refuse(link, msg, SOVIA_CODE_BUSY);
		return;
	}
	if (accept_itself(link, msg))
		return;
	listener = sovia_find_listener(link->snet->net, &link->pair, msg);
	if (listener) {
		code = judge_request(listener, link, msg) ?: answer_conn(listener, link, msg);
		sock_put(listener);
	}
	if (code) {
		drop_predecessor(link, msg);
		sovia_link_refuse(link, msg, code);
	}
}

/* ---- the queue for accept() ------------------------------------------ */

static void accept_unqueue(struct sock *sk, struct sock *child)
{
	list_del_init(&sovia_sk(child)->accept.node);
	sk_acceptq_removed(sk);
	sovia_fallback_backlog(sk);
	sovia_await_end(sk, child);
}

/*
 * The first child that accept() may return, or NULL.  With TCP_DEFER_ACCEPT, a child
 * that was reset before its first data is dropped.
 */
static struct sock *first_ready(struct sock *sk)
{
	struct sovia_sock *ls = sovia_sk(sk), *ss, *next;

	list_for_each_entry_safe(ss, next, &ls->accept.ready, accept.node) {
		struct sock *child = (struct sock *)ss;

		/* The control group's programs may have been attached since it came. */
		if (sovia_packets_are_seen(sk)) {
			accept_unqueue(sk, child);
			sovia_discard_child(child);
			continue;
		}
		if (!READ_ONCE(ss->await_data) || sovia_inq(child))
			return child;
		switch (READ_ONCE(child->sk_state)) {
		case TCP_ESTABLISHED:
			break;
		case TCP_CLOSE:
			accept_unqueue(sk, child);
			sovia_discard_child(child);
			break;
		default:
			return child;
		}
	}
	return NULL;
}

/* Is there a child that first_ready() would return?  Under the spinlock: it ends none. */
static bool any_ready(struct sock *sk)
{
	struct sovia_sock *ls = sovia_sk(sk), *ss;

	list_for_each_entry(ss, &ls->accept.ready, accept.node) {
		struct sock *child = (struct sock *)ss;

		if (!READ_ONCE(ss->await_data) || sovia_inq(child))
			return true;
		if (!((1 << READ_ONCE(child->sk_state)) & (TCPF_ESTABLISHED | TCPF_CLOSE)))
			return true;
	}
	return false;
}

/**
 * sovia_acceptable() - would accept() return at once
 * @sk: a listener
 *
 * A program may own the socket for as long as it likes, by memory that its setsockopt() reads:
 * poll() does not wait for it.  Its end wakes those who wait.
 *
 * Context: process or softirq; no locks of sockets.
 * Return: true if so.
 */
bool sovia_acceptable(struct sock *sk)
{
	struct sovia_sock *ls = sovia_sk(sk);
	bool ready;

	if (sovia_fallback_acceptable(sk))
		return true;
	if (list_empty_careful(&ls->accept.ready))
		return false;
	if (!READ_ONCE(ls->opt.defer_accept))
		return true;
	spin_lock_bh(&sk->sk_lock.slock);
	ready = !sock_owned_by_user_nocheck(sk) && any_ready(sk);
	if (sock_owned_by_user_nocheck(sk))
		__set_bit(SOVIA_DEFER_READY, &ls->deferred);
	spin_unlock_bh(&sk->sk_lock.slock);
	return ready;
}

/* ---- listener -------------------------------------------------------- */

static int listen_start(struct sock *sk, int backlog)
{
	unsigned short port;
	int err = 0;

	if (!inet_sk(sk)->inet_num)
		err = sovia_get_port(sk, 0);
	/* It may take another port. */
	err = err ?: sovia_fallback_listen(sk, backlog);
	if (err)
		return err;
	port = inet_sk(sk)->inet_num;
	sk->sk_ack_backlog = 0;
	sovia_state_event(sk, SOVIA_EV_LISTEN);
	/* As a listener it may conflict with other sockets on its port. */
	err = sovia_get_port(sk, port) ?: sovia_listener_add(sk);
	if (err) {
		sovia_state_event(sk, SOVIA_EV_ABORT);
		sovia_fallback_unlisten(sk);
		return err;
	}
	inet_sk(sk)->inet_sport = htons(port);
	return 0;
}

/**
 * sovia_listen() - struct proto_ops::listen
 * @sock: the socket
 * @backlog: connections that may wait for accept()
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_listen(struct socket *sock, int backlog)
{
	struct sock *sk = READ_ONCE(sock->sk);
	int peers, err = -EINVAL;

	if (!sovia_is(sk))
		return inet_listen(sock, backlog);
	/* Not under the socket lock: it waits for the connection manager. */
	peers = sovia_link_listen(sovia_net(sock_net(sk)));
	lock_sock(sk);
	if (sovia_fallback_done(sk))
		goto out;
	if (sock->state != SS_UNCONNECTED || sock->type != SOCK_STREAM)
		goto out;
	if (sk->sk_state != TCP_CLOSE && sk->sk_state != TCP_LISTEN)
		goto out;
	err = 0;
	WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
	if (sk->sk_state == TCP_CLOSE)
		err = peers ?: listen_start(sk, backlog);
	else
		err = sovia_fallback_listen(sk, backlog);
out:
	release_sock(sk);
	return err;
}

/**
 * sovia_listen_stop() - discard children that wait for accept()
 * @sk: was a listener
 *
 * Context: process, socket lock held.
 */
void sovia_listen_stop(struct sock *sk)
{
	struct sovia_sock *ls = sovia_sk(sk), *ss, *next;

	sovia_listener_remove(sk);
	sovia_fallback_unlisten(sk);
	list_for_each_entry_safe(ss, next, &ls->accept.ready, accept.node) {
		accept_unqueue(sk, (struct sock *)ss);
		sovia_discard_child((struct sock *)ss);
	}
}

/* The next child; -ENOTSUPP if it is TCP's turn, -EAGAIN if nothing waits. */
static int next_child(struct sock *sk, struct sock **child)
{
	*child = first_ready(sk);
	if (sovia_fallback_acceptable(sk) &&
	    (!*child || sovia_fallback_first(sk, sovia_sk(*child)->accept.tcp_arrived))) {
		*child = NULL;
		return -ENOTSUPP;
	}
	return *child ? 0 : -EAGAIN;
}

static void release_listener(struct sock *sk)
{
	sovia_sk(sk)->accepting = true;
	release_sock(sk);
}

static int wait_for_child(struct sock *sk, long timeo, struct sock **child)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err;

	add_wait_queue_exclusive(sk_sleep(sk), &wait);
	for (;;) {
		/* Not in TASK_INTERRUPTIBLE: it may have to discard a child. */
		err = next_child(sk, child);
		if (err != -EAGAIN)
			break;
		err = -EINVAL;
		if (sk->sk_state != TCP_LISTEN)
			break;
		err = -EAGAIN;
		if (!timeo)
			break;
		err = sock_intr_errno(timeo);
		if (signal_pending(current))
			break;
		release_listener(sk);
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
		lock_sock(sk);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/**
 * sovia_accept_dequeue() - the work of struct proto::accept
 * @sk: the listener
 * @flags: O_NONBLOCK or 0
 * @err: set if there is none; to -ENOTSUPP if sovia_fallback_accept() is to be called
 *
 * Context: process, may sleep; no locks.
 * Return: a child that the caller owns, or NULL.
 */
struct sock *sovia_accept_dequeue(struct sock *sk, int flags, int *err)
{
	struct sock *child = NULL;

	lock_sock(sk);
	*err = -EINVAL;
	if (sk->sk_state != TCP_LISTEN)
		goto out;
	*err = next_child(sk, &child);
	if (*err == -EAGAIN)
		*err = wait_for_child(sk, sock_rcvtimeo(sk, flags & O_NONBLOCK), &child);
	if (*err)
		goto out;
	accept_unqueue(sk, child);
out:
	release_listener(sk);
	/* Its options are the listener's until this returns: most need no lock. */
	if (child && (READ_ONCE(sovia_sk(child)->await_data) || sovia_alive_wanted(child))) {
		lock_sock(child);
		WRITE_ONCE(sovia_sk(child)->await_data, false);
		sovia_alive_start(child);
		release_sock(child);
	}
	return child;
}

/* @newsock has a child of @sock: an AF_SOVIA socket, or a TCP socket if @sock has fallen back. */
static void listen_accepted(const struct socket *sock, struct socket *newsock)
{
	if (sovia_is(newsock->sk)) {
		sovia_see_sol_socket(newsock);
		sovia_charge_begin(newsock->sk);
	} else {
		/* The descriptor fell back to TCP after accept(2) had read its operations. */
		newsock->ops = READ_ONCE(sock->ops);
	}
}

/**
 * sovia_accept() - struct proto_ops::accept
 * @sock: a listener
 * @newsock: gets the child, of AF_SOVIA or of TCP
 * @arg: how
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_accept(struct socket *sock, struct socket *newsock, struct sovia_accept_arg *arg)
{
	struct sock *sk;
	int err;

	do {
		/* It may fall back to TCP any time: connect() to AF_UNSPEC, connect(), listen(). */
		sk = READ_ONCE(sock->sk);
		err = sovia_inet_accept(sock, newsock, arg);
		if (!err)
			listen_accepted(sock, newsock);
		if (err != -ENOTSUPP || !sovia_is(sk))
			break;
		err = sovia_fallback_accept(sk, newsock, arg);
		/* Another process may have been faster. */
	} while (err == -EAGAIN);
	return err;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/listen_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * connect() that ends with TCP (Documentation/fallback.rst).
 *
 *	connect() --> ARMED ----------------------> NONE	ACCEPT came, or AF_UNSPEC
 *			|
 *			| REFUSE; no link, or no answer within fallback_wait
 *			v
 *		       DUE  ---------------------> DONE		the descriptor has TCP's sk
 *			   the caller, or a work
 *
 * The descriptor's struct socket stays: with it its wait queue, in which poll(), epoll and
 * SIGIO have been all the time, and what io_uring and other threads hold.  It gets the TCP
 * socket's struct sock and TCP's operations, so that each later call is TCP's own.  The
 * AF_SOVIA sk stays allocated until the last close(): calls that were under way have it.
 * They find it CLOSE, see that the struct socket has another one, and begin anew with that.
 *
 * The descriptor is not closed during the exchange: caller and work have a reference to it.
 */
#include <linux/file.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <net/inet_common.h>
#include <net/tcp.h>
#include "close.h"
#include "compat/file.h"
#include "compat/inet.h"
#include "core/work.h"
#include "fallback.h"
#include "lane/conn_table.h"
#include "link/link_net.h"
#include "peer/peer_memory.h"
#include "recv.h"
#include "sockopt.h"
#include "tcp_log.h"

/**
 * struct tcp_ops - TCP's operations, with what has to know of the old sk
 * @ops: a copy of @from, but for some
 * @from: TCP's own
 */
struct tcp_ops {
	const struct proto_ops	ops;
	const struct proto_ops	*from;
};

/* By family: IPv4's, IPv6's.  Made when first needed, as not every kernel exports both. */
static struct tcp_ops *tcp_ops[2];
static DEFINE_MUTEX(tcp_ops_mutex);

/* ---- a descriptor that has fallen back to TCP -------------------------- */

static bool tcp_served(const struct sock *tcp)
{
	/* FIN counts as a byte.  A listener that must not have TCP's connections resets them. */
	if (tcp->sk_state == TCP_CLOSE)
		return tcp_sk(tcp)->bytes_received;
	return tcp->sk_state != TCP_SYN_SENT;
}

/*
 * A connection is over that AF_SOVIA's sk was refused and TCP's had.  Not where both are refused: a
 * client that waits for its server is AF_SOVIA's as soon as that listens; where TCP alone was
 * asked, the next one asks both.
 */
static void learn_service(const struct sock *sk, const struct sock *tcp)
{
	const struct sovia_connecting *connect = &sovia_sk(sk)->connect;
	struct sovia_net *snet = sovia_net(sock_net(sk));
	bool served = tcp_served(tcp);

	if (connect->refused && served)
		sovia_service_learn(snet, connect->service, connect->refused);
	else if (connect->cause == EHOSTDOWN && !served)
		sovia_service_forget(snet, connect->service);
}

static int tcp_release(struct socket *sock)
{
	const struct tcp_ops *tcp = container_of(sock->ops, struct tcp_ops, ops);
	struct inode *inode = SOCK_INODE(sock);
	struct sock *sk = inode->i_private;
	int err;

	inode->i_private = NULL;
	if (sk && sock->sk)
		learn_service(sk, sock->sk);
	/* As sovia_close(). */
	if (sock->sk && sock->sk->sk_lingertime && (current->flags & PF_KTHREAD))
		sock_reset_flag(sock->sk, SOCK_LINGER);
	err = tcp->from->release(sock);
	/* Sockets that accept() makes have none.  No call can have it any more. */
	if (sk) {
		/* As inet_release() for the other one: programs count what they have allowed. */
		if (!sk->sk_kern_sock)
			BPF_CGROUP_RUN_PROG_INET_SOCK_RELEASE(sk);
		sock_orphan(sk);
		sock_put(sk);
	}
	return err;
}

static int tcp_setsockopt_op(struct socket *sock, int level, int optname, sockptr_t optval,
			     unsigned int optlen)
{
	/* On kernels that pass it to AF_SOVIA. */
	if (level == SOL_SOCKET)
		return sock_setsockopt(sock, level, optname, optval, optlen);
	return sovia_refuse_option(sock->sk, level, optname, optlen) ?:
	       sock_common_setsockopt(sock, level, optname, optval, optlen);
}

#ifdef SOVIA_SET_RCVBUF
/* The old sk, of a call that has waited for its lock, is no TCP socket. */
static void tcp_set_rcvbuf_op(struct sock *sk, int val)
{
	if (!sovia_is(sk))
		inet_stream_ops.set_rcvbuf(sk, val);
}
#endif

static void change_ops(struct proto_ops *ops, const struct proto_ops *from)
{
	*ops = *from;
	ops->owner = THIS_MODULE;
	ops->release = tcp_release;
	ops->setsockopt = tcp_setsockopt_op;
	/* May be called with the old sk. */
	ops->set_rcvlowat = sovia_set_rcvlowat;
#ifdef SOVIA_SET_RCVBUF
	ops->set_rcvbuf = tcp_set_rcvbuf_op;
#endif
}

/* The operations for a socket that has those of TCP now, or NULL. */
static const struct proto_ops *own_ops(const struct socket *tcp)
{
	struct tcp_ops **own = &tcp_ops[tcp->sk->sk_family == AF_INET6];

	mutex_lock(&tcp_ops_mutex);
	if (!*own)
		*own = kzalloc(sizeof(**own), GFP_KERNEL);
	if (*own && !(*own)->from) {
		(*own)->from = tcp->ops;
		change_ops((void *)&(*own)->ops, tcp->ops);
	}
	mutex_unlock(&tcp_ops_mutex);
	return *own ? &(*own)->ops : NULL;
}

/**
 * sovia_fallback_exit() - free the operations
 *
 * Context: module exit; no socket has them any more.
 */
void sovia_fallback_exit(void)
{
	kfree(tcp_ops[0]);
	kfree(tcp_ops[1]);
}

/* Give the descriptor TCP's sk.  The old one is locked. */
static void exchange_sk(struct socket *sock, struct socket *tcp, const struct proto_ops *ops)
{
	struct sock *sk = sock->sk, *tcp_sk = tcp->sk;

	lock_sock(tcp_sk);
	tcp->sk = NULL;
	sock->state = tcp->state;
	if (test_bit(SOCK_SUPPORT_ZC, &tcp->flags))
		set_bit(SOCK_SUPPORT_ZC, &sock->flags);
	SOCK_INODE(sock)->i_private = sk;
	/* Pairs with sovia_poll(): who finds the old one CLOSE finds the new one. */
	smp_store_release(&sock->sk, tcp_sk);
	/* TCP's operations must not be called with the old one: readers read @ops first. */
	smp_wmb();
	if (!IS_ENABLED(CONFIG_X86))
		kick_all_cpus_sync();
	WRITE_ONCE(sock->ops, ops);
	release_sock(tcp_sk);
}

/* Connect with TCP, as if the program had called it.  Its result, if the call has gone. */
static int tcp_connect_to(struct sock *sk, struct socket *tcp, bool later)
{
	const struct sovia_destination *to = sovia_sk(sk)->connect.to;
	struct sockaddr_unsized *uaddr = (struct sockaddr_unsized *)&to->addr;
	int err;

	err = sovia_fallback_bind_source(sk, tcp) ?:
	      tcp->ops->connect(tcp, uaddr, to->len, O_NONBLOCK);
	if (!later)
		return err;
	/* The next call of connect() asks for it. */
	tcp->state = SS_CONNECTING;
	if (err && err != -EINPROGRESS)
		WRITE_ONCE(tcp->sk->sk_err, -err);
	return err;
}

/*
 * Wake the calls that wait in the kernel, but those who poll only if there is news: io_uring
 * would take a wake-up without any for the end of connect().
 */
static void wake_calls(struct sock *sk)
{
	struct socket_wq *wq;

	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		__wake_up(&wq->wait, TASK_INTERRUPTIBLE, 0, poll_to_key(EPOLLMSG));
	rcu_read_unlock();
}

/* What TCP has said until now, it has said to calls that had the old sk. */
static void repeat_events(struct sock *tcp_sk)
{
	if (READ_ONCE(tcp_sk->sk_state) == TCP_SYN_SENT) {
		/* It is writable already: what is sent first goes with the SYN. */
		if (sovia_tcp_defers_connect(tcp_sk))
			tcp_sk->sk_write_space(tcp_sk);
		return;
	}
	tcp_sk->sk_state_change(tcp_sk);
	if (READ_ONCE(tcp_sk->sk_err))
		sk_error_report(tcp_sk);
	if (READ_ONCE(tcp_sk->sk_state) == TCP_ESTABLISHED)
		sk_wake_async(tcp_sk, SOCK_WAKE_IO, POLL_OUT);
}

/*
 * It is TCP's turn: connect there, and exchange the sk.  @later: connect() has returned.
 * Returns what a non-blocking connect() does.
 */
static int become_tcp(struct socket *sock, bool later)
{
	struct sock *sk = sock->sk, *tcp_sk;
	struct sovia_sock *ss = sovia_sk(sk);
	int err, cause = ss->connect.cause;
	const struct proto_ops *ops = NULL;
	struct socket *tcp;

	tcp = sovia_fallback_make(sk);
	if (!IS_ERR_OR_NULL(tcp))
		ops = own_ops(tcp);
	if (!ops) {
		/* Only TCP listens there, which this program may not use: AF_SOVIA is refused. */
		if (cause == EHOSTDOWN)
			cause = ECONNREFUSED;
		ss->connect.fallback = SOVIA_FALLBACK_NONE;
		sovia_done(sk, cause);
		return -cause;
	}
	tcp_sk = tcp->sk;
	/* shutdown() before connect() is an error, and takes effect. */
	WRITE_ONCE(tcp_sk->sk_shutdown, sk->sk_shutdown);
	err = tcp_connect_to(sk, tcp, later);
	WRITE_ONCE(ss->fallback->tcp, NULL);
	ss->connect.fallback = SOVIA_FALLBACK_DONE;
	sovia_fallback_copied(sk);
	/* First: a program that sees TCP's socket finds out why. */
	sovia_stat_inc(sovia_net(sock_net(sk)), fallback);
	sovia_tcp_log_add(sovia_net(sock_net(sk)), tcp_sk, SOVIA_RULE_OUT, ss->connect.why,
			  cause == EHOSTDOWN ? 0 : cause);
	if (cause == EHOSTDOWN)
		sovia_stat_inc(sovia_net(sock_net(sk)), fallback_known);
	exchange_sk(sock, tcp, ops);
	sovia_retire(sk);
	wake_calls(sk);
	sock_release(tcp);
	repeat_events(tcp_sk);
	return err;
}

/* ---- the decision ------------------------------------------------------ */

/*
 * Own the socket, or have its owner queue the work again: a program may keep the lock for as long
 * as it likes, by memory that its setsockopt() reads, and all users share the workers.
 */
static bool own_or_defer(struct sock *sk)
{
	bool owned;

	spin_lock_bh(&sk->sk_lock.slock);
	owned = sock_owned_by_user_nocheck(sk);
	if (owned)
		__set_bit(SOVIA_DEFER_FALLBACK, &sovia_sk(sk)->deferred);
	else
		sk->sk_lock.owned = 1;
	spin_unlock_bh(&sk->sk_lock.slock);
	if (!owned)
		mutex_acquire(&sk->sk_lock.dep_map, 0, 1, _RET_IP_);
	return !owned;
}

/**
 * sovia_fallback_work() - it is TCP's turn, or TCP is not needed, and no caller waits
 * @work: struct sovia_fallback::work, with references to the sk and its file
 *
 * Context: workqueue.
 */
void sovia_fallback_work(struct work_struct *work)
{
	struct sovia_fallback *fb = container_of(work, struct sovia_fallback, work);
	struct sock *sk = fb->sk;
	struct socket *sock = sk->sk_socket;
	struct file *file = sock->file;

	if (own_or_defer(sk)) {
		if (sk->sk_state == TCP_LISTEN)
			sovia_fallback_match_listener(sk);
		else if (sovia_sk(sk)->connect.fallback == SOVIA_FALLBACK_DUE)
			become_tcp(sock, true);
		else if (sovia_sk(sk)->connect.fallback == SOVIA_FALLBACK_NONE)
			sovia_fallback_drop(sk);
		release_sock(sk);
	}
	fput(file);
	sock_put(sk);
}

/**
 * sovia_fallback_queue() - queue the work that looks what is to be done
 * @sk: has a struct sovia_fallback
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_fallback_queue(struct sock *sk)
{
	struct sovia_fallback *fb = sovia_sk(sk)->fallback;
	struct file *file = sk->sk_socket ? sk->sk_socket->file : NULL;

	/* Sockets of the kernel have none.  One that is just being closed needs nothing more. */
	if (!file || !sovia_get_file(file))
		return;
	sock_hold(sk);
	if (queue_work(sovia_tcp_wq, &fb->work))
		return;
	/* It is queued since an earlier connect(). */
	fput(file);
	sock_put(sk);
}

/**
 * sovia_fallback_due() - AF_SOVIA does not connect: it is TCP's turn, if there is one
 * @sk: in any state; leaves its connection
 * @err: what connect() would have returned, a positive errno
 * @why: the reason
 *
 * Context: socket lock held, process or softirq.
 * Return: true if so; false if the error is connect()'s.
 */
bool sovia_fallback_due(struct sock *sk, int err, enum sovia_why why)
{
	struct sovia_sock *ss = sovia_sk(sk);
	struct sovia_conn *conn;

	if (sk->sk_state != TCP_SYN_SENT || ss->connect.fallback != SOVIA_FALLBACK_ARMED)
		return false;
	ss->connect.fallback = SOVIA_FALLBACK_DUE;
	ss->connect.cause = err;
	ss->connect.why = why;
	sk_stop_timer(sk, &sk->sk_timer);
	conn = sovia_conn_of(sk);
	/* The peer may have a child already. */
	if (conn && conn->hashed && err != ECONNREFUSED)
		sovia_conn_control(conn, SOVIA_RESET, SOVIA_CODE_ABORT);
	sovia_leave_link(sk);
	if (ss->connect.callers)
		wake_calls(sk);
	else
		sovia_fallback_queue(sk);
	return true;
}

/**
 * sovia_fallback_unneeded() - AF_SOVIA has connected
 * @sk: just ESTABLISHED
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_fallback_unneeded(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (ss->connect.fallback != SOVIA_FALLBACK_ARMED)
		return;
	ss->connect.fallback = SOVIA_FALLBACK_NONE;
	/* A caller closes it itself. */
	if (!ss->connect.callers && ss->fallback && ss->fallback->tcp)
		sovia_fallback_queue(sk);
}

/* ---- connect() --------------------------------------------------------- */

/* connect() returns, but goes on: prepare what TCP needs, in the context of its caller. */
static void prepare_tcp(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);

	if (IS_ERR_OR_NULL(sovia_fallback_make(sk))) {
		ss->connect.fallback = SOVIA_FALLBACK_NONE;
		return;
	}
	ss->fallback->to = *ss->connect.to;
	ss->connect.to = &ss->fallback->to;
}

static bool is_undecided(const struct sock *sk)
{
	return sk->sk_state == TCP_SYN_SENT &&
	       sovia_sk(sk)->connect.fallback != SOVIA_FALLBACK_DUE;
}

/* AF_SOVIA's result of a connect() that has waited. */
static int connect_result(struct socket *sock)
{
	struct sock *sk = sock->sk;
	int err;

	if (sk->sk_state != TCP_CLOSE) {
		sock->state = SS_CONNECTED;
		return 0;
	}
	err = sock_error(sk) ?: -ECONNABORTED;
	sock->state = SS_UNCONNECTED;
	sk->sk_prot->disconnect(sk, 0);
	return err;
}

/*
 * Wait until there is a result, or it is TCP's turn.  Returns 0, or an errno for the program,
 * @err if the time is over.
 */
static int wait_for_decision(struct sock *sk, int err)
{
	struct sovia_sock *ss = sovia_sk(sk);
	long timeo = sock_sndtimeo(sk, 0);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int disconnects = sk->sk_disconnects;

	ss->connect.callers++;
	add_wait_queue(sk_sleep(sk), &wait);
	do {
		release_sock(sk);
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
		lock_sock(sk);
	} while (is_undecided(sk) && timeo && !signal_pending(current));
	remove_wait_queue(sk_sleep(sk), &wait);
	ss->connect.callers--;
	/* By another process. */
	if (disconnects != sk->sk_disconnects)
		return -EPIPE;
	if (!is_undecided(sk))
		return 0;
	return timeo ? sock_intr_errno(timeo) : err;
}

/* Errors at once to which TCP would have another answer; EHOSTDOWN: known to fall back. */
static bool tcp_knows_better(int err)
{
	return err == -EHOSTDOWN || err == -EOPNOTSUPP || err == -ENOBUFS || err == -ENOMEM;
}

static bool may_fall_back(const struct socket *sock)
{
	return sovia_fallback_wanted(sock->sk) && sock->file;
}

/* Why TCP is to be used after @err, of which no reason is known yet. */
static enum sovia_why why_at_once(int err, int no_links)
{
	if (err == no_links)
		return SOVIA_WHY_DEVICE;
	return err == -EOPNOTSUPP ? SOVIA_WHY_FILTER : SOVIA_WHY_MEMORY;
}

/* Start to connect.  @no_links: as in struct sovia_connecting. */
static int start_connecting(struct socket *sock, struct sockaddr_unsized *uaddr,
			    const struct sovia_destination *to, int no_links)
{
	struct sovia_sock *ss = sovia_sk(sock->sk);
	bool first = sock->state == SS_UNCONNECTED && sock->sk->sk_state == TCP_CLOSE &&
		     to->len >= (int)sizeof(uaddr->sa_family) && uaddr->sa_family != AF_UNSPEC;
	int err;

	if (first) {
		ss->connect.fallback = may_fall_back(sock) ? SOVIA_FALLBACK_ARMED :
							     SOVIA_FALLBACK_NONE;
		ss->connect.to = to;
		ss->connect.no_links = no_links;
	}
	err = __inet_stream_connect(sock, uaddr, to->given, O_NONBLOCK, 0);
	if (!first || !err || err == -EINPROGRESS)
		return err;
	if (sovia_fallback_armed(sock->sk) && (err == no_links || tcp_knows_better(err))) {
		ss->connect.fallback = SOVIA_FALLBACK_DUE;
		ss->connect.cause = -err;
		if (err != -EHOSTDOWN)
			ss->connect.why = why_at_once(err, no_links);
	} else {
		ss->connect.fallback = SOVIA_FALLBACK_NONE;
	}
	return err;
}

static int connect_locked(struct socket *sock, struct sockaddr_unsized *uaddr,
			  const struct sovia_destination *to, int flags, int no_links)
{
	struct sock *sk = sock->sk;
	struct sovia_sock *ss = sovia_sk(sk);
	int err;

	err = start_connecting(sock, uaddr, to, no_links);
	if ((err == -EINPROGRESS || err == -EALREADY) && !(flags & O_NONBLOCK)) {
		err = wait_for_decision(sk, err);
		/* Another call was faster. */
		if (sovia_fallback_done(sk))
			return -EALREADY;
		if (!err && ss->connect.fallback != SOVIA_FALLBACK_DUE)
			err = connect_result(sock);
	}
	/* If an earlier call has returned, its work does it. */
	if (ss->connect.fallback == SOVIA_FALLBACK_DUE && err != -EALREADY)
		return become_tcp(sock, false);
	/* Its own address is gone when it returns. */
	if (sovia_fallback_armed(sk) && ss->connect.to == to)
		prepare_tcp(sk);
	else if (!err)
		sovia_fallback_drop(sk);
	return err;
}

/* The rest of a blocking connect(), which would have returned @err without blocking. */
static int wait_for_tcp(struct socket *sock, const struct sovia_destination *to, int err)
{
	int ret = inet_stream_connect(sock, (struct sockaddr_unsized *)&to->addr, to->len, 0);

	switch (ret) {
	case -EALREADY:
		return err;
	case -EISCONN:
		/* Another caller has waited as well. */
		return 0;
	default:
		return ret;
	}
}

/**
 * sovia_stream_connect() - struct proto_ops::connect
 * @sock: the socket
 * @uaddr: destination
 * @len: length of it
 * @flags: O_NONBLOCK or 0
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_stream_connect(struct socket *sock, struct sockaddr_unsized *uaddr, int len, int flags)
{
	struct sock *sk = READ_ONCE(sock->sk);
	struct sovia_destination to = {
		.len = min_t(int, len, sizeof(to.addr)),
		.given = len,
	};
	int no_links, err;

	if (!sovia_is(sk))
		return inet_stream_connect(sock, uaddr, len, flags);
	/* Not under the socket lock: it waits for the connection manager. */
	no_links = sovia_link_listen(sovia_net(sock_net(sk)));
	/* A control group's program may change it. */
	if (to.len > 0)
		memcpy(&to.addr, uaddr, to.len);
	lock_sock(sk);
	if (sovia_fallback_done(sk)) {
		release_sock(sk);
		return inet_stream_connect(sock, uaddr, len, flags);
	}
	err = connect_locked(sock, uaddr, &to, flags, no_links);
	release_sock(sk);
	if (!sovia_is(READ_ONCE(sock->sk)) && !(flags & O_NONBLOCK) &&
	    (err == -EALREADY || err == -EINPROGRESS))
		return wait_for_tcp(sock, &to, err);
	return err;
}

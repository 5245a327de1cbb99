// SPDX-License-Identifier: GPL-2.0-only
/*
 * The TCP socket beside an AF_SOVIA socket (Documentation/fallback.rst): a listener is
 * reached by nodes without this module, too, and a port is taken in both spaces.
 *
 * bind() and listen() make it, in the context of their caller: it has the caller's control
 * group, user, namespace and security labels, and stays until close().  Its wait queue is the
 * AF_SOVIA socket's, which programs wait on.  What accept() returns of it is a TCP socket
 * and nothing else.
 *
 * Locks: the AF_SOVIA socket's, then the TCP socket's.
 */
#include <linux/filter.h>
#include <linux/jhash.h>
#include <linux/pfkeyv2.h>
#include <linux/slab.h>
#include <linux/xfrm.h>
#include <net/inet_connection_sock.h>
#include <net/ip.h>
#include <uapi/linux/netfilter_ipv4/ip_tables.h>
#include <uapi/linux/netfilter_ipv6/ip6_tables.h>
#include "compat/accept.h"
#include "compat/addr.h"
#include "compat/inet.h"
#include "compat/proto.h"
#include "compat/sysctl.h"
#include "core/addr.h"
#include "core/param.h"
#include "fallback.h"
#include "peer/peer_memory.h"
#include "policy/rule.h"
#include "port.h"
#include "program.h"
#include "tcp_log.h"

/* A port that any would do is looked for this many times. */
#define FALLBACK_PORT_TRIES	64

/* 6.14 added SO_RCVPRIORITY. */
#ifdef SO_RCVPRIORITY
#define FALLBACK_PRIORITY_FLAG	BIT(SOCK_RCVPRIORITY)
#else
#define FALLBACK_PRIORITY_FLAG	0
#endif

/* Options of SOL_SOCKET that are flags. */
#define FALLBACK_FLAGS		(BIT(SOCK_LINGER) | BIT(SOCK_KEEPOPEN) | BIT(SOCK_URGINLINE) | \
				 BIT(SOCK_LOCALROUTE) | BIT(SOCK_DBG) | BIT(SOCK_RCVTSTAMP) | \
				 BIT(SOCK_RCVTSTAMPNS) | BIT(SOCK_TSTAMP_NEW) | \
				 BIT(SOCK_FILTER_LOCKED) | BIT(SOCK_BROADCAST) | BIT(SOCK_NOFCS) | \
				 BIT(SOCK_RXQ_OVFL) | BIT(SOCK_WIFI_STATUS) | BIT(SOCK_RCVMARK) | \
				 BIT(SOCK_SELECT_ERR_QUEUE) | BIT(SOCK_TXTIME) | \
				 FALLBACK_PRIORITY_FLAG)

/* TCP takes no longer option value: an IPsec policy and extension headers are shorter. */
#define FALLBACK_OPTION_MAX	4096

static unsigned int fallback_default = 1;
sovia_param(fallback, fallback_default, 0, 1, 0444);
MODULE_PARM_DESC(fallback, "net.sovia.fallback of new namespaces: sockets take their port in TCP, too, and accept its connections (1)");

/**
 * struct sovia_option - an option that the program has set
 * @node: in sovia_fallback::options
 * @level: any but SOL_SOCKET
 * @name: option
 * @len: length of @value
 * @value: as the program gave it
 */
struct sovia_option {
	struct list_head	node;
	int			level;
	int			name;
	unsigned int		len;
	u8			value[];
};

/* ---- net.sovia.fallback --------------------------------------------- */

static int fallback_sysctl(sovia_ctl_table *table, int write, void *buffer, size_t *lenp,
			   loff_t *ppos)
{
	struct sovia_net *snet = container_of(table->data, struct sovia_net, fallback.value);
	int err = proc_dointvec_minmax(table, write, buffer, lenp, ppos);

	if (!err && write)
		sovia_memories_forget(snet);
	return err;
}

/**
 * sovia_fallback_net_init() - register a namespace's switch
 * @snet: the namespace
 *
 * Context: pernet init.
 * Return: 0 or -ENOMEM.
 */
int sovia_fallback_net_init(struct sovia_net *snet)
{
	snet->fallback.value = fallback_default;
	return sovia_sysctl_add(snet->net, &snet->fallback, "fallback", SYSCTL_ONE,
				fallback_sysctl);
}

/**
 * sovia_fallback_net_exit() - remove it
 * @snet: the namespace
 *
 * Context: pernet pre-exit.
 */
void sovia_fallback_net_exit(struct sovia_net *snet)
{
	sovia_sysctl_remove(&snet->fallback);
}

/* ---- making it --------------------------------------------------------- */

/* The TCP socket, or NULL. */
static struct socket *fallback_tcp(const struct sock *sk)
{
	/* Pairs with fallback_get(). */
	const struct sovia_fallback *fb = smp_load_acquire(&sovia_sk(sk)->fallback);

	if (!fb)
		return NULL;
	/* Pairs with sovia_fallback_make(). */
	return smp_load_acquire(&fb->tcp);
}

/*
 * The sk of a listener's TCP socket, or NULL.  The bottom half may still have a listener that
 * is closed: RCU keeps the memory, but the sk may be another socket's by then, so only who
 * knows that it listens may write.
 */
static struct sock *listener_tcp(const struct sock *sk)
{
	const struct socket *tcp = fallback_tcp(sk);

	RCU_LOCKDEP_WARN(!rcu_read_lock_held() && !rcu_read_lock_bh_held() &&
			 !lockdep_sock_is_held(sk), "the TCP socket may be freed");
	return tcp ? READ_ONCE(tcp->sk) : NULL;
}

static struct sovia_fallback *fallback_get(struct sock *sk)
{
	struct sovia_fallback *fb = sovia_sk(sk)->fallback;

	sock_owned_by_me(sk);
	if (fb)
		return fb;
	fb = kzalloc(sizeof(*fb), GFP_KERNEL_ACCOUNT);
	if (fb) {
		fb->sk = sk;
		INIT_LIST_HEAD(&fb->options);
		INIT_WORK(&fb->work, sovia_fallback_work);
		/* Readers without the lock find it initialised. */
		smp_store_release(&sovia_sk(sk)->fallback, fb);
	}
	return fb;
}

/* Timestamps that the program wants need those of the network's. */
static void copy_timestamps(const struct sock *sk, struct sock *tcp)
{
	bool wanted = tcp->sk_flags & SK_FLAGS_TIMESTAMP;

	tcp->sk_flags |= sk->sk_flags & SK_FLAGS_TIMESTAMP;
	if (!wanted && (tcp->sk_flags & SK_FLAGS_TIMESTAMP))
		net_enable_timestamp();
	/* TCP numbers bytes from where it was when that was set, and knows the clock's device. */
	WRITE_ONCE(tcp->sk_tsflags, sk->sk_tsflags &
				    ~(SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_BIND_PHC));
}

/*
 * SO_ATTACH_FILTER of a TCP socket needs the capability.  Kernels that do not show SOL_SOCKET to
 * the family let anybody attach it to the AF_SOVIA socket.  A worker asks for who opened it.
 */
static bool may_share(const struct sock *sk, const struct sk_filter *filter)
{
	struct user_namespace *ns = sock_net(sk)->user_ns;
	const struct file *file = sk->sk_socket ? sk->sk_socket->file : NULL;

	if (!filter || sovia_sees_sol_socket() || !filter->prog->orig_prog)
		return true;
	if (current->flags & PF_KTHREAD)
		return file && file_ns_capable(file, ns, CAP_NET_ADMIN);
	return ns_capable_noaudit(ns, CAP_NET_ADMIN);
}

/* Both sockets have the same socket filter. */
static void share_filter(const struct sock *sk, struct sock *tcp)
{
	struct sk_filter *filter = rcu_dereference_protected(sk->sk_filter,
							     lockdep_sock_is_held(sk));
	bool shared = rcu_access_pointer(tcp->sk_filter) == filter;
	bool refused;

	/* What its program may not do a worker does not do for it. */
	if (!shared && (current->flags & PF_KTHREAD) && sovia_sk(sk)->fallback->refused)
		return;
	refused = !shared && !may_share(sk, filter);
	WRITE_ONCE(sovia_sk(sk)->fallback->refused, refused);
	if (shared || refused)
		return;
	/* That and the end of @tcp uncharge what is charged here. */
	sock_reset_flag(tcp, SOCK_FILTER_LOCKED);
	sk_detach_filter(tcp);
	if (!filter)
		return;
	refcount_inc(&filter->refcnt);
	atomic_add(bpf_prog_size(filter->prog->len), &tcp->sk_omem_alloc);
	rcu_assign_pointer(tcp->sk_filter, filter);
}

/* As SO_MAX_PACING_RATE: without fq, TCP paces itself. */
static void copy_pacing(const struct sock *sk, struct sock *tcp)
{
	unsigned long rate = READ_ONCE(sk->sk_max_pacing_rate);

	if (rate != ~0UL)
		cmpxchg(&tcp->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	WRITE_ONCE(tcp->sk_max_pacing_rate, rate);
	WRITE_ONCE(tcp->sk_pacing_rate, min_t(unsigned long, READ_ONCE(tcp->sk_pacing_rate), rate));
}

/* Options of packets: they have no effect here, but some have one on the TCP socket. */
static void copy_packet_options(const struct sock *sk, struct sock *tcp)
{
	tcp->sk_no_check_tx = sk->sk_no_check_tx;
	tcp->sk_clockid = sk->sk_clockid;
	tcp->sk_txtime_deadline_mode = sk->sk_txtime_deadline_mode;
	tcp->sk_txtime_report_errors = sk->sk_txtime_report_errors;
	WRITE_ONCE(tcp->sk_txrehash, READ_ONCE(sk->sk_txrehash));
}

/*
 * Copy the options of SOL_SOCKET, which families do not see being set on all kernels.  Both sockets
 * are locked.
 */
static void copy_sol_socket(const struct sock *sk, struct sock *tcp)
{
	const unsigned long flags = FALLBACK_FLAGS;
	const u8 sizes = SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK;

	sock_owned_by_me(sk);
	sock_owned_by_me(tcp);
	share_filter(sk, tcp);
	tcp->sk_prot->keepalive(tcp, sock_flag(sk, SOCK_KEEPOPEN));
	tcp->sk_flags = (tcp->sk_flags & ~flags) | (sk->sk_flags & flags);
	copy_timestamps(sk, tcp);
	tcp->sk_lingertime = sk->sk_lingertime;
	tcp->sk_reuse = sk->sk_reuse;
	tcp->sk_reuseport = sk->sk_reuseport;
	tcp->sk_ipv6only = sk->sk_ipv6only;
	WRITE_ONCE(tcp->sk_bound_dev_if, sk->sk_bound_dev_if);
	WRITE_ONCE(tcp->sk_priority, sk->sk_priority);
	WRITE_ONCE(tcp->sk_mark, sk->sk_mark);
	WRITE_ONCE(tcp->sk_rcvlowat, sk->sk_rcvlowat);
	WRITE_ONCE(tcp->sk_rcvtimeo, sk->sk_rcvtimeo);
	WRITE_ONCE(tcp->sk_sndtimeo, sk->sk_sndtimeo);
	WRITE_ONCE(tcp->sk_incoming_cpu, sk->sk_incoming_cpu);
	copy_pacing(sk, tcp);
	copy_packet_options(sk, tcp);
#ifdef CONFIG_NET_RX_BUSY_POLL
	WRITE_ONCE(tcp->sk_ll_usec, sk->sk_ll_usec);
	WRITE_ONCE(tcp->sk_prefer_busy_poll, sk->sk_prefer_busy_poll);
	WRITE_ONCE(tcp->sk_busy_poll_budget, sk->sk_busy_poll_budget);
#endif
	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK)
		WRITE_ONCE(tcp->sk_sndbuf, sk->sk_sndbuf);
	if (sk->sk_userlocks & SOCK_RCVBUF_LOCK)
		WRITE_ONCE(tcp->sk_rcvbuf, sk->sk_rcvbuf);
	tcp->sk_userlocks = (tcp->sk_userlocks & ~sizes) | (sk->sk_userlocks & sizes);
	WRITE_ONCE(tcp->sk_peek_off, READ_ONCE(sk->sk_peek_off));
}

/* The same.  A process that may sleep has @sk locked. */
static void copy_sol_socket_now(const struct sock *sk, struct sock *tcp)
{
	lock_sock(tcp);
	copy_sol_socket(sk, tcp);
	release_sock(tcp);
}

/*
 * The same.  The owner of @sk is about to release it.  Another process has @tcp only if it is the
 * descriptor's already, and then sets its options by itself.
 */
static void copy_sol_socket_released(const struct sock *sk, struct sock *tcp)
{
	bh_lock_sock(tcp);
	if (!sock_owned_by_user(tcp))
		copy_sol_socket(sk, tcp);
	bh_unlock_sock(tcp);
}

/*
 * Share the struct socket: netfilter sees the file's owner, and wake-ups reach the wait queue of
 * the AF_SOVIA socket.
 */
static void share_descriptor(const struct sock *sk, struct sock *tcp)
{
	write_lock_bh(&tcp->sk_callback_lock);
	rcu_assign_pointer(tcp->sk_wq, &sk->sk_socket->wq);
	sk_set_socket(tcp, sk->sk_socket);
	tcp->sk_uid = sk->sk_uid;
	/* The list of those who want SIGIO is in the queue. */
	sock_set_flag(tcp, SOCK_FASYNC);
	write_unlock_bh(&tcp->sk_callback_lock);
}

static void fallback_set_option(struct socket *tcp, const struct sovia_option *option)
{
	/* Without a value, a policy goes. */
	void *value = option->len ? (void *)option->value : NULL;

	sock_common_setsockopt(tcp, option->level, option->name, KERNEL_SOCKPTR(value),
			       option->len);
}

static struct socket *make_tcp(struct sock *sk)
{
	struct sovia_fallback *fb = fallback_get(sk);
	struct sovia_option *option;
	struct socket *tcp;
	int err;

	if (!fb)
		return ERR_PTR(-ENOBUFS);
	err = __sock_create(sock_net(sk), sk->sk_family, SOCK_STREAM, IPPROTO_TCP, &tcp, 0);
	if (err)
		return err == -EPERM || err == -EACCES ? NULL : ERR_PTR(err);
	copy_sol_socket_now(sk, tcp->sk);
	/* What TCP has no use for changes nothing. */
	list_for_each_entry(option, &fb->options, node)
		fallback_set_option(tcp, option);
	share_descriptor(sk, tcp->sk);
	/* Readers without the lock find it complete. */
	smp_store_release(&fb->tcp, tcp);
	return tcp;
}

/*
 * Has the program an IPsec policy that TCP's socket has not?  That needs the capability, which it
 * may have dropped since.
 */
static bool lacks_policy(const struct sock *sk, const struct sock *tcp)
{
#ifdef CONFIG_XFRM
	int dir;

	for (dir = 0; dir < ARRAY_SIZE(sk->sk_policy); dir++)
		if (rcu_access_pointer(sk->sk_policy[dir]) &&
		    !rcu_access_pointer(tcp->sk_policy[dir]))
			return true;
#endif
	return false;
}

/**
 * sovia_fallback_make() - the TCP socket, with the options as they are
 * @sk: not connected
 *
 * Makes it, if there is none yet, for the process that runs: its control group, security
 * labels and limits.  The security policy may allow AF_SOVIA's sockets alone.
 *
 * Context: process, may sleep; socket lock held.
 * Return: it, NULL if it is not to be, or an ERR_PTR().
 */
struct socket *sovia_fallback_make(struct sock *sk)
{
	struct socket *tcp = fallback_tcp(sk);

	if (tcp)
		copy_sol_socket_now(sk, tcp->sk);
	else if (sk->sk_socket && sovia_fallback_wanted(sk))
		tcp = make_tcp(sk);
	if (IS_ERR_OR_NULL(tcp))
		return tcp;
	return sovia_sk(sk)->fallback->refused || lacks_policy(sk, tcp->sk) ? NULL : tcp;
}

/* Does a listener's TCP socket listen? */
static bool tcp_listens(const struct sock *sk)
{
	const struct sock *tcp;
	bool listens;

	rcu_read_lock();
	tcp = listener_tcp(sk);
	listens = tcp && READ_ONCE(tcp->sk_state) == TCP_LISTEN;
	rcu_read_unlock();
	return listens;
}

/* Is it the TCP socket beside a listener of ours, which has the descriptor's struct socket? */
static bool is_beside(const struct sock *tcp)
{
	const struct socket *sock = READ_ONCE(tcp->sk_socket);
	const struct sock *sk = sock ? READ_ONCE(sock->sk) : NULL;

	/* One without a descriptor is about to end. */
	return !sk || sovia_is(sk);
}

/**
 * sovia_fallback_outdone() - would TCP give a connection to a plain TCP listener
 * @sk: the listener that it is for
 * @pair: addresses of the link that CONN arrived on
 * @msg: CONN
 *
 * One on the same port may fit better, by its address, interface or family, or be the one that
 * their SO_REUSEPORT group chooses.
 *
 * Context: process or softirq.
 * Return: true if so.
 */
bool sovia_fallback_outdone(const struct sock *sk, const struct sovia_pair *pair,
			    const struct sovia_msg *msg)
{
	struct sock *tcp, *other;
	struct sk_buff *syn;
	bool outdone;
	int device;

	if (!tcp_listens(sk))
		return false;
	device = sovia_pair_iif(sock_net(sk), pair);
	rcu_read_lock();
	tcp = listener_tcp(sk);
	syn = tcp ? sovia_program_syn(tcp, pair, msg) : NULL;
	other = sovia_tcp_lookup_listener(sock_net(sk), syn, &pair->remote, msg->sport,
					  &pair->local, msg->dport, pair->l3 ?: device,
					  pair->l3 ? device : 0);
	outdone = other && !is_beside(other);
	kfree_skb(syn);
	rcu_read_unlock();
	return outdone;
}

/**
 * sovia_needs_tcp() - does a socket use options that only IP packets carry
 * @sk: connects, or listens
 *
 * Options in their headers, the least TTL of those that come, and addresses of others.
 *
 * Context: any.
 * Return: true if so; for a listener, if TCP listens as well.
 */
bool sovia_needs_tcp(const struct sock *sk)
{
	if (sk->sk_state == TCP_LISTEN && !tcp_listens(sk))
		return false;
	return sovia_transparent(sk) || READ_ONCE(inet_sk(sk)->min_ttl) ||
	       rcu_access_pointer(inet_sk(sk)->inet_opt) ||
	       (sk->sk_family == AF_INET6 && (READ_ONCE(inet6_sk(sk)->min_hopcount) ||
					      rcu_access_pointer(inet6_sk(sk)->opt)));
}

/*
 * Options of netfilter change tables of the namespace, not the socket: once is enough.  Some take
 * RTNL, which must not be taken under the socket lock.
 */
static bool is_of_netfilter(int level, int optname)
{
	if (level == SOL_IP)
		return optname >= IPT_BASE_CTL;
	return level == SOL_IPV6 && optname >= IP6T_BASE_CTL && optname <= IP6T_SO_SET_MAX;
}

static void option_free(struct sock *sk, struct sovia_option *option)
{
	sock_kfree_s(sk, option, struct_size(option, value, option->len));
}

/* Returns NULL if it is too long, or without memory; net.core.optmem_max bounds all of a socket. */
static struct sovia_option *option_copy(struct sock *sk, int level, int name, sockptr_t optval,
					unsigned int len)
{
	struct sovia_option *new;

	if (len > FALLBACK_OPTION_MAX)
		return NULL;
	new = sock_kmalloc(sk, struct_size(new, value, len), GFP_KERNEL_ACCOUNT);
	if (!new)
		return NULL;
	new->level = level;
	new->name = name;
	new->len = len;
	if (!copy_from_sockptr(new->value, optval, len))
		return new;
	option_free(sk, new);
	return NULL;
}

/* The direction of an IPsec policy, which each have their own; 0 for all others. */
static unsigned int direction_of(const struct sovia_option *option)
{
	const struct sadb_x_policy *pfkey = (const void *)option->value;
	const struct xfrm_userpolicy_info *info = (const void *)option->value;
	bool v4 = option->level == SOL_IP, v6 = option->level == SOL_IPV6;

	if (option->len >= sizeof(*info) && ((v4 && option->name == IP_XFRM_POLICY) ||
					     (v6 && option->name == IPV6_XFRM_POLICY)))
		return info->dir + 1;
	if (option->len >= sizeof(*pfkey) && ((v4 && option->name == IP_IPSEC_POLICY) ||
					      (v6 && option->name == IPV6_IPSEC_POLICY)))
		return pfkey->sadb_x_policy_dir;
	return 0;
}

/* Remember an option for the TCP socket. */
static void keep_option(struct sock *sk, struct sovia_option *new)
{
	struct sovia_fallback *fb = fallback_get(sk);
	struct sovia_option *old, *next;

	if (!fb) {
		option_free(sk, new);
		return;
	}
	list_for_each_entry_safe(old, next, &fb->options, node) {
		if (old->level == new->level && old->name == new->name &&
		    (!direction_of(new) || direction_of(new) == direction_of(old))) {
			list_del(&old->node);
			option_free(sk, old);
		}
	}
	list_add_tail(&new->node, &fb->options);
}

/**
 * sovia_fallback_option() - the program has set an option
 * @sk: the socket
 * @level: any but SOL_SOCKET
 * @optname: option
 * @optval: value
 * @optlen: its length
 *
 * Context: process, may sleep; no locks.
 */
void sovia_fallback_option(struct sock *sk, int level, int optname, sockptr_t optval,
			   unsigned int optlen)
{
	struct sovia_option *new;
	struct socket *tcp;

	if (is_of_netfilter(level, optname))
		return;
	/* Before it connects, it may be allowed to later. */
	if (!fallback_tcp(sk) && READ_ONCE(sk->sk_state) != TCP_CLOSE && !sovia_fallback_wanted(sk))
		return;
	new = option_copy(sk, level, optname, optval, optlen);
	lock_sock(sk);
	tcp = fallback_tcp(sk);
	if (tcp && new)
		fallback_set_option(tcp, new);
	/* For want of memory. */
	if (tcp && lacks_policy(sk, tcp->sk))
		sovia_fallback_unlisten(sk);
	/* A connection that ends may be followed by one over TCP. */
	if (new && !sovia_fallback_done(sk))
		keep_option(sk, new);
	else if (new)
		option_free(sk, new);
	release_sock(sk);
}

/* ---- ports ----------------------------------------------------------- */

/* Forget a port that the socket does not have any more. */
static void drop_port(struct sock *tcp)
{
	lock_sock(tcp);
	if (tcp->sk_state == TCP_CLOSE && inet_sk(tcp)->inet_num) {
		tcp->sk_prot->put_port(tcp);
		inet_reset_saddr(tcp);
		inet_sk(tcp)->inet_sport = 0;
	}
	release_sock(tcp);
}

/* Bind TCP's to the socket's address, and a port; 0: connect() will choose it. */
static int bind_alike(struct sock *sk, struct socket *tcp, u16 port)
{
	struct sockaddr_in6 sin6 = {
		.sin6_family = AF_INET6,
		.sin6_port = htons(port),
		.sin6_scope_id = sk->sk_bound_dev_if,
	};
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = inet_sk(sk)->inet_rcv_saddr,
	};

	if (inet_sk(tcp->sk)->inet_num == port && sovia_rcv_saddr_same(sk, tcp->sk))
		return 0;
	drop_port(tcp->sk);
	if (sk->sk_family == AF_INET)
		return tcp->ops->bind(tcp, (struct sockaddr_unsized *)&sin, sizeof(sin));
	sin6.sin6_addr = sk->sk_v6_rcv_saddr;
	return tcp->ops->bind(tcp, (struct sockaddr_unsized *)&sin6, sizeof(sin6));
}

/* Take the socket's port and address in TCP as well. */
static int take_port(struct sock *sk, struct socket *tcp)
{
	return bind_alike(sk, tcp, inet_sk(sk)->inet_num);
}

/* The same, for a port that the kernel may choose: take another one if TCP's is in use. */
static int take_any_port(struct sock *sk, struct socket *tcp)
{
	int tries = FALLBACK_PORT_TRIES;
	int err;

	for (;;) {
		err = take_port(sk, tcp);
		if (err != -EADDRINUSE || !--tries)
			return err;
		sovia_put_port(sk);
		err = sovia_get_port(sk, 0);
		if (err)
			return err;
		inet_sk(sk)->inet_sport = htons(inet_sk(sk)->inet_num);
	}
}

static int match_port(struct sock *sk, struct socket *tcp)
{
	if ((sk->sk_userlocks & SOCK_BINDPORT_LOCK) || sk->sk_state != TCP_CLOSE)
		return take_port(sk, tcp);
	return take_any_port(sk, tcp);
}

/* Undo bind(). */
static void undo_bind(struct sock *sk)
{
	sk->sk_userlocks &= ~(SOCK_BINDADDR_LOCK | SOCK_BINDPORT_LOCK);
	sovia_port_reset_local(sk);
	sovia_put_port(sk);
	inet_sk(sk)->inet_sport = 0;
}

/**
 * sovia_fallback_bind() - take the port in TCP, too
 * @sk: just bound
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno: then the socket is not bound.
 */
int sovia_fallback_bind(struct sock *sk)
{
	struct socket *tcp;
	int err = 0;

	lock_sock(sk);
	/* IP_BIND_ADDRESS_NO_PORT: listen() or connect() will do it. */
	if (sk->sk_state != TCP_CLOSE || !inet_sk(sk)->inet_num)
		goto out;
	tcp = sovia_fallback_make(sk);
	if (IS_ERR(tcp))
		err = PTR_ERR(tcp);
	else if (tcp)
		err = match_port(sk, tcp);
	if (err)
		undo_bind(sk);
out:
	release_sock(sk);
	return err;
}

/* Was the port chosen by connect(), not by bind()? */
static bool port_is_late(const struct sock *sk)
{
	return sovia_bind_no_port(sk) && !(sk->sk_userlocks & SOCK_BINDPORT_LOCK);
}

/**
 * sovia_fallback_bind_source() - give TCP the address that connect() is to use
 * @sk: connects with TCP
 * @tcp: its TCP socket
 *
 * bind() has done that, unless it left the port to connect() (IP_BIND_ADDRESS_NO_PORT), or there
 * was no TCP socket to be then.
 *
 * Context: process, may sleep; socket lock held.
 * Return: 0 or a negative errno.
 */
int sovia_fallback_bind_source(struct sock *sk, struct socket *tcp)
{
	if (!(sk->sk_userlocks & (SOCK_BINDADDR_LOCK | SOCK_BINDPORT_LOCK)))
		return 0;
	return bind_alike(sk, tcp, port_is_late(sk) ? 0 : inet_sk(sk)->inet_num);
}

/* ---- listeners --------------------------------------------------------- */

/**
 * sovia_fallback_listen() - listen in TCP, too
 * @sk: has a port, and begins or goes on to listen
 * @backlog: connections that may wait for accept(), in either queue
 *
 * Context: process, may sleep; socket lock held.
 * Return: 0 or a negative errno.
 */
int sovia_fallback_listen(struct sock *sk, int backlog)
{
	struct socket *tcp = sovia_fallback_make(sk);
	int err;

	if (sovia_sk(sk)->fallback)
		sovia_sk(sk)->fallback->unheard = !tcp && sovia_sk(sk)->fallback->refused;
	if (IS_ERR_OR_NULL(tcp))
		return PTR_ERR_OR_ZERO(tcp);
	err = match_port(sk, tcp) ?: tcp->ops->listen(tcp, backlog);
	if (!err)
		sovia_fallback_backlog(sk);
	return err;
}

/**
 * sovia_fallback_match_listener() - listen in TCP or not, as its filter allows
 * @sk: a listener
 *
 * Context: process, may sleep; socket lock held.
 */
void sovia_fallback_match_listener(struct sock *sk)
{
	struct sovia_fallback *fb = sovia_sk(sk)->fallback;

	if (fb->refused && tcp_listens(sk)) {
		sovia_fallback_unlisten(sk);
		fb->unheard = true;
	} else if (!fb->refused && fb->unheard) {
		/* Without its port, it stays as it is. */
		sovia_fallback_listen(sk, READ_ONCE(sk->sk_max_ack_backlog));
	}
}

/**
 * sovia_fallback_unlisten() - stop listening in TCP
 * @sk: was a listener
 *
 * Context: process, may sleep; socket lock held.
 */
void sovia_fallback_unlisten(struct sock *sk)
{
	struct socket *tcp = fallback_tcp(sk);

	/* One that does not would give its children a closed stream later. */
	if (tcp && tcp_listens(sk))
		tcp->ops->shutdown(tcp, SHUT_RDWR);
}

/**
 * sovia_fallback_acceptable() - does a connection of TCP wait for accept()
 * @sk: a listener
 *
 * Context: process; any locks.
 * Return: true if so.
 */
bool sovia_fallback_acceptable(const struct sock *sk)
{
	const struct sock *tcp;
	bool waits;

	rcu_read_lock();
	tcp = listener_tcp(sk);
	waits = tcp && !READ_ONCE(sovia_sk(sk)->fallback->refused) &&
		!reqsk_queue_empty(&inet_csk(tcp)->icsk_accept_queue);
	rcu_read_unlock();
	return waits;
}

/**
 * sovia_fallback_follow() - a listener's options may have changed
 * @sk: the listener
 *
 * Context: its owner is about to release it; bottom halves off, spinlock held.
 */
void sovia_fallback_follow(struct sock *sk)
{
	struct sock *tcp = listener_tcp(sk);

	if (!tcp)
		return;
	copy_sol_socket_released(sk, tcp);
	if (sovia_sk(sk)->fallback->refused ? READ_ONCE(tcp->sk_state) == TCP_LISTEN :
					      sovia_sk(sk)->fallback->unheard)
		sovia_fallback_queue(sk);
}

/* A sum of what copy_sol_socket() copies, to see whether any of it has been set since. */
static u32 sol_socket_sum(const struct sock *sk)
{
	const u64 values[] = {
		sk->sk_flags & FALLBACK_FLAGS, sk->sk_flags & SK_FLAGS_TIMESTAMP, sk->sk_tsflags,
		sk->sk_lingertime, sk->sk_reuse, sk->sk_reuseport, sk->sk_ipv6only,
		sk->sk_bound_dev_if, sk->sk_priority, sk->sk_mark, sk->sk_rcvlowat,
		sk->sk_rcvtimeo, sk->sk_sndtimeo, sk->sk_incoming_cpu, sk->sk_max_pacing_rate,
#ifdef CONFIG_NET_RX_BUSY_POLL
		sk->sk_ll_usec, sk->sk_prefer_busy_poll, sk->sk_busy_poll_budget,
#endif
		sk->sk_userlocks, sk->sk_sndbuf, sk->sk_rcvbuf, sk->sk_no_check_tx,
		sk->sk_clockid, sk->sk_txtime_deadline_mode, sk->sk_txtime_report_errors,
		sk->sk_txrehash, (u64)sk->sk_peek_off,
		(uintptr_t)rcu_access_pointer(sk->sk_filter),
	};

	return jhash(values, sizeof(values), 0);
}

/**
 * sovia_fallback_copied() - TCP's sk is about to have all options of the old one
 * @sk: the old one
 *
 * Context: process, socket lock held.
 */
void sovia_fallback_copied(struct sock *sk)
{
	sovia_sk(sk)->fallback->sum = sol_socket_sum(sk);
}

/**
 * sovia_fallback_late_option() - an option may have been set after the exchange of the sk
 * @sk: the old one
 *
 * Kernels that do not pass SOL_SOCKET to the family have set it, if they had read sock->sk before
 * the exchange and waited for the lock.
 *
 * Context: the owner is about to release @sk; bottom halves off, spinlock held.
 */
void sovia_fallback_late_option(struct sock *sk)
{
	struct sock *tcp = sk->sk_socket ? READ_ONCE(sk->sk_socket->sk) : NULL;
	u32 sum = sol_socket_sum(sk);

	/* Other calls release it as well: TCP's may have newer values by then. */
	if (!tcp || sovia_is(tcp) || sum == sovia_sk(sk)->fallback->sum)
		return;
	sovia_sk(sk)->fallback->sum = sum;
	copy_sol_socket_released(sk, tcp);
}

/**
 * sovia_fallback_arrived() - count the connections of TCP so far
 * @sk: a listener
 *
 * Context: any.
 * Return: how many have arrived, accepted or not; wraps.
 */
unsigned int sovia_fallback_arrived(const struct sock *sk)
{
	const struct sock *tcp;
	unsigned int arrived = 0;

	rcu_read_lock();
	tcp = listener_tcp(sk);
	if (tcp)
		arrived = (unsigned int)atomic_read(&sovia_sk(sk)->fallback->taken) +
			  READ_ONCE(tcp->sk_ack_backlog);
	rcu_read_unlock();
	return arrived;
}

/**
 * sovia_fallback_first() - did a connection of TCP arrive before a child
 * @sk: a listener
 * @arrived: sovia_fallback_arrived() when the child came
 *
 * Context: process.
 * Return: true if so, and it has not been accepted.
 */
bool sovia_fallback_first(const struct sock *sk, unsigned int arrived)
{
	return (int)(arrived - (unsigned int)atomic_read(&sovia_sk(sk)->fallback->taken)) > 0;
}

/**
 * sovia_fallback_backlog() - tell TCP how much of the backlog is left for it
 * @sk: a listener whose own queue, or limit, has changed
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_fallback_backlog(struct sock *sk)
{
	int left = READ_ONCE(sk->sk_max_ack_backlog) - READ_ONCE(sk->sk_ack_backlog);
	struct sock *tcp = listener_tcp(sk);

	if (tcp && sk->sk_state == TCP_LISTEN)
		WRITE_ONCE(tcp->sk_max_ack_backlog, max(left, 0));
}

/**
 * sovia_fallback_full() - is there no room for another connection
 * @sk: a listener
 *
 * Context: any.
 * Return: true if both kinds together fill the backlog.
 */
bool sovia_fallback_full(const struct sock *sk)
{
	unsigned int waiting = READ_ONCE(sk->sk_ack_backlog);
	const struct sock *tcp;

	rcu_read_lock();
	tcp = listener_tcp(sk);
	if (tcp)
		waiting += READ_ONCE(tcp->sk_ack_backlog);
	rcu_read_unlock();
	return waiting > READ_ONCE(sk->sk_max_ack_backlog);
}

/* May a listener take this connection of TCP? */
static bool child_admitted(struct sock *sk, const struct sock *child)
{
	struct sovia_pair pair;
	u8 action;

	sovia_pair_of(&pair, child);
	action = sovia_rules_decide(sovia_net(sock_net(sk)), sk, SOVIA_RULE_IN, &pair,
				    inet_sk(child)->inet_num, NULL);
	return action == SOVIA_AUTO || action == SOVIA_ONLY_TCP;
}

/* Reset it. */
static void discard_child(struct socket *newsock)
{
	struct sock *child = newsock->sk;

	newsock->sk = NULL;
	newsock->state = SS_UNCONNECTED;
	sock_no_linger(child);
	child->sk_prot->close(child, 0);
}

/* Take a connection from the listener's TCP socket, if it has both, and tell TCP's operations. */
static int accept_tcp(struct sock *sk, struct socket *newsock, struct sovia_accept_arg *arg,
		      const struct proto_ops **ops)
{
	int err = -EAGAIN;
	struct socket *tcp;

	/* Another thread may end the listener, and have the descriptor fall back to TCP. */
	lock_sock(sk);
	tcp = sk->sk_state == TCP_LISTEN ? fallback_tcp(sk) : NULL;
	if (tcp)
		err = sovia_accept_now(tcp, newsock, arg);
	if (!err) {
		atomic_inc(&sovia_sk(sk)->fallback->taken);
		*ops = tcp->ops;
	}
	sovia_sk(sk)->accepting = true;
	release_sock(sk);
	return err;
}

/**
 * sovia_fallback_accept() - accept a connection of TCP
 * @sk: a listener, at least until the socket lock was released last
 * @newsock: becomes a TCP socket: AF_SOVIA has no part in it any more
 * @arg: of proto_ops::accept
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno; -EAGAIN if there is none, or a rule forbids it.
 */
int sovia_fallback_accept(struct sock *sk, struct socket *newsock, struct sovia_accept_arg *arg)
{
	const struct proto_ops *ops;
	int err = accept_tcp(sk, newsock, arg, &ops);

	if (err)
		return err;
	if (!child_admitted(sk, newsock->sk)) {
		discard_child(newsock);
		return -EAGAIN;
	}
	/* accept(2) has taken a reference to the owner of the operations, close() drops it. */
	__module_get(ops->owner);
	newsock->ops = ops;
	sovia_tcp_log_add(sovia_net(sock_net(sk)), newsock->sk, SOVIA_RULE_IN, SOVIA_WHY_PEER, 0);
	module_put(THIS_MODULE);
	return 0;
}

/**
 * sovia_fallback_drop() - close the TCP socket of a socket that is AF_SOVIA's for good
 * @sk: connected
 *
 * One that has a port keeps it.
 *
 * Context: process, may sleep; socket lock held.
 */
void sovia_fallback_drop(struct sock *sk)
{
	struct socket *tcp = fallback_tcp(sk);

	if (!tcp || inet_sk(tcp->sk)->inet_num)
		return;
	WRITE_ONCE(sovia_sk(sk)->fallback->tcp, NULL);
	sock_release(tcp);
}

/**
 * sovia_fallback_release() - close the TCP socket
 * @sk: its program has closed it
 *
 * Context: process, may sleep; no locks.  It neither listens nor connects any more.
 */
void sovia_fallback_release(struct sock *sk)
{
	struct socket *tcp = fallback_tcp(sk);

	if (!tcp)
		return;
	WRITE_ONCE(sovia_sk(sk)->fallback->tcp, NULL);
	sock_release(tcp);
}

/**
 * sovia_fallback_free() - free what the TCP socket would have needed
 * @sk: closed
 *
 * Context: any; the socket has no other user any more.
 */
void sovia_fallback_free(struct sock *sk)
{
	struct sovia_fallback *fb = sovia_sk(sk)->fallback;
	struct sovia_option *option, *next;

	if (!fb)
		return;
	list_for_each_entry_safe(option, next, &fb->options, node)
		option_free(sk, option);
	kfree(fb);
}

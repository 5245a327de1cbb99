// SPDX-License-Identifier: GPL-2.0-only
/*
 * AF_SOVIA: the socket family (KSOVIA, section 3).
 *
 * Data path:
 *
 *	send.c -> conn.c -> lane_tx.c -> verbs_tx.c or loop.c
 *	verbs_rx.c or loop.c -> lane_rx.c -> conn_table.c -> rx.c
 *
 * A socket begins with a whole struct inet_sock and has sk_family AF_INET or
 * AF_INET6, so that the kernel's generic code (bind, getname, SOL_SOCKET, IP
 * options) works as for TCP sockets.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bpf-cgroup.h>
#include <linux/module.h>
#include <linux/net.h>
#include <net/inet_common.h>
#include <net/ipv6.h>
#include <net/protocol.h>
#include <net/tcp.h>
#include <linux/sovia.h>
#include "close.h"
#include "compat/ipv6.h"
#include "compat/proto.h"
#include "compat/splice.h"
#include "connect.h"
#include "defer.h"
#include "fallback.h"
#include "keepalive.h"
#include "listen.h"
#include "listener.h"
#include "mem.h"
#include "poll.h"
#include "port.h"
#include "recv.h"
#include "send.h"
#include "sock_list.h"
#include "sockopt.h"
#include "splice.h"

static int family = SOVIA_FAMILY_DEFAULT;
module_param(family, int, 0444);
MODULE_PARM_DESC(family, "address family number to register as AF_SOVIA");

static int prot_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	/* Nothing is put on the backlog: see upcall.c. */
	kfree_skb(skb);
	return 0;
}

/* For sockets created by inet_create() or inet6_create(). */
static int prot_init(struct sock *sk)
{
	struct sovia_tenant *tenant = sovia_tenant_get(sock_net(sk), sk_uid(sk));

	if (!tenant)
		return -ENOMEM;
	sovia_lock_class(sk);
	sovia_sock_init(sk, tenant);
	sovia_sock_list(sk);
	return 0;
}

/*
 * sk_common_release() calls this for a socket that was not opened in the end, for want of
 * memory or by a control group's will: undo what sock_destruct() does not.
 */
static void prot_unhash(struct sock *sk)
{
	/* Memory was short before it was initialised. */
	if (!sovia_sk(sk)->tenant)
		return;
	sovia_sock_unlist(sk);
	sock_prot_inuse_add(sock_net(sk), sk->sk_prot, -1);
}

/* Run the control group's BPF program for connect(). */
static int prot_pre_connect(struct sock *sk, struct sockaddr_unsized *uaddr, int len)
{
	/* The program may read this much of the address. */
	if (len < (sk->sk_family == AF_INET6 ? SIN6_LEN_RFC2133 : sizeof(struct sockaddr_in)))
		return -EINVAL;
	sock_owned_by_me(sk);
	if (sk->sk_family == AF_INET6)
		return SOVIA_RUN_INET6_CONNECT(sk, uaddr, len);
	return SOVIA_RUN_INET4_CONNECT(sk, uaddr, len);
}

SOVIA_DEFINE_PROT_ACCEPT(prot_accept, sovia_accept_dequeue)
SOVIA_DEFINE_PROT_RECVMSG(prot_recvmsg, sovia_recvmsg)
SOVIA_DEFINE_PROT_IOCTL(prot_ioctl, sovia_ioctl_value)

struct proto sovia_prot = {
	.name			= "SOVIA",
	.owner			= THIS_MODULE,
	.close			= sovia_close,
	.pre_connect		= prot_pre_connect,
	.connect		= sovia_connect,
	.disconnect		= sovia_disconnect,
	.accept			= prot_accept,
	.ioctl			= prot_ioctl,
	.shutdown		= sovia_shutdown,
	.init			= prot_init,
	.setsockopt		= sovia_setsockopt,
	.getsockopt		= sovia_getsockopt,
	.keepalive		= sovia_keepalive,
	.sendmsg		= sovia_sendmsg,
	.recvmsg		= prot_recvmsg,
	SOVIA_PROTO_SPLICE
	.backlog_rcv		= prot_backlog_rcv,
	.release_cb		= sovia_release_cb,
	.get_port		= sovia_get_port,
	.put_port		= sovia_put_port,
	.unhash			= prot_unhash,
	.stream_memory_free	= sovia_stream_memory_free,
	/* send() before connect() is an error, not a reason to bind. */
	.no_autobind		= true,
	.obj_size		= sizeof(struct sovia_sock),
	SOVIA_PROTO_PINET6(struct sovia_sock, inet6)
};

static int bind_tcp(struct socket *sock)
{
	struct sock *sk = READ_ONCE(sock->sk);

	return sovia_is(sk) ? sovia_fallback_bind(sk) : 0;
}

static int stream_bind_v4(struct socket *sock, struct sockaddr_unsized *uaddr, int len)
{
	return inet_bind(sock, uaddr, len) ?: bind_tcp(sock);
}

static int stream_bind_v6(struct socket *sock, struct sockaddr_unsized *uaddr, int len)
{
	return inet6_bind(sock, uaddr, len) ?: bind_tcp(sock);
}

/*
 * A descriptor may get TCP's sk in connect(): see fallback_connect.c.  Calls that waited for the
 * connection with the old one begin anew.
 */
static bool became_tcp(const struct socket *sock, const struct sock *sk)
{
	return unlikely(READ_ONCE(sock->sk) != sk);
}

/* TCP refuses MSG_FASTOPEN if it is switched off, and with an address that asks to disconnect. */
static bool fastopen_refused(const struct sock *sk, const struct msghdr *msg)
{
	const struct sockaddr *addr = msg->msg_name;

	return !(READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_fastopen) & TFO_CLIENT_ENABLE) ||
	       (addr && msg->msg_namelen >= (int)sizeof(addr->sa_family) &&
		addr->sa_family == AF_UNSPEC);
}

static int stream_sendmsg(struct socket *sock, struct msghdr *msg, size_t size)
{
	struct sock *sk = READ_ONCE(sock->sk);
	int ret;

	/* CONN carries no data, like TCP's first SYN. */
	if (unlikely(msg->msg_flags & MSG_FASTOPEN) && sovia_is(sk)) {
		if (fastopen_refused(sk, msg))
			return -EOPNOTSUPP;
		ret = sovia_stream_connect(sock, msg->msg_name, msg->msg_namelen,
					   msg->msg_flags & MSG_DONTWAIT ? O_NONBLOCK : 0);
		if (ret)
			return ret;
		msg->msg_flags &= ~MSG_FASTOPEN;
	}
	ret = inet_sendmsg(sock, msg, size);
	if (unlikely(ret == -ENOTSUPP) && became_tcp(sock, sk))
		ret = inet_sendmsg(sock, msg, size);
	return ret;
}

static int stream_recvmsg(struct socket *sock, struct msghdr *msg, size_t size, int flags)
{
	struct sock *sk = READ_ONCE(sock->sk);
	int ret = sock_common_recvmsg(sock, msg, size, flags);

	if (unlikely(ret == -ENOTCONN) && became_tcp(sock, sk))
		ret = sock_common_recvmsg(sock, msg, size, flags);
	return ret;
}

static int stream_shutdown(struct socket *sock, int how)
{
	struct sock *sk = READ_ONCE(sock->sk);
	int ret = inet_shutdown(sock, how);

	if (unlikely(ret == -ENOTCONN) && became_tcp(sock, sk)) {
		/* What the first call has made of it, seeing an sk that is CLOSE. */
		lock_sock(sock->sk);
		if (sock->state == SS_DISCONNECTING)
			sock->state = SS_CONNECTING;
		release_sock(sock->sk);
		ret = inet_shutdown(sock, how);
	}
	return ret;
}

static int stream_accept(struct socket *sock, struct socket *newsock, SOVIA_ACCEPT_ARGS)
{
	return sovia_accept(sock, newsock, SOVIA_ACCEPT_ARG);
}

static const struct proto_ops sovia_v4_ops = {
	.family		= PF_INET,
	.owner		= THIS_MODULE,
	.release	= inet_release,
	.bind		= stream_bind_v4,
	.connect	= sovia_stream_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= stream_accept,
	.getname	= inet_getname,
	.poll		= sovia_poll,
	.ioctl		= inet_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= sovia_listen,
	.shutdown	= stream_shutdown,
	.setsockopt	= sovia_ops_setsockopt,
	.getsockopt	= sock_common_getsockopt,
	.sendmsg	= stream_sendmsg,
	.recvmsg	= stream_recvmsg,
	.splice_read	= sovia_splice_read,
	.set_rcvlowat	= sovia_set_rcvlowat,
	SOVIA_OPS_SPLICE
	SOVIA_OPS_PEEK_OFF
	.mmap		= sock_no_mmap,
};

static const struct proto_ops sovia_v6_ops = {
	.family		= PF_INET6,
	.owner		= THIS_MODULE,
	.release	= inet6_release,
	.bind		= stream_bind_v6,
	.connect	= sovia_stream_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= stream_accept,
	.getname	= inet6_getname,
	.poll		= sovia_poll,
	.ioctl		= inet6_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= sovia_listen,
	.shutdown	= stream_shutdown,
	.setsockopt	= sovia_ops_setsockopt,
	.getsockopt	= sock_common_getsockopt,
	.sendmsg	= stream_sendmsg,
	.recvmsg	= stream_recvmsg,
	.splice_read	= sovia_splice_read,
	.set_rcvlowat	= sovia_set_rcvlowat,
	SOVIA_OPS_SPLICE
	SOVIA_OPS_PEEK_OFF
	.mmap		= sock_no_mmap,
};

/* ---- family ---------------------------------------------------------- */

static int family_create(struct net *net, struct socket *sock, int protocol, int kern)
{
	bool v6 = protocol == SOVIAPROTO_V6;
	struct sovia_tenant *tenant;
	struct sock *sk;
	int err = 0;

	if (sock->type != SOCK_STREAM)
		return -ESOCKTNOSUPPORT;
	if (protocol != SOVIAPROTO_V4 && !v6)
		return -EPROTONOSUPPORT;
	if (v6 && !ipv6_mod_enabled())
		return -EAFNOSUPPORT;

	sk = sk_alloc(net, v6 ? PF_INET6 : PF_INET, GFP_KERNEL, &sovia_prot, kern);
	if (!sk)
		return -ENOBUFS;
	sock_init_data(sock, sk);
	tenant = sovia_tenant_get(net, sk_uid(sk));
	if (!tenant) {
		sk_common_release(sk);
		sock->sk = NULL;
		return -ENOBUFS;
	}
	sovia_lock_class(sk);
	sock->ops = v6 ? &sovia_v6_ops : &sovia_v4_ops;
	sock->state = SS_UNCONNECTED;
	sk->sk_protocol = SOVIAPROTO_INET;
	if (v6)
		sovia_sock_init_v6(sk);
	sovia_default_options(sk);
	sovia_sock_init(sk, tenant);
	sovia_sock_list(sk);
	/* A control group may refuse it, as in inet_create(). */
	if (!kern)
		err = BPF_CGROUP_RUN_PROG_INET_SOCK(sk);
	if (err) {
		sk_common_release(sk);
		sock->sk = NULL;
	}
	return err;
}

/*
 * Another way of opening the same sockets: socket(AF_INET or AF_INET6, SOCK_STREAM,
 * the value of SO_PROTOCOL), for programs that open a second socket with the parameters
 * of an existing one.
 */
static struct inet_protosw v4_protosw = {
	.type		= SOCK_STREAM,
	.protocol	= SOVIAPROTO_INET,
	.prot		= &sovia_prot,
	.ops		= &sovia_v4_ops,
};

static struct inet_protosw v6_protosw = {
	.type		= SOCK_STREAM,
	.protocol	= SOVIAPROTO_INET,
	.prot		= &sovia_prot,
	.ops		= &sovia_v6_ops,
};

static int __init register_protosw(void)
{
	int err = ipv6_mod_enabled() ? inet6_register_protosw(&v6_protosw) : 0;

	if (!err)
		inet_register_protosw(&v4_protosw);
	return err;
}

static void unregister_protosw(void)
{
	inet_unregister_protosw(&v4_protosw);
	if (ipv6_mod_enabled())
		inet6_unregister_protosw(&v6_protosw);
}

/* Fixed when the module is loaded: see register_family(). */
static struct net_proto_family sovia_family = {
	.create	= family_create,
	.owner	= THIS_MODULE,
};

/* ---- module ---------------------------------------------------------- */

static int __init register_family(void)
{
	int err;

	if (family <= AF_UNSPEC || family >= AF_MAX) {
		pr_err("invalid address family %d (1 to %d)\n", family, AF_MAX - 1);
		return -EINVAL;
	}
	sovia_family.family = family;
	err = sock_register(&sovia_family);
	if (!err)
		return 0;
	pr_err("address family %d is in use; choose another with family=N\n", family);
	/* modprobe would treat EEXIST as "already loaded", a success. */
	return -EADDRINUSE;
}

/**
 * sovia_prot_init() - make the cache of sockets
 *
 * Context: module init.
 * Return: 0 or a negative errno.
 */
int __init sovia_prot_init(void)
{
	return proto_register(&sovia_prot, 1);
}

/**
 * sovia_prot_exit() - free it
 *
 * Context: module exit; there are no sockets.
 */
void sovia_prot_exit(void)
{
	proto_unregister(&sovia_prot);
}

/**
 * sovia_family_init() - make the family visible
 *
 * Context: module init, last.
 * Return: 0 or a negative errno.
 */
int __init sovia_family_init(void)
{
	int err = register_family();

	if (err)
		return err;
	err = register_protosw();
	if (err) {
		sock_unregister(family);
		return err;
	}
	pr_info("AF_SOVIA is address family %d\n", family);
	return 0;
}

/**
 * sovia_family_exit() - remove it
 *
 * Context: module exit, first; there are no sockets.
 */
void sovia_family_exit(void)
{
	sock_unregister(family);
	unregister_protosw();
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
int sovia_family_number(void)
{
	return family;
}
#endif

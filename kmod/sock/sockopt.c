// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options and ioctls.  The kernel handles SOL_SOCKET (except one option), IPPROTO_IP and
 * IPPROTO_IPV6; sockopt_tcp.c has those of IPPROTO_TCP that a program may
 * expect of a stream.  SOL_SOVIA has our own.
 */
#include <asm/ioctls.h>
#include <linux/capability.h>
#include <linux/sovia.h>
#include <net/ipv6.h>
#include <net/ip.h>
#include "compat/inet.h"
#include "fallback.h"
#include "recv.h"
#include "send.h"
#include "sockopt.h"
#include "sockopt_tcp.h"
#include "urgent.h"

/**
 * sovia_default_options() - set the defaults of a new socket's options
 * @sk: created by the family, not by inet_create(), which does the same
 *
 * Context: the socket has no other user yet.
 */
void sovia_default_options(struct sock *sk)
{
	const struct net *net = sock_net(sk);
	bool pmtu = !READ_ONCE(net->ipv4.sysctl_ip_no_pmtu_disc);

	inet_sk(sk)->uc_ttl = -1;
	inet_sk(sk)->mc_ttl = 1;
	inet_sk(sk)->pmtudisc = pmtu ? IP_PMTUDISC_WANT : IP_PMTUDISC_DONT;
	sk->sk_txrehash = READ_ONCE(net->core.sysctl_txrehash);
	sovia_multicast_defaults(sk);
}

/* Groups of multicast and anycast; the kernel takes RTNL for them, and then the socket lock. */
static bool is_membership(int level, int optname)
{
	if (level != SOL_IP && level != SOL_IPV6)
		return false;
	if (optname >= MCAST_JOIN_GROUP && optname <= MCAST_MSFILTER)
		return true;
	if (level == SOL_IP)
		return optname == IP_MSFILTER || (optname >= IP_ADD_MEMBERSHIP &&
						  optname <= IP_DROP_SOURCE_MEMBERSHIP);
	return optname == IPV6_ADD_MEMBERSHIP || optname == IPV6_DROP_MEMBERSHIP ||
	       optname == IPV6_JOIN_ANYCAST || optname == IPV6_LEAVE_ANYCAST;
}

/**
 * sovia_refuse_option() - is an option one that no socket of the family has
 * @sk: AF_SOVIA's or TCP's sk of the descriptor
 * @level: any but SOL_SOCKET
 * @optname: option
 * @optlen: length of the value
 *
 * Groups: a stream has no use for them, and sovia_fallback_option() would join them for the TCP
 * socket with the socket lock held, where the kernel needs RTNL.  TCP sockets cannot join by the
 * oldest options either; the kernel recognises them by is_icsk.  And two that would exchange the
 * descriptor's operations, or copy them for other sockets.
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
int sovia_refuse_option(const struct sock *sk, int level, int optname, unsigned int optlen)
{
	/* What IPv4 sockets say of IPv6's options is the kernel's answer. */
	if (level == SOL_IPV6 && sk->sk_family != AF_INET6)
		return 0;
	if (level == SOL_TCP && optname == TCP_ULP)
		return optlen < 1 ? -EINVAL : -ENOENT;
	if (level == SOL_IPV6 && optname == IPV6_ADDRFORM)
		return -ENOPROTOOPT;
	if (!is_membership(level, optname))
		return 0;
	if (level == SOL_IP && (optname == IP_ADD_MEMBERSHIP || optname == IP_DROP_MEMBERSHIP))
		return -EPROTO;
	if (optname == IPV6_ADD_MEMBERSHIP || optname == IPV6_DROP_MEMBERSHIP)
		return optlen < sizeof(struct ipv6_mreq) ? -EINVAL : -EPROTO;
	return -EOPNOTSUPP;
}

/* Which kinds of connections a socket makes or takes: decided before it has a port. */
static int set_action(struct sock *sk, int val)
{
	int err = -EINVAL;

	if (val < SOVIA_AUTO || val > SOVIA_ONLY_TCP)
		return err;
	lock_sock(sk);
	if (sk->sk_state == TCP_CLOSE && !inet_sk(sk)->inet_num && !sovia_fallback_done(sk)) {
		WRITE_ONCE(sovia_sk(sk)->opt.action, val);
		err = 0;
	}
	release_sock(sk);
	return err;
}

static int set_sovia(struct sock *sk, int optname, sockptr_t optval, unsigned int optlen)
{
	int val;

	if (optlen < sizeof(val))
		return -EINVAL;
	if (copy_from_sockptr(&val, optval, sizeof(val)))
		return -EFAULT;
	switch (optname) {
	case SOVIA_ACTION:
		return set_action(sk, val);
	case SOVIA_WAIT:
		if (val < -1 || val > SOVIA_WAIT_MAX)
			return -EINVAL;
		WRITE_ONCE(sovia_sk(sk)->opt.wait, val + 1);
		return 0;
	default:
		return -ENOPROTOOPT;
	}
}

static int get_sovia(struct sock *sk, int optname, char __user *optval, int __user *optlen)
{
	const struct sovia_opts *opt = &sovia_sk(sk)->opt;
	int val, len;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	switch (optname) {
	case SOVIA_ACTION:
		val = READ_ONCE(opt->action);
		break;
	case SOVIA_WAIT:
		val = READ_ONCE(opt->wait) - 1;
		break;
	default:
		return -ENOPROTOOPT;
	}
	len = min_t(unsigned int, len, sizeof(val));
	if (put_user(len, optlen) || copy_to_user(optval, &val, len))
		return -EFAULT;
	return 0;
}

/**
 * sovia_setsockopt() - struct proto::setsockopt
 * @sk: the socket
 * @level: anything but SOL_SOCKET
 * @optname: option
 * @optval: value
 * @optlen: its length
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_setsockopt(struct sock *sk, int level, int optname, sockptr_t optval,
		     unsigned int optlen)
{
	if (level == SOL_TCP)
		return sovia_set_tcp(sk, optname, optval, optlen);
	if (level == SOL_SOVIA)
		return set_sovia(sk, optname, optval, optlen);
	if (sk->sk_family == AF_INET6)
		return ipv6_setsockopt(sk, level, optname, optval, optlen);
	return ip_setsockopt(sk, level, optname, optval, optlen);
}

/* Set an option of the sk that the descriptor has, which was @sk just now. */
static int sockopt_set(struct socket *sock, struct sock *sk, int level, int optname,
		       sockptr_t optval, unsigned int optlen)
{
	int err;

	if (level != SOL_SOCKET) {
		/* sock_common_setsockopt() reads sock->sk again, which may be TCP's by then. */
		err = sovia_refuse_option(sk, level, optname, optlen) ?:
		      sock_common_setsockopt(sock, level, optname, optval, optlen);
		if (!err && sovia_is(sk) && level != SOL_SOVIA)
			sovia_fallback_option(sk, level, optname, optval, optlen);
		return err;
	}
	/* The kernel requires this for IPPROTO_TCP sockets only. */
	if (optname == SO_ATTACH_FILTER && optlen >= sizeof(int) &&
	    !ns_capable(sock_net(sk)->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	err = sock_setsockopt(sock, level, optname, optval, optlen);
	/* Some are set without the socket lock, whose release shows them to TCP's listener. */
	if (!err && READ_ONCE(sk->sk_state) == TCP_LISTEN) {
		lock_sock(sk);
		release_sock(sk);
	}
	return err;
}

/**
 * sovia_ops_setsockopt() - struct proto_ops::setsockopt
 * @sock: the socket
 * @level: any; SOL_SOCKET on kernels that pass it to the family
 * @optname: option
 * @optval: value
 * @optlen: its length
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_ops_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
			 unsigned int optlen)
{
	struct sock *sk = READ_ONCE(sock->sk);
	int err = sockopt_set(sock, sk, level, optname, optval, optlen);

	/* It may have waited while the descriptor fell back to TCP, and set the old sk's option. */
	if (unlikely(READ_ONCE(sock->sk) != sk) && level != SOL_SOVIA)
		err = sockopt_set(sock, READ_ONCE(sock->sk), level, optname, optval, optlen);
	return err;
}

/**
 * sovia_getsockopt() - struct proto::getsockopt
 * @sk: the socket
 * @level: anything but SOL_SOCKET
 * @optname: option
 * @optval: where the value goes
 * @optlen: its length, in and out
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_getsockopt(struct sock *sk, int level, int optname, char __user *optval,
		     int __user *optlen)
{
	if (level == SOL_TCP)
		return sovia_get_tcp(sk, optname, optval, optlen);
	if (level == SOL_SOVIA)
		return get_sovia(sk, optname, optval, optlen);
	/* As with TCP, these two also return the error for unknown levels. */
	if (sk->sk_family == AF_INET6)
		return ipv6_getsockopt(sk, level, optname, optval, optlen);
	return ip_getsockopt(sk, level, optname, optval, optlen);
}

/**
 * sovia_ioctl_value() - the result of an ioctl
 * @sk: the socket
 * @cmd: SIOCINQ (FIONREAD), SIOCOUTQ (TIOCOUTQ), SIOCOUTQNSD or SIOCATMARK
 * @value: the result
 *
 * Context: process; no locks.
 * Return: 0, -EINVAL for a listener, -ENOIOCTLCMD.
 */
int sovia_ioctl_value(struct sock *sk, int cmd, int *value)
{
	switch (cmd) {
	case SIOCINQ:
	case SIOCOUTQ:
	case SIOCOUTQNSD:
		if (sk->sk_state == TCP_LISTEN)
			return -EINVAL;
		break;
	case SIOCATMARK:
		*value = sovia_at_mark(sk, sovia_rx_start(sk));
		return 0;
	default:
		return -ENOIOCTLCMD;
	}
	if (cmd == SIOCINQ)
		*value = sovia_inq(sk);
	else if (cmd == SIOCOUTQ)
		*value = sovia_outq(sk);
	else
		*value = READ_ONCE(sovia_sk(sk)->tx.queued);
	return 0;
}

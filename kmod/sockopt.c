// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options and ioctls.  SOL_SOCKET is the kernel's, IPPROTO_IP and IPPROTO_IPV6 as
 * well; tcpopt.c has those of IPPROTO_TCP that a program may expect of a stream.
 */
#include <asm/ioctls.h>
#include <net/ipv6.h>
#include <net/ip.h>
#include "sock.h"

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
	switch (level) {
	case SOL_TCP:
		return sovia_set_tcp(sk, optname, optval, optlen);
	case SOL_IP:
		return ip_setsockopt(sk, level, optname, optval, optlen);
	case SOL_IPV6:
		if (sk->sk_family == AF_INET6)
			return ipv6_setsockopt(sk, level, optname, optval, optlen);
		return -ENOPROTOOPT;
	default:
		return -ENOPROTOOPT;
	}
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
	switch (level) {
	case SOL_TCP:
		return sovia_get_tcp(sk, optname, optval, optlen);
	case SOL_IP:
		return ip_getsockopt(sk, level, optname, optval, optlen);
	case SOL_IPV6:
		if (sk->sk_family == AF_INET6)
			return ipv6_getsockopt(sk, level, optname, optval, optlen);
		return -ENOPROTOOPT;
	default:
		return -ENOPROTOOPT;
	}
}

/**
 * sovia_ioctl_value() - the number that an ioctl asks for
 * @sk: the socket
 * @cmd: SIOCINQ (FIONREAD), SIOCOUTQ (TIOCOUTQ), SIOCOUTQNSD or SIOCATMARK
 * @value: the answer
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
		*value = READ_ONCE(sovia_sk(sk)->snd_queued);
	return 0;
}

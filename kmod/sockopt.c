// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options.  SOL_SOCKET is the kernel's, IPPROTO_IP and IPPROTO_IPV6 as well;
 * this file has those of IPPROTO_TCP that a program may expect of a stream.
 */
#include <linux/tcp.h>
#include <net/tcp.h>
#include <asm/ioctls.h>
#include <net/ipv6.h>
#include <net/ip.h>
#include "sock.h"

static int set_nodelay(struct sock *sk, int on)
{
	sovia_sk(sk)->nodelay = on;
	if (on)
		sovia_push(sk);
	return 0;
}

static int set_cork(struct sock *sk, int on)
{
	struct sovia_sock *ss = sovia_sk(sk);

	ss->cork = on;
	if (!on) {
		/* What a call held back with MSG_MORE goes, too. */
		ss->more = false;
		sovia_push(sk);
	}
	return 0;
}

static int set_tcp(struct sock *sk, int optname, sockptr_t optval, unsigned int optlen)
{
	int val, err;

	switch (optname) {
	case TCP_NODELAY:
	case TCP_CORK:
	case TCP_QUICKACK:
		break;
	default:
		return -ENOPROTOOPT;
	}
	if (optlen < sizeof(int))
		return -EINVAL;
	if (copy_from_sockptr(&val, optval, sizeof(val)))
		return -EFAULT;
	lock_sock(sk);
	switch (optname) {
	case TCP_NODELAY:
		err = set_nodelay(sk, !!val);
		break;
	case TCP_CORK:
		err = set_cork(sk, !!val);
		break;
	default:
		/* The lane acknowledges for all its sockets; nothing to choose. */
		err = 0;
		break;
	}
	release_sock(sk);
	return err;
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
	switch (level) {
	case SOL_TCP:
		return set_tcp(sk, optname, optval, optlen);
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

static void fill_info(struct sock *sk, struct tcp_info *info)
{
	struct sovia_sock *ss = sovia_sk(sk);
	bool linked = ss->conn.key.link;

	memset(info, 0, sizeof(*info));
	info->tcpi_state = sk->sk_state;
	if (sk->sk_state == TCP_LISTEN) {
		info->tcpi_unacked = READ_ONCE(sk->sk_ack_backlog);
		info->tcpi_sacked = READ_ONCE(sk->sk_max_ack_backlog);
		return;
	}
	if (linked) {
		info->tcpi_snd_mss = sovia_conn_payload(&ss->conn);
		info->tcpi_rcv_mss = ss->conn.key.link->lane.own_payload;
	}
	info->tcpi_unacked = atomic_read(&ss->conn.inflight);
	info->tcpi_rcv_space = ss->conn.rx_adv - ss->copied;
	info->tcpi_notsent_bytes = ss->snd_queued;
	info->tcpi_bytes_acked = atomic64_read(&ss->conn.acked);
	info->tcpi_bytes_received = ss->rcv_nxt;
	info->tcpi_bytes_sent = ss->snd_nxt;
}

static int get_info(struct sock *sk, char __user *optval, int __user *optlen, int len)
{
	struct tcp_info info;

	lock_sock(sk);
	fill_info(sk, &info);
	release_sock(sk);
	len = min_t(int, len, sizeof(info));
	if (put_user(len, optlen) || copy_to_user(optval, &info, len))
		return -EFAULT;
	return 0;
}

static int get_tcp(struct sock *sk, int optname, char __user *optval, int __user *optlen)
{
	struct sovia_sock *ss = sovia_sk(sk);
	int val, len;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	switch (optname) {
	case TCP_NODELAY:
		val = READ_ONCE(ss->nodelay);
		break;
	case TCP_CORK:
		val = READ_ONCE(ss->cork);
		break;
	case TCP_QUICKACK:
		val = 1;
		break;
	case TCP_MAXSEG:
		lock_sock(sk);
		/* Before a connection, what TCP would say. */
		val = ss->conn.key.link ? sovia_conn_payload(&ss->conn) : TCP_MSS_DEFAULT;
		release_sock(sk);
		break;
	case TCP_INFO:
		return get_info(sk, optval, optlen, len);
	default:
		return -ENOPROTOOPT;
	}
	len = min_t(unsigned int, len, sizeof(int));
	if (put_user(len, optlen) || copy_to_user(optval, &val, len))
		return -EFAULT;
	return 0;
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
		return get_tcp(sk, optname, optval, optlen);
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
		/* No urgent data, so no mark. */
		*value = 0;
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

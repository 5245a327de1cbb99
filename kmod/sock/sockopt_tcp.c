// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options of level IPPROTO_TCP.
 *
 * Options with an effect: TCP_NODELAY, TCP_CORK, keepalive,
 * TCP_USER_TIMEOUT, TCP_SYNCNT, TCP_LINGER2, TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP,
 * TCP_NOTSENT_LOWAT, TCP_INQ.  Those that tune what a lane does not have
 * (segments, congestion, cookies) are checked and stored as TCP does, since
 * programs set them routinely and fail on an error.  Options that a program
 * would rely on, but that cannot work, return ENOPROTOOPT.
 */
#include <linux/tcp.h>
#include <net/tcp.h>
#include "connect.h"
#include "keepalive.h"
#include "send.h"
#include "sockopt_tcp.h"

#define SOVIA_MAXSEG_MAX	32767

static int check_range(int val, int low, int high)
{
	return val >= low && val <= high ? 0 : -EINVAL;
}

static int set_nodelay(struct sock *sk, int on)
{
	sovia_sk(sk)->opt.nodelay = on;
	if (on)
		sovia_push(sk);
	return 0;
}

static int set_cork(struct sock *sk, int on)
{
	struct sovia_sock *ss = sovia_sk(sk);

	ss->opt.cork = on;
	if (!on) {
		/* Also send data held back by MSG_MORE. */
		WRITE_ONCE(ss->tx.more, false);
		sovia_push(sk);
	}
	return 0;
}

static int set_keep(struct sock *sk, int optname, int val)
{
	struct sovia_opts *opt = &sovia_sk(sk)->opt;
	int err;

	if (optname == TCP_KEEPCNT)
		err = check_range(val, 1, MAX_TCP_KEEPCNT);
	else
		err = check_range(val, 1, optname == TCP_KEEPIDLE ? MAX_TCP_KEEPIDLE :
								 MAX_TCP_KEEPINTVL);
	if (err)
		return err;
	switch (optname) {
	case TCP_KEEPIDLE:
		opt->keepidle = val;
		break;
	case TCP_KEEPINTVL:
		opt->keepintvl = val;
		break;
	default:
		opt->keepcnt = val;
		break;
	}
	sovia_alive_start(sk);
	return 0;
}

static int set_linger2(struct sovia_opts *opt, int val)
{
	opt->linger2 = val < 0 ? -1 : min_t(int, val, TCP_FIN_TIMEOUT_MAX / HZ);
	return 0;
}

static int set_window_clamp(struct sock *sk, int val)
{
	if (!val && sk->sk_state != TCP_CLOSE)
		return -EINVAL;
	sovia_sk(sk)->opt.window_clamp = val ? max_t(u32, val, SOCK_MIN_RCVBUF / 2) : 0;
	return 0;
}

static int set_fastopen(struct sock *sk, int val)
{
	if (val < 0 || !((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN)))
		return -EINVAL;
	val = min(val, READ_ONCE(sock_net(sk)->core.sysctl_somaxconn));
	sovia_sk(sk)->opt.fastopen = val;
	return 0;
}

static int set_fastopen_connect(struct sock *sk, int val)
{
	if (check_range(val, 0, 1) || sk->sk_state != TCP_CLOSE)
		return -EINVAL;
	sovia_sk(sk)->opt.fastopen_connect = val;
	return 0;
}

/*
 * TCP stores the number of SYN-ACK retransmissions in that many seconds, the first
 * after one second, each next one after twice the time.
 */
static u8 seconds_to_retries(int seconds)
{
	int timeout = 1, period = 1;
	u8 n = 0;

	if (seconds <= 0)
		return 0;
	for (n = 1; seconds > period && n < U8_MAX; n++) {
		timeout = min_t(int, timeout * 2, TCP_RTO_MAX / HZ);
		period += timeout;
	}
	return n;
}

static int set_value(struct sock *sk, int optname, int val)
{
	struct sovia_opts *opt = &sovia_sk(sk)->opt;
	int err = 0;

	switch (optname) {
	case TCP_NODELAY:
		return set_nodelay(sk, !!val);
	case TCP_CORK:
		return set_cork(sk, !!val);
	case TCP_QUICKACK:
		/* The lane acknowledges for all its sockets; the option has no effect. */
		opt->no_quickack = !val;
		break;
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
	case TCP_KEEPCNT:
		return set_keep(sk, optname, val);
	case TCP_USER_TIMEOUT:
		if (val < 0)
			return -EINVAL;
		opt->user_timeout = val;
		sovia_alive_start(sk);
		break;
	case TCP_SYNCNT:
		err = check_range(val, 1, MAX_TCP_SYNCNT);
		if (!err)
			opt->syncnt = val;
		break;
	case TCP_LINGER2:
		return set_linger2(opt, val);
	case TCP_DEFER_ACCEPT:
		opt->defer_accept = seconds_to_retries(val);
		break;
	case TCP_WINDOW_CLAMP:
		return set_window_clamp(sk, val);
	case TCP_NOTSENT_LOWAT:
		WRITE_ONCE(opt->notsent_lowat, val);
		sk->sk_write_space(sk);
		break;
	case TCP_MAXSEG:
		if (val)
			err = check_range(val, TCP_MIN_MSS, SOVIA_MAXSEG_MAX);
		if (!err)
			opt->maxseg = val;
		break;
	case TCP_INQ:
		err = check_range(val, 0, 1);
		if (!err)
			opt->inq = val;
		break;
	case TCP_FASTOPEN:
		return set_fastopen(sk, val);
	case TCP_FASTOPEN_CONNECT:
		return set_fastopen_connect(sk, val);
	case TCP_THIN_LINEAR_TIMEOUTS:
		err = check_range(val, 0, 1);
		if (!err)
			opt->thin = val;
		break;
	case TCP_THIN_DUPACK:
		/* TCP does not keep it either. */
		return check_range(val, 0, 1);
	default:
		return -ENOPROTOOPT;
	}
	return err;
}

/* Accept names that every kernel has, and the current default. */
static int congestion_known(struct sock *sk, const char *name)
{
	const struct tcp_congestion_ops *ca;
	bool known;

	rcu_read_lock();
	ca = rcu_dereference(sock_net(sk)->ipv4.tcp_congestion_control);
	known = !strcmp(name, "reno") || !strcmp(name, "cubic") || (ca && !strcmp(name, ca->name));
	rcu_read_unlock();
	return known ? 0 : -ENOENT;
}

static int set_congestion(struct sock *sk, sockptr_t optval, unsigned int optlen)
{
	char name[SOVIA_CA_NAME_MAX];
	int err;

	if (optlen < 1)
		return -EINVAL;
	err = strncpy_from_sockptr(name, optval, min_t(unsigned int, optlen, sizeof(name) - 1));
	if (err < 0)
		return -EFAULT;
	name[err] = 0;
	err = congestion_known(sk, name);
	if (err)
		return err;
	lock_sock(sk);
	strscpy(sovia_sk(sk)->opt.congestion, name, sizeof(name));
	release_sock(sk);
	return 0;
}

/**
 * sovia_set_tcp() - setsockopt() at level IPPROTO_TCP
 * @sk: the socket
 * @optname: option
 * @optval: value
 * @optlen: its length
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_set_tcp(struct sock *sk, int optname, sockptr_t optval, unsigned int optlen)
{
	int val, err;

	if (optname == TCP_CONGESTION)
		return set_congestion(sk, optval, optlen);
	if (optlen < sizeof(int))
		return -EINVAL;
	if (copy_from_sockptr(&val, optval, sizeof(val)))
		return -EFAULT;
	lock_sock(sk);
	err = set_value(sk, optname, val);
	release_sock(sk);
	return err;
}

/* ---- getsockopt ------------------------------------------------------ */

/* Data in flight is unacknowledged; the peer's window starts behind it. */
static void fill_sent(const struct sock *sk, struct tcp_info *info)
{
	const struct sovia_sock *ss = sovia_sk(sk);
	u32 flight = max_t(s32, sovia_outq(sk) - (s32)ss->tx.queued, 0);

	info->tcpi_bytes_sent = ss->tx.bytes;
	info->tcpi_bytes_acked = ss->tx.bytes - flight;
	info->tcpi_snd_wnd = READ_ONCE(ss->tx.wnd_end) - (ss->tx.nxt - flight);
}

static void fill_conn(const struct sovia_sock *ss, const struct sovia_conn *conn,
		      struct tcp_info *info)
{
	info->tcpi_snd_mss = sovia_conn_payload(conn);
	info->tcpi_rcv_mss = conn->lane->own_payload;
	info->tcpi_unacked = READ_ONCE(conn->inflight);
	/* While a window is asked back, more may have come, or have been read, than was told. */
	info->tcpi_rcv_space = max_t(s32, conn->rcv_wnd_end - ss->rx.copied, 0);
#ifdef SOVIA_TCPI_RCV_WND
	info->tcpi_rcv_wnd = max_t(s32, READ_ONCE(conn->rcv_wnd_sent) - ss->rx.nxt, 0);
#endif
}

static void fill_info(struct sock *sk, struct tcp_info *info)
{
	struct sovia_conn *conn = sovia_conn_of(sk);
	struct sovia_sock *ss = sovia_sk(sk);

	memset(info, 0, sizeof(*info));
	info->tcpi_state = sk->sk_state;
	if (sk->sk_state == TCP_LISTEN) {
		info->tcpi_unacked = READ_ONCE(sk->sk_ack_backlog);
		info->tcpi_sacked = READ_ONCE(sk->sk_max_ack_backlog);
		return;
	}
	info->tcpi_probes = min_t(unsigned int, ss->alive.probes, U8_MAX);
	info->tcpi_notsent_bytes = ss->tx.queued;
	fill_sent(sk, info);
	spin_lock_bh(&sk->sk_receive_queue.lock);
	info->tcpi_bytes_received = ss->rx.bytes;
	if (conn)
		fill_conn(ss, conn, info);
	spin_unlock_bh(&sk->sk_receive_queue.lock);
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

static int get_congestion(struct sock *sk, char __user *optval, int __user *optlen, int len)
{
	const struct tcp_congestion_ops *ca;
	char name[SOVIA_CA_NAME_MAX];

	lock_sock(sk);
	strscpy_pad(name, sovia_sk(sk)->opt.congestion, sizeof(name));
	release_sock(sk);
	if (!*name) {
		rcu_read_lock();
		ca = rcu_dereference(sock_net(sk)->ipv4.tcp_congestion_control);
		strscpy_pad(name, ca ? ca->name : "reno", sizeof(name));
		rcu_read_unlock();
	}
	len = min_t(int, len, sizeof(name));
	if (put_user(len, optlen) || copy_to_user(optval, name, len))
		return -EFAULT;
	return 0;
}

/* Before a connection, the default of TCP. */
static int get_maxseg(struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	int val = TCP_MSS_DEFAULT;
	struct sovia_conn *conn;

	lock_sock(sk);
	conn = sovia_conn_of(sk);
	if (conn)
		val = sovia_conn_payload(conn);
	if (ss->opt.maxseg && (!conn || ss->opt.maxseg < val))
		val = ss->opt.maxseg;
	release_sock(sk);
	return val;
}

static int get_linger2(struct sock *sk)
{
	int val = READ_ONCE(sovia_sk(sk)->opt.linger2);

	return val ? val : READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_fin_timeout) / HZ;
}

static int get_value(struct sock *sk, int optname, int *val)
{
	const struct sovia_opts *opt = &sovia_sk(sk)->opt;
	const struct netns_ipv4 *ipv4 = &sock_net(sk)->ipv4;

	switch (optname) {
	case TCP_NODELAY:
		*val = READ_ONCE(opt->nodelay);
		break;
	case TCP_CORK:
		*val = READ_ONCE(opt->cork);
		break;
	case TCP_QUICKACK:
		*val = !READ_ONCE(opt->no_quickack);
		break;
	case TCP_KEEPIDLE:
		*val = sovia_keepidle(sk) / HZ;
		break;
	case TCP_KEEPINTVL:
		*val = sovia_keepintvl(sk) / HZ;
		break;
	case TCP_KEEPCNT:
		*val = sovia_keepcnt(sk);
		break;
	case TCP_USER_TIMEOUT:
		*val = READ_ONCE(opt->user_timeout);
		break;
	case TCP_SYNCNT:
		*val = READ_ONCE(opt->syncnt) ?: READ_ONCE(ipv4->sysctl_tcp_syn_retries);
		break;
	case TCP_LINGER2:
		*val = get_linger2(sk);
		break;
	case TCP_DEFER_ACCEPT:
		*val = sovia_retry_seconds(READ_ONCE(opt->defer_accept));
		break;
	case TCP_WINDOW_CLAMP:
		*val = READ_ONCE(opt->window_clamp);
		break;
	case TCP_NOTSENT_LOWAT:
		*val = READ_ONCE(opt->notsent_lowat);
		break;
	case TCP_MAXSEG:
		*val = get_maxseg(sk);
		break;
	case TCP_INQ:
		*val = READ_ONCE(opt->inq);
		break;
	case TCP_FASTOPEN:
		*val = READ_ONCE(opt->fastopen);
		break;
	case TCP_FASTOPEN_CONNECT:
		*val = READ_ONCE(opt->fastopen_connect);
		break;
	case TCP_THIN_LINEAR_TIMEOUTS:
		*val = READ_ONCE(opt->thin);
		break;
	case TCP_THIN_DUPACK:
#ifdef TCP_IS_MPTCP
	case TCP_IS_MPTCP:
#endif
		*val = 0;
		break;
	default:
		return -ENOPROTOOPT;
	}
	return 0;
}

/**
 * sovia_get_tcp() - getsockopt() at level IPPROTO_TCP
 * @sk: the socket
 * @optname: option
 * @optval: where the value goes
 * @optlen: its length, in and out
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_get_tcp(struct sock *sk, int optname, char __user *optval, int __user *optlen)
{
	int val, len, err;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	switch (optname) {
	case TCP_INFO:
		return get_info(sk, optval, optlen, len);
	case TCP_CONGESTION:
		return get_congestion(sk, optval, optlen, len);
	case TCP_ULP:
	case TCP_CC_INFO:
		/* There is none, which TCP reports as length 0. */
		return put_user(0, optlen);
	}
	err = get_value(sk, optname, &val);
	if (err)
		return err;
	len = min_t(unsigned int, len, sizeof(int));
	if (put_user(len, optlen) || copy_to_user(optval, &val, len))
		return -EFAULT;
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * connect(), the client's half of connection set-up.
 *
 *	connect()			the link is UP already
 *	   route, port, link		   CONN ------------------>
 *	   link up: upcall		   <---------------- ACCEPT
 *	      CONN ------------>	one round trip, no queue pair
 *	      <---------- ACCEPT
 *
 * After REFUSE with SOVIA_CODE_BUSY (backlog full) CONN is retried after a delay,
 * as TCP does with a lost SYN.  A link that turns out to be stale when CONN is
 * sent over it (the peer was restarted) is replaced.
 */
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/tcp.h>
#include "close.h"
#include "compat/inet.h"
#include "connect.h"
#include "core/param.h"
#include "defer.h"
#include "policy/dry_syn.h"
#include "fallback.h"
#include "keepalive.h"
#include "lane/conn_table.h"
#include "lane/lane.h"
#include "link/link_conns.h"
#include "link/link_table.h"
#include "mem.h"
#include "peer/peer_memory.h"
#include "policy/route.h"
#include "policy/rule.h"
#include "port.h"
#include "port_search.h"
#include "program.h"
#include "rx.h"

#define SOVIA_RETRY_MIN		msecs_to_jiffies(4)
#define SOVIA_RETRY_MAX		HZ
#define SOVIA_LINK_RETRIES	2
/* How often connect() looks whether the link still works, if TCP is the alternative. */
#define SOVIA_LINK_CHECK	(HZ / 5)

static unsigned int link_wait = 200;
sovia_param(fallback_wait, link_wait, 0, SOVIA_WAIT_MAX, 0644);
MODULE_PARM_DESC(fallback_wait, "milliseconds that connect() waits for a link before it uses TCP (200)");

/* Read a destination; v4 becomes v4-mapped, and link-local binds the socket to its interface. */
static int parse_dest(struct sock *sk, struct sockaddr_unsized *uaddr, int len,
		      struct in6_addr *addr, u16 *port)
{
	if (sk->sk_family == AF_INET) {
		struct sockaddr_in *sin = (struct sockaddr_in *)uaddr;

		if (len < sizeof(*sin))
			return -EINVAL;
		if (sin->sin_family != AF_INET)
			return -EAFNOSUPPORT;
		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, addr);
		*port = ntohs(sin->sin_port);
	} else {
		struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)uaddr;
		int scope;

		if (len < SIN6_LEN_RFC2133)
			return -EINVAL;
		if (sin6->sin6_family != AF_INET6)
			return -EAFNOSUPPORT;
		*addr = sin6->sin6_addr;
		*port = ntohs(sin6->sin6_port);
		if (ipv6_addr_is_multicast(addr))
			return -ENETUNREACH;
		if (ipv6_addr_type(addr) & IPV6_ADDR_LINKLOCAL) {
			if (len < sizeof(*sin6))
				return -EINVAL;
			scope = sin6->sin6_scope_id;
			if (scope && sk->sk_bound_dev_if && sk->sk_bound_dev_if != scope)
				return -EINVAL;
			if (scope)
				sk->sk_bound_dev_if = scope;
			if (!sk->sk_bound_dev_if)
				return -EINVAL;
		}
		/* Any address means this host. */
		if (ipv6_addr_any(addr)) {
			if (ipv6_addr_v4mapped(&sk->sk_v6_rcv_saddr))
				ipv6_addr_set_v4mapped(htonl(INADDR_LOOPBACK), addr);
			else
				*addr = in6addr_loopback;
		}
		if (ipv6_addr_v4mapped(addr) && ipv6_only_sock(sk))
			return -ENETUNREACH;
	}
	return 0;
}

/* What packets would have in their headers. */
static u32 packet_fields(const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	const struct net *net = sock_net(sk);
	int ttl;

	if (!ipv6_addr_v4mapped(&sovia_conn_of(sk)->lane->pair->remote)) {
		const struct ipv6_pinfo *np = inet6_sk(sk);

		ttl = np->hop_limit;
		if (ttl < 0)
			ttl = READ_ONCE(net->ipv6.devconf_all->hop_limit);
		return sovia_conn_ref(np->tclass, ttl);
	}
	ttl = inet->uc_ttl;
	if (ttl < 0)
		ttl = READ_ONCE(net->ipv4.sysctl_ip_default_ttl);
	return sovia_conn_ref(inet->tos, ttl);
}

/* Request the connection, when the peer lets us. */
static void send_conn(struct sock *sk)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;
	struct sovia_conn *conn = sovia_conn_of(sk);

	conn->ref = packet_fields(sk);

	connect->asked = sovia_link_may_open(sovia_conn_link(conn));
	if (connect->asked)
		sovia_conn_control(conn, SOVIA_CONN, 0);
	else
		sovia_link_open(sovia_conn_link(conn), sk_uid(sk));
}

/* Start the connection on its link.  -ENOTCONN: the link is DOWN. */
static int join_link(struct sock *sk, struct sovia_conn *conn)
{
	int err, ret = sovia_link_attach(conn);

	if (ret < 0)
		return ret;
	err = sovia_conn_hash(conn);
	if (!err && ret == 1)
		send_conn(sk);
	return err;
}

/* Give the socket a connection on the link for @pair. */
static int use_link(struct sock *sk, const struct sovia_pair *pair,
		    const struct sovia_provider *prov, gfp_t gfp)
{
	struct sovia_net *snet = sovia_net(sock_net(sk));
	struct sovia_conn *conn;
	struct sovia_link *link;
	int err;

	do {
		link = sovia_link_get(snet, pair, prov, sk_uid(sk), sovia_sk(sk)->tenant, gfp);
		if (!link)
			return -ENOBUFS;
		conn = sovia_conn_create(&link->lane, sk, inet_sk(sk)->inet_num,
					 ntohs(inet_sk(sk)->inet_dport),
					 sovia_sk(sk)->tenant->number, gfp);
		if (!conn) {
			/* A new link is still NEW, with no connection: START ends it. */
			sovia_link_event(link, SOVIA_LINK_EV_START);
			sovia_link_put(link);
			return -ENOBUFS;
		}
		sovia_rx_join(sk, conn, false);
		sovia_sk(sk)->connect.asked = false;
		err = join_link(sk, conn);
		if (err)
			sovia_leave_link(sk);
	} while (err == -ENOTCONN);
	return !err || err == -EADDRNOTAVAIL ? err : -ENOBUFS;
}

/* Timeout of TCP's SYN retries, in jiffies. */
static unsigned long connect_timeout(const struct sock *sk)
{
	const struct sovia_opts *opt = &sovia_sk(sk)->opt;
	unsigned int tries = opt->syncnt ?: READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_syn_retries);
	unsigned long timeout = sovia_retry_seconds(tries + 1) * HZ;
	unsigned long user = msecs_to_jiffies(opt->user_timeout);

	/* TCP looks at it when it is time to repeat the SYN. */
	return user ? min(timeout, max_t(unsigned long, user, TCP_TIMEOUT_INIT)) : timeout;
}

/**
 * struct attempt - a connection that looks for its port
 * @snet: namespace of the socket
 * @pair: addresses of the link; the lane depends on the port
 * @prov: provider of it
 * @again: the first port was in use
 * @wait: how long to wait for a link before TCP is used, in milliseconds
 */
struct attempt {
	struct sovia_net		*snet;
	struct sovia_pair		pair;
	const struct sovia_provider	*prov;
	bool				again;
	u32				wait;
};

/*
 * Has TCP a connection between these addresses and ports?  The peer's programs could not tell the
 * two apart.
 */
static bool tcp_has(const struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport)
{
	struct sock *other = sovia_tcp_lookup(sock_net(sk), &pair->remote, rport, &pair->local,
					      lport, sk->sk_bound_dev_if, pair->l3);
	bool connected;

	if (!other)
		return false;
	connected = other->sk_state != TCP_TIME_WAIT;
	sock_gen_put(other);
	return connected;
}

/* Connect from the port that @sk has now. */
static int connect_from_port(struct sock *sk, void *context)
{
	struct inet_sock *inet = inet_sk(sk);
	u16 rport = ntohs(inet->inet_dport);
	struct attempt *attempt = context;
	int err;

	err = sovia_check_ipsec(sk, &attempt->pair, inet->inet_num, rport);
	if (err)
		return err;
	inet->inet_sport = htons(inet->inet_num);
	/* No listener has port 0: refuse locally, when the socket is released. */
	if (!rport) {
		sovia_defer_sock(sk, SOVIA_DEFER_REFUSE, SOVIA_CODE_NO_LISTENER);
		return 0;
	}
	/* In a search through many ports, look before anything is allocated. */
	if (attempt->again &&
	    sovia_conn_taken(attempt->snet, &attempt->pair, inet->inet_num, rport))
		return -EADDRNOTAVAIL;
	if (tcp_has(sk, &attempt->pair, inet->inet_num, rport))
		return -EADDRNOTAVAIL;
	err = sovia_dry_syn_out(sk, &attempt->pair, rport, attempt->prov->local);
	/* TCP's SYN would be dropped as well: let TCP time out as it always does. */
	if (err == -EPERM && sovia_fallback_armed(sk))
		err = -EOPNOTSUPP;
	if (err)
		return err;
	attempt->pair.lane = sovia_lane_choose(inet->inet_num, rport);
	err = use_link(sk, &attempt->pair, attempt->prov, sk->sk_allocation);
	attempt->again = err == -EADDRNOTAVAIL;
	return err;
}

/* Until @when; if TCP is the alternative, look before what the link does. */
static void set_connect_timer(struct sock *sk, unsigned long when)
{
	const struct sovia_connecting *connect = &sovia_sk(sk)->connect;
	unsigned long look = connect->silent ?: jiffies + SOVIA_LINK_CHECK;

	if (sovia_fallback_armed(sk) && time_before(look, when))
		when = look;
	if (time_after(when, connect->deadline))
		when = connect->deadline;
	sk_reset_timer(sk, &sk->sk_timer, when);
}

static void begin_connect(struct sock *sk, const struct sovia_pair *pair, u16 port)
{
	struct sovia_sock *ss = sovia_sk(sk);

	sovia_port_set_local(sk, &pair->local);
	sovia_set_peer(sk, &pair->remote, port);
	sk->sk_err = 0;
	sock_reset_flag(sk, SOCK_DONE);
	ss->connect.link_retries = SOVIA_LINK_RETRIES;
	ss->connect.retry_delay = SOVIA_RETRY_MIN;
	ss->connect.busy = false;
	WRITE_ONCE(ss->tx.lost, 0);
	ss->connect.deadline = jiffies + connect_timeout(sk);
	sovia_state_event(sk, SOVIA_EV_CONNECT);
}

static bool link_is_up(const struct sovia_link *link)
{
	return READ_ONCE(link->state) == SOVIA_LINK_UP;
}

/* May connections be opened at once? */
static bool link_is_open(const struct sovia_link *link)
{
	return link_is_up(link) && sovia_link_may_open(link);
}

/* How long may it wait for a link?  @wait: what a rule says. */
static u32 wait_time(const struct sock *sk, u32 wait)
{
	const struct sovia_opts *opt = &sovia_sk(sk)->opt;

	if (wait != SOVIA_WAIT_DEFAULT)
		return wait;
	return opt->wait ? opt->wait - 1 : READ_ONCE(link_wait);
}

/* Fall back to TCP, if allowed.  Returns -EHOSTDOWN then, or 0. */
static int is_tcps(struct sock *sk, enum sovia_why why)
{
	if (!sovia_fallback_armed(sk))
		return 0;
	sovia_sk(sk)->connect.why = why;
	return -EHOSTDOWN;
}

/*
 * Apply the rules, then what the program wants, then what TCP alone can do.  Returns 0,
 * -EHOSTDOWN to fall back to TCP, or another negative errno.
 */
static int connect_judge(struct sock *sk, struct attempt *attempt, u16 port)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;
	u32 wait = SOVIA_WAIT_DEFAULT;
	u8 action;

	action = sovia_rules_decide(attempt->snet, sk, SOVIA_RULE_OUT, &attempt->pair, port, &wait);
	attempt->wait = wait_time(sk, wait);
	if (action == SOVIA_AUTO)
		action = sovia_sk(sk)->opt.action;
	/* They are not to be evaded, whatever the program and the rules want. */
	if (action != SOVIA_DENY && sovia_packets_are_seen(sk))
		return is_tcps(sk, SOVIA_WHY_FILTER) ?: -EOPNOTSUPP;
	switch (action) {
	case SOVIA_DENY:
		connect->fallback = SOVIA_FALLBACK_NONE;
		return -EACCES;
	case SOVIA_ONLY_SOVIA:
		connect->fallback = SOVIA_FALLBACK_NONE;
		return 0;
	case SOVIA_ONLY_TCP:
		return is_tcps(sk, SOVIA_WHY_RULE) ?: -EOPNOTSUPP;
	default:
		return sovia_needs_tcp(sk) ? is_tcps(sk, SOVIA_WHY_FILTER) : 0;
	}
}

/* Is it known that only TCP listens at the port?  AF_SOVIA would ask first and be refused. */
static bool service_is_tcp(struct sock *sk, const struct attempt *attempt, u16 port)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;

	if (!sovia_fallback_armed(sk))
		return false;
	connect->refused = 0;
	connect->service = 0;
	if (!sovia_services_any(attempt->snet))
		return false;
	connect->service = sovia_service_key(attempt->snet, &attempt->pair, port);
	return sovia_service_is_tcp(attempt->snet, connect->service);
}

/*
 * Look the peer up among those that AF_SOVIA has not reached.  An entry that has expired, or a wait
 * of 0, still means TCP, but starts a link in the background.
 */
static bool known_as_tcp(struct sock *sk, const struct attempt *attempt, enum sovia_why *why)
{
	struct sovia_net *snet = attempt->snet;
	enum sovia_memory_answer answer;
	struct sovia_link *link;
	bool open;

	if (attempt->prov->local || !sovia_fallback_armed(sk))
		return false;
	answer = sovia_memory_ask(snet, &attempt->pair, why);
	if (answer == SOVIA_MEMORY_TCP)
		return true;
	if (answer == SOVIA_MEMORY_NONE && attempt->wait)
		return false;
	link = sovia_link_get(snet, &attempt->pair, attempt->prov, sk_uid(sk),
			      sovia_sk(sk)->tenant, sk->sk_allocation);
	if (!link)
		return true;
	open = link_is_open(link);
	/* It may have come up while that was learnt. */
	if (open)
		sovia_memory_clear(snet, &attempt->pair);
	else if (link_is_up(link))
		sovia_link_open(link, sk_uid(sk));
	else
		sovia_link_keep(link);
	sovia_link_put(link);
	return !open || answer == SOVIA_MEMORY_RENEW;
}

/* The answer may take as long as @attempt says, or longer where a link is UP. */
static void be_patient(struct sock *sk, const struct attempt *attempt)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;
	unsigned long wait = msecs_to_jiffies(attempt->wait);

	connect->patience = max_t(unsigned long, wait, SOVIA_LINK_CHECK);
	if (link_is_open(sovia_conn_link(sovia_conn_of(sk))))
		wait = connect->patience;
	connect->silent = (jiffies + wait) | 1;
}

static int start_connect(struct sock *sk, const struct in6_addr *daddr, u16 port)
{
	struct attempt attempt = { .snet = sovia_net(sock_net(sk)) };
	enum sovia_why why = SOVIA_WHY_SILENT;
	int err;

	err = sovia_route(sk, daddr, port, &attempt.pair, &attempt.prov);
	if (err)
		return err;
	err = connect_judge(sk, &attempt, port) ?: sovia_sk(sk)->connect.no_links;
	if (err)
		return err;
	if (sovia_mem_none(sk)) {
		sovia_stat_inc(attempt.snet, no_room);
		return is_tcps(sk, SOVIA_WHY_MEMORY) ?: -ENOBUFS;
	}
	if (!attempt.prov)
		return is_tcps(sk, SOVIA_WHY_DEVICE) ?: -ENETUNREACH;
	if (service_is_tcp(sk, &attempt, port))
		return is_tcps(sk, SOVIA_WHY_LISTENER);
	if (known_as_tcp(sk, &attempt, &why))
		return is_tcps(sk, why);
	begin_connect(sk, &attempt.pair, port);
	err = sovia_connect_port(sk, connect_from_port, &attempt);
	if (err) {
		sovia_state_event(sk, SOVIA_EV_ABORT);
		sovia_port_reset_local(sk);
		inet_sk(sk)->inet_dport = 0;
		return err;
	}
	if (port) {
		be_patient(sk, &attempt);
		set_connect_timer(sk, sovia_sk(sk)->connect.deadline);
	}
	return 0;
}

/**
 * sovia_connect() - struct proto::connect
 * @sk: in CLOSE
 * @uaddr: destination
 * @addr_len: length of it
 *
 * Starts the connection; inet_stream_connect() waits for it.
 *
 * Context: process, socket lock held.
 * Return: 0 or a negative errno.
 */
int sovia_connect(struct sock *sk, struct sockaddr_unsized *uaddr, int addr_len)
{
	struct in6_addr daddr;
	u16 port;
	int err;

	err = parse_dest(sk, uaddr, addr_len, &daddr, &port);
	if (!err)
		err = start_connect(sk, &daddr, port);
	if (err && !(sk->sk_userlocks & SOCK_BINDPORT_LOCK))
		sovia_put_port(sk);
	return err;
}

/**
 * sovia_link_came_up() - the link that connect() waits for is up, or open
 * @sk: in any state
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_link_came_up(struct sock *sk)
{
	if (sk->sk_state == TCP_SYN_SENT && sovia_conn_of(sk) && !sovia_sk(sk)->connect.asked)
		send_conn(sk);
}

/* Try once more over a fresh link. */
static bool replace_link(struct sock *sk)
{
	const struct sovia_link *link = sovia_conn_link(sovia_conn_of(sk));
	const struct sovia_provider *prov = link->lane.prov;
	const struct sovia_pair pair = link->pair;
	struct sovia_sock *ss = sovia_sk(sk);

	if (!ss->connect.link_retries)
		return false;
	ss->connect.link_retries--;
	sovia_leave_link(sk);
	/* They concern the connection that was. */
	ss->deferred = 0;
	sovia_stat_inc(sovia_net(sock_net(sk)), conn_retry);
	return !use_link(sk, &pair, prov, GFP_ATOMIC | __GFP_NOWARN);
}

/* Map provider errors to the errnos TCP would return. */
static int tcp_errno(const struct sock *sk, int err)
{
	if (sk->sk_state != TCP_SYN_SENT)
		return err == -ETIMEDOUT ? err : -ECONNRESET;
	switch (err) {
	case -ENODEV:
		return -ENETUNREACH;
	case -EPROTO:
		return -ECONNREFUSED;
	case -EILSEQ:
		return -ECONNRESET;
	case -ENOMEM:
	case -ENOSPC:
		return -ENOBUFS;
	default:
		return err;
	}
}

/* Why there is no link; what has been learnt says it better than the errno. */
static enum sovia_why why_no_link(const struct sovia_link *link, int err)
{
	enum sovia_why why = SOVIA_WHY_WAY;

	if (err == ENOBUFS)
		why = SOVIA_WHY_MEMORY;
	else if (err == ECONNREFUSED)
		why = SOVIA_WHY_REFUSED;
	return sovia_memory_why(link->snet, &link->pair, why);
}

/**
 * sovia_link_went_down() - the link has gone down
 * @sk: in any state
 * @err: the cause, a positive errno
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_link_went_down(struct sock *sk, int err)
{
	struct sovia_conn *conn = sovia_conn_of(sk);

	/* The socket may have moved to another link. */
	if (!conn || READ_ONCE(sovia_conn_link(conn)->state) != SOVIA_LINK_DOWN)
		return;
	/* A link that had been up may just have been stale. */
	if (sk->sk_state == TCP_SYN_SENT && (err == ECONNRESET || err == ETIMEDOUT) &&
	    replace_link(sk))
		return;
	err = -tcp_errno(sk, -err);
	if (!sovia_fallback_due(sk, err, why_no_link(sovia_conn_link(conn), err)))
		sovia_done(sk, err);
}

/**
 * sovia_link_barred() - no connection can be opened over the link
 * @sk: in any state
 * @err: the cause, a positive errno
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_link_barred(struct sock *sk, int err)
{
	if (sk->sk_state != TCP_SYN_SENT || !sovia_conn_of(sk) || sovia_sk(sk)->connect.asked)
		return;
	err = -tcp_errno(sk, -err);
	if (!sovia_fallback_due(sk, err, why_no_link(sovia_conn_link(sovia_conn_of(sk)), err)))
		sovia_done(sk, err);
}

/* Is it connected to itself, but shut down for writing?  Its own FIN closes it then. */
static bool shut_by_itself(const struct sock *sk)
{
	const struct sovia_conn *conn = sovia_conn_of(sk);
	const struct sovia_pair *pair = conn->lane->pair;

	return (sk->sk_shutdown & SEND_SHUTDOWN) && conn->lport == conn->rport &&
	       ipv6_addr_equal(&pair->local, &pair->remote);
}

/**
 * sovia_accepted() - ACCEPT came
 * @sk: in SYN_SENT
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_accepted(struct sock *sk)
{
	if (sk->sk_state == TCP_SYN_SENT && sovia_conn_of(sk) && shut_by_itself(sk)) {
		sovia_done(sk, 0);
		sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
		return;
	}
	if (!sovia_state_event(sk, SOVIA_EV_ACCEPT))
		return;
	sk_stop_timer(sk, &sk->sk_timer);
	sovia_stat_inc(sovia_net(sock_net(sk)), conn_active);
	sovia_fallback_unneeded(sk);
	sovia_alive_start(sk);
	sk->sk_state_change(sk);
	sk_wake_async(sk, SOCK_WAKE_IO, POLL_OUT);
}

/* AF_SOVIA has no listener there.  If TCP has one, that is learnt when its connection is over. */
static void note_service(struct sock *sk)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;
	const struct sovia_conn *conn = sovia_conn_of(sk);
	u16 port = ntohs(inet_sk(sk)->inet_dport);
	const struct sovia_link *link;

	/* Port 0 is refused without one. */
	if (!conn)
		return;
	link = sovia_conn_link(conn);
	connect->service = sovia_service_key(link->snet, &link->pair, port);
	connect->refused = jiffies | 1;
}

static enum sovia_why why_refused(u32 code)
{
	switch (code) {
	case SOVIA_CODE_NO_LISTENER:
		return SOVIA_WHY_LISTENER;
	case SOVIA_CODE_USE_TCP:
		return SOVIA_WHY_RULE;
	default:
		return SOVIA_WHY_REFUSED;
	}
}

/**
 * sovia_refused() - REFUSE came
 * @sk: in SYN_SENT
 * @code: enum sovia_code
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_refused(struct sock *sk, u32 code)
{
	struct sovia_sock *ss = sovia_sk(sk);
	unsigned long when;

	if (sk->sk_state != TCP_SYN_SENT)
		return;
	/* Denied by the peer's rules: do not bypass them over TCP. */
	if (code == SOVIA_CODE_DENIED)
		sovia_fallback_unneeded(sk);
	if (code == SOVIA_CODE_NO_DIRECTION && ss->connect.link_retries) {
		ss->connect.link_retries--;
		sovia_link_shut_out(sovia_conn_link(sovia_conn_of(sk)));
		send_conn(sk);
		return;
	}
	if (code != SOVIA_CODE_BUSY && code != SOVIA_CODE_NO_MEMORY) {
		if (code == SOVIA_CODE_NO_LISTENER && sovia_fallback_armed(sk))
			note_service(sk);
		if (!sovia_fallback_due(sk, ECONNREFUSED, why_refused(code)))
			sovia_done(sk, ECONNREFUSED);
		return;
	}
	/* TCP has memory of its own. */
	if (code == SOVIA_CODE_NO_MEMORY &&
	    sovia_fallback_due(sk, ECONNREFUSED, SOVIA_WHY_MEMORY))
		return;
	ss->connect.busy = true;
	ss->connect.silent = 0;
	when = jiffies + ss->connect.retry_delay;
	ss->connect.retry_delay = min(ss->connect.retry_delay * 2, SOVIA_RETRY_MAX);
	set_connect_timer(sk, when);
}

/* Does the peer answer, as far as we know? */
static bool peer_answers(const struct sock *sk)
{
	const struct sovia_conn *conn = sovia_conn_of(sk);

	return link_is_up(sovia_conn_link(conn)) && sovia_conn_is_heard(conn);
}

/* Has it not answered for so long that it is TCP's turn?  While a lane is replaced, it does not. */
static bool silent_too_long(struct sock *sk)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;

	if (peer_answers(sk)) {
		connect->silent = 0;
		return false;
	}
	if (!connect->silent)
		connect->silent = (jiffies + connect->patience) | 1;
	return time_after_eq(jiffies, connect->silent);
}

static void learn_silence(struct sovia_link *link)
{
	if (link_is_open(link)) {
		sovia_memory_learn(link->snet, &link->pair, SOVIA_WHY_WAY);
		return;
	}
	sovia_memory_learn(link->snet, &link->pair, SOVIA_WHY_SILENT);
	/* It clears that when it comes up, but perhaps it just has. */
	if (link_is_open(link))
		sovia_memory_clear(link->snet, &link->pair);
}

/* Use TCP instead of waiting for the peer; later connections may use the link. */
static bool give_up_waiting(struct sock *sk)
{
	struct sovia_link *link = sovia_conn_link(sovia_conn_of(sk));

	if (!sovia_fallback_armed(sk))
		return false;
	if (!link->lane.prov->local)
		learn_silence(link);
	sovia_link_keep(link);
	return sovia_fallback_due(sk, ETIMEDOUT, SOVIA_WHY_SILENT);
}

/**
 * sovia_connect_timeout() - the timer of a socket in SYN_SENT
 * @sk: the socket
 *
 * Context: softirq, socket lock held and not owned by a process.
 */
void sovia_connect_timeout(struct sock *sk)
{
	struct sovia_connecting *connect = &sovia_sk(sk)->connect;

	if (!sovia_conn_of(sk))
		return;
	if (time_after_eq(jiffies, connect->deadline)) {
		sovia_abort(sk, ETIMEDOUT, SOVIA_CODE_ABORT);
		return;
	}
	if (silent_too_long(sk) && give_up_waiting(sk))
		return;
	if (connect->busy) {
		connect->busy = false;
		sovia_stat_inc(sovia_net(sock_net(sk)), conn_retry);
		send_conn(sk);
	}
	set_connect_timer(sk, connect->deadline);
}

/**
 * sovia_retry_seconds() - TCP's total timeout for a number of retries
 * @retries: number of retries
 *
 * Context: any.
 * Return: seconds, the wait after the last one included.
 */
unsigned int sovia_retry_seconds(unsigned int retries)
{
	unsigned int timeout = 1, period = 0;

	while (retries--) {
		period += timeout;
		timeout = min_t(unsigned int, timeout * 2, TCP_RTO_MAX / HZ);
	}
	return period;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/connect_test.c"
#endif

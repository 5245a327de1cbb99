// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of all events of a socket, in every state: calls of the
 * program, messages of the peer, events of the link.  The state afterwards is
 * the table's, or unchanged; and the socket is freed in all cases.  Included
 * by upcall.c.
 */
#include <linux/delay.h>
#include <net/ip.h>
#include <net/tcp_states.h>
#include "core/connd.h"
#include "lane/conn_table.h"
#include "lane/lane.h"
#include "sock/close.h"
#include "sock/defer.h"
#include "sock/send.h"
#include "sock/upcall.h"
#include "sock/urgent.h"
#include "sock_helper.h"
#include "suites.h"

/**
 * enum happening - events of a socket
 * @CALL_LISTEN: listen()
 * @CALL_CONNECT: connect() to a listener whose backlog is full
 * @CALL_SHUTDOWN: shutdown() of the sending half
 * @SAYS_ACCEPT: the peer sends ACCEPT
 * @SAYS_REFUSE: the peer sends REFUSE
 * @SAYS_BUSY: the peer sends REFUSE, because of the backlog
 * @SAYS_FIN: the peer sends FIN
 * @SAYS_GONE: the peer sends FIN with SOVIA_F_GONE
 * @SAYS_RESET: the peer sends RESET
 * @DELIVERED: our FIN has been delivered
 * @LINK_UP: the link is up
 * @LINK_LOST: the link goes down
 * @LINK_STALE: the link goes down because the peer no longer knows it
 * @HAPPENINGS: number of events
 */
enum happening {
	CALL_LISTEN, CALL_CONNECT, CALL_SHUTDOWN,
	SAYS_ACCEPT, SAYS_REFUSE, SAYS_BUSY, SAYS_FIN, SAYS_GONE, SAYS_RESET,
	DELIVERED, LINK_UP, LINK_LOST, LINK_STALE, HAPPENINGS
};

/* The corresponding event of the state table; SOVIA_EV_COUNT: none. */
static const enum sovia_event happening_event[HAPPENINGS] = {
	[CALL_LISTEN]	= SOVIA_EV_LISTEN,
	[CALL_CONNECT]	= SOVIA_EV_CONNECT,
	[CALL_SHUTDOWN]	= SOVIA_EV_CLOSE,
	[SAYS_ACCEPT]	= SOVIA_EV_ACCEPT,
	[SAYS_REFUSE]	= SOVIA_EV_COUNT,
	[SAYS_BUSY]	= SOVIA_EV_COUNT,
	[SAYS_FIN]	= SOVIA_EV_FIN,
	[SAYS_GONE]	= SOVIA_EV_FIN,
	[SAYS_RESET]	= SOVIA_EV_ABORT,
	[DELIVERED]	= SOVIA_EV_DELIVERED,
	[LINK_UP]	= SOVIA_EV_COUNT,
	[LINK_LOST]	= SOVIA_EV_ABORT,
	[LINK_STALE]	= SOVIA_EV_ABORT,
};

/* Exceptions. */
static const struct {
	u8		state;
	enum happening	what;
	u8		next;
} events_special[] = {
	/* The peer has not answered: only REFUSE can be for this connection. */
	{ TCP_SYN_SENT, SAYS_REFUSE, TCP_CLOSE },
	{ TCP_SYN_SENT, SAYS_RESET, TCP_SYN_SENT },
	/* Another link replaces it. */
	{ TCP_SYN_SENT, LINK_STALE, TCP_SYN_SENT },
	/* TCP's shutdown() ends a connect(). */
	{ TCP_SYN_SENT, CALL_SHUTDOWN, TCP_CLOSE },
	/* What is queued is sent whatever the window: the peer, which has not gone, resets. */
	{ TCP_ESTABLISHED, SAYS_GONE, TCP_CLOSE },
	{ TCP_FIN_WAIT1, SAYS_GONE, TCP_CLOSE },
	/* A listener has no peer and no link. */
	{ TCP_LISTEN, SAYS_RESET, TCP_LISTEN },
	{ TCP_LISTEN, LINK_LOST, TCP_LISTEN },
	{ TCP_LISTEN, LINK_STALE, TCP_LISTEN },
};

static u8 events_expected(u8 state, enum happening what)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(events_special); i++)
		if (events_special[i].state == state && events_special[i].what == what)
			return events_special[i].next;
	return sovia_state_next(state, happening_event[what]) ?: state;
}

/**
 * struct events_set - the sockets of one test
 * @sk: the socket under test
 * @sock: its struct socket
 * @peer: connected to it, or NULL
 * @busy: a listener with a full backlog, or NULL
 * @full: the connection that fills its backlog
 */
struct events_set {
	struct sock	*sk;
	struct socket	*sock;
	struct socket	*peer;
	struct socket	*busy;
	struct socket	*full;
};

static bool events_reach(struct sock *sk, u8 state)
{
	int tries = 500;

	while (READ_ONCE(sk->sk_state) != state && tries--)
		msleep(20);
	return sk->sk_state == state;
}

/* Fill the peer's window, so that what follows has to wait. */
static void events_fill(struct socket *sock)
{
	struct sovia_sock *ss = sovia_sk(sock->sk);
	static u8 bytes[4096];
	struct kvec vec;

	while (!READ_ONCE(ss->tx.queued) ||
	       sovia_credit_flight(&test_conn(sock)->lane->credit)) {
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

		vec = (struct kvec){ bytes, sizeof(bytes) };
		/* Acknowledgments of messages in flight make room again. */
		if (kernel_sendmsg(sock, &msg, &vec, 1, sizeof(bytes)) < 0)
			msleep(20);
	}
}

static void events_send(struct socket *sock, int len)
{
	struct msghdr msg = { .msg_flags = MSG_NOSIGNAL };
	u8 bytes[16] = {};
	struct kvec vec = { bytes, len };

	kernel_sendmsg(sock, &msg, &vec, 1, len);
}

/* A connection in that state, with a FIN that is not delivered. */
static void events_connect(struct kunit *test, struct events_set *set, u8 state)
{
	KUNIT_ASSERT_EQ(test, test_connected_far(test, &set->sock, &set->peer), 0);
	if (state != TCP_FIN_WAIT2)
		events_fill(set->sock);
	if (state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK) {
		kernel_sock_shutdown(set->peer, SHUT_WR);
		KUNIT_ASSERT_TRUE(test, events_reach(set->sock->sk, TCP_CLOSE_WAIT));
	}
	if (state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_CLOSING ||
	    state == TCP_LAST_ACK)
		kernel_sock_shutdown(set->sock, SHUT_WR);
	if (state == TCP_CLOSING)
		kernel_sock_shutdown(set->peer, SHUT_WR);
}

static void events_busy(struct kunit *test, struct events_set *set)
{
	set->busy = test_listener(test, htonl(INADDR_LOOPBACK + 2), 0);
	set->full = test_socket(test);
	KUNIT_ASSERT_EQ(test, test_connect(set->full, set->busy, 0), 0);
}

static void events_begin(struct kunit *test, struct events_set *set, u8 state,
			 enum happening what)
{
	*set = (struct events_set){};
	if (state == TCP_SYN_SENT || what == CALL_CONNECT)
		events_busy(test, set);
	switch (state) {
	case TCP_CLOSE:
		set->sock = test_socket(test);
		break;
	case TCP_LISTEN:
		set->sock = test_listener(test, htonl(INADDR_LOOPBACK), 1);
		break;
	case TCP_SYN_SENT:
		set->sock = test_socket(test);
		KUNIT_ASSERT_EQ(test, test_connect(set->sock, set->busy, O_NONBLOCK),
				-EINPROGRESS);
		break;
	default:
		events_connect(test, set, state);
	}
	set->sk = set->sock->sk;
	KUNIT_ASSERT_TRUE(test, events_reach(set->sk, state));
}

static void events_end(struct events_set *set)
{
	sock_release(set->sock);
	if (set->peer)
		sock_release(set->peer);
	if (set->busy) {
		sock_release(set->full);
		sock_release(set->busy);
	}
}

static struct sovia_conn *events_conn(const struct sock *sk)
{
	return rcu_dereference_protected(sovia_sk(sk)->conn, 1);
}

/* Like the bottom half of the lane, if it finds the connection. */
static void events_message_ref(struct sock *sk, u8 type, u16 flags, u32 code, u32 ref)
{
	struct sovia_conn *conn = events_conn(sk);
	struct sovia_msg msg = {
		.type = type, .flags = flags, .code = code, .ref = ref,
		.window = sovia_sk(sk)->tx.wnd_end,
	};

	if (!conn || !conn->hashed)
		return;
	local_bh_disable();
	sovia_sock_client.control(conn, &msg);
	local_bh_enable();
}

static void events_message(struct sock *sk, u8 type, u16 flags, u32 code)
{
	const struct sovia_conn *conn = events_conn(sk);

	events_message_ref(sk, type, flags, code, conn ? conn->conn_seq : 0);
}

static void events_link_dies(struct sock *sk, int err)
{
	struct sovia_conn *conn = events_conn(sk);

	if (!conn)
		return;
	sovia_lane_fail(conn->lane, err);
	sovia_connd_flush();
}

static void events_happen(struct events_set *set, enum happening what)
{
	struct sock *sk = set->sk;

	switch (what) {
	case CALL_LISTEN:
		kernel_listen(set->sock, 1);
		break;
	case CALL_CONNECT:
		test_connect(set->sock, set->busy, O_NONBLOCK);
		break;
	case CALL_SHUTDOWN:
		kernel_sock_shutdown(set->sock, SHUT_WR);
		break;
	case SAYS_ACCEPT:
		events_message(sk, SOVIA_ACCEPT, 0, 0);
		break;
	case SAYS_REFUSE:
		events_message(sk, SOVIA_REFUSE, 0, SOVIA_CODE_NO_SOCKET);
		break;
	case SAYS_BUSY:
		events_message(sk, SOVIA_REFUSE, 0, SOVIA_CODE_BUSY);
		break;
	case SAYS_FIN:
		events_message(sk, SOVIA_FIN, 0, 0);
		break;
	case SAYS_GONE:
		events_message(sk, SOVIA_FIN, SOVIA_F_GONE, 0);
		break;
	case SAYS_RESET:
		events_message(sk, SOVIA_RESET, 0, SOVIA_CODE_ABORT);
		break;
	case DELIVERED:
		if (events_conn(sk))
			sovia_sock_client.delivered(events_conn(sk));
		break;
	case LINK_UP:
		if (events_conn(sk))
			sovia_sock_client.up(events_conn(sk));
		break;
	case LINK_LOST:
		events_link_dies(sk, -EHOSTUNREACH);
		break;
	case LINK_STALE:
		events_link_dies(sk, -ECONNRESET);
		break;
	case HAPPENINGS:
		break;
	}
}

static const u8 events_states[] = {
	TCP_CLOSE, TCP_LISTEN, TCP_SYN_SENT, TCP_ESTABLISHED, TCP_FIN_WAIT1,
	TCP_FIN_WAIT2, TCP_CLOSING, TCP_CLOSE_WAIT, TCP_LAST_ACK,
};

static void events_state_name(const u8 *state, char *desc)
{
	strscpy(desc, sovia_state_name(*state), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(events, events_states, events_state_name);

static bool events_socks(int expected)
{
	struct sovia_net *snet = sovia_net(&init_net);
	int tries = 500;

	while (atomic_read(&snet->socks) != expected && tries--)
		msleep(20);
	return atomic_read(&snet->socks) == expected;
}

/* Each event once in each state: the state is right, and nothing is left. */
static void events_all(struct kunit *test)
{
	u8 state = *(const u8 *)test->param_value;
	struct events_set set;
	enum happening what;
	int socks;

	rcu_barrier();
	socks = atomic_read(&sovia_net(&init_net)->socks);
	for (what = 0; what < HAPPENINGS; what++) {
		events_begin(test, &set, state, what);
		events_happen(&set, what);
		events_reach(set.sk, events_expected(state, what));
		KUNIT_EXPECT_EQ_MSG(test, set.sk->sk_state, events_expected(state, what),
				    "happening %d", what);
		if (what == LINK_LOST && set.sk->sk_state == TCP_CLOSE && state != TCP_CLOSE)
			KUNIT_EXPECT_NE(test, set.sk->sk_err, 0);
		events_end(&set);
		KUNIT_EXPECT_TRUE_MSG(test, events_socks(socks), "happening %d", what);
	}
}

/* SIOCOUTQ has what the peer's socket refused, although its lane has acknowledged it. */
static void events_unacknowledged(struct kunit *test)
{
	struct events_set set;
	u32 nxt;

	events_begin(test, &set, TCP_CLOSE_WAIT, SAYS_RESET);
	KUNIT_EXPECT_EQ(test, sovia_untaken(sovia_sk(set.sk)), 0U);
	nxt = sovia_sk(set.sk)->tx.nxt;
	events_message_ref(set.sk, SOVIA_RESET, SOVIA_F_TAKEN, SOVIA_CODE_ABORT, nxt - 100000);
	KUNIT_EXPECT_EQ(test, set.sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_GE(test, sovia_outq(set.sk), 100000);
	lock_sock(set.sk);
	sovia_disconnect(set.sk, 0);
	release_sock(set.sk);
	KUNIT_EXPECT_GE(test, sovia_outq(set.sk), 100000);
	events_end(&set);
}

/* A peer that has closed and has not taken everything will reset: no end before that. */
static void events_reset_follows(struct kunit *test)
{
	struct socket *a, *b;
	u32 nxt;

	test_connected(test, &a, &b);
	events_send(a, 5);
	KUNIT_EXPECT_EQ(test, sovia_outq(a->sk), 0);
	nxt = sovia_sk(a->sk)->tx.nxt;
	events_message_ref(a->sk, SOVIA_FIN, SOVIA_F_GONE | SOVIA_F_TAKEN, 0, nxt - 2);
	KUNIT_EXPECT_TRUE(test, events_reach(a->sk, TCP_CLOSE_WAIT));
	KUNIT_EXPECT_EQ(test, sovia_outq(a->sk), 2);
	kernel_sock_shutdown(a, SHUT_WR);
	msleep(20);
	KUNIT_EXPECT_EQ(test, a->sk->sk_state, TCP_LAST_ACK);
	/* From where the connection is not known any more: it says nothing about the stream. */
	events_message_ref(a->sk, SOVIA_RESET, 0, SOVIA_CODE_NO_SOCKET, 0);
	KUNIT_EXPECT_TRUE(test, events_reach(a->sk, TCP_CLOSE));
	KUNIT_EXPECT_EQ(test, sovia_outq(a->sk), 2);
	sock_release(a);
	sock_release(b);
}

/* What was deferred for a link that has been replaced does not concern the next one. */
static void events_of_old_link(struct kunit *test)
{
	struct events_set set;

	events_begin(test, &set, TCP_SYN_SENT, LINK_STALE);
	lock_sock(set.sk);
	events_link_dies(set.sk, -ECONNRESET);
	sovia_defer_now(events_conn(set.sk), SOVIA_DEFER_BARRED, EHOSTUNREACH);
	release_sock(set.sk);
	KUNIT_EXPECT_EQ(test, set.sk->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_EQ(test, set.sk->sk_err, 0);
	events_end(&set);
}

/* Windows and urgent bytes of the connection that had these ports before are not of this one. */
static void events_of_predecessor(struct kunit *test)
{
	static const u8 types[] = { SOVIA_WAKEUP, SOVIA_RETURN, SOVIA_URGENT, SOVIA_PRESSURE };
	struct events_set set;
	u32 window;
	int i;

	events_begin(test, &set, TCP_SYN_SENT, HAPPENINGS);
	window = sovia_sk(set.sk)->tx.wnd_end;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct sovia_msg msg = { .type = types[i], .window = window + 1000, .ref = 77 };

		local_bh_disable();
		sovia_sock_client.control(events_conn(set.sk), &msg);
		local_bh_enable();
	}
	KUNIT_EXPECT_EQ(test, set.sk->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_EQ(test, set.sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, sovia_sk(set.sk)->tx.wnd_end, window);
	KUNIT_EXPECT_EQ(test, sovia_sk(set.sk)->urg.state, SOVIA_URG_NONE);
	events_end(&set);
}

/* Number of violations that a FIN counts as; @ended: its owner ended the connection before. */
static unsigned long events_fin(struct kunit *test, u8 state, bool ended)
{
	struct sovia_net *snet = sovia_net(&init_net);
	unsigned long before = snmp_fold_field(snet->mib, SOVIA_STAT_bad_state);
	struct events_set set;

	events_begin(test, &set, state, SAYS_FIN);
	lock_sock(set.sk);
	events_message(set.sk, SOVIA_FIN, 0, 0);
	if (ended)
		sovia_abort(set.sk, 0, SOVIA_CODE_ABORT);
	release_sock(set.sk);
	KUNIT_EXPECT_EQ(test, set.sk->sk_state,
			ended ? TCP_CLOSE : events_expected(state, SAYS_FIN));
	events_end(&set);
	return snmp_fold_field(snet->mib, SOVIA_STAT_bad_state) - before;
}

/* A second FIN is a violation; one before ACCEPT, or after the end, is not. */
static void events_fins(struct kunit *test)
{
	int socks;

	rcu_barrier();
	socks = atomic_read(&sovia_net(&init_net)->socks);
	KUNIT_EXPECT_EQ(test, events_fin(test, TCP_ESTABLISHED, false), 0UL);
	KUNIT_EXPECT_EQ(test, events_fin(test, TCP_ESTABLISHED, true), 0UL);
	KUNIT_EXPECT_EQ(test, events_fin(test, TCP_SYN_SENT, false), 0UL);
	KUNIT_EXPECT_EQ(test, events_fin(test, TCP_CLOSE_WAIT, false), 1UL);
	KUNIT_EXPECT_TRUE(test, events_socks(socks));
}

/* Upcalls for a connection whose socket gets another one concurrently. */
static void events_late_messages(struct sovia_conn *conn)
{
	static const u8 types[] = {
		SOVIA_WAKEUP, SOVIA_ACCEPT, SOVIA_REFUSE, SOVIA_URGENT, SOVIA_FIN, SOVIA_RESET,
	};
	struct sovia_msg msg = { .window = U32_MAX / 4, .ref = conn->conn_seq, .len = 1 };
	struct sk_buff *skb = alloc_skb(1, GFP_KERNEL | __GFP_NOFAIL);
	int i;

	skb_put_zero(skb, 1);
	local_bh_disable();
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		msg.type = types[i];
		sovia_sock_client.control(conn, &msg);
	}
	msg.type = SOVIA_DATA;
	if (!sovia_sock_client.data(conn, skb, &msg))
		kfree_skb(skb);
	local_bh_enable();
	sovia_defer(conn, SOVIA_DEFER_BREACH, SOVIA_CODE_PROTOCOL);
	sovia_sock_client.delivered(conn);
	sovia_sock_client.up(conn);
	sovia_sock_client.down(conn, -ECONNRESET);
}

static void events_disconnect(struct socket *sock)
{
	lock_sock(sock->sk);
	sovia_disconnect(sock->sk, 0);
	release_sock(sock->sk);
}

/* None of them affects the socket without a connection, or with the next one. */
static void events_late(struct kunit *test)
{
	struct socket *near, *far, *listener;
	struct sovia_conn *conn;
	struct sovia_sock *ss;
	u32 limit;

	test_connected(test, &near, &far);
	ss = sovia_sk(near->sk);
	conn = test_conn(near);
	sovia_conn_get(conn);
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, conn, sovia_conn_lookup(conn->lane, conn->lport, conn->rport));
	rcu_read_unlock();
	events_disconnect(near);
	events_late_messages(conn);
	KUNIT_EXPECT_EQ(test, near->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_FALSE(test, ss->rx.open);
	sock_release(far);

	listener = test_listener(test, htonl(INADDR_LOOPBACK), 1);
	near->sk->sk_err = 0;
	near->state = SS_UNCONNECTED;
	KUNIT_ASSERT_EQ(test, test_connect(near, listener, 0), 0);
	KUNIT_EXPECT_PTR_NE(test, conn, test_conn(near));
	limit = ss->tx.wnd_end;
	events_late_messages(conn);
	KUNIT_EXPECT_EQ(test, near->sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, near->sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, ss->tx.wnd_end, limit);
	KUNIT_EXPECT_EQ(test, ss->rx.nxt, 0U);
	KUNIT_EXPECT_EQ(test, ss->urg.state, SOVIA_URG_NONE);
	sock_release(near);
	sock_release(listener);
	sovia_conn_put(conn);
}

static struct kunit_case events_test_cases[] = {
	KUNIT_CASE_PARAM(events_all, events_gen_params),
	KUNIT_CASE(events_fins),
	KUNIT_CASE(events_late),
	KUNIT_CASE(events_of_old_link),
	KUNIT_CASE(events_of_predecessor),
	KUNIT_CASE(events_unacknowledged),
	KUNIT_CASE(events_reset_follows),
	{}
};

struct kunit_suite sovia_events_suite = {
	.name = "sovia-upcall",
	.test_cases = events_test_cases,
};

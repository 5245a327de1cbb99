// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of a rogue peer: invalid messages for the bottom half of
 * a live connection of the loop provider; included by lane_rx.c.
 */
#include <linux/prandom.h>
#include <net/ip.h>
#include "core/connd.h"
#include "sock/recv.h"
#include "sock/sock.h"
#include "sock_helper.h"
#include "suites.h"

/* What the violation ends. */
enum hostile_harm { NOTHING, CONNECTION, LANE };

/**
 * struct hostile_case - one message that violates the protocol
 * @name: description
 * @msg: its header; ports of 0 stand for those of the connection
 * @seq_off: added to the expected sequence number
 * @ack_off: added to the highest valid acknowledgment
 * @payload: bytes behind the header
 * @version: instead of SOVIA_WIRE_VERSION, if not 0
 * @no_ports: leave the ports at 0
 * @no_credit: the peer has used up its credit
 * @compact: DATA without a header: @payload, and immediate data from @msg; its length
 *	is that of @payload unless it has another one
 * @no_window: the window is closed
 * @grows: windows may grow
 * @counter: the counter that must increase
 * @harm: what exactly must end
 */
struct hostile_case {
	const char		*name;
	struct sovia_msg	msg;
	int			seq_off;
	int			ack_off;
	unsigned int		payload;
	u8			version;
	bool			no_ports;
	bool			no_credit;
	bool			no_window;
	bool			grows;
	bool			compact;
	enum sovia_stat		counter;
	enum hostile_harm	harm;
};

static const struct hostile_case hostile_cases[] = {
	{ .name = "another version", .msg = { .type = SOVIA_WAKEUP }, .version = 9,
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "unknown type", .msg = { .type = 77 },
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "length too long", .msg = { .type = SOVIA_DATA, .len = 100 }, .payload = 99,
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "no ports", .msg = { .type = SOVIA_DATA, .len = 1 }, .payload = 1,
	  .no_ports = true, .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "a number skipped", .msg = { .type = SOVIA_WAKEUP }, .seq_off = 1,
	  .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "a number replayed", .msg = { .type = SOVIA_WAKEUP }, .seq_off = -1,
	  .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "an ACK from the past", .msg = { .type = SOVIA_ACK }, .seq_off = -1,
	  .no_ports = true, .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "beyond the credit", .msg = { .type = SOVIA_WAKEUP }, .no_credit = true,
	  .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "acknowledges the future", .msg = { .type = SOVIA_WAKEUP }, .ack_off = 1,
	  .counter = SOVIA_STAT_bad_ack, .harm = LANE },
	{ .name = "acknowledges nonsense", .msg = { .type = SOVIA_WAKEUP },
	  .ack_off = 0x7fffffff, .counter = SOVIA_STAT_bad_ack, .harm = LANE },
	{ .name = "takes less than before", .msg = { .type = SOVIA_ACK, .ref = 1 },
	  .no_ports = true, .grows = true, .counter = SOVIA_STAT_bad_ack, .harm = LANE },
	{ .name = "takes more than there may be", .no_ports = true, .grows = true,
	  .msg = { .type = SOVIA_ACK, .ref = SOVIA_WINDOW_MAX + 1 },
	  .counter = SOVIA_STAT_bad_ack, .harm = LANE },
	{ .name = "data beyond the window", .msg = { .type = SOVIA_DATA, .len = 5 },
	  .payload = 5, .no_window = true, .counter = SOVIA_STAT_bad_window,
	  .harm = CONNECTION },
	{ .name = "gives back what it was not asked for", .msg = { .type = SOVIA_RETURN },
	  .counter = SOVIA_STAT_bad_window, .harm = CONNECTION },
	{ .name = "FIN for an unused port",
	  .msg = { .type = SOVIA_FIN, .sport = 9, .dport = 9 },
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "compact data of a connection unknown", .compact = true, .payload = 5,
	  .msg = { .sport = 1, .dport = 2 }, .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "compact data of nothing", .compact = true,
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "compact data too long", .compact = true, .payload = SOVIA_PAYLOAD_MAX + 1,
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "compact data skipped", .compact = true, .payload = 5, .seq_off = 1,
	  .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "compact data replayed", .compact = true, .payload = 5, .seq_off = -1,
	  .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "compact data without a packet", .compact = true, .payload = 744,
	  .msg = { .len = 1000 }, .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "compact data with a packet twice", .compact = true, .payload = 1256,
	  .msg = { .len = 1000 }, .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "compact data acknowledges the future", .compact = true, .payload = 5,
	  .ack_off = 1, .counter = SOVIA_STAT_bad_ack, .harm = LANE },
	{ .name = "compact data beyond the window", .compact = true, .payload = 5,
	  .no_window = true, .counter = SOVIA_STAT_bad_window, .harm = CONNECTION },
	{ .name = "compact data beyond the credit", .compact = true, .payload = 5,
	  .no_credit = true, .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "data for an unused port",
	  .msg = { .type = SOVIA_DATA, .len = 5, .sport = 9, .dport = 9 }, .payload = 5,
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "ACCEPT for an unused port",
	  .msg = { .type = SOVIA_ACCEPT, .sport = 9, .dport = 9 },
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "RESET for an unused port",
	  .msg = { .type = SOVIA_RESET, .sport = 9, .dport = 9 },
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "CONN with foreign addresses",
	  .msg = { .type = SOVIA_CONN, .len = 32, .sport = 9, .dport = 9 }, .payload = 32,
	  .counter = SOVIA_STAT_conn_refused, .harm = NOTHING },
	{ .name = "ACCEPT of what stands", .msg = { .type = SOVIA_ACCEPT, .window = 1 },
	  .counter = SOVIA_STAT_loop_rx_msgs, .harm = NOTHING },
	{ .name = "REFUSE of what stands", .msg = { .type = SOVIA_REFUSE },
	  .counter = SOVIA_STAT_loop_rx_msgs, .harm = NOTHING },
	{ .name = "a window that goes back", .msg = { .type = SOVIA_WAKEUP, .window = 0 },
	  .counter = SOVIA_STAT_loop_rx_msgs, .harm = NOTHING },
};

static void hostile_case_name(const struct hostile_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hostile, hostile_cases, hostile_case_name);

/* The message of @c and its immediate data, as sent by the peer of @conn. */
static struct sk_buff *hostile_message(struct kunit *test, const struct hostile_case *c,
				       struct sovia_conn *conn, u32 *imm)
{
	struct sovia_lane *lane = conn->lane;
	struct sovia_credit *credit = &lane->credit;
	struct sovia_msg msg = c->msg;
	struct sk_buff *skb;

	if (c->compact && !msg.len)
		msg.len = c->payload;
	if (!msg.sport && !c->no_ports) {
		msg.sport = conn->rport;
		msg.dport = conn->lport;
		sovia_slots_set(&lane->room->rx_slots, msg.sport, msg.dport);
	}
	if (c->no_window)
		sovia_sk(conn->sk)->rx.most = sovia_sk(conn->sk)->rx.nxt;
	if (c->no_credit)
		credit->rx_acked = credit->rx_next - credit->own_window;
	msg.seq = credit->rx_next + c->seq_off;
	msg.ack = credit->tx_next + c->ack_off;
	/* The lane is its own peer: it has sent this, too. */
	if (c->harm != LANE)
		credit->tx_next++;
	skb = alloc_skb(sizeof(struct sovia_hdr) + c->payload, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	*imm = sovia_imm_build(&msg);
	if (!c->compact)
		sovia_msg_build(skb_put(skb, sizeof(struct sovia_hdr)), &msg, SOVIA_WIRE_VERSION);
	skb_put_zero(skb, c->payload);
	if (c->version)
		skb->data[0] = c->version;
	return skb;
}

/* Let everything in flight arrive, so that the numbers do not change. */
static void hostile_settle(struct sovia_lane *lane)
{
	while (!lane->dead && (sovia_credit_flight(&lane->credit) ||
			       sovia_credit_ack_pending(&lane->credit)))
		msleep(20);
}

/* Deliver like the provider's bottom half; then flush the connection thread. */
static void hostile_deliver(struct sovia_lane *lane, struct sk_buff *skb, const u32 *imm)
{
	local_bh_disable();
	if (!sovia_lane_receive(lane->vi, skb, imm))
		kfree_skb(skb);
	local_bh_enable();
	sovia_connd_flush();
}

static void hostile_peer(struct kunit *test)
{
	const struct hostile_case *c = test->param_value;
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *a, *b, *c2, *d;
	struct sovia_lane *lane;
	struct sovia_conn *conn;
	struct sk_buff *skb;
	unsigned long before;
	u32 imm;

	test_connected(test, &a, &b);
	conn = test_conn(b);
	lane = conn->lane;
	hostile_settle(lane);
	/* A previous pair of ports may have the same slot as the unknown one. */
	memset(&lane->room->rx_slots, 0, sizeof(lane->room->rx_slots));

	lane->grows = c->grows;

	before = snmp_fold_field(snet->mib, c->counter);
	skb = hostile_message(test, c, conn, &imm);
	hostile_deliver(lane, skb, c->compact ? &imm : NULL);
	KUNIT_EXPECT_GT(test, snmp_fold_field(snet->mib, c->counter), before);
	KUNIT_EXPECT_EQ(test, lane->dead, c->harm == LANE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state,
			c->harm == NOTHING ? TCP_ESTABLISHED : TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, c->harm == NOTHING ? 0 : ECONNRESET);

	/* After each violation new connections work. */
	sock_release(a);
	sock_release(b);
	test_connected(test, &c2, &d);
	sock_release(c2);
	sock_release(d);
}

/* ---- random messages: for cases that the table above does not have ---- */

#define HOSTILE_ROUNDS		24	/* connections */
#define HOSTILE_MESSAGES	12	/* to each of them */

/* Random offsets, forwards or backwards. */
static u32 hostile_near(struct rnd_state *rnd, u32 right)
{
	u32 how = prandom_u32_state(rnd);

	if (how % 16 == 0)
		return prandom_u32_state(rnd);
	return how % 2 ? right : right + how / 16 % 4096 - 512;
}

/* A message that the lane must accept, with random contents. */
static struct sk_buff *hostile_any(struct kunit *test, struct rnd_state *rnd,
				   struct sovia_conn *conn, u32 *imm, bool *compact)
{
	static const u8 types[] = {
		SOVIA_DATA, SOVIA_DATA, SOVIA_DATA, SOVIA_WAKEUP, SOVIA_FIN, SOVIA_CONN,
		SOVIA_ACCEPT, SOVIA_REFUSE, SOVIA_RESET, SOVIA_URGENT, SOVIA_URGENT,
	};
	struct sovia_lane *lane = conn->lane;
	struct sovia_sock *ss = sovia_sk(conn->sk);
	struct sovia_msg msg = {
		.type = types[prandom_u32_state(rnd) % ARRAY_SIZE(types)],
		.flags = prandom_u32_state(rnd) & prandom_u32_state(rnd) &
			 prandom_u32_state(rnd),
		.seq = lane->credit.rx_next,
		.ack = lane->credit.tx_next,
		.sport = conn->rport,
		.dport = conn->lport,
		.window = hostile_near(rnd, ss->tx.wnd_end),
		.code = prandom_u32_state(rnd) % (SOVIA_CODE_COUNT + 1),
	};
	struct sk_buff *skb;

	if (msg.type == SOVIA_DATA)
		msg.len = 1 + prandom_u32_state(rnd) % (prandom_u32_state(rnd) % 2 ? 16 : 6000);
	if (msg.type == SOVIA_CONN)
		msg.len = sizeof(struct sovia_conn_body);
	if (prandom_u32_state(rnd) % 16 == 0)
		msg.dport = 9;
	msg.ref = hostile_near(rnd, msg.type == SOVIA_URGENT ? ss->rx.nxt : conn->conn_seq);
	*compact = msg.type == SOVIA_DATA && prandom_u32_state(rnd) % 2 &&
		   sovia_slots_has(&lane->room->rx_slots, msg.sport, msg.dport);
	*imm = sovia_imm_build(&msg);
	/* The lane is its own peer: it has sent this, too. */
	lane->credit.tx_next++;
	skb = alloc_skb(sizeof(struct sovia_hdr) + msg.len, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, skb);
	if (!*compact)
		sovia_msg_build(skb_put(skb, sizeof(struct sovia_hdr)), &msg, SOVIA_WIRE_VERSION);
	skb_put_zero(skb, msg.len);
	/* CONN from here to here: a listener that may be there, or the same ports again. */
	if (msg.type == SOVIA_CONN) {
		memcpy(skb_tail_pointer(skb) - 32, &lane->pair->remote, 16);
		memcpy(skb_tail_pointer(skb) - 16, &lane->pair->local, 16);
	}
	return skb;
}

/* Calls of the program in between. */
static void hostile_program(struct rnd_state *rnd, struct socket *sock)
{
	static const int flags[] = { 0, 0, MSG_PEEK, MSG_OOB, MSG_TRUNC, MSG_OOB | MSG_PEEK };
	char buf[256];
	struct kvec iov = { .iov_base = buf, .iov_len = 1 + prandom_u32_state(rnd) % 255 };
	struct msghdr msg = { };
	u32 what = prandom_u32_state(rnd) % 12;

	if (what < ARRAY_SIZE(flags))
		kernel_recvmsg(sock, &msg, &iov, 1, iov.iov_len, flags[what] | MSG_DONTWAIT);
	else if (what == 6)
		sock_set_flag(sock->sk, SOCK_URGINLINE);
	else if (what == 7)
		kernel_sock_shutdown(sock, SHUT_WR);
	else if (what == 8)
		kernel_sendmsg(sock, &msg, &iov, 1, iov.iov_len);
}

/* The receive queue holds exactly the unread data. */
static void hostile_check(struct kunit *test, struct sock *sk)
{
	struct sovia_sock *ss = sovia_sk(sk);
	struct sk_buff *skb;
	u32 bytes = 0;

	spin_lock_bh(&sk->sk_receive_queue.lock);
	skb_queue_walk(&sk->sk_receive_queue, skb)
		bytes += skb->len - SOVIA_RX_CB(skb)->off;
	KUNIT_EXPECT_EQ(test, bytes, ss->rx.nxt - ss->rx.copied);
	KUNIT_EXPECT_FALSE(test, sovia_before(sovia_conn_of(sk)->rcv_wnd_end, ss->rx.nxt));
	spin_unlock_bh(&sk->sk_receive_queue.lock);
	KUNIT_EXPECT_STRNEQ(test, sovia_state_name(sk->sk_state), "?");
}

static void hostile_random(struct kunit *test)
{
	u32 seed = get_random_u32(), imm;
	struct sovia_lane *lane;
	struct socket *a, *b;
	struct rnd_state rnd;
	struct sk_buff *skb;
	bool compact;
	int i, n;

	kunit_info(test, "seed %u\n", seed);
	prandom_seed_state(&rnd, seed);
	for (i = 0; i < HOSTILE_ROUNDS; i++) {
		test_connected(test, &a, &b);
		lane = test_conn(b)->lane;
		for (n = 0; n < HOSTILE_MESSAGES && b->sk->sk_state != TCP_CLOSE; n++) {
			hostile_settle(lane);
			skb = hostile_any(test, &rnd, test_conn(b), &imm, &compact);
			hostile_deliver(lane, skb, compact ? &imm : NULL);
			KUNIT_ASSERT_FALSE(test, lane->dead);
			hostile_check(test, b->sk);
			hostile_program(&rnd, b);
		}
		sock_release(a);
		sock_release(b);
	}
}

/**
 * struct greeting_case - a hello that does not match the state of the lane
 * @name: description
 * @rx_off: added to the next sequence number to send
 * @payload: instead of the negotiated one, if not 0
 */
struct greeting_case {
	const char	*name;
	int		rx_off;
	u32		payload;
};

static const struct greeting_case greeting_cases[] = {
	{ .name = "expects what was never sent", .rx_off = 1 },
	{ .name = "expects what it has acknowledged", .rx_off = -1 },
	{ .name = "expects nonsense", .rx_off = 0x7fffffff },
	{ .name = "takes less than before", .payload = SOVIA_PAYLOAD_MIN },
};

static void greeting_case_name(const struct greeting_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(greeting, greeting_cases, greeting_case_name);

static void hostile_greeting(struct kunit *test)
{
	const struct greeting_case *c = test->param_value;
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_params params = {};
	struct sovia_hello hello;
	struct sovia_lane *lane;
	struct socket *a, *b;
	unsigned long before;

	test_connected(test, &a, &b);
	lane = test_conn(b)->lane;
	hostile_settle(lane);
	params.id = 1;
	params.peer_id = lane->id;
	params.rx_next = lane->credit.tx_next;
	params.window = lane->credit.window;
	params.payload = lane->payload;

	/* A matching one is accepted. */
	sovia_hello_build(&hello, &params, SOVIA_WIRE_VERSION);
	lane->vi->client->established(lane->vi, &hello, sizeof(hello));
	sovia_connd_flush();
	KUNIT_EXPECT_FALSE(test, lane->dead);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_ESTABLISHED);

	params.rx_next += c->rx_off;
	params.payload = c->payload ?: params.payload;
	before = snmp_fold_field(snet->mib, SOVIA_STAT_bad_hello);
	sovia_hello_build(&hello, &params, SOVIA_WIRE_VERSION);
	lane->vi->client->established(lane->vi, &hello, sizeof(hello));
	sovia_connd_flush();
	KUNIT_EXPECT_EQ(test, snmp_fold_field(snet->mib, SOVIA_STAT_bad_hello), before + 1);
	KUNIT_EXPECT_TRUE(test, lane->dead);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, ECONNRESET);
	sock_release(a);
	sock_release(b);
}

/* The end of a link does not wait for upcalls of its VI: late ones leave no timer behind. */
static void lane_late_upcall(struct kunit *test)
{
	struct socket *a, *b;
	struct sovia_lane *lane;

	test_connected(test, &a, &b);
	lane = test_conn(a)->lane;
	sovia_link_ref(sovia_link_of(lane));
	sovia_link_event(sovia_link_of(lane), SOVIA_LINK_EV_KILL);
	sovia_connd_flush();
	spin_lock_bh(&lane->lock);
	lane->credit.rx_next++;
	lane_acknowledge(lane);
	sovia_lane_arm(lane);
	KUNIT_EXPECT_FALSE(test, timer_pending(&lane->ack_timer));
	spin_unlock_bh(&lane->lock);
	timer_delete_sync(&lane->ack_timer);
	sovia_link_put(sovia_link_of(lane));
	sock_release(a);
	sock_release(b);
}

static struct kunit_case hostile_test_cases[] = {
	KUNIT_CASE_PARAM(hostile_peer, hostile_gen_params),
	KUNIT_CASE(hostile_random),
	KUNIT_CASE(lane_late_upcall),
	KUNIT_CASE_PARAM(hostile_greeting, greeting_gen_params),
	{}
};

struct kunit_suite sovia_hostile_suite = {
	.name = "sovia-lane-rx",
	.test_cases = hostile_test_cases,
};

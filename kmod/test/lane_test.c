// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of a hostile peer: what may not arrive, given to the bottom half of
 * a live connection of the loop provider; included by lane_rx.c.
 */
#include <net/ip.h>
#include "../connd.h"
#include "../sock.h"
#include "sock_helper.h"
#include "suites.h"

/* How far the damage may go. */
enum hostile_harm { NOTHING, CONNECTION, LANE };

/**
 * struct hostile_case - one message that breaks a rule
 * @name: for people
 * @msg: its header; ports of 0 stand for those of the connection
 * @seq_off: added to the number that is due
 * @ack_off: added to the highest acknowledgment that is allowed
 * @payload: bytes behind the header
 * @version: instead of ours, if not 0
 * @no_ports: leave the ports at 0
 * @no_credit: the peer has used up its credit
 * @compact: DATA without a header: @payload, and immediate data from @msg
 * @no_window: the program has no room for more
 * @counter: what must count it
 * @harm: what must end, and no more
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
	{ .name = "data beyond the window", .msg = { .type = SOVIA_DATA, .len = 5 },
	  .payload = 5, .no_window = true, .counter = SOVIA_STAT_bad_window,
	  .harm = CONNECTION },
	{ .name = "FIN for a port nobody has",
	  .msg = { .type = SOVIA_FIN, .sport = 9, .dport = 9 },
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "compact data of a connection unknown", .compact = true, .payload = 5,
	  .msg = { .sport = 1, .dport = 2 }, .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "compact data of nothing", .compact = true,
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "compact data too long", .compact = true, .payload = SOVIA_PAYLOAD_MAX + 1,
	  .counter = SOVIA_STAT_bad_message, .harm = LANE },
	{ .name = "compact data acknowledges the future", .compact = true, .payload = 5,
	  .ack_off = 1, .counter = SOVIA_STAT_bad_ack, .harm = LANE },
	{ .name = "compact data beyond the window", .compact = true, .payload = 5,
	  .no_window = true, .counter = SOVIA_STAT_bad_window, .harm = CONNECTION },
	{ .name = "compact data beyond the credit", .compact = true, .payload = 5,
	  .no_credit = true, .counter = SOVIA_STAT_bad_sequence, .harm = LANE },
	{ .name = "data for a port nobody has",
	  .msg = { .type = SOVIA_DATA, .len = 5, .sport = 9, .dport = 9 }, .payload = 5,
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "ACCEPT for a port nobody has",
	  .msg = { .type = SOVIA_ACCEPT, .sport = 9, .dport = 9 },
	  .counter = SOVIA_STAT_no_socket, .harm = NOTHING },
	{ .name = "RESET for a port nobody has",
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

/* The message of @c, and what comes beside it, as the peer of @conn would send it. */
static struct sk_buff *hostile_message(struct kunit *test, const struct hostile_case *c,
				       struct sovia_conn *conn, u32 *imm)
{
	struct sovia_lane *lane = &conn->key.link->lane;
	struct sovia_credit *credit = &lane->credit;
	struct sovia_msg msg = c->msg;
	struct sk_buff *skb;

	if (!msg.sport && !c->no_ports) {
		msg.sport = conn->key.rport;
		msg.dport = conn->key.lport;
		sovia_slots_set(&lane->rx_slots, msg.sport, msg.dport);
	}
	if (c->no_window)
		conn->rx_adv = conn_sovia(conn)->rcv_nxt;
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
		sovia_msg_build(skb_put(skb, sizeof(struct sovia_hdr)), &msg);
	skb_put_zero(skb, c->payload);
	if (c->version)
		skb->data[0] = c->version;
	return skb;
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
	conn = &sovia_sk(b->sk)->conn;
	lane = &conn->key.link->lane;
	/* Let everything under way arrive, so that the numbers stand still. */
	while (sovia_credit_flight(&lane->credit) || sovia_credit_ack_pending(&lane->credit))
		msleep(20);

	before = snmp_fold_field(snet->mib, c->counter);
	skb = hostile_message(test, c, conn, &imm);
	local_bh_disable();
	if (!lane_receive(lane->vi, skb, c->compact ? &imm : NULL))
		kfree_skb(skb);
	local_bh_enable();
	/* What it asks of the connection thread is done after this. */
	sovia_connd_flush();
	KUNIT_EXPECT_GT(test, snmp_fold_field(snet->mib, c->counter), before);
	KUNIT_EXPECT_EQ(test, lane->dead, c->harm == LANE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_state,
			c->harm == NOTHING ? TCP_ESTABLISHED : TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, b->sk->sk_err, c->harm == NOTHING ? 0 : ECONNRESET);

	/* Whatever it was, the machine goes on. */
	sock_release(a);
	sock_release(b);
	test_connected(test, &c2, &d);
	sock_release(c2);
	sock_release(d);
}

static struct kunit_case hostile_test_cases[] = {
	KUNIT_CASE_PARAM(hostile_peer, hostile_gen_params),
	{}
};

struct kunit_suite sovia_hostile_suite = {
	.name = "sovia-hostile-peer",
	.test_cases = hostile_test_cases,
};

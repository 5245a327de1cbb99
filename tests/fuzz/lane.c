// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of lanes: conn.c, credit.h, lane*.c and wire.c of kmod/lane,
 * between a provider and a peer driven by the input, and a socket layer that only
 * checks.  The peer may violate any rule; the lane may not.  VIs die at any time and
 * are replaced, as often as the input says.
 *
 * The peer tracks on its own what include/sovia/wire.h and
 * Documentation/protocol.rst allow: whether a message had to be accepted, the
 * lane's next sequence number, its credit, what it may acknowledge, that
 * the bytes of a connection are sent in order, and that a retransmission
 * is identical to the original message.
 *
 * The input begins with the size and numbers of the lane and the peer's hello, then operations[].
 */
#include "input.h"
#include "lane_standin.h"

#define CONNS		3
#define ENDS_MAX	64		/* connections in one run */
#define OWN_WINDOW_MAX	40
#define POSTED_MAX	4096
#define PORT(i)		(1000 + (i))
#define SENT_MAX	64		/* a power of two above the largest window */

/* A connection, and its expected state. */
struct end {
	struct sovia_conn	*conn;		/* to compare only, once it is gone */
	bool			gone;		/* no reference to it */
	struct sock		sk;
	bool			hashed;
	bool			over;		/* its stream may not send any more */
	bool			fin;		/* it has ended its stream */
	bool			delivered;	/* and was notified of the delivery */
	u8			tx_byte;	/* next byte given to the lane */
	u8			rx_byte;	/* next byte expected on the wire */
	u32			told;		/* the window sent last */
	int			waited;		/* messages of others sent while it waits */
	int			posted;		/* its messages without a completion */
};

/* A message that the lane has posted, and the peer's state before it. */
struct sent {
	struct sovia_tx_cb	cb;
	u32			sum;		/* of the payload */
	u8			rx_byte;
	u32			told;
};

/* The peer, and the provider. */
struct peer {
	u64			id;
	bool			vi;		/* there is one, established or not */
	u32			most;		/* the lane's next number after retransmissions */
	struct sent		sent[SENT_MAX];	/* by their numbers */
	u32			window;		/* messages that the lane may have in flight */
	u32			payload;
	u32			next;		/* the lane's next number */
	u32			una;		/* the lane's first unacknowledged number */
	u32			accepted;	/* our next number */
	u32			acked;		/* acknowledged by the lane */
	struct sovia_slots	lane_slots;	/* DATA of the lane */
	struct sovia_slots	own_slots;	/* ours */
	struct sk_buff		*posted[POSTED_MAX];	/* no completion yet */
	unsigned int		first, last;
	u8			posts;		/* results of the next posts, bit by bit */
	u8			fate;		/* ... */
	u32			starved;
	int			down;		/* times the lane has reported its death */
	/* of the message being received */
	const u8		*bytes;
	const struct sovia_msg	*expected;
	int			upcalls;
	bool			take;
};

static struct sovia_net snet;
static struct sovia_mib mib;
static struct sovia_lane lane_;
static struct sovia_vi vi;
static int link_refs;	/* of connections */
static struct end all_ends[ENDS_MAX];
static int ends_used;
static struct end *ends[CONNS];	/* those with a socket */
static struct peer peer;
static u8 memory_left;	/* allocations that succeed, if memory_short */
static bool memory_short;

static struct sovia_lane *const lane = &lane_;

/* Parameters of kmod/lane/lane.c. */
unsigned int *fuzz_window(void);

int fuzz_skbs;
struct rcu_head *fuzz_rcu;
struct sovia_objects sovia_objects;

bool fuzz_no_memory(void)
{
	return memory_short && !(memory_left && memory_left--);
}

static struct end *end_of(const struct sovia_conn *conn)
{
	int i = ends_used;

	while (i--)
		if (all_ends[i].conn == conn)
			return &all_ends[i];
	MUST(!"there is no such connection");
	return NULL;
}

/* ---- above the lane: sockets ---- */

static void expect_upcall(const struct sovia_msg *msg)
{
	MUST(!lane->lock.held);
	MUST(peer.expected && !peer.upcalls++);
	MUST(msg->type == peer.expected->type && msg->flags == peer.expected->flags);
	MUST(msg->sport == peer.expected->sport && msg->dport == peer.expected->dport);
	MUST(msg->compact == peer.expected->compact);
	if (!msg->compact)
		MUST(msg->window == peer.expected->window && msg->ref == peer.expected->ref);
}

static void expect_payload(const struct sk_buff *skb, const struct sovia_msg *msg)
{
	MUST(skb->len == msg->len && !memcmp(skb->data, peer.bytes, msg->len));
}

static void client_request(struct sovia_lane *on, struct sk_buff *skb,
			   const struct sovia_msg *msg)
{
	MUST(on == lane && msg->type == SOVIA_CONN);
	expect_upcall(msg);
	expect_payload(skb, msg);
	if (peer.take)
		sovia_lane_reply(lane, SOVIA_REFUSE, msg->dport, msg->sport, msg->seq,
				 SOVIA_CODE_NO_LISTENER);
}

static bool client_data(struct sovia_conn *conn, struct sk_buff *skb,
			const struct sovia_msg *msg)
{
	MUST(msg->type == SOVIA_DATA);
	MUST(conn->lport == msg->dport && conn->rport == msg->sport);
	expect_upcall(msg);
	expect_payload(skb, msg);
	if (peer.take)
		kfree_skb(skb);
	return peer.take;
}

static void client_control(struct sovia_conn *conn, const struct sovia_msg *msg)
{
	MUST(msg->type != SOVIA_DATA && msg->type != SOVIA_CONN && msg->type != SOVIA_ACK);
	MUST(conn->lport == msg->dport && conn->rport == msg->sport);
	expect_upcall(msg);
}

static void client_tx_ready(struct sovia_conn *conn)
{
	MUST(!lane->lock.held);
	MUST(skb_queue_len(&conn->txq) < SOVIA_TXQ_MAX);
}

static void client_delivered(struct sovia_conn *conn)
{
	MUST(!lane->lock.held);
	MUST(end_of(conn)->fin && !conn->fin && !end_of(conn)->delivered);
	end_of(conn)->delivered = true;
}

static const struct sovia_client fuzz_client = {
	.request = client_request, .data = client_data, .control = client_control,
	.tx_ready = client_tx_ready, .delivered = client_delivered,
};

/* Messages are in one piece here: only a lack of memory remains of it. */
int sovia_msg_repack(struct sk_buff *skb, unsigned int max_frags)
{
	bool odd = peer.posts & 1;

	if (peer.fate % 4 != 3)
		return 0;
	peer.posts >>= 1;
	return odd ? -EAGAIN : 0;
}

static void lane_event(struct sovia_lane *on, enum sovia_lane_event event)
{
	MUST(on == lane);
	if (event == SOVIA_LANE_DOWN)
		MUST(lane->dead && !lane->up && lane->err < 0 && !peer.down++);
	else
		MUST(event == SOVIA_LANE_UP && lane->up && !lane->dead);
}

static void lane_put(struct sovia_lane *on)
{
	MUST(on == lane && link_refs-- > 0);
}

static const struct sovia_lane_ops lane_ops = {
	.event = lane_event, .put = lane_put, .may_recover = lane_may_recover,
};

struct sovia_conn *sovia_conn_lookup(struct sovia_lane *on, u16 lport, u16 rport)
{
	int i;

	for (i = 0; i < CONNS; i++) {
		struct sovia_conn *conn = ends[i]->conn;

		if (ends[i]->hashed && conn->lport == lport && conn->rport == rport)
			return conn;
	}
	return NULL;
}

/* ---- below the lane: provider and peer ---- */

/* The bytes of each connection's stream are numbered, modulo 256. */
static void check_stream(struct end *end, const struct sk_buff *skb)
{
	u32 i;

	for (i = 0; i < skb->len; i++)
		MUST(skb->data[i] == (u8)(end->rx_byte + i));
	end->rx_byte += skb->len;
}

static void read_posted(const struct sk_buff *skb, const struct sovia_post *how,
			struct sovia_msg *msg)
{
	if (how->has_imm) {
		msg->seq = peer.next;
		msg->ack = peer.acked;
		MUST(vi.imm);
		MUST(!sovia_imm_parse(how->imm, &peer.lane_slots, skb->len, peer.payload, msg));
		return;
	}
	MUST(!sovia_msg_parse(skb, peer.payload, SOVIA_WIRE_VERSION, msg));
	MUST(!(msg->flags & ~(SOVIA_F_ACKREQ | SOVIA_F_FIN | SOVIA_F_GONE)));
}

static void check_posted(const struct sk_buff *skb, const struct sovia_msg *msg)
{
	const struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);
	struct end *end = cb->conn ? end_of(cb->conn) : NULL;

	MUST(lane->lock.held && lane->up && !lane->dead && !peer.down);
	MUST(msg->seq == peer.next);
	/* Never less than before, never messages not received or without a descriptor. */
	MUST(msg->ack - peer.acked <= peer.accepted - peer.acked);
	MUST(msg->ack == peer.acked || peer.accepted - msg->ack >= peer.starved);
	if (msg->type == SOVIA_ACK)
		MUST(msg->ack != peer.acked);
	else
		MUST(msg->seq - peer.una < peer.window);
	if (msg->type != SOVIA_ACK && msg->seq - peer.una == peer.window - 1)
		MUST(msg->flags & SOVIA_F_ACKREQ);
	if (!end)
		return;
	MUST(msg->type == SOVIA_DATA || msg->type == SOVIA_FIN);
	MUST(msg->sport == end->conn->lport && msg->dport == end->conn->rport);
}

static u32 sum_of(const struct sk_buff *payload)
{
	u32 sum = 0, i;

	for (i = 0; i < payload->len; i++)
		sum = sum * 31 + payload->data[i];
	return sum;
}

/* A retransmission must be identical; a new message is recorded. */
static void check_again(const struct sovia_tx_cb *cb, const struct sk_buff *payload)
{
	struct sent *sent = &peer.sent[cb->seq % SENT_MAX];
	struct end *end = cb->conn ? end_of(cb->conn) : NULL;

	if (sovia_before(cb->seq, peer.most)) {
		MUST(cb->conn == sent->cb.conn && cb->type == sent->cb.type);
		MUST(cb->sport == sent->cb.sport && cb->dport == sent->cb.dport);
		MUST(cb->window == sent->cb.window && cb->ref == sent->cb.ref);
		MUST(cb->code == sent->cb.code && cb->len == sent->cb.len);
		MUST(!((cb->flags ^ sent->cb.flags) & ~SOVIA_F_ACKREQ));
		MUST(sum_of(payload) == sent->sum);
	} else {
		peer.most = cb->seq + 1;
	}
	*sent = (struct sent) {
		.cb = *cb, .sum = sum_of(payload),
		.rx_byte = end ? end->rx_byte : 0, .told = end ? end->told : 0,
	};
}

/* A message of @conn is sent; no connection waits longer than for a quantum of each other tenant. */
static void take_turns(const struct sovia_conn *conn)
{
	int i;

	for (i = 0; i < CONNS; i++) {
		struct end *end = ends[i];

		if (end->conn == conn || skb_queue_empty(&end->conn->txq))
			end->waited = 0;
		else
			MUST(++end->waited <= CONNS * (16384 / 512 + 2));
	}
}

/* The peer receives it. */
static void note_posted(const struct sk_buff *skb, const struct sovia_msg *msg)
{
	struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
	bool again = sovia_before(msg->seq, peer.most);
	struct sk_buff payload = *skb;

	if (!msg->compact)
		__skb_pull(&payload, sizeof(struct sovia_hdr));
	if (sovia_sequenced(msg->type))
		check_again(SOVIA_TX_CB(skb), &payload);
	peer.next += sovia_sequenced(msg->type);
	peer.acked = msg->ack;
	if (conn && !again)
		take_turns(conn);
	if (!conn || msg->type != SOVIA_DATA)
		return;
	if (!msg->compact) {
		sovia_slots_set(&peer.lane_slots, msg->sport, msg->dport);
		MUST(!sovia_before(msg->window, end_of(conn)->told));
		end_of(conn)->told = msg->window;
	}
	check_stream(end_of(conn), &payload);
}

static int provider_post_send(struct sovia_vi *to, struct sk_buff *skb,
			      const struct sovia_post *how)
{
	struct sovia_msg msg;
	bool odd = peer.posts & 1;

	struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;

	MUST(to == &vi && peer.vi);
	read_posted(skb, how, &msg);
	check_posted(skb, &msg);
	peer.posts >>= 1;
	if (odd && peer.fate % 4 == 0)
		return -EAGAIN;
	if (odd && peer.fate % 4 == 1)
		return -EIO;
	note_posted(skb, &msg);
	/* On loopback no message is lost, so none is kept for retransmission. */
	if (odd && how->unsignaled && peer.fate % 4 == 2 && sovia_lane_is_local(lane)) {
		kfree_skb(skb);
		return SOVIA_POSTED_TAKEN;
	}
	if ((odd && how->unsignaled) || peer.last - peer.first == POSTED_MAX)
		return SOVIA_POSTED_UNSIGNALED;
	peer.posted[peer.last++ % POSTED_MAX] = skb_get(skb);
	if (conn)
		end_of(conn)->posted++;
	return SOVIA_POSTED;
}

const struct sovia_provider sovia_verbs_provider = { .post_send = provider_post_send };
const struct sovia_provider sovia_loop_provider = { .local = true, .post_send = provider_post_send };

/* ---- messages of the peer ---- */

/* Receive buffers of the provider exist, however short memory is. */
static struct sk_buff *peer_skb(size_t size)
{
	bool was = memory_short;
	struct sk_buff *skb;

	memory_short = false;
	skb = alloc_skb(size, GFP_KERNEL);
	memory_short = was;
	return skb;
}

/* Must the lane accept this?  Decided by the specification of the protocol alone. */
static bool acceptable(const struct sovia_msg *msg, size_t size)
{
	bool lane_own = msg->type == SOVIA_ACK || msg->type == SOVIA_PROBE;
	u32 most = msg->type == SOVIA_DATA || msg->type == SOVIA_ACK ? lane->own_payload :
		   msg->type == SOVIA_CONN ? sizeof(struct sovia_conn_body) : 0;

	if (lane->dead || !msg->type || msg->type == 5 || msg->type >= SOVIA_TYPE_COUNT)
		return false;
	if (msg->len != size || size > most || (msg->type == SOVIA_DATA && !size) ||
	    (msg->type == SOVIA_CONN && size != most))
		return false;
	if (lane_own ? msg->sport || msg->dport : !msg->sport || !msg->dport)
		return false;
	/* Not of messages never sent; a stale acknowledgment is fine. */
	if (sovia_before(peer.next, msg->ack) || msg->seq != peer.accepted)
		return false;
	return !sovia_sequenced(msg->type) ||
	       peer.accepted - peer.acked < lane->credit.own_window;
}

/* Gives a message to the lane; @expected, if it must be accepted. */
static void deliver(struct sk_buff *skb, const u32 *imm, const struct sovia_msg *expected)
{
	bool alive = !lane->dead, took;
	u32 rx_next = lane->credit.rx_next;

	if (!peer.vi || lane->vi != &vi) {
		kfree_skb(skb);
		return;
	}
	peer.expected = expected;
	peer.upcalls = 0;
	if (expected) {
		peer.accepted += sovia_sequenced(expected->type);
		if (sovia_before(peer.una, expected->ack))
			peer.una = expected->ack;
		if (expected->type == SOVIA_DATA && !imm)
			sovia_slots_set(&peer.own_slots, expected->sport, expected->dport);
	}
	took = vi.client->receive(&vi, skb, imm);
	if (!took)
		kfree_skb(skb);
	MUST(!lane->lock.held);
	if (expected) {
		/* It may have died in this call, but only of the provider, or of too many recoveries. */
		MUST(!lane->dead || lane->err == -ECONNRESET || lane->reply_count == lane->reply_max);
		MUST(lane->credit.rx_next == peer.accepted);
		MUST(lane->credit.tx_una == peer.una);
	} else {
		MUST(lane->dead && !took && !peer.upcalls);
		MUST(lane->credit.rx_next == rx_next || alive);
	}
	peer.expected = NULL;
}

static const u8 all_types[] = {
	SOVIA_DATA, SOVIA_ACK, SOVIA_WAKEUP, SOVIA_FIN, SOVIA_CONN, SOVIA_ACCEPT,
	SOVIA_REFUSE, SOVIA_RESET, SOVIA_PROBE, SOVIA_URGENT, 0, 5, SOVIA_TYPE_COUNT, 255,
};

/* Correct numbers, and those next to them. */
static u32 nearly(struct input *in, u32 right)
{
	u8 how = take8(in);

	if (how < 224)
		return right;
	return how < 250 ? right + (how - 237) : take32(in);
}

static void peer_numbers(struct input *in, struct sovia_msg *msg)
{
	u8 how = take8(in);

	msg->seq = nearly(in, peer.accepted);
	/* All of it, none, or a part. */
	msg->ack = how < 96 ? peer.next : how < 128 ? peer.una :
		   peer.una + (peer.next - peer.una) * (how - 128) / 128;
	msg->ack = nearly(in, msg->ack);
}

static void peer_ports(struct input *in, struct sovia_msg *msg)
{
	u8 which = take8(in);

	msg->sport = PORT(which % (CONNS + 1));
	msg->dport = PORT(which % (CONNS + 1));
	if (which > 250) {
		msg->sport = take16(in);
		msg->dport = take16(in);
	}
}

static void op_message(struct input *in)
{
	u8 type = all_types[take8(in) % ARRAY_SIZE(all_types)], wrong;
	struct sovia_msg msg = { .type = type, .flags = take8(in) };
	struct sk_buff *skb;
	u32 size;

	peer_numbers(in, &msg);
	if (type != SOVIA_ACK && type != SOVIA_PROBE)
		peer_ports(in, &msg);
	size = type == SOVIA_CONN ? sizeof(struct sovia_conn_body) :
	       type == SOVIA_DATA ? 1 + take16(in) % (lane->own_payload + 1) : 0;
	wrong = take8(in);
	if (wrong > 250)
		size = take8(in);
	msg.len = nearly(in, size);
	msg.window = take16(in);
	msg.ref = take8(in);
	msg.code = take8(in);
	peer.take = wrong & 1;

	skb = peer_skb(sizeof(struct sovia_hdr) + size);
	sovia_msg_build(skb_put(skb, sizeof(struct sovia_hdr)), &msg, SOVIA_WIRE_VERSION);
	memset(skb_put(skb, size), wrong, size);
	if (wrong == 200)
		*skb->data ^= 1;	/* the version */
	peer.bytes = skb->data + sizeof(struct sovia_hdr);
	deliver(skb, NULL, acceptable(&msg, size) && wrong != 200 ? &msg : NULL);
}

static void op_compact(struct input *in)
{
	struct sovia_msg msg = { .type = SOVIA_DATA, .compact = true };
	struct sk_buff *skb;
	u32 size, imm, ports;

	peer_numbers(in, &msg);
	peer_ports(in, &msg);
	msg.flags = take8(in);
	size = take16(in) % (lane->own_payload + 2);
	msg.len = size;
	imm = sovia_imm_build(&msg);
	if (take8(in) > 240)
		imm = take32(in);
	peer.take = imm & 1;

	/* The slots determine its meaning. */
	ports = peer.own_slots.ports[imm >> SOVIA_IMM_SLOT_SHIFT];
	msg.sport = ports >> 16;
	msg.dport = ports;
	msg.flags = imm >> SOVIA_IMM_FLAGS_SHIFT & SOVIA_IMM_FLAGS_MASK;
	msg.seq = peer.accepted + (((imm >> SOVIA_IMM_CHECK_SHIFT) - sovia_imm_check(peer.accepted, size)) &
				   SOVIA_IMM_CHECK_MASK);
	msg.ack = peer.una + ((imm - peer.una) & SOVIA_IMM_ACK_MASK);
	msg.len = size;
	skb = peer_skb(size);
	memset(skb_put(skb, size), imm, size);
	peer.bytes = skb->data;
	deliver(skb, &imm, acceptable(&msg, size) ? &msg : NULL);
}

/* Arbitrary bytes: the lane must only survive them. */
static void op_raw(struct input *in)
{
	u8 bytes[64];
	size_t size = take_bytes(in, bytes, min((size_t)take8(in), sizeof(bytes)));
	struct sk_buff *skb = peer_skb(size);
	struct sovia_msg msg;

	memcpy(skb_put(skb, size), bytes, size);
	peer.take = size & 1;
	if (sovia_msg_parse(skb, lane->own_payload, SOVIA_WIRE_VERSION, &msg) ||
	    !acceptable(&msg, size - sizeof(struct sovia_hdr))) {
		deliver(skb, NULL, NULL);
		return;
	}
	peer.bytes = skb->data + sizeof(struct sovia_hdr);
	deliver(skb, NULL, &msg);
}

/* ---- operations of sockets, provider and timers ---- */

static void complete_one(bool done)
{
	struct sovia_conn *conn;
	struct sk_buff *skb;

	if (peer.first == peer.last)
		return;
	skb = peer.posted[peer.first++ % POSTED_MAX];
	conn = SOVIA_TX_CB(skb)->conn;
	if (conn)
		end_of(conn)->posted--;
	vi.client->send_done(&vi, skb, done);
	kfree_skb(skb);
}

static void op_sent(struct input *in)
{
	u8 count = take8(in) % 16 + 1;

	while (count--)
		complete_one(true);
}

/* As the socket layer's: the message's reference to its connection ends with it. */
static void message_free(struct sk_buff *skb)
{
	if (SOVIA_TX_CB(skb)->conn)
		sovia_conn_put(SOVIA_TX_CB(skb)->conn);
}

/* A message of the stream, or its end. */
static void op_send(struct input *in)
{
	struct end *end = ends[take8(in) % CONNS];
	u8 how = take8(in);
	u32 len = how & 1 ? 0 : 1 + take16(in) % min(lane->payload, 300u), i;
	struct sk_buff *skb;
	u8 *to;

	if (end->over || end->fin)
		return;
	skb = sovia_msg_alloc(len, GFP_KERNEL);
	if (!skb)
		return;
	*SOVIA_TX_CB(skb) = (struct sovia_tx_cb) {
		.type = len ? SOVIA_DATA : SOVIA_FIN, .len = len, .prompt = how & 2,
		.flags = len && (how & 12) == 12 ? SOVIA_F_FIN : 0,
	};
	skb->destructor = message_free;
	to = skb_put(skb, len);
	for (i = 0; i < len; i++)
		to[i] = end->tx_byte + i;
	atomic_add(len, &end->conn->outq);
	/* delivered() may be called before this returns */
	end->fin = sovia_tx_is_fin(skb);
	if (sovia_conn_send(end->conn, skb, how & 16)) {
		end->tx_byte += len;
		return;
	}
	end->fin = false;
	atomic_sub(len, &end->conn->outq);
	kfree_skb(skb);
}

static void op_control(struct input *in)
{
	static const u8 types[] = {
		SOVIA_CONN, SOVIA_ACCEPT, SOVIA_WAKEUP, SOVIA_RESET, SOVIA_PRESSURE, SOVIA_RETURN,
	};
	struct sovia_conn *conn = ends[take8(in) % CONNS]->conn;
	u8 what = take8(in);

	conn->rcv_wnd_end += take8(in);
	if (what & 8)
		sovia_conn_control(conn, SOVIA_URGENT, take8(in));
	else
		sovia_conn_control(conn, types[what % 6], what);
}

static void op_starve(struct input *in)
{
	bool more = take8(in) & 1;

	if (!peer.vi)
		return;
	if (more) {
		/* The provider has no more descriptors than these. */
		if (peer.starved > 2 * lane->credit.own_window)
			return;
		/* Outside the bottom half, after the message that used it. */
		peer.starved++;
		vi.client->rx_unposted(&vi, 1);
	} else if (peer.starved) {
		peer.starved--;
		vi.client->rx_unposted(&vi, -1);
	}
}

static void op_timer(struct input *in)
{
	struct timer_list *timer = &lane->ack_timer;

	if (!timer_pending(timer))
		return;
	timer->pending = false;
	timer->function(timer);
}

static void op_provider(struct input *in)
{
	peer.fate = take8(in);
	peer.posts = take8(in);
}

static void op_memory(struct input *in)
{
	memory_left = take8(in);
	memory_short = memory_left < 16;
}

static bool connect_end(unsigned int i)
{
	struct end *end = &all_ends[ends_used];

	memset(end, 0, sizeof(*end));
	end->conn = sovia_conn_create(lane, &end->sk, PORT(i), PORT(i), i,
				      GFP_KERNEL);
	if (!end->conn)
		return false;
	link_refs++;
	ends_used++;
	end->hashed = true;
	end->conn->wnd_update_min = 16;
	ends[i] = end;
	return true;
}

/* A socket leaves its connection.  What is owed to the peer is still sent. */
static void leave(struct end *end)
{
	sovia_conn_leave(end->conn);
	MUST(!end->conn->sk);
	sovia_conn_put(end->conn);
	end->gone = true;
}

/* The end of a connection, and another one between the same ports. */
static void connect_again(struct end *end)
{
	if (connect_end(end->conn->lport - PORT(0)))
		leave(end);
}

/* The end of a connection. */
static void op_end(struct input *in)
{
	struct end *end = ends[take8(in) % CONNS];
	u8 what = take8(in) % 4;

	if (what == 0) {
		end->hashed = !end->hashed;
	} else if (what == 1) {
		sovia_conn_purge(end->conn);
		end->over = true;
	} else if (what == 2) {
		if (ends_used < ENDS_MAX)
			connect_again(end);
	} else {
		sovia_lane_probe(lane);
	}
}

static void op_fail(struct input *in)
{
	if (peer.vi)
		vi.client->closed(&vi, -ECONNRESET);
}

/* ---- another VI ---- */

/* What link.c does with a VI, and the provider with messages posted to it. */
static void drop_vi(void)
{
	spin_lock_bh(&lane->lock);
	lane->up = false;
	lane->dead = true;
	spin_unlock_bh(&lane->lock);
	while (peer.first != peer.last)
		complete_one(false);
	peer.vi = false;
	lane->vi = NULL;
}

/* The peer has received up to @next: it forgets what it saw after that. */
static void forget_after(u32 next)
{
	while (peer.next != next) {
		struct sent *sent = &peer.sent[--peer.next % SENT_MAX];
		struct end *end = sent->cb.conn ? end_of(sent->cb.conn) : NULL;

		if (!end)
			continue;
		end->rx_byte = sent->rx_byte;
		end->told = sent->told;
	}
	peer.una = next;
}

static void make_vi(bool active, u64 peer_id)
{
	sovia_lane_prepare(lane, active, peer_id);
	peer.vi = true;
	peer.down = 0;
	peer.starved = 0;
	peer.acked = peer.accepted;
	memset(&peer.lane_slots, 0, sizeof(peer.lane_slots));
	memset(&peer.own_slots, 0, sizeof(peer.own_slots));
}

/* Must the lane accept this hello?  @open: the link has been up before. */
static bool welcome(const struct sovia_hello *hello, bool open, u32 window, u32 payload)
{
	u64 id = be64_to_cpu(hello->id), peer_id = be64_to_cpu(hello->peer_id);
	u32 rx_next = be32_to_cpu(hello->rx_next), theirs = be16_to_cpu(hello->window);
	bool loop = sovia_lane_is_local(lane);

	if (be32_to_cpu(hello->magic) != SOVIA_WIRE_MAGIC ||
	    hello->version != SOVIA_WIRE_VERSION || hello->lane || !theirs || !id ||
	    be32_to_cpu(hello->payload) < SOVIA_PAYLOAD_MIN ||
	    be32_to_cpu(hello->payload) > SOVIA_PAYLOAD_MAX || theirs > SOVIA_WINDOW_MAX)
		return false;
	/* A fresh link starts with the initial numbers. */
	if (!peer_id && rx_next)
		return false;
	if (!loop && (peer_id ? peer_id != lane->id : lane->active || open))
		return false;
	if (!loop && lane->peer_id && id != lane->peer_id)
		return false;
	if (open && peer.payload != payload)
		return false;
	return rx_next - peer.una <= peer.next - peer.una;
}

/* Returns whether the lane is up afterwards. */
static bool greet(struct input *in, struct sovia_params *params, bool open)
{
	u32 window = lane->credit.own_window;
	struct sovia_hello hello;
	u8 where = take8(in);
	bool must;

	sovia_hello_build(&hello, params, SOVIA_WIRE_VERSION);
	if (where < sizeof(hello))
		((u8 *)&hello)[where] ^= take8(in);
	must = welcome(&hello, open, window,
		       min(be32_to_cpu(hello.payload), lane->own_payload));
	if (must) {
		peer.window = min(window, be16_to_cpu(hello.window));
		forget_after(be32_to_cpu(hello.rx_next));
	}
	vi.client->established(&vi, &hello, sizeof(hello));
	MUST(!lane->lock.held && lane->open == (open || must));
	if (!must) {
		MUST(lane->dead && !lane->up);
		return false;
	}
	/* Messages that it sends at once may have killed it. */
	MUST(lane->up != lane->dead);
	MUST(lane->credit.window == peer.window && lane->payload == peer.payload);
	MUST(lane->credit.tx_una == peer.una && lane->credit.tx_next == peer.next);
	return true;
}

/* The lane's VI is dead or dies now, and there may be another one. */
static void op_recover(struct input *in)
{
	struct sovia_params params = { .window = 0 };
	struct sovia_hello hello;
	u8 how = take8(in);

	/* No recovery after a protocol violation. */
	if (sovia_lane_is_local(lane) || lane->err == -EPROTO)
		return;
	if (peer.vi)
		drop_vi();
	if (how % 4 == 3)
		return;
	make_vi(how & 4, peer.id);
	sovia_lane_hello(lane, &hello);
	MUST(!sovia_hello_parse(&hello, sizeof(hello), &params));
	MUST(params.rx_next == peer.accepted && params.id == lane->id && params.peer_id == peer.id);
	/* The attempt fails; a late hello must not bring the lane up then. */
	if (how % 4 == 2)
		vi.client->closed(&vi, -ETIMEDOUT);
	params = (struct sovia_params) {
		.window = peer.window, .payload = peer.payload,
		.rx_next = nearly(in, peer.una + (peer.next - peer.una) * take8(in) / 255),
		.id = peer.id, .peer_id = lane->id,
	};
	if (how % 4 != 2) {
		greet(in, &params, true);
		return;
	}
	sovia_hello_build(&hello, &params, SOVIA_WIRE_VERSION);
	vi.client->established(&vi, &hello, sizeof(hello));
	MUST(!lane->up && lane->dead && lane->credit.tx_una == peer.una);
}

static void (* const operations[])(struct input *in) = {
	op_message, op_compact, op_send, op_sent, op_message, op_timer, op_send, op_control,
	op_provider, op_end, op_starve, op_memory, op_raw, op_recover, op_compact, op_fail,
};

/* ---- one run ---- */

static void begin(struct input *in)
{
	u8 how = take8(in);
	int i;

	memset(&mib, 0, sizeof(mib));
	memset(lane, 0, sizeof(*lane));
	memset(&vi, 0, sizeof(vi));
	memset(&peer, 0, offsetof(struct peer, posted));
	memset(&peer.first, 0, sizeof(peer) - offsetof(struct peer, first));
	memory_short = false;
	snet.mib = &mib;
	vi.prov = how & 1 ? &sovia_loop_provider : &sovia_verbs_provider;
	*fuzz_window() = OWN_WINDOW_MAX;
	MUST(!sovia_lane_init(lane, &lane_ops, &snet, &fuzz_pair, vi.prov, GFP_KERNEL));
	peer.id = get_random_u64();
	vi.client = &fuzz_vi_client;
	vi.context = lane;
	vi.max_frags = 1;
	vi.imm = how & 2;
	ends_used = 0;
	for (i = 0; i < CONNS; i++)
		MUST(connect_end(i));
}

/* Sizes and numbers.  False if the peer's hello was refused. */
static bool establish(struct input *in)
{
	u32 window = 1 + take8(in) % OWN_WINDOW_MAX, threshold = take8(in) % 48;
	struct sovia_params params = { .id = peer.id };

	peer.payload = SOVIA_PAYLOAD_MIN;
	peer.next = peer.una = peer.most = (s32)(s16)take16(in);
	peer.accepted = (s32)(s16)take16(in);
	params.window = 1 + take8(in) % 64;
	params.payload = SOVIA_PAYLOAD_MIN + take8(in);
	params.rx_next = nearly(in, peer.next);
	/* A requesting peer may not know our ID yet. */
	make_vi(window & 1, window & 1 ? 0 : peer.id);
	if (window & 1 || peer.next)
		params.peer_id = lane->id;
	sovia_credit_init(&lane->credit, window, threshold);
	lane->reply_max = 4 * window;
	lane->credit.tx_next = lane->credit.tx_una = peer.next;
	lane->credit.rx_next = lane->credit.rx_acked = peer.accepted;
	lane->own_payload = SOVIA_PAYLOAD_MIN;
	return greet(in, &params, false);
}

/* A connection's count of messages in the lane must be right. */
static void check_conn(const struct end *end)
{
	const struct sovia_conn *conn = end->conn;
	int flight = skb_queue_len(&conn->txq) + end->posted;
	struct sk_buff *skb;
	u32 outq = 0;

	skb_queue_walk(&conn->txq, skb)
		outq += SOVIA_TX_CB(skb)->len;
	skb_queue_walk(&lane->unacked, skb)
		outq += SOVIA_TX_CB(skb)->conn == conn ? SOVIA_TX_CB(skb)->len : 0;
	skb_queue_walk(&lane->rtx_queue, skb) {
		if (SOVIA_TX_CB(skb)->conn != conn)
			continue;
		outq += SOVIA_TX_CB(skb)->len;
		flight++;
	}
	MUST(atomic_read(&conn->outq) == outq);
	MUST(conn->inflight == flight);
	MUST(skb_queue_len(&conn->txq) <= SOVIA_TXQ_MAX);
	/* With nothing in flight no acknowledgment would wake it. */
	MUST(!conn->tx_wanted || flight || end->over);
}

static void check_lane(void)
{
	int i;

	MUST(!lane->lock.held);
	/* What a new VI may have is known when it is up. */
	MUST(!lane->up || sovia_credit_flight(&lane->credit) <= lane->credit.window);
	MUST(lane->credit.rx_next - lane->credit.rx_acked <= lane->credit.own_window);
	/* However many replies the peer provokes. */
	MUST(lane->reply_count <= lane->reply_max);
	for (i = 0; i < CONNS; i++)
		check_conn(ends[i]);
}

/* After the provider has released everything, the lane must, too. */
static void end_all(void)
{
	int i;

	if (peer.vi)
		drop_vi();
	sovia_lane_reset(lane);
	/* Its sockets are not notified yet, and keep calling for a moment. */
	memory_short = false;
	for (i = 0; i < CONNS; i++) {
		u8 which[] = { i };

		op_send(&(struct input){ which, sizeof(which) });
		op_control(&(struct input){ which, sizeof(which) });
	}
	MUST(!lane->open && !sovia_lane_has_work(lane));
	MUST(!fuzz_skbs);
	MUST(!timer_pending(&lane->ack_timer));
	for (i = 0; i < CONNS; i++) {
		struct end *end = ends[i];

		MUST(refcount_read(&end->conn->refs) == 1);
		MUST(!atomic_read(&end->conn->outq));
		MUST(!end->conn->inflight);
		MUST(!end->conn->ctl && skb_queue_empty(&end->conn->txq));
		leave(end);
	}
	rcu_barrier();
	MUST(!link_refs && !sovia_objects.count[SOVIA_OBJECT_connections]);
	sovia_lane_free(lane);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };

	sovia_lane_register_client(&fuzz_client);
	MUST(!sovia_conn_init());
	begin(&in);
	if (establish(&in)) {
		while (in.left) {
			operations[take8(&in) % ARRAY_SIZE(operations)](&in);
			rcu_barrier();
			check_lane();
		}
	}
	end_all();
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of two connected lanes: conn.c, credit.h, lane*.c and wire.c of
 * kmod/lane on both ends of a wire.  Both follow the protocol, so neither may ever report
 * a violation; the input decides what is sent, when messages arrive, when completions
 * and timers fire, which allocations fail, when the provider has no room, when VIs die
 * and which end notices, and how far each attempt to replace them gets.
 *
 * Streams arrive complete and in order, receive descriptors suffice (2w + 1 here, where
 * one is reposted at once; see credit.h), windows are advertised as promised, and in the
 * end, when there are VIs and everything in flight has arrived, nothing waits for
 * anything.
 *
 * The input begins with the sizes and numbers of both, then operations[].
 */
#include "input.h"
#include "lane_standin.h"

#define CONNS		3
#define RING		8192
/* After so many rounds of all operations nothing may be pending. */
#define ROUNDS_MAX	4096

/* One end of a connection. */
struct end {
	struct sovia_conn	*conn;
	struct sock		sk;
	bool			fin;		/* it has ended its stream */
	bool			fin_came;	/* the other end has ended its */
	bool			delivered;
	u8			tx_byte;	/* next byte to send */
	u8			rx_byte;	/* next byte to receive */
	u32			known;		/* window end received */
	u32			promised;	/* window end that the other end must learn */
	u32			marked, mark;	/* urgent byte sent, and received */
};

/* A message on the wire. */
struct flying {
	struct sk_buff	*skb;
	bool		has_imm;
	u32		imm;
	u32		window;
};

struct node {
	struct sovia_lane	lane;
	struct sovia_vi		vi;
	struct sovia_mib	mib;
	struct node		*peer;
	struct end		ends[CONNS];
	struct flying		wire[RING];	/* to this node */
	unsigned int		arrived, sent_to;
	struct sk_buff		*posted[RING];	/* by this node */
	unsigned int		completed, posts;
	u32			starved;
	unsigned int		more;		/* receives that are to be posted, or 0 */
	u8			room;		/* bit by bit: the provider has none */
	u8			quiet;		/* ... or the send is unsignaled */
	u32			window;		/* of the message being received */
	u8			own_window, threshold;
	unsigned int		number;		/* of the VI, the same at both ends; or 0 */
	bool			established;
	bool			failing;	/* this end has closed it */
	struct sovia_hello	hello;		/* received, until it is established */
};

static struct node nodes[2];
static struct sovia_net snet[2];
static unsigned int vis;	/* VIs so far */

/* Parameters of kmod/lane/lane.c. */
uint *fuzz_window(void), *fuzz_ack_threshold(void), *fuzz_payload(void);
static u8 memory_left;
static bool memory_short;

int fuzz_skbs;
struct rcu_head *fuzz_rcu;
struct sovia_objects sovia_objects;

bool fuzz_no_memory(void)
{
	return memory_short && !(memory_left && memory_left--);
}

static struct node *node_of(const struct sovia_lane *lane)
{
	return container_of(lane, struct node, lane);
}

static struct end *end_of(const struct sovia_conn *conn)
{
	struct node *node = node_of(conn->lane);
	int i = CONNS;

	while (i--)
		if (node->ends[i].conn == conn)
			return &node->ends[i];
	MUST(!"there is no such connection");
	return NULL;
}

/* The other end of a connection. */
static struct end *other(const struct end *end)
{
	struct node *node = node_of(end->conn->lane);

	return &node->peer->ends[end - node->ends];
}

/* ---- above the lane: sockets ---- */

static void client_request(struct sovia_lane *lane, struct sk_buff *skb,
			   const struct sovia_msg *msg)
{
	MUST(skb->len == sizeof(struct sovia_conn_body));
}

/* A window never moves back, nor beyond what the other end has opened. */
static void check_window(struct end *end, const struct sovia_msg *msg)
{
	if (msg->compact) {
		MUST(node_of(end->conn->lane)->window - end->known <
		     other(end)->conn->wnd_update_min);
		return;
	}
	MUST(!sovia_before(msg->window, end->known));
	MUST(!sovia_before(other(end)->conn->rcv_wnd_end, msg->window));
	end->known = msg->window;
}

static bool client_data(struct sovia_conn *conn, struct sk_buff *skb,
			const struct sovia_msg *msg)
{
	struct end *end = end_of(conn);
	u32 i;

	check_window(end, msg);
	MUST(skb->len == msg->len && !end->fin_came);
	for (i = 0; i < skb->len; i++)
		MUST(skb->data[i] == (u8)(end->rx_byte + i));
	end->rx_byte += skb->len;
	end->fin_came = msg->flags & SOVIA_F_FIN;
	return false;
}

static void client_control(struct sovia_conn *conn, const struct sovia_msg *msg)
{
	struct end *end = end_of(conn);

	check_window(end, msg);
	if (msg->type == SOVIA_URGENT)
		end->mark = msg->ref;
	if (msg->type == SOVIA_FIN) {
		MUST(!end->fin_came);
		end->fin_came = true;
	}
}

static void client_tx_ready(struct sovia_conn *conn)
{
	MUST(skb_queue_len(&conn->txq) < SOVIA_TXQ_MAX);
}

static void client_delivered(struct sovia_conn *conn)
{
	struct end *end = end_of(conn);

	MUST(end->fin && !end->delivered);
	end->delivered = true;
}

static const struct sovia_client fuzz_client = {
	.request = client_request, .data = client_data, .control = client_control,
	.tx_ready = client_tx_ready, .delivered = client_delivered,
};

/* Messages are in one piece here. */
int sovia_msg_repack(struct sk_buff *skb, unsigned int max_frags)
{
	return 0;
}

static void lane_event(struct sovia_lane *lane, enum sovia_lane_event event)
{
	MUST(event == SOVIA_LANE_UP || node_of(lane)->failing);
}

static void lane_put(struct sovia_lane *lane)
{
}

static const struct sovia_lane_ops lane_ops = {
	.event = lane_event, .put = lane_put, .may_recover = lane_may_recover,
};

struct sovia_conn *sovia_conn_lookup(struct sovia_lane *lane, u16 lport, u16 rport)
{
	struct node *node = node_of(lane);
	int i;

	for (i = 0; i < CONNS; i++) {
		struct sovia_conn *conn = node->ends[i].conn;

		if (conn->lport == lport && conn->rport == rport)
			return conn;
	}
	MUST(!"no connection has these ports");
	return NULL;
}

/* ---- below the lane: provider ---- */

static struct sk_buff *copy_of(const struct sk_buff *skb)
{
	bool was = memory_short;
	struct sk_buff *copy;

	memory_short = false;
	copy = alloc_skb(skb->len, GFP_KERNEL);
	memcpy(skb_put(copy, skb->len), skb->data, skb->len);
	memory_short = was;
	return copy;
}

static void fly(struct node *to, const struct sk_buff *skb, const struct sovia_post *how)
{
	/* A descriptor must be posted, even if the peer processes nothing until then. */
	if (!to->starved)
		MUST(to->sent_to - to->arrived < 2 * to->lane.credit.own_window + 1);
	MUST(to->sent_to - to->arrived < RING);
	to->wire[to->sent_to++ % RING] = (struct flying) {
		copy_of(skb), how->has_imm, how->imm, SOVIA_TX_CB(skb)->window,
	};
}

static int provider_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			      const struct sovia_post *how)
{
	struct node *node = container_of(vi, struct node, vi), *peer = node->peer;
	bool full = node->room & 1, tell = !(node->quiet & 1) || !how->unsignaled;
	struct sovia_lane *lane = &node->lane;

	MUST(lane->lock.held && node->established && !node->failing);
	node->room >>= 1;
	node->quiet >>= 1;
	if (full || node->posts - node->completed >= RING)
		return -EAGAIN;
	if (node->number == peer->number)
		fly(peer, skb, how);
	if (!tell)
		return SOVIA_POSTED_UNSIGNALED;
	node->posted[node->posts++ % RING] = skb_get(skb);
	return SOVIA_POSTED;
}

static void provider_post_more(struct sovia_vi *vi, unsigned int depth)
{
	struct node *node = container_of(vi, struct node, vi);

	MUST(node->lane.lock.held && node->established && !node->failing && !node->more);
	MUST(depth > 2 * node->lane.credit.own_window + 2 && depth <= 2 * node->own_window + 2U);
	node->more = depth;
}

const struct sovia_provider sovia_verbs_provider = {
	.post_send = provider_post_send, .post_more = provider_post_more,
};
const struct sovia_provider sovia_loop_provider;

/* When a VI dies, a message may have arrived whether @done or not. */
static bool complete_one(struct node *node, bool done)
{
	struct sk_buff *skb;

	if (node->completed == node->posts)
		return false;
	skb = node->posted[node->completed++ % RING];
	node->vi.client->send_done(&node->vi, skb, done);
	kfree_skb(skb);
	return true;
}

static void starve(struct node *node, int delta)
{
	node->starved += delta;
	node->vi.client->rx_unposted(&node->vi, delta);
}

/* They are posted, but @less for lack of memory. */
static bool grow(struct node *node, unsigned int less)
{
	unsigned int depth = node->more;

	if (!depth)
		return false;
	node->more = 0;
	node->vi.client->rx_grown(&node->vi, depth - min(less, depth - 4));
	return true;
}

static bool arrive_one(struct node *node, bool starving)
{
	struct flying *f;

	/* Messages received before the VI is established wait. */
	if (!node->established || node->arrived == node->sent_to)
		return false;
	f = &node->wire[node->arrived++ % RING];
	/* No memory to renew its descriptor; half of them stay posted. */
	if (starving && node->starved < node->lane.credit.own_window)
		starve(node, 1);
	node->window = f->window;
	MUST(!node->vi.client->receive(&node->vi, f->skb, f->has_imm ? &f->imm : NULL));
	kfree_skb(f->skb);
	return true;
}

static bool fire(struct node *node)
{
	struct timer_list *timer = &node->lane.ack_timer;

	if (!timer_pending(timer))
		return false;
	timer->pending = false;
	timer->function(timer);
	return true;
}

/* ---- operations ---- */

static struct node *which(struct input *in)
{
	return &nodes[take8(in) & 1];
}

static void op_arrive(struct input *in)
{
	u8 how = take8(in), count = how / 4 % 32 + 1;

	while (count--)
		arrive_one(&nodes[how & 1], (how & 2) && !count);
}

static void op_sent(struct input *in)
{
	u8 how = take8(in), count = how / 2 % 32 + 1;

	while (count--)
		complete_one(&nodes[how & 1], true);
}

/* As the socket layer's: the message's reference to its connection ends with it. */
static void message_free(struct sk_buff *skb)
{
	if (SOVIA_TX_CB(skb)->conn)
		sovia_conn_put(SOVIA_TX_CB(skb)->conn);
}

static void op_send(struct input *in)
{
	u8 where = take8(in), how = take8(in);
	struct end *end = &nodes[where & 1].ends[where / 2 % CONNS];
	u32 len = how & 1 ? 0 : 1 + (how & 32 ? take16(in) % SOVIA_PAYLOAD_MIN : take8(in)), i;
	struct sk_buff *skb;
	u8 *to;

	if (end->fin)
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
	end->fin = sovia_tx_is_fin(skb);
	if (sovia_conn_send(end->conn, skb, how & 16)) {
		end->tx_byte += len;
		return;
	}
	end->fin = false;
	atomic_sub(len, &end->conn->outq);
	kfree_skb(skb);
}

/* RESET and CONN are left out: they do not apply to an open connection. */
static void op_control(struct input *in)
{
	u8 where = take8(in), what = take8(in);
	struct end *end = &nodes[where & 1].ends[where / 2 % CONNS];

	/* Not each move of the window is sent at once. */
	end->conn->rcv_wnd_end += what / 4;
	if (what % 4)
		end->promised = end->conn->rcv_wnd_end;
	if (what % 4 == 1)
		sovia_conn_control(end->conn, SOVIA_URGENT, end->marked = what);
	else if (what % 4)
		sovia_conn_control(end->conn, what % 4 == 2 ? SOVIA_WAKEUP : SOVIA_ACCEPT, 0);
}

static void op_timer(struct input *in)
{
	fire(which(in));
}

static void op_refill(struct input *in)
{
	struct node *node = which(in);

	if (node->starved)
		starve(node, -1);
}

/* ---- replacing VIs ---- */

/* This end notices that its VI is dead. */
static void lose(struct node *node)
{
	if (!node->number || node->failing)
		return;
	node->failing = true;
	node->vi.client->closed(&node->vi, -ECONNRESET);
}

/* Destroys the VI, with unprocessed messages and those without a completion. */
static void drop(struct node *node)
{
	struct sovia_lane *lane = &node->lane;

	spin_lock_bh(&lane->lock);
	lane->up = false;
	lane->dead = true;
	spin_unlock_bh(&lane->lock);
	while (node->arrived != node->sent_to)
		kfree_skb(node->wire[node->arrived++ % RING].skb);
	while (complete_one(node, false))
		;
	lane->vi = NULL;
	node->number = node->starved = node->more = 0;
	node->established = node->failing = false;
}

static void make(struct node *node, bool active, u64 peer_id, unsigned int number)
{
	/* Later changes of parameters do not affect a link that has been up. */
	*fuzz_window() = 1 + vis % 20;
	*fuzz_ack_threshold() = node->lane.open ? 1 : node->threshold;
	*fuzz_payload() = SOVIA_PAYLOAD_MIN;
	sovia_lane_prepare(&node->lane, active, peer_id);
	MUST(node->lane.credit.limit == node->own_window);
	node->number = number;
	sovia_lane_hello(&node->lane, &node->peer->hello);
}

static void establish(struct node *node)
{
	struct sovia_lane *lane = &node->lane;

	if (!node->number || node->established || node->failing)
		return;
	node->established = true;
	node->vi.client->established(&node->vi, &node->hello, sizeof(node->hello));
	MUST(lane->up && lane->open && lane->peer_id == node->peer->lane.id);
}

/* One end connects; the other one drops its VI, and accepts. */
static void reconnect(struct node *asks)
{
	struct node *answers = asks->peer;
	struct sovia_lane *lane = &answers->lane;

	drop(asks);
	make(asks, true, asks->lane.peer_id, ++vis);
	MUST(be64_to_cpu(answers->hello.peer_id) == (lane->open ? lane->id : 0));
	drop(answers);
	make(answers, false, asks->lane.id, vis);
}

static void op_lose(struct input *in)
{
	lose(which(in));
}

static void op_reconnect(struct input *in)
{
	u8 how = take8(in);

	reconnect(&nodes[how & 1]);
	if (how & 2)
		establish(&nodes[how >> 2 & 1]);
	if (how & 8)
		establish(&nodes[!(how >> 2 & 1)]);
}

static void op_establish(struct input *in)
{
	establish(which(in));
}

static void op_provider(struct input *in)
{
	struct node *node = which(in);

	node->room = take8(in);
	node->quiet = take8(in);
}

static void op_memory(struct input *in)
{
	memory_left = take8(in);
	memory_short = memory_left < 16;
}

static void op_grow(struct input *in)
{
	u8 how = take8(in);

	grow(&nodes[how & 1], how & 2 ? how >> 2 : 0);
}

static void op_probe(struct input *in)
{
	sovia_lane_probe(&which(in)->lane);
}

static void (* const operations[])(struct input *in) = {
	op_arrive, op_send, op_sent, op_send, op_control, op_arrive, op_timer, op_refill,
	op_send, op_provider, op_arrive, op_memory, op_sent, op_send, op_control, op_probe,
	op_lose, op_reconnect, op_establish, op_grow,
};

/* ---- one run ---- */

static void begin(struct input *in, struct node *node, bool imm)
{
	struct sovia_lane *lane = &node->lane;
	int i, own = node - nodes;

	memset(&node->lane, 0, offsetof(struct node, wire));
	node->arrived = node->sent_to = node->completed = node->posts = 0;
	node->starved = node->room = node->quiet = node->more = 0;
	node->peer = &nodes[!own];
	snet[own].mib = &node->mib;
	node->own_window = 1 + take8(in) % 20;
	*fuzz_window() = node->own_window;
	MUST(!sovia_lane_init(lane, &lane_ops, &snet[own], &fuzz_pair, &sovia_verbs_provider,
			      GFP_KERNEL));
	node->threshold = take8(in) % 24;
	node->number = 0;
	node->established = node->failing = false;
	node->vi = (struct sovia_vi) {
		.prov = &sovia_verbs_provider, .client = &fuzz_vi_client, .context = lane,
		.max_frags = 1, .imm = imm,
	};
	for (i = 0; i < CONNS; i++) {
		struct end *end = &node->ends[i];

		/* Two of the connections have the same slot. */
		u16 slot = (i / 2 + i % 2 * SOVIA_SLOTS) * 2;

		end->conn = sovia_conn_create(&node->lane, &end->sk, 1 + own + slot,
					      1 + !own + slot, i, GFP_KERNEL);
		MUST(end->conn);
		end->conn->wnd_update_min = 16;
	}
}

/* Both ends start with the same numbers, which may be about to wrap. */
static void number(u32 start, struct node *from)
{
	struct sovia_credit *tx = &from->lane.credit, *rx = &from->peer->lane.credit;

	tx->tx_next = tx->tx_una = start;
	rx->rx_next = rx->rx_acked = start;
}

static bool round_of_everything(struct node *node)
{
	bool did = false;

	node->room = 0;
	while (node->starved) {
		starve(node, -1);
		did = true;
	}
	while (arrive_one(node, false))
		did = true;
	while (complete_one(node, true))
		did = true;
	did |= grow(node, 0);
	return fire(node) || did;
}

static void settle(void)
{
	int rounds = 0, i;
	bool did = true;

	memory_short = false;
	/* An end that has lost its VI reconnects, this time with success. */
	for (i = 0; i < 2; i++)
		if (nodes[i].failing || !nodes[i].number)
			reconnect(&nodes[i]);
	for (i = 0; i < 2; i++)
		establish(&nodes[i]);
	while (did) {
		did = false;
		for (i = 0; i < 2; i++)
			did |= round_of_everything(&nodes[i]);
		MUST(rounds++ < ROUNDS_MAX);
	}
}

static void check_settled(struct node *node)
{
	struct sovia_lane *lane = &node->lane;
	int i;

	MUST(!sovia_lane_has_work(lane) && skb_queue_empty(&lane->unacked));
	MUST(!sovia_credit_flight(&lane->credit));
	MUST(!sovia_credit_ack_pending(&lane->credit));
	for (i = 0; i < CONNS; i++) {
		struct end *end = &node->ends[i];

		MUST(refcount_read(&end->conn->refs) == 1);
		MUST(!atomic_read(&end->conn->outq) && !end->conn->inflight);
		MUST(end->tx_byte == other(end)->rx_byte);
		MUST(end->fin == other(end)->fin_came && end->fin == end->delivered);
		MUST(!sovia_before(other(end)->known, end->promised));
		MUST(other(end)->mark == end->marked);
		/* A sender that waited was woken. */
		MUST(!end->conn->tx_wanted);
	}
}

static void end_all(struct node *node)
{
	int i;

	sovia_lane_reset(&node->lane);
	for (i = 0; i < CONNS; i++)
		sovia_conn_put(node->ends[i].conn);
	sovia_lane_free(&node->lane);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct input in = { data, size };
	u8 how = take8(&in);
	int i;

	sovia_lane_register_client(&fuzz_client);
	MUST(!sovia_conn_init());
	memory_short = false;
	vis = 0;
	for (i = 0; i < 2; i++)
		begin(&in, &nodes[i], how & 1);
	for (i = 0; i < 2; i++)
		nodes[i].lane.grows = how & 4;
	reconnect(&nodes[how >> 1 & 1]);
	for (i = 0; i < 2; i++)
		establish(&nodes[i]);
	for (i = 0; i < 2; i++)
		number((s32)(signed char)take8(&in), &nodes[i]);
	while (in.left) {
		operations[take8(&in) % ARRAY_SIZE(operations)](&in);
		rcu_barrier();
	}
	settle();
	for (i = 0; i < 2; i++)
		check_settled(&nodes[i]);
	for (i = 0; i < 2; i++)
		end_all(&nodes[i]);
	rcu_barrier();
	MUST(!fuzz_skbs && !sovia_objects.count[SOVIA_OBJECT_connections]);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The peer: lanes, sequence numbers, credits.  The attacks are in other files. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "peer.h"

/* One device, so one protection domain for all lanes. */
static struct ibv_pd *pd;

static struct sockaddr_in own, victim;

/* All lanes are polled: the victim gives up one that does not answer for long. */
static struct lane *lanes;

void serve_lanes(void)
{
	static bool busy;
	struct lane *l;

	/* lane_ack() may wait, and call this again. */
	if (busy)
		return;
	busy = true;
	for (l = lanes; l; l = l->next) {
		lane_poll(l);
		if (!l->dead && !l->silent && !l->deaf)
			lane_ack(l);
	}
	busy = false;
}

void die(const char *what)
{
	perror(what);
	exit(2);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void pause_ms(unsigned int ms)
{
	poll(NULL, 0, ms);
}

void peer_addresses(const char *from, const char *to)
{
	own.sin_family = victim.sin_family = AF_INET;
	own.sin_port = htons(SOURCE_PORT);
	victim.sin_port = htons(SOVIA_SERVICE_PORT);
	if (inet_pton(AF_INET, from, &own.sin_addr) != 1 || inet_pton(AF_INET, to, &victim.sin_addr) != 1)
		die("addresses");
}

void peer_meet(void)
{
	meet(&own, &victim);
}

void peer_answers(void)
{
	begin_to_answer(&own);
}

/* ---- set-up ---- */

/* The hello of a correct peer for a new link. */
struct sovia_hello peer_hello(unsigned int lane)
{
	/* Unique for each link of this process; the PID makes it unique among processes. */
	static uint32_t id;

	return (struct sovia_hello) {
		.magic = htonl(SOVIA_WIRE_MAGIC),
		.version = SOVIA_WIRE_VERSION,
		.lane = lane,
		.window = htons(WINDOW),
		.payload = htonl(PAYLOAD),
		.id = htobe64((uint64_t)getpid() << 32 | ++id),
	};
}

static void post_receive(struct lane *l, unsigned int slot)
{
	struct ibv_sge sge = { (uintptr_t)l->memory + slot * SLOT, SLOT, l->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (ibv_post_recv(l->id->qp, &wr, &bad))
		l->dead = true;
}

static void make_queues(struct lane *l)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = TX_SLOTS, .max_recv_wr = RX_SLOTS, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	unsigned int i;

	if (!pd)
		pd = ibv_alloc_pd(l->id->verbs);
	l->memory = malloc((RX_SLOTS + TX_SLOTS) * SLOT);
	if (pd && l->memory)
		l->mr = ibv_reg_mr(pd, l->memory, (RX_SLOTS + TX_SLOTS) * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!l->mr)
		die("memory region");
	l->cq = ibv_create_cq(l->id->verbs, RX_SLOTS + TX_SLOTS, NULL, NULL, 0);
	attr.send_cq = attr.recv_cq = l->cq;
	if (!l->cq || rdma_create_qp(l->id, pd, &attr))
		die("queue pair");
	for (i = 0; i < RX_SLOTS; i++)
		post_receive(l, i);
}

/* The next event of the connection manager, or -1 on timeout. */
static int next_event(struct lane *l, int ms)
{
	struct pollfd poller = { .fd = l->events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int what;

	while (poll(&poller, 1, ms < 100 ? ms : 100) <= 0) {
		if (ms <= 100)
			return -1;
		ms -= 100;
		serve_lanes();
	}
	if (rdma_get_cm_event(l->events, &event))
		return -1;
	what = event->event;
	if ((what == RDMA_CM_EVENT_ESTABLISHED || what == RDMA_CM_EVENT_CONNECT_RESPONSE) &&
	    event->param.conn.private_data_len >= sizeof(l->heard))
		memcpy(&l->heard, event->param.conn.private_data, sizeof(l->heard));
	if (what == RDMA_CM_EVENT_REJECTED) {
		const struct sovia_reject *rej = event->param.conn.private_data;

		l->reject_code = 0;
		if (rej && event->param.conn.private_data_len >= sizeof(*rej) &&
		    ntohl(rej->magic) == SOVIA_WIRE_MAGIC)
			l->reject_code = ntohl(rej->code);
	}
	rdma_ack_cm_event(event);
	return what;
}

static void lane_stands(struct lane *l)
{
	l->stands = true;
	l->next = lanes;
	lanes = l;
}

/* Stop polling and acknowledging the lane automatically. */
static void lane_rests(struct lane *l)
{
	struct lane **prev;

	for (prev = &lanes; l->stands && *prev; prev = &(*prev)->next)
		if (*prev == l) {
			*prev = l->next;
			break;
		}
	l->stands = false;
}

/* A lane whose route to the victim is resolved. */
bool lane_prepare(struct lane *l)
{
	int ms = PATIENCE * 1000, reuse = 1;
	uint8_t timeout = 20;

	memset(l, 0, sizeof(*l));
	l->events = rdma_create_event_channel();
	if (!l->events || rdma_create_id(l->events, &l->id, NULL, RDMA_PS_TCP))
		die("rdma_cm");
	/* As long as the victim's, on a busy machine. */
	rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof(timeout));
	/* All lanes use the same source port. */
	rdma_set_option(l->id, RDMA_OPTION_ID, RDMA_OPTION_ID_REUSEADDR, &reuse, sizeof(reuse));
	if (rdma_resolve_addr(l->id, (struct sockaddr *)&own, (struct sockaddr *)&victim, 2000) ||
	    next_event(l, ms) != RDMA_CM_EVENT_ADDR_RESOLVED)
		return false;
	return !rdma_resolve_route(l->id, 2000) && next_event(l, ms) == RDMA_CM_EVENT_ROUTE_RESOLVED;
}

/* Sends the victim a request with this hello, without waiting. */
bool lane_ask(struct lane *l, const void *hello, size_t len)
{
	static unsigned int number;
	struct rdma_conn_param param = {
		.private_data = &l->said, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7,
		/* A queue pair that does not exist. */
		.qp_num = 0x100000 + ++number,
	};

	memcpy(&l->said, hello, len);
	if (len == sizeof(l->said))
		seal_request(&l->said);
	return !rdma_connect(l->id, &param);
}

/* Waits for the outcome.  Without a queue pair the set-up is not completed: the link stays half open. */
enum outcome lane_outcome(struct lane *l)
{
	bool finish = l->id->qp;
	int what = next_event(l, PATIENCE * 1000);

	if (what == RDMA_CM_EVENT_REJECTED)
		return REFUSED;
	if (what != (finish ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_CONNECT_RESPONSE))
		return FAILED;
	if (finish)
		lane_stands(l);
	return UP;
}

/* All of these steps; without @finish, no queue pair is created. */
enum outcome lane_open_with(struct lane *l, const void *hello, size_t len, bool finish)
{
	if (!lane_prepare(l))
		return FAILED;
	if (finish)
		make_queues(l);
	return lane_ask(l, hello, len) ? lane_outcome(l) : FAILED;
}

/* Destroys the lane in any state, without notifying the victim. */
void lane_drop(struct lane *l)
{
	if (!l->id)
		return;
	lane_rests(l);
	if (l->id->qp)
		rdma_destroy_qp(l->id);
	if (l->cq)
		ibv_destroy_cq(l->cq);
	if (l->mr)
		ibv_dereg_mr(l->mr);
	free(l->memory);
	rdma_destroy_id(l->id);
	rdma_destroy_event_channel(l->events);
	memset(l, 0, sizeof(*l));
}

void lane_close(struct lane *l)
{
	if (l->id)
		rdma_disconnect(l->id);
	lane_drop(l);
}

/* Opens a lane.  Retries, as the victim may still be ending a previous one. */
void lane_open(struct lane *l, unsigned int number)
{
	struct sovia_hello hello = peer_hello(number);
	double end = now() + PATIENCE;

	while (lane_open_with(l, &hello, sizeof(hello), true) != UP) {
		if (now() > end) {
			fprintf(stderr, "cannot open lane %u: code %u\n", number, l->reject_code);
			exit(2);
		}
		lane_drop(l);
		pause_ms(50);
	}
}

/* The hello of a correct peer that has lost the lane, but not the link. */
struct sovia_hello resume_hello(const struct lane *l)
{
	struct sovia_hello hello = l->said;

	hello.peer_id = l->heard.id;
	hello.rx_next = htonl(l->rx_next);
	return hello;
}

/*
 * Resumes the link over another lane, which replaces this one.  The old lane stays
 * until then: if it ended first, the victim would send the request.
 */
enum outcome lane_resume(struct lane *l, const struct sovia_hello *hello)
{
	struct lane old = *l;
	enum outcome how;

	lane_rests(l);
	old.stands = false;
	how = lane_open_with(l, hello, sizeof(*hello), true);
	if (how == UP) {
		l->rx_next = l->rx_told = ntohl(hello->rx_next);
		l->tx_next = l->tx_una = ntohl(l->heard.rx_next);
		memcpy(l->count, old.count, sizeof(l->count));
	}
	lane_drop(&old);
	return how;
}

/* ---- the victim connects to the peer ---- */

static struct rdma_cm_id *listener;

void peer_listen(void)
{
	struct rdma_event_channel *events = rdma_create_event_channel();
	struct sockaddr_in addr = own;

	addr.sin_port = htons(SOVIA_SERVICE_PORT);
	if (!events || rdma_create_id(events, &listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(listener, (struct sockaddr *)&addr) || rdma_listen(listener, 16))
		die("listen");
}

/* Waits for a request and stores its hello in heard; the caller replies. */
bool lane_asked(struct lane *l)
{
	struct pollfd poller = { .fd = listener->channel->fd, .events = POLLIN };
	double end = now() + PATIENCE;
	struct rdma_cm_event *event;

	memset(l, 0, sizeof(*l));
	while (now() < end) {
		serve_lanes();
		if (poll(&poller, 1, 10) <= 0 || rdma_get_cm_event(listener->channel, &event))
			continue;
		if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
			rdma_ack_cm_event(event);
			continue;
		}
		l->id = event->id;
		if (event->param.conn.private_data_len >= sizeof(l->heard))
			memcpy(&l->heard, event->param.conn.private_data, sizeof(l->heard));
		rdma_ack_cm_event(event);
		l->events = rdma_create_event_channel();
		if (!l->events || rdma_migrate_id(l->id, l->events))
			die("identifier");
		return true;
	}
	return false;
}

/* Returns the resulting event of rdma_cm. */
static int answer(struct lane *l, const struct sovia_hello *hello, size_t len)
{
	struct rdma_conn_param param = {
		.private_data = &l->said, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1, .rnr_retry_count = 7,
	};

	memcpy(&l->said, hello, len);
	if (len == sizeof(l->said))
		seal_reply(&l->said, &l->heard);
	make_queues(l);
	return rdma_accept(l->id, &param) ? -1 : next_event(l, PATIENCE * 1000);
}

static void answered(struct lane *l, const struct sovia_hello *hello)
{
	l->rx_next = l->rx_told = ntohl(hello->rx_next);
	l->tx_next = l->tx_una = ntohl(l->heard.rx_next);
	lane_stands(l);
}

bool lane_answer(struct lane *l, const struct sovia_hello *hello, size_t len)
{
	if (answer(l, hello, len) != RDMA_CM_EVENT_ESTABLISHED)
		return false;
	answered(l, hello);
	return true;
}

bool lane_answer_ends(struct lane *l, const struct sovia_hello *hello, size_t len)
{
	switch (answer(l, hello, len)) {
	case RDMA_CM_EVENT_ESTABLISHED:
		answered(l, hello);
		return lane_dies(l);
	case RDMA_CM_EVENT_DISCONNECTED:
		/* With several processors ib_cm may report the disconnect first. */
		return true;
	default:
		return false;
	}
}

void lane_refuse(struct lane *l, const void *data, size_t len)
{
	rdma_reject(l->id, data, len);
	lane_drop(l);
}

/* ---- messages ---- */

static void heard(struct lane *l, const struct ibv_wc *wc)
{
	const struct sovia_hdr *hdr = (void *)(l->memory + wc->wr_id * SLOT);
	uint32_t ack;

	if (wc->wc_flags & IBV_WC_WITH_IMM) {
		l->count[SOVIA_DATA]++;
		l->rx_next++;
		l->tx_una += (ntohl(wc->imm_data) - l->tx_una) & SOVIA_IMM_ACK_MASK;
		return;
	}
	if (wc->byte_len < sizeof(*hdr) || hdr->version != SOVIA_WIRE_VERSION) {
		fprintf(stderr, "the victim itself violates the protocol\n");
		exit(2);
	}
	if (hdr->type != SOVIA_ACK)
		l->rx_next++;
	ack = ntohl(hdr->ack);
	if ((int32_t)(ack - l->tx_una) > 0)
		l->tx_una = ack;
	l->count[hdr->type]++;
	l->last[hdr->type] = *hdr;
	if (hdr->type == SOVIA_RESET) {
		l->reset_port = ntohs(hdr->dport);
		l->resets[ntohl(hdr->code) % SOVIA_CODE_COUNT]++;
	}
	if (hdr->type == SOVIA_REFUSE)
		l->refusals[ntohl(hdr->code) % SOVIA_CODE_COUNT]++;
}

static void poll_events(struct lane *l)
{
	int what = next_event(l, 0);

	if (what == RDMA_CM_EVENT_DISCONNECTED || what == RDMA_CM_EVENT_DEVICE_REMOVAL)
		l->dead = true;
}

/* Processes received messages and completions. */
void lane_poll(struct lane *l)
{
	struct ibv_wc wc;

	while (!l->dead && ibv_poll_cq(l->cq, 1, &wc) > 0) {
		if (wc.status != IBV_WC_SUCCESS) {
			l->dead = true;
		} else if (wc.opcode & IBV_WC_RECV) {
			heard(l, &wc);
			if (!l->deaf)
				post_receive(l, wc.wr_id);
		} else {
			l->sent++;
		}
	}
	if (!l->dead)
		poll_events(l);
}

/*
 * Waits for room for another send.  Acknowledgments are sent during the wait, on this lane as
 * well, so call it before a message gets its numbers.
 */
static bool lane_room(struct lane *l)
{
	return until(l, l->posted - l->sent < TX_SLOTS - 1);
}

/* Sends arbitrary bytes.  False when the lane is dead. */
bool lane_post(struct lane *l, const void *data, size_t len, enum ibv_wr_opcode opcode, uint32_t imm)
{
	struct ibv_sge sge = { .length = len, .lkey = l->mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = len ? 1 : 0, .opcode = opcode, .imm_data = htonl(imm),
	}, *bad;

	if (!lane_room(l))
		return false;
	sge.addr = (uintptr_t)l->memory + (RX_SLOTS + l->posted % TX_SLOTS) * SLOT;
	if (len)
		memcpy((void *)sge.addr, data, len);
	/* A remote key and address that do not exist. */
	if (opcode != IBV_WR_SEND && opcode != IBV_WR_SEND_WITH_IMM) {
		wr.wr.rdma.rkey = 0x1234;
		wr.wr.rdma.remote_addr = 0x1000;
	}
	if (ibv_post_send(l->id->qp, &wr, &bad)) {
		l->dead = true;
		return false;
	}
	l->posted++;
	return true;
}

/* A valid message without payload, if it is sent next. */
struct msg msg_of(struct lane *l, unsigned int type, unsigned int sport, unsigned int dport)
{
	lane_room(l);
	return (struct msg) { .hdr = {
		.version = SOVIA_WIRE_VERSION, .type = type, .seq = l->tx_next, .ack = l->rx_next,
		.sport = sport, .dport = dport,
	} };
}

/* Sends a message; advances the sequence number if the victim does, too. */
bool msg_send(struct lane *l, const struct msg *m)
{
	static unsigned char buf[SLOT];
	struct sovia_hdr hdr = m->hdr;
	size_t len = sizeof(hdr) + m->len - m->cut;

	hdr.flags = htons(hdr.flags);
	hdr.len = htonl(hdr.len);
	hdr.seq = htonl(hdr.seq);
	hdr.ack = htonl(hdr.ack);
	hdr.sport = htons(hdr.sport);
	hdr.dport = htons(hdr.dport);
	hdr.window = htonl(hdr.window);
	hdr.ref = htonl(hdr.ref);
	hdr.code = htonl(hdr.code);
	if (m->hdr.type != SOVIA_ACK)
		l->tx_next++;
	l->rx_told = m->hdr.ack;
	if (m->compact)
		return lane_post(l, m->payload, m->len, IBV_WR_SEND_WITH_IMM, m->imm);
	memcpy(buf, &hdr, sizeof(hdr));
	if (m->len)
		memcpy(buf + sizeof(hdr), m->payload, m->len);
	return lane_post(l, buf, len, IBV_WR_SEND, 0);
}

void lane_ack(struct lane *l)
{
	struct msg m = msg_of(l, SOVIA_ACK, 0, 0);

	if (l->rx_told != l->rx_next)
		msg_send(l, &m);
}

/* Does the victim accept and acknowledge a valid message? */
bool lane_alive(struct lane *l)
{
	struct msg m;

	/* Not more than the credits allow. */
	if (!until(l, l->tx_next - l->tx_una < WINDOW / 2))
		return false;
	m = msg_of(l, SOVIA_PROBE, 0, 0);
	m.hdr.flags = SOVIA_F_ACKREQ;
	return msg_send(l, &m) && until(l, l->tx_una == l->tx_next) && !l->dead;
}

/* Does the victim end the lane? */
bool lane_dies(struct lane *l)
{
	until(l, l->dead);
	return l->dead;
}

/* ---- connections ---- */

static void mapped(uint8_t *to, const struct sockaddr_in *from)
{
	memset(to, 0, 10);
	memset(to + 10, 0xff, 2);
	memcpy(to + 12, &from->sin_addr, 4);
}

struct msg conn_request(struct lane *l, unsigned int sport, unsigned int dport)
{
	static struct sovia_conn_body body;
	struct msg m = msg_of(l, SOVIA_CONN, sport, dport);

	mapped(body.saddr, &own);
	mapped(body.daddr, &victim);
	m.payload = &body;
	m.len = m.hdr.len = sizeof(body);
	m.hdr.window = 65536;
	return m;
}

/* Opens a valid connection.  False if the victim refuses it. */
bool conn_open(struct conn *c, struct lane *l, unsigned int dport)
{
	static uint16_t port = 1024;
	unsigned int accepts = l->count[SOVIA_ACCEPT], refuses = l->count[SOVIA_REFUSE];
	struct msg m;

	if (++port < 1024)
		port = 1024;
	m = conn_request(l, port, dport);
	*c = (struct conn) { .lane = l, .sport = port, .dport = dport };
	if (!msg_send(l, &m) ||
	    !until(l, l->count[SOVIA_ACCEPT] != accepts || l->count[SOVIA_REFUSE] != refuses) ||
	    l->count[SOVIA_ACCEPT] == accepts)
		return false;
	c->limit = ntohl(l->last[SOVIA_ACCEPT].window);
	lane_ack(l);
	return true;
}

struct msg conn_msg(const struct conn *c, unsigned int type)
{
	struct msg m = msg_of(c->lane, type, c->sport, c->dport);

	m.hdr.window = 65536;
	return m;
}

struct msg conn_data(struct conn *c, const void *data, size_t len)
{
	struct msg m = conn_msg(c, SOVIA_DATA);

	m.payload = data;
	m.len = m.hdr.len = len;
	c->offset += len;
	return m;
}

/* Does the victim reset this connection, with this code? */
bool conn_reset(const struct conn *c, unsigned int code)
{
	struct lane *l = c->lane;

	return until(l, l->count[SOVIA_RESET] && l->reset_port == c->sport) && !l->dead &&
	       ntohl(l->last[SOVIA_RESET].code) == code;
}

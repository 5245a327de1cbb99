// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rogue_peer: a peer that violates every rule of the protocol, over real verbs.
 *
 *	rogue_peer OWN VICTIM GROUP [SEED [MESSAGES]]
 *
 * OWN and VICTIM are IPv4 addresses of the same host, on two devices, with the
 * module behind VICTIM only: no other program has a link from OWN.  The groups are
 * the table at the end.  The effect of each violation on the lane and the connection
 * has to be exactly what Documentation/protocol.rst says; exit status 1 if it is not.
 * The same seed makes the same choices.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/sovia.h>
#include "attack.h"

struct in_addr own_addr, victim_addr;
unsigned char noise[SLOT];
unsigned long messages = 1000;
static unsigned int failures, attacks;
uint16_t sink_port, closer_port, full_port;
static uint16_t closed_port = 9;

void expect(bool ok, const char *what, unsigned int a, unsigned int b)
{
	attacks++;
	if (ok)
		return;
	failures++;
	printf("failed: %s (%u, %u)\n", what, a, b);
}

/* ---- random numbers ---- */

static uint64_t chance_state;

uint32_t chance(uint32_t below)
{
	chance_state = chance_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (chance_state >> 33) % below;
}

static uint32_t any_number(void)
{
	static const uint32_t special[] = { 0, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff };

	return chance(2) ? special[chance(ARRAY_SIZE(special))] : chance(0x80000000) * 2 + chance(2);
}

/* ---- the victim's programs ---- */

int victim_socket(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, SOVIAPROTO_INET);

	if (fd < 0)
		die("socket");
	return fd;
}

int victim_listener(int backlog, uint16_t *port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_addr = victim_addr };
	socklen_t len = sizeof(addr);
	int fd = victim_socket();

	if (bind(fd, (void *)&addr, len) || listen(fd, backlog) || getsockname(fd, (void *)&addr, &len))
		die("listen");
	*port = ntohs(addr.sin_port);
	return fd;
}

/* The victim starts to connect to this peer. */
int victim_connect(void)
{
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr = victim_addr };
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = own_addr, .sin_port = htons(4000) };
	int fd = victim_socket();

	if (bind(fd, (void *)&from, sizeof(from)))
		die("bind");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!connect(fd, (void *)&to, sizeof(to)) || errno != EINPROGRESS)
		die("connect");
	return fd;
}

static void *read_all(void *arg)
{
	static char buf[65536];
	struct pollfd fds[1024] = { { .fd = (intptr_t)arg, .events = POLLIN } };
	int n = 1, i;

	for (;;) {
		poll(fds, n, -1);
		for (i = n - 1; i > 0; i--)
			if (fds[i].revents && recv(fds[i].fd, buf, sizeof(buf), MSG_DONTWAIT) <= 0) {
				close(fds[i].fd);
				fds[i] = fds[--n];
			}
		if (fds[0].revents && n < (int)ARRAY_SIZE(fds)) {
			fds[n] = (struct pollfd) { .fd = accept(fds[0].fd, NULL, NULL), .events = POLLIN };
			n += fds[n].fd >= 0;
		}
	}
	return NULL;
}

static void *close_all(void *arg)
{
	int fd;

	while ((fd = accept((intptr_t)arg, NULL, NULL)) >= 0)
		close(fd);
	return NULL;
}

static void start_program(void *(*program)(void *), uint16_t *port)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, program, (void *)(intptr_t)victim_listener(64, port)))
		die("thread");
}

static void start_programs(void)
{
	start_program(read_all, &sink_port);
	start_program(close_all, &closer_port);
	victim_listener(64, &full_port);
}

/* ---- the victim's state ---- */

/* Number of links that the victim has with this peer, in @state or in any. */
unsigned int victim_links(const char *state)
{
	char line[512], from[64], text[INET_ADDRSTRLEN];
	FILE *file = fopen("/proc/net/sovia/link", "r");
	unsigned int n = 0;

	if (!file)
		die("/proc/net/sovia/link");
	inet_ntop(AF_INET, &own_addr, text, sizeof(text));
	snprintf(from, sizeof(from), " ::ffff:%s verbs ", text);
	while (fgets(line, sizeof(line), file))
		n += strstr(line, from) && (!state || !strncmp(line, state, strlen(state)));
	fclose(file);
	return n;
}

/* Has it, perhaps after a while, at most @most? */
bool few_links(unsigned int most)
{
	double end = now() + PATIENCE;

	while (victim_links(NULL) > most && now() < end)
		pause_ms(100);
	return victim_links(NULL) <= most;
}

bool no_links(void)
{
	return few_links(0);
}

/* Events that the victim's program gets within @ms: POLLIN, POLLOUT, ... */
int sees(int fd, short events, int ms)
{
	struct pollfd poller = { .fd = fd, .events = events };

	return poll(&poller, 1, ms) > 0 ? poller.revents : 0;
}

/* ---- every type with every invalid field ---- */

/* Makes a message invalid; false if that does not apply to its type. */
struct oddity {
	const char *name;
	bool (*apply)(struct msg *m);
};

static bool has_ports(const struct msg *m) { return m->hdr.sport; }
static bool odd_version_0(struct msg *m) { m->hdr.version = 0; return true; }
static bool odd_version_next(struct msg *m) { m->hdr.version++; return true; }
static bool odd_version_255(struct msg *m) { m->hdr.version = 255; return true; }
static bool odd_type_0(struct msg *m) { m->hdr.type = 0; return true; }
static bool odd_type_gone(struct msg *m) { m->hdr.type = 5; return true; }
static bool odd_type_next(struct msg *m) { m->hdr.type = SOVIA_TYPE_COUNT; return true; }
static bool odd_type_255(struct msg *m) { m->hdr.type = 255; return true; }
static bool odd_len_more(struct msg *m) { m->hdr.len++; return true; }
static bool odd_len_huge(struct msg *m) { m->hdr.len = 0xffffffff; return true; }
static bool odd_len_wraps(struct msg *m) { m->hdr.len -= sizeof(struct sovia_hdr); return true; }
static bool odd_seq_old(struct msg *m) { m->hdr.seq--; return true; }
static bool odd_seq_next(struct msg *m) { m->hdr.seq++; return true; }
static bool odd_seq_far(struct msg *m) { m->hdr.seq += 0x80000000; return true; }
static bool odd_ack_future(struct msg *m) { m->hdr.ack += 1000; return true; }
static bool odd_ack_far(struct msg *m) { m->hdr.ack += 0x7fffffff; return true; }

static bool odd_len_none(struct msg *m)
{
	m->hdr.len = 0;
	return m->len;
}

static bool odd_sport(struct msg *m)
{
	m->hdr.sport = has_ports(m) ? 0 : 1;
	return true;
}

static bool odd_dport(struct msg *m)
{
	m->hdr.dport = m->hdr.dport ? 0 : 1;
	return true;
}

static bool odd_no_payload(struct msg *m)
{
	bool had = m->len;

	m->len = m->hdr.len = 0;
	return had;
}

static bool odd_more_payload(struct msg *m)
{
	m->payload = noise;
	m->len = m->hdr.len = m->hdr.type == SOVIA_DATA ? PAYLOAD + 1 : m->len + 1;
	return true;
}

static bool odd_short(struct msg *m)
{
	m->cut = m->len + 1;
	return true;
}

static bool odd_empty(struct msg *m)
{
	m->cut = m->len + sizeof(struct sovia_hdr);
	return true;
}

static const struct oddity oddities[] = {
	{ "version 0", odd_version_0 }, { "next version", odd_version_next }, { "version 255", odd_version_255 },
	{ "type 0", odd_type_0 }, { "type 5", odd_type_gone }, { "next type", odd_type_next },
	{ "type 255", odd_type_255 },
	{ "length one more", odd_len_more }, { "huge length", odd_len_huge }, { "length wraps", odd_len_wraps },
	{ "length 0", odd_len_none },
	{ "old number", odd_seq_old }, { "number skipped", odd_seq_next }, { "number far away", odd_seq_far },
	{ "acknowledges unsent messages", odd_ack_future }, { "acknowledges nonsense", odd_ack_far },
	{ "other sport", odd_sport }, { "other dport", odd_dport },
	{ "no payload", odd_no_payload }, { "payload too much", odd_more_payload },
	{ "shorter than a header", odd_short }, { "empty", odd_empty },
};

static const uint8_t types[] = {
	SOVIA_DATA, SOVIA_ACK, SOVIA_WAKEUP, SOVIA_FIN, SOVIA_CONN, SOVIA_ACCEPT, SOVIA_REFUSE, SOVIA_RESET,
	SOVIA_PROBE, SOVIA_URGENT,
};

/* A valid message of the type, for the connection if the type has ports. */
static struct msg good_message(struct conn *c, uint8_t type)
{
	struct msg m;

	if (type == SOVIA_ACK || type == SOVIA_PROBE)
		return msg_of(c->lane, type, 0, 0);
	if (type == SOVIA_CONN)
		return conn_request(c->lane, c->sport + 1, c->dport);
	m = conn_msg(c, type);
	if (type == SOVIA_DATA) {
		m.payload = noise;
		m.len = m.hdr.len = 7;
	}
	return m;
}

static void fields(void)
{
	unsigned int i, j, number = 0;
	struct lane l;
	struct conn c;
	struct msg m;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		for (j = 0; j < ARRAY_SIZE(oddities); j++) {
			/* All of them, or a random choice of MESSAGES. */
			if (chance(ARRAY_SIZE(types) * ARRAY_SIZE(oddities)) >= messages)
				continue;
			lane_open(&l, 1 + number++ % (SOVIA_LANES_MAX - 1));
			if (!conn_open(&c, &l, sink_port)) {
				expect(false, "no connection", i, j);
				lane_close(&l);
				continue;
			}
			m = good_message(&c, types[i]);
			if (oddities[j].apply(&m)) {
				msg_send(&l, &m);
				expect(lane_dies(&l), oddities[j].name, types[i], j);
			}
			lane_drop(&l);
		}
}

/* ---- compact DATA ---- */

static struct msg compact(struct conn *c, size_t len, uint32_t imm)
{
	struct msg m = msg_of(c->lane, SOVIA_DATA, c->sport, c->dport);

	m.compact = true;
	m.payload = noise;
	m.len = len;
	m.imm = imm;
	return m;
}

static uint32_t good_imm(const struct conn *c, size_t len)
{
	return sovia_imm(sovia_slot(c->sport, c->dport), 0, c->lane->tx_next, len, c->lane->rx_next);
}

static void compacts(void)
{
	static const struct {
		const char *name;
		size_t len;
		uint32_t flip;		/* bits of the immediate data */
		bool known;		/* its slot is in use */
	} odd[] = {
		{ "compact DATA of an empty slot", 7, 0, false },
		{ "empty compact DATA", 0, 0, true },
		{ "compact DATA too long", PAYLOAD + 1, 0, true },
		{ "compact DATA much too long", SLOT, 0, true },
		{ "compact DATA acknowledges unsent messages", 7, 0x400, true },
		{ "compact DATA longer than its check", 7 + 256, 0, true },
		{ "compact DATA of another number", 7, 0x80000, true },
		{ "compact DATA of a neighbour's slot", 7, 0x01000000, true },
		{ "compact DATA of a distant slot", 7, 0x80000000, true },
	};
	struct lane l;
	struct conn c;
	struct msg m;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		lane_open(&l, 1 + i);
		expect(conn_open(&c, &l, sink_port), "connection for compact DATA", i, 0);
		m = conn_data(&c, noise, 7);
		if (odd[i].known)
			msg_send(&l, &m);
		/* A valid one is accepted. */
		if (odd[i].known) {
			m = compact(&c, 7, good_imm(&c, 7));
			msg_send(&l, &m);
			expect(lane_alive(&l), "compact DATA", i, 0);
		}
		m = compact(&c, odd[i].len, good_imm(&c, 7) ^ odd[i].flip);
		msg_send(&l, &m);
		expect(lane_dies(&l), odd[i].name, i, 0);
		lane_drop(&l);
	}
}

/* ---- violations on connections ---- */

/* A connection that no program reads from. */
static void open_unread(struct conn *c, struct lane *l)
{
	expect(conn_open(c, l, full_port), "unread connection", 0, 0);
}

/* Sends as much as the victim's window allows on a connection. */
void fill_window(struct conn *c)
{
	uint32_t left;
	struct msg m;

	while ((left = c->limit - c->offset)) {
		m = conn_data(c, noise, left < PAYLOAD ? left : PAYLOAD);
		if (!msg_send(c->lane, &m))
			return;
	}
}

static void ends(struct lane *l)
{
	struct conn c;
	struct msg m;

	/* As much as the window allows, and one byte more. */
	open_unread(&c, l);
	fill_window(&c);
	expect(lane_alive(l), "a full window", 0, 0);
	m = conn_data(&c, noise, 1);
	msg_send(l, &m);
	expect(conn_reset(&c, SOVIA_CODE_PROTOCOL), "data beyond the window", 0, 0);

	open_unread(&c, l);
	m = conn_msg(&c, SOVIA_FIN);
	msg_send(l, &m);
	m = conn_data(&c, noise, 1);
	msg_send(l, &m);
	expect(conn_reset(&c, SOVIA_CODE_PROTOCOL), "DATA after FIN", 0, 0);

	/* A second FIN, as a message or as a flag of DATA. */
	open_unread(&c, l);
	m = conn_data(&c, noise, 3);
	m.hdr.flags = SOVIA_F_FIN | SOVIA_F_GONE | 0xfff0;
	msg_send(l, &m);
	m = conn_msg(&c, SOVIA_FIN);
	msg_send(l, &m);
	m = conn_msg(&c, SOVIA_FIN);
	msg_send(l, &m);
	expect(lane_alive(l), "FIN twice", 0, 0);
	m = conn_data(&c, noise, 3);
	m.hdr.flags = SOVIA_F_FIN;
	msg_send(l, &m);
	expect(conn_reset(&c, SOVIA_CODE_PROTOCOL), "DATA with FIN after FIN", 0, 0);
}

static void answers(struct lane *l)
{
	static const uint8_t unasked[] = { SOVIA_ACCEPT, SOVIA_REFUSE, SOVIA_WAKEUP, SOVIA_URGENT };
	unsigned int i, j, resets;
	struct conn c;
	struct msg m;

	open_unread(&c, l);
	for (i = 0; i < ARRAY_SIZE(unasked); i++)
		for (j = 0; j < 20; j++) {
			m = conn_msg(&c, unasked[i]);
			m.hdr.ref = j ? any_number() : m.hdr.seq;
			m.hdr.code = any_number();
			/* Never far forward: the window is not tested here. */
			m.hdr.window = chance(65536);
			until(l, l->tx_next - l->tx_una < WINDOW / 2);
			msg_send(l, &m);
		}
	resets = l->count[SOVIA_RESET];
	m = conn_data(&c, noise, 1);
	msg_send(l, &m);
	expect(lane_alive(l) && l->count[SOVIA_RESET] == resets, "a connection survives unsolicited messages", 0, 0);

	/* Many RESETs: the first one counts. */
	for (i = 0; i < 200; i++) {
		m = conn_msg(&c, SOVIA_RESET);
		m.hdr.code = i;
		until(l, l->tx_next - l->tx_una < WINDOW / 2);
		msg_send(l, &m);
	}
	m = conn_data(&c, noise, 1);
	msg_send(l, &m);
	expect(conn_reset(&c, SOVIA_CODE_NO_SOCKET), "a connection that was reset", 0, 0);

	/* Ports without a connection. */
	c.sport++;
	m = conn_data(&c, noise, 100);
	msg_send(l, &m);
	expect(conn_reset(&c, SOVIA_CODE_NO_SOCKET), "DATA without a connection", 0, 0);
	m = conn_msg(&c, SOVIA_ACCEPT);
	c.sport = m.hdr.sport = 7;
	msg_send(l, &m);
	expect(conn_reset(&c, SOVIA_CODE_NO_SOCKET), "ACCEPT without a connection", 0, 0);
}

static bool refused(struct lane *l, const struct msg *m, unsigned int code)
{
	unsigned int refuses = l->count[SOVIA_REFUSE];

	msg_send(l, m);
	return until(l, l->count[SOVIA_REFUSE] != refuses) && ntohl(l->last[SOVIA_REFUSE].code) == code;
}

static void requests(struct lane *l, struct lane *other)
{
	struct sovia_conn_body body;
	struct conn c, c2;
	struct msg m;

	m = conn_request(l, 77, closed_port);
	expect(refused(l, &m, SOVIA_CODE_NO_LISTENER), "CONN to a port without a listener", 0, 0);
	m = conn_request(l, 77, sink_port);
	memcpy(&body, m.payload, sizeof(body));
	body.saddr[15]++;
	m.payload = &body;
	expect(refused(l, &m, SOVIA_CODE_BAD_ADDRESS), "CONN from another address", 0, 0);
	m = conn_request(l, 77, sink_port);
	body.saddr[15]--;
	body.daddr[0] = 1;
	m.payload = &body;
	expect(refused(l, &m, SOVIA_CODE_BAD_ADDRESS), "CONN to another address", 0, 0);

	/* A connection of another lane is unknown on this one, and is not affected. */
	open_unread(&c, other);
	c2 = c;
	c2.lane = l;
	m = conn_data(&c2, noise, 10);
	msg_send(l, &m);
	expect(conn_reset(&c2, SOVIA_CODE_NO_SOCKET), "DATA for another lane's connection", 0, 0);
	m = conn_msg(&c2, SOVIA_RESET);
	msg_send(l, &m);
	m = conn_data(&c, noise, 10);
	msg_send(other, &m);
	expect(lane_alive(l) && lane_alive(other) && !other->count[SOVIA_RESET], "another lane's connection", 0, 0);

	/* The same CONN repeatedly: the last one counts. */
	for (unsigned int i = 0; i < 100; i++) {
		m = conn_request(l, 78, sink_port);
		until(l, l->tx_next - l->tx_una < WINDOW / 2);
		msg_send(l, &m);
		lane_ack(l);
	}
	expect(lane_alive(l), "the same CONN again", 0, 0);
}

/* More connections than are accepted: the backlog applies, and the rest get REFUSE with BUSY. */
static void flood(struct lane *l)
{
	unsigned int i, accepts = l->count[SOVIA_ACCEPT], refuses = l->count[SOVIA_REFUSE];
	uint16_t port;
	int fd = victim_listener(16, &port);
	struct msg m;

	for (i = 0; i < 1000 && !l->dead; i++) {
		m = conn_request(l, 2000 + i, port);
		until(l, l->tx_next - l->tx_una < WINDOW / 2);
		msg_send(l, &m);
		lane_ack(l);
	}
	expect(lane_alive(l), "a flood of CONN", i, 0);
	accepts = l->count[SOVIA_ACCEPT] - accepts;
	refuses = l->count[SOVIA_REFUSE] - refuses;
	expect(accepts >= 16 && accepts <= 17, "a backlog of 16 has", accepts, refuses);
	expect(refuses && ntohl(l->last[SOVIA_REFUSE].code) == SOVIA_CODE_BUSY, "the rest is refused", accepts, refuses);
	close(fd);
	expect(lane_alive(l), "the end of a full listener", 0, 0);
}

static void connections(void)
{
	struct lane l, other;

	lane_open(&l, 1);
	lane_open(&other, 2);
	ends(&l);
	answers(&l);
	requests(&l, &other);
	flood(&l);
	expect(lane_alive(&l) && lane_alive(&other), "lanes without violations", 0, 0);
	lane_close(&l);
	lane_close(&other);
}

/* ---- verbs that the protocol does not use ---- */

static void verbs(void)
{
	static const struct {
		const char *name;
		enum ibv_wr_opcode opcode;
		size_t len;
	} odd[] = {
		{ "empty RDMA write with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM, 0 },
		{ "RDMA write with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM, 64 },
		{ "RDMA write", IBV_WR_RDMA_WRITE, 64 },
		{ "RDMA read", IBV_WR_RDMA_READ, 64 },
		{ "longer than any descriptor", IBV_WR_SEND, PAYLOAD + sizeof(struct sovia_hdr) + 4000 },
		{ "a header's length, as immediate data", IBV_WR_SEND_WITH_IMM, sizeof(struct sovia_hdr) },
	};
	struct lane l;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(odd); i++) {
		lane_open(&l, 1 + i);
		lane_post(&l, noise, odd[i].len, odd[i].opcode, 0);
		expect(lane_dies(&l), odd[i].name, i, 0);
		lane_drop(&l);
	}

	/* A peer that receives nothing, and sends until replies pile up. */
	lane_open(&l, 1);
	l.deaf = true;
	while (!l.dead && l.tx_next < 100000) {
		struct msg m = msg_of(&l, SOVIA_PROBE, 0, 0);

		m.hdr.flags = SOVIA_F_ACKREQ;
		msg_send(&l, &m);
	}
	expect(lane_dies(&l), "a peer that does not receive", l.tx_next, 0);
	lane_drop(&l);
}

/* ---- the connection manager ---- */

/* SOVIA_SLOTS_EACH of the victim. */
#define PEER_SETUPS	8

static void manager(void)
{
	struct sovia_hello hello;
	struct lane l[SOVIA_LANES_MAX];
	unsigned int i;
	pid_t child;

	/* Links that stay half open are given up, even many at once. */
	for (i = 0; i < ARRAY_SIZE(l); i++) {
		hello = peer_hello(i);
		expect(lane_open_with(&l[i], &hello, sizeof(hello), false) == (i < PEER_SETUPS ? UP : REFUSED),
		       "a half-open link", i, l[i].reject_code);
	}
	expect(victim_links("CONNECTING"), "half-open links", victim_links(NULL), 0);
	expect(no_links(), "the end of half-open links", victim_links(NULL), 0);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		lane_drop(&l[i]);

	/* A new request does not have to wait for the end of a half-open link. */
	hello = peer_hello(3);
	expect(lane_open_with(&l[0], &hello, sizeof(hello), false) == UP, "a half-open link", 3, 0);
	expect(lane_open_with(&l[1], &hello, sizeof(hello), true) == UP && lane_alive(&l[1]), "a link in place of a half-open one",
	       l[1].reject_code, 0);
	lane_drop(&l[0]);
	lane_close(&l[1]);

	/* Dropped as soon as it is established, with or without a disconnect. */
	for (i = 0; i < ARRAY_SIZE(l); i++) {
		lane_open(&l[0], i);
		if (i % 2)
			lane_close(&l[0]);
		else
			lane_drop(&l[0]);
	}
	expect(no_links(), "the end of links dropped at once", victim_links(NULL), 0);

	/* A second request for an established lane: rejected as long as the lane answers. */
	lane_open(&l[0], 3);
	for (i = 0; i < 20; i++) {
		hello = peer_hello(3);
		expect(lane_open_with(&l[1], &hello, sizeof(hello), true) == REFUSED &&
		       l[1].reject_code == SOVIA_CODE_BUSY, "a second request for an established lane", i, l[1].reject_code);
		lane_drop(&l[1]);
		expect(lane_alive(&l[0]), "an established lane after a second request", i, 0);
	}
	l[0].silent = true;
	lane_open(&l[1], 3);
	expect(lane_dies(&l[0]) && lane_alive(&l[1]), "a lane in place of a silent one", 0, 0);
	lane_drop(&l[0]);
	lane_close(&l[1]);

	/* A peer killed during set-ups. */
	child = fork();
	if (!child) {
		for (i = 0; ; i++) {
			hello = peer_hello(i % SOVIA_LANES_MAX);
			lane_open_with(&l[0], &hello, sizeof(hello), i % 3);
		}
	}
	pause_ms(2000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	expect(no_links(), "the end of links of a killed peer", victim_links(NULL), 0);
}

/* ---- the peer as the server ---- */

/* The victim connects to this peer.  Returns its socket; @c is this peer's connection. */
static int victim_connects(struct lane *l, struct conn *c, uint32_t *ref)
{
	unsigned int conns = l->count[SOVIA_CONN];
	int fd = victim_connect();

	if (!until(l, l->count[SOVIA_CONN] != conns))
		expect(false, "no CONN from the victim", 0, 0);
	*c = (struct conn) {
		.lane = l, .sport = ntohs(l->last[SOVIA_CONN].dport), .dport = ntohs(l->last[SOVIA_CONN].sport),
	};
	*ref = ntohl(l->last[SOVIA_CONN].seq);
	return fd;
}

/* A message before ACCEPT must not affect the connection that follows. */
static void too_early(struct lane *l, uint8_t type, const char *name)
{
	char buf[100];
	struct conn c;
	struct msg m;
	uint32_t ref;
	int fd = victim_connects(l, &c, &ref), got;

	m = type == SOVIA_DATA ? conn_data(&c, "early", 5) : conn_msg(&c, type);
	/* Replies to another CONN. */
	m.hdr.ref = ref - 1;
	m.hdr.code = SOVIA_CODE_NO_LISTENER;
	if (type == SOVIA_WAKEUP)
		m.hdr.window = 0x7fffffff;
	msg_send(l, &m);
	expect(lane_alive(l) && !sees(fd, POLLIN | POLLOUT, 0), name, type, 0);
	m = conn_msg(&c, SOVIA_ACCEPT);
	m.hdr.ref = ref;
	msg_send(l, &m);
	/* A second ACCEPT. */
	m.hdr.seq++;
	m.hdr.window = 0;
	msg_send(l, &m);
	expect(sees(fd, POLLOUT, PATIENCE * 1000) == POLLOUT, name, type, 1);
	m = conn_data(&c, "hello", 5);
	msg_send(l, &m);
	sees(fd, POLLIN, PATIENCE * 1000);
	got = recv(fd, buf, sizeof(buf), 0);
	expect(got == 5 && !memcmp(buf, "hello", 5), name, type, 2);
	close(fd);
	expect(lane_alive(l), name, type, 3);
}

static void server(void)
{
	static const struct {
		uint8_t type;
		const char *name;
	} early[] = {
		{ SOVIA_FIN, "FIN before ACCEPT" }, { SOVIA_DATA, "DATA before ACCEPT" },
		{ SOVIA_RESET, "RESET before ACCEPT" }, { SOVIA_WAKEUP, "WAKEUP before ACCEPT" },
		{ SOVIA_URGENT, "URGENT before ACCEPT" }, { SOVIA_ACCEPT, "ACCEPT of another CONN" },
		{ SOVIA_REFUSE, "REFUSE of another CONN" },
	};
	struct lane l;
	struct conn c;
	struct msg m;
	uint32_t ref;
	int fd, err = 0;
	socklen_t len = sizeof(err);
	unsigned int i;

	/* The victim's own connections use lane 0. */
	lane_open(&l, 0);
	for (i = 0; i < ARRAY_SIZE(early); i++)
		too_early(&l, early[i].type, early[i].name);

	/* An unknown code is a refusal like any other. */
	fd = victim_connects(&l, &c, &ref);
	m = conn_msg(&c, SOVIA_REFUSE);
	m.hdr.ref = ref;
	m.hdr.code = 0xffffffff;
	msg_send(&l, &m);
	sees(fd, POLLOUT, PATIENCE * 1000);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	expect(err == ECONNREFUSED, "REFUSE with an unknown code", err, 0);
	close(fd);

	/* Refused with BUSY, repeatedly. */
	fd = victim_connects(&l, &c, &ref);
	for (i = 0; i < 100; i++) {
		m = conn_msg(&c, SOVIA_REFUSE);
		m.hdr.ref = ntohl(l.last[SOVIA_CONN].seq);
		m.hdr.code = SOVIA_CODE_BUSY;
		until(&l, l.tx_next - l.tx_una < WINDOW / 2);
		msg_send(&l, &m);
	}
	expect(lane_alive(&l) && !sees(fd, POLLOUT, 0), "repeated REFUSE with BUSY", 0, 0);
	close(fd);
	expect(lane_alive(&l), "the end of a connect()", 0, 0);
	lane_close(&l);
}

/* ---- at random ---- */

#define CROWD	3

/* One lane of the crowd, and its state. */
struct victim_lane {
	struct lane l;
	bool open;
	struct conn conns[4];
	bool slots[SOVIA_SLOTS];
};

static void reopen(struct victim_lane *v, unsigned int index)
{
	unsigned int i;

	memset(v, 0, sizeof(*v));
	/* Each has its own lane numbers, or one would end another. */
	lane_open(&v->l, 1 + index + CROWD * chance((SOVIA_LANES_MAX - 1) / CROWD));
	v->open = true;
	for (i = 0; i < ARRAY_SIZE(v->conns); i++)
		if (!conn_open(&v->conns[i], &v->l, chance(4) ? sink_port : full_port))
			v->conns[i] = (struct conn) { .lane = &v->l, .sport = 1 + chance(65535), .dport = 1 + chance(65535) };
}

static void random_hello(unsigned int index)
{
	struct sovia_hello hello = peer_hello(1 + index);
	unsigned char *byte = (unsigned char *)&hello;
	struct lane l;

	byte[chance(sizeof(hello))] = chance(256);
	/* Not the number of another one of the crowd, which would end. */
	if (hello.lane < SOVIA_LANES_MAX)
		hello.lane = 1 + index;
	/* Any outcome is fine. */
	if (lane_open_with(&l, &hello, chance(4) ? sizeof(hello) : chance(sizeof(hello) + 1), chance(4)) == UP && chance(2))
		lane_close(&l);
	else
		lane_drop(&l);
}

/* Resumes the link, with a valid or invalid hello.  A lane that must work is used on. */
static void random_resume(struct victim_lane *v)
{
	struct sovia_hello hello = resume_hello(&v->l);
	unsigned char *byte = (unsigned char *)&hello;
	bool good = chance(2);
	enum outcome how;

	if (!good)
		byte[chance(sizeof(hello))] ^= 1 + chance(255);
	how = lane_resume(&v->l, &hello);
	expect(!good || (how == UP && lane_alive(&v->l)), "a resumed lane", how, v->l.reject_code);
	v->open = good && how == UP;
	if (v->open)
		memset(v->slots, 0, sizeof(v->slots));
	else
		lane_drop(&v->l);
}

/* A message that does not end the lane, though many of its fields make no sense. */
static struct msg odd_message(struct victim_lane *v)
{
	struct conn *c = &v->conns[chance(ARRAY_SIZE(v->conns))];
	struct msg m = good_message(c, types[chance(ARRAY_SIZE(types))]);

	if (m.hdr.type == SOVIA_DATA)
		m.len = m.hdr.len = 1 + chance(chance(3) ? 100 : PAYLOAD);
	if (m.hdr.type == SOVIA_CONN && !chance(3))
		m.payload = noise;
	m.hdr.flags = chance(2) ? 0 : chance(65536);
	m.hdr.ack -= chance(4) ? 0 : chance(10);
	m.hdr.window = chance(2) ? 65536 : any_number();
	m.hdr.ref = any_number();
	m.hdr.code = any_number();
	if (has_ports(&m) && !chance(4)) {
		m.hdr.sport = 1 + chance(65535);
		m.hdr.dport = chance(2) ? sink_port : 1 + chance(65535);
	}
	if (m.hdr.type == SOVIA_DATA && v->slots[sovia_slot(m.hdr.sport, m.hdr.dport)] && chance(2)) {
		m.compact = true;
		m.imm = sovia_imm(sovia_slot(m.hdr.sport, m.hdr.dport), m.hdr.flags, m.hdr.seq,
				  m.len, v->l.rx_next);
	} else if (m.hdr.type == SOVIA_DATA) {
		v->slots[sovia_slot(m.hdr.sport, m.hdr.dport)] = true;
	}
	return m;
}

static void random_message(struct victim_lane *v)
{
	struct msg m;

	if (!until(&v->l, v->l.tx_next - v->l.tx_una < WINDOW / 2)) {
		expect(false, "a lane that is dead or does not acknowledge", v->l.tx_next, v->l.dead);
		lane_drop(&v->l);
		v->open = false;
		return;
	}
	m = odd_message(v);
	if (chance(25) || m.compact) {
		msg_send(&v->l, &m);
		lane_ack(&v->l);
		return;
	}
	while (!oddities[chance(ARRAY_SIZE(oddities))].apply(&m))
		;
	msg_send(&v->l, &m);
	expect(lane_dies(&v->l), "a message that must end the lane", m.hdr.type, m.hdr.len);
	lane_drop(&v->l);
	v->open = false;
}

static void randomly(void)
{
	static struct victim_lane crowd[CROWD];
	unsigned long i;
	unsigned int k;

	for (i = 0; i < messages; i++) {
		k = chance(CROWD);
		if (!crowd[k].open)
			reopen(&crowd[k], k);
		random_message(&crowd[k]);
		attacks++;
		if (crowd[k].open && !chance(100))
			random_resume(&crowd[k]);
		if (crowd[k].open && !chance(200)) {
			/* A random hello may end its own lane. */
			if (chance(2))
				lane_close(&crowd[k].l);
			else
				lane_drop(&crowd[k].l);
			crowd[k].open = false;
			random_hello(k);
		}
	}
	for (k = 0; k < CROWD; k++)
		if (crowd[k].open) {
			expect(lane_alive(&crowd[k].l), "a lane after all attacks", k, 0);
			lane_close(&crowd[k].l);
		}
	expect(no_links(), "the end of all links", victim_links(NULL), 0);
}

/* ---- groups ---- */

static const struct {
	const char *name;
	void (*run)(void);
} groups[] = {
	{ "hellos", hellos },
	{ "resumes", resumes },
	{ "answering", answering },
	{ "fields", fields },
	{ "compact", compacts },
	{ "connections", connections },
	{ "verbs", verbs },
	{ "manager", manager },
	{ "server", server },
	{ "links", links },
	{ "parks", parks },
	{ "parked", parked },
	{ "crowd", crowd },
	{ "unacknowledged", unacknowledged },
	{ "untaken", untaken },
	{ "hoard", hoard },
	{ "random", randomly },
};

int main(int argc, char **argv)
{
	unsigned int i, j;

	if (argc < 4 || argc > 6 || inet_pton(AF_INET, argv[1], &own_addr) != 1 ||
	    inet_pton(AF_INET, argv[2], &victim_addr) != 1) {
		fprintf(stderr, "usage: rogue_peer OWN VICTIM GROUP [SEED [MESSAGES]]\n");
		return 2;
	}
	peer_addresses(argv[1], argv[2]);
	chance_state = argc > 4 ? strtoull(argv[4], NULL, 0) : 1;
	chance(2);
	if (argc > 5)
		messages = strtoul(argv[5], NULL, 0);
	for (i = 0; i < sizeof(noise); i++)
		noise[i] = chance(256);
	signal(SIGPIPE, SIG_IGN);
	for (j = 0; j < ARRAY_SIZE(groups) && strcmp(groups[j].name, argv[3]); j++)
		;
	if (j == ARRAY_SIZE(groups)) {
		fprintf(stderr, "no group %s\n", argv[3]);
		return 2;
	}
	/* Where this program listens, the module must not. */
	if (groups[j].run == answering)
		peer_listen();
	else
		start_programs();
	if (groups[j].run == parks || groups[j].run == parked)
		peer_features = SOVIA_FEATURE_PARK;
	peer_meet();
	/* The victim asks before it connects. */
	if (groups[j].run == answering || groups[j].run == server)
		peer_answers();
	groups[j].run();
	if (groups[j].run == answering || groups[j].run == server)
		end_to_answer();
	printf("%s: %u attacks, %u failures\n", groups[j].name, attacks, failures);
	return failures ? 1 : 0;
}

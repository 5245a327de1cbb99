// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Hellos, in requests and in replies to the victim's: Documentation/recovery.rst. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "attack.h"

static void hello_refused(const struct sovia_hello *hello, size_t len, const char *what, unsigned int a)
{
	struct lane l;
	enum outcome how = lane_open_with(&l, hello, len, true);

	expect(how == REFUSED && l.reject_code == SOVIA_CODE_PROTOCOL, what, a, how);
	lane_drop(&l);
}

void hellos(void)
{
	static const unsigned int versions[] = { 0, 1, SOVIA_WIRE_VERSION + 1, 255 };
	static const unsigned int windows[] = { 0, SOVIA_WINDOW_MAX + 1, 0xffff };
	static const unsigned int payloads[] = {
		0, 1, SOVIA_PAYLOAD_MIN - 1, SOVIA_PAYLOAD_MAX + 1, 0x80000000, 0xffffffff,
	};
	static const unsigned int lanes[] = { SOVIA_LANES_MAX, 128, 255 };
	struct sovia_hello good = peer_hello(1), bad;
	enum outcome how;
	struct lane l;
	unsigned int i, code;

	bad = good, bad.magic = ~good.magic;
	hello_refused(&bad, sizeof(bad), "hello of another magic", 0);
	for (i = 0; i < ARRAY_SIZE(versions); i++) {
		bad = good, bad.version = versions[i];
		hello_refused(&bad, sizeof(bad), "hello of version", versions[i]);
	}
	for (i = 0; i < ARRAY_SIZE(windows); i++) {
		bad = good, bad.window = htons(windows[i]);
		hello_refused(&bad, sizeof(bad), "hello with window", windows[i]);
	}
	for (i = 0; i < ARRAY_SIZE(payloads); i++) {
		bad = good, bad.payload = htonl(payloads[i]);
		hello_refused(&bad, sizeof(bad), "hello with payload", payloads[i]);
	}
	for (i = 0; i < ARRAY_SIZE(lanes); i++) {
		bad = good, bad.lane = lanes[i];
		hello_refused(&bad, sizeof(bad), "hello for lane", lanes[i]);
	}
	bad = good, bad.id = 0;
	hello_refused(&bad, sizeof(bad), "hello without an ID", 0);
	bad = good, bad.rx_next = htonl(1);
	hello_refused(&bad, sizeof(bad), "hello for a new link that has received messages", 0);
	for (i = NO_SEAL; i < WRONG_SEALS; i++) {
		seal_wrongly(i);
		how = lane_open_with(&l, &good, sizeof(good), true);
		/* One that is not new is a repetition: its sender is to make another one. */
		code = i == WRONG_GENERATION ? SOVIA_CODE_BUSY : SOVIA_CODE_NO_LINK;
		expect(how == REFUSED && l.reject_code == code, "a request with a wrong MAC", i, l.reject_code);
		lane_drop(&l);
	}
	/* Cut before the significant bytes of the payload limit: the rest arrives as zeros. */
	for (i = 0; i <= offsetof(struct sovia_hello, payload) + 2; i += 2)
		hello_refused(&good, i, "hello of length", i);
}

/* ---- existing links ---- */

/* Does the connection still work, and was no connection reset? */
static bool goes_on(struct lane *l, struct conn *c)
{
	unsigned int resets = l->count[SOVIA_RESET];
	struct msg m = conn_data(c, noise, 5);

	return msg_send(l, &m) && lane_alive(l) && l->count[SOVIA_RESET] == resets;
}

/* A resume request that matches no link; existing links are not affected. */
static void resume_refused(struct conn *c, struct sovia_hello hello, unsigned int code, const char *what)
{
	struct lane l;
	enum outcome how = lane_open_with(&l, &hello, sizeof(hello), true);

	expect(how == REFUSED && l.reject_code == code, what, how, l.reject_code);
	lane_drop(&l);
	expect(goes_on(c->lane, c), what, 100, 0);
}

static void resume_others(struct conn *c, const struct lane *other)
{
	const struct sovia_hello good = resume_hello(c->lane), strange = resume_hello(other);
	struct sovia_hello bad;

	bad = good, bad.peer_id ^= 1;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming another link of the victim");
	bad = good, bad.peer_id = strange.peer_id;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming another lane's link");
	bad = good, bad.id ^= 1;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming with a wrong ID");
	bad = good, bad.id = strange.id;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming with another lane's ID");
	bad = good, bad.id = good.peer_id, bad.peer_id = good.id;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming with the victim's ID");
	bad = strange, bad.lane = good.lane;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming in another lane");
	bad = good, bad.lane = SOVIA_LANES_MAX - 1;
	resume_refused(c, bad, SOVIA_CODE_NO_LINK, "resuming in a lane that does not exist");
	bad = good, bad.id = 0;
	resume_refused(c, bad, SOVIA_CODE_PROTOCOL, "resuming without an ID");
	bad = good, bad.version++;
	resume_refused(c, bad, SOVIA_CODE_PROTOCOL, "resuming with another version");
}

static bool answered_well(const struct lane *l, const struct sovia_hello *hello)
{
	return l->heard.id == hello->peer_id && l->heard.peer_id == hello->id;
}

/* Valid resume requests while the victim's lane is up: it accepts them. */
static void resume_well(struct conn *c)
{
	struct lane *l = c->lane, half;
	struct sovia_hello hello;
	unsigned int i;

	for (i = 0; i < 20; i++) {
		hello = resume_hello(l);
		expect(lane_resume(l, &hello) == UP && answered_well(l, &hello), "resuming", i, l->reject_code);
		expect(goes_on(l, c), "a connection after resuming", i, 0);
	}
	/* A resume left half open, then a complete one. */
	hello = resume_hello(l);
	expect(lane_open_with(&half, &hello, sizeof(hello), false) == UP, "a half-open resume", 0, 0);
	expect(lane_resume(l, &hello) == UP && goes_on(l, c), "resuming after an incomplete attempt", 0, l->reject_code);
	lane_drop(&half);
}

/* The victim gives up the link: the lane ends, and it cannot be resumed any more. */
static void resume_ends(unsigned int number, void (*spoil)(struct sovia_hello *), const char *what)
{
	struct sovia_hello good, bad;
	struct lane l;
	struct conn c;

	lane_open(&l, number);
	expect(conn_open(&c, &l, full_port) && goes_on(&l, &c), what, 0, 0);
	bad = good = resume_hello(&l);
	spoil(&bad);
	expect(lane_resume(&l, &bad) == UP && lane_dies(&l), what, 1, l.reject_code);
	lane_drop(&l);
	expect(lane_open_with(&l, &good, sizeof(good), true) == REFUSED && l.reject_code == SOVIA_CODE_NO_LINK, what, 2,
	       l.reject_code);
	lane_drop(&l);
}

static void spoil_next(struct sovia_hello *hello) { hello->rx_next = htonl(ntohl(hello->rx_next) + 1); }
static void spoil_far(struct sovia_hello *hello) { hello->rx_next = htonl(ntohl(hello->rx_next) + 0x80000000); }
static void spoil_old(struct sovia_hello *hello) { hello->rx_next = htonl(ntohl(hello->rx_next) - 1); }
static void spoil_start(struct sovia_hello *hello) { hello->rx_next = 0; }
static void spoil_payload(struct sovia_hello *hello) { hello->payload = htonl(PAYLOAD - 1); }

static const struct {
	void (*spoil)(struct sovia_hello *hello);
	const char *name;
} spoilers[] = {
	{ spoil_next, "rx_next one too large" }, { spoil_far, "rx_next far too large" },
	{ spoil_old, "rx_next one too small" }, { spoil_start, "rx_next 0" },
	{ spoil_payload, "a smaller payload" },
};

void resumes(void)
{
	struct sovia_hello hello;
	struct lane l, other;
	struct conn c, c2;
	struct msg m;
	unsigned int i;

	lane_open(&l, 1);
	lane_open(&other, 2);
	expect(conn_open(&c, &l, sink_port) && conn_open(&c2, &other, sink_port), "connections", 0, 0);
	resume_others(&c, &other);
	resume_well(&c);
	for (i = 0; i < ARRAY_SIZE(spoilers); i++)
		resume_ends(3 + i, spoilers[i].spoil, spoilers[i].name);

	/* Compact DATA that refers to a slot of the previous lane. */
	hello = resume_hello(&l);
	expect(lane_resume(&l, &hello) == UP, "resuming", 100, l.reject_code);
	m = msg_of(&l, SOVIA_DATA, c.sport, c.dport);
	m.compact = true;
	m.payload = noise;
	m.len = 7;
	m.imm = sovia_imm(sovia_slot(c.sport, c.dport), 0, l.tx_next, m.len, l.rx_next);
	msg_send(&l, &m);
	expect(lane_dies(&l), "compact DATA of the previous lane", 0, 0);
	lane_drop(&l);

	/* A resume left half open: the link ends when the victim cannot reach the peer. */
	expect(goes_on(&other, &c2), "an unrelated lane", 0, 0);
	hello = resume_hello(&other);
	expect(lane_open_with(&l, &hello, sizeof(hello), false) == UP, "a half-open resume", 1, 0);
	lane_drop(&l);
	lane_drop(&other);
	expect(no_links(), "the end of all links", victim_links(NULL), 0);
}

/* ---- requests of the victim ---- */

/* Number of the victim's resume requests to a peer that refuses them (Documentation/recovery.rst). */
#define REFUSALS	16

static int error_of(int fd)
{
	int err = 0;
	socklen_t len = sizeof(err);

	sees(fd, POLLIN, PATIENCE * 1000);
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len);
	return err;
}

/* The reply of a correct peer. */
static struct sovia_hello answer_to(const struct lane *l, const struct lane *before)
{
	struct sovia_hello hello = before ? before->said : peer_hello(l->heard.lane);

	hello.peer_id = l->heard.id;
	hello.rx_next = htonl(before ? before->rx_next : 0);
	return hello;
}

static void spoil_magic(struct sovia_hello *hello) { hello->magic = 0; }
static void spoil_version(struct sovia_hello *hello) { hello->version--; }
static void spoil_lane(struct sovia_hello *hello) { hello->lane++; }
static void spoil_no_window(struct sovia_hello *hello) { hello->window = 0; }
static void spoil_no_payload(struct sovia_hello *hello) { hello->payload = 0; }
static void spoil_id(struct sovia_hello *hello) { hello->id = 0; }
static void spoil_other_id(struct sovia_hello *hello) { hello->id ^= 1; }
static void spoil_peer_id(struct sovia_hello *hello) { hello->peer_id = 0; }
static void spoil_other_peer_id(struct sovia_hello *hello) { hello->peer_id ^= 1; }

/* Invalid replies to the first request: connect() is refused. */
static void answer_badly(void)
{
	static void (*const spoil[])(struct sovia_hello *) = {
		spoil_magic, spoil_version, spoil_lane, spoil_no_window, spoil_no_payload, spoil_id, spoil_peer_id,
		spoil_other_peer_id, spoil_next, spoil_far,
	};
	struct sovia_hello hello;
	struct lane l;
	unsigned int i;
	int fd, err, cut;

	/* And wrong MACs, and hellos that are cut before the significant byte of the window. */
	for (i = 0; i < ARRAY_SIZE(spoil) + WRONG_SEALS - 1 + 4; i++) {
		cut = i - ARRAY_SIZE(spoil) - (WRONG_SEALS - 1);
		fd = victim_connect();
		expect(lane_asked(&l) && l.heard.id && !l.heard.peer_id && !l.heard.rx_next, "a request of the victim", i, 0);
		hello = answer_to(&l, NULL);
		if (i < ARRAY_SIZE(spoil))
			spoil[i](&hello);
		else if (cut < 0)
			seal_wrongly(i - ARRAY_SIZE(spoil) + 1);
		expect(lane_answer_ends(&l, &hello, cut < 0 ? sizeof(hello) : 2 * (size_t)cut),
		       "an invalid reply", i, 0);
		err = error_of(fd);
		expect(err == ECONNREFUSED, "connect() with an invalid reply", i, err);
		close(fd);
		lane_drop(&l);
	}
}

/* The victim opens a connection to us; data is sent back on it. */
static int answer_well(struct lane *l, struct conn *c)
{
	struct sovia_hello hello;
	struct msg m;
	int fd = victim_connect();

	expect(lane_asked(l), "a request of the victim", 0, 0);
	hello = answer_to(l, NULL);
	expect(lane_answer(l, &hello, sizeof(hello)) && until(l, l->count[SOVIA_CONN]), "a lane set up by the victim", 0, 0);
	*c = (struct conn) {
		.lane = l, .sport = ntohs(l->last[SOVIA_CONN].dport), .dport = ntohs(l->last[SOVIA_CONN].sport),
	};
	m = conn_msg(c, SOVIA_ACCEPT);
	m.hdr.ref = ntohl(l->last[SOVIA_CONN].seq);
	msg_send(l, &m);
	expect(sees(fd, POLLOUT, PATIENCE * 1000) == POLLOUT && lane_alive(l), "a connection opened by the victim", 0, 0);
	return fd;
}

/* The victim loses the lane and requests another one with the same sequence numbers. */
static bool asked_again(struct lane *l, struct lane *before)
{
	FILE *file = fopen("/sys/kernel/debug/sovia/break", "w");
	char text[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &own_addr, text, sizeof(text));
	if (!file || fputs(text, file) < 0 || fclose(file))
		die("break");
	return lane_dies(before) && lane_asked(l) && l->heard.id == before->heard.id &&
	       l->heard.peer_id == before->said.id && ntohl(l->heard.rx_next) == before->tx_next;
}

static void answer_resume(void (*spoil)(struct sovia_hello *), unsigned int number)
{
	struct sovia_hello hello;
	struct lane before, l;
	struct conn c;
	int fd = answer_well(&before, &c), err;

	expect(asked_again(&l, &before), "a resume request", number, 0);
	hello = answer_to(&l, &before);
	spoil(&hello);
	expect(lane_answer_ends(&l, &hello, sizeof(hello)), "a wrong reply to a resume request", number, 0);
	err = error_of(fd);
	expect(err == ECONNRESET, "a connection after a wrong reply", number, err);
	close(fd);
	lane_drop(&before);
	lane_drop(&l);
}

/* All its requests are refused with @code, or, if 0, with an invalid reason. */
static void refuse_resume(unsigned int code, unsigned int times)
{
	const struct sovia_reject rej = { .magic = htonl(code ? SOVIA_WIRE_MAGIC : 0), .code = htonl(code) };
	struct lane before, l;
	struct conn c;
	int fd = answer_well(&before, &c), err;
	unsigned int i;

	expect(asked_again(&l, &before), "a resume request", 100 + code, 0);
	for (i = 1; i < times; i++) {
		lane_refuse(&l, &rej, sizeof(rej));
		expect(lane_asked(&l), "another resume request", code, i);
	}
	lane_refuse(&l, &rej, sizeof(rej));
	err = error_of(fd);
	expect(err == ECONNRESET, "a connection after refusals", code, err);
	close(fd);
	lane_drop(&before);
}

/* Refused with BUSY, and then accepted: nothing is lost. */
static void delay_resume(void)
{
	const struct sovia_reject rej = { .magic = htonl(SOVIA_WIRE_MAGIC), .code = htonl(SOVIA_CODE_BUSY) };
	const struct sovia_reject gone = { .magic = htonl(SOVIA_WIRE_MAGIC), .code = htonl(SOVIA_CODE_NO_LINK) };
	struct sovia_hello hello;
	struct lane before, l;
	struct conn c;
	struct msg m;
	char buf[8];
	int fd = answer_well(&before, &c);

	expect(asked_again(&l, &before), "a resume request", 200, 0);
	lane_refuse(&l, &rej, sizeof(rej));
	expect(lane_asked(&l), "a request after a pause", 0, 0);
	hello = answer_to(&l, &before);
	expect(lane_answer(&l, &hello, sizeof(hello)), "a resumed lane", 0, 0);
	c.lane = &l;
	m = conn_data(&c, "hello", 5);
	msg_send(&l, &m);
	expect(sees(fd, POLLIN, PATIENCE * 1000) && recv(fd, buf, sizeof(buf), 0) == 5 && !memcmp(buf, "hello", 5),
	       "data after a delay", 0, 0);
	close(fd);
	lane_drop(&before);
	/* It keeps sending resume requests until one is refused with NO_LINK. */
	lane_close(&l);
	expect(lane_asked(&l), "a request after the end", 0, 0);
	lane_refuse(&l, &gone, sizeof(gone));
}

/* In a namespace where this program listens instead of the module. */
void answering(void)
{
	static void (*const spoil[])(struct sovia_hello *) = {
		spoil_magic, spoil_lane, spoil_id, spoil_other_id, spoil_peer_id, spoil_other_peer_id, spoil_next, spoil_far,
		spoil_old, spoil_start, spoil_payload,
	};
	unsigned int i;

	answer_badly();
	for (i = 0; i < ARRAY_SIZE(spoil); i++)
		answer_resume(spoil[i], i);
	refuse_resume(SOVIA_CODE_NO_LINK, 1);
	refuse_resume(SOVIA_CODE_PROTOCOL, 1);
	refuse_resume(0, REFUSALS);
	delay_resume();
	expect(no_links(), "the end of all links", victim_links(NULL), 0);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attempts to exceed the victim's limits: Documentation/limits.rst. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attack.h"

/* Use of each lane. */
enum use { NOTHING, CONNECTION, UNACKNOWLEDGED };

/* Opens lanes until one is refused, or all are open. */
static unsigned int fill_links(struct lane *l, enum use use)
{
	struct sovia_hello hello;
	unsigned int i;
	struct conn c;
	struct msg m;

	for (i = 0; i < SOVIA_LANES_MAX; i++) {
		hello = peer_hello(i);
		if (lane_open_with(&l[i], &hello, sizeof(hello), true) != UP)
			break;
		if (use == CONNECTION)
			expect(conn_open(&c, &l[i], sink_port), "a connection on a lane", i, 0);
		if (use == UNACKNOWLEDGED) {
			l[i].silent = true;
			m = conn_request(&l[i], 77, 9);
			msg_send(&l[i], &m);
			expect(until(&l[i], l[i].count[SOVIA_REFUSE]), "a refusal on a lane", i, 0);
		}
	}
	return i;
}

/* Links without connections are replaced by others, even with unacknowledged messages. */
static void unused_links(enum use use)
{
	struct lane l[SOVIA_LANES_MAX];
	unsigned int got = fill_links(l, use), i;

	expect(got == ARRAY_SIZE(l), "links without connections", got, use);
	expect(few_links(messages), "links kept", victim_links(NULL), use);
	for (i = 0; i < got; i++)
		lane_close(&l[i]);
	expect(no_links(), "the end of all links", victim_links(NULL), use);
}

/* The victim accepts MESSAGES links, and further ones only in place of unused links. */
void links(void)
{
	struct lane l[SOVIA_LANES_MAX];
	unsigned int got = fill_links(l, CONNECTION), i;

	expect(got == messages, "links with connections", got, messages);
	expect(got == ARRAY_SIZE(l) || l[got].reject_code == SOVIA_CODE_NO_MEMORY, "one too many", l[got].reject_code, 0);
	for (i = 0; i <= got && i < ARRAY_SIZE(l); i++)
		lane_close(&l[i]);
	expect(no_links(), "the end of all links", victim_links(NULL), 0);
	unused_links(NOTHING);
	unused_links(UNACKNOWLEDGED);
}

/* The victim agrees by closing the lane. */
static void park(struct lane *l)
{
	struct msg m = msg_of(l, SOVIA_PARK, 0, 0);

	msg_send(l, &m);
	expect(lane_dies(l), "a link that is parked", l->dead, 0);
}

/*
 * All links are parked, which makes room for others, and then used again at once: no more than
 * MESSAGES and a quarter have queue pairs, whatever is asked for.  The others are told to come again, and not lost.
 */
void parks(void)
{
	const unsigned int most = messages + (messages > 4 ? messages / 4 : 1);
	struct lane l[SOVIA_LANES_MAX];
	unsigned int i, up = 0, busy = 0;
	struct sovia_hello hello;
	enum outcome how;
	double end;

	for (i = 0; i < SOVIA_LANES_MAX; i++) {
		lane_open(&l[i], i);
		park(&l[i]);
	}
	for (end = now() + PATIENCE; victim_links("PARKED") < i && now() < end;)
		pause_ms(100);
	expect(victim_links("PARKED") == i, "parked links", victim_links("PARKED"), i);
	for (i = 0; i < SOVIA_LANES_MAX; i++) {
		hello = resume_hello(&l[i]);
		how = lane_resume(&l[i], &hello);
		up += how == UP;
		busy += how == REFUSED && l[i].reject_code == SOVIA_CODE_NO_MEMORY;
	}
	printf("%u of %u are used again, %u are to come again, %u at most\n", up, i, busy, most);
	expect(up && up <= most, "links used again", up, most);
	expect(busy == i - up, "links that wait", busy, up);
	expect(victim_links("UP") <= most, "links with a queue pair", victim_links("UP"), most);
	expect(victim_links(NULL) == i, "links kept", victim_links(NULL), i);
	for (i = 0; i < SOVIA_LANES_MAX; i++)
		lane_close(&l[i]);
}

/*
 * A connection on each of all lanes, which are parked: they cannot be dropped.  They stay for MESSAGES seconds, and when
 * this ends.
 */
void parked(void)
{
	struct lane l[SOVIA_LANES_MAX];
	struct conn c;
	unsigned int i;
	double end;

	for (i = 0; i < SOVIA_LANES_MAX; i++) {
		lane_open(&l[i], i);
		expect(conn_open(&c, &l[i], sink_port), "a connection on a lane", i, 0);
		park(&l[i]);
	}
	for (end = now() + messages; now() < end;)
		pause_ms(100);
}

/* VERBS_PEER_REQUESTS of the victim. */
#define PEER_REQUESTS	16

/*
 * MESSAGES requests for links at once, to a victim whose connection thread is busy:
 * a peer's part of the queue is 16, and the others are rejected without the thread.
 */
void crowd(void)
{
	struct sovia_hello hello = peer_hello(0);
	struct lane *l = calloc(messages, sizeof(*l));
	unsigned int many = 0, failed = 0;
	struct lane good;
	unsigned long i;

	for (i = 0; i < messages; i++)
		expect(lane_prepare(&l[i]), "a route to the victim", i, 0);
	for (i = 0; i < messages; i++)
		expect(lane_ask(&l[i], &hello, sizeof(hello)), "a request", i, 0);
	for (i = 0; i < messages; i++) {
		enum outcome how = lane_outcome(&l[i]);

		many += how == REFUSED && l[i].reject_code == SOVIA_CODE_NO_MEMORY;
		failed += how == FAILED;
	}
	printf("%u of %lu were too many\n", many, i);
	expect(many && many + PEER_REQUESTS <= i, "rejected requests", many, i);
	expect(!failed, "unanswered requests", failed, i);
	for (i = 0; i < messages; i++)
		lane_drop(&l[i]);
	free(l);
	lane_open(&good, 1);
	expect(lane_alive(&good), "a lane afterwards", 0, 0);
	lane_close(&good);
}

/* Objects in use of a slab cache. */
static unsigned int slab(const char *name)
{
	FILE *file = fopen("/proc/slabinfo", "r");
	char line[512], cache[64];
	unsigned int used = 0, n;

	if (!file)
		die("/proc/slabinfo");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%63s %u", cache, &n) == 2 && !strcmp(cache, name))
			used = n;
	fclose(file);
	return used;
}

/* Answers that may wait for a peer: the victim's limit, and a window of refusals beyond. */
#define ANSWERS	4096

/*
 * Requests up to MESSAGES connections and acknowledges none of the victim's messages, so that
 * it has no credit to answer.  It queues answers up to a limit and then holds back the
 * credits of the requests, until its answers are acknowledged.  (Loaded with
 * probe_interval=0, or it would give up the lane.)  Returns the number of requests; @most is
 * the number of sockets meanwhile.
 */
static unsigned long request_in_silence(struct lane *l, uint16_t port, unsigned int *most)
{
	unsigned int before = slab("SOVIA"), used;
	unsigned long i;
	struct msg m;

	*most = before;
	lane_open(l, 1);
	l->silent = true;
	for (i = 0; i < messages; i++) {
		/* Acknowledgments of the requests arrive as separate ACKs. */
		if (!until(l, l->tx_next - l->tx_una < WINDOW / 2))
			break;
		m = conn_request(l, 1 + i, port);
		m.hdr.ack = 0;
		msg_send(l, &m);
		if (i % 100 == 0) {
			used = slab("SOVIA");
			*most = used > *most ? used : *most;
		}
	}
	*most -= before;
	printf("%lu requests, %u sockets at most\n", i, *most);
	expect(i >= ANSWERS && i <= ANSWERS + 3 * WINDOW && !l->dead, "requests before it waits", i, l->dead);
	l->silent = false;
	return i;
}

/* Connections that end at once, their answers never acknowledged. */
void unacknowledged(void)
{
	unsigned int most;
	struct lane l;

	request_in_silence(&l, closer_port, &most);
	/* A backlog, and objects in the allocator's per-CPU lists. */
	expect(most < ANSWERS + 2000, "sockets waiting for a peer", most, 0);
	expect(lane_alive(&l), "a lane that acknowledges again", 0, 0);
	lane_close(&l);
}

/*
 * Connections that stay open: as many as may wait are accepted, others are refused, and
 * all answers arrive once they are acknowledged again.
 */
void untaken(void)
{
	unsigned int accepts, busy, most;
	unsigned long requests;
	struct lane l;
	uint16_t port;

	victim_listener(2 * ANSWERS, &port);
	requests = request_in_silence(&l, port, &most);
	until(&l, l.count[SOVIA_ACCEPT] + l.count[SOVIA_REFUSE] == requests);
	expect(lane_alive(&l), "a lane that acknowledges again", 0, 0);
	accepts = l.count[SOVIA_ACCEPT];
	busy = l.refusals[SOVIA_CODE_BUSY];
	printf("%u of %lu accepted, %u busy of %u refused\n", accepts, requests, busy, l.count[SOVIA_REFUSE]);
	/* ACCEPTs sent before the window was full did not wait. */
	expect(accepts >= ANSWERS && accepts <= ANSWERS + WINDOW, "waiting connections", accepts, requests);
	expect(busy && busy == l.count[SOVIA_REFUSE], "refused with BUSY", busy, l.count[SOVIA_REFUSE]);
	expect(accepts + busy == requests, "answers", accepts + busy, requests);
	lane_close(&l);
}

/* Pages of messages that the victim holds, and its limit. */
static void victim_memory(unsigned long *held, unsigned long *most)
{
	FILE *file = fopen("/sys/kernel/debug/sovia/limits", "r");

	if (!file || fscanf(file, "memory %lu %*u %lu", held, most) != 2)
		die("/sys/kernel/debug/sovia/limits");
	fclose(file);
}

/* MESSAGES unread connections with full windows: none is reset, whatever the victim's memory limit. */
void hoard(void)
{
	unsigned long i, held, most, peak = 0;
	unsigned int resets;
	struct conn *c = calloc(messages, sizeof(*c));
	struct lane l;
	uint16_t port;

	victim_listener(messages, &port);
	lane_open(&l, 1);
	/* Open all first, so that each has the largest window there is. */
	for (i = 0; i < messages && !l.dead; i++)
		expect(conn_open(&c[i], &l, port), "an unread connection", i, 0);
	for (i = 0; i < messages && !l.dead; i++) {
		fill_window(&c[i]);
		expect(lane_alive(&l), "a lane with full windows", i, 0);
		victim_memory(&held, &most);
		peak = held > peak ? held : peak;
	}
	resets = l.resets[SOVIA_CODE_NO_MEMORY];
	printf("%u of %lu reset, %lu pages at most, %lu allowed\n", resets, i, peak, most);
	expect(!resets, "resets", resets, 0);
	/* Above the limit, each may have the smallest window, which is less than two pages. */
	expect(peak < most + messages * 2, "maximum of memory", peak, most);
	lane_close(&l);
	free(c);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: many connections of one thread that uses epoll.
 *
 * many: repeated round trips of a message on each connection.  hold: prints
 * "held" when all are open, starts round trips at the next line of its input,
 * prints "active" when each connection has made one, and ends at EOF of its input.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "pp.h"

#define EVENTS		64
#define SAMPLES_MAX	(1 << 20)

struct conn {
	int fd;
	uint32_t got;
	uint64_t begin;
	bool seen;
};

static struct conn *conns;
static uint64_t *samples, sampled, answered, measure_from;
static uint32_t seen;
static char *buffer;
static int ready_fd;

static void ask(struct conn *conn)
{
	conn->begin = now_ns();
	conn->got = 0;
	must_send(conn->fd, buffer, opt.size);
}

static void open_all(void)
{
	uint32_t i;

	conns = calloc(opt.connections, sizeof(*conns));
	samples = calloc(SAMPLES_MAX, sizeof(*samples));
	buffer = calloc(1, opt.size);
	ready_fd = epoll_create1(EPOLL_CLOEXEC);
	if (!conns || !samples || !buffer || ready_fd < 0)
		die("no memory");
	for (i = 0; i < opt.connections; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &conns[i] };

		conns[i].fd = open_connection(OP_MANY);
		if (epoll_ctl(ready_fd, EPOLL_CTL_ADD, conns[i].fd, &event))
			die("epoll_ctl");
	}
}

static void answer(struct conn *conn)
{
	uint64_t now;

	if (!recv_more(conn->fd, buffer, &conn->got, opt.size))
		return;
	now = now_ns();
	seen += !conn->seen;
	conn->seen = true;
	if (now >= measure_from) {
		answered++;
		if (sampled < SAMPLES_MAX)
			samples[sampled++] = now - conn->begin;
	}
	ask(conn);
}

static void turn(void)
{
	struct epoll_event events[EVENTS];
	int i, n = epoll_wait(ready_fd, events, EVENTS, 1000);

	if (n < 0 && errno != EINTR)
		die("epoll_wait");
	for (i = 0; i < n; i++)
		answer(events[i].data.ptr);
}

int many(void)
{
	uint64_t begin, end;
	char about[128];
	uint32_t i;

	open_all();
	measure_from = UINT64_MAX;
	for (i = 0; i < opt.connections; i++)
		ask(&conns[i]);
	while (seen < opt.connections)
		turn();
	begin = now_ns();
	measure_from = begin;
	end = begin + opt.seconds * 1e9;
	while (now_ns() < end || !answered)
		turn();
	end = now_ns();
	snprintf(about, sizeof(about), "\"connections\": %u, \"count\": %llu, \"per_s\": %.1f",
		 opt.connections, (unsigned long long)answered, answered * 1e9 / (end - begin));
	print_times(about, samples, sampled, 1000);
	return 0;
}

static atomic_bool ended;

static void *wait_for_end(void *unused)
{
	while (getchar() != EOF)
		;
	ended = true;
	return unused;
}

static void announce(const char *what)
{
	puts(what);
	fflush(stdout);
}

int hold(void)
{
	bool told = false;
	pthread_t thread;
	uint32_t i;

	open_all();
	measure_from = UINT64_MAX;
	announce("held");
	if (getchar() == EOF)
		return 0;
	errno = pthread_create(&thread, NULL, wait_for_end, NULL);
	if (errno)
		die("pthread_create");
	for (i = 0; i < opt.connections; i++)
		ask(&conns[i]);
	while (!ended) {
		turn();
		if (!told && seen == opt.connections) {
			announce("active");
			told = true;
		}
	}
	return 0;
}

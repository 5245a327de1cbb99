// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: requests sent on a fixed schedule, whether or not previous ones are
 * answered; over the connections in turn.
 *
 * Response times count from the scheduled time, so they include the time that
 * a request could not be sent.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "pp.h"

#define EVENTS	64

struct conn {
	int fd;
	uint32_t got;
	char *buffer;		/* of the reply, which begins with the request's scheduled time */
};

static struct conn *conns;
static uint64_t start_ns, total;

static void *send_all_due(void *unused)
{
	char *message = calloc(1, opt.size);
	uint64_t i, due;

	if (!message)
		die("calloc");
	prctl(PR_SET_TIMERSLACK, 1UL);
	for (i = 0; i < total; i++) {
		due = start_ns + i * 1e9 / opt.rate;
		if (now_ns() < due) {
			struct timespec at = { due / 1000000000, due % 1000000000 };

			while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL))
				;
		}
		memcpy(message, &due, sizeof(due));
		must_send(conns[i % opt.connections].fd, message, opt.size);
	}
	free(message);
	return unused;
}

/* True when a reply is complete. */
static bool receive(struct conn *conn)
{
	if (!recv_more(conn->fd, conn->buffer, &conn->got, opt.size))
		return false;
	conn->got = 0;
	return true;
}

int load(void)
{
	struct epoll_event events[EVENTS];
	int i, n, ready_fd = epoll_create1(EPOLL_CLOEXEC);
	uint64_t answered = 0, in_time = 0, due, now, *ns;
	pthread_t sender;
	char about[128];
	uint32_t c;

	total = opt.rate * opt.seconds;
	ns = calloc(total, sizeof(*ns));
	conns = calloc(opt.connections, sizeof(*conns));
	if (!total || opt.size < sizeof(due))
		errno = EINVAL;
	if (ready_fd < 0 || !ns || !conns || !total || opt.size < sizeof(due))
		die("load");
	for (c = 0; c < opt.connections; c++) {
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &conns[c] };

		conns[c].buffer = malloc(opt.size);
		conns[c].fd = open_connection(OP_MANY);
		if (!conns[c].buffer || epoll_ctl(ready_fd, EPOLL_CTL_ADD, conns[c].fd, &event))
			die("epoll_ctl");
	}
	start_ns = now_ns() + 10000000;
	errno = pthread_create(&sender, NULL, send_all_due, NULL);
	if (errno)
		die("pthread_create");
	while (answered < total) {
		n = epoll_wait(ready_fd, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (i = 0; i < n; i++) {
			struct conn *conn = events[i].data.ptr;

			if (!receive(conn))
				continue;
			now = now_ns();
			memcpy(&due, conn->buffer, sizeof(due));
			ns[answered++] = now - due;
			in_time += now <= start_ns + (uint64_t)(opt.seconds * 1e9);
		}
	}
	pthread_join(sender, NULL);
	snprintf(about, sizeof(about), "\"offered\": %.1f, \"count\": %llu, \"per_s\": %.1f", opt.rate,
		 (unsigned long long)total, in_time / opt.seconds);
	print_times(about, ns, total, 1000);
	return 0;
}

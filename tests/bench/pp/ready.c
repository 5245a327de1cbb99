// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pp: a thread of the server with many connections, which uses epoll. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "pp.h"

#define EVENTS	64

struct conn {
	int fd;
	char op;
	uint32_t size;
	uint32_t got;		/* of a message to be sent back */
	uint32_t sent;
	bool blocked;		/* the reply cannot be sent yet */
	uint64_t end;		/* of sending */
	struct arrived all;
	char *buffer;
};

static int ready_fd = -1;

static void watch(struct conn *conn, int how, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };

	if (epoll_ctl(ready_fd, how, conn->fd, &event))
		die("epoll_ctl");
}

/* Each of these returns false when the connection has ended. */

static bool step_echo(struct conn *conn)
{
	ssize_t n;

	if (conn->got < conn->size) {
		n = recv(conn->fd, conn->buffer + conn->got, conn->size - conn->got, 0);
		if (n <= 0)
			return n < 0 && errno == EAGAIN;
		conn->got += n;
		if (conn->got < conn->size)
			return true;
	}
	n = send(conn->fd, conn->buffer + conn->sent, conn->size - conn->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN)
		return false;
	if (n > 0)
		conn->sent += n;
	if (conn->sent == conn->size) {
		if (conn->blocked)
			watch(conn, EPOLL_CTL_MOD, EPOLLIN);
		conn->got = conn->sent = 0;
		conn->blocked = false;
	} else if (!conn->blocked) {
		/* nothing is read until it is sent */
		watch(conn, EPOLL_CTL_MOD, EPOLLOUT);
		conn->blocked = true;
	}
	return true;
}

static bool step_sink(struct conn *conn)
{
	ssize_t n = recv(conn->fd, conn->buffer, conn->size, 0);

	if (n < 0)
		return errno == EAGAIN;
	if (!conn->all.begin)
		conn->all.begin = now_ns();
	conn->all.bytes += n;
	if (n > 0)
		return true;
	conn->all.end = now_ns();
	send_count(conn->fd, &conn->all);
	return false;
}

static bool step_source(struct conn *conn)
{
	ssize_t n = send(conn->fd, conn->buffer, conn->size, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN)
		return false;
	return now_ns() < conn->end;
}

static bool step(struct conn *conn)
{
	switch (conn->op) {
	case OP_MANY: return step_echo(conn);
	case OP_FANIN: return step_sink(conn);
	default: return step_source(conn);
	}
}

static void *run(void *unused)
{
	struct epoll_event events[EVENTS];
	int i, n;

	for (;;) {
		n = epoll_wait(ready_fd, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			die("epoll_wait");
		for (i = 0; i < n; i++) {
			struct conn *conn = events[i].data.ptr;

			if (step(conn))
				continue;
			close(conn->fd);
			free(conn->buffer);
			free(conn);
		}
	}
	return unused;
}

void ready_server(int fd, char op, const struct request *rq)
{
	struct conn *conn = calloc(1, sizeof(*conn));
	pthread_t thread;

	if (!conn)
		die("calloc");
	if (ready_fd < 0) {
		ready_fd = epoll_create1(EPOLL_CLOEXEC);
		if (ready_fd < 0)
			die("epoll_create1");
		errno = pthread_create(&thread, NULL, run, NULL);
		if (errno)
			die("pthread_create");
	}
	conn->fd = fd;
	conn->op = op;
	/* counted data is read in large pieces */
	conn->size = op == OP_FANIN ? 65536 : rq->size;
	conn->buffer = calloc(1, conn->size);
	if (!conn->buffer)
		die("calloc");
	if (op == OP_FANOUT)
		conn->end = now_ns() + rq->ms * 1000000ULL;
	if (fcntl(fd, F_SETFL, O_NONBLOCK))
		die("fcntl");
	watch(conn, EPOLL_CTL_ADD, op == OP_FANOUT ? EPOLLOUT : EPOLLIN);
}

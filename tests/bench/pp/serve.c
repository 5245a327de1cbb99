// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pp: the server.  An error ends only its own connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pp.h"

struct job {
	int fd;
	char op;
	struct request rq;
};

static void in_thread(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, function, argument);
	if (errno)
		die("pthread_create");
	pthread_detach(thread);
}

static bool echo(int fd, uint32_t size)
{
	char *buffer = malloc(size);

	if (!buffer)
		die("malloc");
	while (recv_all(fd, buffer, size) && send_all(fd, buffer, size))
		;
	free(buffer);
	return !errno;
}

static void *source(void *argument)
{
	const struct job *job = argument;
	uint64_t sent = 0;

	send_until(job->fd, job->rq.size, now_ns() + job->rq.ms * 1000000ULL, &sent);
	return NULL;
}

static bool duplex(struct job *job)
{
	struct arrived all;
	pthread_t thread;
	bool ok;

	errno = pthread_create(&thread, NULL, source, job);
	if (errno)
		die("pthread_create");
	ok = count_stream(job->fd, &all, NULL);
	pthread_join(thread, NULL);
	return ok && send_count(job->fd, &all);
}

static void *work(void *argument)
{
	struct job *job = argument;
	struct arrived all;
	bool ok;

	stay_at(job->rq.place);
	errno = 0;
	if (job->op == OP_LATENCY)
		ok = echo(job->fd, job->rq.size);
	else if (job->op == OP_DUPLEX)
		ok = duplex(job);
	else
		ok = count_stream(job->fd, &all, NULL) && send_count(job->fd, &all);
	if (!ok)
		perror("pp: a connection");
	close(job->fd);
	free(job);
	return NULL;
}

static void answer(int fd, char op)
{
	char text[HTTP_ANSWER] = { op };

	if (op == OP_EXCHANGE)
		send_all(fd, text, 1);
	else if (op == OP_HTTP && recv_all(fd, text, HTTP_REQUEST - 1))
		send_all(fd, text, sizeof(text));
	close(fd);
}

static void serve_one(int fd)
{
	struct request rq;
	struct job *job;
	char op;

	if (!recv_all(fd, &op, 1)) {
		close(fd);
		return;
	}
	if (op == OP_EXCHANGE || op == OP_HTTP) {
		answer(fd, op);
		return;
	}
	if (!strchr("lbdmio", op) || !recv_all(fd, &rq, sizeof(rq)) ||
	    !ntohl(rq.size) || ntohl(rq.size) > SIZE_MAX_BYTES || ntohl(rq.place) > CPU_SETSIZE) {
		fputs("pp: not a request\n", stderr);
		close(fd);
		return;
	}
	rq = (struct request){ ntohl(rq.size), ntohl(rq.nodelay), ntohl(rq.ms), ntohl(rq.place) };
	set_options(fd, rq.nodelay);
	if (op == OP_MANY || op == OP_FANIN || op == OP_FANOUT) {
		ready_server(fd, op, &rq);
		return;
	}
	job = malloc(sizeof(*job));
	if (!job)
		die("malloc");
	*job = (struct job){ fd, op, rq };
	in_thread(work, job);
}

static int next_connection(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	return fd;
}

/* On the next port connections are closed as soon as they are accepted. */
static void *close_at_once(void *argument)
{
	for (;;)
		close(next_connection(*(int *)argument));
	return NULL;
}

int serve(void)
{
	static int closing;
	int listener = listen_at(resolve(NULL, 0));

	closing = listen_at(resolve(NULL, 1));
	in_thread(close_at_once, &closing);
	puts("ready");
	fflush(stdout);
	for (;;)
		serve_one(next_connection(listener));
}

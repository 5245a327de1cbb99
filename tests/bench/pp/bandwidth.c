// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: bytes per second, over one connection or many, one way or both.
 *
 * Bytes of a direction are counted on arrival, by the receiver's clock, from the
 * first one to the end of the last stream.  "busy" is the busy time of all processors
 * of a machine during that time, by any process.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pp.h"

struct stream {
	int fd;
	char op;
	pthread_t sender, receiver;
	uint64_t sent;
	struct arrived there, here;
};

static uint64_t deadline;

static void *send_stream(void *argument)
{
	struct stream *stream = argument;

	if (!send_until(stream->fd, opt.size, deadline, &stream->sent))
		die("send");
	if (shutdown(stream->fd, SHUT_WR))
		die("shutdown");
	return NULL;
}

static void *receive_stream(void *argument)
{
	struct stream *stream = argument;
	bool out = stream->op == OP_FANOUT;

	if (!count_stream(stream->fd, &stream->here, out ? NULL : &stream->there))
		die("recv");
	if (!out && stream->there.bytes != stream->sent) {
		/* the peer replies after the end of our stream */
		fprintf(stderr, "pp: %llu bytes were sent, %llu have arrived\n",
			(unsigned long long)stream->sent, (unsigned long long)stream->there.bytes);
		exit(1);
	}
	return NULL;
}

static void start(pthread_t *thread, void *(*function)(void *), struct stream *stream)
{
	errno = pthread_create(thread, NULL, function, stream);
	if (errno)
		die("pthread_create");
}

struct sum {
	uint64_t bytes, begin, end;
};

static void add(struct sum *sum, const struct arrived *all)
{
	if (!all->bytes)
		return;
	if (!sum->bytes || all->begin < sum->begin)
		sum->begin = all->begin;
	if (all->end > sum->end)
		sum->end = all->end;
	sum->bytes += all->bytes;
}

static double rate(const struct sum *sum)
{
	return sum->bytes ? sum->bytes * 1e3 / (sum->end - sum->begin) : 0;
}

static char operation(void)
{
	if (!opt.kind)
		return OP_BANDWIDTH;
	if (strcmp(opt.kind, "duplex") == 0)
		return OP_DUPLEX;
	if (strcmp(opt.kind, "fanin") == 0)
		return OP_FANIN;
	if (strcmp(opt.kind, "fanout") == 0)
		return OP_FANOUT;
	errno = EINVAL;
	die(opt.kind);
}

int bandwidth(void)
{
	struct stream *streams = calloc(opt.connections, sizeof(*streams)), *stream;
	struct sum out = { 0 }, in = { 0 };
	uint64_t busy, their_busy = 0;
	char op = operation();
	uint32_t i;

	if (!streams)
		die("calloc");
	/* The first connection of a link includes its set-up, which is not measured. */
	for (i = 0; i < opt.connections; i++) {
		streams[i].fd = open_connection(op);
		streams[i].op = op;
	}
	busy = busy_us();
	deadline = now_ns() + opt.seconds * 1e9;
	for (i = 0; i < opt.connections; i++) {
		if (op != OP_FANOUT)
			start(&streams[i].sender, send_stream, &streams[i]);
		/* nothing else is received, so the reply can wait */
		if (op == OP_FANOUT || op == OP_DUPLEX)
			start(&streams[i].receiver, receive_stream, &streams[i]);
	}
	if (opt.announce) {
		puts("active");
		fflush(stdout);
	}
	for (stream = streams; stream < streams + opt.connections; stream++) {
		if (op != OP_FANOUT)
			pthread_join(stream->sender, NULL);
		if (op == OP_FANOUT || op == OP_DUPLEX)
			pthread_join(stream->receiver, NULL);
		else
			receive_stream(stream);
		add(&out, &stream->there);
		add(&in, &stream->here);
		if (stream->there.busy > their_busy)
			their_busy = stream->there.busy;
		close(stream->fd);
	}
	printf("{\"size\": %u, \"connections\": %u, \"bytes\": %llu, \"mb_per_s\": %.3f, \"out_mb_per_s\": %.3f, \"in_mb_per_s\": %.3f, \"busy_us\": %llu, \"their_busy_us\": %llu}\n",
	       opt.size, opt.connections, (unsigned long long)(out.bytes + in.bytes), rate(&out) + rate(&in),
	       rate(&out), rate(&in), (unsigned long long)(busy_us() - busy), (unsigned long long)their_busy);
	return 0;
}

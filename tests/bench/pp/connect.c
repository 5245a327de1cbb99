// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: connections one after the other, and the duration of each connect().
 *
 * The server closes first, as HTTP/1.0 servers do, so that the client does not
 * run out of ports.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pp.h"

#define SAMPLES_MAX	(1 << 20)

static void exchange(int fd)
{
	char op = OP_EXCHANGE;

	must_send(fd, &op, 1);
	must_recv(fd, &op, 1);
}

static void http(int fd)
{
	char text[HTTP_ANSWER] = { OP_HTTP };

	must_send(fd, text, HTTP_REQUEST);
	must_recv(fd, text, sizeof(text));
}

static void nothing(int fd)
{
	(void)fd;
}

/* Returns the duration of connect(). */
static uint64_t one_connection(const struct addrinfo *ai, void (*talk)(int))
{
	uint64_t begin = now_ns(), took;
	int fd = connect_to(ai);
	char end;

	took = now_ns() - begin;
	talk(fd);
	if (recv_all(fd, &end, 1) || errno) {
		if (!errno)
			errno = EPROTO;
		die("the end");
	}
	close(fd);
	return took;
}

static int first(const struct addrinfo *ai)
{
	uint64_t begin = now_ns();
	int fd = connect_to(ai);

	printf("{\"us\": %.1f}\n", (now_ns() - begin) / 1e3);
	close(fd);
	return 0;
}

int connection_rate(void)
{
	void (*talk)(int) = exchange;
	struct addrinfo *ai;
	uint64_t *took = calloc(SAMPLES_MAX, sizeof(*took)), begin, end, n;
	char about[64];
	int offset = 0;

	if (!took)
		die("calloc");
	if (opt.kind && strcmp(opt.kind, "first") == 0)
		return first(resolve(opt.host, 1));
	if (opt.kind && strcmp(opt.kind, "open") == 0) {
		talk = nothing;
		offset = 1;
	} else if (opt.kind && strcmp(opt.kind, "http") == 0) {
		talk = http;
	} else if (opt.kind && strcmp(opt.kind, "exchange")) {
		errno = EINVAL;
		die(opt.kind);
	}
	ai = resolve(opt.host, offset);
	for (n = 0; n < WARM_UP; n++)
		one_connection(ai, talk);
	begin = now_ns();
	end = begin + opt.seconds * 1e9;
	for (n = 0; n < SAMPLES_MAX && (!n || now_ns() < end); n++)
		took[n] = one_connection(ai, talk);
	snprintf(about, sizeof(about), "\"count\": %llu, \"per_s\": %.1f", (unsigned long long)n,
		 n * 1e9 / (now_ns() - begin));
	print_times(about, took, n, 1000);
	return 0;
}

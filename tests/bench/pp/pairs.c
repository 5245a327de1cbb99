// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: round trips of pairs of threads, the two of a pair on one processor.
 *
 * What pairs on different processors have in common is the kernel's, and should not cost them.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pp.h"

struct pair {
	pthread_t thread;
	int fd;
	uint32_t place;
	uint64_t count;
};

static uint64_t begin;

static void *go(void *argument)
{
	uint64_t end = begin + opt.seconds * 1e9;
	struct pair *pair = argument;
	char *buffer = calloc(1, opt.size);

	if (!buffer)
		die("calloc");
	stay_at(pair->place);
	while (now_ns() < end) {
		must_send(pair->fd, buffer, opt.size);
		must_recv(pair->fd, buffer, opt.size);
		pair->count++;
	}
	free(buffer);
	return NULL;
}

int pairs(void)
{
	struct pair *all = calloc(opt.connections, sizeof(*all)), *pair;
	uint32_t processors = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t count = 0;

	if (!all)
		die("calloc");
	for (pair = all; pair < all + opt.connections; pair++) {
		pair->place = opt.place = 1 + (pair - all) % processors;
		pair->fd = open_connection(OP_LATENCY);
	}
	begin = now_ns();
	for (pair = all; pair < all + opt.connections; pair++) {
		errno = pthread_create(&pair->thread, NULL, go, pair);
		if (errno)
			die("pthread_create");
	}
	for (pair = all; pair < all + opt.connections; pair++) {
		pthread_join(pair->thread, NULL);
		count += pair->count;
		close(pair->fd);
	}
	printf("{\"connections\": %u, \"count\": %llu, \"per_s\": %.1f}\n", opt.connections,
	       (unsigned long long)count, count * 1e9 / (now_ns() - begin));
	return 0;
}

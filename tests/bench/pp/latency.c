// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pp: round trips on one connection. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pp.h"

#define WARM_UP_MAX	200
#define COUNT_MIN	100	/* round trips, even beyond the time limit */

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The JSON object's other members precede; ns_of_us is 2000 for half round trips. */
void print_times(const char *before, uint64_t *ns, size_t count, double ns_of_us)
{
	double sum = 0;
	size_t i;

	qsort(ns, count, sizeof(*ns), compare);
	for (i = 0; i < count; i++)
		sum += ns[i];
	printf("{%s, \"min_us\": %.2f, \"median_us\": %.2f, \"mean_us\": %.2f, \"p90_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f}\n",
	       before, ns[0] / ns_of_us, ns[count / 2] / ns_of_us, sum / count / ns_of_us,
	       ns[count * 90 / 100] / ns_of_us, ns[count * 99 / 100] / ns_of_us,
	       ns[count * 999 / 1000] / ns_of_us);
}

static uint64_t round_trip(int fd, char *buffer)
{
	uint64_t begin = now_ns();

	must_send(fd, buffer, opt.size);
	must_recv(fd, buffer, opt.size);
	return now_ns() - begin;
}

int latency(void)
{
	uint64_t *ns = calloc(opt.count, sizeof(*ns)), end;
	char *buffer = calloc(1, opt.size), about[64];
	int fd = open_connection(OP_LATENCY);
	uint32_t n;

	if (!ns || !buffer)
		die("calloc");
	for (n = 0; n < opt.count * WARM_UP / 100 && n < WARM_UP_MAX; n++)
		round_trip(fd, buffer);
	end = now_ns() + opt.seconds * 1e9;
	for (n = 0; n < opt.count && (n < COUNT_MIN || now_ns() < end); n++)
		ns[n] = round_trip(fd, buffer);
	close(fd);
	snprintf(about, sizeof(about), "\"size\": %u, \"count\": %u", opt.size, n);
	print_times(about, ns, n, 2000);
	return 0;
}

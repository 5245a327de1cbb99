// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pp: round trips on one connection. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "pp.h"

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The object's other members come before; ns_of_us is 2000 for half of each. */
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

int latency(void)
{
	uint32_t i, skip = opt.count * WARM_UP / 100, total = opt.count + skip;
	uint64_t *ns = calloc(total, sizeof(*ns)), begin;
	char *buffer = calloc(1, opt.size), about[64];
	int fd = open_connection(OP_LATENCY);

	if (!ns || !buffer)
		die("calloc");
	for (i = 0; i < total; i++) {
		begin = now_ns();
		must_send(fd, buffer, opt.size);
		must_recv(fd, buffer, opt.size);
		ns[i] = now_ns() - begin;
	}
	close(fd);
	snprintf(about, sizeof(about), "\"size\": %u, \"count\": %u", opt.size, opt.count);
	print_times(about, ns + skip, opt.count, 2000);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: measures stream sockets.
 *
 *	pp serve
 *	pp latency HOST		half round trips of --size bytes, --count of them
 *				at most, and for --seconds at most
 *	pp bandwidth HOST	in writes of --size bytes, for --seconds, over
 *				--connections: one way, each with a thread there;
 *				--kind duplex: both ways; fanin, fanout: to and
 *				from one thread there
 *	pp connect HOST		connections one after the other, for --seconds, and
 *				how long each connect() takes;
 *				--kind open: closed at once; exchange: a byte each
 *				way; http: a request, 8 KB back; first: how long
 *				a single connect() takes
 *	pp many HOST		round trips on --connections at once
 *	pp pairs HOST		the same, each connection with a thread at both ends, both on
 *				one processor: the first on the first, and so on
 *	pp hold HOST		--connections; see many.c
 *	pp load HOST		--rate messages per second over --connections, to be
 *				answered
 *
 * An ordinary TCP program with blocking sockets; under sovia-run, or with --family
 * sovia, they are AF_SOVIA sockets.  One JSON object on standard output.
 *
 * Bytes are counted on arrival; every byte sent must have arrived.
 */
#include <getopt.h>
#include <linux/sovia.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pp.h"

struct options opt = {
	.port = "7701", .size = 4, .count = 20000, .connections = 1, .seconds = 2, .rate = 1000,
};

static int usage(void)
{
	fputs("Usage: pp serve | latency HOST | bandwidth HOST | connect HOST | many HOST |\n"
	      "          pairs HOST | hold HOST | load HOST\n"
	      "  -4, -6              IPv4 or IPv6 alone\n"
	      "  --family inet|sovia|smc|unix\n"
	      "                      what to open sockets of\n"
	      "  --port P            (7701; the one after it is used, too)\n"
	      "  --kind K            of bandwidth: duplex, fanin, fanout\n"
	      "                      of connect: open, exchange, http, first\n"
	      "  --size N            bytes of a message or a write (4)\n"
	      "  --count N           round trips at most (20000)\n"
	      "  --connections N     (1)\n"
	      "  --rate R            messages per second (1000)\n"
	      "  --seconds S         (2)\n"
	      "  --nodelay           set TCP_NODELAY, at both ends\n"
	      "  --announce          bandwidth: print \"active\" when all connections have begun\n"
	      "  --busy-poll US      set SO_BUSY_POLL, at this end\n", stderr);
	return 2;
}

static void set_family(const char *name)
{
	if (strcmp(name, "sovia") == 0)
		opt.family = AF_SOVIA;
	else if (strcmp(name, "smc") == 0)
		opt.family = AF_SMC;
	else if (strcmp(name, "unix") == 0)
		opt.ip = AF_UNIX;
}

static bool parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "family", required_argument, NULL, 'f' },
		{ "port", required_argument, NULL, 'p' },
		{ "kind", required_argument, NULL, 'k' },
		{ "size", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'n' },
		{ "connections", required_argument, NULL, 'c' },
		{ "rate", required_argument, NULL, 'r' },
		{ "seconds", required_argument, NULL, 't' },
		{ "nodelay", no_argument, NULL, 'd' },
		{ "announce", no_argument, NULL, 'a' },
		{ "busy-poll", required_argument, NULL, 'b' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "46", names, NULL)) != -1) {
		switch (c) {
		case '4': opt.ip = AF_INET; break;
		case '6': opt.ip = AF_INET6; break;
		case 'f': set_family(optarg); break;
		case 'p': opt.port = optarg; break;
		case 'k': opt.kind = optarg; break;
		case 's': opt.size = strtoul(optarg, NULL, 0); break;
		case 'n': opt.count = strtoul(optarg, NULL, 0); break;
		case 'c': opt.connections = strtoul(optarg, NULL, 0); break;
		case 'r': opt.rate = strtod(optarg, NULL); break;
		case 't': opt.seconds = strtod(optarg, NULL); break;
		case 'd': opt.nodelay = true; break;
		case 'a': opt.announce = true; break;
		case 'b': opt.busy_poll = strtoul(optarg, NULL, 0); break;
		default: return false;
		}
	}
	return opt.size > 0 && opt.size <= SIZE_MAX_BYTES && opt.count > 0 && opt.connections > 0 &&
	       opt.rate > 0 && opt.seconds > 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*function)(void);
	} clients[] = {
		{ "latency", latency }, { "bandwidth", bandwidth }, { "connect", connection_rate },
		{ "many", many }, { "pairs", pairs }, { "hold", hold }, { "load", load },
	};
	const char *what;
	size_t i;

	if (!parse(argc, argv) || optind >= argc)
		return usage();
	what = argv[optind];
	opt.host = argv[optind + 1];
	if (strcmp(what, "serve") == 0)
		return serve();
	for (i = 0; opt.host && i < sizeof(clients) / sizeof(*clients); i++)
		if (strcmp(what, clients[i].name) == 0)
			return clients[i].function();
	return usage();
}

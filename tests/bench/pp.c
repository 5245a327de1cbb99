// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * pp: latency, bandwidth and connection rate of stream sockets.
 *
 *	pp serve
 *	pp latency HOST		half round trips of --size bytes, --count of them
 *	pp bandwidth HOST	one way, in writes of --size bytes, for --seconds
 *	pp connect HOST		connect, a byte each way, close; for --seconds
 *
 * An ordinary TCP program with blocking sockets; sovia-run makes AF_SOVIA of
 * them, and so does --family sovia.  One JSON object on standard output.
 *
 * What is measured is what arrived: bandwidth is the receiver's bytes by the
 * receiver's clock, from its first byte to the end of the stream, and every
 * byte that was sent must be in it.  The server closes first, as HTTP/1.0
 * servers do, so that the client does not run out of ports.
 */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <linux/sovia.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PORT	"7701"
#define SIZE_MAX_BYTES	(1 << 20)
#define WARM_UP		10	/* connections and, in percent, round trips */

/* First byte of a connection: what it is for. */
enum {
	OP_CONNECT	= 'c',
	OP_LATENCY	= 'l',
	OP_BANDWIDTH	= 'b',
};

/* Follows OP_LATENCY and OP_BANDWIDTH. */
struct request {
	uint32_t size;
	uint32_t nodelay;
};

/* Answers OP_BANDWIDTH after the end of the stream. */
struct arrived {
	uint64_t bytes;
	uint64_t ns;
};

static struct options {
	const char *host, *port;
	int ip;			/* AF_INET, AF_INET6 or AF_UNSPEC */
	bool sovia, nodelay;
	uint32_t size, count;
	double seconds;
} opt = { .port = DEFAULT_PORT, .size = 4, .count = 2000, .seconds = 2 };

static char buffer[SIZE_MAX_BYTES];

/* ---- helpers --------------------------------------------------------- */

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "pp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static int open_socket(int family)
{
	int protocol = family == AF_INET6 ? SOVIAPROTO_V6 : SOVIAPROTO_V4;
	int fd = opt.sovia ? socket(AF_SOVIA, SOCK_STREAM, protocol) :
			     socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

static void set_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		die("setsockopt");
}

static void send_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0)
			die("send");
		p += n;
		len -= n;
	}
}

/* False at the end of the stream, if that comes before the first byte. */
static bool recv_all(int fd, void *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, (char *)data + got, len - got, 0);

		if (n < 0)
			die("recv");
		if (n == 0 && got == 0)
			return false;
		if (n == 0) {
			errno = EPIPE;
			die("recv");
		}
		got += n;
	}
	return true;
}

static struct addrinfo *resolve(const char *host, int flags)
{
	struct addrinfo hints = {
		.ai_family = opt.ip, .ai_socktype = SOCK_STREAM, .ai_flags = flags,
	}, *found;
	int err = getaddrinfo(host, opt.port, &hints, &found);

	if (err) {
		fprintf(stderr, "pp: %s: %s\n", host, gai_strerror(err));
		exit(1);
	}
	return found;
}

/* ---- server ---------------------------------------------------------- */

static void echo(int fd, uint32_t size)
{
	while (recv_all(fd, buffer, size))
		send_all(fd, buffer, size);
}

static void sink(int fd)
{
	struct arrived all = { 0 };
	uint64_t begin = 0;
	ssize_t n;

	while ((n = recv(fd, buffer, sizeof(buffer), 0)) > 0) {
		if (!begin)
			begin = now_ns();
		all.bytes += n;
	}
	if (n < 0)
		die("recv");
	all.ns = htobe64(now_ns() - begin);
	all.bytes = htobe64(all.bytes);
	send_all(fd, &all, sizeof(all));
}

static void serve_one(int fd)
{
	struct request rq;
	char op;

	if (!recv_all(fd, &op, 1))
		return;
	if (op == OP_CONNECT) {
		send_all(fd, &op, 1);
		return;
	}
	if (!recv_all(fd, &rq, sizeof(rq)))
		return;
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, ntohl(rq.nodelay));
	if (op == OP_LATENCY && ntohl(rq.size) <= sizeof(buffer))
		echo(fd, ntohl(rq.size));
	else if (op == OP_BANDWIDTH)
		sink(fd);
}

static int serve(void)
{
	struct addrinfo *ai = resolve(NULL, AI_PASSIVE);
	int fd = open_socket(ai->ai_family);

	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 128))
		die("bind or listen");
	freeaddrinfo(ai);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int peer = accept(fd, NULL, NULL);

		if (peer < 0)
			die("accept");
		serve_one(peer);
		close(peer);
	}
}

/* ---- client ---------------------------------------------------------- */

static int connect_to(const struct addrinfo *ai)
{
	int fd = open_socket(ai->ai_family);

	if (connect(fd, ai->ai_addr, ai->ai_addrlen))
		die("connect");
	return fd;
}

static int open_connection(char op)
{
	struct request rq = { htonl(opt.size), htonl(opt.nodelay) };
	struct addrinfo *ai = resolve(opt.host, 0);
	int fd = connect_to(ai);

	freeaddrinfo(ai);
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, opt.nodelay);
	send_all(fd, &op, 1);
	send_all(fd, &rq, sizeof(rq));
	return fd;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static double half_us(uint64_t ns)
{
	return ns / 2000.0;
}

static int latency(void)
{
	uint32_t i, skip = opt.count * WARM_UP / 100, total = opt.count + skip;
	uint64_t *ns = calloc(total, sizeof(*ns)), begin, sum = 0;
	int fd = open_connection(OP_LATENCY);

	if (!ns)
		die("calloc");
	for (i = 0; i < total; i++) {
		begin = now_ns();
		send_all(fd, buffer, opt.size);
		if (!recv_all(fd, buffer, opt.size)) {
			errno = EPIPE;
			die("recv");
		}
		ns[i] = now_ns() - begin;
	}
	close(fd);
	for (i = skip; i < total; i++)
		sum += ns[i];
	ns += skip;
	qsort(ns, opt.count, sizeof(*ns), compare);
	printf("{\"size\": %u, \"count\": %u, \"min_us\": %.2f, \"median_us\": %.2f, \"mean_us\": %.2f, \"p99_us\": %.2f}\n",
	       opt.size, opt.count, half_us(ns[0]), half_us(ns[opt.count / 2]),
	       half_us(sum / opt.count), half_us(ns[(uint64_t)opt.count * 99 / 100]));
	return 0;
}

static int bandwidth(void)
{
	int fd = open_connection(OP_BANDWIDTH);
	/* The first connection of a link takes a while, which is not what is measured. */
	uint64_t sent = 0, end = now_ns() + opt.seconds * 1e9;
	struct arrived all;

	do {
		send_all(fd, buffer, opt.size);
		sent += opt.size;
	} while (now_ns() < end);
	if (shutdown(fd, SHUT_WR))
		die("shutdown");
	if (!recv_all(fd, &all, sizeof(all)))
		all.bytes = 0;
	close(fd);
	if (be64toh(all.bytes) != sent) {
		fprintf(stderr, "pp: %llu bytes were sent, %llu have arrived\n",
			(unsigned long long)sent, (unsigned long long)be64toh(all.bytes));
		return 1;
	}
	printf("{\"size\": %u, \"bytes\": %llu, \"mb_per_s\": %.3f}\n", opt.size,
	       (unsigned long long)sent, sent * 1e3 / be64toh(all.ns));
	return 0;
}

static void one_connection(const struct addrinfo *ai)
{
	char op = OP_CONNECT;
	int fd = connect_to(ai);

	send_all(fd, &op, 1);
	if (!recv_all(fd, &op, 1) || op != OP_CONNECT || recv_all(fd, &op, 1)) {
		errno = EPROTO;
		die("answer");
	}
	close(fd);
}

static int connection_rate(void)
{
	struct addrinfo *ai = resolve(opt.host, 0);
	uint64_t begin, end, n;

	for (n = 0; n < WARM_UP; n++)
		one_connection(ai);
	begin = now_ns();
	end = begin + opt.seconds * 1e9;
	for (n = 0; now_ns() < end; n++)
		one_connection(ai);
	printf("{\"count\": %llu, \"per_s\": %.1f}\n", (unsigned long long)n,
	       n * 1e9 / (now_ns() - begin));
	freeaddrinfo(ai);
	return 0;
}

/* ---- command line ---------------------------------------------------- */

static int usage(void)
{
	fputs("Usage: pp serve | latency HOST | bandwidth HOST | connect HOST\n"
	      "  -4, -6              IPv4 or IPv6 alone\n"
	      "  --family inet|sovia what to open sockets of\n"
	      "  --port P            (" DEFAULT_PORT ")\n"
	      "  --size N            bytes of a message or a write (4)\n"
	      "  --count N           round trips (2000)\n"
	      "  --seconds S         (2)\n"
	      "  --nodelay           set TCP_NODELAY, at both ends\n", stderr);
	return 2;
}

static bool parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "family", required_argument, NULL, 'f' },
		{ "port", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ "nodelay", no_argument, NULL, 'd' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "46", names, NULL)) != -1) {
		switch (c) {
		case '4': opt.ip = AF_INET; break;
		case '6': opt.ip = AF_INET6; break;
		case 'f': opt.sovia = strcmp(optarg, "sovia") == 0; break;
		case 'p': opt.port = optarg; break;
		case 's': opt.size = strtoul(optarg, NULL, 0); break;
		case 'n': opt.count = strtoul(optarg, NULL, 0); break;
		case 't': opt.seconds = strtod(optarg, NULL); break;
		case 'd': opt.nodelay = true; break;
		default: return false;
		}
	}
	return opt.size > 0 && opt.size <= sizeof(buffer) && opt.count > 0 && opt.seconds > 0;
}

int main(int argc, char **argv)
{
	const char *what;

	if (!parse(argc, argv) || optind >= argc)
		return usage();
	what = argv[optind];
	opt.host = argv[optind + 1];
	if (strcmp(what, "serve") == 0)
		return serve();
	if (!opt.host)
		return usage();
	if (strcmp(what, "latency") == 0)
		return latency();
	if (strcmp(what, "bandwidth") == 0)
		return bandwidth();
	if (strcmp(what, "connect") == 0)
		return connection_rate();
	return usage();
}

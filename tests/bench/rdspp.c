// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * rdspp: latency and bandwidth of RDS, reliable datagrams over InfiniBand.
 *
 *	rdspp serve [ADDRESS]	its own, which clients have to use; else the host name's
 *	rdspp latency HOST	half round trips of --size bytes, --count of them
 *	rdspp bandwidth HOST	one way, in messages of --size bytes, for --seconds
 *
 * Measures what pp does for streams, also with blocking sockets: one JSON object on
 * standard output.  Bandwidth is the receiver's bytes by the receiver's clock;
 * every byte sent must have arrived.
 *
 * RDS falls back to TCP if the kernel finds no RDMA device with the address
 * that a socket is bound to.  Such a socket is not measured.
 */
#include <endian.h>
#include <errno.h>
#include <getopt.h>
#include <linux/rds.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PORT	"7701"
#define SIZE_MAX_BYTES	(1 << 20)	/* RDS_MAX_MSG_SIZE of the kernel */
#define WARM_UP		10		/* percent of round trips */
#define PATIENCE	30		/* timeout of a client in seconds */

/*
 * First byte of a message.  There are no connections: the only state of the server
 * is the count of one sender.
 */
enum {
	OP_ECHO		= 'l',	/* send it back */
	OP_BEGIN	= 'B',	/* reply, and start counting */
	OP_DATA		= 'b',	/* count this */
	OP_END		= 'e',	/* reply with struct arrived */
};

struct arrived {
	uint64_t bytes;
	uint64_t ns;	/* from the first byte to the end */
};

static struct options {
	const char *port;
	int ip;			/* AF_INET, AF_INET6 or AF_UNSPEC */
	uint32_t size, count;
	double seconds;
} opt = { .port = DEFAULT_PORT, .size = 4, .count = 2000, .seconds = 2 };

static char buffer[SIZE_MAX_BYTES];

/* ---- helpers --------------------------------------------------------- */

static void __attribute__((noreturn)) die(const char *what)
{
	fprintf(stderr, "rdspp: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

static struct addrinfo *resolve(const char *host)
{
	struct addrinfo hints = { .ai_family = opt.ip, .ai_socktype = SOCK_DGRAM }, *found;
	int err = getaddrinfo(host, opt.port, &hints, &found);

	if (err) {
		fprintf(stderr, "rdspp: %s: %s\n", host, gai_strerror(err));
		exit(1);
	}
	return found;
}

/* RDS does not choose an address: a socket has to be bound to one. */
static int open_socket(const struct sockaddr *own, socklen_t len)
{
	int fd = socket(AF_RDS, SOCK_SEQPACKET, 0), room = 2 * SIZE_MAX_BYTES, transport = RDS_TRANS_NONE;
	socklen_t int_len = sizeof(int);

	if (fd < 0)
		die("socket");
	/* Room for a slow receiver: RDS has no autotuning. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		die("buffers");
	if (bind(fd, own, len))
		die("bind");
	if (getsockopt(fd, SOL_RDS, SO_RDS_TRANSPORT, &transport, &int_len))
		die("transport");
	if (transport != RDS_TRANS_IB) {
		fprintf(stderr, "rdspp: this is transport %d of RDS, not InfiniBand's\n", transport);
		exit(1);
	}
	return fd;
}

static void send_message(int fd, size_t len)
{
	ssize_t n = send(fd, buffer, len, 0);

	if (n >= 0 && (size_t)n != len)
		errno = EMSGSIZE;
	if (n < 0 || (size_t)n != len)
		die("send");
}

static void recv_message(int fd, size_t len)
{
	ssize_t n = recv(fd, buffer, sizeof(buffer), 0);

	if (n >= 0 && (size_t)n != len)
		errno = EPROTO;
	if (n < 0 || (size_t)n != len)
		die("recv");
}

/* ---- server ---------------------------------------------------------- */

static void answer(int fd, const struct sockaddr_storage *to, socklen_t to_len, size_t len)
{
	if (sendto(fd, buffer, len, 0, (const struct sockaddr *)to, to_len) < 0)
		die("answer");
}

static int serve(const char *host)
{
	char name[256] = "";
	struct sockaddr_storage from;
	struct addrinfo *ai;
	uint64_t bytes = 0, begin = 0;
	struct arrived all;
	socklen_t from_len;
	ssize_t n;
	int fd;

	gethostname(name, sizeof(name) - 1);
	ai = resolve(host ? host : name);
	fd = open_socket(ai->ai_addr, ai->ai_addrlen);
	freeaddrinfo(ai);
	puts("ready");
	fflush(stdout);
	for (;;) {
		from_len = sizeof(from);
		n = recvfrom(fd, buffer, sizeof(buffer), 0, (struct sockaddr *)&from, &from_len);
		if (n < 0)
			die("recv");
		switch (n ? buffer[0] : 0) {
		case OP_ECHO:
			answer(fd, &from, from_len, n);
			break;
		case OP_BEGIN:
			bytes = 0;
			answer(fd, &from, from_len, n);
			break;
		case OP_DATA:
			if (!bytes)
				begin = now_ns();
			bytes += n;
			break;
		case OP_END:
			all = (struct arrived) { htobe64(bytes), htobe64(now_ns() - begin) };
			memcpy(buffer, &all, sizeof(all));
			answer(fd, &from, from_len, sizeof(all));
		}
	}
}

/* ---- client ---------------------------------------------------------- */

/* Finds the address to bind to: the one that UDP would send from. */
static int open_connection(const char *host)
{
	struct addrinfo *ai = resolve(host);
	int udp = socket(ai->ai_family, SOCK_DGRAM, 0), fd;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	struct timeval patience = { .tv_sec = PATIENCE };

	if (udp < 0 || connect(udp, ai->ai_addr, ai->ai_addrlen) ||
	    getsockname(udp, (struct sockaddr *)&own, &len))
		die(host);
	close(udp);
	/* the port has the same offset in both families; RDS chooses one for 0 */
	((struct sockaddr_in *)&own)->sin_port = 0;
	fd = open_socket((struct sockaddr *)&own, len);
	/* there is no error if there is no server */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)))
		die("patience");
	if (connect(fd, ai->ai_addr, ai->ai_addrlen))
		die("connect");
	freeaddrinfo(ai);
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

static int latency(const char *host)
{
	uint32_t i, skip = opt.count * WARM_UP / 100, total = opt.count + skip;
	uint64_t *ns = calloc(total, sizeof(*ns)), begin, sum = 0;
	int fd = open_connection(host);

	if (!ns)
		die("calloc");
	buffer[0] = OP_ECHO;
	for (i = 0; i < total; i++) {
		begin = now_ns();
		send_message(fd, opt.size);
		recv_message(fd, opt.size);
		ns[i] = now_ns() - begin;
	}
	close(fd);
	ns += skip;
	for (i = 0; i < opt.count; i++)
		sum += ns[i];
	qsort(ns, opt.count, sizeof(*ns), compare);
	printf("{\"size\": %u, \"count\": %u, \"min_us\": %.2f, \"median_us\": %.2f, \"mean_us\": %.2f, "
	       "\"p90_us\": %.2f, \"p99_us\": %.2f, \"p999_us\": %.2f}\n", opt.size, opt.count,
	       half_us(ns[0]), half_us(ns[opt.count / 2]), half_us(sum / opt.count),
	       half_us(ns[(uint64_t)opt.count * 90 / 100]), half_us(ns[(uint64_t)opt.count * 99 / 100]),
	       half_us(ns[(uint64_t)opt.count * 999 / 1000]));
	return 0;
}

static int bandwidth(const char *host)
{
	int fd = open_connection(host);
	uint64_t sent = 0, end;
	struct arrived all;

	/* The first message between two hosts waits for their connection. */
	buffer[0] = OP_BEGIN;
	send_message(fd, 1);
	recv_message(fd, 1);
	buffer[0] = OP_DATA;
	end = now_ns() + opt.seconds * 1e9;
	do {
		send_message(fd, opt.size);
		sent += opt.size;
	} while (now_ns() < end);
	buffer[0] = OP_END;
	send_message(fd, 1);
	recv_message(fd, sizeof(all));
	memcpy(&all, buffer, sizeof(all));
	close(fd);
	if (be64toh(all.bytes) != sent) {
		fprintf(stderr, "rdspp: %llu bytes were sent, %llu have arrived\n",
			(unsigned long long)sent, (unsigned long long)be64toh(all.bytes));
		return 1;
	}
	printf("{\"size\": %u, \"bytes\": %llu, \"mb_per_s\": %.3f}\n", opt.size,
	       (unsigned long long)sent, sent * 1e3 / be64toh(all.ns));
	return 0;
}

/* ---- command line ---------------------------------------------------- */

static int usage(void)
{
	fputs("Usage: rdspp serve [ADDRESS] | latency HOST | bandwidth HOST\n"
	      "  -4, -6              IPv4 or IPv6 alone\n"
	      "  --port P            (" DEFAULT_PORT ")\n"
	      "  --size N            bytes of a message (4)\n"
	      "  --count N           round trips (2000)\n"
	      "  --seconds S         (2)\n", stderr);
	return 2;
}

static bool parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "size", required_argument, NULL, 's' },
		{ "count", required_argument, NULL, 'n' },
		{ "seconds", required_argument, NULL, 't' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "46", names, NULL)) != -1) {
		switch (c) {
		case '4': opt.ip = AF_INET; break;
		case '6': opt.ip = AF_INET6; break;
		case 'p': opt.port = optarg; break;
		case 's': opt.size = strtoul(optarg, NULL, 0); break;
		case 'n': opt.count = strtoul(optarg, NULL, 0); break;
		case 't': opt.seconds = strtod(optarg, NULL); break;
		default: return false;
		}
	}
	return opt.size > 0 && opt.size <= sizeof(buffer) && opt.count > 0 && opt.seconds > 0;
}

int main(int argc, char **argv)
{
	const char *what, *host;

	if (!parse(argc, argv) || optind >= argc)
		return usage();
	what = argv[optind];
	host = argv[optind + 1];
	if (strcmp(what, "serve") == 0)
		return serve(host);
	if (!host)
		return usage();
	if (strcmp(what, "latency") == 0)
		return latency(host);
	if (strcmp(what, "bandwidth") == 0)
		return bandwidth(host);
	return usage();
}

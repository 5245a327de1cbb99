// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* pp: sockets, and whole messages through them. */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/sovia.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "pp.h"

/* Contents are arbitrary; all threads send from this buffer. */
static const char zeros[SIZE_MAX_BYTES];

void die(const char *what)
{
	fprintf(stderr, "pp: %s: %s\n", what, strerror(errno));
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Counted in ticks, so only precise over seconds. */
uint64_t busy_us(void)
{
	unsigned long long user, nice, system, idle, iowait, irq, softirq;
	FILE *file = fopen("/proc/stat", "r");

	if (!file || fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system,
			    &idle, &iowait, &irq, &softirq) != 7)
		die("/proc/stat");
	fclose(file);
	return (user + nice + system + irq + softirq) * (1000000 / sysconf(_SC_CLK_TCK));
}

static int open_socket(int family)
{
	/* AF_SMC's protocol numbers are the same as AF_SOVIA's */
	int protocol = family == AF_INET6 ? SOVIAPROTO_V6 : SOVIAPROTO_V4;
	int fd = opt.family ? socket(opt.family, SOCK_STREAM, protocol) :
			      socket(family, SOCK_STREAM, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

void set_option(int fd, int level, int name, int value)
{
	if (level == IPPROTO_TCP && opt.ip == AF_UNIX)
		return;
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		die("setsockopt");
}

/* Options of connections that begin with a request. */
void set_options(int fd, bool nodelay)
{
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, nodelay);
	if (opt.busy_poll)
		set_option(fd, SOL_SOCKET, SO_BUSY_POLL, opt.busy_poll);
}

bool send_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n < 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

/* False with errno 0 at the end of the stream, before the first byte. */
bool recv_all(int fd, void *data, size_t len)
{
	size_t got = 0;

	while (got < len) {
		ssize_t n = recv(fd, (char *)data + got, len - got, 0);

		if (n < 0)
			return false;
		if (n == 0) {
			errno = got ? EPIPE : 0;
			return false;
		}
		got += n;
	}
	return true;
}

void must_send(int fd, const void *data, size_t len)
{
	if (!send_all(fd, data, len))
		die("send");
}

/* Receives available bytes.  True when all @len bytes have arrived; *got counts them. */
bool recv_more(int fd, char *data, uint32_t *got, uint32_t len)
{
	ssize_t n = recv(fd, data + *got, len - *got, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return false;
	if (n <= 0) {
		if (!n)
			errno = EPIPE;
		die("recv");
	}
	*got += n;
	return *got == len;
}

void must_recv(int fd, void *data, size_t len)
{
	if (!recv_all(fd, data, len)) {
		if (!errno)
			errno = EPIPE;
		die("recv");
	}
}

static struct addrinfo *local_name(int port)
{
	static struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct addrinfo *ai = calloc(1, sizeof(*ai));

	if (!ai)
		die("calloc");
	/* an abstract address needs no cleanup */
	ai->ai_addrlen = offsetof(struct sockaddr_un, sun_path) +
			 1 + sprintf(name.sun_path + 1, "pp-%d", port);
	ai->ai_family = AF_UNIX;
	ai->ai_addr = (struct sockaddr *)memcpy(malloc(sizeof(name)), &name, sizeof(name));
	return ai;
}

/* Address of a server, or without a host the address to listen on.  Never freed. */
struct addrinfo *resolve(const char *host, int port_offset)
{
	struct addrinfo hints = {
		.ai_family = opt.ip, .ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE,
	}, *found;
	int port = atoi(opt.port) + port_offset, err;
	char service[16];

	if (opt.ip == AF_UNIX)
		return local_name(port);
	snprintf(service, sizeof(service), "%d", port);
	err = getaddrinfo(host, service, &hints, &found);
	if (err) {
		fprintf(stderr, "pp: %s: %s\n", host, gai_strerror(err));
		exit(1);
	}
	return found;
}

int listen_at(const struct addrinfo *ai)
{
	int fd = open_socket(ai->ai_family);

	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1024))
		die("bind or listen");
	return fd;
}

int connect_to(const struct addrinfo *ai)
{
	int fd = open_socket(ai->ai_family);

	if (connect(fd, ai->ai_addr, ai->ai_addrlen))
		die("connect");
	return fd;
}

/* Opens a connection for one of the operations with a request. */
int open_connection(char op)
{
	static const struct addrinfo *ai;
	struct request rq = {
		htonl(opt.size), htonl(opt.nodelay), htonl(opt.seconds * 1e3), htonl(opt.place)
	};
	int fd;

	if (!ai)
		ai = resolve(opt.host, 0);
	fd = connect_to(ai);
	set_options(fd, opt.nodelay);
	must_send(fd, &op, 1);
	must_send(fd, &rq, sizeof(rq));
	return fd;
}

/* Binds this thread to a processor: see struct request. */
void stay_at(uint32_t place)
{
	cpu_set_t set;

	if (!place)
		return;
	CPU_ZERO(&set);
	CPU_SET(place - 1, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* Keeps the last @want bytes of a stream in @tail. */
static void keep_tail(char *tail, size_t want, const char *data, size_t len)
{
	size_t fresh = len < want ? len : want;

	memmove(tail, tail + fresh, want - fresh);
	memcpy(tail + want - fresh, data + len - fresh, fresh);
}

/* Counts bytes until EOF; a trailer, the last bytes of the stream, is not counted. */
bool count_stream(int fd, struct arrived *all, struct arrived *trailer)
{
	char *buffer = malloc(SIZE_MAX_BYTES);
	uint64_t busy = 0;
	ssize_t n;

	if (!buffer)
		die("malloc");
	*all = (struct arrived){ 0 };
	while ((n = recv(fd, buffer, SIZE_MAX_BYTES, 0)) > 0) {
		if (!all->begin) {
			busy = busy_us();
			all->begin = now_ns();
		}
		all->bytes += n;
		if (trailer)
			keep_tail((char *)trailer, sizeof(*trailer), buffer, n);
	}
	all->end = now_ns();
	all->busy = busy_us() - busy;
	free(buffer);
	if (n == 0 && trailer) {
		if (all->bytes < sizeof(*trailer)) {
			errno = EPIPE;
			return false;
		}
		all->bytes -= sizeof(*trailer);
		trailer->bytes = be64toh(trailer->bytes);
		trailer->begin = be64toh(trailer->begin);
		trailer->end = be64toh(trailer->end);
		trailer->busy = be64toh(trailer->busy);
	}
	return n == 0;
}

bool send_count(int fd, const struct arrived *all)
{
	struct arrived wire = {
		htobe64(all->bytes), htobe64(all->begin), htobe64(all->end), htobe64(all->busy),
	};

	return send_all(fd, &wire, sizeof(wire));
}

/* Sends in writes of @size bytes, until the time @end. */
bool send_until(int fd, uint32_t size, uint64_t end, uint64_t *sent)
{
	do {
		if (!send_all(fd, zeros, size))
			return false;
		*sent += size;
	} while (now_ns() < end);
	return true;
}

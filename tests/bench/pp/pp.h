/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pp: shared declarations.  main.c describes pp.
 */
#ifndef PP_H
#define PP_H

#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define SIZE_MAX_BYTES	(1 << 20)
#define WARM_UP		10	/* connections and, in percent, round trips or time */

/* First byte of a connection: its operation. */
enum {
	OP_EXCHANGE	= 'c',	/* a byte back, and closed */
	OP_HTTP		= 'h',	/* a reply back, and closed */
	/* These have a struct request, and each a thread of the server ... */
	OP_LATENCY	= 'l',	/* send messages back */
	OP_BANDWIDTH	= 'b',	/* count received bytes */
	OP_DUPLEX	= 'd',	/* count them, and send at full speed */
	/* ... or share one thread, which uses epoll. */
	OP_MANY		= 'm',	/* send messages back */
	OP_FANIN	= 'i',	/* count received bytes */
	OP_FANOUT	= 'o',	/* send at full speed */
};

#define HTTP_REQUEST	200	/* bytes */
#define HTTP_ANSWER	8192

struct request {
	uint32_t size;		/* of messages, or writes */
	uint32_t nodelay;
	uint32_t ms;		/* how long to send */
	uint32_t place;		/* 1 + the processor of the server's thread, or 0 */
};

/* Trailer of the stream back, if bytes were counted; big endian. */
struct arrived {
	uint64_t bytes;
	uint64_t begin;		/* ns of the receiver's clock */
	uint64_t end;
	uint64_t busy;		/* us of that machine's processors during that time */
};

struct options {
	const char *host, *port, *kind;
	int ip;			/* AF_INET, AF_INET6, AF_UNSPEC, or AF_UNIX */
	int family;		/* of sockets, if it differs from their addresses' */
	bool nodelay;
	bool announce;
	uint32_t busy_poll;	/* us that recv() may spin, at this end */
	uint32_t size, count, connections;
	uint32_t place;			/* as in struct request, of the next connection */
	double seconds, rate;
};

extern struct options opt;

/* net.c */
void __attribute__((noreturn)) die(const char *what);
uint64_t now_ns(void);
uint64_t busy_us(void);
void set_option(int fd, int level, int name, int value);
void set_options(int fd, bool nodelay);
bool send_all(int fd, const void *data, size_t len);
bool recv_all(int fd, void *data, size_t len);
void must_send(int fd, const void *data, size_t len);
bool recv_more(int fd, char *data, uint32_t *got, uint32_t len);
void must_recv(int fd, void *data, size_t len);
struct addrinfo *resolve(const char *host, int port_offset);
int listen_at(const struct addrinfo *ai);
int connect_to(const struct addrinfo *ai);
int open_connection(char op);
void stay_at(uint32_t place);
bool count_stream(int fd, struct arrived *all, struct arrived *trailer);
bool send_count(int fd, const struct arrived *all);
bool send_until(int fd, uint32_t size, uint64_t end, uint64_t *sent);

/* ready.c */
void ready_server(int fd, char op, const struct request *rq);

/* operations of clients; each prints one JSON object and returns the exit status */
int serve(void);
int latency(void);
int bandwidth(void);
int connection_rate(void);
int many(void);
int pairs(void);
int hold(void);
int load(void);

/* latency.c */
void print_times(const char *before, uint64_t *ns, size_t count, double ns_of_us);

#endif

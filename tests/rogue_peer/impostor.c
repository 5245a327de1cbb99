// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A process that impersonates a node's kernel: with librdmacm it requests links from another node in its own node's
 * name, or listens at the service's port before the module does.
 *
 *     impostor ask OWN VICTIM [PORT [TIMES]]
 *                                         sends all kinds of requests, from PORT (else, or 0, the connection manager chooses
 *                                         one, and another lane is requested as well); prints how many with a
 *                                         hello, and how many without one;
 *                                         fails if one was granted
 *     impostor listen OWN FILE            listens at the service; prints "ok", creates FILE and exits when it is removed;
 *                                         otherwise prints the error
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <sovia/wire.h>

#define PATIENCE_MS	60000

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

static struct rdma_event_channel *events;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void address(struct sockaddr_storage *ss, const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found;

	if (getaddrinfo(host, port, &hints, &found)) {
		fprintf(stderr, "%s: no address\n", host);
		exit(2);
	}
	memcpy(ss, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
}

static const char *service(void)
{
	static char text[6];

	snprintf(text, sizeof(text), "%u", SOVIA_SERVICE_PORT);
	return text;
}

/* The next event, or -1. */
static int next_event(void)
{
	struct pollfd poller = { .fd = events->fd, .events = POLLIN };
	struct rdma_cm_event *event;
	int what;

	if (poll(&poller, 1, PATIENCE_MS) <= 0 || rdma_get_cm_event(events, &event))
		return -1;
	what = event->event;
	rdma_ack_cm_event(event);
	return what;
}

static bool prepare(struct rdma_cm_id *id, const char *own, const char *victim, const char *port)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct sockaddr_storage from, to;

	address(&from, own, port);
	address(&to, victim, service());
	if (rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 2000)) {
		perror("source");
		return false;
	}
	if (next_event() != RDMA_CM_EVENT_ADDR_RESOLVED)
		return false;
	if (rdma_resolve_route(id, 2000) || next_event() != RDMA_CM_EVENT_ROUTE_RESOLVED)
		return false;
	if (rdma_create_qp(id, NULL, &attr))
		die("queue pair");
	return true;
}

/* Sends a request with @hello.  Returns whether the victim has granted it, -1 if it could not be sent. */
static int ask(const char *own, const char *victim, const char *port, const void *hello, size_t len)
{
	struct rdma_conn_param param = { .private_data = hello, .private_data_len = len, .retry_count = 7 };
	struct rdma_cm_id *id;
	int granted = -1;

	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		die("identifier");
	if (prepare(id, own, victim, port) && !rdma_connect(id, &param))
		granted = next_event() == RDMA_CM_EVENT_ESTABLISHED;
	if (granted > 0)
		sleep(1);
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
	return granted;
}

/* The hello of a freshly loaded module, and variants. */
static int ask_all(const char *own, const char *victim, const char *port, unsigned int times)
{
	const struct sovia_hello fresh = {
		.magic = htonl(SOVIA_WIRE_MAGIC), .version = SOVIA_WIRE_VERSION, .window = htons(32),
		.payload = htonl(16384), .id = htobe64((uint64_t)getpid() << 32 | 1),
	};
	struct sovia_hello hellos[] = { fresh, fresh, fresh, fresh, fresh, fresh };
	unsigned int i, round, granted = 0, asked = 0, bare = 0;

	/* hellos[1] repeats the first one */
	hellos[2].id = htobe64(4711);
	hellos[3].lane = !atoi(port);
	hellos[4].peer_id = htobe64(4712);
	hellos[5].peer_id = fresh.id;
	for (round = 0; round < times; round++) {
		for (i = 0; i < ARRAY_SIZE(hellos); i++) {
			int how;

			/* A guess. */
			if (round && getrandom(hellos[i].mac, sizeof(hellos[i].mac), 0) < 0)
				die("random numbers");
			hellos[i].generation = htonl(round);
			how = ask(own, victim, port, &hellos[i], sizeof(hellos[i]));
			asked += how >= 0;
			granted += how > 0;
			if (how > 0)
				fprintf(stderr, "request %u was granted\n", i);
		}
		/* No hello at all. */
		bare += ask(own, victim, port, NULL, 0) >= 0;
	}
	printf("%u %u\n", asked, bare);
	return granted || !asked;
}

static int serve(const char *own, const char *file)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	FILE *mark;

	address(&addr, own, service());
	if (rdma_create_id(events, &id, NULL, RDMA_PS_TCP))
		die("identifier");
	if (rdma_bind_addr(id, (struct sockaddr *)&addr) || rdma_listen(id, 16)) {
		printf("%s\n", strerrorname_np(errno));
		return 1;
	}
	mark = fopen(file, "w");
	if (!mark)
		die(file);
	fclose(mark);
	puts("ok");
	fflush(stdout);
	while (!access(file, F_OK))
		usleep(100000);
	return 0;
}

int main(int argc, char **argv)
{
	events = rdma_create_event_channel();
	if (!events)
		die("event channel");
	if (argc >= 4 && !strcmp(argv[1], "ask"))
		return ask_all(argv[2], argv[3], argc > 4 ? argv[4] : "0", argc > 5 ? atoi(argv[5]) : 1);
	if (argc == 4 && !strcmp(argv[1], "listen"))
		return serve(argv[2], argv[3]);
	fprintf(stderr, "usage: impostor ask OWN VICTIM [PORT [TIMES]] | listen OWN FILE\n");
	return 2;
}

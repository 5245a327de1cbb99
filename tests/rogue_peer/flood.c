// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any user, who connects endlessly.
 *
 *	flood sovia|tcp NETWORK/LENGTH PORT SECONDS
 *
 * Two threads connect to one address of the network (IPv4) after the other.  With sovia the calls do not
 * block, and the sockets are closed at once; with tcp each connection is established, then closed by RST.
 * Prints how many there were.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/sovia.h>

#define THREADS	2

static bool tcp;
static uint32_t network, hosts;
static uint16_t port;
static atomic_bool over;
static atomic_ulong number, done;

static int open_socket(void)
{
	const struct linger abort = { .l_onoff = 1 };
	const int ttl = 255;
	int fd;

	if (!tcp)
		return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, SOVIAPROTO_INET);
	fd = socket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	/* What other kernels listen at drops what came through a router, or says so. */
	setsockopt(fd, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
	return fd;
}

static void *connect_all(void *unused)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd;

	(void)unused;
	while (!over) {
		fd = open_socket();
		if (fd < 0) {
			perror("socket");
			exit(2);
		}
		to.sin_addr.s_addr = htonl(network + number++ % hosts);
		if (!connect(fd, (void *)&to, sizeof(to)) || errno == EINPROGRESS)
			done++;
		close(fd);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	struct in_addr addr;
	char *slash;
	int i, len;

	if (argc != 5 || (slash = strchr(argv[2], '/')) == NULL) {
		fprintf(stderr, "usage: flood sovia|tcp NETWORK/LENGTH PORT SECONDS\n");
		return 2;
	}
	tcp = !strcmp(argv[1], "tcp");
	*slash = '\0';
	len = atoi(slash + 1);
	if (inet_pton(AF_INET, argv[2], &addr) != 1 || len < 1 || len > 32) {
		fprintf(stderr, "flood: no network\n");
		return 2;
	}
	network = ntohl(addr.s_addr);
	hosts = 1U << (32 - len);
	port = atoi(argv[3]);
	for (i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, connect_all, NULL))
			return 2;
	sleep(atoi(argv[4]));
	over = true;
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("%lu connections of %lu\n", (unsigned long)done, (unsigned long)number);
	return !done;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * accept() of a listener that becomes another socket meanwhile.
 *
 *	accept_swap [--family N] [--seconds N]
 *
 * A thread makes a listener of AF_SOVIA, which has TCP's beside it, disconnects it, and connects it to a port where
 * nobody listens, as TCP only: the descriptor has TCP's sk then, and listens once more.  Two others accept all the
 * time, one of them waits, and further ones connect: an accept() that has read the operations, or the sk, before
 * must not take the one for the other.
 *
 * Prints "swaps=N before=N after=N": how many listeners became TCP's, and how many connections were accepted from
 * either.  Exits with 0 if all of it happened.  That nothing was mistaken is the kernel's to say.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/sovia.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FD		100		/* the listener, whatever it is */
#define CONNECTORS	2

static int family = SOVIA_FAMILY_DEFAULT;
static atomic_bool over;
static atomic_int port;			/* where FD listens, network order; 0: nowhere */
static atomic_long accepted[2];

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static void *accept_all(void *flags)
{
	while (!atomic_load(&over)) {
		int fd = accept4(FD, NULL, NULL, (int)(intptr_t)flags), protocol = 0;
		socklen_t len = sizeof(protocol);

		if (fd < 0)
			continue;
		getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
		atomic_fetch_add(&accepted[protocol == IPPROTO_TCP], 1);
		/* As much as a child can do, which may not be what it seems. */
		send(fd, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		recv(fd, &protocol, 1, MSG_DONTWAIT);
		close(fd);
	}
	return NULL;
}

static void *connect_all(void *protocol)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger abort = { .l_onoff = 1 };

	while (!atomic_load(&over)) {
		int fd;

		to.sin_port = atomic_load(&port);
		if (!to.sin_port)
			continue;
		fd = protocol ? socket(family, SOCK_STREAM | SOCK_NONBLOCK, SOVIAPROTO_V4) :
				socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (fd < 0)
			continue;
		connect(fd, (struct sockaddr *)&to, sizeof(to));
		send(fd, "y", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
		/* or there would soon be no port left */
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
		usleep(100);
		close(fd);
	}
	return NULL;
}

static void listen_there(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	if (!listen(FD, 16) && !getsockname(FD, (struct sockaddr *)&at, &len))
		atomic_store(&port, at.sin_port);
	usleep(300);
	atomic_store(&port, 0);
}

/* Whether the listener became TCP's. */
static bool swap(void)
{
	const struct sockaddr_in nobody = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(9),
	};
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	int fd = socket(family, SOCK_STREAM, SOVIAPROTO_V4), protocol = 0;
	const int only_tcp = SOVIA_ONLY_TCP, reuse = 1;
	socklen_t len = sizeof(protocol);

	if (fd < 0) {
		perror("socket");
		exit(2);
	}
	/*
	 * So that it gets its port again, beside its first children.  Where listen() finds the port in use, TCP itself
	 * may leak: it has been a listener for a moment, to which a handshake of the first one may add a child.
	 */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof(reuse));
	dup2(fd, FD);
	close(fd);
	listen_there();
	connect(FD, &unspec, sizeof(unspec));
	setsockopt(FD, SOL_SOVIA, SOVIA_ACTION, &only_tcp, sizeof(only_tcp));
	connect(FD, (const struct sockaddr *)&nobody, sizeof(nobody));
	getsockopt(FD, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	listen_there();
	return protocol == IPPROTO_TCP;
}

static void on_signal(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_signal };
	pthread_t waits, polls, connects[CONNECTORS];
	long swaps = 0, seconds = 20;
	time_t end;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--family"))
			family = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atoi(argv[i + 1]);
	}
	sigaction(SIGUSR1, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	end = now() + seconds;
	swaps += swap();
	pthread_create(&waits, NULL, accept_all, NULL);
	pthread_create(&polls, NULL, accept_all, (void *)SOCK_NONBLOCK);
	for (int i = 0; i < CONNECTORS; i++)
		pthread_create(&connects[i], NULL, connect_all, (void *)(intptr_t)(i % 2));
	while (now() < end) {
		swaps += swap();
		/* Who waits at a listener that is another one now. */
		pthread_kill(waits, SIGUSR1);
		pthread_kill(polls, SIGUSR1);
	}
	atomic_store(&over, true);
	close(FD);
	for (int i = 0; i < CONNECTORS; i++)
		pthread_join(connects[i], NULL);
	for (int tries = 0; tries < 1000; tries++) {
		pthread_kill(waits, SIGUSR1);
		pthread_kill(polls, SIGUSR1);
		if (!pthread_tryjoin_np(waits, NULL))
			break;
		usleep(1000);
	}
	printf("swaps=%ld before=%ld after=%ld\n", swaps, accepted[0], accepted[1]);
	return !(swaps && accepted[0] && accepted[1]);
}

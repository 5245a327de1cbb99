// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Options that no descriptor of AF_SOVIA may have, not even one that just becomes TCP's.
 *
 *	ulp_race [--family N] [--seconds N] [--only tls|addrform]
 *
 * A thread connects to a port where only TCP listens, again and again; two others set options of its socket all
 * the time: TCP_ULP "tls", and IPV6_ADDRFORM.  Either of them exchanges the operations of a descriptor that has TCP's
 * sk, or copies them, so both are errors, at each moment.  setsockopt() that reads the operations before the exchange
 * and the sk after it would reach TCP nevertheless.
 *
 * Prints "fallbacks=N tls=N addrform=N": how many connections became TCP's, and how many times an option could be set.
 * Exits with 0 if that was never.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sovia.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FD	100		/* the socket, whatever it is */

static atomic_bool over;
static atomic_long set_tls, set_addrform;
static const char *only = "";

static time_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec;
}

static void *spin_tls(void *unused)
{
	while (!atomic_load(&over))
		if (!setsockopt(FD, IPPROTO_TCP, TCP_ULP, "tls", 3))
			atomic_fetch_add(&set_tls, 1);
	return unused;
}

static void *spin_addrform(void *unused)
{
	const int four = AF_INET;

	while (!atomic_load(&over))
		if (!setsockopt(FD, IPPROTO_IPV6, IPV6_ADDRFORM, &four, sizeof(four)))
			atomic_fetch_add(&set_addrform, 1);
	return unused;
}

/* Of TCP alone; what it accepts is closed at once. */
static int open_listener(struct sockaddr_in6 *at)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	socklen_t len = sizeof(to);

	if (fd < 0 || bind(fd, (struct sockaddr *)&to, len) || listen(fd, 16) ||
	    getsockname(fd, (struct sockaddr *)&to, &len)) {
		perror("listener");
		exit(2);
	}
	/* IPV6_ADDRFORM is for IPv4's addresses. */
	*at = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = to.sin_port };
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &at->sin6_addr);
	return fd;
}

/* Whether it became TCP's.  The exchange happens in connect(), or after it in a work. */
static bool connect_once(int family, int listener, const struct sockaddr_in6 *to, bool wait)
{
	int fd = socket(family, SOCK_STREAM | (wait ? 0 : SOCK_NONBLOCK), SOVIAPROTO_V6), protocol = 0, accepted;
	struct pollfd ready = { .fd = FD, .events = POLLOUT };
	socklen_t len = sizeof(protocol);

	if (fd < 0) {
		perror("socket");
		exit(2);
	}
	dup2(fd, FD);
	close(fd);
	if (!connect(FD, (const struct sockaddr *)to, sizeof(*to)) || errno == EINPROGRESS)
		poll(&ready, 1, 5000);
	getsockopt(FD, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
	accepted = accept(listener, NULL, NULL);
	if (accepted >= 0)
		close(accepted);
	return protocol == IPPROTO_TCP;
}

int main(int argc, char **argv)
{
	long fallbacks = 0, tries = 0, seconds = 20;
	int family = SOVIA_FAMILY_DEFAULT, listener;
	pthread_t threads[2];
	struct sockaddr_in6 to;
	time_t end;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--family"))
			family = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--seconds"))
			seconds = atoi(argv[i + 1]);
		else if (!strcmp(argv[i], "--only"))
			only = argv[i + 1];
	}
	listener = open_listener(&to);
	end = now() + seconds;
	pthread_create(&threads[0], NULL, strcmp(only, "addrform") ? spin_tls : spin_addrform, NULL);
	pthread_create(&threads[1], NULL, strcmp(only, "tls") ? spin_addrform : spin_tls, NULL);
	while (now() < end)
		fallbacks += connect_once(family, listener, &to, tries++ % 2);
	atomic_store(&over, true);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	close(FD);
	printf("fallbacks=%ld tls=%ld addrform=%ld\n", fallbacks, set_tls, set_addrform);
	return set_tls || set_addrform;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * many: what many connections at once get done together.
 *
 *	many serve PORT
 *	many streams HOST PORT N SECONDS	MB/s that arrive, written by N threads
 *	many pingpong HOST PORT N SECONDS	round trips of 4 bytes per second, by N threads
 *
 * An ordinary TCP program, as pp is; a thread for each connection at both ends.
 * Time runs from when all are connected until the last has its answer, so that
 * every byte that is counted has arrived.
 */
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST	1024
#define CHUNK	65536

static bool streams;
static struct addrinfo *where;
static double seconds, end;
static pthread_barrier_t connected;
static uint64_t done[MOST];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void write_all(int fd, const void *data, size_t len)
{
	if (send(fd, data, len, MSG_NOSIGNAL) != (ssize_t)len)
		die("send");
}

static void read_all(int fd, void *data, size_t len)
{
	if (recv(fd, data, len, MSG_WAITALL) != (ssize_t)len)
		die("recv");
}

/* ---- server: a byte says what for, 's' counts, 'p' answers ---- */

static void *serve_one(void *arg)
{
	static __thread char buf[CHUNK];
	int fd = (intptr_t)arg;
	uint64_t got = 0;
	ssize_t len;
	char what;

	read_all(fd, &what, 1);
	while ((len = recv(fd, buf, what == 's' ? sizeof(buf) : 4, 0)) > 0) {
		got += len;
		if (what == 'p')
			write_all(fd, buf, len);
	}
	if (what == 's' && !len)
		write_all(fd, &got, sizeof(got));
	close(fd);
	return NULL;
}

static void serve(const char *port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), conn, one = 1;
	pthread_t thread;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) || listen(fd, MOST))
		die("listen");
	while ((conn = accept(fd, NULL, NULL)) >= 0) {
		setsockopt(conn, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		if (pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)conn))
			die("thread");
		pthread_detach(thread);
	}
	die("accept");
}

/* ---- client ---- */

static void *work(void *arg)
{
	uint64_t *count = arg;
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
	static char data[CHUNK];
	uint32_t ball = 0;

	if (fd < 0 || connect(fd, where->ai_addr, where->ai_addrlen))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	write_all(fd, streams ? "s" : "p", 1);
	pthread_barrier_wait(&connected);	/* the clock is read in between */
	pthread_barrier_wait(&connected);
	while (now() < end) {
		if (streams) {
			write_all(fd, data, sizeof(data));
			continue;
		}
		write_all(fd, &ball, sizeof(ball));
		read_all(fd, &ball, sizeof(ball));
		++*count;
	}
	shutdown(fd, SHUT_WR);
	if (streams)
		read_all(fd, count, sizeof(*count));
	close(fd);
	return NULL;
}

static void measure(const char *host, const char *port, int n)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	pthread_t thread[MOST];
	uint64_t sum = 0;
	double begin;
	int i;

	if (n < 1 || n > MOST || getaddrinfo(host, port, &hints, &where))
		die("arguments");
	pthread_barrier_init(&connected, NULL, n + 1);
	for (i = 0; i < n; i++)
		if (pthread_create(&thread[i], NULL, work, &done[i]))
			die("thread");
	pthread_barrier_wait(&connected);
	begin = now();
	end = begin + seconds;
	pthread_barrier_wait(&connected);
	for (i = 0; i < n; i++) {
		pthread_join(thread[i], NULL);
		sum += done[i];
	}
	printf("%.2f\n", sum / (now() - begin) / (streams ? 1e6 : 1));
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	if (argc != 6 || (strcmp(argv[1], "streams") && strcmp(argv[1], "pingpong"))) {
		fprintf(stderr, "usage: many serve PORT | streams|pingpong HOST PORT N SECONDS\n");
		return 2;
	}
	streams = argv[1][0] == 's';
	seconds = atof(argv[5]);
	measure(argv[2], argv[3], atoi(argv[4]));
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * poll_owned [--tcp] poll|epoll
 *
 * A listener with TCP_DEFER_ACCEPT, and a connection without data in its queue: poll() must not
 * wait for the socket lock, which another thread has for as long as the page that its setsockopt() reads does not come.
 *
 * poll: a process that polls that descriptor with timeout 0 returns.
 * epoll: another program, with nothing of these, adds one epoll to another (epnested_mutex).
 *
 * 0: as TCP; 1: it hangs, uninterruptibly; 77: no userfaultfd.
 */
#include <poll.h>
#include <pthread.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include "slow_page.h"

static int listener;

static void *hold(void *unused)
{
	(void)unused;
	setsockopt(listener, IPPROTO_IP, IP_OPTIONS, slow, 4);
	return NULL;
}

static bool ends(pid_t pid, int ms)
{
	int status;

	for (; ms > 0; ms -= 10) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return true;
		usleep(10000);
	}
	return false;
}

static void nested(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int in = epoll_create1(0), out = epoll_create1(0);

	epoll_ctl(out, EPOLL_CTL_ADD, in, &event);
	if (fd >= 0)
		epoll_ctl(in, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char **argv)
{
	bool epoll = argc > 1 && !strcmp(argv[argc - 1], "epoll");
	int seconds = 60, client, fd;
	struct pollfd ready;
	struct sockaddr_in at;
	pthread_t holder;
	pid_t poller, other;
	bool bad;

	arguments(argc, argv);
	slow_make();
	listener = listening(protocol, &at, 16);
	if (setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &seconds, sizeof(seconds)))
		err(MISSING, "TCP_DEFER_ACCEPT");
	client = open_socket(protocol, SOCK_NONBLOCK);
	if (connect(client, (void *)&at, sizeof(at)) && errno != EINPROGRESS)
		err(MISSING, "connect");
	ready = (struct pollfd){ .fd = client, .events = POLLOUT };
	poll(&ready, 1, 2000);
	fd = listener;
	pthread_create(&holder, NULL, hold, NULL);
	sleep(1);
	poller = fork();
	if (!poller) {
		ready = (struct pollfd){ .fd = fd, .events = POLLIN };
		if (epoll)
			nested(fd);
		else
			poll(&ready, 1, 0);
		_exit(0);
	}
	if (epoll) {
		usleep(500000);
		other = fork();
		if (!other) {
			nested(-1);
			_exit(0);
		}
		bad = !ends(other, 3000);
		printf("another program's epoll: %s\n", bad ? "hangs" : "done");
	} else {
		bad = !ends(poller, 3000);
		kill(poller, SIGKILL);
		printf("poll(): %s\n", bad ? "hangs" : "returned");
		if (bad)
			printf("... and SIGKILL %s\n", ends(poller, 2000) ? "ends it" : "does not end it");
	}
	fflush(stdout);
	slow_release();
	pthread_join(holder, NULL);
	return bad;
}

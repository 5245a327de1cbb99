// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * linger_worker [--tcp]: as any user, no namespaces.
 *
 * The work that drops TCP's socket of a connection that has become AF_SOVIA's (sovia_fallback_work()) has a
 * reference to the file.  If the program closes meanwhile, the last reference is that of a kernel thread, so
 * release() runs in the kernel's one delayed_fput() - with SO_LINGER.  Until it is over, no file of anybody is
 * released whose last reference a kernel thread or an interrupt dropped.
 *
 * The observer has nothing to do with sockets: the end of a pipe, whose last reference io_uring's exit work drops.
 *
 * 0: as TCP; 1: files of others are not closed; 77: no io_uring, no AF_SOVIA.
 */
#include <linux/io_uring.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include "slow_page.h"

#define LINGER	600
#define TRIES	400

/* Milliseconds until a pipe that a kernel worker closes is closed, or -1 after @most. */
static int observed(int most)
{
	struct io_uring_params params = {};
	struct timespec t0, t1;
	int ring, ends[2], ms = -1;
	struct pollfd end;

	if (pipe(ends))
		err(MISSING, "pipe");
	ring = syscall(SYS_io_uring_setup, 4, &params);
	if (ring < 0)
		err(MISSING, "io_uring");
	if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, &ends[1], 1))
		err(MISSING, "IORING_REGISTER_FILES");
	clock_gettime(CLOCK_MONOTONIC, &t0);
	close(ends[1]);
	close(ring);
	end = (struct pollfd){ .fd = ends[0], .events = POLLIN };
	if (poll(&end, 1, most) == 1) {
		clock_gettime(CLOCK_MONOTONIC, &t1);
		ms = (t1.tv_sec - t0.tv_sec) * 1000 + (t1.tv_nsec - t0.tv_nsec) / 1000000;
	}
	close(ends[0]);
	return ms;
}

/* In a process of its own: close() may wait. */
static void attempt(const struct sockaddr_in *to, const char *data, size_t size)
{
	const struct linger linger = { 1, LINGER };
	int fd = open_socket(protocol, SOCK_NONBLOCK), i;
	ssize_t ret = -1;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	if (connect(fd, (const void *)to, sizeof(*to)) && errno != EINPROGRESS)
		_exit(2);
	for (i = 0; i < 2000000 && ret < 0; i++) {
		ret = send(fd, data, size, MSG_NOSIGNAL);
		if (ret < 0 && errno != EAGAIN)
			_exit(3);
	}
	if (ret < 0)
		_exit(4);
	close(fd);
	_exit(0);
}

int main(int argc, char **argv)
{
	const size_t size = 64 << 20;
	struct sockaddr_in at;
	int listener, status, base, i, done = 0, ms, kept[TRIES], n = 0, small = 4096;
	char *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	arguments(argc, argv);
	base = observed(10000);
	if (base < 0)
		errx(MISSING, "files are not closed before, either");
	listener = listening(protocol, &at, 128);
	setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	fcntl(listener, F_SETFL, O_NONBLOCK);
	for (i = 0; i < TRIES && done < 3; i++) {
		pid_t pid = fork();
		int waited = 0, fd;

		if (!pid)
			attempt(&at, data, size);
		while (waitpid(pid, &status, WNOHANG) != pid && waited++ < 50)
			usleep(10000);
		/* So that nothing is reset: it just is not read. */
		while ((fd = accept(listener, NULL, NULL)) >= 0 && n < TRIES)
			kept[n++] = fd;
		if (waited > 50) {
			/* It is close() that lingers, as it should. */
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
		} else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
			done++;
		} else {
			printf("attempt: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
		}
		if (protocol == IPPROTO_TCP && i == 3)
			break;
	}
	ms = observed(8000);
	printf("%d of %d close() did not linger; a file is released after %d ms before, %d ms now\n", done, i, base, ms);
	if (ms >= 0)
		return 0;
	for (i = 0; i < n; i++)
		close(kept[i]);
	printf("after the peers have gone: %d ms\n", observed(10000));
	return 1;
}

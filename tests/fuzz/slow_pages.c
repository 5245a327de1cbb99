// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A program whose sockets stay locked, for as long as it likes, just when the kernel wants them.
 *
 *	slow_pages [--family N] COUNT
 *
 * COUNT threads each begin to connect to a port where only TCP listens, and set IP_OPTIONS at once: setsockopt()
 * reads the value with the socket lock held, from a page that does not come (userfaultfd).  Meanwhile AF_SOVIA's answer
 * is no, and it is TCP's turn, by a work that needs the socket.
 *
 * Prints "held N" when N sockets are in that state and N no longer changes.  The pages come with SIGTERM; then
 * every socket must have become TCP's and have connected, else it exits with 1.  An ordinary user needs
 * vm.unprivileged_userfaultfd.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sovia.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE		4096ul
#define STACK		(64 << 10)
#define TIMEOUT_MS	60000

static int family = SOVIA_FAMILY_DEFAULT;
static struct sockaddr_in to = { .sin_family = AF_INET };
static char *pages;
static atomic_int failed;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void *hold(void *number)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, SOVIAPROTO_V4), protocol = 0, error = 0;
	char *page = pages + (uintptr_t)number * PAGE;
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);

	if (fd < 0)
		die("socket");
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
		die("connect");
	setsockopt(fd, IPPROTO_IP, IP_OPTIONS, page, 4);
	if (poll(&ready, 1, TIMEOUT_MS) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) || error ||
	    getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) || protocol != IPPROTO_TCP) {
		fprintf(stderr, "socket %ld: protocol %d, %s\n", (long)number, protocol, strerror(error));
		atomic_fetch_add(&failed, 1);
	}
	return NULL;
}

static int open_uffd(int count)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	pages = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range = (struct uffdio_range) { (uintptr_t)pages, count * PAGE };
	if (fd < 0 || pages == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &reg))
		die("userfaultfd");
	return fd;
}

/* Of TCP alone. */
static void open_listener(int count)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(to);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, len) || listen(fd, count) ||
	    getsockname(fd, (struct sockaddr *)&to, &len))
		die("listener");
}

int main(int argc, char **argv)
{
	const struct rlimit files = { 4096, 4096 };
	int count, uffd, signal, faults = 0;
	struct uffd_msg msg;
	pthread_t *threads;
	pthread_attr_t attr;
	sigset_t term;

	if (argc == 4 && !strcmp(argv[1], "--family"))
		family = atoi(argv[2]);
	count = atoi(argv[argc - 1]);
	if (count < 1)
		return 2;
	setrlimit(RLIMIT_NOFILE, &files);
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, NULL);
	uffd = open_uffd(count);
	open_listener(count);
	threads = calloc(count, sizeof(*threads));
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (long i = 0; i < count; i++)
		if (pthread_create(&threads[i], &attr, hold, (void *)i))
			die("thread");
	/* Each that waits for its page has said so. */
	while (faults < count && poll(&(struct pollfd) { .fd = uffd, .events = POLLIN }, 1, 10000) == 1)
		if (read(uffd, &msg, sizeof(msg)) == sizeof(msg))
			faults++;
	printf("held %d\n", faults);
	fflush(stdout);
	sigwait(&term, &signal);
	if (ioctl(uffd, UFFDIO_ZEROPAGE, &(struct uffdio_zeropage) { { (uintptr_t)pages, count * PAGE }, 0, 0 }))
		die("UFFDIO_ZEROPAGE");
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	printf("failed %d\n", failed);
	return !!failed;
}

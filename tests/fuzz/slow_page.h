/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For programs of any user: sockets, and a page that does not come until it is asked to (vm.unprivileged_userfaultfd). */
#ifndef SLOW_PAGE_H
#define SLOW_PAGE_H

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sovia.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Exit status: the kernel has not what it takes. */
#define MISSING	77

static int protocol = SOVIAPROTO_INET;
static int slow_uffd;
static char *slow;

static int open_socket(int proto, int flags)
{
	int fd = socket(AF_INET, SOCK_STREAM | flags, proto);

	if (fd < 0)
		err(MISSING, "socket");
	return fd;
}

static int listening(int proto, struct sockaddr_in *at, int backlog)
{
	int fd = open_socket(proto, 0);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(fd, (void *)at, len) || listen(fd, backlog) || getsockname(fd, (void *)at, &len))
		err(MISSING, "listener");
	return fd;
}

/* Before there are threads. */
static inline void slow_make(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	slow_uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	slow = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	reg.range = (struct uffdio_range){ (uintptr_t)slow, 4096 };
	if (slow_uffd < 0 || slow == MAP_FAILED || ioctl(slow_uffd, UFFDIO_API, &api) || ioctl(slow_uffd, UFFDIO_REGISTER, &reg))
		err(MISSING, "userfaultfd");
}

static inline void slow_release(void)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)slow, 4096 } };

	ioctl(slow_uffd, UFFDIO_ZEROPAGE, &zero);
}

static inline void arguments(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--tcp"))
		protocol = IPPROTO_TCP;
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * libsovia-preload.so: TCP sockets of a program become AF_SOVIA sockets.
 *
 * An AF_SOVIA socket is a kernel descriptor that takes and gives AF_INET and
 * AF_INET6 addresses, so only socket() has to be replaced:
 *
 *   socket(AF_INET,  SOCK_STREAM, 0 | IPPROTO_TCP) -> AF_SOVIA, SOVIAPROTO_V4
 *   socket(AF_INET6, SOCK_STREAM, 0 | IPPROTO_TCP) -> AF_SOVIA, SOVIAPROTO_V6
 *
 * SOCK_CLOEXEC and SOCK_NONBLOCK are passed on; everything else goes to the
 * kernel unchanged.  Policy (which peers, fallback to TCP) is the module's.
 *
 * socket() may be called from signal handlers, between vfork() and exec(), and
 * by other libraries' constructors.  So: no allocation, no lock, no dlsym()
 * (it makes the system call directly), and only the system call sets errno.
 */
#include <linux/sovia.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAMILY_VARIABLE "SOVIA_FAMILY="

extern char **environ;

/* 0 until known.  Every thread that fills it in computes the same value. */
static int sovia_family;

/* Parses a decimal family number, 0 if @s is not one. */
static int parse_family(const char *s)
{
	int n = 0;

	for (; *s >= '0' && *s <= '9' && n < 1000; s++)
		n = n * 10 + (*s - '0');
	return *s == '\0' ? n : 0;
}

/*
 * Walks environ instead of calling getenv(), which other libraries interpose
 * and which need not be async-signal-safe.
 */
static int family_from_environment(void)
{
	const size_t len = sizeof(FAMILY_VARIABLE) - 1;
	int family = 0;
	char **p;

	for (p = environ; p && *p; p++) {
		if (strncmp(*p, FAMILY_VARIABLE, len) == 0) {
			family = parse_family(*p + len);
			break;
		}
	}
	return family ? family : SOVIA_FAMILY_DEFAULT;
}

static int family_number(void)
{
	int family = __atomic_load_n(&sovia_family, __ATOMIC_RELAXED);

	if (!family) {
		family = family_from_environment();
		__atomic_store_n(&sovia_family, family, __ATOMIC_RELAXED);
	}
	return family;
}

/*
 * Reads the variable before main() can change the environment.  An even earlier
 * socket() call, from another constructor, does the same.
 */
static void __attribute__((constructor)) remember_family(void)
{
	family_number();
}

static bool is_tcp(int domain, int type, int protocol)
{
	/* Only known flags: the kernel rejects others with EINVAL. */
	const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~flags) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

int socket(int domain, int type, int protocol)
{
	if (is_tcp(domain, type, protocol)) {
		protocol = domain == AF_INET6 ? SOVIAPROTO_V6 : SOVIAPROTO_V4;
		domain = family_number();
	}
	return syscall(SYS_socket, domain, type, protocol);
}

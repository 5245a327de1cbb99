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
 * kernel unchanged.  Policy (which peers, fallback to TCP) is the module's; what sovia-run was
 * told of it, SOVIA_ONLY and SOVIA_WAIT, is set as options of each socket.
 *
 * Where a filter hides the family, the program gets the same socket as AF_INET or AF_INET6 with a
 * protocol of its own.  Where it may have neither, or the module has been unloaded, socket() opens a
 * TCP socket, as it does without this library, unless SOVIA_ONLY says otherwise.
 *
 * socket() may be called from signal handlers, between vfork() and exec(), and
 * by other libraries' constructors.  So: no allocation, no lock, no dlsym()
 * (it makes the system call directly), and only the system call sets errno.
 */
#include <errno.h>
#include <linux/sovia.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

/*
 * What the environment says.
 *
 * @family: the family's number
 * @only: 1: no fallback to TCP
 * @wait: milliseconds that connect() waits for a link, or -1
 * @known: the others are valid; every thread that fills them in computes the same values
 */
static struct {
	int	family;
	int	only;
	int	wait;
	bool	known;
} settings;

/* Parses a decimal number, @otherwise if @s is not one. */
static int parse_number(const char *s, int otherwise)
{
	int n = 0;

	if (!s || *s == '\0')
		return otherwise;
	for (; *s >= '0' && *s <= '9' && n < 100000; s++)
		n = n * 10 + (*s - '0');
	return *s == '\0' ? n : otherwise;
}

/*
 * Walks environ instead of calling getenv(), which other libraries interpose
 * and which need not be async-signal-safe.
 */
static const char *variable(const char *name)
{
	const size_t len = strlen(name);
	char **p;

	for (p = environ; p && *p; p++)
		if (strncmp(*p, name, len) == 0 && (*p)[len] == '=')
			return *p + len + 1;
	return NULL;
}

static void read_settings(void)
{
	if (__atomic_load_n(&settings.known, __ATOMIC_ACQUIRE))
		return;
	settings.family = parse_number(variable("SOVIA_FAMILY"), 0);
	if (settings.family == 0)
		settings.family = SOVIA_FAMILY_DEFAULT;
	settings.only = parse_number(variable("SOVIA_ONLY"), 0);
	settings.wait = parse_number(variable("SOVIA_WAIT"), -1);
	__atomic_store_n(&settings.known, true, __ATOMIC_RELEASE);
}

/*
 * Reads the variables before main() can change the environment.  An even earlier
 * socket() call, from another constructor, does the same.
 */
static void __attribute__((constructor)) remember_settings(void)
{
	read_settings();
}

static bool is_tcp(int domain, int type, int protocol)
{
	/* Only known flags: the kernel rejects others with EINVAL. */
	const int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

	return (domain == AF_INET || domain == AF_INET6) &&
	       (type & ~flags) == SOCK_STREAM &&
	       (protocol == 0 || protocol == IPPROTO_TCP);
}

static bool set_option(int fd, int option, int value)
{
	return syscall(SYS_setsockopt, fd, SOL_SOVIA, option, &value, sizeof(value)) == 0;
}

static bool set_options(int fd)
{
	return (!settings.only || set_option(fd, SOVIA_ACTION, SOVIA_ONLY_SOVIA)) &&
	       (settings.wait < 0 || set_option(fd, SOVIA_WAIT, settings.wait));
}

/*
 * The program may not have the family, by a filter of system calls or a security module, or the module
 * has been unloaded.  Other errors, no memory or no descriptors, do
 * not differ between families.
 */
static bool is_refused(int error)
{
	return error == EAFNOSUPPORT || error == EPERM || error == EACCES;
}

/*
 * The same socket by another name, which a filter of families allows (RestrictAddressFamilies= of systemd).
 * A security module has another error, for the socket.  A kernel without the module looks for one that has
 * the protocol each time: once is enough.
 */
static int open_by_protocol(int domain, int type)
{
	static bool unknown;
	int fd;

	if (__atomic_load_n(&unknown, __ATOMIC_RELAXED))
		return -1;
	fd = syscall(SYS_socket, domain, type, SOVIAPROTO_INET);
	if (fd < 0 && errno == EPROTONOSUPPORT)
		__atomic_store_n(&unknown, true, __ATOMIC_RELAXED);
	return fd;
}

int socket(int domain, int type, int protocol)
{
	const int before = errno;
	int fd, error;

	if (!is_tcp(domain, type, protocol))
		return syscall(SYS_socket, domain, type, protocol);
	read_settings();
	fd = syscall(SYS_socket, settings.family, type,
		     domain == AF_INET6 ? SOVIAPROTO_V6 : SOVIAPROTO_V4);
	error = errno;
	if (fd < 0 && error == EAFNOSUPPORT) {
		errno = before;
		fd = open_by_protocol(domain, type);
	}
	if (fd < 0 && !settings.only && is_refused(error)) {
		errno = before;
		return syscall(SYS_socket, domain, type, protocol);
	}
	if (fd < 0)
		errno = error;
	if (fd < 0 || set_options(fd))
		return fd;
	error = errno;
	syscall(SYS_close, fd);
	errno = error;
	return -1;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of system calls on AF_SOVIA sockets.
 *
 *	calls [--family N] [--seed N] [--operations N] [--processes N] [--threads N]
 *	      [--trace FILE] [--address ADDRESS]
 *
 * Each thread of each process makes a sequence of calls determined by its seed, on
 * descriptors that all threads of a process share and that processes pass to each
 * other: so they are closed, duplicated, connected and listened on during calls of
 * other threads.  Another thread interrupts them with signals all the time, so that
 * no call blocks for ever.
 *
 * Results of the calls are ignored: a call may fail, but the kernel may not crash.
 * The same seed makes the same calls; their order is up to the scheduler.  The
 * trace has one line per call, written before the call.
 *
 * Exits with 0 if every process ran to its end.  The last line has the number of calls
 * made and successful, of sockets opened, connected and accepted, and of bytes sent
 * and received, so that tests can check that the fuzzer did something.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/errqueue.h>
#include <linux/sockios.h>
#include <linux/sovia.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "chance.h"

#define SLOTS		24		/* descriptors of a process */
#define PORTS		12		/* few, so that sockets collide and connect */
#define FIRST_PORT	6000
#define BUFFER		(256 << 10)
#define THREADS_MAX	16
#define PROCESSES_MAX	16
#define PESTER_MS	5
#define PIECE(a)	((a)[pick(t, sizeof(a) / sizeof((a)[0]))])

/* Counted over all processes. */
struct sums {
	atomic_ulong	calls, good, opened, connected, accepted, sent, received;
};

/* One thread. */
struct thread {
	uint64_t	random;
	pthread_t	id;
	atomic_int	tid;		/* to be sent signals, if not 0 */
	unsigned long	operations;
	char		*buffer;	/* BUFFER bytes, followed by unmapped memory */
	int		depth;		/* of fork */
	unsigned int	number;
};

static struct {
	int		family;
	uint64_t	seed;
	unsigned long	operations;
	int		processes;
	int		threads;
	struct in_addr	address;
} opt = { SOVIA_FAMILY_DEFAULT, 1, 2000, 2, 3, { 0 } };

static atomic_int slots[SLOTS];		/* a descriptor, or -1 */
static struct thread threads[THREADS_MAX];
static struct sums *sums;
static int mailbox[2];			/* Unix sockets that pass descriptors around */
static int a_file, a_pipe[2], an_epoll, trace = -1;

/* ---- random numbers ---- */

int main(int argc, char **argv);

static uint64_t next(struct thread *t)
{
	return chance_next(&t->random);
}

static unsigned int pick(struct thread *t, unsigned int below)
{
	return (uint32_t)next(t) % below;
}

static bool one_in(struct thread *t, unsigned int n)
{
	return !pick(t, n);
}

/* Small numbers, those around powers of two, and arbitrary ones. */
static int number(struct thread *t)
{
	switch (pick(t, 4)) {
	case 0:
		return pick(t, 4);
	case 1:
		return (int)(1u << pick(t, 32)) + (int)pick(t, 3) - 1;
	case 2:
		return pick(t, 1000);
	default:
		return next(t);
	}
}

static size_t length(struct thread *t)
{
	return one_in(t, 4) ? pick(t, BUFFER) : pick(t, one_in(t, 2) ? 16 : 6000);
}

/* Memory for @len bytes; sometimes its end, or all of it, is unmapped. */
static char *memory(struct thread *t, size_t len)
{
	if (one_in(t, 40))
		return PIECE(((char *[]) { NULL, (char *)-1, (char *)1, (char *)main }));
	if (one_in(t, 30))
		return t->buffer + BUFFER - pick(t, len + 1);
	return t->buffer + (len < BUFFER ? pick(t, BUFFER - len) : 0);
}

/* ---- descriptors ---- */

static int slot(struct thread *t)
{
	if (one_in(t, 60))
		return PIECE(((int[]) { -1, a_file, a_pipe[0], a_pipe[1], an_epoll, 1 << 20 }));
	return atomic_load(&slots[pick(t, SLOTS)]);
}

/* Puts a new descriptor into a slot; the previous one is closed. */
static long keep(struct thread *t, long fd)
{
	int old;

	if (fd < 0)
		return fd;
	old = atomic_exchange(&slots[pick(t, SLOTS)], fd);
	if (old >= 0)
		close(old);
	return fd;
}

/* ---- statistics ---- */

static long count(long ret)
{
	atomic_fetch_add(&sums->calls, 1);
	if (ret >= 0)
		atomic_fetch_add(&sums->good, 1);
	return ret;
}

static void add(atomic_ulong *sum, long ret)
{
	if (ret > 0)
		atomic_fetch_add(sum, ret);
}

static void note(struct thread *t, const char *name)
{
	char line[80];

	if (trace < 0)
		return;
	if (write(trace, line, snprintf(line, sizeof(line), "%d.%u %lu %s\n", getpid(), t->number,
					t->operations, name)) < 0)
		trace = -1;
}

/* ---- addresses ---- */

static socklen_t address(struct thread *t, struct sockaddr_storage *to, bool proper)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	uint16_t port = htons(FIRST_PORT + pick(t, PORTS));
	const uint32_t loopback = INADDR_LOOPBACK + pick(t, 2);

	memset(to, 0, sizeof(*to));
	if (one_in(t, 3)) {
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		if (one_in(t, 2)) {
			six->sin6_addr = in6addr_loopback;
		} else if (one_in(t, 2)) {
			six->sin6_addr.s6_addr[10] = six->sin6_addr.s6_addr[11] = 0xff;
			six->sin6_addr.s6_addr32[3] = htonl(loopback);
		}
	} else {
		four->sin_family = AF_INET;
		four->sin_port = port;
		if (!one_in(t, 6))
			four->sin_addr.s_addr = htonl(loopback);
		if (opt.address.s_addr && one_in(t, 2))
			four->sin_addr = opt.address;
	}
	if (!proper && one_in(t, 10))
		((char *)to)[pick(t, 28)] = next(t);
	if (!proper && one_in(t, 20))
		to->ss_family = PIECE(((int[]) { AF_UNSPEC, AF_UNIX, opt.family, 255 }));
	if (!proper && one_in(t, 20))
		return pick(t, sizeof(*to) + 8);
	return to->ss_family == AF_INET6 ? sizeof(*six) : sizeof(*four);
}

/* ---- calls: one function each ---- */

static long call_socket(struct thread *t)
{
	int type = SOCK_STREAM, family = opt.family, protocol = pick(t, 2);
	long fd;

	if (one_in(t, 2))
		type |= SOCK_NONBLOCK;
	if (one_in(t, 8)) {
		family = PIECE(((int[]) { AF_INET, AF_INET6 }));
		protocol = SOVIAPROTO_INET;
	}
	if (one_in(t, 30))
		type = number(t);
	if (one_in(t, 30))
		protocol = number(t);
	fd = keep(t, socket(family, type, protocol));
	add(&sums->opened, fd >= 0);
	return fd;
}

static long call_bind(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to, false);

	return bind(slot(t), (struct sockaddr *)&to, len);
}

static long call_listen(struct thread *t)
{
	return listen(slot(t), one_in(t, 10) ? number(t) : (int)pick(t, 8));
}

static long call_connect(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to, false);
	long ret;

	ret = connect(slot(t), one_in(t, 50) ? (void *)memory(t, len) : (void *)&to, len);
	add(&sums->connected, ret == 0);
	return ret;
}

static long call_accept(struct thread *t)
{
	struct sockaddr_storage from;
	socklen_t len = one_in(t, 5) ? pick(t, 200) : sizeof(from);
	int flags = one_in(t, 20) ? number(t) : PIECE(((int[]) { 0, SOCK_NONBLOCK, SOCK_CLOEXEC }));
	long fd;

	fd = keep(t, accept4(slot(t), one_in(t, 2) ? NULL : (void *)&from,
			     one_in(t, 30) ? (void *)memory(t, 4) : &len, flags));
	add(&sums->accepted, fd >= 0);
	return fd;
}

/* Opens two connected sockets, which random calls would seldom reach. */
static long call_pair(struct thread *t)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(to);
	int listener, fd = -1;
	long ret = -1;

	if (opt.address.s_addr && one_in(t, 2))
		to.sin_addr = opt.address;
	listener = socket(opt.family, SOCK_STREAM, SOVIAPROTO_V4);
	if (listener < 0)
		return -1;
	if (!bind(listener, (struct sockaddr *)&to, len) && !listen(listener, 1) &&
	    !getsockname(listener, (struct sockaddr *)&to, &len)) {
		fd = socket(opt.family, SOCK_STREAM | SOCK_NONBLOCK, SOVIAPROTO_V4);
		connect(fd, (struct sockaddr *)&to, len);
		ret = accept4(listener, NULL, NULL, one_in(t, 2) ? SOCK_NONBLOCK : 0);
	}
	if (ret >= 0) {
		add(&sums->opened, 2);
		add(&sums->connected, 1);
		add(&sums->accepted, 1);
	}
	keep(t, ret);
	keep(t, fd);
	if (one_in(t, 4))
		keep(t, listener);
	else
		close(listener);
	return ret;
}

static const int message_flags[] = {
	MSG_OOB, MSG_PEEK, MSG_DONTROUTE, MSG_CTRUNC, MSG_TRUNC, MSG_DONTWAIT, MSG_EOR, MSG_WAITALL,
	MSG_FIN, MSG_CONFIRM, MSG_ERRQUEUE, MSG_NOSIGNAL, MSG_MORE, MSG_WAITFORONE, MSG_ZEROCOPY,
	MSG_FASTOPEN, MSG_CMSG_CLOEXEC,
};

static int some_flags(struct thread *t)
{
	int flags = MSG_NOSIGNAL, i;

	if (one_in(t, 40))
		return number(t);
	for (i = pick(t, 3); i; i--)
		flags |= PIECE(message_flags);
	/* Mostly without blocking. */
	return one_in(t, 3) ? flags : flags | MSG_DONTWAIT;
}

static long call_send(struct thread *t)
{
	size_t len = length(t);
	long ret = send(slot(t), memory(t, len), len, some_flags(t));

	add(&sums->sent, ret);
	return ret;
}

static long call_recv(struct thread *t)
{
	size_t len = length(t);
	long ret = recv(slot(t), memory(t, len), len, some_flags(t));

	add(&sums->received, ret);
	return ret;
}

static long call_sendto(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t alen = address(t, &to, false);
	size_t len = length(t);

	return sendto(slot(t), memory(t, len), len, some_flags(t), (struct sockaddr *)&to, alen);
}

static long call_recvfrom(struct thread *t)
{
	struct sockaddr_storage from;
	socklen_t alen = one_in(t, 4) ? (socklen_t)number(t) : sizeof(from);
	size_t len = length(t);

	return recvfrom(slot(t), memory(t, len), len, some_flags(t), (struct sockaddr *)&from, &alen);
}

/* A vector of @n pieces. */
static void vector(struct thread *t, struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++) {
		iov[i].iov_len = one_in(t, 60) ? (size_t)number(t) : length(t) / n;
		iov[i].iov_base = memory(t, length(t));
	}
}

/* Control messages of all kinds, some of them invalid. */
static void control(struct thread *t, struct msghdr *msg, char *space, size_t size)
{
	struct cmsghdr *c;
	int fd = slot(t);

	memset(space, 0, size);
	msg->msg_control = space;
	msg->msg_controllen = size;
	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		c->cmsg_level = PIECE(((int[]) { SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, 77 }));
		c->cmsg_type = one_in(t, 3) ? SCM_RIGHTS : one_in(t, 2) ? SO_TIMESTAMPING : (int)pick(t, 70);
		c->cmsg_len = CMSG_LEN(one_in(t, 10) ? pick(t, 100) : sizeof(int) * (1 + pick(t, 4)));
		if ((char *)CMSG_DATA(c) + sizeof(fd) <= space + size)
			memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		if (one_in(t, 2))
			break;
	}
	if (one_in(t, 4))
		msg->msg_controllen = pick(t, size);
	if (one_in(t, 50))
		msg->msg_control = memory(t, size);
}

static void message(struct thread *t, struct msghdr *msg, struct iovec *iov, char *space, size_t size,
		    struct sockaddr_storage *name)
{
	memset(msg, 0, sizeof(*msg));
	msg->msg_iovlen = pick(t, 6);
	vector(t, iov, msg->msg_iovlen);
	msg->msg_iov = iov;
	if (one_in(t, 3))
		control(t, msg, space, size);
	if (one_in(t, 4)) {
		msg->msg_namelen = address(t, name, false);
		msg->msg_name = name;
	}
	if (one_in(t, 30))
		msg->msg_flags = number(t);
	if (one_in(t, 100))
		msg->msg_iovlen = PIECE(((size_t[]) { 1025, 1 << 20, -1 }));
	if (one_in(t, 100))
		msg->msg_namelen = number(t);
}

static long call_sendmsg(struct thread *t)
{
	struct sockaddr_storage name;
	struct iovec iov[6];
	struct msghdr msg;
	char space[256] __attribute__((aligned(8)));
	long ret;

	message(t, &msg, iov, space, sizeof(space), &name);
	ret = sendmsg(slot(t), &msg, some_flags(t));
	add(&sums->sent, ret);
	return ret;
}

/* Received descriptors (SCM_RIGHTS) must not stay open outside the slots. */
static void take_rights(struct thread *t, struct msghdr *msg, bool keeping)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		int fds[64];

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || n > 64)
			continue;
		memcpy(fds, CMSG_DATA(c), n * sizeof(int));
		while (n--) {
			if (keeping)
				keep(t, fds[n]);
			else
				close(fds[n]);
		}
	}
}

static long call_recvmsg(struct thread *t)
{
	struct sockaddr_storage name;
	struct iovec iov[6];
	struct msghdr msg;
	char space[256] __attribute__((aligned(8)));
	long ret;

	message(t, &msg, iov, space, sizeof(space), &name);
	ret = recvmsg(slot(t), &msg, some_flags(t));
	add(&sums->received, ret);
	return ret;
}

static long call_mmsg(struct thread *t)
{
	struct sockaddr_storage name[3];
	struct iovec iov[3][6];
	struct mmsghdr msg[3];
	char space[3][128] __attribute__((aligned(8)));
	struct timespec patience = { .tv_nsec = one_in(t, 10) ? number(t) : 1000000 };

	for (int i = 0; i < 3; i++)
		message(t, &msg[i].msg_hdr, iov[i], space[i], sizeof(space[i]), &name[i]);
	if (one_in(t, 2))
		return sendmmsg(slot(t), msg, pick(t, 4), some_flags(t));
	return recvmmsg(slot(t), msg, pick(t, 4), some_flags(t), one_in(t, 2) ? &patience : NULL);
}

/* Blocks sometimes; signals interrupt it. */
static long call_stdio(struct thread *t)
{
	struct iovec iov[6];
	size_t len = length(t);
	int n = pick(t, 6);
	long ret;

	vector(t, iov, n);
	switch (pick(t, 6)) {
	case 0:
	case 1:
		ret = write(slot(t), memory(t, len), len);
		add(&sums->sent, ret);
		return ret;
	case 2:
		ret = read(slot(t), memory(t, len), len);
		add(&sums->received, ret);
		return ret;
	case 3:
		return writev(slot(t), iov, n);
	case 4:
		return readv(slot(t), iov, n);
	default:
		return pwritev2(slot(t), iov, n, one_in(t, 2) ? -1 : number(t), pick(t, 32));
	}
}

static const int levels[] = { SOL_SOCKET, SOL_SOCKET, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, IPPROTO_TCP };

static long call_setsockopt(struct thread *t)
{
	int level = one_in(t, 20) ? number(t) : PIECE(levels), name = one_in(t, 40) ? number(t) : (int)pick(t, 80);
	socklen_t len = one_in(t, 4) ? (socklen_t)pick(t, 300) : sizeof(int);
	int value[80];

	for (int i = 0; i < 80; i++)
		value[i] = number(t);
	if (one_in(t, 100))
		len = number(t);
	return setsockopt(slot(t), level, name, one_in(t, 30) ? memory(t, len) : (void *)value, len);
}

static long call_getsockopt(struct thread *t)
{
	int level = one_in(t, 20) ? number(t) : PIECE(levels), name = one_in(t, 40) ? number(t) : (int)pick(t, 80);
	socklen_t len = one_in(t, 3) ? (socklen_t)pick(t, 400) : sizeof(int);

	if (one_in(t, 100))
		len = number(t);
	return getsockopt(slot(t), level, name, memory(t, 400), one_in(t, 50) ? (void *)memory(t, 4) : &len);
}

/* ioctls that read, not those that change the guest's network. */
static const unsigned long requests[] = {
	FIONREAD, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, FIONBIO, FIOASYNC, FIOCLEX, FIONCLEX, FIOQSIZE,
	SIOCGPGRP, FIOGETOWN, SIOCGSTAMP_OLD, SIOCGSTAMPNS_OLD, SIOCGIFCONF, SIOCGIFNAME, SIOCGIFFLAGS,
	SIOCGIFADDR, SIOCGIFMTU, SIOCGIFINDEX, SIOCGARP, SIOCPROTOPRIVATE, SIOCDEVPRIVATE, TIOCGWINSZ,
	SIOCGSKNS, 0, 0xdeadbeef,
};

static long call_ioctl(struct thread *t)
{
	unsigned long request = PIECE(requests);
	int value[64];
	long ret;

	for (int i = 0; i < 64; i++)
		value[i] = one_in(t, 2);
	ret = ioctl(slot(t), request, one_in(t, 20) ? (void *)memory(t, 64) : (void *)value);
	if (request == SIOCGSKNS && ret >= 0)
		close(ret);
	return ret;
}

static long call_poll(struct thread *t)
{
	struct timespec patience = { .tv_nsec = pick(t, 3) * 1000000 };
	struct pollfd fds[4];
	fd_set set;
	int fd;

	if (one_in(t, 3)) {
		fd = slot(t);
		FD_ZERO(&set);
		if (fd >= 0 && fd < FD_SETSIZE)
			FD_SET(fd, &set);
		return pselect(fd < FD_SETSIZE ? fd + 1 : FD_SETSIZE, one_in(t, 2) ? &set : NULL, one_in(t, 2) ? &set : NULL, &set, &patience, NULL);
	}
	for (int i = 0; i < 4; i++) {
		fds[i].fd = slot(t);
		fds[i].events = next(t);
	}
	return ppoll(fds, pick(t, 5), one_in(t, 10) ? NULL : &patience, NULL);
}

static long call_epoll(struct thread *t)
{
	struct epoll_event events[4];
	int what = PIECE(((int[]) { EPOLL_CTL_ADD, EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL, 9 }));

	if (one_in(t, 2))
		return epoll_wait(an_epoll, events, 4, pick(t, 3));
	events[0].events = next(t);
	events[0].data.u64 = 0;
	return epoll_ctl(an_epoll, what, slot(t), events);
}

static long call_splice(struct thread *t)
{
	unsigned int flags = one_in(t, 10) ? (unsigned int)next(t) : pick(t, 16) | SPLICE_F_NONBLOCK;
	struct iovec iov = { memory(t, 4096), pick(t, 4096) };
	loff_t off = pick(t, 10000);
	size_t len = length(t);

	switch (pick(t, 6)) {
	case 0:
		return splice(slot(t), NULL, a_pipe[1], NULL, len, flags);
	case 1:
		return splice(a_pipe[0], NULL, slot(t), NULL, len, flags);
	case 2:
		return tee(slot(t), slot(t), len, flags);
	case 3:
		return vmsplice(a_pipe[1], &iov, 1, SPLICE_F_NONBLOCK | (flags & ~SPLICE_F_GIFT));
	case 4:
		return splice(slot(t), one_in(t, 2) ? &off : NULL, slot(t), NULL, len, flags);
	default:
		return sendfile(slot(t), one_in(t, 10) ? slot(t) : a_file, one_in(t, 2) ? &off : NULL, len);
	}
}

static long call_shutdown(struct thread *t)
{
	return shutdown(slot(t), one_in(t, 20) ? number(t) : (int)pick(t, 3));
}

static long call_close(struct thread *t)
{
	int fd = atomic_exchange(&slots[pick(t, SLOTS)], -1);

	return fd < 0 ? -1 : close(fd);
}

static long call_dup(struct thread *t)
{
	return keep(t, fcntl(slot(t), PIECE(((int[]) { F_DUPFD, F_DUPFD_CLOEXEC })), 3));
}

static long call_fcntl(struct thread *t)
{
	switch (pick(t, 5)) {
	case 0:
		return fcntl(slot(t), F_SETFL, PIECE(((int[]) { 0, O_NONBLOCK, O_NONBLOCK | O_ASYNC, O_APPEND })));
	case 1:
		return fcntl(slot(t), F_SETOWN, getpid());
	case 2:
		return fcntl(slot(t), PIECE(((int[]) { F_GETFL, F_GETFD, F_GETOWN, F_GETSIG, F_GETPIPE_SZ })));
	case 3:
		return fcntl(slot(t), F_SETSIG, PIECE(((int[]) { 0, SIGIO, SIGURG, SIGUSR1 })));
	default:
		return fcntl(slot(t), F_NOTIFY, number(t));
	}
}

/* Calls for files, made on sockets. */
static long call_file(struct thread *t)
{
	struct stat st;
	int fd = slot(t);

	switch (pick(t, 6)) {
	case 0:
		return fstat(fd, &st);
	case 1:
		return lseek(fd, number(t), SEEK_SET);
	case 2:
		return fd == a_file ? -1 : ftruncate(fd, number(t));
	case 3:
		return fsync(fd);
	case 4:
		return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0;
	default:
		return posix_fadvise(fd, 0, number(t), pick(t, 6)) ? -1 : 0;
	}
}

static long call_name(struct thread *t)
{
	struct sockaddr_storage name;
	socklen_t len = one_in(t, 3) ? (socklen_t)number(t) : sizeof(name);
	void *where = one_in(t, 20) ? (void *)memory(t, 128) : &name;

	return one_in(t, 2) ? getsockname(slot(t), where, &len) : getpeername(slot(t), where, &len);
}

/* Sends a descriptor to the mailbox or receives one: possibly in another process. */
static long call_mail(struct thread *t)
{
	char byte = 0, space[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8))) = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	int fd = slot(t);
	long ret;

	if (one_in(t, 2)) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
		return sendmsg(mailbox[pick(t, 2)], &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	ret = recvmsg(mailbox[pick(t, 2)], &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (ret >= 0)
		take_rights(t, &msg, true);
	return ret;
}

static void some_calls(struct thread *t, unsigned long operations);

/* A child with all descriptors, which makes a few calls and exits without closing them. */
static long call_fork(struct thread *t)
{
	uint64_t random = next(t);
	pid_t pid;

	if (t->depth || !one_in(t, 4))
		return -1;
	pid = fork();
	if (pid == 0) {
		t->depth = 1;
		t->random = random;
		alarm(2);
		some_calls(t, 20);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return pid;
}

static const struct {
	const char	*name;
	long		(*call)(struct thread *t);
	unsigned int	weight;
} calls[] = {
	{ "socket", call_socket, 6 }, { "bind", call_bind, 5 }, { "listen", call_listen, 4 },
	{ "connect", call_connect, 6 }, { "accept", call_accept, 6 }, { "pair", call_pair, 6 },
	{ "send", call_send, 10 }, { "recv", call_recv, 10 }, { "sendto", call_sendto, 2 },
	{ "recvfrom", call_recvfrom, 2 }, { "sendmsg", call_sendmsg, 8 }, { "recvmsg", call_recvmsg, 8 },
	{ "mmsg", call_mmsg, 3 }, { "stdio", call_stdio, 8 }, { "setsockopt", call_setsockopt, 10 },
	{ "getsockopt", call_getsockopt, 6 }, { "ioctl", call_ioctl, 5 }, { "poll", call_poll, 5 },
	{ "epoll", call_epoll, 5 }, { "splice", call_splice, 6 }, { "shutdown", call_shutdown, 3 },
	{ "close", call_close, 5 }, { "dup", call_dup, 3 }, { "fcntl", call_fcntl, 3 },
	{ "file", call_file, 2 }, { "name", call_name, 2 }, { "mail", call_mail, 4 }, { "fork", call_fork, 1 },
};

#define CALLS	(sizeof(calls) / sizeof(calls[0]))

static void some_calls(struct thread *t, unsigned long operations)
{
	unsigned int all = 0, i, n;

	for (i = 0; i < CALLS; i++)
		all += calls[i].weight;
	while (operations--) {
		n = pick(t, all);
		for (i = 0; n >= calls[i].weight; i++)
			n -= calls[i].weight;
		note(t, calls[i].name);
		count(calls[i].call(t));
		t->operations++;
	}
}

/* ---- threads and processes ---- */

static void *run_thread(void *arg)
{
	struct thread *t = arg;

	atomic_store(&t->tid, gettid());
	some_calls(t, opt.operations);
	atomic_store(&t->tid, 0);
	return NULL;
}

static void nothing(int signal)
{
	(void)signal;
}

static void *pester(void *arg)
{
	const struct timespec pause = { .tv_nsec = PESTER_MS * 1000000 };

	while (!atomic_load((atomic_bool *)arg)) {
		nanosleep(&pause, NULL);
		for (int i = 0; i < opt.threads; i++) {
			int tid = atomic_load(&threads[i].tid);

			if (tid)
				syscall(SYS_tgkill, getpid(), tid, SIGUSR1);
		}
	}
	return NULL;
}

static char *guarded_buffer(void)
{
	char *p = mmap(NULL, BUFFER + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + BUFFER, 65536, PROT_NONE))
		exit(1);
	return p;
}

static void open_things(void)
{
	char path[] = "/tmp/calls.XXXXXX";

	a_file = mkstemp(path);
	if (a_file < 0 || unlink(path) || ftruncate(a_file, 100000) || pipe2(a_pipe, O_NONBLOCK))
		exit(1);
	an_epoll = epoll_create1(0);
	for (int i = 0; i < SLOTS; i++)
		slots[i] = -1;
}

static int run_process(int number)
{
	atomic_bool over = false;
	pthread_t pesterer;
	int i;

	open_things();
	for (i = 0; i < opt.threads; i++) {
		struct thread *t = &threads[i];

		t->random = opt.seed * 1000003 + number * 1009 + i;
		t->number = i;
		t->buffer = guarded_buffer();
		if (pthread_create(&t->id, NULL, run_thread, t))
			return 1;
	}
	if (pthread_create(&pesterer, NULL, pester, &over))
		return 1;
	for (i = 0; i < opt.threads; i++)
		pthread_join(threads[i].id, NULL);
	atomic_store(&over, true);
	pthread_join(pesterer, NULL);
	return 0;
}

static void handle_signals(void)
{
	/* Without SA_RESTART: calls are to be interrupted. */
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGIO, &action, NULL);
	sigaction(SIGURG, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

static int family_number(void)
{
	FILE *f = fopen("/sys/module/sovia/parameters/family", "r");
	int n;

	if (!f || fscanf(f, "%d", &n) != 1)
		n = SOVIA_FAMILY_DEFAULT;
	if (f)
		fclose(f);
	return n;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "family", 1, NULL, 'f' }, { "seed", 1, NULL, 's' }, { "operations", 1, NULL, 'n' },
		{ "processes", 1, NULL, 'p' }, { "threads", 1, NULL, 't' }, { "trace", 1, NULL, 'T' },
		{ "address", 1, NULL, 'a' }, { 0 },
	};
	int c;

	opt.family = family_number();
	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'f')
			opt.family = atoi(optarg);
		else if (c == 's')
			opt.seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			opt.operations = strtoul(optarg, NULL, 0);
		else if (c == 'p')
			opt.processes = atoi(optarg);
		else if (c == 't')
			opt.threads = atoi(optarg);
		else if (c == 'T')
			trace = open(optarg, O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0644);
		else if (c != 'a' || inet_pton(AF_INET, optarg, &opt.address) != 1)
			exit(2);
	}
	if (opt.processes < 1 || opt.processes > PROCESSES_MAX || opt.threads < 1 || opt.threads > THREADS_MAX)
		exit(2);
}

int main(int argc, char **argv)
{
	pid_t pids[PROCESSES_MAX];
	int bad = 0, status, i;

	parse(argc, argv);
	handle_signals();
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, mailbox))
		return 1;
	for (i = 0; i < opt.processes; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			return 1;
		if (!pids[i])
			_exit(run_process(i));
	}
	for (i = 0; i < opt.processes; i++) {
		if (waitpid(pids[i], &status, 0) != pids[i] || status) {
			printf("process %d: status %#x\n", i, status);
			bad = 1;
		}
	}
	printf("seed=%llu calls=%lu good=%lu opened=%lu connected=%lu accepted=%lu sent=%lu received=%lu\n",
	       (unsigned long long)opt.seed, sums->calls, sums->good, sums->opened, sums->connected,
	       sums->accepted, sums->sent, sums->received);
	return bad;
}

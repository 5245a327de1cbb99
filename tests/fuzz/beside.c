// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every call on a socket beside every other one.
 *
 *	beside [--family N] [--seconds N] [--seed N] [--slow] [--only CALL[,CALL]] [--matrix FILE]
 *
 * Two threads have one socket.  For a few milliseconds each makes one kind of call on it, again and again;
 * then it is the next pair's turn, with a new socket.  How the socket was opened, who its peer is (AF_SOVIA, TCP alone, nobody), and how far it is then
 * are chosen at random, and so is an option that both threads prefer to others.  With --slow (root), the memory that calls read and write comes late (userfaultfd).
 *
 * Results are ignored: a call may fail, but the kernel may not crash.  Exits with 0 if every thread came back.
 *
 * The matrix has how often two calls were in the kernel at once, one line for each pair.  The last line is
 * "pairs=N never=M rounds=R connected=C tcp=T": M pairs never met.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/io_uring.h>
#include <linux/sockios.h>
#include <linux/sovia.h>
#include <linux/tcp.h>
#include <linux/userfaultfd.h>
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
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include "chance.h"

#define FD		100		/* the socket, whatever it is */
#define SIZE		(64 << 10)	/* of a thread's memory */
#define SLICE_MS	12
#define PATIENCE_MS	20000		/* a call that a signal does not end hangs */
#define SLOW_US		500
#define SOL_IP		0
#define SOL_IPV6	41
#define SOL_TCP		6
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define PIECE(t, a)	((a)[pick(t, COUNT(a))])

static const struct option_name {
	int		level, name;
	const char	*text;
} options[] = {
#include "options.h"
	{ SOL_SOVIA, SOVIA_ACTION, "SOVIA_ACTION" },
	{ SOL_SOVIA, SOVIA_WAIT, "SOVIA_WAIT" },
};

struct thread {
	uint64_t	random;
	pthread_t	id;
	int		number;
	char		*memory;
	int		pipe[2], epoll, file, pass[2];
	int		ring;		/* io_uring, or -1 */
	struct io_uring_sqe *sqes;
	char		*sq, *cq;
	struct io_sqring_offsets sq_off;
	struct io_cqring_offsets cq_off;
};

static struct {
	int	family;
	int	seconds;
	uint64_t seed;
	bool	slow;
	char	*only;
	char	*matrix;
} opt = { SOVIA_FAMILY_DEFAULT, 60, 1, false, NULL, NULL };

static struct thread threads[2];
static atomic_int task[2], inside[2], stop, arrived;
static atomic_uint favourite;			/* the option that both threads prefer in this round */
static int sovia_port, tcp_port;		/* of the peers, network order */
static unsigned long connected, tcp_connected, rounds;
static int uffd = -1;

/* ---- chance ---- */

static uint64_t next(struct thread *t)
{
	return chance_next(&t->random);
}

static unsigned int pick(struct thread *t, unsigned int below)
{
	return (uint32_t)(next(t) >> 20) % below;
}

static bool one_in(struct thread *t, unsigned int n)
{
	return !pick(t, n);
}

/* ---- memory that comes late ---- */

static void forget(struct thread *t)
{
	if (uffd >= 0 && one_in(t, 4))
		madvise(t->memory, SIZE, MADV_DONTNEED);
}

static void *feed(void *unused)
{
	static char page[4096];
	struct uffd_msg msg;

	while (read(uffd, &msg, sizeof(msg)) == sizeof(msg)) {
		struct uffdio_copy copy = { .src = (uintptr_t)page, .len = sizeof(page) };

		if (msg.event != UFFD_EVENT_PAGEFAULT)
			continue;
		copy.dst = msg.arg.pagefault.address & ~4095ull;
		usleep(SLOW_US);
		ioctl(uffd, UFFDIO_COPY, &copy);
	}
	return unused;
}

static void make_slow(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	pthread_t id;

	uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (uffd < 0 || ioctl(uffd, UFFDIO_API, &api)) {
		perror("userfaultfd");
		exit(1);
	}
	for (int i = 0; i < 2; i++) {
		struct uffdio_register reg = {
			.range = { (uintptr_t)threads[i].memory, SIZE }, .mode = UFFDIO_REGISTER_MODE_MISSING,
		};

		madvise(threads[i].memory, SIZE, MADV_DONTNEED);
		if (ioctl(uffd, UFFDIO_REGISTER, &reg)) {
			perror("UFFDIO_REGISTER");
			exit(1);
		}
	}
	pthread_create(&id, NULL, feed, NULL);
}

/* ---- addresses ---- */

static socklen_t address(struct thread *t, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	int port = PIECE(t, ((int[]) { sovia_port, sovia_port, tcp_port, tcp_port, htons(9), 0 }));
	int domain = 0;
	socklen_t len = sizeof(domain);

	memset(to, 0, sizeof(*to));
	getsockopt(FD, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	if (domain == AF_INET6 || one_in(t, 8)) {
		six->sin6_family = AF_INET6;
		six->sin6_port = port;
		six->sin6_addr.s6_addr[10] = six->sin6_addr.s6_addr[11] = 0xff;
		six->sin6_addr.s6_addr32[3] = htonl(INADDR_LOOPBACK);
		return sizeof(*six);
	}
	four->sin_family = AF_INET;
	four->sin_port = port;
	four->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*four);
}

static int new_socket(struct thread *t)
{
	int type = SOCK_STREAM | (one_in(t, 2) ? SOCK_NONBLOCK : 0);

	switch (pick(t, 4)) {
	case 0:
		return socket(AF_INET, type, SOVIAPROTO_INET);
	case 1:
		return socket(AF_INET6, type, SOVIAPROTO_INET);
	case 2:
		return socket(opt.family, type, SOVIAPROTO_V6);
	default:
		return socket(opt.family, type, SOVIAPROTO_V4);
	}
}

/* ---- the calls ---- */

static size_t amount(struct thread *t)
{
	return one_in(t, 3) ? SIZE : pick(t, one_in(t, 2) ? 16 : 5000);
}

static int flags(struct thread *t)
{
	return MSG_NOSIGNAL | (one_in(t, 2) ? MSG_DONTWAIT : 0) |
	       (one_in(t, 3) ? PIECE(t, ((int[]) { MSG_MORE, MSG_WAITALL, MSG_PEEK, MSG_TRUNC, MSG_DONTROUTE })) : 0);
}

static long do_bind(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to);

	((struct sockaddr_in *)&to)->sin_port = 0;
	return bind(FD, (struct sockaddr *)&to, len);
}

static long do_listen(struct thread *t)
{
	return listen(FD, pick(t, 8));
}

static long do_connect(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to);

	return connect(FD, (struct sockaddr *)&to, len);
}

static long do_connect_nonblock(struct thread *t)
{
	int on = 1;

	ioctl(FD, FIONBIO, &on);
	return do_connect(t);
}

static long do_disconnect(struct thread *t)
{
	struct sockaddr to = { .sa_family = AF_UNSPEC };

	return connect(FD, &to, sizeof(to));
}

static long dispose(long fd)
{
	if (fd >= 0)
		close(fd);
	return fd;
}

static long do_accept(struct thread *t)
{
	return dispose(accept4(FD, NULL, NULL, SOCK_NONBLOCK));
}

static long do_getsockname(struct thread *t)
{
	struct sockaddr_storage of;
	socklen_t len = sizeof(of);

	return getsockname(FD, (struct sockaddr *)&of, &len);
}

static long do_getpeername(struct thread *t)
{
	struct sockaddr_storage of;
	socklen_t len = sizeof(of);

	return getpeername(FD, (struct sockaddr *)&of, &len);
}

static long do_shutdown(struct thread *t)
{
	return shutdown(FD, pick(t, 3));
}

/* Another socket has the number from now on. */
static long do_replace(struct thread *t)
{
	int fd = new_socket(t);

	dup2(fd, FD);
	return dispose(fd);
}

static long do_dup(struct thread *t)
{
	return dispose(dup(FD));
}

static long do_send(struct thread *t)
{
	return send(FD, t->memory, amount(t), flags(t));
}

static long do_send_oob(struct thread *t)
{
	return send(FD, t->memory, one_in(t, 2) ? 1 : SIZE, MSG_OOB | MSG_NOSIGNAL | (one_in(t, 2) ? MSG_DONTWAIT : 0));
}

static long do_send_zerocopy(struct thread *t)
{
	return send(FD, t->memory, amount(t), MSG_ZEROCOPY | flags(t));
}

static long do_send_fastopen(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to);

	return sendto(FD, t->memory, amount(t), MSG_FASTOPEN | flags(t), (struct sockaddr *)&to, len);
}

static long do_sendmsg(struct thread *t)
{
	struct iovec iov[3] = { { t->memory, amount(t) }, { t->memory + 1, 3 }, { t->memory, amount(t) } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };

	return sendmsg(FD, &msg, flags(t));
}

static long do_write(struct thread *t)
{
	return write(FD, t->memory, amount(t));
}

static long do_recv(struct thread *t)
{
	return recv(FD, t->memory, amount(t), flags(t));
}

static long do_recv_oob(struct thread *t)
{
	return recv(FD, t->memory, 1, MSG_OOB | flags(t));
}

static long do_recv_errors(struct thread *t)
{
	char control[200];
	struct iovec iov = { t->memory, 100 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };

	return recvmsg(FD, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
}

static long do_recvmsg(struct thread *t)
{
	char control[200];
	struct iovec iov[2] = { { t->memory, 100 }, { t->memory + 100, amount(t) / 2 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof(control) };

	return recvmsg(FD, &msg, flags(t));
}

static long do_splice_from(struct thread *t)
{
	long ret = splice(FD, NULL, t->pipe[1], NULL, amount(t), one_in(t, 2) ? SPLICE_F_NONBLOCK : 0);

	if (ret > 0)
		ret = splice(t->pipe[0], NULL, t->file, NULL, ret, 0);
	return ret;
}

static long do_splice_to(struct thread *t)
{
	int count = vmsplice(t->pipe[1], &(struct iovec) { t->memory, amount(t) % 4096 }, 1, SPLICE_F_NONBLOCK);
	long ret = splice(t->pipe[0], NULL, FD, NULL, 4096, one_in(t, 2) ? SPLICE_F_NONBLOCK : SPLICE_F_MORE);

	/* what was not taken is not to fill the pipe */
	if (count > 0 && ret < count) {
		close(t->pipe[0]);
		close(t->pipe[1]);
		if (pipe(t->pipe))
			abort();
	}
	return ret;
}

static long do_sendfile(struct thread *t)
{
	off_t start = 0;

	return sendfile(FD, t->file, &start, amount(t));
}

static long do_poll(struct thread *t)
{
	struct pollfd fd = { .fd = FD, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP };

	return poll(&fd, 1, pick(t, 3));
}

static long do_select(struct thread *t)
{
	struct timeval time = { 0, 1000 };
	fd_set set, other;

	FD_ZERO(&set);
	FD_SET(FD, &set);
	other = set;
	return select(FD + 1, &set, &other, NULL, &time);
}

static long do_epoll(struct thread *t)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLEXCLUSIVE };

	epoll_ctl(t->epoll, EPOLL_CTL_ADD, FD, &event);
	epoll_wait(t->epoll, &event, 1, pick(t, 3));
	return epoll_ctl(t->epoll, EPOLL_CTL_DEL, FD, &event);
}

static long do_ioctl(struct thread *t)
{
	int request = PIECE(t, ((int[]) { FIONREAD, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, SIOCGPGRP, SIOCGSTAMP_OLD, FIOASYNC,
					  FIONBIO, 0x8912 /* SIOCGIFCONF */ }));

	return ioctl(FD, request, t->memory);
}

static long do_fcntl(struct thread *t)
{
	int before = fcntl(FD, F_GETFL);

	fcntl(FD, F_SETOWN, getpid());
	fcntl(FD, F_SETSIG, SIGURG);
	return fcntl(FD, F_SETFL, before ^ PIECE(t, ((int[]) { O_NONBLOCK, O_ASYNC })));
}

static const struct option_name *some_option(struct thread *t, struct option_name *other)
{
	if (one_in(t, 2))
		return &options[atomic_load(&favourite)];
	if (!one_in(t, 8))
		return &options[pick(t, COUNT(options))];
	/* one that these headers do not know */
	*other = (struct option_name) { PIECE(t, ((int[]) { SOL_SOCKET, SOL_IP, SOL_IPV6, SOL_TCP, SOL_SOVIA, 283 })),
					pick(t, 128), "" };
	return other;
}

static long do_setsockopt(struct thread *t)
{
	struct option_name other;
	const struct option_name *option = some_option(t, &other);
	struct sock_filter pass = { BPF_RET, 0, 0, -1u };
	struct sock_fprog program = { 1, &pass };
	int len = PIECE(t, ((int[]) { 4, 4, 4, 1, 8, 16, 136, 264 }));

	/* the byte order of a number, a name, a group, or what was there */
	switch (pick(t, 5)) {
	case 0:
	case 1:
		memcpy(t->memory, &(int) { PIECE(t, ((int[]) { 0, 1, 2, 10, 1000, 100000, -1 })) }, 4);
		break;
	case 2:
		strcpy(t->memory, PIECE(t, ((char *[]) { "lo", "reno", "cubic", "tls", "nothing" })));
		break;
	case 3:
		/* struct ip_mreq, or group_req, whose first word is an interface: any, or lo */
		memset(t->memory, 0, 264);
		*(uint32_t *)t->memory = PIECE(t, ((uint32_t[]) { 0, 1, htonl(0xefffff01) }));
		memcpy(t->memory + 8, &(struct sockaddr_in) { .sin_family = AF_INET,
			.sin_addr.s_addr = htonl(0xefffff01 + pick(t, 4)) }, sizeof(struct sockaddr_in));
		break;
	}
	if (option->level == SOL_SOCKET && (option->name == SO_ATTACH_FILTER || option->name == SO_ATTACH_REUSEPORT_CBPF))
		return setsockopt(FD, SOL_SOCKET, option->name, &program, sizeof(program));
	return setsockopt(FD, option->level, option->name, t->memory, len);
}

static long do_getsockopt(struct thread *t)
{
	struct option_name other;
	const struct option_name *option = some_option(t, &other);
	socklen_t len = PIECE(t, ((int[]) { 4, 1, 8, 60, 256, 1000 }));

	return getsockopt(FD, option->level, option->name, t->memory, &len);
}

static long do_rights(struct thread *t)
{
	char space[CMSG_SPACE(sizeof(int))] = "", byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof(space) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &(int) { FD }, sizeof(int));
	if (sendmsg(t->pass[0], &msg, MSG_DONTWAIT) < 0)
		return -1;
	msg.msg_controllen = sizeof(space);
	if (recvmsg(t->pass[1], &msg, MSG_DONTWAIT) < 0 || !CMSG_FIRSTHDR(&msg))
		return -1;
	return dispose(*(int *)CMSG_DATA(CMSG_FIRSTHDR(&msg)));
}

/* ---- io_uring ---- */

static void ring_open(struct thread *t)
{
	struct io_uring_params params = { 0 };

	t->ring = syscall(SYS_io_uring_setup, 8, &params);
	if (t->ring < 0)
		return;
	t->sq_off = params.sq_off;
	t->cq_off = params.cq_off;
	t->sq = mmap(NULL, params.sq_off.array + params.sq_entries * 4, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
		     t->ring, IORING_OFF_SQ_RING);
	t->cq = mmap(NULL, params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_POPULATE, t->ring, IORING_OFF_CQ_RING);
	t->sqes = mmap(NULL, params.sq_entries * sizeof(struct io_uring_sqe), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE, t->ring, IORING_OFF_SQES);
	if (t->sq == MAP_FAILED || t->cq == MAP_FAILED || t->sqes == MAP_FAILED)
		abort();
}

/* Submits one, waits for it or cancels it, and takes the results. */
static long ring_do(struct thread *t, struct io_uring_sqe sqe)
{
	unsigned int *tail = (unsigned int *)(t->sq + t->sq_off.tail), mask = *(unsigned int *)(t->sq + t->sq_off.ring_mask);
	unsigned int *array = (unsigned int *)(t->sq + t->sq_off.array);
	unsigned int *head = (unsigned int *)(t->cq + t->cq_off.head), *cq_tail = (unsigned int *)(t->cq + t->cq_off.tail);
	struct io_uring_cqe *cqes = (struct io_uring_cqe *)(t->cq + t->cq_off.cqes);
	unsigned int cq_mask = *(unsigned int *)(t->cq + t->cq_off.ring_mask), i;
	const struct io_uring_sqe cancel = { .opcode = IORING_OP_ASYNC_CANCEL, .user_data = 2, .addr = 1 };
	long ret = -1;

	if (t->ring < 0)
		return -1;
	sqe.fd = FD;
	sqe.user_data = 1;
	for (i = 0; i < 2; i++) {
		t->sqes[(*tail + i) & mask] = i ? cancel : sqe;
		array[(*tail + i) & mask] = (*tail + i) & mask;
	}
	__atomic_store_n(tail, *tail + 2, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, t->ring, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0);
	while (*head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE)) {
		struct io_uring_cqe *cqe = &cqes[*head & cq_mask];

		if (cqe->user_data == 1) {
			ret = cqe->res;
			if (sqe.opcode == IORING_OP_ACCEPT)
				dispose(ret);
		}
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
	return ret;
}

static long do_ring_send(struct thread *t)
{
	return ring_do(t, (struct io_uring_sqe) { .opcode = IORING_OP_SEND, .addr = (uintptr_t)t->memory, .len = amount(t),
						  .msg_flags = flags(t) });
}

static long do_ring_recv(struct thread *t)
{
	return ring_do(t, (struct io_uring_sqe) { .opcode = IORING_OP_RECV, .addr = (uintptr_t)t->memory, .len = amount(t),
						  .msg_flags = flags(t) });
}

static long do_ring_accept(struct thread *t)
{
	return ring_do(t, (struct io_uring_sqe) { .opcode = IORING_OP_ACCEPT });
}

static long do_ring_connect(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to);

	return ring_do(t, (struct io_uring_sqe) { .opcode = IORING_OP_CONNECT, .addr = (uintptr_t)&to, .off = len });
}

static long do_ring_poll(struct thread *t)
{
	return ring_do(t, (struct io_uring_sqe) { .opcode = IORING_OP_POLL_ADD, .poll32_events = POLLIN | POLLOUT });
}

static const struct {
	const char	*name;
	long		(*call)(struct thread *t);
} calls[] = {
	{ "bind", do_bind },			{ "listen", do_listen },
	{ "connect", do_connect },		{ "connect-nonblock", do_connect_nonblock },
	{ "disconnect", do_disconnect },	{ "accept", do_accept },
	{ "getsockname", do_getsockname },	{ "getpeername", do_getpeername },
	{ "shutdown", do_shutdown },		{ "close", do_replace },
	{ "dup", do_dup },			{ "rights", do_rights },
	{ "send", do_send },			{ "send-oob", do_send_oob },
	{ "send-zerocopy", do_send_zerocopy },	{ "send-fastopen", do_send_fastopen },
	{ "sendmsg", do_sendmsg },		{ "write", do_write },
	{ "recv", do_recv },			{ "recv-oob", do_recv_oob },
	{ "recv-errors", do_recv_errors },	{ "recvmsg", do_recvmsg },
	{ "splice-from", do_splice_from },	{ "splice-to", do_splice_to },
	{ "sendfile", do_sendfile },		{ "poll", do_poll },
	{ "select", do_select },		{ "epoll", do_epoll },
	{ "ioctl", do_ioctl },			{ "fcntl", do_fcntl },
	{ "setsockopt", do_setsockopt },	{ "getsockopt", do_getsockopt },
	{ "uring-send", do_ring_send },		{ "uring-recv", do_ring_recv },
	{ "uring-accept", do_ring_accept },	{ "uring-connect", do_ring_connect },
	{ "uring-poll", do_ring_poll },
};

#define CALLS	((int)COUNT(calls))

static atomic_ulong met[CALLS][CALLS];

/* ---- the threads ---- */

static void *run(void *arg)
{
	struct thread *t = arg;
	int me = t->number, other, what;

	for (;;) {
		what = atomic_load(&task[me]);
		if (what < 0) {
			usleep(100);
			continue;
		}
		while (!atomic_load(&stop)) {
			forget(t);
			atomic_store(&inside[me], what + 1);
			other = atomic_load(&inside[!me]);
			if (other)
				atomic_fetch_add(&met[me ? other - 1 : what][me ? what : other - 1], 1);
			calls[what].call(t);
			atomic_store(&inside[me], 0);
		}
		atomic_store(&task[me], -1);
		atomic_fetch_add(&arrived, 1);
	}
	return NULL;
}

static void on_signal(int number)
{
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}

/* ---- the peers ---- */

/* Accepts, answers some bytes, and forgets: each connection lives for a while. */
static void *serve(void *arg)
{
	int listener = (int)(intptr_t)arg, held[64] = { 0 }, at = 0, fd;
	static char buffer[SIZE];

	for (;;) {
		struct pollfd wait = { .fd = listener, .events = POLLIN };

		poll(&wait, 1, 1);
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
		if (fd >= 0) {
			int protocol = 0;
			socklen_t len = sizeof(protocol);

			getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &len);
			*(protocol == IPPROTO_TCP ? &tcp_connected : &connected) += 1;
			if (held[at])
				close(held[at]);
			held[at] = fd;
			at = (at + 1) % COUNT(held);
		}
		for (unsigned int i = 0; i < COUNT(held); i++) {
			if (!held[i])
				continue;
			if (recv(held[i], buffer, i % 3 ? SIZE : 100, 0) == 0 ||
			    send(held[i], buffer, i % 2 ? 100 : 5000, (i % 5 ? 0 : MSG_OOB) | MSG_NOSIGNAL) == 0) {
				close(held[i]);
				held[i] = 0;
			}
		}
	}
	return NULL;
}

static int peer(int family, int protocol)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, protocol);
	socklen_t len = sizeof(at);
	pthread_t id;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&at, &len) ||
	    pthread_create(&id, NULL, serve, (void *)(intptr_t)fd)) {
		perror("peer");
		exit(1);
	}
	return at.sin_port;
}

/* ---- rounds ---- */

static int number_of(long (*call)(struct thread *t))
{
	int i = 0;

	while (calls[i].call != call)
		i++;
	return i;
}

/* How far the socket is when the calls begin. */
static void prepare(struct thread *t)
{
	const struct linger none = { 0 };
	int fd = new_socket(t), stage = pick(t, 6);
	struct sockaddr_storage to;
	socklen_t len;

	/* the end of the one before is not to take hours */
	setsockopt(FD, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	atomic_store(&favourite, pick(t, COUNT(options)));
	if (fd < 0) {
		perror("socket");
		exit(1);
	}
	dup2(fd, FD);
	close(fd);
	len = address(t, &to);
	switch (stage) {
	case 1:
		do_bind(t);
		break;
	case 2:
		do_bind(t);
		do_listen(t);
		break;
	case 3:
	case 4:
	case 5:
		connect(FD, (struct sockaddr *)&to, len);
		break;
	}
}

static bool begin(int a, int b, struct thread *t)
{
	double deadline;

	prepare(t);
	atomic_store(&stop, 0);
	atomic_store(&arrived, 0);
	atomic_store(&task[0], a);
	atomic_store(&task[1], b);
	usleep(SLICE_MS * 1000);
	atomic_store(&stop, 1);
	deadline = now() + PATIENCE_MS / 1000;
	while (atomic_load(&arrived) < 2) {
		for (int i = 0; i < 2; i++)
			if (atomic_load(&task[i]) >= 0)
				pthread_kill(threads[i].id, SIGUSR1);
		usleep(500);
		if (now() > deadline)
			return false;
	}
	rounds++;
	return true;
}

static bool wanted(int call)
{
	const char *name = calls[call].name, *found;

	if (!opt.only)
		return true;
	for (found = strstr(opt.only, name); found; found = strstr(found + 1, name)) {
		char after = found[strlen(name)];

		if ((found == opt.only || found[-1] == ',') && (!after || after == ','))
			return true;
	}
	return false;
}

static void report(void)
{
	FILE *file = opt.matrix ? fopen(opt.matrix, "w") : NULL;
	int pairs = 0, never = 0;

	for (int a = 0; a < CALLS; a++) {
		for (int b = a; b < CALLS; b++) {
			unsigned long times = met[a][b] + (a == b ? 0 : met[b][a]);

			if (!wanted(a) || !wanted(b))
				continue;
			pairs++;
			never += !times;
			if (file)
				fprintf(file, "%s %s %lu\n", calls[a].name, calls[b].name, times);
			if (!times)
				printf("never: %s beside %s\n", calls[a].name, calls[b].name);
		}
	}
	if (file)
		fclose(file);
	printf("pairs=%d never=%d rounds=%lu connected=%lu tcp=%lu\n", pairs, never, rounds, connected, tcp_connected);
}

static void thread_open(int i)
{
	struct thread *t = &threads[i];
	char path[] = "/tmp/beside-XXXXXX";

	t->number = i;
	t->random = opt.seed * 4 + i;
	t->memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	t->file = mkstemp(path);
	t->epoll = epoll_create1(0);
	if (t->memory == MAP_FAILED || t->file < 0 || pipe(t->pipe) || t->epoll < 0 || ftruncate(t->file, SIZE) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, t->pass)) {
		perror("thread");
		exit(1);
	}
	unlink(path);
	ring_open(t);
	atomic_store(&task[i], -1);
}

static void arguments(int argc, char **argv)
{
	static const struct option names[] = {
		{ "family", 1, NULL, 'f' }, { "seconds", 1, NULL, 's' }, { "seed", 1, NULL, 'r' },
		{ "slow", 0, NULL, 'l' }, { "only", 1, NULL, 'o' }, { "matrix", 1, NULL, 'm' }, { NULL },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0) {
		switch (c) {
		case 'f':
			opt.family = atoi(optarg);
			break;
		case 's':
			opt.seconds = atoi(optarg);
			break;
		case 'r':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 'l':
			opt.slow = true;
			break;
		case 'o':
			opt.only = optarg;
			break;
		case 'm':
			opt.matrix = optarg;
			break;
		default:
			exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct thread chance;
	double end;

	arguments(argc, argv);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGURG, &action, NULL);
	sigaction(SIGIO, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 2; i++)
		thread_open(i);
	if (opt.slow)
		make_slow();
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i].id, NULL, run, &threads[i]);
	sovia_port = peer(opt.family, SOVIAPROTO_V4);
	tcp_port = peer(AF_INET, 0);
	chance.random = opt.seed;
	end = now() + opt.seconds;
	/* All pairs, each time in another order. */
	for (unsigned int round = 0; now() < end; round++) {
		for (int n = 0, at = pick(&chance, CALLS * CALLS); n < CALLS * CALLS && now() < end; n++) {
			int a = at / CALLS, b = at % CALLS;

			at = (at + 379) % (CALLS * CALLS);
			/* options are many calls */
			if (one_in(&chance, 8))
				a = b = number_of(do_setsockopt);
			if (b < a || !wanted(a) || !wanted(b))
				continue;
			if (!begin(a, b, &chance)) {
				printf("hangs: %s beside %s\n", calls[a].name, calls[b].name);
				return 1;
			}
		}
	}
	report();
	return 0;
}

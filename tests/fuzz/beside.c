// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Every call on a socket beside every other one.
 *
 *	beside [--family N] [--seconds N] [--seed N] [--slow] [--only CALL[,CALL]] [--not CALL[,CALL]]
 *	       [--matrix FILE]
 *
 * Two threads have one socket, sometimes four, or each has one end of a connection.  For a few milliseconds each makes one
 * kind of call on it, again and again; then it is the next pair's turn, with a new socket.  How the socket was opened, who
 * its peer is (AF_SOVIA, TCP alone, nobody, a listener that does not accept; one that reads, or does not), and how far it
 * is then are chosen at random, and so are some options that all threads prefer to others.  After a call that ends something, such as shutdown() or connect(), its thread brings the
 * socket back to where that has an effect again.  With --slow (root), the memory that calls read and write comes late
 * (userfaultfd).
 *
 * Results are ignored: a call may fail, but the kernel may not crash.  Exits with 0 if every thread came back; if
 * one does not, the process cannot end, but the program does.
 *
 * The matrix has how often two calls were in the kernel at once, one line for each pair: on one socket, and at both ends of
 * a connection.  The last line is "pairs=N never=M rounds=R connected=C tcp=T ends=E": M pairs never met on one socket, E
 * met at the ends of a connection.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/filter.h>
#include <linux/if.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/io_uring.h>
#include <linux/sockios.h>
#include <linux/sovia.h>
#include <linux/net_tstamp.h>
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
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "chance.h"

#define FD		100		/* the socket, whatever it is */
#define MATE		101		/* the other end of its connection, if that is to be called, too */
#define THREADS		4
#define SIZE		(64 << 10)	/* of a thread's memory */
#define SLICE_MS	4		/* of two calls that leave the socket as it is */
#define SLICE_ONCE_MS	20		/* of others, which are brought back again and again */
#define SLICE_OPTIONS_MS 30		/* most calls are errors at once */
#define SLICE_MAX_MS	100		/* until they have met often enough: */
#define MEETINGS	8
#define GROUPS		4		/* that sockets join */
#define WINDOW		6		/* options that are preferred */
#define PATIENCE_MS	20000		/* a call that a signal does not end hangs */
#define SLOW_US		500
#define SPINS		5000		/* some microseconds */
#define PAUSE_US	4000		/* at most, before a call that ends what the other one does */
#define SOL_IP		0
#define SOL_IPV6	41
#define SOL_TCP		6
#define COUNT(a)	(sizeof(a) / sizeof((a)[0]))
#define PIECE(t, a)	((a)[pick(t, COUNT(a))])

enum content {
	NUMBER, NAME, PROGRAM, MREQN, MREQ_SOURCE, MSFILTER, MREQ6, GROUP_REQ, GROUP_SOURCE, GROUP_FILTER,
};

static const struct option_name {
	int		level, name;
	const char	*text;
	unsigned int	size;
	enum content	content;
} options[] = {
#include "options.h"
	{ SOL_SOVIA, SOVIA_ACTION, "SOVIA_ACTION", sizeof(int), NUMBER },
	{ SOL_SOVIA, SOVIA_WAIT, "SOVIA_WAIT", sizeof(int), NUMBER },
};

struct thread {
	uint64_t	random;
	pthread_t	id;
	int		number;
	int		fd;		/* FD or MATE */
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
	char	*only, *without;
	char	*matrix;
} opt = { .family = SOVIA_FAMILY_DEFAULT, .seconds = 60, .seed = 1 };

static struct thread threads[THREADS];
static atomic_int task[THREADS], inside[THREADS], stop, arrived, meetings;
static bool mates;				/* this round has both ends of a connection */
static atomic_uint favourite;			/* of the options that both threads prefer in this round, the first */
static int sovia_port, tcp_port, silent_port;	/* of the peers, network order */
static int sovia6_port, tcp6_port;		/* of those at ::1 */
static int own_listener, own_port;		/* for both ends of a connection */
static atomic_ulong connected, tcp_connected;
static unsigned long rounds;
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
		while (ioctl(uffd, UFFDIO_COPY, &copy) && errno == EAGAIN)
			copy.copy = 0;
		/* It came by another fault. */
		if (copy.copy < 0)
			ioctl(uffd, UFFDIO_WAKE, &(struct uffdio_range) { copy.dst, sizeof(page) });
	}
	return unused;
}

/*
 * All of it at once.  A system call with a signal pending does not sleep when it faults, but faults again and again
 * until the page is there: the feeder may never find it waiting.
 */
static void feed_all(void)
{
	static char page[4096];

	for (int i = 0; i < THREADS; i++) {
		for (size_t at = 0; at < SIZE; at += sizeof(page)) {
			struct uffdio_copy copy = {
				.dst = (uintptr_t)threads[i].memory + at, .src = (uintptr_t)page, .len = sizeof(page),
			};

			ioctl(uffd, UFFDIO_COPY, &copy);
		}
	}
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
	for (int i = 0; i < THREADS; i++) {
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
	const int nobody = htons(9);
	int port = PIECE(t, ((int[]) { sovia_port, sovia_port, sovia_port, sovia_port, tcp_port, tcp_port, silent_port, nobody }));
	int domain = 0;
	socklen_t len = sizeof(domain);

	/* No signal ends a call of the thread that prepares the sockets. */
	if (port == silent_port && !t->memory)
		port = sovia_port;
	memset(to, 0, sizeof(*to));
	getsockopt(t->fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	if (domain == AF_INET6 && one_in(t, 2)) {
		six->sin6_family = AF_INET6;
		six->sin6_port = PIECE(t, ((int[]) { sovia6_port, sovia6_port, tcp6_port }));
		six->sin6_addr = in6addr_loopback;
		return sizeof(*six);
	}
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
	int type = SOCK_STREAM | (one_in(t, 4) ? SOCK_NONBLOCK : 0);

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
	return bind(t->fd, (struct sockaddr *)&to, len);
}

static long do_listen(struct thread *t)
{
	return listen(t->fd, pick(t, 8));
}

static long do_connect(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to);

	return connect(t->fd, (struct sockaddr *)&to, len);
}

static long do_connect_nonblock(struct thread *t)
{
	int on = 1;

	ioctl(t->fd, FIONBIO, &on);
	return do_connect(t);
}

static long do_disconnect(struct thread *t)
{
	struct sockaddr to = { .sa_family = AF_UNSPEC };

	return connect(t->fd, &to, sizeof(to));
}

static long dispose(long fd)
{
	if (fd >= 0)
		close(fd);
	return fd;
}

static long do_accept(struct thread *t)
{
	return dispose(accept4(t->fd, NULL, NULL, SOCK_NONBLOCK));
}

static long do_getsockname(struct thread *t)
{
	struct sockaddr_storage of;
	socklen_t len = sizeof(of);

	return getsockname(t->fd, (struct sockaddr *)&of, &len);
}

static long do_getpeername(struct thread *t)
{
	struct sockaddr_storage of;
	socklen_t len = sizeof(of);

	return getpeername(t->fd, (struct sockaddr *)&of, &len);
}

/* Another socket has the number from now on. */
static long do_replace(struct thread *t)
{
	int fd = new_socket(t);

	dup2(fd, t->fd);
	return dispose(fd);
}

static long do_dup(struct thread *t)
{
	return dispose(dup(t->fd));
}

static long do_send(struct thread *t)
{
	return send(t->fd, t->memory, amount(t), flags(t));
}

static long do_send_oob(struct thread *t)
{
	return send(t->fd, t->memory, one_in(t, 2) ? 1 : SIZE, MSG_OOB | MSG_NOSIGNAL | (one_in(t, 2) ? MSG_DONTWAIT : 0));
}

static long do_send_zerocopy(struct thread *t)
{
	return send(t->fd, t->memory, amount(t), MSG_ZEROCOPY | flags(t));
}

static long do_send_fastopen(struct thread *t)
{
	struct sockaddr_storage to;
	socklen_t len = address(t, &to);

	return sendto(t->fd, t->memory, amount(t), MSG_FASTOPEN | flags(t), (struct sockaddr *)&to, len);
}

static long do_sendmsg(struct thread *t)
{
	struct iovec iov[3] = { { t->memory, amount(t) }, { t->memory + 1, 3 }, { t->memory, amount(t) } };
	struct mmsghdr msgs[2] = { { .msg_hdr = { .msg_iov = iov, .msg_iovlen = 3 } }, { .msg_hdr = { .msg_iov = iov, .msg_iovlen = 1 } } };

	if (one_in(t, 2))
		return sendmmsg(t->fd, msgs, 2, flags(t));
	return sendmsg(t->fd, &msgs[0].msg_hdr, flags(t));
}

static long do_write(struct thread *t)
{
	return write(t->fd, t->memory, amount(t));
}

static long do_recv(struct thread *t)
{
	return recv(t->fd, t->memory, amount(t), flags(t));
}

static long do_recv_oob(struct thread *t)
{
	return recv(t->fd, t->memory, 1, MSG_OOB | flags(t));
}

static long do_recv_errors(struct thread *t)
{
	char control[200];
	struct iovec iov = { t->memory, 100 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control) };

	return recvmsg(t->fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT);
}

static long do_recvmsg(struct thread *t)
{
	char control[200];
	struct iovec iov[2] = { { t->memory, 100 }, { t->memory + 100, amount(t) / 2 } };
	struct mmsghdr msgs[2] = {
		{ .msg_hdr = { .msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = sizeof(control) } },
		{ .msg_hdr = { .msg_iov = iov, .msg_iovlen = 1 } },
	};

	if (one_in(t, 2))
		return recvmmsg(t->fd, msgs, 2, flags(t) | (one_in(t, 2) ? MSG_WAITFORONE : 0), NULL);
	return recvmsg(t->fd, &msgs[0].msg_hdr, flags(t));
}

static long do_splice_from(struct thread *t)
{
	long ret = splice(t->fd, NULL, t->pipe[1], NULL, amount(t), one_in(t, 2) ? SPLICE_F_NONBLOCK : 0);

	if (ret > 0)
		ret = splice(t->pipe[0], NULL, t->file, NULL, ret, 0);
	return ret;
}

static long do_splice_to(struct thread *t)
{
	int count = vmsplice(t->pipe[1], &(struct iovec) { t->memory, amount(t) % 4096 }, 1, SPLICE_F_NONBLOCK);
	long ret = splice(t->pipe[0], NULL, t->fd, NULL, 4096, one_in(t, 2) ? SPLICE_F_NONBLOCK : SPLICE_F_MORE);

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

	return sendfile(t->fd, t->file, &start, amount(t));
}

static long do_poll(struct thread *t)
{
	struct pollfd fd = { .fd = t->fd, .events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP };

	return poll(&fd, 1, pick(t, 3));
}

static long do_select(struct thread *t)
{
	struct timeval time = { 0, 1000 };
	fd_set set, other;

	FD_ZERO(&set);
	FD_SET(t->fd, &set);
	other = set;
	return select(t->fd + 1, &set, &other, NULL, &time);
}

static long do_epoll(struct thread *t)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLEXCLUSIVE };

	epoll_ctl(t->epoll, EPOLL_CTL_ADD, t->fd, &event);
	epoll_wait(t->epoll, &event, 1, pick(t, 3));
	return epoll_ctl(t->epoll, EPOLL_CTL_DEL, t->fd, &event);
}

static long do_ioctl(struct thread *t)
{
	int request = PIECE(t, ((int[]) { FIONREAD, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, SIOCGPGRP, SIOCGSTAMP_OLD, FIOASYNC,
					  FIONBIO, SIOCGIFCONF }));
	struct ifconf config = { .ifc_len = 1000, .ifc_buf = t->memory + 100 };

	if (request == SIOCGIFCONF)
		memcpy(t->memory, &config, sizeof(config));
	return ioctl(t->fd, request, t->memory);
}

static long do_fcntl(struct thread *t)
{
	int before = fcntl(t->fd, F_GETFL);

	fcntl(t->fd, F_SETOWN, getpid());
	fcntl(t->fd, F_SETSIG, SIGURG);
	return fcntl(t->fd, F_SETFL, before ^ PIECE(t, ((int[]) { O_NONBLOCK, O_ASYNC })));
}

static const struct option_name *some_option(struct thread *t, struct option_name *other)
{
	static const int levels[] = { SOL_SOCKET, SOL_IP, SOL_IPV6, SOL_TCP, SOL_SOVIA, 283 };

	if (!one_in(t, 4))
		return &options[(atomic_load(&favourite) + pick(t, WINDOW)) % COUNT(options)];
	if (!one_in(t, 8))
		return &options[pick(t, COUNT(options))];
	/* one that these headers do not know */
	*other = (struct option_name) { PIECE(t, levels), pick(t, 128), "", sizeof(int), NUMBER };
	return other;
}

/* Half of the time they are those around one whose value is more than a number. */
static void choose_favourite(struct thread *t)
{
	unsigned int first = pick(t, COUNT(options));

	if (one_in(t, 2)) {
		while (options[first].content == NUMBER)
			first = pick(t, COUNT(options));
		first += COUNT(options) - pick(t, WINDOW);
	}
	atomic_store(&favourite, first % COUNT(options));
}

/* Groups have one of a few addresses, so that a socket leaves what it has joined. */
static void put_address(struct thread *t, void *at, bool six, bool group)
{
	const struct sockaddr_in6 to6 = {
		.sin6_family = AF_INET6, .sin6_addr.s6_addr = { 0xff, 0x15, [15] = 1 + pick(t, GROUPS) },
	};
	const struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(group ? 0xefffff01 + pick(t, GROUPS) : INADDR_LOOPBACK),
	};

	if (six)
		memcpy(at, &to6, sizeof(to6));
	else
		memcpy(at, &to, sizeof(to));
}

/* What to do with which group; the interface is lo, which is number 1, or any. */
static void put_group(struct thread *t, const struct option_name *option)
{
	const struct in_addr group = { htonl(0xefffff01 + pick(t, GROUPS)) }, source = { htonl(INADDR_LOOPBACK) };
	unsigned int lo = !one_in(t, 4), mode = one_in(t, 2) ? MCAST_INCLUDE : MCAST_EXCLUDE, sources = pick(t, 2);
	const struct ip_mreqn mreqn = { group, { 0 }, lo };
	const struct ip_mreq_source mreq_source = {
		.imr_multiaddr = group, .imr_interface = source, .imr_sourceaddr = source,
	};
	const struct ip_msfilter msfilter = {
		.imsf_multiaddr = group, .imsf_interface = source, .imsf_fmode = mode, .imsf_numsrc = sources,
		.imsf_slist = { source },
	};
	const struct ipv6_mreq mreq6 = {
		.ipv6mr_multiaddr.s6_addr = { 0xff, 0x15, [15] = 1 + pick(t, GROUPS) }, .ipv6mr_interface = lo,
	};
	/* the other two begin with it */
	struct group_req *req = (void *)t->memory;
	struct group_source_req *source_req = (void *)t->memory;
	struct group_filter *filter = (void *)t->memory;
	bool six = option->level == SOL_IPV6;

	switch (option->content) {
	case MREQN:
		memcpy(t->memory, &mreqn, sizeof(mreqn));
		return;
	case MREQ_SOURCE:
		memcpy(t->memory, &mreq_source, sizeof(mreq_source));
		return;
	case MSFILTER:
		memcpy(t->memory, &msfilter, sizeof(msfilter));
		return;
	case MREQ6:
		memcpy(t->memory, &mreq6, sizeof(mreq6));
		return;
	default:
		break;
	}
	memset(t->memory, 0, option->size);
	req->gr_interface = lo;
	put_address(t, &req->gr_group, six, true);
	if (option->content == GROUP_SOURCE)
		put_address(t, &source_req->gsr_source, six, false);
	if (option->content == GROUP_FILTER) {
		filter->gf_fmode = mode;
		filter->gf_numsrc = sources;
		put_address(t, filter->gf_slist, six, false);
	}
}

static long do_setsockopt(struct thread *t)
{
	static struct sock_filter pass = { BPF_RET, 0, 0, -1u };
	struct option_name other;
	const struct option_name *option = some_option(t, &other);
	int len = one_in(t, 8) ? PIECE(t, ((int[]) { 0, 1, 4, 8, 16, 136, 264 })) : (int)option->size;

	/* or what was there */
	switch (one_in(t, 8) ? -1 : (int)option->content) {
	case NUMBER:
		memset(t->memory, 0, 16);
		memcpy(t->memory, &(int) { PIECE(t, ((int[]) { 0, 1, 2, 10, 1000, 100000, -1 })) }, 4);
		break;
	case NAME:
		strcpy(t->memory, PIECE(t, ((char *[]) { "lo", "reno", "cubic", "tls", "nothing" })));
		break;
	case PROGRAM:
		*(struct sock_fprog *)t->memory = (struct sock_fprog) { 1, &pass };
		break;
	case -1:
		break;
	default:
		put_group(t, option);
	}
	return setsockopt(t->fd, option->level, option->name, t->memory, len);
}

static long do_getsockopt(struct thread *t)
{
	struct option_name other;
	const struct option_name *option = some_option(t, &other);
	socklen_t len = one_in(t, 2) ? (socklen_t)PIECE(t, ((int[]) { 4, 1, 8, 60, 256, 1000 })) : option->size;

	return getsockopt(t->fd, option->level, option->name, t->memory, &len);
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
	memcpy(CMSG_DATA(c), &(int) { t->fd }, sizeof(int));
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
	const int number = sqe.opcode == IORING_OP_ACCEPT ? 3 : 1;
	const struct io_uring_sqe cancel = { .opcode = IORING_OP_ASYNC_CANCEL, .user_data = 2, .addr = number };
	long ret = -1;

	if (t->ring < 0)
		return -1;
	sqe.fd = t->fd;
	sqe.user_data = number;
	for (i = 0; i < 2; i++) {
		t->sqes[(*tail + i) & mask] = i ? cancel : sqe;
		array[(*tail + i) & mask] = (*tail + i) & mask;
	}
	__atomic_store_n(tail, *tail + 2, __ATOMIC_RELEASE);
	syscall(SYS_io_uring_enter, t->ring, 2, 2, IORING_ENTER_GETEVENTS, NULL, 0);
	while (*head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE)) {
		struct io_uring_cqe *cqe = &cqes[*head & cq_mask];

		if (cqe->user_data != 2 && !(cqe->flags & IORING_CQE_F_NOTIF))
			ret = cqe->res;
		/* It may be of a call before, which a signal has ended. */
		if (cqe->user_data == 3)
			dispose(cqe->res);
		__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	}
	return ret;
}

/* One with a message header, or else with the memory itself. */
static long ring_transfer(struct thread *t, int with_header, int without)
{
	struct iovec iov = { t->memory, amount(t) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (one_in(t, 3))
		return ring_do(t, (struct io_uring_sqe) { .opcode = with_header, .addr = (uintptr_t)&msg, .len = 1, .msg_flags = flags(t) });
	return ring_do(t, (struct io_uring_sqe) { .opcode = without, .addr = (uintptr_t)iov.iov_base, .len = iov.iov_len,
						  .msg_flags = flags(t) });
}

static long do_ring_send(struct thread *t)
{
	return ring_transfer(t, IORING_OP_SENDMSG, one_in(t, 3) ? IORING_OP_SEND_ZC : IORING_OP_SEND);
}

static long do_ring_recv(struct thread *t)
{
	return ring_transfer(t, IORING_OP_RECVMSG, IORING_OP_RECV);
}

static long do_shutdown(struct thread *t)
{
	if (one_in(t, 2))
		return shutdown(t->fd, pick(t, 3));
	return ring_do(t, (struct io_uring_sqe) { .opcode = IORING_OP_SHUTDOWN, .len = pick(t, 3) });
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
	bool		once;		/* the next one has an effect only if the socket is brought back */
} calls[] = {
	{ "bind", do_bind, true },			{ "listen", do_listen, true },
	{ "connect", do_connect, true },		{ "connect-nonblock", do_connect_nonblock, true },
	{ "disconnect", do_disconnect, true },		{ "accept", do_accept, false },
	{ "getsockname", do_getsockname, false },	{ "getpeername", do_getpeername, false },
	{ "shutdown", do_shutdown, true },		{ "close", do_replace, true },
	{ "dup", do_dup, false },			{ "rights", do_rights, false },
	{ "send", do_send, false },			{ "send-oob", do_send_oob, false },
	{ "send-zerocopy", do_send_zerocopy, false },	{ "send-fastopen", do_send_fastopen, true },
	{ "sendmsg", do_sendmsg, false },		{ "write", do_write, false },
	{ "recv", do_recv, false },			{ "recv-oob", do_recv_oob, false },
	{ "recv-errors", do_recv_errors, false },	{ "recvmsg", do_recvmsg, false },
	{ "splice-from", do_splice_from, false },	{ "splice-to", do_splice_to, false },
	{ "sendfile", do_sendfile, false },		{ "poll", do_poll, false },
	{ "select", do_select, false },			{ "epoll", do_epoll, false },
	{ "ioctl", do_ioctl, false },			{ "fcntl", do_fcntl, false },
	{ "setsockopt", do_setsockopt, false },		{ "getsockopt", do_getsockopt, false },
	{ "uring-send", do_ring_send, false },		{ "uring-recv", do_ring_recv, false },
	{ "uring-accept", do_ring_accept, false },	{ "uring-connect", do_ring_connect, true },
	{ "uring-poll", do_ring_poll, false },
};

#define CALLS	((int)COUNT(calls))

static atomic_ulong met[2][CALLS][CALLS];	/* on one socket, and at the ends of a connection */

/* ---- the socket ---- */

/* A new socket, and how far it is. */
static void prepare(struct thread *t)
{
	const struct linger none = { 0 };
	int fd = new_socket(t), stage = pick(t, 6);

	if (fd < 0) {
		perror("socket");
		exit(1);
	}
	/* the end of the one before is not to take hours */
	setsockopt(FD, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	dup2(fd, FD);
	close(fd);
	if (stage == 1 || stage == 2 || one_in(t, 4))
		do_bind(t);
	if (stage == 2)
		do_listen(t);
	if (stage > 2)
		do_connect(t);
}

/* A new connection, both ends of which are called. */
static void prepare_mates(struct thread *t)
{
	const struct linger none = { 0 };
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = own_port,
		.sin6_addr.s6_addr32 = { 0, 0, htonl(0xffff), htonl(INADDR_LOOPBACK) },
	};
	struct sockaddr_in four = {
		.sin_family = AF_INET, .sin_port = own_port, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = new_socket(t), other, domain = 0;
	struct pollfd wait = { .fd = own_listener, .events = POLLIN };
	socklen_t len = sizeof(domain);

	/* of earlier ones that were given up */
	while ((other = accept4(own_listener, NULL, NULL, 0)) >= 0)
		close(other);
	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	if (domain == AF_INET6)
		connect(fd, (struct sockaddr *)&six, sizeof(six));
	else
		connect(fd, (struct sockaddr *)&four, sizeof(four));
	poll(&wait, 1, 100);
	other = accept4(own_listener, NULL, NULL, one_in(t, 4) ? SOCK_NONBLOCK : 0);
	for (int at = FD; at <= MATE; at++)
		setsockopt(at, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	dup2(fd, FD);
	dispose(fd);
	if (other >= 0)
		dup2(other, MATE);
	dispose(other);
}

/* After a call that has changed what the socket is. */
static void bring_back(struct thread *t)
{
	if (mates) {
		prepare_mates(t);
		return;
	}
	if (one_in(t, 4)) {
		prepare(t);
		return;
	}
	do_disconnect(t);
	if (one_in(t, 2))
		do_connect(t);
}

/* ---- the threads ---- */

/* Half of the time: until the other thread is in the kernel, or has done something there. */
static void get_ready(struct thread *t, int call)
{
	int other = t->number ^ 1, its = atomic_load(&task[other]);

	if (one_in(t, 2))
		return;
	if (calls[call].once && its >= 0 && !calls[its].once)
		usleep(pick(t, PAUSE_US));
	for (int i = 0; i < SPINS && !atomic_load(&inside[other]); i++)
		;
}

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
			get_ready(t, what);
			atomic_store(&inside[me], what + 1);
			for (int i = 0; i < THREADS; i++) {
				other = i == me ? 0 : atomic_load(&inside[i]);
				if (!other)
					continue;
				atomic_fetch_add(&meetings, 1);
				atomic_fetch_add(&met[threads[i].fd != t->fd][what][other - 1], 1);
			}
			calls[what].call(t);
			atomic_store(&inside[me], 0);
			if (calls[what].once && one_in(t, 2))
				bring_back(t);
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

/* Accepts, answers some bytes, and forgets: each connection lives for a while.  Of half of them it reads nothing. */
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
			if ((i % 2 ? -1 : recv(held[i], buffer, i % 3 ? SIZE : 100, 0)) == 0 ||
			    send(held[i], buffer, i % 4 < 2 ? 100 : 5000, (i % 5 ? 0 : MSG_OOB) | MSG_NOSIGNAL) == 0) {
				close(held[i]);
				held[i] = 0;
			}
		}
	}
	return NULL;
}

/* A listener at 127.0.0.1, or ::1. */
static int listener(int family, int protocol, bool v6, int backlog, int *port)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr *at = v6 ? (struct sockaddr *)&six : (struct sockaddr *)&four;
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK, protocol);
	socklen_t len = v6 ? sizeof(six) : sizeof(four);

	if (fd < 0 || bind(fd, at, len) || listen(fd, backlog) || getsockname(fd, at, &len)) {
		perror("listener");
		exit(1);
	}
	*port = v6 ? six.sin6_port : four.sin_port;
	return fd;
}

static int peer(int family, int protocol, bool v6)
{
	int port, fd = listener(family, protocol, v6, 64, &port);
	pthread_t id;

	if (pthread_create(&id, NULL, serve, (void *)(intptr_t)fd)) {
		perror("peer");
		exit(1);
	}
	return port;
}

/* ---- rounds ---- */

static int number_of(long (*call)(struct thread *t))
{
	int i = 0;

	while (calls[i].call != call)
		i++;
	return i;
}

static int slice_ms(int a, int b)
{
	if (calls[a].call == do_setsockopt && calls[b].call == do_setsockopt)
		return SLICE_OPTIONS_MS;
	return calls[a].once || calls[b].once ? SLICE_ONCE_MS : SLICE_MS;
}

static bool is_in(const char *list, const char *name)
{
	const char *found;

	for (found = strstr(list, name); found; found = strstr(found + 1, name)) {
		char after = found[strlen(name)];

		if ((found == list || found[-1] == ',') && (!after || after == ','))
			return true;
	}
	return false;
}

static bool wanted(int call)
{
	const char *name = calls[call].name;

	return (!opt.only || is_in(opt.only, name)) && !(opt.without && is_in(opt.without, name));
}

static int any_call(struct thread *t)
{
	int call;

	do
		call = pick(t, CALLS);
	while (!wanted(call));
	return call;
}

static bool begin(int a, int b, struct thread *t)
{
	int slice = slice_ms(a, b), running = one_in(t, 4) ? THREADS : 2;
	double deadline;

	choose_favourite(t);
	mates = one_in(t, 4);
	for (int i = 0; i < THREADS; i++)
		threads[i].fd = mates && i % 2 ? MATE : FD;
	if (mates)
		prepare_mates(t);
	else
		prepare(t);
	atomic_store(&stop, 0);
	atomic_store(&arrived, 0);
	atomic_store(&meetings, 0);
	for (int i = 2; i < running; i++)
		atomic_store(&task[i], any_call(t));
	atomic_store(&task[0], a);
	atomic_store(&task[1], b);
	/* On a machine that is busy, the threads may have no processors at the same time for a while. */
	for (int ms = 0; ms < slice || (ms < SLICE_MAX_MS && atomic_load(&meetings) < MEETINGS); ms++)
		usleep(1000);
	atomic_store(&stop, 1);
	deadline = now() + PATIENCE_MS / 1000;
	while (atomic_load(&arrived) < running) {
		for (int i = 0; i < running; i++)
			if (atomic_load(&task[i]) >= 0)
				pthread_kill(threads[i].id, SIGUSR1);
		usleep(500);
		if (uffd >= 0 && now() > deadline - PATIENCE_MS / 2000)
			feed_all();
		if (now() > deadline)
			return false;
	}
	rounds++;
	return true;
}

/* @ends: of a connection. */
static unsigned long times_met(bool ends, int a, int b)
{
	return atomic_load(&met[ends][a][b]) + (a == b ? 0 : atomic_load(&met[ends][b][a]));
}

/* The pair that has met least so far. */
static void rarest(struct thread *t, int *a, int *b)
{
	unsigned long least = -1ul;

	for (int n = 0, at = pick(t, CALLS * CALLS); n < CALLS * CALLS; n++, at = (at + 1) % (CALLS * CALLS)) {
		int one = at / CALLS, other = at % CALLS;

		if (one <= other && wanted(one) && wanted(other) && times_met(0, one, other) < least) {
			least = times_met(0, one, other);
			*a = one;
			*b = other;
		}
	}
}

static void report(void)
{
	FILE *file = opt.matrix ? fopen(opt.matrix, "w") : NULL;
	int pairs = 0, never = 0, ends = 0;

	for (int a = 0; a < CALLS; a++) {
		for (int b = a; b < CALLS; b++) {
			unsigned long times = times_met(0, a, b), at_ends = times_met(1, a, b);

			if (!wanted(a) || !wanted(b))
				continue;
			pairs++;
			never += !times;
			ends += !!at_ends;
			if (file)
				fprintf(file, "%s %s %lu %lu\n", calls[a].name, calls[b].name, times, at_ends);
			if (!times)
				printf("never: %s beside %s\n", calls[a].name, calls[b].name);
		}
	}
	if (file)
		fclose(file);
	printf("pairs=%d never=%d rounds=%lu connected=%lu tcp=%lu ends=%d\n", pairs, never, rounds, atomic_load(&connected),
	       atomic_load(&tcp_connected), ends);
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
		{ "slow", 0, NULL, 'l' }, { "only", 1, NULL, 'o' }, { "not", 1, NULL, 'n' },
		{ "matrix", 1, NULL, 'm' }, { NULL },
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
		case 'n':
			opt.without = optarg;
			break;
		case 'm':
			opt.matrix = optarg;
			break;
		default:
			exit(2);
		}
	}
}

static int test(void)
{
	struct thread chance = { .random = opt.seed, .fd = FD };
	const int options_call = number_of(do_setsockopt);
	double end;

	for (int i = 0; i < THREADS; i++)
		thread_open(i);
	if (opt.slow)
		make_slow();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i].id, NULL, run, &threads[i]);
	sovia_port = peer(opt.family, SOVIAPROTO_V4, false);
	tcp_port = peer(AF_INET, 0, false);
	sovia6_port = peer(opt.family, SOVIAPROTO_V6, true);
	tcp6_port = peer(AF_INET6, 0, true);
	listener(opt.family, SOVIAPROTO_V4, false, 0, &silent_port);
	own_listener = listener(opt.family, SOVIAPROTO_V4, false, 64, &own_port);
	end = now() + opt.seconds;
	/* All pairs, each time in another order. */
	while (now() < end) {
		for (int n = 0, at = pick(&chance, CALLS * CALLS); n < CALLS * CALLS && now() < end; n++) {
			int a = at / CALLS, b = at % CALLS;

			at = (at + 379) % (CALLS * CALLS);
			/* options are many calls; and some pairs seldom meet */
			if (one_in(&chance, 8))
				a = b = options_call;
			else if (one_in(&chance, 8))
				rarest(&chance, &a, &b);
			if (b < a || !wanted(a) || !wanted(b))
				continue;
			if (!begin(a, b, &chance)) {
				printf("hangs: %s beside %s, %d s, uptime %.1f s\n", calls[a].name, calls[b].name,
				       PATIENCE_MS / 1000, now());
				return 1;
			}
		}
	}
	report();
	return 0;
}

/* The parent does not wait for a process that cannot end, because a thread of it hangs in the kernel. */
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	int result[2], status = 1, end = 0;

	arguments(argc, argv);
	if (pipe2(result, O_CLOEXEC)) {
		perror("pipe");
		return 1;
	}
	if (fork()) {
		close(result[1]);
		if (read(result[0], &status, sizeof(status)) != sizeof(status)) {
			wait(&end);
			printf("the tester ended: status %#x, uptime %.1f s\n", end, now());
		}
		return status;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGURG, &action, NULL);
	sigaction(SIGIO, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	status = test();
	fflush(stdout);
	if (write(result[1], &status, sizeof(status)) < 0)
		perror("write");
	_exit(status);
}

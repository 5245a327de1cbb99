// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia-clan-server [OPTION]... SOCKET: memory for the virtual machines of a host
 *
 * Speaks version 0 of the protocol of QEMU's ivshmem-doorbell: messages are 64-bit numbers,
 * little endian, some with a descriptor.
 *
 *	to a new peer	0; its number; -1 with the memory; then for each peer there is, its own
 *			number at last, number with an eventfd, once for each vector
 *	to the others	the new peer's number with an eventfd, once for each vector
 *	when one goes	its number
 *
 * Peers send nothing.  A number is a section of the memory (include/sovia/clan.h).  A peer that
 * does not read what it is sent is disconnected: the others do not wait for it.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sovia/clan.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef SOVIA_VERSION
#define SOVIA_VERSION "unknown"
#endif

#define VECTORS_MAX 8

static const char usage[] =
	"Usage: sovia-clan-server [OPTION]... SOCKET\n"
	"Give virtual machines memory that they share, for AF_SOVIA connections between them.\n"
	"QEMU gets it by: -chardev socket,id=clan,path=SOCKET\n"
	"                 -device ivshmem-doorbell,chardev=clan,vectors=1\n"
	"\n"
	"  -n, --nodes N     virtual machines at most, 2 to 64 (8)\n"
	"  -p, --pages N     4 KiB pages of each one's messages, a power of two (1024)\n"
	"  -r, --ring N      messages between two on their way, a power of two (256)\n"
	"  -v, --vectors N   interrupt vectors of each, as for QEMU (1)\n"
	"  -g, --group NAME  group that may connect, beside the owner\n"
	"  -H, --huge        use huge pages\n"
	"  -h, --help        show this text\n"
	"  -V, --version     show the version\n"
	"\n"
	"All that have the memory can read and change all of it: a server for each group of\n"
	"virtual machines that trust each other.\n";

/**
 * struct peer - a QEMU
 * @fd: its connection, -1 if there is none
 * @known: the others have been told of it
 * @leaving: it is to be disconnected
 * @event: ring its vectors
 */
struct peer {
	int	fd;
	bool	known;
	bool	leaving;
	int	event[VECTORS_MAX];
};

static struct {
	unsigned int	nodes, pages, ring, vectors;
	const char	*group;
	bool		huge;
	const char	*path;
} option = { .nodes = 8, .pages = 1024, .ring = 256, .vectors = 1 };

static struct peer peers[SOVIA_CLAN_NODES_MAX];
static int memory = -1;
static char *base;			/* the first two pages and the slots are the server's to reach */
static uint64_t size;

static void die(const char *what)
{
	fprintf(stderr, "sovia-clan-server: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(unsigned int number, const char *what)
{
	printf("peer %u: %s\n", number, what);
	fflush(stdout);
}

/* ---- the memory -------------------------------------------------------- */

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

/* A PCI region has a power of two. */
static uint64_t region_size(void)
{
	uint64_t need = sovia_clan_size(option.nodes, option.ring, option.pages), bytes = 1 << 20;

	while (bytes < need)
		bytes *= 2;
	return bytes;
}

static void make_memory(void)
{
	struct sovia_clan_header *header;
	struct statfs fs;

	size = region_size();
	memory = memfd_create("sovia-clan", MFD_CLOEXEC | MFD_ALLOW_SEALING |
			      (option.huge ? MFD_HUGETLB : 0));
	if (memory < 0 || fstatfs(memory, &fs))
		die("memory");
	size = round_up(size, fs.f_bsize);
	if (ftruncate(memory, size))
		die("memory");
	/* Who could shrink it would kill the others by SIGBUS. */
	if (fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		die("sealing the memory");
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (base == MAP_FAILED)
		die("memory");
	header = (void *)base;
	header->version = htole32(SOVIA_CLAN_VERSION);
	header->nodes = htole32(option.nodes);
	header->ring = htole32(option.ring);
	header->pool = htole32(option.pages);
	if (getrandom(header->uuid, sizeof(header->uuid), 0) != sizeof(header->uuid))
		die("random numbers");
	/* Last: a peer takes the rest for complete. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(header->magic, SOVIA_CLAN_MAGIC, sizeof(header->magic));
}

/* Tell all who looks at the memory whether a node is there. */
static void set_present(unsigned int number, bool present)
{
	uint32_t *word = (uint32_t *)(base + SOVIA_CLAN_PAGE) + number;
	uint32_t generation = 0;

	while (present && !generation)
		if (getrandom(&generation, sizeof(generation), 0) != sizeof(generation))
			die("random numbers");
	__atomic_store_n(word, generation, __ATOMIC_RELEASE);
}

/* What the last one with this number has left must not be taken for the next one's. */
static void clear_slot(unsigned int number)
{
	uint64_t section = sovia_clan_section(option.nodes, option.ring, option.pages);

	memset(base + 2 * SOVIA_CLAN_PAGE + number * section, 0, SOVIA_CLAN_PAGE);
}

/* ---- the protocol ------------------------------------------------------ */

/* Returns false if the peer does not take it. */
static bool send_number(int to, int64_t number, int fd)
{
	union {
		struct cmsghdr	header;
		char		space[CMSG_SPACE(sizeof(int))];
	} control = {};
	uint64_t wire = htole64(number);
	struct iovec iov = { .iov_base = &wire, .iov_len = sizeof(wire) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
						   .cmsg_len = CMSG_LEN(sizeof(int)) };
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	return sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(wire);
}

static bool introduce(const struct peer *to, unsigned int number)
{
	unsigned int v;

	for (v = 0; v < option.vectors; v++)
		if (!send_number(to->fd, number, peers[number].event[v]))
			return false;
	return true;
}

static void close_events(struct peer *peer)
{
	unsigned int v;

	for (v = 0; v < option.vectors; v++) {
		if (peer->event[v] >= 0)
			close(peer->event[v]);
		peer->event[v] = -1;
	}
}

/* A peer is to be disconnected: sweep() does it. */
static void drop(unsigned int number, const char *why)
{
	say(number, why);
	peers[number].leaving = true;
}

static bool is_there(unsigned int number)
{
	return peers[number].fd >= 0 && !peers[number].leaving;
}

static void disconnect(unsigned int number)
{
	bool known = peers[number].known;
	unsigned int i;

	close(peers[number].fd);
	close_events(&peers[number]);
	peers[number].fd = -1;
	peers[number].known = false;
	peers[number].leaving = false;
	set_present(number, false);
	clear_slot(number);
	for (i = 0; i < option.nodes; i++)
		if (known && is_there(i) && !send_number(peers[i].fd, number, -1))
			drop(i, "does not read");
}

/* Disconnect those that are to be, and those that do not take the news of it. */
static void sweep(void)
{
	unsigned int i = 0;

	while (i < option.nodes) {
		if (peers[i].leaving) {
			disconnect(i);
			i = 0;
		} else {
			i++;
		}
	}
}

static bool open_events(struct peer *peer)
{
	unsigned int v;

	for (v = 0; v < option.vectors; v++) {
		peer->event[v] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (peer->event[v] < 0)
			return false;
	}
	return true;
}

/* Tell a new peer of the others, and of itself at last. */
static bool welcome(unsigned int number)
{
	const struct peer *peer = &peers[number];
	unsigned int i;

	if (!send_number(peer->fd, 0, -1) || !send_number(peer->fd, number, -1) ||
	    !send_number(peer->fd, -1, memory))
		return false;
	for (i = 0; i < option.nodes; i++)
		if (i != number && is_there(i) && !introduce(peer, i))
			return false;
	return introduce(peer, number);
}

static void announce(unsigned int number)
{
	unsigned int i;

	peers[number].known = true;
	for (i = 0; i < option.nodes; i++)
		if (i != number && is_there(i) && !introduce(&peers[i], number))
			drop(i, "does not read");
}

static void arrive(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	unsigned int number = 0;

	if (fd < 0)
		return;
	while (number < option.nodes && peers[number].fd >= 0)
		number++;
	if (number == option.nodes) {
		fprintf(stderr, "sovia-clan-server: a peer too many, see --nodes\n");
		close(fd);
		return;
	}
	peers[number].fd = fd;
	clear_slot(number);
	set_present(number, true);
	if (!open_events(&peers[number])) {
		drop(number, strerror(errno));
		return;
	}
	say(number, "connected");
	if (welcome(number))
		announce(number);
	else
		drop(number, "does not read");
}

/* It says nothing by rights, so it is about to go, or is no QEMU. */
static void leave(unsigned int number)
{
	char byte;
	ssize_t got = recv(peers[number].fd, &byte, 1, MSG_DONTWAIT);

	if (got > 0)
		drop(number, "sent something, disconnected");
	else if (!got || (errno != EAGAIN && errno != EINTR))
		drop(number, "disconnected");
}

/* ---- the server -------------------------------------------------------- */

static void set_group(void)
{
	const struct group *group = getgrnam(option.group);

	if (!group) {
		fprintf(stderr, "sovia-clan-server: no such group: %s\n", option.group);
		exit(1);
	}
	if (chown(option.path, -1, group->gr_gid) || chmod(option.path, 0660))
		die(option.path);
}

/* A socket that a server has left is in the way; one that is served is not ours to remove. */
static void remove_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	int fd;

	if (lstat(addr->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		die("socket");
	if (connect(fd, (const void *)addr, sizeof(*addr)) && errno == ECONNREFUSED)
		unlink(addr->sun_path);
	close(fd);
}

static int make_listener(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (strlen(option.path) >= sizeof(addr.sun_path)) {
		errno = ENAMETOOLONG;
		die(option.path);
	}
	strcpy(addr.sun_path, option.path);
	remove_stale(&addr);
	umask(0177);
	if (fd < 0 || bind(fd, (const void *)&addr, sizeof(addr)))
		die(option.path);
	if (option.group)
		set_group();
	if (listen(fd, SOMAXCONN))
		die(option.path);
	return fd;
}

static int make_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		die("signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		die("signals");
	return fd;
}

static void serve(int listener, int signals)
{
	struct pollfd fds[SOVIA_CLAN_NODES_MAX + 2];
	unsigned int i;

	for (;;) {
		for (i = 0; i < option.nodes; i++)
			fds[i] = (struct pollfd){ .fd = peers[i].fd, .events = POLLIN };
		fds[i] = (struct pollfd){ .fd = listener, .events = POLLIN };
		fds[i + 1] = (struct pollfd){ .fd = signals, .events = POLLIN };
		if (poll(fds, option.nodes + 2, -1) < 0 && errno != EINTR)
			die("poll");
		if (fds[option.nodes + 1].revents)
			return;
		for (i = 0; i < option.nodes; i++)
			if (fds[i].revents)
				leave(i);
		sweep();
		if (fds[option.nodes].revents)
			arrive(listener);
		sweep();
	}
}

static unsigned int number_of(const char *text, unsigned int min, unsigned int max, bool power)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (errno || end == text || *end || value < min || value > max ||
	    (power && value & (value - 1))) {
		fprintf(stderr, "sovia-clan-server: %s: from %u to %u%s\n", text, min, max,
			power ? ", a power of two" : "");
		exit(1);
	}
	return value;
}

static void parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "nodes", required_argument, NULL, 'n' }, { "pages", required_argument, NULL, 'p' },
		{ "ring", required_argument, NULL, 'r' }, { "vectors", required_argument, NULL, 'v' },
		{ "group", required_argument, NULL, 'g' }, { "huge", no_argument, NULL, 'H' },
		{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, {},
	};
	int c;

	while ((c = getopt_long(argc, argv, "n:p:r:v:g:HhV", options, NULL)) != -1) {
		switch (c) {
		case 'n':
			option.nodes = number_of(optarg, 2, SOVIA_CLAN_NODES_MAX, false);
			break;
		case 'p':
			option.pages = number_of(optarg, SOVIA_CLAN_POOL_MIN, SOVIA_CLAN_POOL_MAX, true);
			break;
		case 'r':
			option.ring = number_of(optarg, SOVIA_CLAN_RING_MIN, SOVIA_CLAN_RING_MAX, true);
			break;
		case 'v':
			option.vectors = number_of(optarg, 1, VECTORS_MAX, false);
			break;
		case 'g':
			option.group = optarg;
			break;
		case 'H':
			option.huge = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		case 'V':
			puts("sovia-clan-server " SOVIA_VERSION);
			exit(0);
		default:
			exit(1);
		}
	}
	if (optind != argc - 1) {
		fputs("sovia-clan-server: one SOCKET, see --help\n", stderr);
		exit(1);
	}
	option.path = argv[optind];
}

int main(int argc, char **argv)
{
	int listener, signals;
	unsigned int i, v;

	parse(argc, argv);
	for (i = 0; i < SOVIA_CLAN_NODES_MAX; i++) {
		peers[i].fd = -1;
		for (v = 0; v < VECTORS_MAX; v++)
			peers[i].event[v] = -1;
	}
	make_memory();
	signals = make_signals();
	listener = make_listener();
	printf("%llu MiB for %u nodes at %s\n", (unsigned long long)size >> 20, option.nodes, option.path);
	fflush(stdout);
	serve(listener, signals);
	unlink(option.path);
	return 0;
}

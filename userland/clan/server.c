// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia-clan-server [OPTION]... [SOCKET]: memory for the virtual machines of a host
 *
 * Speaks version 0 of the protocol of QEMU's ivshmem-doorbell: messages are 64-bit numbers,
 * little endian, some with a descriptor.
 *
 *	to a new peer	0; its number; -1 with the memory; then for each number that a peer has or
 *			has had, its own at last, number with an eventfd, once for each vector
 *	to the others	a number that no peer has had before, likewise
 *
 * Peers send nothing.  A number is a section of the memory (include/sovia/clan.h).  It keeps its
 * eventfds for the next peer that gets it, and the others are not told of a peer that goes: the memory
 * tells their kernels, and QEMU 7.2 crashes when it is told of the same number twice.
 *
 * A peer is not sent more than there are numbers and vectors, which its socket has room for.  One
 * that takes less is disconnected: the others do not wait for it.
 *
 * As a unit of systemd the server is given the listening socket, and leaves the memory, the
 * connections and the eventfds with systemd, by name (FDSTORE of sd_notify(3)).  The next server,
 * after a restart, an upgrade or a crash, is given them back and goes on: peers notice nothing.
 * The names hold the rest of the state: it is not read from the memory, which peers can write to.
 *
 *	memory-NODES-RING-PAGES-VECTORS-UUID
 *	event-NUMBER-VECTOR
 *	known-NUMBER				a mark: all others have been told of the number's
 *	peer-NUMBER-SINCE-PRESENT		the connection
 *
 * The eventfds are left there before any other peer has them, and known-NUMBER when all do.  Without
 * that the number is taken back: the one case in which the others are told that a peer has gone.
 *
 * What the server says in the memory it says again each second: any that has it may have changed
 * it, and nodes leave a number that is not said to be theirs.
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
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <systemd/sd-daemon.h>
#include <time.h>
#include <unistd.h>

#ifndef SOVIA_VERSION
#define SOVIA_VERSION "unknown"
#endif

#define VECTORS_MAX 8

static const char usage[] =
	"Usage: sovia-clan-server [OPTION]... [SOCKET]\n"
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
	"SIGUSR1 prints who is connected.  Without SOCKET systemd has to give one, and keeps the\n"
	"memory while the server is restarted: see sovia-clan@.service.\n"
	"\n"
	"All that have the memory can read and change all of it: a server for each group of\n"
	"virtual machines that trust each other.\n";

/* Milliseconds. */
#define SAY_AGAIN 1000

/**
 * struct peer - a QEMU
 * @fd: its connection, -1 if there is none
 * @who: its process, as it was when it connected
 * @since: when that was, seconds since 1970
 * @present: what the memory says of it: random, 0 if there is none
 * @known: all have the number's eventfds, and the next peer that gets it will have them, too
 * @leaving: it is to be disconnected
 * @event: ring its vectors
 */
struct peer {
	int		fd;
	struct ucred	who;
	time_t		since;
	uint32_t	present;
	bool		known;
	bool		leaving;
	int		event[VECTORS_MAX];
};

static struct {
	unsigned int	nodes, pages, ring, vectors;
	const char	*group;
	bool		huge;
	const char	*path;
} option = { .nodes = 8, .pages = 1024, .ring = 256, .vectors = 1 };

static struct peer peers[SOVIA_CLAN_NODES_MAX];
static int listener = -1;
static int memory = -1;
static char *base;			/* the first two pages and the slots are the server's to reach */
static uint64_t size;
static struct sovia_clan_header header;	/* as the memory should have it */
static unsigned int next;		/* number to try first, so that each is used again as late as can be */
static bool deaf;			/* there was no descriptor for a peer: wait before the next try */

static void die(const char *what)
{
	fprintf(stderr, "sovia-clan-server: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void say(unsigned int number, const char *what)
{
	const struct ucred *who = &peers[number].who;

	printf("peer %u, process %d of user %u: %s\n", number, who->pid, who->uid, what);
	fflush(stdout);
}

/* ---- what systemd keeps ------------------------------------------------ */

/* Nothing happens where there is no systemd. */
static void keep(int fd, const char *how, const char *format, ...)
{
	char name[64], state[128];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(name, sizeof(name), format, arguments);
	va_end(arguments);
	snprintf(state, sizeof(state), "FDSTORE=1\n%sFDNAME=%s", how, name);
	sd_pid_notify_with_fds(0, 0, state, &fd, 1);
}

static void keep_memory(void)
{
	char uuid[2 * sizeof(header.uuid) + 1];
	unsigned int i;

	for (i = 0; i < sizeof(header.uuid); i++)
		sprintf(uuid + 2 * i, "%02x", header.uuid[i]);
	keep(memory, "FDPOLL=0\n", "memory-%u-%u-%u-%u-%s", option.nodes, option.ring, option.pages,
	     option.vectors, uuid);
}

static void keep_events(unsigned int number)
{
	unsigned int v;

	for (v = 0; v < option.vectors; v++)
		keep(peers[number].event[v], "FDPOLL=0\n", "event-%u-%u", number, v);
}

/* A file of its own: systemd does not store one that it has once more. */
static void keep_known(unsigned int number)
{
	int mark = eventfd(0, EFD_CLOEXEC);

	if (mark < 0)
		return;
	keep(mark, "FDPOLL=0\n", "known-%u", number);
	close(mark);
}

/* systemd forgets it by itself if the other end hangs up meanwhile. */
static void keep_connection(unsigned int number)
{
	keep(peers[number].fd, "", "peer-%u-%lld-%x", number, (long long)peers[number].since,
	     peers[number].present);
}

static void forget_connection(unsigned int number)
{
	sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=peer-%u-%lld-%x", number,
		   (long long)peers[number].since, peers[number].present);
}

static void forget_events(unsigned int number)
{
	unsigned int v;

	for (v = 0; v < option.vectors; v++)
		sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=event-%u-%u", number, v);
	sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=known-%u", number);
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

/* Peers are not given the memory before it has been called once. */
static void say_again(void)
{
	uint32_t *present = (uint32_t *)(base + SOVIA_CLAN_PAGE);
	unsigned int i;

	if (memcmp(base, &header, sizeof(header)))
		memcpy(base, &header, sizeof(header));
	for (i = 0; i < option.nodes; i++)
		if (__atomic_load_n(&present[i], __ATOMIC_RELAXED) != peers[i].present)
			__atomic_store_n(&present[i], peers[i].present, __ATOMIC_RELEASE);
}

static void map_memory(void)
{
	base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (base == MAP_FAILED)
		die("memory");
	header.version = htole32(SOVIA_CLAN_VERSION);
	header.nodes = htole32(option.nodes);
	header.ring = htole32(option.ring);
	header.pool = htole32(option.pages);
	memcpy(header.magic, SOVIA_CLAN_MAGIC, sizeof(header.magic));
}

static void make_memory(void)
{
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
	if (getrandom(header.uuid, sizeof(header.uuid), 0) != sizeof(header.uuid))
		die("random numbers");
	map_memory();
	keep_memory();
	say_again();
}

/* Tell all who looks at the memory whether a node is there. */
static void set_present(unsigned int number, bool present)
{
	uint32_t random = 0;

	while (present && !random)
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			die("random numbers");
	peers[number].present = random;
	say_again();
}

/* What the last one with this number has left must not be taken for the next one's. */
static void clear_slot(unsigned int number)
{
	uint64_t section = sovia_clan_section(option.nodes, option.ring, option.pages);

	memset(base + 2 * SOVIA_CLAN_PAGE + number * section, 0, SOVIA_CLAN_PAGE);
}

/* ---- the protocol ------------------------------------------------------ */

/*
 * Each message for a peer may have an eventfd, until it is read.  The kernel counts those that are
 * under way against our limit of descriptors, however many have them open.
 */
static void raise_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* Why a message could not be sent. */
static const char *why_not(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK ? "does not read" : strerror(errno);
}

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

static unsigned int how_many(void)
{
	unsigned int i, count = 0;

	for (i = 0; i < option.nodes; i++)
		count += is_there(i);
	return count;
}

/* For systemctl status. */
static void say_how_many(void)
{
	sd_notifyf(0, "STATUS=%u of %u nodes are connected", how_many(), option.nodes);
}

static void disconnect(unsigned int number)
{
	struct peer *peer = &peers[number];

	if (peer->fd >= 0) {
		forget_connection(number);
		/* systemd may have it still. */
		shutdown(peer->fd, SHUT_RDWR);
		close(peer->fd);
	}
	peer->fd = -1;
	peer->leaving = false;
	set_present(number, false);
	clear_slot(number);
	if (!peer->known)
		close_events(peer);
	say_how_many();
}

static void sweep(void)
{
	unsigned int i;

	for (i = 0; i < option.nodes; i++)
		if (peers[i].leaving)
			disconnect(i);
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

/* Tell a new peer of the others, also of those that have gone, and of itself at last. */
static bool welcome(unsigned int number)
{
	const struct peer *peer = &peers[number];
	unsigned int i;

	if (!send_number(peer->fd, 0, -1) || !send_number(peer->fd, number, -1) ||
	    !send_number(peer->fd, -1, memory))
		return false;
	for (i = 0; i < option.nodes; i++)
		if (i != number && peers[i].known && !introduce(peer, i))
			return false;
	return introduce(peer, number);
}

static void announce(unsigned int number)
{
	unsigned int i;

	peers[number].known = true;
	for (i = 0; i < option.nodes; i++)
		if (i != number && is_there(i) && !introduce(&peers[i], number))
			drop(i, why_not());
}

static struct ucred who_is(int fd)
{
	struct ucred who = {};
	socklen_t len = sizeof(who);

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len);
	return who;
}

/* The first one that is free after the last that was given, or option.nodes. */
static unsigned int free_number(void)
{
	unsigned int i, number;

	for (i = 0; i < option.nodes; i++) {
		number = (next + i) % option.nodes;
		if (peers[number].fd < 0) {
			next = number + 1;
			return number;
		}
	}
	return option.nodes;
}

/* One that could not be accepted goes on waiting, and would be reported at once. */
static void not_accepted(void)
{
	static bool told;

	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS)
		return;
	deaf = true;
	if (!told)
		fprintf(stderr, "sovia-clan-server: a peer waits: %s\n", strerror(errno));
	told = true;
}

static void arrive(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	unsigned int number;
	struct ucred who;

	if (fd < 0) {
		not_accepted();
		return;
	}
	who = who_is(fd);
	number = free_number();
	if (number == option.nodes) {
		fprintf(stderr, "sovia-clan-server: a peer too many, process %d of user %u, see --nodes\n",
			who.pid, who.uid);
		close(fd);
		return;
	}
	peers[number].who = who;
	peers[number].fd = fd;
	/* A message for each vector of each number, before the peer has read any. */
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 << 20 }, sizeof(int));
	peers[number].since = time(NULL);
	clear_slot(number);
	set_present(number, true);
	if (!peers[number].known && !open_events(&peers[number])) {
		drop(number, strerror(errno));
		return;
	}
	say(number, "connected");
	if (!welcome(number)) {
		drop(number, why_not());
		return;
	}
	if (!peers[number].known) {
		keep_events(number);
		announce(number);
		keep_known(number);
	}
	keep_connection(number);
	say_how_many();
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

/* ---- what the server before has left ----------------------------------- */

/* Takes a memory with sizes that it is large enough for. */
static bool take_memory(int fd, unsigned int nodes, unsigned int ring, unsigned int pages,
			unsigned int vectors, const char *uuid)
{
	struct stat st;
	unsigned int i;

	if (memory >= 0 || nodes > SOVIA_CLAN_NODES_MAX || ring > SOVIA_CLAN_RING_MAX ||
	    pages > SOVIA_CLAN_POOL_MAX || vectors > VECTORS_MAX || fstat(fd, &st) ||
	    (uint64_t)st.st_size < sovia_clan_size(nodes, ring, pages))
		return false;
	if (nodes != option.nodes || ring != option.ring || pages != option.pages ||
	    vectors != option.vectors)
		printf("the memory that is kept has other sizes: -n %u -p %u -r %u -v %u\n", nodes,
		       pages, ring, vectors);
	option.nodes = nodes;
	option.ring = ring;
	option.pages = pages;
	option.vectors = vectors;
	for (i = 0; i < sizeof(header.uuid); i++)
		sscanf(uuid + 2 * i, "%2hhx", &header.uuid[i]);
	memory = fd;
	size = st.st_size;
	map_memory();
	return true;
}

static bool take_event(int fd, unsigned int number, unsigned int vector)
{
	if (number >= SOVIA_CLAN_NODES_MAX || vector >= VECTORS_MAX || peers[number].event[vector] >= 0)
		return false;
	peers[number].event[vector] = fd;
	return true;
}

static bool take_connection(int fd, unsigned int number, long long since, uint32_t present)
{
	if (number >= SOVIA_CLAN_NODES_MAX || peers[number].fd >= 0)
		return false;
	peers[number].fd = fd;
	peers[number].who = who_is(fd);
	peers[number].since = since;
	peers[number].present = present;
	next = number + 1;
	return true;
}

static bool take_listener(int fd)
{
	if (listener >= 0 || sd_is_socket(fd, AF_UNIX, SOCK_STREAM, 1) <= 0 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK))
		return false;
	listener = fd;
	return true;
}

static bool take(int fd, const char *name)
{
	char uuid[2 * sizeof(header.uuid) + 1];
	unsigned int a, b, c, d;
	long long since;

	if (sscanf(name, "memory-%u-%u-%u-%u-%32[0-9a-f]", &a, &b, &c, &d, uuid) == 5)
		return strlen(uuid) == 32 && take_memory(fd, a, b, c, d, uuid);
	if (sscanf(name, "event-%u-%u", &a, &b) == 2)
		return take_event(fd, a, b);
	if (sscanf(name, "known-%u", &a) == 1 && a < SOVIA_CLAN_NODES_MAX) {
		peers[a].known = true;
		return false;
	}
	if (sscanf(name, "peer-%u-%lld-%x", &a, &since, &b) == 3)
		return take_connection(fd, a, since, b);
	return take_listener(fd);
}

/* Some of the others may have some of its eventfds, others none. */
static void take_back(unsigned int number)
{
	unsigned int i;

	close_events(&peers[number]);
	forget_events(number);
	peers[number].known = false;
	for (i = 0; i < option.nodes; i++)
		if (is_there(i) && !send_number(peers[i].fd, number, -1))
			drop(i, why_not());
	if (peers[number].fd >= 0)
		drop(number, "not all had been told of it");
}

static void check_taken(unsigned int number, bool same_memory)
{
	const struct peer *peer = &peers[number];
	unsigned int v, events = 0;

	for (v = 0; v < option.vectors; v++)
		events += peer->event[v] >= 0;
	if (!same_memory || events != (peer->known ? option.vectors : 0) ||
	    (!peer->known && peer->fd >= 0))
		take_back(number);
	/* It may have gone in between. */
	if (peer->fd < 0)
		clear_slot(number);
}

static void take_all(void)
{
	char **names = NULL;
	int i, count = sd_listen_fds_with_names(1, &names);
	unsigned int number;
	bool same_memory;

	for (i = 0; i < count; i++) {
		if (!take(SD_LISTEN_FDS_START + i, names[i]))
			close(SD_LISTEN_FDS_START + i);
		free(names[i]);
	}
	free(names);
	same_memory = memory >= 0;
	if (!same_memory)
		make_memory();
	say_again();
	for (number = 0; number < option.nodes; number++)
		check_taken(number, same_memory);
	sweep();
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

static void make_listener(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!option.path) {
		fputs("sovia-clan-server: one SOCKET, see --help\n", stderr);
		exit(1);
	}
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
	listener = fd;
}

/* One of systemd's is not ours to change. */
static void check_listener(void)
{
	static struct sockaddr_un addr;
	socklen_t len = sizeof(addr) - 1;

	if (option.path) {
		fputs("sovia-clan-server: systemd has given a socket, so there is no other SOCKET\n",
		      stderr);
		exit(1);
	}
	if (option.group)
		fputs("sovia-clan-server: --group does nothing for a socket of systemd: SocketGroup= of"
		      " its unit does\n", stderr);
	if (getsockname(listener, (void *)&addr, &len))
		die("socket");
	option.path = addr.sun_path;
}

static int make_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		die("signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	if (fd < 0)
		die("signals");
	return fd;
}

static void show_peers(void)
{
	char text[sizeof("connected since YYYYYY-MM-DD HH:MM:SS")];
	unsigned int i;
	struct tm tm;

	printf("%u of %u nodes are connected\n", how_many(), option.nodes);
	for (i = 0; i < option.nodes; i++) {
		if (!is_there(i))
			continue;
		strftime(text, sizeof(text), "connected since %F %T", localtime_r(&peers[i].since, &tm));
		say(i, text);
	}
	fflush(stdout);
}

/* Returns false if the server is to end. */
static bool take_signal(int signals)
{
	struct signalfd_siginfo info;

	if (read(signals, &info, sizeof(info)) != sizeof(info))
		die("signals");
	if (info.ssi_signo != SIGUSR1)
		return false;
	show_peers();
	return true;
}

static void serve(int signals)
{
	struct pollfd fds[SOVIA_CLAN_NODES_MAX + 2];
	unsigned int i;

	for (;;) {
		say_again();
		for (i = 0; i < option.nodes; i++)
			fds[i] = (struct pollfd){ .fd = peers[i].fd, .events = POLLIN };
		fds[i] = (struct pollfd){ .fd = deaf ? -1 : listener, .events = POLLIN };
		fds[i + 1] = (struct pollfd){ .fd = signals, .events = POLLIN };
		if (poll(fds, option.nodes + 2, SAY_AGAIN) < 0 && errno != EINTR)
			die("poll");
		deaf = false;
		if (fds[option.nodes + 1].revents && !take_signal(signals))
			return;
		for (i = 0; i < option.nodes; i++)
			if (fds[i].revents)
				leave(i);
		sweep();
		if (fds[option.nodes].revents)
			arrive();
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
	if (optind < argc - 1) {
		fputs("sovia-clan-server: one SOCKET, see --help\n", stderr);
		exit(1);
	}
	option.path = argv[optind];
}

int main(int argc, char **argv)
{
	unsigned int i, v;
	int signals;
	bool ours;

	parse(argc, argv);
	raise_limit();
	for (i = 0; i < SOVIA_CLAN_NODES_MAX; i++) {
		peers[i].fd = -1;
		for (v = 0; v < VECTORS_MAX; v++)
			peers[i].event[v] = -1;
	}
	signals = make_signals();
	take_all();
	ours = listener < 0;
	if (ours)
		make_listener();
	else
		check_listener();
	printf("%llu MiB for %u nodes at %s\n", (unsigned long long)size >> 20, option.nodes, option.path);
	fflush(stdout);
	if (how_many())
		show_peers();
	say_how_many();
	sd_notify(0, "READY=1");
	serve(signals);
	if (ours)
		unlink(option.path);
	return 0;
}

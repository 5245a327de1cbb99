// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What root of a namespace of one's own may do with sockets, and must not do to the host:
 *
 *	own_root [--tcp] netfilter|policies|clear|floor
 *
 * netfilter: options that take RTNL, beside ones that take the socket lock after it.
 * policies: IPsec policies of sockets that are closed; prints how many KiB of slab are left.
 * clear: connections that a policy wants encrypted, to a port where only TCP listens.
 * floor: buffers as large as can be; prints how many per cent of the memory unread data takes.
 *
 * As any user.  Exit status: 0 as with TCP (--tcp), 1 if not, 77 if the kernel has not what it takes.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ip_vs.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/sovia.h>
#include <linux/xfrm.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MISSING	77
/* Connections whose data nobody reads. */
#define UNREAD	4

static int protocol = SOVIAPROTO_INET;

static void put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		err(MISSING, "%s", path);
	close(fd);
}

/* The number that a line of a file of /proc has. */
static long number(const char *path, const char *format)
{
	char line[128];
	long found = 0;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		sscanf(line, format, &found);
	if (file)
		fclose(file);
	return found;
}

static void enter_namespaces(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	unsigned int uid = getuid(), gid = getgid();
	char map[64];
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		err(MISSING, "unshare");
	put("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1\n", uid);
	put("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "0 %u 1\n", gid);
	put("/proc/self/gid_map", map);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo))
		err(MISSING, "lo");
	close(fd);
}

static int open_socket(int proto)
{
	int fd = socket(AF_INET, SOCK_STREAM, proto);

	if (fd < 0)
		err(MISSING, "socket");
	return fd;
}

static int listening(int proto, struct sockaddr_in *at)
{
	int fd = open_socket(proto);
	socklen_t len = sizeof(*at);

	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(fd, (void *)at, len) || listen(fd, 64) || getsockname(fd, (void *)at, &len))
		err(MISSING, "listener");
	return fd;
}

/* ---- netfilter ---------------------------------------------------------- */

static int bound;
static volatile unsigned long *rounds;

/* As root of the namespace: nft's layer for matches of iptables loads the module. */
static void load_ip_vs(void)
{
	struct {
		struct nlmsghdr	head;
		struct nfgenmsg	family;
		struct nlattr	name;
		char		ipvs[8];
		struct nlattr	revision;
		__u32		first;
		struct nlattr	type;
		__u32		match;
	} ask = {
		.head = { sizeof(ask), NFNL_SUBSYS_NFT_COMPAT << 8 | NFNL_MSG_COMPAT_GET,
			  NLM_F_REQUEST | NLM_F_ACK, 1, 0 },
		.family = { AF_INET, NFNETLINK_V0, 0 },
		.name = { NLA_HDRLEN + sizeof("ipvs"), NFTA_COMPAT_NAME },
		.ipvs = "ipvs",
		.revision = { NLA_HDRLEN + sizeof(__u32), NFTA_COMPAT_REV },
		.type = { NLA_HDRLEN + sizeof(__u32), NFTA_COMPAT_TYPE },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
	char answer[4096];

	if (fd < 0)
		return;
	if (send(fd, &ask, sizeof(ask), 0) == sizeof(ask) && recv(fd, answer, sizeof(answer), 0) < 0)
		warn("nft_compat");
	close(fd);
}

static int set_daemon(int what)
{
	struct ip_vs_daemon_user daemon = { .state = IP_VS_STATE_MASTER, .mcast_ifn = "lo", .syncid = 1 };

	return setsockopt(bound, SOL_IP, what, &daemon, sizeof(daemon));
}

static void *set_daemons(void *unused)
{
	(void)unused;
	for (;;) {
		set_daemon(IP_VS_SO_SET_STARTDAEMON);
		set_daemon(IP_VS_SO_SET_STOPDAEMON);
		rounds[0]++;
	}
	return NULL;
}

static void *read_filters(void *unused)
{
	char filter[64];
	socklen_t len;

	(void)unused;
	for (;;) {
		len = sizeof(int);
		getsockopt(bound, SOL_IP, IP_MSFILTER, filter, &len);
		rounds[1]++;
	}
	return NULL;
}

static int netfilter(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	unsigned long before = 0;
	pthread_t setter;
	pid_t child;
	int still = 0;

	load_ip_vs();
	bound = open_socket(protocol);
	if (bind(bound, (void *)&at, sizeof(at)))
		err(MISSING, "bind");
	if (set_daemon(IP_VS_SO_SET_STARTDAEMON))
		err(MISSING, "ip_vs");
	set_daemon(IP_VS_SO_SET_STOPDAEMON);
	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	child = fork();
	if (!child) {
		pthread_create(&setter, NULL, set_daemons, NULL);
		read_filters(NULL);
	}
	/* A loop that waits for a grace period is slow, one that hangs does not move. */
	for (int i = 0; i < 40 && still < 15; i++) {
		sleep(1);
		still = rounds[0] == before ? still + 1 : 0;
		before = rounds[0];
	}
	printf("%lu rounds, %lu reads\n", rounds[0], rounds[1]);
	fflush(stdout);
	kill(child, SIGKILL);
	if (still)
		_exit(still >= 15);
	return 0;
}

/* ---- IPsec ---------------------------------------------------------------- */

/* @esp: it demands ESP, for which there is no key. */
static void set_policy(int fd, int direction, bool esp)
{
	struct {
		struct xfrm_userpolicy_info	info;
		struct xfrm_user_tmpl		how;
	} policy = {
		.info = {
			.sel.family = AF_INET,
			.lft = { XFRM_INF, XFRM_INF, XFRM_INF, XFRM_INF },
			.dir = direction,
			.action = XFRM_POLICY_ALLOW,
			.share = XFRM_SHARE_ANY,
		},
		.how = {
			.id.proto = IPPROTO_ESP,
			.family = AF_INET,
			.mode = XFRM_MODE_TRANSPORT,
			.aalgos = ~0U,
			.ealgos = ~0U,
			.calgos = ~0U,
		},
	};

	if (setsockopt(fd, SOL_IP, IP_XFRM_POLICY, &policy, esp ? sizeof(policy) : sizeof(policy.info)))
		err(MISSING, "IP_XFRM_POLICY");
}

/* It stays open: the module is used. */
static void load_xfrm(void)
{
	if (socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM) < 0)
		err(MISSING, "NETLINK_XFRM");
}

static long slab(void)
{
	return number("/proc/meminfo", "SUnreclaim: %ld");
}

static int policies(void)
{
	const int count = 10000;
	long before, more;

	load_xfrm();
	before = slab();
	for (int i = 0; i < count; i++) {
		int fd = open_socket(protocol);

		set_policy(fd, XFRM_POLICY_IN, false);
		set_policy(fd, XFRM_POLICY_OUT, false);
		close(fd);
	}
	sleep(3);
	more = slab() - before;
	printf("%d sockets: %ld KiB\n", count, more);
	return more > count / 2;
}

static bool connects(int fd, const struct sockaddr_in *to, const char *how)
{
	bool yes = !connect(fd, (const void *)to, sizeof(*to));

	printf("%s: %s\n", how, yes ? "connected" : strerrorname_np(errno));
	return yes;
}

static int in_the_clear(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = {};
	const struct sockaddr unspec = { .sa_family = AF_UNSPEC };
	struct sockaddr_in both, tcp;
	bool bad;
	int fd;

	load_xfrm();
	listening(protocol, &both);
	listening(IPPROTO_TCP, &tcp);
	fd = open_socket(protocol);
	if (connect(fd, (void *)&both, sizeof(both)))
		err(MISSING, "connect");
	set_policy(fd, XFRM_POLICY_OUT, true);
	if (connect(fd, &unspec, sizeof(unspec)))
		err(MISSING, "AF_UNSPEC");
	bad = connects(fd, &tcp, "a policy that a connection had before");
	fd = open_socket(protocol);
	set_policy(fd, XFRM_POLICY_IN, false);
	set_policy(fd, XFRM_POLICY_OUT, false);
	bad |= !connects(fd, &tcp, "policies that pass");
	fd = open_socket(protocol);
	set_policy(fd, XFRM_POLICY_IN, true);
	set_policy(fd, XFRM_POLICY_OUT, true);
	if (syscall(SYS_capset, &head, none))
		err(MISSING, "capset");
	return bad | connects(fd, &tcp, "one of who had the capability");
}

/* ---- memory ----------------------------------------------------------------- */

static long available(void)
{
	return number("/proc/meminfo", "MemAvailable: %ld");
}

/* It stops by itself before the guest has no memory. */
static int unread(void)
{
	long all = number("/proc/meminfo", "MemTotal: %ld"), before, part;
	int near[UNREAD], far[UNREAD], low = 1 << 30, listener, idle = 0;
	static const char data[65536];
	unsigned long sent = 0;
	struct sockaddr_in at;

	put("/proc/sys/net/ipv4/tcp_rmem", "2147483647 2147483647 2147483647");
	put("/proc/sys/net/ipv4/tcp_wmem", "2147483647 2147483647 2147483647");
	listener = listening(protocol, &at);
	for (int i = 0; i < UNREAD; i++) {
		near[i] = open_socket(protocol);
		if (connect(near[i], (void *)&at, sizeof(at)))
			err(MISSING, "connect");
		far[i] = accept(listener, NULL, NULL);
		if (far[i] < 0 || setsockopt(far[i], SOL_SOCKET, SO_RCVLOWAT, &low, sizeof(low)))
			err(MISSING, "SO_RCVLOWAT");
	}
	before = available();
	while (idle < 200 && sent / 1024 < (unsigned long)all / 2) {
		unsigned long more = 0;

		for (int i = 0; i < UNREAD; i++) {
			ssize_t some = send(near[i], data, sizeof(data), MSG_DONTWAIT);

			more += some > 0 ? some : 0;
		}
		sent += more;
		idle = more ? 0 : idle + 1;
		if (idle)
			usleep(10000);
	}
	part = (before - available()) * 100 / all;
	printf("%lu KiB unread, %ld %% of the memory\n", sent / 1024, part);
	return part > 25;
}

int main(int argc, char **argv)
{
	static const struct {
		const char	*name;
		int		(*run)(void);
	} all[] = {
		{ "netfilter", netfilter }, { "policies", policies }, { "clear", in_the_clear }, { "floor", unread },
	};

	if (argc == 3 && !strcmp(argv[1], "--tcp")) {
		protocol = IPPROTO_TCP;
		argv++;
		argc--;
	}
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (argc == 2 && !strcmp(argv[1], all[i].name)) {
			enter_namespaces();
			return all[i].run();
		}
	errx(2, "usage: own_root [--tcp] netfilter|policies|clear|floor");
}

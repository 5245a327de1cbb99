// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia doctor: why connections with another node fall back to TCP. */
#include <errno.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <linux/sovia.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "addr.h"
#include "attrs.h"
#include "doctor.h"
#include "sovia.h"
#include "why.h"

/* How long a connection is waited for, in milliseconds. */
#define PATIENCE 5000

/* An address for calls of the socket interface. */
static socklen_t make_sockaddr(const struct in6_addr *addr, unsigned int scope, unsigned int port,
			       struct sockaddr_storage *storage)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)storage;
	struct sockaddr_in *sin = (struct sockaddr_in *)storage;

	memset(storage, 0, sizeof(*storage));
	if (IN6_IS_ADDR_V4MAPPED(addr)) {
		sin->sin_family = AF_INET;
		sin->sin_port = htons(port);
		sin->sin_addr.s_addr = addr->s6_addr32[3];
		return sizeof(*sin);
	}
	sin6->sin6_family = AF_INET6;
	sin6->sin6_port = htons(port);
	sin6->sin6_addr = *addr;
	sin6->sin6_scope_id = scope;
	return sizeof(*sin6);
}

static void read_sockaddr(const struct sockaddr *sa, struct in6_addr *addr)
{
	memset(addr, 0, sizeof(*addr));
	if (sa->sa_family == AF_INET) {
		addr->s6_addr32[2] = htonl(0xffff);
		addr->s6_addr32[3] = ((const struct sockaddr_in *)sa)->sin_addr.s_addr;
	} else {
		*addr = ((const struct sockaddr_in6 *)sa)->sin6_addr;
	}
}

/* The address of a node that programs try first.  Complains, and returns -1, if it has none. */
int doctor_find(const char *node, struct in6_addr *addr, unsigned int *scope)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	int err = getaddrinfo(node, NULL, &hints, &list);

	if (err) {
		complain("%s: %s", node, gai_strerror(err));
		return -1;
	}
	read_sockaddr(list->ai_addr, addr);
	if (list->ai_family == AF_INET6)
		*scope = ((const struct sockaddr_in6 *)list->ai_addr)->sin6_scope_id;
	freeaddrinfo(list);
	return 0;
}

/* The own address that packets there have.  Returns 0 or -1 with errno. */
static int find_source(const struct sockaddr_storage *to, socklen_t len, struct in6_addr *own)
{
	struct sockaddr_storage from;
	socklen_t size = sizeof(from);
	int fd = socket(to->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), err;

	err = fd < 0 || connect(fd, (const struct sockaddr *)to, len) ||
	      getsockname(fd, (struct sockaddr *)&from, &size) ? -1 : 0;
	if (!err)
		read_sockaddr((struct sockaddr *)&from, own);
	if (fd >= 0)
		close(fd);
	return err;
}

/* The interface that has an address, or "". */
static void find_interface(const struct in6_addr *own, char *name)
{
	struct ifaddrs *all, *entry;
	struct in6_addr addr;

	name[0] = '\0';
	if (getifaddrs(&all))
		return;
	for (entry = all; entry && !name[0]; entry = entry->ifa_next) {
		if (!entry->ifa_addr || (entry->ifa_addr->sa_family != AF_INET &&
					 entry->ifa_addr->sa_family != AF_INET6))
			continue;
		read_sockaddr(entry->ifa_addr, &addr);
		if (memcmp(&addr, own, sizeof(addr)) == 0)
			snprintf(name, IF_NAMESIZE, "%s", entry->ifa_name);
	}
	freeifaddrs(all);
}

/* Is it an address of this host? */
static bool is_here(const struct in6_addr *addr)
{
	char name[IF_NAMESIZE];

	find_interface(addr, name);
	return name[0] || (IN6_IS_ADDR_V4MAPPED(addr) && addr->s6_addr[12] == 127);
}

/* ---- trying ------------------------------------------------------------- */

/* Returns 0 or the errno of a connection. */
static int try_connect(int fd, const struct sockaddr_storage *to, socklen_t len)
{
	struct pollfd ready = { .fd = fd, .events = POLLOUT };
	socklen_t size = sizeof(int);
	int err = 0;

	if (connect(fd, (const struct sockaddr *)to, len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	if (poll(&ready, 1, PATIENCE) == 0)
		return ETIMEDOUT;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size);
	return err;
}

static int try_sovia(const struct sockaddr_storage *to, socklen_t len)
{
	int fd = socket(to->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, SOVIAPROTO_INET);
	int action = SOVIA_ONLY_SOVIA, err;

	if (fd < 0)
		return errno;
	err = setsockopt(fd, SOL_SOVIA, SOVIA_ACTION, &action, sizeof(action)) ? errno :
	      try_connect(fd, to, len);
	close(fd);
	return err;
}

static int try_tcp(const struct in6_addr *addr, unsigned int scope, unsigned int port)
{
	struct sockaddr_storage to;
	socklen_t len = make_sockaddr(addr, scope, port, &to);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? errno : try_connect(fd, &to, len);

	if (fd >= 0)
		close(fd);
	return err;
}

/* ---- what the kernel knows ---------------------------------------------- */

/*
 * @addr: of the other node
 * @link_up: there is a link to it
 * @way: of that
 * @version: of the wire format
 * @met: the kernels have met
 * @unreached, @why: it is known not to be reached
 */
static struct {
	struct in6_addr	addr;
	bool		link_up;
	char		way[16];
	unsigned int	version;
	bool		met;
	bool		unreached;
	unsigned int	why;
} known;

static const enum mnl_attr_data_type no_types[SOVIA_A_LINK_MAX + 1];
static const struct attr_set link_set = { no_types, SOVIA_A_LINK_MAX + 1 };
static const struct attr_set peer_set = { no_types, SOVIA_A_PEER_MAX + 1 };
static const struct attr_set unreached_set = { no_types, SOVIA_A_UNREACHED_MAX + 1 };

static bool is_of_peer(const struct nlattr *remote)
{
	struct in6_addr addr;

	return addr_get(remote, &addr) && memcmp(&addr, &known.addr, sizeof(addr)) == 0;
}

static int take_link(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_LINK_MAX + 1] = {};

	if (attrs_parse(nest, &link_set, a) < 0)
		return MNL_CB_ERROR;
	if (!is_of_peer(a[SOVIA_A_LINK_REMOTE]) || !a[SOVIA_A_LINK_STATE] ||
	    (strcmp(attr_text(a[SOVIA_A_LINK_STATE]), "UP") != 0 &&
	     strcmp(attr_text(a[SOVIA_A_LINK_STATE]), "PARKED") != 0))
		return MNL_CB_OK;
	known.link_up = true;
	known.version = attr_number(a[SOVIA_A_LINK_VERSION]);
	snprintf(known.way, sizeof(known.way), "%s", attr_text(a[SOVIA_A_LINK_WAY]));
	return MNL_CB_OK;
}

static int take_peer(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_PEER_MAX + 1] = {};

	if (attrs_parse(nest, &peer_set, a) < 0)
		return MNL_CB_ERROR;
	if (is_of_peer(a[SOVIA_A_PEER_REMOTE]) && a[SOVIA_A_PEER_STATE] &&
	    strcmp(attr_text(a[SOVIA_A_PEER_STATE]), "PAIRED") == 0)
		known.met = true;
	return MNL_CB_OK;
}

static int take_unreached(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_UNREACHED_MAX + 1] = {};

	if (attrs_parse(nest, &unreached_set, a) < 0)
		return MNL_CB_ERROR;
	if (is_of_peer(a[SOVIA_A_UNREACHED_REMOTE])) {
		known.unreached = true;
		known.why = attr_number(a[SOVIA_A_UNREACHED_WHY]);
	}
	return MNL_CB_OK;
}

static void ask_kernel(const struct in6_addr *addr)
{
	memset(&known, 0, sizeof(known));
	known.addr = *addr;
	show_each(SOVIA_CMD_LINK_GET, SOVIA_A_LINK, take_link);
	show_each(SOVIA_CMD_PEER_GET, SOVIA_A_PEER, take_peer);
	show_each(SOVIA_CMD_UNREACHED_GET, SOVIA_A_UNREACHED, take_unreached);
}

/* ---- the verdict -------------------------------------------------------- */

/*
 * The kernels have not met.  Where AF_SOVIA has the port, it does not answer programs: so whether
 * the question of this kernel was answered, with @err, tells that from a firewall.
 */
static void why_silent(const struct in6_addr *addr, unsigned int scope, int err)
{
	switch (try_tcp(addr, scope, 298)) {
	case ECONNREFUSED:
		found(BROKEN, "peer", "there: modprobe sovia; sovia set rendezvous 2",
		      "nothing answers at its TCP port 298: no AF_SOVIA there");
		return;
	case EHOSTUNREACH:
	case ENETUNREACH:
		found(BROKEN, "peer", "ping it", "the node does not answer at all");
		return;
	}
	if (err == ECONNREFUSED)
		found(BROKEN, "peer", "there: sovia rule show; sovia key show; journalctl -k",
		      "it refuses this node");
	else
		found(BROKEN, "peer",
		      "let TCP from port 297 to port 298 pass: firewalls there and between, NAT",
		      "no answer from its TCP port 298");
}

static void no_way(void)
{
	found(BROKEN, "way", "RoCE: let UDP port 4791 pass both ways; sovia doctor there",
	      "both kernels have met, but RDMA does not work between them");
}

static void say_why(void)
{
	switch (known.why) {
	case SOVIA_WHY_WAY:
		no_way();
		break;
	case SOVIA_WHY_DEVICE:
		found(BROKEN, "way", "see device and gid above", "%s", why_text(known.why));
		break;
	case SOVIA_WHY_REFUSED:
		found(BROKEN, "peer", "there: sovia key show; sovia rule show; journalctl -k",
		      "%s", why_text(known.why));
		break;
	case SOVIA_WHY_DENIED:
		found(BROKEN, "peer", "there: sovia rule show", "%s", why_text(known.why));
		break;
	default:
		found(BROKEN, "peer", NULL, "%s", why_text(known.why));
	}
}

static void judge(int err, const struct in6_addr *addr, unsigned int scope)
{
	switch (err) {
	case EACCES:
		found(BROKEN, "rule", "sovia rule show", "a rule here denies the connection");
		return;
	case EOPNOTSUPP:
		found(BROKEN, "rule", "sovia rule show; sovia set netfilter; ip xfrm policy",
		      "a rule, netfilter or IPsec here wants TCP");
		return;
	case ENOBUFS:
		found(BROKEN, "memory", "sovia stat no_room no_link; sovia(7): mem, max_links",
		      "a limit is reached, or memory is short");
		return;
	}
	if (known.unreached && known.why != SOVIA_WHY_SILENT)
		say_why();
	else if (known.met)
		no_way();
	else
		why_silent(addr, scope, err);
}

static void check_connection(const struct sockaddr_storage *to, socklen_t len,
			     const struct in6_addr *addr, unsigned int scope, unsigned int port)
{
	int err = try_sovia(to, len);

	ask_kernel(addr);
	if (!err || known.link_up) {
		found(FINE, "connection", NULL, "AF_SOVIA reaches it by %s, wire format %u",
		      known.way[0] ? known.way : "loop", known.version);
		if (err == ECONNREFUSED && port != 9)
			found(NOTE, "listener", "sovia-run PROGRAM there",
			      "no AF_SOVIA listener at port %u", port);
		return;
	}
	found(BROKEN, "connection", NULL, "AF_SOVIA does not reach it: %s", strerror(err));
	judge(err, addr, scope);
}

/* Each step of a connection with another node. */
void doctor_peer(const struct in6_addr *addr, unsigned int scope, unsigned int port)
{
	char own_text[INET6_ADDRSTRLEN], text[INET6_ADDRSTRLEN], name[IF_NAMESIZE];
	struct sockaddr_storage to;
	struct in6_addr own;
	socklen_t len = make_sockaddr(addr, scope, port, &to);

	if (find_source(&to, len, &own)) {
		found(BROKEN, "route", "ip route get ADDRESS", "%s", strerror(errno));
		return;
	}
	find_interface(&own, name);
	if (is_here(addr)) {
		found(FINE, "route", NULL, "%s is an address of this host: no device is needed",
		      addr_write(addr, text));
	} else {
		found(FINE, "route", NULL, "to %s from %s, interface %s", addr_write(addr, text),
		      addr_write(&own, own_text), name);
		doctor_device_for(name, &own);
	}
	check_connection(&to, len, addr, scope, port);
}

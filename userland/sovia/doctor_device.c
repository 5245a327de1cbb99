// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia doctor: RDMA devices. */
#include <arpa/inet.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "addr.h"
#include "doctor.h"

#define DEVICES "/sys/class/infiniband/"

#define SOFT "modprobe rdma_rxe && rdma link add rxe0 type rxe netdev %s"

/* PATH/../NAME, as text. */
static bool read_beside(const char *path, const char *name, char *text, unsigned int size)
{
	char other[512];

	snprintf(other, sizeof(other), "%s/%s", path, name);
	return read_line(other, text, size);
}

static void show_port(const char *port)
{
	char device[64], state[64] = "?";

	sscanf(port, DEVICES "%63[^/]", device);
	read_beside(port, "state", state, sizeof(state));
	if (strstr(state, "ACTIVE"))
		found(FINE, "device", NULL, "%s: port %s is active", device,
		      strrchr(port, '/') + 1);
	else
		found(BROKEN, "device", "ip link set DEV up; rdma link show",
		      "%s: port %s is %s", device, strrchr(port, '/') + 1, state);
}

/* Returns whether there is any. */
bool doctor_devices(void)
{
	glob_t ports;
	char mend[128];
	size_t i;

	if (glob(DEVICES "*/ports/*", 0, NULL, &ports)) {
		snprintf(mend, sizeof(mend), SOFT, "DEV");
		found(BROKEN, "device", mend, "there is no RDMA device: only connections within "
		      "this host, and with other virtual machines by shared memory");
		return false;
	}
	for (i = 0; i < ports.gl_pathc; i++)
		show_port(ports.gl_pathv[i]);
	globfree(&ports);
	return true;
}

/* Is one of a port's GIDs this address?  GIDs are addresses, IPv4 as v4-mapped. */
static bool port_has_gid(const char *port, const struct in6_addr *own)
{
	char pattern[512], text[64];
	struct in6_addr gid;
	bool has = false;
	glob_t gids;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/gids/*", port);
	if (glob(pattern, 0, NULL, &gids))
		return false;
	for (i = 0; i < gids.gl_pathc && !has; i++)
		has = read_line(gids.gl_pathv[i], text, sizeof(text)) &&
		      inet_pton(AF_INET6, text, &gid) == 1 &&
		      memcmp(&gid, own, sizeof(gid)) == 0;
	globfree(&gids);
	return has;
}

static bool port_has_netdev(const char *port, const char *netdev)
{
	char pattern[512], text[64];
	glob_t names;
	bool has = false;
	size_t i;

	snprintf(pattern, sizeof(pattern), "%s/gid_attrs/ndevs/*", port);
	if (glob(pattern, 0, NULL, &names))
		return false;
	for (i = 0; i < names.gl_pathc && !has; i++)
		has = read_line(names.gl_pathv[i], text, sizeof(text)) &&
		      strcmp(text, netdev) == 0;
	globfree(&names);
	return has;
}

static bool is_iwarp(const char *device)
{
	char path[256], text[64];

	snprintf(path, sizeof(path), DEVICES "%s/node_type", device);
	return read_line(path, text, sizeof(text)) && strstr(text, "RNIC");
}

/* RDMA over Ethernet splits messages into packets of a power of two. */
static void check_mtu(const char *netdev)
{
	char path[256], text[32];
	int mtu;

	snprintf(path, sizeof(path), "/sys/class/net/%s/mtu", netdev);
	mtu = read_line(path, text, sizeof(text)) ? atoi(text) : 0;
	if (mtu && mtu < 1100)
		found(NOTE, "mtu", "ip link set DEV mtu 1500, or 4200 and more",
		      "%s: %d: packets of 512 bytes of data or less", netdev, mtu);
	else if (mtu)
		found(FINE, "mtu", NULL, "%s: %d%s", netdev, mtu,
		      mtu < 4200 ? "; with 4200 packets of 4096 bytes of data are possible" : "");
}

/* Has the interface with an own address a device, and that the address?  Returns whether so. */
bool doctor_device_for(const char *netdev, const struct in6_addr *own)
{
	char device[64] = "", mend[128];
	bool has_device = false, has_gid = false;
	glob_t ports;
	size_t i;

	if (glob(DEVICES "*/ports/*", 0, NULL, &ports))
		ports.gl_pathc = 0;
	for (i = 0; i < ports.gl_pathc && !has_gid; i++) {
		sscanf(ports.gl_pathv[i], DEVICES "%63[^/]", device);
		has_device |= port_has_netdev(ports.gl_pathv[i], netdev);
		has_gid = port_has_gid(ports.gl_pathv[i], own) ||
			  (has_device && is_iwarp(device));
	}
	if (ports.gl_pathc)
		globfree(&ports);
	if (has_gid) {
		found(FINE, "gid", NULL, "%s has the address", device);
	} else if (has_device) {
		found(BROKEN, "gid", "rdma link show; ip address show; wait, or take it down and up",
		      "no device of %s has the address in its GID table", netdev);
	} else {
		snprintf(mend, sizeof(mend), SOFT, netdev);
		found(BROKEN, "gid", mend, "%s has no RDMA device", netdev);
	}
	check_mtu(netdev);
	return has_gid;
}

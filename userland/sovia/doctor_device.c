// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia doctor: RDMA devices. */
#include <arpa/inet.h>
#include <glob.h>
#include <libmnl/libmnl.h>
#include <linux/sovia.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "addr.h"
#include "attrs.h"
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

/* The devices that the module uses, as it says itself. */
static char used[64][64];
static unsigned int used_count;

static int take_device(const struct nlattr *nest)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest)
		if (mnl_attr_get_type(attr) == SOVIA_A_DEVICE_NAME &&
		    mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 &&
		    used_count < sizeof(used) / sizeof(used[0]))
			snprintf(used[used_count++], sizeof(used[0]), "%s",
				 mnl_attr_get_str(attr));
	return MNL_CB_OK;
}

/* Once: the answer does not change under a diagnosis. */
static void find_used(void)
{
	if (!used_count)
		show_each(SOVIA_CMD_DEVICE_GET, SOVIA_A_DEVICE, take_device);
}

static bool is_used(const char *device)
{
	unsigned int i;

	for (i = 0; i < used_count; i++)
		if (strcmp(used[i], device) == 0)
			return true;
	return false;
}

static void show_port(const char *port)
{
	char device[64], state[64] = "?";

	sscanf(port, DEVICES "%63[^/]", device);
	if (!is_used(device)) {
		found(used_count ? NOTE : BROKEN, "device",
		      "none: connections over its network use TCP (compatibility.rst, Cards)",
		      "%s: not used, it has no queue pairs for links: journalctl -k | grep %s",
		      device, device);
		return;
	}
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
	find_used();
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

/* Is the port the interface's?  iWARP's only GID is the Ethernet address, and says of no interface. */
static bool port_is_of(const char *port, const char *device, const char *netdev)
{
	char path[256], text[64];
	struct in6_addr gid;
	unsigned int mac[6], i;

	if (!is_iwarp(device))
		return port_has_netdev(port, netdev);
	snprintf(path, sizeof(path), "/sys/class/net/%s/address", netdev);
	if (!read_line(path, text, sizeof(text)) ||
	    sscanf(text, "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
		   &mac[5]) != 6)
		return false;
	if (!read_beside(port, "gids/0", text, sizeof(text)) ||
	    inet_pton(AF_INET6, text, &gid) != 1)
		return false;
	for (i = 0; i < 6; i++)
		if (gid.s6_addr[i] != mac[i])
			return false;
	return true;
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

	find_used();
	if (glob(DEVICES "*/ports/*", 0, NULL, &ports))
		ports.gl_pathc = 0;
	for (i = 0; i < ports.gl_pathc && !has_gid; i++) {
		sscanf(ports.gl_pathv[i], DEVICES "%63[^/]", device);
		if (!is_used(device))
			continue;
		has_device |= port_is_of(ports.gl_pathv[i], device, netdev);
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
		found(BROKEN, "gid", mend, "%s has no RDMA device that is used", netdev);
	}
	check_mtu(netdev);
	return has_gid;
}

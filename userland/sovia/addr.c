// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Addresses as text, IPv4 as v4-mapped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "addr.h"

bool addr_get(const struct nlattr *attr, struct in6_addr *addr)
{
	if (!attr || mnl_attr_get_payload_len(attr) != sizeof(*addr))
		return false;
	memcpy(addr, mnl_attr_get_payload(attr), sizeof(*addr));
	return true;
}

/* @text: INET6_ADDRSTRLEN bytes */
const char *addr_write(const struct in6_addr *addr, char *text)
{
	if (IN6_IS_ADDR_V4MAPPED(addr))
		return inet_ntop(AF_INET, &addr->s6_addr[12], text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, addr, text, INET6_ADDRSTRLEN);
}

const char *addr_text(const struct nlattr *attr, char *text)
{
	struct in6_addr addr;

	if (addr_get(attr, &addr))
		addr_write(&addr, text);
	else
		strcpy(text, "?");
	return text;
}

/* As ss(8) has it: * for any address and port. */
const char *addr_port_text(const struct in6_addr *addr, uint16_t family, unsigned int port,
			   char *text)
{
	bool v4 = IN6_IS_ADDR_V4MAPPED(addr);
	bool any = v4 ? !addr->s6_addr32[3] : IN6_IS_ADDR_UNSPECIFIED(addr);
	char name[INET6_ADDRSTRLEN] = "*";

	if (!any || port)
		addr_write(addr, name);
	if (any && !port)
		snprintf(text, ADDR_TEXT, "*:*");
	else if (v4 && family == AF_INET)
		snprintf(text, ADDR_TEXT, "%s:%u", name, port);
	else
		snprintf(text, ADDR_TEXT, "[%s%s]:%u", v4 ? "::ffff:" : "", name, port);
	return text;
}

const char *addr_prefix_text(const struct nlattr *attr, unsigned int bits, char *text)
{
	char name[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (!addr_get(attr, &addr))
		return strcpy(text, "?");
	if (IN6_IS_ADDR_V4MAPPED(&addr) && bits >= 96) {
		addr_write(&addr, name);
		bits -= 96;
	} else {
		inet_ntop(AF_INET6, &addr, name, sizeof(name));
	}
	snprintf(text, ADDR_TEXT, "%s/%u", name, bits);
	return text;
}

/* Returns 0 or -1. */
static int addr_read(const char *text, struct in6_addr *addr)
{
	if (inet_pton(AF_INET6, text, addr) == 1)
		return 0;
	memset(addr, 0, sizeof(*addr));
	addr->s6_addr[10] = 0xff;
	addr->s6_addr[11] = 0xff;
	return inet_pton(AF_INET, text, &addr->s6_addr[12]) == 1 ? 0 : -1;
}

/* ADDRESS[/BITS].  Returns 0 or -1. */
int prefix_read(const char *text, struct prefix *prefix)
{
	char name[INET6_ADDRSTRLEN], *slash, *rest;
	unsigned int most;

	if (strlen(text) >= sizeof(name))
		return -1;
	strcpy(name, text);
	slash = strchr(name, '/');
	if (slash)
		*slash = '\0';
	if (addr_read(name, &prefix->addr))
		return -1;
	most = strchr(name, ':') ? 128 : 32;
	prefix->bits = most;
	if (slash) {
		prefix->bits = strtoul(slash + 1, &rest, 10);
		if (rest == slash + 1 || *rest || prefix->bits > most)
			return -1;
	}
	prefix->bits += 128 - most;
	return 0;
}

bool prefix_has(const struct prefix *prefix, const struct in6_addr *addr)
{
	unsigned int bytes = prefix->bits / 8, rest = prefix->bits % 8;
	uint8_t mask = 0xff00 >> rest;

	return memcmp(&prefix->addr, addr, bytes) == 0 &&
	       (!rest || !((prefix->addr.s6_addr[bytes] ^ addr->s6_addr[bytes]) & mask));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses as text, IPv4 as v4-mapped. */
#ifndef SOVIA_ADDR_H
#define SOVIA_ADDR_H

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Enough for each of the texts. */
#define ADDR_TEXT 80

/*
 * What addresses have to match.
 *
 * @addr, @bits: the first bits of an address
 */
struct prefix {
	struct in6_addr	addr;
	unsigned int	bits;
};

bool addr_get(const struct nlattr *attr, struct in6_addr *addr);
const char *addr_write(const struct in6_addr *addr, char *text);
const char *addr_text(const struct nlattr *attr, char *text);
const char *addr_port_text(const struct in6_addr *addr, uint16_t family, unsigned int port,
			   char *text);
const char *addr_prefix_text(const struct nlattr *attr, unsigned int bits, char *text);
int prefix_read(const char *text, struct prefix *prefix);
bool prefix_has(const struct prefix *prefix, const struct in6_addr *addr);

#endif

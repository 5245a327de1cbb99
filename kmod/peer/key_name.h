/* SPDX-License-Identifier: GPL-2.0-only */
/* Descriptions of keys: a number, and the addresses that it is for. */
#ifndef _SOVIA_KEY_NAME_H
#define _SOVIA_KEY_NAME_H

#include <linux/in6.h>
#include <linux/types.h>

/**
 * struct sovia_key_name - what a key is, and what for
 * @id: its number, the same at both ends; not 0
 * @peer: other ends, IPv4 as v4-mapped
 * @own: addresses of this end, likewise
 * @prefix: bits of @peer that count
 * @own_prefix: bits of @own that count
 */
struct sovia_key_name {
	u64		id;
	struct in6_addr	peer;
	struct in6_addr	own;
	u8		prefix;
	u8		own_prefix;
};

int sovia_key_name_parse(struct sovia_key_name *name, const char *text);

#endif /* _SOVIA_KEY_NAME_H */

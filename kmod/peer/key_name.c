// SPDX-License-Identifier: GPL-2.0-only
/* Descriptions of keys, "ID:PREFIX[,OWNPREFIX]": Documentation/rendezvous.rst. */
#include <linux/errno.h>
#include <linux/inet.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include "compat/hex.h"
#include "key_name.h"

/* Bits that an IPv4 address has before it. */
#define KEY_V4_PREFIX	96

/* These return what follows, or NULL if it is wrong. */

static const char *read_id(const char *pos, u64 *id)
{
	unsigned int digits;
	int value;

	*id = 0;
	for (digits = 0; digits < 16; digits++, pos++) {
		value = hex_to_bin(*pos);
		if (value < 0)
			break;
		*id = *id << 4 | value;
	}
	return *id && *pos == ':' ? pos + 1 : NULL;
}

static const char *read_length(const char *pos, unsigned int most, unsigned int *len)
{
	unsigned int digits;

	*len = 0;
	for (digits = 0; digits < 3 && *pos >= '0' && *pos <= '9'; digits++, pos++)
		*len = 10 * *len + *pos - '0';
	return digits && *len <= most ? pos : NULL;
}

static const char *read_prefix(const char *pos, struct in6_addr *addr, u8 *prefix)
{
	unsigned int base = 0, chars = strcspn(pos, "/,"), len = 128;
	struct in6_addr masked;
	const char *end;
	__be32 v4;

	if (in4_pton(pos, chars, (u8 *)&v4, -1, &end) && end == pos + chars) {
		ipv6_addr_set_v4mapped(v4, addr);
		base = KEY_V4_PREFIX;
	} else if (!in6_pton(pos, chars, addr->s6_addr, -1, &end) || end != pos + chars) {
		return NULL;
	}
	if (*end == '/') {
		end = read_length(end + 1, 128 - base, &len);
		if (!end)
			return NULL;
		len += base;
	}
	*prefix = len;
	ipv6_addr_prefix(&masked, addr, len);
	return ipv6_addr_equal(&masked, addr) ? end : NULL;
}

/**
 * sovia_key_name_parse() - read the description of a key
 * @name: the result, valid on success only
 * @text: the description
 *
 * Context: any.
 * Return: 0 or -EINVAL.
 */
int sovia_key_name_parse(struct sovia_key_name *name, const char *text)
{
	const char *pos = read_id(text, &name->id);

	memset(&name->own, 0, sizeof(name->own));
	name->own_prefix = 0;
	if (pos)
		pos = read_prefix(pos, &name->peer, &name->prefix);
	if (pos && *pos == ',')
		pos = read_prefix(pos + 1, &name->own, &name->own_prefix);
	return pos && !*pos ? 0 : -EINVAL;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/key_name_test.c"
#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Attributes of the kernel's messages. */
#ifndef SOVIA_ATTRS_H
#define SOVIA_ATTRS_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Attributes of a nest.
 *
 * @types: by number, MNL_TYPE_UNSPEC for those of any length
 * @count: length of @types
 */
struct attr_set {
	const enum mnl_attr_data_type	*types;
	unsigned int			count;
};

#define ATTR_SET(array) { array, sizeof(array) / sizeof((array)[0]) }

int attrs_parse(const struct nlattr *nest, const struct attr_set *set, const struct nlattr **attrs);
uint64_t attr_number(const struct nlattr *attr);
const char *attr_text(const struct nlattr *attr);

/* What show_each() calls for each nest of a kind. */
typedef int (*show_nest)(const struct nlattr *nest);

int show_each(uint8_t command, unsigned int kind, show_nest show);
int show_message(const struct nlmsghdr *nlh, unsigned int kind, show_nest show);
int order(uint8_t command);

#endif

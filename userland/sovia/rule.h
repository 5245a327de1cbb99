/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rules as text, and as netlink attributes. */
#ifndef SOVIA_RULE_H
#define SOVIA_RULE_H

#include <libmnl/libmnl.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Where an attribute of the request comes from.
 *
 * @offset: of the attribute in the message
 * @line, @column: of its word, from 1
 */
struct rule_place {
	size_t		offset;
	unsigned int	line;
	unsigned int	column;
};

/*
 * A list that is read.
 *
 * @name: of the file, for messages
 * @nlh: the request
 * @size: of its buffer
 * @places: of its attributes, in order
 * @count: how many
 * @lenient: a rule of a control group that does not exist is left out
 */
struct rule_list {
	const char		*name;
	struct nlmsghdr		*nlh;
	size_t			size;
	struct rule_place	*places;
	size_t			count;
	bool			lenient;
};

/* rule_read.c */
int rule_read(struct rule_list *list, FILE *file);
void rule_complain(const struct rule_list *list, size_t offset, const char *text);

/* rule_show.c */
int rule_show(const struct nlattr *nest);

/* rule_cgroup.c */
int rule_cgroup_number(const char *path, uint64_t *number);
void rule_cgroup_show(uint64_t number);

#endif

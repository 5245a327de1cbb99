// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Attributes of the kernel's messages, and requests that need none. */
#include <linux/genetlink.h>
#include <stdio.h>
#include "attrs.h"
#include "netlink.h"
#include "sovia.h"

/*
 * @set: what is known
 * @attrs: filled in, by number
 */
struct parse {
	const struct attr_set	*set;
	const struct nlattr	**attrs;
};

static int take_attribute(const struct nlattr *attr, void *data)
{
	const struct parse *parse = data;
	unsigned int type = mnl_attr_get_type(attr);

	/* Of a newer kernel: it is not shown. */
	if (type >= parse->set->count)
		return MNL_CB_OK;
	if (parse->set->types[type] && mnl_attr_validate(attr, parse->set->types[type]) < 0)
		return MNL_CB_ERROR;
	parse->attrs[type] = attr;
	return MNL_CB_OK;
}

/* @attrs: as many as @set has, all NULL.  Returns MNL_CB_*. */
int attrs_parse(const struct nlattr *nest, const struct attr_set *set, const struct nlattr **attrs)
{
	struct parse parse = { set, attrs };

	if (mnl_attr_parse_nested(nest, take_attribute, &parse) >= 0)
		return MNL_CB_OK;
	complain("an answer that this program does not understand");
	return MNL_CB_ERROR;
}

/* A number of any size, or 0 if it is not there. */
uint64_t attr_number(const struct nlattr *attr)
{
	if (!attr)
		return 0;
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		return mnl_attr_get_u64(attr);
	default:
		return 0;
	}
}

const char *attr_text(const struct nlattr *attr)
{
	return attr ? mnl_attr_get_str(attr) : "-";
}

/*
 * @kind: of the nests
 * @show: shows one
 */
struct shown {
	unsigned int	kind;
	show_nest	show;
};

static int each_attribute(const struct nlattr *attr, void *data)
{
	const struct shown *shown = data;

	return mnl_attr_get_type(attr) == shown->kind ? shown->show(attr) : MNL_CB_OK;
}

static int each_message(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), each_attribute, data);
}

/* Shows the nests of a kind in a message.  Returns MNL_CB_*. */
int show_message(const struct nlmsghdr *nlh, unsigned int kind, show_nest show)
{
	struct shown shown = { kind, show };

	return each_message(nlh, &shown);
}

/* Shows what a dump has.  Returns the exit status. */
int show_each(uint8_t command, unsigned int kind, show_nest show)
{
	struct shown shown = { kind, show };
	struct netlink_error error;
	char buf[64];

	if (netlink_request(netlink_begin(buf, command, NLM_F_DUMP), each_message, &shown,
			    &error) == 0)
		return 0;
	return complain("%s", error.text);
}

/* Has the kernel do something.  Returns the exit status. */
int order(uint8_t command)
{
	struct netlink_error error;
	char buf[64];

	if (netlink_request(netlink_begin(buf, command, NLM_F_ACK), NULL, NULL, &error) == 0)
		return 0;
	return complain("%s", error.text);
}

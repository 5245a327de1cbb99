// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shows a rule, as it is read by rule_read.c. */
#include <inttypes.h>
#include <linux/sovia.h>
#include "addr.h"
#include "attrs.h"
#include "out.h"
#include "rule.h"
#include "sovia.h"

static const enum mnl_attr_data_type types[SOVIA_A_RULE_MAX + 1] = {
	[SOVIA_A_RULE_ACTION]		= MNL_TYPE_U8,
	[SOVIA_A_RULE_DIRECTIONS]	= MNL_TYPE_U8,
	[SOVIA_A_RULE_PREFIX]		= MNL_TYPE_U8,
	[SOVIA_A_RULE_PORT_MIN]		= MNL_TYPE_U16,
	[SOVIA_A_RULE_PORT_MAX]		= MNL_TYPE_U16,
	[SOVIA_A_RULE_UID_MIN]		= MNL_TYPE_U32,
	[SOVIA_A_RULE_UID_MAX]		= MNL_TYPE_U32,
	[SOVIA_A_RULE_GID_MIN]		= MNL_TYPE_U32,
	[SOVIA_A_RULE_GID_MAX]		= MNL_TYPE_U32,
	[SOVIA_A_RULE_CGROUP]		= MNL_TYPE_U64,
	[SOVIA_A_RULE_DEVICE]		= MNL_TYPE_NUL_STRING,
	[SOVIA_A_RULE_WAIT]		= MNL_TYPE_U32,
	[SOVIA_A_RULE_HITS]		= MNL_TYPE_U64,
	[SOVIA_A_RULE_TOS]		= MNL_TYPE_U8,
};

static const struct attr_set set = ATTR_SET(types);

static void show_range(const char *keyword, const struct nlattr *first, const struct nlattr *last)
{
	char text[32];

	if (!first || !last)
		return;
	if (attr_number(first) == attr_number(last))
		snprintf(text, sizeof(text), "%" PRIu64, attr_number(first));
	else
		snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64, attr_number(first),
			 attr_number(last));
	out_text("%s ", keyword);
	out_string(keyword, "%s ", text);
}

static const char *action_name(uint64_t action)
{
	static const char * const names[SOVIA_ACTION_MAX + 1] = {
		[SOVIA_AUTO]		= "auto",
		[SOVIA_ONLY_SOVIA]	= "only-sovia",
		[SOVIA_ONLY_TCP]	= "only-tcp",
		[SOVIA_DENY]		= "deny",
	};

	return action <= SOVIA_ACTION_MAX ? names[action] : "?";
}

/* Shows a rule on a line, with -s also how many connections it has decided.  Returns MNL_CB_*. */
int rule_show(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_RULE_MAX + 1] = {};
	char text[ADDR_TEXT];
	uint64_t directions;

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	directions = attr_number(a[SOVIA_A_RULE_DIRECTIONS]);
	out_begin();
	if (directions == SOVIA_RULE_IN || directions == SOVIA_RULE_OUT)
		out_string("direction", "%s ", directions == SOVIA_RULE_IN ? "in" : "out");
	if (a[SOVIA_A_RULE_PEER] && a[SOVIA_A_RULE_PREFIX])
		out_string("peer", "peer %s ",
			   addr_prefix_text(a[SOVIA_A_RULE_PEER],
					    attr_number(a[SOVIA_A_RULE_PREFIX]), text));
	show_range("port", a[SOVIA_A_RULE_PORT_MIN], a[SOVIA_A_RULE_PORT_MAX]);
	show_range("uid", a[SOVIA_A_RULE_UID_MIN], a[SOVIA_A_RULE_UID_MAX]);
	show_range("gid", a[SOVIA_A_RULE_GID_MIN], a[SOVIA_A_RULE_GID_MAX]);
	if (a[SOVIA_A_RULE_CGROUP])
		rule_cgroup_show(attr_number(a[SOVIA_A_RULE_CGROUP]));
	if (a[SOVIA_A_RULE_DEVICE])
		out_string("dev", "dev %s ", attr_text(a[SOVIA_A_RULE_DEVICE]));
	if (a[SOVIA_A_RULE_WAIT])
		out_number("wait_ms", "wait %" PRIu64 " ", attr_number(a[SOVIA_A_RULE_WAIT]));
	if (a[SOVIA_A_RULE_TOS])
		out_number("tos", "tos %" PRIu64 " ", attr_number(a[SOVIA_A_RULE_TOS]));
	out_string("action", "%s", action_name(attr_number(a[SOVIA_A_RULE_ACTION])));
	if (options.stats)
		out_number("hits", "  # %" PRIu64, attr_number(a[SOVIA_A_RULE_HITS]));
	out_end();
	return MNL_CB_OK;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Shows a rule, as it is read by rule_read.c. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <linux/sovia.h>
#include "rule.h"

static const enum mnl_attr_data_type types[SOVIA_A_RULE_COUNT] = {
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
};

static int take_attribute(const struct nlattr *attr, void *data)
{
	const struct nlattr **attrs = data;
	unsigned int type = mnl_attr_get_type(attr);

	/* Of a newer kernel: it is not shown. */
	if (type >= SOVIA_A_RULE_COUNT)
		return MNL_CB_OK;
	if (types[type] && mnl_attr_validate(attr, types[type]) < 0)
		return MNL_CB_ERROR;
	attrs[type] = attr;
	return MNL_CB_OK;
}

static void show_peer(const struct nlattr *peer, unsigned int prefix)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct in6_addr addr;

	if (mnl_attr_get_payload_len(peer) != sizeof(addr))
		return;
	addr = *(const struct in6_addr *)mnl_attr_get_payload(peer);
	if (IN6_IS_ADDR_V4MAPPED(&addr) && prefix >= 96) {
		inet_ntop(AF_INET, &addr.s6_addr[12], text, sizeof(text));
		printf("peer %s/%u ", text, prefix - 96);
	} else {
		inet_ntop(AF_INET6, &addr, text, sizeof(text));
		printf("peer %s/%u ", text, prefix);
	}
}

static void show_range(const char *keyword, uint32_t first, uint32_t last)
{
	if (first == last)
		printf("%s %" PRIu32 " ", keyword, first);
	else
		printf("%s %" PRIu32 "-%" PRIu32 " ", keyword, first, last);
}

static void show_ids(const char *keyword, const struct nlattr *first, const struct nlattr *last)
{
	if (first && last)
		show_range(keyword, mnl_attr_get_u32(first), mnl_attr_get_u32(last));
}

static void show_action(uint8_t action)
{
	static const char * const names[SOVIA_ACTION_COUNT] = {
		[SOVIA_AUTO]		= "auto",
		[SOVIA_ONLY_SOVIA]	= "only-sovia",
		[SOVIA_ONLY_TCP]	= "only-tcp",
		[SOVIA_DENY]		= "deny",
	};

	fputs(action < SOVIA_ACTION_COUNT ? names[action] : "?", stdout);
}

/* Shows a rule on a line; @hits: with the number of connections.  Returns MNL_CB_*. */
int rule_show(const struct nlattr *nest, bool hits)
{
	const struct nlattr *a[SOVIA_A_RULE_COUNT] = {};
	uint8_t directions;

	if (mnl_attr_parse_nested(nest, take_attribute, a) < 0 || !a[SOVIA_A_RULE_ACTION] ||
	    !a[SOVIA_A_RULE_DIRECTIONS]) {
		fprintf(stderr, "sovia: a rule that this program does not understand\n");
		return MNL_CB_ERROR;
	}
	directions = mnl_attr_get_u8(a[SOVIA_A_RULE_DIRECTIONS]);
	if (directions == SOVIA_RULE_IN || directions == SOVIA_RULE_OUT)
		fputs(directions == SOVIA_RULE_IN ? "in " : "out ", stdout);
	if (a[SOVIA_A_RULE_PEER] && a[SOVIA_A_RULE_PREFIX])
		show_peer(a[SOVIA_A_RULE_PEER], mnl_attr_get_u8(a[SOVIA_A_RULE_PREFIX]));
	if (a[SOVIA_A_RULE_PORT_MIN] && a[SOVIA_A_RULE_PORT_MAX])
		show_range("port", mnl_attr_get_u16(a[SOVIA_A_RULE_PORT_MIN]),
			   mnl_attr_get_u16(a[SOVIA_A_RULE_PORT_MAX]));
	show_ids("uid", a[SOVIA_A_RULE_UID_MIN], a[SOVIA_A_RULE_UID_MAX]);
	show_ids("gid", a[SOVIA_A_RULE_GID_MIN], a[SOVIA_A_RULE_GID_MAX]);
	if (a[SOVIA_A_RULE_CGROUP])
		rule_cgroup_show(mnl_attr_get_u64(a[SOVIA_A_RULE_CGROUP]));
	if (a[SOVIA_A_RULE_DEVICE])
		printf("dev %s ", mnl_attr_get_str(a[SOVIA_A_RULE_DEVICE]));
	if (a[SOVIA_A_RULE_WAIT])
		printf("wait %" PRIu32 " ", mnl_attr_get_u32(a[SOVIA_A_RULE_WAIT]));
	show_action(mnl_attr_get_u8(a[SOVIA_A_RULE_ACTION]));
	if (hits && a[SOVIA_A_RULE_HITS])
		printf("  # %" PRIu64, mnl_attr_get_u64(a[SOVIA_A_RULE_HITS]));
	putchar('\n');
	return MNL_CB_OK;
}

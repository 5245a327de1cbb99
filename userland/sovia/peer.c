// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia peer show | flush */
#include <inttypes.h>
#include <linux/sovia.h>
#include <net/if.h>
#include "addr.h"
#include "attrs.h"
#include "out.h"
#include "peer.h"
#include "sovia.h"
#include "why.h"

static const char help[] =
	"Usage: sovia [-j] [-d] peer [show] [PREFIX]\n"
	"       sovia peer flush\n"
	"\n"
	"Shows the kernels that this one has met, and those that it does not reach.\n";

static const enum mnl_attr_data_type peer_types[SOVIA_A_PEER_MAX + 1] = {
	[SOVIA_A_PEER_IFINDEX]	= MNL_TYPE_U32,
	[SOVIA_A_PEER_L3]	= MNL_TYPE_U32,
	[SOVIA_A_PEER_STATE]	= MNL_TYPE_NUL_STRING,
	[SOVIA_A_PEER_OUT]	= MNL_TYPE_FLAG,
	[SOVIA_A_PEER_IN]	= MNL_TYPE_FLAG,
	[SOVIA_A_PEER_VERSION]	= MNL_TYPE_U8,
	[SOVIA_A_PEER_FEATURES]	= MNL_TYPE_U64,
	[SOVIA_A_PEER_KEY]	= MNL_TYPE_U64,
	[SOVIA_A_PEER_WAY]	= MNL_TYPE_NUL_STRING,
};
static const struct attr_set peer_set = ATTR_SET(peer_types);

static const enum mnl_attr_data_type unreached_types[SOVIA_A_UNREACHED_MAX + 1] = {
	[SOVIA_A_UNREACHED_IFINDEX]	= MNL_TYPE_U32,
	[SOVIA_A_UNREACHED_L3]		= MNL_TYPE_U32,
	[SOVIA_A_UNREACHED_WHY]		= MNL_TYPE_U8,
	[SOVIA_A_UNREACHED_LEFT]	= MNL_TYPE_U32,
};
static const struct attr_set unreached_set = ATTR_SET(unreached_types);

/* Where the peers are to be. */
static struct prefix wanted;

static bool is_wanted(const struct nlattr *remote)
{
	struct in6_addr addr;

	return !wanted.bits || (addr_get(remote, &addr) && prefix_has(&wanted, &addr));
}

static void show_pair(const struct nlattr *remote, const struct nlattr *local,
		      const struct nlattr *ifindex, const struct nlattr *l3)
{
	char text[ADDR_TEXT], name[IF_NAMESIZE];

	out_string("peer", "%s", addr_text(remote, text));
	out_string("local", " local %s", addr_text(local, text));
	if (ifindex && if_indextoname(attr_number(ifindex), name))
		out_string("dev", " dev %s", name);
	if (l3 && if_indextoname(attr_number(l3), name))
		out_string("vrf", " vrf %s", name);
}

/* Shows a peer.  Returns MNL_CB_*. */
int peer_show(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_PEER_MAX + 1] = {};

	if (attrs_parse(nest, &peer_set, a) < 0)
		return MNL_CB_ERROR;
	if (!is_wanted(a[SOVIA_A_PEER_REMOTE]))
		return MNL_CB_OK;
	out_begin();
	show_pair(a[SOVIA_A_PEER_REMOTE], a[SOVIA_A_PEER_LOCAL], a[SOVIA_A_PEER_IFINDEX],
		  a[SOVIA_A_PEER_L3]);
	out_string("state", " state %s", attr_text(a[SOVIA_A_PEER_STATE]));
	if (a[SOVIA_A_PEER_OUT])
		out_flag("out", " out");
	if (a[SOVIA_A_PEER_IN])
		out_flag("in", " in");
	if (a[SOVIA_A_PEER_WAY])
		out_string("way", " way %s", attr_text(a[SOVIA_A_PEER_WAY]));
	if (a[SOVIA_A_PEER_KEY])
		out_hex("key", " key %s", attr_number(a[SOVIA_A_PEER_KEY]));
	if (options.details && a[SOVIA_A_PEER_VERSION]) {
		out_number("version", " version %" PRIu64, attr_number(a[SOVIA_A_PEER_VERSION]));
		out_number("features", " features %#" PRIx64, attr_number(a[SOVIA_A_PEER_FEATURES]));
	}
	out_end();
	return MNL_CB_OK;
}

static int show_unreached(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_UNREACHED_MAX + 1] = {};
	unsigned int why;

	if (attrs_parse(nest, &unreached_set, a) < 0)
		return MNL_CB_ERROR;
	if (!is_wanted(a[SOVIA_A_UNREACHED_REMOTE]))
		return MNL_CB_OK;
	why = attr_number(a[SOVIA_A_UNREACHED_WHY]);
	out_begin();
	show_pair(a[SOVIA_A_UNREACHED_REMOTE], a[SOVIA_A_UNREACHED_LOCAL],
		  a[SOVIA_A_UNREACHED_IFINDEX], a[SOVIA_A_UNREACHED_L3]);
	out_text(" state ");
	out_colored(OUT_BAD, "state", "%s", "UNREACHED");
	out_string("why", " why %s", why_name(why));
	out_number("left_s", " left %" PRIu64 "s", attr_number(a[SOVIA_A_UNREACHED_LEFT]));
	if (options.details)
		out_string("reason", ": %s", why_text(why));
	out_end();
	return MNL_CB_OK;
}

static int show(int argc, char **argv)
{
	if (argc > 1 || (argc == 1 && prefix_read(argv[0], &wanted)))
		return usage(help);
	return show_each(SOVIA_CMD_PEER_GET, SOVIA_A_PEER, peer_show) ?:
	       show_each(SOVIA_CMD_UNREACHED_GET, SOVIA_A_UNREACHED, show_unreached) ?:
	       out_finish();
}

static int flush(int argc, char **argv)
{
	(void)argv;
	return argc ? usage(help) : order(SOVIA_CMD_PEER_FLUSH);
}

int peer_main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "show", show }, { "list", show }, { "flush", flush }, {}
	};

	return run_command(commands, help, argc, argv);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia link show | flush */
#include <inttypes.h>
#include <linux/sovia.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include "addr.h"
#include "attrs.h"
#include "link.h"
#include "out.h"
#include "sovia.h"

static const char help[] =
	"Usage: sovia [-j] [-s] [-d] [-o] link [show] [state STATE] [peer PREFIX] [id N]\n"
	"       sovia link flush\n"
	"\n"
	"STATE is one of: new, connecting, up, recovering, parked, down\n";

static const enum mnl_attr_data_type types[SOVIA_A_LINK_MAX + 1] = {
	[SOVIA_A_LINK_ID]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_STATE]		= MNL_TYPE_NUL_STRING,
	[SOVIA_A_LINK_IFINDEX]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_L3]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_WAY]		= MNL_TYPE_NUL_STRING,
	[SOVIA_A_LINK_LANE]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_CONNS]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_VERSION]		= MNL_TYPE_U8,
	[SOVIA_A_LINK_PAYLOAD]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_WINDOW]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_WINDOW_MAX]	= MNL_TYPE_U32,
	[SOVIA_A_LINK_FLIGHT]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_KEY]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_OUT]		= MNL_TYPE_FLAG,
	[SOVIA_A_LINK_IN]		= MNL_TYPE_FLAG,
	[SOVIA_A_LINK_TX_MSGS]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_TX_BYTES]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_RX_MSGS]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_RX_BYTES]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_TX_ACKS]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_STALLS]		= MNL_TYPE_U64,
	[SOVIA_A_LINK_RETRANSMITS]	= MNL_TYPE_U64,
	[SOVIA_A_LINK_IDLE]		= MNL_TYPE_U32,
	[SOVIA_A_LINK_TOS]		= MNL_TYPE_U8,
};
static const struct attr_set set = ATTR_SET(types);

/*
 * What is to be shown.
 *
 * @state: or NULL
 * @peer: where the other end is to be
 * @id: or 0
 */
static struct {
	const char	*state;
	struct prefix	peer;
	uint32_t	id;
} filter;

static bool is_wanted(const struct nlattr **a)
{
	struct in6_addr peer;

	if (filter.state && strcasecmp(filter.state, attr_text(a[SOVIA_A_LINK_STATE])) != 0)
		return false;
	if (filter.id && filter.id != attr_number(a[SOVIA_A_LINK_ID]))
		return false;
	return !filter.peer.bits || (addr_get(a[SOVIA_A_LINK_REMOTE], &peer) &&
				     prefix_has(&filter.peer, &peer));
}

static enum out_color state_color(const char *state)
{
	if (strcmp(state, "UP") == 0)
		return OUT_GOOD;
	if (strcmp(state, "RECOVERING") == 0 || strcmp(state, "DOWN") == 0)
		return OUT_BAD;
	return strcmp(state, "PARKED") == 0 ? OUT_DULL : OUT_PLAIN;
}

static void show_interface(const char *key, const char *format, const struct nlattr *attr)
{
	char name[IF_NAMESIZE];

	if (attr && if_indextoname(attr_number(attr), name))
		out_string(key, format, name);
}

static void show_details(const struct nlattr **a)
{
	out_break();
	out_text("   ");
	out_number("version", " version %" PRIu64, attr_number(a[SOVIA_A_LINK_VERSION]));
	out_number("payload", " payload %" PRIu64, attr_number(a[SOVIA_A_LINK_PAYLOAD]));
	out_number("window_max", " window_max %" PRIu64, attr_number(a[SOVIA_A_LINK_WINDOW_MAX]));
	if (a[SOVIA_A_LINK_TOS])
		out_number("tos", " tos %" PRIu64, attr_number(a[SOVIA_A_LINK_TOS]));
	if (a[SOVIA_A_LINK_KEY])
		out_hex("key", " key %s", attr_number(a[SOVIA_A_LINK_KEY]));
	if (a[SOVIA_A_LINK_OUT])
		out_flag("out", " out");
	if (a[SOVIA_A_LINK_IN])
		out_flag("in", " in");
	if (a[SOVIA_A_LINK_IDLE])
		out_number("idle_ms", " idle %" PRIu64 "ms", attr_number(a[SOVIA_A_LINK_IDLE]));
}

static void show_counts(const struct nlattr **a)
{
	out_break();
	out_text("   ");
	out_number("tx_messages", " tx %" PRIu64 " messages", attr_number(a[SOVIA_A_LINK_TX_MSGS]));
	out_number("tx_bytes", " %" PRIu64 " bytes", attr_number(a[SOVIA_A_LINK_TX_BYTES]));
	out_number("tx_acks", " %" PRIu64 " acks", attr_number(a[SOVIA_A_LINK_TX_ACKS]));
	out_number("credit_stalls", " %" PRIu64 " stalls", attr_number(a[SOVIA_A_LINK_STALLS]));
	out_number("retransmits", " %" PRIu64 " retransmits",
		   attr_number(a[SOVIA_A_LINK_RETRANSMITS]));
	out_number("rx_messages", "  rx %" PRIu64 " messages", attr_number(a[SOVIA_A_LINK_RX_MSGS]));
	out_number("rx_bytes", " %" PRIu64 " bytes", attr_number(a[SOVIA_A_LINK_RX_BYTES]));
}

/* Shows a link.  Returns MNL_CB_*. */
int link_show(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_LINK_MAX + 1] = {};
	char text[ADDR_TEXT];
	const char *state;

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	if (!is_wanted(a))
		return MNL_CB_OK;
	state = attr_text(a[SOVIA_A_LINK_STATE]);
	out_begin();
	out_number("id", "%" PRIu64 ": ", attr_number(a[SOVIA_A_LINK_ID]));
	out_string("local", "%s", addr_text(a[SOVIA_A_LINK_LOCAL], text));
	out_string("peer", " peer %s", addr_text(a[SOVIA_A_LINK_REMOTE], text));
	show_interface("dev", " dev %s", a[SOVIA_A_LINK_IFINDEX]);
	show_interface("vrf", " vrf %s", a[SOVIA_A_LINK_L3]);
	out_text(" state ");
	out_colored(state_color(state), "state", "%s", state);
	out_string("way", " way %s", attr_text(a[SOVIA_A_LINK_WAY]));
	out_number("lane", " lane %" PRIu64, attr_number(a[SOVIA_A_LINK_LANE]));
	out_number("connections", " connections %" PRIu64, attr_number(a[SOVIA_A_LINK_CONNS]));
	out_number("window", " window %" PRIu64, attr_number(a[SOVIA_A_LINK_WINDOW]));
	out_number("flight", " flight %" PRIu64, attr_number(a[SOVIA_A_LINK_FLIGHT]));
	if (options.details)
		show_details(a);
	if (options.stats)
		show_counts(a);
	out_end();
	return MNL_CB_OK;
}

static int read_state(const char *name)
{
	static const char * const states[] = {
		"new", "connecting", "up", "recovering", "parked", "down",
	};
	unsigned int i;

	filter.state = name;
	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		if (strcasecmp(name, states[i]) == 0)
			return 0;
	return -1;
}

static int read_id(const char *text)
{
	char *rest;

	filter.id = strtoul(text, &rest, 10);
	return filter.id && !*rest ? 0 : -1;
}

static int read_criterion(const char *name, const char *value)
{
	if (abbreviates(name, "state"))
		return read_state(value);
	if (abbreviates(name, "peer"))
		return prefix_read(value, &filter.peer);
	return abbreviates(name, "id") ? read_id(value) : -1;
}

static int read_filter(int argc, char **argv)
{
	for (; argc >= 2; argc -= 2, argv += 2)
		if (read_criterion(argv[0], argv[1])) {
			complain("%s %s: wrong", argv[0], argv[1]);
			return -1;
		}
	return argc ? -1 : 0;
}

static int show(int argc, char **argv)
{
	if (read_filter(argc, argv))
		return usage(help);
	return show_each(SOVIA_CMD_LINK_GET, SOVIA_A_LINK, link_show) ?: out_finish();
}

static int flush(int argc, char **argv)
{
	(void)argv;
	return argc ? usage(help) : order(SOVIA_CMD_LINK_FLUSH);
}

int link_main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "show", show }, { "list", show }, { "flush", flush }, {}
	};

	return run_command(commands, help, argc, argv);
}

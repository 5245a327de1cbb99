// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia socket show */
#include <inttypes.h>
#include <linux/sovia.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "addr.h"
#include "attrs.h"
#include "out.h"
#include "socket.h"
#include "sovia.h"

static const char help[] =
	"Usage: sovia [-j] [-s] [-d] socket [show] [state STATE] [local PREFIX] [peer PREFIX]\n"
	"                                   [port N] [link N] [way WAY]\n"
	"\n"
	"Shows bound and connected sockets of AF_SOVIA, and connections that fell back to TCP.\n"
	"STATE is as in ss(8), WAY one of: verbs, loop, clan, tcp.  port is either end's.\n";

static const enum mnl_attr_data_type types[SOVIA_A_SOCK_MAX + 1] = {
	[SOVIA_A_SOCK_FAMILY]	= MNL_TYPE_U16,
	[SOVIA_A_SOCK_STATE]	= MNL_TYPE_U8,
	[SOVIA_A_SOCK_ACTION]	= MNL_TYPE_U8,
	[SOVIA_A_SOCK_LPORT]	= MNL_TYPE_U16,
	[SOVIA_A_SOCK_RPORT]	= MNL_TYPE_U16,
	[SOVIA_A_SOCK_IFINDEX]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_UID]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_INODE]	= MNL_TYPE_U64,
	[SOVIA_A_SOCK_COOKIE]	= MNL_TYPE_U64,
	[SOVIA_A_SOCK_RQUEUE]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_WQUEUE]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_RMEM]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_WMEM]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_RCVBUF]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_SNDBUF]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_RWINDOW]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_SWINDOW]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_RX_BYTES]	= MNL_TYPE_U64,
	[SOVIA_A_SOCK_TX_BYTES]	= MNL_TYPE_U64,
	[SOVIA_A_SOCK_LINK]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_LANE]	= MNL_TYPE_U32,
	[SOVIA_A_SOCK_WAY]	= MNL_TYPE_NUL_STRING,
	[SOVIA_A_SOCK_DIRECT]	= MNL_TYPE_FLAG,
	[SOVIA_A_SOCK_TCP]	= MNL_TYPE_FLAG,
};
static const struct attr_set set = ATTR_SET(types);

static const char * const states[] = {
	[TCP_ESTABLISHED]	= "ESTAB",
	[TCP_SYN_SENT]		= "SYN-SENT",
	[TCP_SYN_RECV]		= "SYN-RECV",
	[TCP_FIN_WAIT1]		= "FIN-WAIT-1",
	[TCP_FIN_WAIT2]		= "FIN-WAIT-2",
	[TCP_TIME_WAIT]		= "TIME-WAIT",
	[TCP_CLOSE]		= "UNCONN",
	[TCP_CLOSE_WAIT]	= "CLOSE-WAIT",
	[TCP_LAST_ACK]		= "LAST-ACK",
	[TCP_LISTEN]		= "LISTEN",
	[TCP_CLOSING]		= "CLOSING",
};

#define STATES (sizeof(states) / sizeof(states[0]))

/*
 * What is to be shown.
 *
 * @states: bits, or 0 for all
 * @local, @peer: prefixes
 * @port: or 0
 * @link: or 0
 * @way: or NULL
 */
static struct {
	unsigned int	states;
	struct prefix	local;
	struct prefix	peer;
	unsigned int	port;
	unsigned int	link;
	const char	*way;
} filter;

/* Is a socket to be shown that goes this way? */
bool socket_is_wanted(const struct shown *shown, const char *way)
{
	return (!filter.states || filter.states & 1 << shown->state) &&
	       (!filter.local.bits || prefix_has(&filter.local, &shown->local)) &&
	       (!filter.peer.bits || prefix_has(&filter.peer, &shown->remote)) &&
	       (!filter.port || filter.port == shown->lport || filter.port == shown->rport) &&
	       (!filter.way || strcmp(filter.way, way) == 0);
}

static enum out_color state_color(uint8_t state)
{
	return state == TCP_ESTABLISHED || state == TCP_LISTEN ? OUT_GOOD : OUT_PLAIN;
}

/* Begins the line of a socket: what both kinds have. */
void socket_show_begin(const struct shown *shown)
{
	bool known = shown->state < STATES && states[shown->state];
	char text[ADDR_TEXT];

	out_begin();
	out_colored(state_color(shown->state), "state", "%-10s ",
		    known ? states[shown->state] : "?");
	out_number("recv_q", "%-7" PRIu64 " ", shown->rqueue);
	out_number("send_q", "%-7" PRIu64 " ", shown->wqueue);
	out_string("local", "%23s ",
		   addr_port_text(&shown->local, shown->family, shown->lport, text));
	out_string("peer", "%23s  ",
		   addr_port_text(&shown->remote, shown->family, shown->rport, text));
}

/* Ends it. */
void socket_show_end(const struct shown *shown)
{
	char name[IF_NAMESIZE];

	if (shown->ifindex && if_indextoname(shown->ifindex, name))
		out_string("dev", " dev %s", name);
	if (options.details) {
		out_number("uid", " uid:%" PRIu64, shown->uid);
		out_number("ino", " ino:%" PRIu64, shown->inode);
		out_number("cookie", " sk:%" PRIx64, shown->cookie);
		process_show(shown->inode);
	}
	out_end();
}

static void read_shown(const struct nlattr **a, struct shown *shown)
{
	memset(shown, 0, sizeof(*shown));
	shown->state = attr_number(a[SOVIA_A_SOCK_STATE]);
	shown->family = attr_number(a[SOVIA_A_SOCK_FAMILY]);
	addr_get(a[SOVIA_A_SOCK_LOCAL], &shown->local);
	addr_get(a[SOVIA_A_SOCK_REMOTE], &shown->remote);
	shown->lport = attr_number(a[SOVIA_A_SOCK_LPORT]);
	shown->rport = attr_number(a[SOVIA_A_SOCK_RPORT]);
	shown->rqueue = attr_number(a[SOVIA_A_SOCK_RQUEUE]);
	shown->wqueue = attr_number(a[SOVIA_A_SOCK_WQUEUE]);
	shown->uid = attr_number(a[SOVIA_A_SOCK_UID]);
	shown->inode = attr_number(a[SOVIA_A_SOCK_INODE]);
	shown->cookie = attr_number(a[SOVIA_A_SOCK_COOKIE]);
	shown->ifindex = attr_number(a[SOVIA_A_SOCK_IFINDEX]);
}

static void show_way(const struct nlattr **a)
{
	if (!a[SOVIA_A_SOCK_WAY]) {
		out_string("way", "%s", "-");
	} else {
		out_string("way", "%s", attr_text(a[SOVIA_A_SOCK_WAY]));
		out_number("link", " link %" PRIu64, attr_number(a[SOVIA_A_SOCK_LINK]));
	}
	if (a[SOVIA_A_SOCK_DIRECT])
		out_flag("direct", " direct");
	else if (a[SOVIA_A_SOCK_WAY] && attr_number(a[SOVIA_A_SOCK_LANE]))
		out_number("lane", " lane %" PRIu64, attr_number(a[SOVIA_A_SOCK_LANE]));
	if (a[SOVIA_A_SOCK_TCP])
		out_flag("tcp", " tcp");
}

static void show_action(uint64_t action)
{
	if (action == SOVIA_ONLY_SOVIA)
		out_string("action", " %s", "only-sovia");
	else if (action == SOVIA_ONLY_TCP)
		out_string("action", " %s", "only-tcp");
}

static void show_counts(const struct nlattr **a)
{
	out_number("bytes_sent", " bytes_sent:%" PRIu64, attr_number(a[SOVIA_A_SOCK_TX_BYTES]));
	out_number("bytes_received", " bytes_received:%" PRIu64,
		   attr_number(a[SOVIA_A_SOCK_RX_BYTES]));
	out_number("snd_wnd", " snd_wnd:%" PRIu64, attr_number(a[SOVIA_A_SOCK_SWINDOW]));
	out_number("rcv_wnd", " rcv_wnd:%" PRIu64, attr_number(a[SOVIA_A_SOCK_RWINDOW]));
}

static void show_memory(const struct nlattr **a)
{
	out_number("rmem", " skmem:(r%" PRIu64, attr_number(a[SOVIA_A_SOCK_RMEM]));
	out_number("rcvbuf", ",rb%" PRIu64, attr_number(a[SOVIA_A_SOCK_RCVBUF]));
	out_number("wmem", ",t%" PRIu64, attr_number(a[SOVIA_A_SOCK_WMEM]));
	out_number("sndbuf", ",tb%" PRIu64 ")", attr_number(a[SOVIA_A_SOCK_SNDBUF]));
}

static int show_sock(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_SOCK_MAX + 1] = {};
	struct shown shown;

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	read_shown(a, &shown);
	if (!socket_is_wanted(&shown, attr_text(a[SOVIA_A_SOCK_WAY])) ||
	    (filter.link && filter.link != attr_number(a[SOVIA_A_SOCK_LINK])))
		return MNL_CB_OK;
	socket_show_begin(&shown);
	show_way(a);
	show_action(attr_number(a[SOVIA_A_SOCK_ACTION]));
	if (options.stats)
		show_counts(a);
	if (options.details)
		show_memory(a);
	socket_show_end(&shown);
	return MNL_CB_OK;
}

static int read_state(const char *name)
{
	unsigned int i;

	if (strcasecmp(name, "established") == 0)
		name = "ESTAB";
	else if (strcasecmp(name, "listening") == 0)
		name = "LISTEN";
	for (i = 0; i < STATES; i++)
		if (states[i] && strcasecmp(name, states[i]) == 0) {
			filter.states |= 1 << i;
			return 0;
		}
	return -1;
}

static int read_number(const char *text, unsigned int *number, unsigned long most)
{
	unsigned long value;
	char *rest;

	value = strtoul(text, &rest, 10);
	if (rest == text || *rest || !value || value > most)
		return -1;
	*number = value;
	return 0;
}

static int read_way(const char *name)
{
	static const char * const ways[] = { "verbs", "loop", "clan", "tcp" };
	unsigned int i;

	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (strcmp(name, ways[i]) == 0) {
			filter.way = ways[i];
			return 0;
		}
	return -1;
}

static int read_criterion(const char *name, const char *value)
{
	if (abbreviates(name, "state"))
		return read_state(value);
	if (abbreviates(name, "local"))
		return prefix_read(value, &filter.local);
	if (strcmp(name, "port") == 0)
		return read_number(value, &filter.port, UINT16_MAX);
	if (abbreviates(name, "peer"))
		return prefix_read(value, &filter.peer);
	if (abbreviates(name, "link"))
		return read_number(value, &filter.link, UINT32_MAX);
	return abbreviates(name, "way") ? read_way(value) : -1;
}

static int show(int argc, char **argv)
{
	int status;

	for (; argc >= 2; argc -= 2, argv += 2)
		if (read_criterion(argv[0], argv[1])) {
			complain("%s %s: wrong", argv[0], argv[1]);
			return usage(help);
		}
	if (argc)
		return usage(help);
	out_text("%-10s %-7s %-7s %23s %23s  %s\n", "State", "Recv-Q", "Send-Q",
		 "Local Address:Port", "Peer Address:Port", "Way");
	status = show_each(SOVIA_CMD_SOCK_GET, SOVIA_A_SOCK, show_sock);
	if (!status && !filter.link)
		status = socket_show_all_tcp();
	return status ?: out_finish();
}

int socket_main(int argc, char **argv)
{
	static const struct command commands[] = { { "show", show }, { "list", show }, {} };

	return run_command(commands, help, argc, argv);
}

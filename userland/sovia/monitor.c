// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia monitor */
#include <linux/sovia.h>
#include <stdio.h>
#include <time.h>
#include "attrs.h"
#include "link.h"
#include "netlink.h"
#include "out.h"
#include "peer.h"
#include "socket.h"
#include "sovia.h"

static const char help[] =
	"Usage: sovia [-j] [-t] [-s] [-d] [-o] monitor [link] [peer] [tcp]\n"
	"\n"
	"Prints events as they happen: links that change their state, peers that are met or lost,\n"
	"connections that fall back to TCP.  Without arguments all of them.\n";

static const struct {
	const char	*name;
	unsigned int	kind;
	show_nest	show;
} kinds[] = {
	{ "link", SOVIA_A_LINK, link_show },
	{ "peer", SOVIA_A_PEER, peer_show },
	{ "tcp", SOVIA_A_TCP, socket_show_tcp },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static bool wanted[KINDS];

static void show_time(void)
{
	struct timespec now;
	struct tm tm;
	char text[64];
	size_t len;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%06ld", now.tv_nsec / 1000);
	out_ahead("time", "[%s] ", text);
}

/* The kind whose event is shown now. */
static unsigned int current;

static int show_event(const struct nlattr *nest)
{
	if (options.time)
		show_time();
	out_ahead("event", "%s ", kinds[current].name);
	return kinds[current].show(nest);
}

static int take_event(const struct nlmsghdr *nlh, void *data)
{
	(void)data;
	for (current = 0; current < KINDS; current++)
		if (wanted[current])
			show_message(nlh, kinds[current].kind, show_event);
	out_now();
	return ferror(stdout) ? MNL_CB_ERROR : MNL_CB_OK;
}

int monitor_main(int argc, char **argv)
{
	struct netlink_error error;
	unsigned int i;
	bool known;

	for (i = 0; i < KINDS; i++)
		wanted[i] = argc == 0;
	for (; argc; argc--, argv++) {
		if (abbreviates(argv[0], "help"))
			return fputs(help, stdout) < 0 ? EXIT_FAILED : 0;
		for (known = false, i = 0; i < KINDS && !known; i++) {
			known = abbreviates(argv[0], kinds[i].name);
			wanted[i] |= known;
		}
		if (!known)
			return usage(help);
	}
	if (netlink_listen(SOVIA_GENL_EVENTS, take_event, NULL, &error) < 0)
		return complain("%s", error.text);
	return EXIT_FAILED;
}

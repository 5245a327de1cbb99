// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia rule show|replace|flush */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/sovia.h>
#include <stdlib.h>
#include <string.h>
#include "attrs.h"
#include "netlink.h"
#include "out.h"
#include "rule.h"
#include "sovia.h"

static const char help[] =
	"Usage: sovia [-j] [-s] rule [show]\n"
	"       sovia rule replace [FILE]\n"
	"       sovia rule load [FILE]\n"
	"       sovia rule flush\n"
	"\n"
	"FILE is a list of rules, \"-\" or none standard input.  load is for the boot: it does nothing\n"
	"without FILE (/etc/sovia/rules), and leaves rules out whose control group does not exist yet.\n"
	"A rule is a line:\n"
	"\n"
	"  [in | out] [peer PREFIX] [port N[-M]] [uid N[-M]] [gid N[-M]]\n"
	"  [cgroup PATH] [dev NAME] [wait MS] (auto | only-sovia | only-tcp | deny)\n"
	"\n"
	"The first that matches decides what becomes of a connection.  # begins a comment.\n"
	"-s also shows how many connections each rule has decided.\n";

/* Those that hold from the boot on. */
#define RULES "/etc/sovia/rules"

/* Of a request: more than SOVIA_RULES_MAX rules with all their attributes. */
#define REQUEST_MAX (SOVIA_RULES_MAX * 192)

static int show(int argc, char **argv)
{
	(void)argv;
	if (argc)
		return usage(help);
	return show_each(SOVIA_CMD_RULE_GET, SOVIA_A_RULE, rule_show) ?: out_finish();
}

static int replace_by(struct rule_list *list)
{
	struct netlink_error error;

	if (netlink_request(list->nlh, NULL, NULL, &error) == 0)
		return 0;
	if (!error.offset)
		return complain("%s", error.text);
	rule_complain(list, error.offset, error.text);
	return EXIT_FAILED;
}

static struct rule_list *new_list(const char *name)
{
	struct rule_list *list = calloc(1, sizeof(*list));
	void *buf = calloc(1, REQUEST_MAX);

	if (!list || !buf) {
		exit(complain("%s", strerror(ENOMEM)));
	}
	list->name = name;
	list->size = REQUEST_MAX;
	list->nlh = netlink_begin(buf, SOVIA_CMD_RULE_REPLACE, NLM_F_ACK);
	return list;
}

static void free_list(struct rule_list *list)
{
	free(list->nlh);
	free(list->places);
	free(list);
}

static int replace_from(const char *name, FILE *file, bool lenient)
{
	struct rule_list *list = new_list(name);
	int status;

	list->lenient = lenient;
	status = rule_read(list, file) == 0 ? replace_by(list) : EXIT_FAILED;
	free_list(list);
	return status;
}

static int replace_by_file(const char *name, bool lenient)
{
	FILE *file = fopen(name, "re");
	int status;

	if (!file)
		return lenient && errno == ENOENT ? 0 : complain("%s: %s", name, strerror(errno));
	status = replace_from(name, file, lenient);
	fclose(file);
	return status;
}

static int replace(int argc, char **argv)
{
	if (argc > 1)
		return usage(help);
	if (!argc || strcmp(argv[0], "-") == 0)
		return batch_no_input() ?: replace_from("standard input", stdin, false);
	return replace_by_file(argv[0], false);
}

static int load(int argc, char **argv)
{
	return argc > 1 ? usage(help) : replace_by_file(argc ? argv[0] : RULES, true);
}

static int flush(int argc, char **argv)
{
	struct rule_list *list;
	int status;

	(void)argv;
	if (argc)
		return usage(help);
	list = new_list("");
	status = replace_by(list);
	free_list(list);
	return status;
}

int rule_main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "show", show }, { "list", show }, { "replace", replace }, { "load", load },
		{ "flush", flush }, {}
	};

	return run_command(commands, help, argc, argv);
}

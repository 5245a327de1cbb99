// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia OBJECT COMMAND: what an administrator reads and changes.
 *
 * As with ip(8), objects and commands may be abbreviated.
 */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "netns.h"
#include "sovia.h"

static const char help[] =
	"Usage: sovia [OPTIONS] OBJECT {COMMAND | help}\n"
	"       sovia [-n NETNS] doctor [NODE]\n"
	"       sovia [OPTIONS] -b FILE\n"
	"\n"
	"OBJECT is one of: socket, link, device, peer, rule, key, stat, monitor, set, doctor\n"
	"\n"
	"OPTIONS:\n"
	"  -j, --json            print JSON\n"
	"  -p, --pretty          JSON for people\n"
	"  -s, --statistics      also print counts\n"
	"  -d, --details         also print what is seldom needed, and for sockets their processes\n"
	"  -t, --timestamp       monitor: when it happened\n"
	"  -o, --oneline         text: a record on each line, its line breaks as \\\n"
	"  -n, --netns NAME      in this network namespace\n"
	"  -c, --color[=WHEN]    always, auto or never (auto)\n"
	"  -b, --batch FILE      run the commands of a file, one a line; - is standard input\n"
	"  --force               with -b: go on when one has failed\n"
	"  -V, --version\n"
	"  -h, --help\n"
	"\n"
	"Exit status: 0, 1 if it failed, 2 for wrong arguments.\n";

static const struct option long_options[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "pretty", no_argument, NULL, 'p' },
	{ "statistics", no_argument, NULL, 's' },
	{ "details", no_argument, NULL, 'd' },
	{ "timestamp", no_argument, NULL, 't' },
	{ "oneline", no_argument, NULL, 'o' },
	{ "netns", required_argument, NULL, 'n' },
	{ "color", optional_argument, NULL, 'c' },
	{ "batch", required_argument, NULL, 'b' },
	/* Without a letter. */
	{ "force", no_argument, NULL, 'F' },
	{ "version", no_argument, NULL, 'V' },
	{ "help", no_argument, NULL, 'h' },
	{}
};

static const struct command objects[] = {
	{ "socket", socket_main },
	{ "link", link_main },
	{ "device", device_main },
	{ "peer", peer_main },
	{ "rule", rule_main },
	{ "key", key_main },
	{ "stat", stat_main },
	{ "monitor", monitor_main },
	{ "set", set_main },
	{ "doctor", doctor_main },
	{}
};

struct options options = { .color = COLOR_AUTO };

bool abbreviates(const char *word, const char *whole)
{
	return *word && strncmp(word, whole, strlen(word)) == 0;
}

/* For wrong arguments. */
int usage(const char *text)
{
	fputs(text, stderr);
	return EXIT_USAGE;
}

/* Says what is wrong.  Returns EXIT_FAILED. */
int complain(const char *format, ...)
{
	va_list arguments;

	fflush(stdout);
	fputs("sovia: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return EXIT_FAILED;
}

static const struct command *find_command(const struct command *commands, const char *word)
{
	const struct command *command;

	for (command = commands; command->name; command++)
		if (abbreviates(word, command->name))
			return command;
	return NULL;
}

/* Runs the command that argv[0] names, or the first: show, whose name may be left out. */
int run_command(const struct command *commands, const char *text, int argc, char **argv)
{
	const struct command *command;

	if (argc == 0)
		return commands->run(0, argv);
	command = find_command(commands, argv[0]);
	if (command)
		return command->run(argc - 1, argv + 1);
	if (abbreviates(argv[0], "help"))
		return fputs(text, stdout) < 0 ? EXIT_FAILED : 0;
	return commands->run(argc, argv);
}

static int set_color(const char *when)
{
	if (!when || strcmp(when, "always") == 0)
		options.color = COLOR_ALWAYS;
	else if (strcmp(when, "auto") == 0)
		options.color = COLOR_AUTO;
	else if (strcmp(when, "never") == 0)
		options.color = COLOR_NEVER;
	else
		return -1;
	return 0;
}

/* Returns 0 to go on, or -1: @status is the exit status. */
static int take_option(int option, int *status)
{
	switch (option) {
	case 'p':
		options.pretty = true;
		/* fall through */
	case 'j':
		options.json = true;
		return 0;
	case 's':
		options.stats = true;
		return 0;
	case 'd':
		options.details = true;
		return 0;
	case 't':
		options.time = true;
		return 0;
	case 'o':
		options.oneline = true;
		return 0;
	case 'n':
		*status = netns_enter(optarg) == 0 ? 0 : EXIT_FAILED;
		return *status ? -1 : 0;
	case 'c':
		*status = set_color(optarg) == 0 ? 0 : usage(help);
		return *status ? -1 : 0;
	case 'b':
		options.batch = optarg;
		return 0;
	case 'F':
		options.force = true;
		return 0;
	case 'V':
		printf("sovia %s\n", SOVIA_VERSION);
		return -1;
	case 'h':
		fputs(help, stdout);
		return -1;
	default:
		*status = usage(help);
		return -1;
	}
}

/* Runs a command of the object that argv[0] names.  Returns the exit status. */
int run_object(int argc, char **argv)
{
	const struct command *object;

	if (abbreviates(argv[0], "help"))
		return fputs(help, stdout) < 0 ? EXIT_FAILED : 0;
	object = find_command(objects, argv[0]);
	if (object)
		return object->run(argc - 1, argv + 1);
	complain("\"%s\" is unknown", argv[0]);
	return usage(help);
}

int main(int argc, char **argv)
{
	int option, status = 0;

	while ((option = getopt_long(argc, argv, "+jpsdton:c::b:Vh", long_options, NULL)) != -1)
		if (take_option(option, &status))
			return status;
	if (options.batch)
		return optind == argc ? batch_main() : usage(help);
	return optind == argc ? usage(help) : run_object(argc - optind, argv + optind);
}

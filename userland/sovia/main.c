// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia OBJECT COMMAND: what an administrator reads and changes.
 *
 * As with ip(8), objects and commands may be abbreviated.
 */
#include <stdio.h>
#include <string.h>
#include "sovia.h"

static const char usage[] =
	"Usage: sovia [-s] rule show\n"
	"       sovia rule replace [FILE]\n"
	"       sovia rule flush\n"
	"       sovia key show\n"
	"       sovia key add ID PREFIX [own PREFIX] FILE\n"
	"       sovia key delete ID\n"
	"       sovia key revoke ID\n"
	"\n"
	"  -s         also show how many connections each rule has decided\n"
	"  --help     show this text\n"
	"\n"
	"FILE is a list of rules, \"-\" or none standard input.  A rule is a line:\n"
	"\n"
	"  [in | out] [peer PREFIX] [port N[-M]] [uid N[-M]] [gid N[-M]]\n"
	"  [cgroup PATH] [dev NAME] [wait MS] (auto | only-sovia | only-tcp | deny)\n"
	"\n"
	"The first that matches decides what becomes of a connection.  # begins a comment.\n"
	"\n"
	"A key is 32 to 64 random bytes, the same in both nodes, and so is ID, up to 16 hexadecimal\n"
	"digits.  PREFIX says which peers need it, and from which own addresses.\n"
	"\n"
	"Exit status: 0, 1 if it failed, 2 for wrong arguments.\n";

bool sovia_abbreviates(const char *word, const char *whole)
{
	return *word && strncmp(word, whole, strlen(word)) == 0;
}

int sovia_usage(void)
{
	fputs(usage, stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	struct sovia_options options = {};
	int i = 1;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--help") == 0)
			return fputs(usage, stdout) < 0;
		if (strcmp(argv[i], "-s") != 0)
			return sovia_usage();
		options.hits = true;
	}
	if (i >= argc)
		return sovia_usage();
	if (sovia_abbreviates(argv[i], "key"))
		return sovia_key_main(argc - i - 1, argv + i + 1);
	if (!sovia_abbreviates(argv[i], "rule"))
		return sovia_usage();
	return sovia_rule_main(&options, argc - i - 1, argv + i + 1);
}

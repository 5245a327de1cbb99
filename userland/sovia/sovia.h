/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the command sovia. */
#ifndef SOVIA_TOOL_H
#define SOVIA_TOOL_H

#include <stdbool.h>

enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

/* -s */
struct sovia_options {
	bool hits;
};

/* main.c */
bool sovia_abbreviates(const char *word, const char *whole);
int sovia_usage(void);

/* key.c */
int sovia_key_main(int argc, char **argv);

/* rule.c */
int sovia_rule_main(const struct sovia_options *options, int argc, char **argv);

#endif

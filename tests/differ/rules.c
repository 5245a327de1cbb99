// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Intended differences.  The file has, for each:
 *
 *	rule NAME
 *	differs PATTERN		"call: what: reference | subject"
 *	after PATTERN		"call: reference | subject", of this call or an earlier one
 *
 * with shell patterns, any number of "after", which all have to match, in
 * any order, and comments with the reason.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include "differ.h"

#define RULES	64
#define AFTERS	6

static struct rule {
	char	name[64], differs[TEXT], after[AFTERS][TEXT];
	int	afters;
} rules[RULES];
static int count;

static void bad(const char *path, int line, const char *why)
{
	fprintf(stderr, "%s:%d: %s\n", path, line, why);
	exit(2);
}

static void read_line(const char *path, int number, char *word, char *rest)
{
	struct rule *rule = &rules[count - 1];

	if (!strcmp(word, "rule")) {
		if (count == RULES)
			bad(path, number, "too many rules");
		snprintf(rules[count++].name, sizeof(rule->name), "%s", rest);
	} else if (!count) {
		bad(path, number, "no rule before this");
	} else if (!strcmp(word, "differs")) {
		snprintf(rule->differs, TEXT, "%s", rest);
	} else if (!strcmp(word, "after") && rule->afters < AFTERS) {
		snprintf(rule->after[rule->afters++], TEXT, "%s", rest);
	} else {
		bad(path, number, "not understood");
	}
}

void rules_read(const char *path)
{
	FILE *file = fopen(path, "r");
	char line[256], *word, *rest;
	int number = 0;

	if (!file) {
		perror(path);
		exit(2);
	}
	while (fgets(line, sizeof(line), file)) {
		number++;
		line[strcspn(line, "\n")] = 0;
		word = line + strspn(line, " \t");
		if (!*word || *word == '#')
			continue;
		rest = word + strcspn(word, " \t");
		if (*rest)
			*rest++ = 0;
		read_line(path, number, word, rest + strspn(rest, " \t"));
	}
	fclose(file);
}

static bool happened(const struct sequence *s, const char *pattern)
{
	char call[TEXT], line[4 * TEXT];
	int i;

	for (i = 0; i <= s->found.step; i++) {
		const struct outcome *outcome = &s->outcomes[i];

		op_text(&s->ops[i], call);
		snprintf(line, sizeof(line), "%s: %s | %s", call, outcome->text[0], outcome->text[1]);
		if (!fnmatch(pattern, line, 0))
			return true;
	}
	return false;
}

/* The rule that allows the difference of a sequence, or -1. */
int rules_match(const struct sequence *s)
{
	char text[4 * TEXT];
	int i, n;

	difference_text(s, text, sizeof(text));
	for (i = 0; i < count; i++) {
		if (fnmatch(rules[i].differs, text, 0))
			continue;
		for (n = 0; n < rules[i].afters; n++)
			if (!happened(s, rules[i].after[n]))
				break;
		if (n == rules[i].afters)
			return i;
	}
	return -1;
}

const char *rule_name(int rule)
{
	return rules[rule].name;
}

int rules_count(void)
{
	return count;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What the command prints.  Text is printed at once; JSON is one list of objects at the end, or
 * with out_now() an object a line, whatever it looks like.
 */
#include <inttypes.h>
#include <json-c/json.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "out.h"
#include "sovia.h"

#define DEPTH 4

/* The list of all objects, and from it down to where values are added. */
static json_object *all;
static json_object *stack[DEPTH];
static int depth;

/* The next object, if it has values already. */
static json_object *next;

static const char * const colors[] = {
	[OUT_GOOD]	= "\033[32m",
	[OUT_BAD]	= "\033[31m",
	[OUT_DULL]	= "\033[2m",
};

static bool colored(void)
{
	static int terminal = -1;

	if (terminal < 0)
		terminal = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	return options.color == COLOR_ALWAYS || (options.color == COLOR_AUTO && terminal);
}

static void add(const char *key, json_object *value)
{
	json_object *to = stack[depth - 1];

	if (json_object_is_type(to, json_type_array))
		json_object_array_add(to, value);
	else
		json_object_object_add(to, key, value);
}

static void enter(const char *key, json_object *inner)
{
	add(key, inner);
	if (depth == DEPTH)
		abort();
	stack[depth++] = inner;
}

/* A value of the next object. */
void out_ahead(const char *key, const char *format, const char *value)
{
	if (!options.json) {
		printf(format, value);
		return;
	}
	if (!next)
		next = json_object_new_object();
	json_object_object_add(next, key, json_object_new_string(value));
}

/* Begins an object of the list. */
void out_begin(void)
{
	if (!options.json)
		return;
	if (!all) {
		all = json_object_new_array();
		stack[0] = all;
		depth = 1;
	}
	enter(NULL, next ? next : json_object_new_object());
	next = NULL;
}

/* Ends it: a line of text. */
void out_end(void)
{
	if (options.json)
		depth--;
	else
		putchar('\n');
}

static void print_json(json_object *object, int pretty)
{
	int flags = options.pretty ? pretty : JSON_C_TO_STRING_PLAIN;

	puts(json_object_to_json_string_ext(object, flags | JSON_C_TO_STRING_NOSLASHESCAPE));
}

/* Prints the list.  Returns the exit status. */
int out_finish(void)
{
	if (options.json) {
		if (!all)
			all = json_object_new_array();
		print_json(all, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED);
		json_object_put(all);
		all = NULL;
	}
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : 0;
}

/* Prints what there is now, an object a line, and forgets it. */
void out_now(void)
{
	size_t i;

	for (i = 0; all && i < json_object_array_length(all); i++)
		print_json(json_object_array_get_idx(all, i), JSON_C_TO_STRING_SPACED);
	json_object_put(all);
	all = NULL;
	/* It was not shown. */
	json_object_put(next);
	next = NULL;
	fflush(stdout);
}

/* Text without a value of its own. */
void out_text(const char *format, ...)
{
	va_list arguments;

	if (options.json)
		return;
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
}

/* The line goes on below: with -o behind a backslash, as that of ip(8). */
void out_break(void)
{
	out_text(options.oneline ? "\\" : "\n");
}

/* @format has one %s. */
void out_colored(enum out_color color, const char *key, const char *format, const char *value)
{
	if (options.json) {
		add(key, json_object_new_string(value));
		return;
	}
	if (color != OUT_PLAIN && colored())
		fputs(colors[color], stdout);
	printf(format, value);
	if (color != OUT_PLAIN && colored())
		fputs("\033[0m", stdout);
}

void out_string(const char *key, const char *format, const char *value)
{
	out_colored(OUT_PLAIN, key, format, value);
}

/* @format has one PRIu64 or PRIx64; NULL: only in JSON. */
void out_number(const char *key, const char *format, uint64_t value)
{
	if (options.json)
		add(key, json_object_new_uint64(value));
	else if (format)
		printf(format, value);
}

/* A number that is written in hexadecimal everywhere: text in JSON as well.  @format has one %s. */
void out_hex(const char *key, const char *format, uint64_t value)
{
	char text[17];

	snprintf(text, sizeof(text), "%" PRIx64, value);
	out_string(key, format, text);
}

/* Something that is so. */
void out_flag(const char *key, const char *text)
{
	if (options.json)
		add(key, json_object_new_boolean(true));
	else
		fputs(text, stdout);
}

/* Values that follow are elements of a list. */
void out_list_begin(const char *key)
{
	if (options.json)
		enter(key, json_object_new_array());
}

void out_list_end(void)
{
	if (options.json)
		depth--;
}

/* An element of a list with values of its own. */
void out_nest_begin(void)
{
	if (options.json)
		enter(NULL, json_object_new_object());
}

void out_nest_end(void)
{
	if (options.json)
		depth--;
}

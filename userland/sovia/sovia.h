/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The parts of the command sovia. */
#ifndef SOVIA_TOOL_H
#define SOVIA_TOOL_H

#include <stdbool.h>
#include <stddef.h>

enum {
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

enum color {
	COLOR_NEVER,
	COLOR_AUTO,
	COLOR_ALWAYS,
};

/*
 * @json: -j
 * @pretty: -p
 * @stats: -s
 * @details: -d
 * @time: -t
 * @oneline: -o
 * @batch: -b: a file, or NULL
 * @force: --force
 * @color: -c
 */
struct options {
	bool		json;
	bool		pretty;
	bool		stats;
	bool		details;
	bool		time;
	bool		oneline;
	const char	*batch;
	bool		force;
	enum color	color;
};

extern struct options options;

/*
 * A command of an object.
 *
 * @name: may be abbreviated; the first one that matches is meant
 * @run: its arguments; returns the exit status
 */
struct command {
	const char	*name;
	int		(*run)(int argc, char **argv);
};

/* main.c */
bool abbreviates(const char *word, const char *whole);
int usage(const char *text);
int complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
int run_object(int argc, char **argv);
int run_command(const struct command *commands, const char *help, int argc, char **argv);

/* batch.c */
int batch_main(void);
int batch_no_input(void);

/* An object each. */
int socket_main(int argc, char **argv);
int link_main(int argc, char **argv);
int device_main(int argc, char **argv);
int peer_main(int argc, char **argv);
int rule_main(int argc, char **argv);
int key_main(int argc, char **argv);
int stat_main(int argc, char **argv);
int monitor_main(int argc, char **argv);
int set_main(int argc, char **argv);
int doctor_main(int argc, char **argv);

#endif

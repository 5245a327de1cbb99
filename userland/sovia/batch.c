// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia -b FILE: a command on each line, written as for ip(8).
 *
 * Each command has a process of its own, so that none sees what another one has left: conditions,
 * JSON of a list that broke off, /sys of another namespace.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sovia.h"

#define SPACE " \t\r\n"

/*
 * Commands that are read.
 *
 * @name: of the file
 * @file: where they come from
 * @lines: that have been read
 * @begin: number of the first line of the command, from 1
 * @text: the command, without comments and line breaks
 * @size: of the memory of @text
 */
struct batch {
	const char	*name;
	FILE		*file;
	unsigned int	lines;
	unsigned int	begin;
	char		*text;
	size_t		size;
};

/* Appends a line.  Returns whether the next one belongs to it. */
static bool take_line(struct batch *batch, const char *line)
{
	size_t have = strlen(batch->text), len = strcspn(line, "#\n");
	bool more = len && line[len] == '\n' && line[len - 1] == '\\';

	if (have + len >= batch->size) {
		batch->size = 2 * (have + len) + 1;
		batch->text = realloc(batch->text, batch->size);
		if (!batch->text)
			abort();
	}
	memcpy(batch->text + have, line, len);
	batch->text[have + len - more] = '\0';
	return more;
}

/* Reads a command, which may be empty.  Returns false at the end of the file. */
static bool read_command(struct batch *batch)
{
	char *line = NULL;
	size_t size = 0;
	bool more = true;

	batch->begin = batch->lines + 1;
	batch->text[0] = '\0';
	while (more && getline(&line, &size, batch->file) >= 0) {
		batch->lines++;
		more = take_line(batch, line);
	}
	free(line);
	return batch->lines >= batch->begin;
}

/* Splits a command into words.  Returns how many, or -1 if a quote has no end. */
static int split(char *text, char **words)
{
	int count = 0;
	char *end;

	for (text += strspn(text, SPACE); *text; text = end + strspn(end, SPACE)) {
		bool quoted = *text == '"' || *text == '\'';

		end = quoted ? strchr(text + 1, *text) : text + strcspn(text, SPACE);
		if (!end)
			return -1;
		words[count++] = text + quoted;
		if (*end)
			*end++ = '\0';
	}
	return count;
}

/* Returns the exit status. */
static int run_text(char *text)
{
	/* Two bytes at least are a word, but for the last one. */
	char **words = calloc(strlen(text) / 2 + 2, sizeof(*words));
	int count = words ? split(text, words) : 0;

	if (!words)
		return complain("%s", strerror(ENOMEM));
	return count < 0 ? complain("a quote without an end") : run_object(count, words);
}

/* Runs a command in a process of its own.  Returns the exit status. */
static int run_child(struct batch *batch)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		/* What goes on until it is interrupted, as monitor does, ends with the batch. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		status = run_text(batch->text);
		/* Not exit(): that moves the offset of the file, which is the parent's as well. */
		_exit(fflush(stdout) ? EXIT_FAILED : status);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return complain("%s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
}

/* Returns the exit status. */
static int run_all(struct batch *batch)
{
	int status = 0;

	while ((!status || options.force) && read_command(batch)) {
		if (!batch->text[strspn(batch->text, SPACE)] || run_child(batch) == 0)
			continue;
		status = complain("%s:%u: the command failed", batch->name, batch->begin);
	}
	if (ferror(batch->file))
		status = complain("%s: %s", batch->name, strerror(errno));
	return status;
}

/* For a command that wants standard input: commands may be there.  Returns 0 or EXIT_FAILED. */
int batch_no_input(void)
{
	return options.batch ? complain("standard input is not for commands of a batch") : 0;
}

/* Runs the commands of options.batch.  Returns the exit status. */
int batch_main(void)
{
	struct batch batch = { .name = options.batch, .file = stdin, .size = 128 };
	int status;

	if (strcmp(batch.name, "-") == 0)
		batch.name = "standard input";
	else
		batch.file = fopen(batch.name, "re");
	if (!batch.file)
		return complain("%s: %s", batch.name, strerror(errno));
	batch.text = malloc(batch.size);
	if (!batch.text)
		abort();
	status = run_all(&batch);
	free(batch.text);
	if (batch.file != stdin)
		fclose(batch.file);
	return status;
}

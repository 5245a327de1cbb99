// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia set: switches and limits of a network namespace, the sysctls net.sovia.* */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "out.h"
#include "sovia.h"

#define FOLDER "/proc/sys/net/sovia"

static const char help[] =
	"Usage: sovia [-j] set\n"
	"       sovia set NAME VALUE\n"
	"\n"
	"Shows, or changes, the switches and limits of the network namespace: sysctl net.sovia.NAME.\n"
	"See sovia(7).\n";

static FILE *open_setting(const char *name, const char *mode)
{
	char path[512];

	if (strchr(name, '/')) {
		errno = ENOENT;
		return NULL;
	}
	snprintf(path, sizeof(path), FOLDER "/%s", name);
	return fopen(path, mode);
}

static int complain_about(const char *name)
{
	if (errno != ENOENT)
		return complain("%s: %s", name, strerror(errno));
	return access(FOLDER, F_OK) ? complain("the module sovia is not loaded") :
	       complain("%s: no such setting", name);
}

static int show_setting(const char *name)
{
	FILE *file = open_setting(name, "re");
	char text[128] = "";

	if (!file)
		return complain_about(name);
	if (fgets(text, sizeof(text), file))
		text[strcspn(text, "\n")] = '\0';
	fclose(file);
	out_begin();
	out_string("name", "%-16s ", name);
	out_string("value", "%s", text);
	out_end();
	return 0;
}

static int is_setting(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int show(void)
{
	struct dirent **entries;
	int i, count = scandir(FOLDER, &entries, is_setting, alphasort);
	int status = 0;

	if (count < 0)
		return complain("the module sovia is not loaded");
	for (i = 0; i < count; i++) {
		status = show_setting(entries[i]->d_name) ?: status;
		free(entries[i]);
	}
	free(entries);
	return status ?: out_finish();
}

static int change(const char *name, const char *value)
{
	FILE *file = open_setting(name, "we");
	int err = 0;

	if (!file)
		return complain_about(name);
	if (fprintf(file, "%s\n", value) < 0 || fflush(file))
		err = errno;
	if (fclose(file) && !err)
		err = errno;
	return err ? complain("%s %s: %s", name, value, strerror(err)) : 0;
}

int set_main(int argc, char **argv)
{
	if (argc == 0)
		return show();
	if (argc == 1 && abbreviates(argv[0], "help"))
		return fputs(help, stdout) < 0 ? EXIT_FAILED : 0;
	if (argc == 1)
		return show_setting(argv[0]) ?: out_finish();
	return argc == 2 ? change(argv[0], argv[1]) : usage(help);
}

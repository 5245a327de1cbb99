// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia device show */
#include <glob.h>
#include <inttypes.h>
#include <linux/sovia.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attrs.h"
#include "netns.h"
#include "out.h"
#include "sovia.h"

static const char help[] = "Usage: sovia [-j] device [show]\n";

static const enum mnl_attr_data_type types[SOVIA_A_DEVICE_MAX + 1] = {
	[SOVIA_A_DEVICE_NAME]	= MNL_TYPE_NUL_STRING,
	[SOVIA_A_DEVICE_VIS]	= MNL_TYPE_U32,
	[SOVIA_A_DEVICE_CQS]	= MNL_TYPE_U32,
	[SOVIA_A_DEVICE_STUCK]	= MNL_TYPE_U32,
};
static const struct attr_set set = ATTR_SET(types);

/* What the RDMA core says of a port, or nothing. */
static void show_file(const char *port, const char *key, const char *format, const char *file)
{
	char path[512], text[64];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", port, file);
	stream = fopen(path, "re");
	if (!stream)
		return;
	if (fgets(text, sizeof(text), stream)) {
		text[strcspn(text, "\n")] = '\0';
		out_string(key, format, text);
	}
	fclose(stream);
}

static void show_ports(const char *name)
{
	const char *port;
	char pattern[256];
	glob_t ports;
	size_t i;

	snprintf(pattern, sizeof(pattern), "/sys/class/infiniband/%s/ports/*", name);
	if (glob(pattern, 0, NULL, &ports))
		return;
	out_list_begin("ports");
	for (i = 0; i < ports.gl_pathc; i++) {
		port = ports.gl_pathv[i];
		out_nest_begin();
		out_number("port", " port %" PRIu64, strtoul(strrchr(port, '/') + 1, NULL, 10));
		show_file(port, "state", " %s", "state");
		show_file(port, "link_layer", " %s", "link_layer");
		show_file(port, "netdev", " netdev %s", "gid_attrs/ndevs/0");
		out_nest_end();
	}
	out_list_end();
	globfree(&ports);
}

static int show_device(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_DEVICE_MAX + 1] = {};
	const char *name;

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	name = attr_text(a[SOVIA_A_DEVICE_NAME]);
	out_begin();
	out_string("name", "%s", name);
	out_number("vis", " vis %" PRIu64, attr_number(a[SOVIA_A_DEVICE_VIS]));
	out_number("cqs", " cqs %" PRIu64, attr_number(a[SOVIA_A_DEVICE_CQS]));
	if (attr_number(a[SOVIA_A_DEVICE_STUCK])) {
		out_text(" ");
		out_colored(OUT_BAD, "state", "%s", "STUCK");
		out_number("stuck", " %" PRIu64, attr_number(a[SOVIA_A_DEVICE_STUCK]));
	}
	show_ports(name);
	out_end();
	return MNL_CB_OK;
}

static int show(int argc, char **argv)
{
	(void)argv;
	if (argc)
		return usage(help);
	if (netns_mount_sys())
		return EXIT_FAILED;
	return show_each(SOVIA_CMD_DEVICE_GET, SOVIA_A_DEVICE, show_device) ?: out_finish();
}

int device_main(int argc, char **argv)
{
	static const struct command commands[] = { { "show", show }, { "list", show }, {} };

	return run_command(commands, help, argc, argv);
}

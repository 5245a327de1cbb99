// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia rule show|replace|flush */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/sovia.h>
#include <stdlib.h>
#include <string.h>
#include "netlink.h"
#include "rule.h"
#include "sovia.h"

/* Of a request: more than SOVIA_RULES_MAX rules with all their attributes. */
#define REQUEST_MAX (SOVIA_RULES_MAX * 192)

static int show_attribute(const struct nlattr *attr, void *data)
{
	const struct sovia_options *options = data;

	return mnl_attr_get_type(attr) == SOVIA_A_RULE ? rule_show(attr, options->hits) : MNL_CB_OK;
}

static int show_message(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), show_attribute, data);
}

static int show(const struct sovia_options *options)
{
	struct netlink_error error;
	char buf[64];

	if (netlink_request(netlink_begin(buf, SOVIA_CMD_RULE_GET, NLM_F_DUMP), show_message,
			    (void *)options, &error) == 0)
		return 0;
	fprintf(stderr, "sovia: %s\n", error.text);
	return EXIT_FAILED;
}

static int replace_by(struct rule_list *list)
{
	struct netlink_error error;

	if (netlink_request(list->nlh, NULL, NULL, &error) == 0)
		return 0;
	if (error.offset)
		rule_complain(list, error.offset, error.text);
	else
		fprintf(stderr, "sovia: %s\n", error.text);
	return EXIT_FAILED;
}

static struct rule_list *new_list(const char *name)
{
	struct rule_list *list = calloc(1, sizeof(*list));
	void *buf = calloc(1, REQUEST_MAX);

	if (!list || !buf) {
		fprintf(stderr, "sovia: %s\n", strerror(ENOMEM));
		exit(EXIT_FAILED);
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

static int replace(const char *name)
{
	bool standard = strcmp(name, "-") == 0;
	struct rule_list *list;
	FILE *file = stdin;
	int status;

	if (!standard)
		file = fopen(name, "re");
	if (!file) {
		fprintf(stderr, "sovia: %s: %s\n", name, strerror(errno));
		return EXIT_FAILED;
	}
	list = new_list(standard ? "standard input" : name);
	status = rule_read(list, file) == 0 ? replace_by(list) : EXIT_FAILED;
	free_list(list);
	if (!standard)
		fclose(file);
	return status;
}

static int flush(void)
{
	struct rule_list *list = new_list("");
	int status = replace_by(list);

	free_list(list);
	return status;
}

int sovia_rule_main(const struct sovia_options *options, int argc, char **argv)
{
	if (argc == 0 || (argc == 1 && sovia_abbreviates(argv[0], "show")))
		return show(options);
	if (argc <= 2 && sovia_abbreviates(argv[0], "replace"))
		return replace(argc == 2 ? argv[1] : "-");
	if (argc == 1 && sovia_abbreviates(argv[0], "flush"))
		return flush();
	return sovia_usage();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Reads counters and histograms. */
#include <linux/genetlink.h>
#include <stdio.h>
#include <string.h>
#include "attrs.h"
#include "netlink.h"
#include "sovia.h"
#include "stat.h"

static const enum mnl_attr_data_type stat_types[SOVIA_A_STAT_MAX + 1] = {
	[SOVIA_A_STAT_NAME]	= MNL_TYPE_NUL_STRING,
	[SOVIA_A_STAT_VALUE]	= MNL_TYPE_U64,
};
static const struct attr_set stat_set = ATTR_SET(stat_types);

static const enum mnl_attr_data_type hist_types[SOVIA_A_HIST_MAX + 1] = {
	[SOVIA_A_HIST_NAME]	= MNL_TYPE_NUL_STRING,
	[SOVIA_A_HIST_SUM]	= MNL_TYPE_U64,
};
static const struct attr_set hist_set = ATTR_SET(hist_types);

static int take_stat(struct stats *stats, const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_STAT_MAX + 1] = {};
	struct stat_value *value = &stats->values[stats->count];

	if (attrs_parse(nest, &stat_set, a) < 0)
		return MNL_CB_ERROR;
	if (stats->count == STATS_MAX)
		return MNL_CB_OK;
	snprintf(value->name, sizeof(value->name), "%s", attr_text(a[SOVIA_A_STAT_NAME]));
	value->value = attr_number(a[SOVIA_A_STAT_VALUE]);
	stats->count++;
	return MNL_CB_OK;
}

static int take_hist(struct stats *stats, const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_HIST_MAX + 1] = {};
	struct stat_hist *hist = &stats->hists[stats->hist_count];
	const struct nlattr *buckets;

	if (attrs_parse(nest, &hist_set, a) < 0)
		return MNL_CB_ERROR;
	buckets = a[SOVIA_A_HIST_BUCKETS];
	if (stats->hist_count == HISTS_MAX || !buckets ||
	    mnl_attr_get_payload_len(buckets) != sizeof(hist->buckets))
		return MNL_CB_OK;
	snprintf(hist->name, sizeof(hist->name), "%s", attr_text(a[SOVIA_A_HIST_NAME]));
	memcpy(hist->buckets, mnl_attr_get_payload(buckets), sizeof(hist->buckets));
	hist->sum = attr_number(a[SOVIA_A_HIST_SUM]);
	stats->hist_count++;
	return MNL_CB_OK;
}

static int take_attribute(const struct nlattr *attr, void *data)
{
	struct stats *stats = data;

	switch (mnl_attr_get_type(attr)) {
	case SOVIA_A_STAT:
		return take_stat(stats, attr);
	case SOVIA_A_HIST:
		return take_hist(stats, attr);
	case SOVIA_A_CPU:
		stats->cpu = attr_number(attr);
		return MNL_CB_OK;
	default:
		return MNL_CB_OK;
	}
}

static int take_message(const struct nlmsghdr *nlh, struct stats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->cpu = -1;
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), take_attribute, stats);
}

static int take_all(const struct nlmsghdr *nlh, void *data)
{
	return take_message(nlh, data);
}

static int request(uint16_t flags, mnl_cb_t each, void *data)
{
	struct netlink_error error;
	char buf[64];

	if (netlink_request(netlink_begin(buf, SOVIA_CMD_STAT_GET, flags), each, data, &error) == 0)
		return 0;
	return complain("%s", error.text);
}

/* The sums.  Returns the exit status. */
int stats_read(struct stats *stats)
{
	return request(NLM_F_ACK, take_all, stats);
}

static int each_cpu(const struct nlmsghdr *nlh, void *data)
{
	int (**show)(const struct stats *stats) = data;
	static struct stats stats;
	int ret = take_message(nlh, &stats);

	return ret < 0 ? ret : (*show)(&stats);
}

/* @show returns MNL_CB_*.  Returns the exit status. */
int stats_each_cpu(int (*show)(const struct stats *stats))
{
	return request(NLM_F_DUMP, each_cpu, &show);
}

/* The counter, or NULL. */
const struct stat_value *stats_find(const struct stats *stats, const char *name)
{
	unsigned int i;

	for (i = 0; i < stats->count; i++)
		if (strcmp(stats->values[i].name, name) == 0)
			return &stats->values[i];
	return NULL;
}

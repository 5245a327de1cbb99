// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia stat show | value | percpu | histogram | prometheus */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "attrs.h"
#include "out.h"
#include "sovia.h"
#include "stat.h"

static const char help[] =
	"Usage: sovia [-j] [-o] stat [show] [-i SECONDS] [NAME...]\n"
	"       sovia [-j] stat value NAME...\n"
	"       sovia [-j] stat percpu [NAME...]\n"
	"       sovia [-j] [-o] stat histogram [NAME...]\n"
	"       sovia stat prometheus\n"
	"\n"
	"  -i SECONDS    how much is added in each interval, until it is interrupted\n"
	"\n"
	"value prints the values alone, one a line; prometheus prints for node_exporter's text\n"
	"collector.  Histograms are counted after \"sovia set histograms 1\".\n";

/* The counters that are wanted: none of them means all. */
static int name_count;
static char **names;

static bool is_wanted(const char *name)
{
	int i;

	for (i = 0; i < name_count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return name_count == 0;
}

/* Returns the exit status. */
static int check_names(const struct stats *stats)
{
	int i, status = 0;

	for (i = 0; i < name_count; i++)
		if (!stats_find(stats, names[i]))
			status = complain("no counter %s", names[i]);
	return status;
}

/* Records of several lines have an empty line between them. */
static void end_paragraph(void)
{
	if (!options.oneline)
		out_text("\n");
}

static void show_values(const struct stats *stats, const struct stats *before)
{
	unsigned int i, shown = 0;
	uint64_t value;

	out_begin();
	for (i = 0; i < stats->count; i++) {
		if (!is_wanted(stats->values[i].name))
			continue;
		value = stats->values[i].value - (before ? before->values[i].value : 0);
		/* Of an interval, what has not changed is of no interest. */
		if (before && !value && !options.json)
			continue;
		/* A counter is a record, but with others those of an interval are one. */
		if (shown++ && before)
			out_break();
		out_text("%-24s", stats->values[i].name);
		out_number(stats->values[i].name, before ? "%" PRIu64 : "%" PRIu64 "\n", value);
	}
	if (before && shown)
		end_paragraph();
	if (before || options.json)
		out_end();
}

static int show_intervals(struct stats *stats, unsigned int seconds)
{
	static struct stats before;
	int status = 0;

	while (!status) {
		before = *stats;
		sleep(seconds);
		status = stats_read(stats);
		if (!status)
			show_values(stats, &before);
		out_now();
	}
	return status;
}

/* Returns the interval in seconds, 0 without one, or -1. */
static int take_interval(int *argc, char ***argv)
{
	char *rest;
	long seconds;

	if (*argc < 1 || strcmp((*argv)[0], "-i") != 0)
		return 0;
	if (*argc < 2)
		return -1;
	seconds = strtol((*argv)[1], &rest, 10);
	if (*rest || seconds < 1 || seconds > 86400)
		return -1;
	*argc -= 2;
	*argv += 2;
	return seconds;
}

static int show(int argc, char **argv)
{
	static struct stats stats;
	int seconds = take_interval(&argc, &argv);
	int status;

	if (seconds < 0)
		return usage(help);
	name_count = argc;
	names = argv;
	status = stats_read(&stats) ?: check_names(&stats);
	if (status)
		return status;
	if (seconds)
		return show_intervals(&stats, seconds);
	show_values(&stats, NULL);
	return out_finish();
}

static int value(int argc, char **argv)
{
	static struct stats stats;
	int i, status;

	if (!argc)
		return usage(help);
	name_count = argc;
	names = argv;
	status = stats_read(&stats) ?: check_names(&stats);
	if (status)
		return status;
	out_begin();
	for (i = 0; i < argc; i++)
		out_number(argv[i], "%" PRIu64 "\n", stats_find(&stats, argv[i])->value);
	if (options.json)
		out_end();
	return out_finish();
}

static int show_cpu(const struct stats *stats)
{
	unsigned int i;

	out_begin();
	out_number("cpu", "cpu %" PRIu64, stats->cpu);
	for (i = 0; i < stats->count; i++)
		if (is_wanted(stats->values[i].name) && (options.json || stats->values[i].value)) {
			out_text(" %s", stats->values[i].name);
			out_number(stats->values[i].name, " %" PRIu64, stats->values[i].value);
		}
	out_end();
	return MNL_CB_OK;
}

static int percpu(int argc, char **argv)
{
	static struct stats stats;

	name_count = argc;
	names = argv;
	return stats_read(&stats) ?: check_names(&stats) ?: stats_each_cpu(show_cpu) ?:
	       out_finish();
}

/* ---- histograms --------------------------------------------------------- */

#define BAR 40

/* Values of bucket @i begin here. */
static uint64_t bucket_first(unsigned int i)
{
	return i ? 1ULL << (i - 1) : 0;
}

static void show_bar(uint64_t count, uint64_t most)
{
	unsigned int i;

	out_text(" |");
	for (i = 0; i < BAR && most && count * BAR > i * most; i++)
		out_text("@");
}

static void show_bucket(const struct stat_hist *hist, unsigned int i, uint64_t most)
{
	out_break();
	out_nest_begin();
	out_number("from", "%12" PRIu64 " ", bucket_first(i));
	out_number("count", "%12" PRIu64, hist->buckets[i]);
	show_bar(hist->buckets[i], most);
	out_nest_end();
}

static void show_hist(const struct stat_hist *hist)
{
	unsigned int i, first = SOVIA_HIST_BUCKETS, last = 0;
	uint64_t most = 0;

	for (i = 0; i < SOVIA_HIST_BUCKETS; i++) {
		if (!hist->buckets[i])
			continue;
		if (first == SOVIA_HIST_BUCKETS)
			first = i;
		last = i;
		if (hist->buckets[i] > most)
			most = hist->buckets[i];
	}
	out_begin();
	out_string("name", "%s", hist->name);
	if (options.json)
		out_number("sum", "%" PRIu64, hist->sum);
	out_list_begin("buckets");
	for (i = first; i <= last; i++)
		show_bucket(hist, i, most);
	out_list_end();
	end_paragraph();
	out_end();
}

static bool has_hist(const struct stats *stats, const char *name)
{
	unsigned int i;

	for (i = 0; i < stats->hist_count; i++)
		if (strcmp(stats->hists[i].name, name) == 0)
			return true;
	return false;
}

static int histogram(int argc, char **argv)
{
	static struct stats stats;
	int status = stats_read(&stats), named;
	unsigned int i;

	name_count = argc;
	names = argv;
	if (status)
		return status;
	if (!stats.hist_count)
		return complain("none have been counted: sovia set histograms 1");
	for (named = 0; named < argc; named++)
		if (!has_hist(&stats, argv[named]))
			status = complain("no histogram %s", argv[named]);
	if (status)
		return status;
	for (i = 0; i < stats.hist_count; i++)
		if (is_wanted(stats.hists[i].name))
			show_hist(&stats.hists[i]);
	return out_finish();
}

/* ---- Prometheus --------------------------------------------------------- */

static void export_hist(const struct stat_hist *hist)
{
	uint64_t count = 0;
	unsigned int i;

	printf("# TYPE sovia_%s histogram\n", hist->name);
	for (i = 0; i < SOVIA_HIST_BUCKETS - 1; i++) {
		count += hist->buckets[i];
		printf("sovia_%s_bucket{le=\"%" PRIu64 "\"} %" PRIu64 "\n", hist->name,
		       bucket_first(i + 1) - 1, count);
	}
	count += hist->buckets[i];
	printf("sovia_%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", hist->name, count);
	printf("sovia_%s_sum %" PRIu64 "\n", hist->name, hist->sum);
	printf("sovia_%s_count %" PRIu64 "\n", hist->name, count);
}

static int prometheus(int argc, char **argv)
{
	static struct stats stats;
	unsigned int i;
	int status;

	(void)argv;
	if (argc || options.json)
		return usage(help);
	status = stats_read(&stats);
	if (status)
		return status;
	for (i = 0; i < stats.count; i++)
		printf("# TYPE sovia_%s_total counter\nsovia_%s_total %" PRIu64 "\n",
		       stats.values[i].name, stats.values[i].name, stats.values[i].value);
	for (i = 0; i < stats.hist_count; i++)
		export_hist(&stats.hists[i]);
	return fflush(stdout) || ferror(stdout) ? EXIT_FAILED : 0;
}

int stat_main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "show", show }, { "list", show }, { "value", value }, { "percpu", percpu },
		{ "histogram", histogram }, { "prometheus", prometheus }, {}
	};

	return run_command(commands, help, argc, argv);
}

// SPDX-License-Identifier: GPL-2.0-only
/* Counts of the module's objects: see objcount.h. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include "debugfs.h"
#include "objcount.h"

DEFINE_PER_CPU(struct sovia_objects, sovia_objects);

static long (*pages_out)(void);

static const char * const object_names[SOVIA_OBJECTS] = {
	[SOVIA_OBJECT_sockets]		= "sockets",
	[SOVIA_OBJECT_connections]	= "connections",
	[SOVIA_OBJECT_tenants]		= "tenants",
	[SOVIA_OBJECT_charges]		= "charges",
	[SOVIA_OBJECT_links]		= "links",
	[SOVIA_OBJECT_peers]		= "peers",
	[SOVIA_OBJECT_anchors]		= "anchors",
	[SOVIA_OBJECT_unreached]	= "unreached",
	[SOVIA_OBJECT_requests]		= "requests",
	[SOVIA_OBJECT_loop_vis]		= "loop_vis",
	[SOVIA_OBJECT_clan_vis]		= "clan_vis",
	[SOVIA_OBJECT_verbs_vis]	= "verbs_vis",
	[SOVIA_OBJECT_stuck_vis]	= "stuck_vis",
	[SOVIA_OBJECT_receives]		= "receives",
	[SOVIA_OBJECT_mappings]		= "mappings",
};

static long object_count(enum sovia_object what)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(sovia_objects, cpu).count[what]);
	return sum;
}

static int objects_show(struct seq_file *seq, void *unused)
{
	int i;

	for (i = 0; i < SOVIA_OBJECTS; i++)
		seq_printf(seq, "%s %ld\n", object_names[i], object_count(i));
	if (pages_out)
		seq_printf(seq, "pages %ld\n", pages_out());
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(objects);

/**
 * sovia_objects_count_pages() - register how to count pages of a provider's pools
 * @count: counts them; process context
 *
 * Context: module init.
 */
void sovia_objects_count_pages(long (*count)(void))
{
	pages_out = count;
}

/**
 * sovia_objects_init() - create the file
 *
 * Context: module init, after sovia_debugfs_init().
 * Return: 0.
 */
int sovia_objects_init(void)
{
	debugfs_create_file("objects", 0444, sovia_debugfs_dir(), NULL, &objects_fops);
	return 0;
}

/**
 * sovia_objects_exit() - warn about objects that were not freed
 *
 * Context: module exit; everything else has ended.
 */
void sovia_objects_exit(void)
{
	int i;

	for (i = 0; i < SOVIA_OBJECTS; i++)
		WARN(object_count(i), "%s: %ld %s left\n", KBUILD_MODNAME, object_count(i),
		     object_names[i]);
}

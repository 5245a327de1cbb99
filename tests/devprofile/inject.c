// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors on demand: "DEVICE WORD" written to /sys/kernel/debug/devprofile/inject.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "devprofile.h"

#define DP_LINE_LEN	64

static struct dentry *dir;

static void dispatch(struct dp_dev *dp, enum ib_event_type type)
{
	struct ib_event event = {
		.device = dp->ibdev, .event = type, .element.port_num = 1,
	};

	ib_dispatch_event(&event);
}

/* All ports of the software devices are port 1.  Returns 0 or -EINVAL. */
static int inject(struct dp_dev *dp, const char *word)
{
	static const struct {
		const char		*word;
		enum ib_event_type	type;
	} events[] = {
		{ "port_err", IB_EVENT_PORT_ERR },
		{ "port_active", IB_EVENT_PORT_ACTIVE },
		{ "gid_change", IB_EVENT_GID_CHANGE },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		if (!strcmp(word, events[i].word)) {
			dispatch(dp, events[i].type);
			return 0;
		}
	if (!strcmp(word, "fatal") || !strcmp(word, "fatal-silent")) {
		WRITE_ONCE(dp->dead, true);
		if (!strcmp(word, "fatal"))
			dispatch(dp, IB_EVENT_DEVICE_FATAL);
		return 0;
	}
	if (!strcmp(word, "cq_err"))
		return dp_fail_cq(dp);
	if (!strcmp(word, "cmd_timeout")) {
		WRITE_ONCE(dp->slow, true);
		return 0;
	}
	if (!strcmp(word, "unknown_port")) {
		WRITE_ONCE(dp->unknown_port, true);
		return 0;
	}
	return -EINVAL;
}

static ssize_t inject_write(struct file *file, const char __user *from, size_t size, loff_t *pos)
{
	char line[DP_LINE_LEN], *word = line, *name;
	struct dp_dev *dp;
	int err;

	if (size >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, size))
		return -EFAULT;
	line[size] = '\0';
	strim(line);
	name = strsep(&word, " ");
	if (!word)
		return -EINVAL;
	dp = dp_dev_named(name);
	if (!dp)
		return -ENODEV;
	err = inject(dp, word);
	return err ?: size;
}

static const struct file_operations inject_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = inject_write,
};

/**
 * dp_inject_init() - take errors to inject
 *
 * Context: module init.
 */
void dp_inject_init(void)
{
	dir = debugfs_create_dir("devprofile", NULL);
	debugfs_create_file("inject", 0200, dir, NULL, &inject_fops);
}

/**
 * dp_inject_exit() - take none any more
 *
 * Context: module exit.
 */
void dp_inject_exit(void)
{
	debugfs_remove(dir);
}

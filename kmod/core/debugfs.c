// SPDX-License-Identifier: GPL-2.0-only
/* The module's debugfs directory, for tests and debugging. */
#include <linux/debugfs.h>
#include "debugfs.h"

static struct dentry *folder;

/**
 * sovia_debugfs_dir() - the module's debugfs directory
 *
 * Context: process, between sovia_debugfs_init() and sovia_debugfs_exit().
 * Return: the directory; an error pointer without debugfs, which debugfs functions
 * accept.
 */
struct dentry *sovia_debugfs_dir(void)
{
	return folder;
}

/**
 * sovia_debugfs_init() - create the directory
 *
 * Context: module init.
 * Return: 0.
 */
int sovia_debugfs_init(void)
{
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
	return 0;
}

/**
 * sovia_debugfs_exit() - remove the directory and its files
 *
 * No file of it is in use afterwards.
 *
 * Context: module exit.
 */
void sovia_debugfs_exit(void)
{
	debugfs_remove_recursive(folder);
}

// SPDX-License-Identifier: GPL-2.0-only
/* The module's folder in debugfs, for what only tests and the curious look at. */
#include <linux/debugfs.h>
#include "debugfs.h"

static struct dentry *folder;

/**
 * sovia_debugfs_dir() - where the other files of the module put theirs
 *
 * Context: process, between sovia_debugfs_init() and sovia_debugfs_exit().
 * Return: the folder; an error pointer without debugfs, which debugfs' own calls
 * take as well.
 */
struct dentry *sovia_debugfs_dir(void)
{
	return folder;
}

/**
 * sovia_debugfs_init() - make the folder
 *
 * Context: module init.
 */
void sovia_debugfs_init(void)
{
	folder = debugfs_create_dir(KBUILD_MODNAME, NULL);
}

/**
 * sovia_debugfs_exit() - remove the folder and all that is in it
 *
 * No file of it is in use afterwards.
 *
 * Context: module exit.
 */
void sovia_debugfs_exit(void)
{
	debugfs_remove_recursive(folder);
}

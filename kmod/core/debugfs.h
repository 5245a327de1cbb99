/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _SOVIA_DEBUGFS_H
#define _SOVIA_DEBUGFS_H

struct dentry;

struct dentry *sovia_debugfs_dir(void);
int sovia_debugfs_init(void);
void sovia_debugfs_exit(void);

#endif /* _SOVIA_DEBUGFS_H */

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SOVIA_NETNS_H
#define SOVIA_NETNS_H

int netns_enter(const char *name);
int netns_mount_sys(void);

#endif

/* SPDX-License-Identifier: GPL-2.0-only */
/* /proc/net/sovia. */
#ifndef _SOVIA_PROC_H
#define _SOVIA_PROC_H

struct sovia_net;

int sovia_proc_net_init(struct sovia_net *snet);
void sovia_proc_net_exit(struct sovia_net *snet);

#endif /* _SOVIA_PROC_H */

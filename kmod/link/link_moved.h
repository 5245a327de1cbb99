/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of this host that are removed. */
#ifndef _SOVIA_LINK_MOVED_H
#define _SOVIA_LINK_MOVED_H

#include "link.h"

void sovia_link_moved(struct sovia_link *link);
int sovia_moved_init(void);
void sovia_moved_exit(void);

#endif /* _SOVIA_LINK_MOVED_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Links and their peers. */
#ifndef _SOVIA_LINK_PEER_H
#define _SOVIA_LINK_PEER_H

#include "link.h"

bool sovia_link_peer_ready(struct sovia_link *link);
bool sovia_link_peer_open(struct sovia_link *link);
int sovia_link_peer_init(void);

#endif /* _SOVIA_LINK_PEER_H */

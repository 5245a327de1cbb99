/* SPDX-License-Identifier: GPL-2.0-only */
/* Bounds of set-ups that may block. */
#ifndef _SOVIA_LINK_SLOT_H
#define _SOVIA_LINK_SLOT_H

#include "link.h"

bool sovia_slot_get(struct sovia_link *link, enum sovia_slot_kind kind);
void sovia_slot_put(struct sovia_link *link);
bool sovia_slot_peer_has_room(const struct sovia_net *snet, const struct in6_addr *remote);

#endif /* _SOVIA_LINK_SLOT_H */

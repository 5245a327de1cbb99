/* SPDX-License-Identifier: GPL-2.0-only */
/* What kernels say to each other. */
#ifndef _SOVIA_PEER_MEET_H
#define _SOVIA_PEER_MEET_H

#include "peer.h"
#include "rdv_wire.h"

void sovia_peer_offer(const struct sovia_net *snet, const struct sovia_pair *pair,
		      struct sovia_offer *offer, u16 flags);
void sovia_peer_moved(struct sovia_peer *peer);
void sovia_peer_doubt(struct sovia_peer *peer);
void sovia_peer_message(struct sovia_anchor *anchor);
void sovia_peer_lost(struct sovia_anchor *anchor);

#endif /* _SOVIA_PEER_MEET_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* How kernels become peers of each other, and how that ends. */
#ifndef _SOVIA_PEER_PAIR_H
#define _SOVIA_PEER_PAIR_H

#include "peer.h"

void sovia_peer_anew(struct sovia_peer *peer);
void sovia_peer_leave(struct sovia_peer *peer, enum sovia_peer_state state);
void sovia_peer_adopt(struct sovia_peer *peer, const struct sovia_agreement *agreed);
void sovia_peer_paired(struct sovia_peer *peer, struct sovia_anchor *anchor);
void sovia_peer_joined(struct sovia_peer *peer, bool active);
void sovia_peer_attempt_over(struct sovia_peer *peer, unsigned long delay, int err);
bool sovia_peer_check_key(struct sovia_peer *peer);
void sovia_peers_check_keys(struct sovia_net *snet);

#endif /* _SOVIA_PEER_PAIR_H */

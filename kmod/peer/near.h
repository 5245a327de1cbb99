/* SPDX-License-Identifier: GPL-2.0-only */
/* Two namespaces of one kernel. */
#ifndef _SOVIA_NEAR_H
#define _SOVIA_NEAR_H

#include "core/net.h"
#include "core/provider.h"

struct sovia_anchor;
struct sovia_peer;

void sovia_near_answers(struct sovia_net *snet, bool answers);
bool sovia_near_any(const struct sovia_net *snet);
void sovia_near_announce(struct sovia_anchor *anchor, struct sovia_peer *peer, const u8 *nonce);
bool sovia_near_announced(const struct sovia_anchor *anchor, const struct sovia_peer *peer);
void sovia_near_withdraw(struct sovia_anchor *anchor);
bool sovia_near_meet(struct sovia_anchor *anchor, const u8 *nonce);
void sovia_near_join(struct sovia_peer *peer, struct sovia_anchor *anchor);
void sovia_near_part(struct sovia_peer *peer);
struct sovia_net *sovia_near_twin(const struct sovia_peer *peer, struct sovia_pair *pair);
struct net *sovia_near_beyond(const struct sovia_peer *peer, const struct sovia_pair *own,
			      struct sovia_pair *pair);

#endif /* _SOVIA_NEAR_H */

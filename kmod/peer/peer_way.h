/* SPDX-License-Identifier: GPL-2.0-only */
/* How links reach a peer. */
#ifndef _SOVIA_PEER_WAY_H
#define _SOVIA_PEER_WAY_H

#include <linux/types.h>

struct kthread_work;
struct net;
struct sovia_clan_way;
struct sovia_net;
struct sovia_offer;
struct sovia_pair;
struct sovia_peer;
struct sovia_provider;
struct sovia_way;

void sovia_peer_ways_changed(struct kthread_work *work);
int sovia_peer_ways_init(void);
void sovia_peer_ways_exit(void);
void sovia_peer_offer_ways(const struct net *net, struct sovia_offer *offer);
bool sovia_peer_choose_way(const struct net *net, const struct sovia_offer *offer,
			   struct sovia_way *ours, struct sovia_clan_way *theirs);
void sovia_peer_take_way(const struct net *net, const struct sovia_offer *answer,
			 struct sovia_clan_way *theirs);
bool sovia_peer_has_device(struct net *net, const struct sovia_pair *pair);
bool sovia_peer_may_reach(struct sovia_net *snet, const struct sovia_pair *pair);
bool sovia_peer_lacks_way(const struct sovia_peer *peer);
const struct sovia_provider *sovia_peer_provider(const struct sovia_peer *peer);

#endif /* _SOVIA_PEER_WAY_H */

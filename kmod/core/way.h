/* SPDX-License-Identifier: GPL-2.0-only */
/* Where a kernel is in shared memory, for those that negotiate it. */
#ifndef _SOVIA_CLAN_WAY_H
#define _SOVIA_CLAN_WAY_H

#include <linux/types.h>

struct net;
struct notifier_block;

/**
 * struct sovia_clan_way - a node of a memory
 * @uuid: of the memory
 * @number: of the node
 * @generation: of the node; 0: there is none
 */
struct sovia_clan_way {
	u8	uuid[16];
	u32	number;
	u32	generation;
};

int sovia_clan_way_watch(struct notifier_block *nb);
void sovia_clan_way_unwatch(struct notifier_block *nb);
unsigned int sovia_clan_ways(const struct net *net, struct sovia_clan_way *ways,
			     unsigned int max);
bool sovia_clan_way_open(const struct net *net, const struct sovia_clan_way *theirs);
bool sovia_clan_way_meets(const struct net *net, const struct sovia_clan_way *theirs,
			  struct sovia_clan_way *ours);

#endif /* _SOVIA_CLAN_WAY_H */

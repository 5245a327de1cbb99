/* SPDX-License-Identifier: GPL-2.0-only */
/* The pages of a node's own messages, lent to the nodes that read them. */
#ifndef _SOVIA_CLAN_POOL_H
#define _SOVIA_CLAN_POOL_H

#include <linux/spinlock.h>
#include <linux/types.h>
#include <sovia/clan.h>

/**
 * struct sovia_clan_pool - the pages of a node's own messages
 * @lock: protects what follows; innermost, bottom halves off
 * @pages: how many there are
 * @count: pages in @free
 * @first: index of the first one in @free
 * @free: ring of those that are lent to no node, the one that is free for the longest time first
 * @reader: by page: to which node it is lent, plus 1; or 0
 * @lent: by node: how many
 */
struct sovia_clan_pool {
	spinlock_t	lock;	/* see above */
	u32		pages;
	u32		count;
	u32		first;
	u32		*free;
	u8		*reader;
	u32		lent[SOVIA_CLAN_NODES_MAX];
};

int sovia_clan_pool_init(struct sovia_clan_pool *pool, u32 pages);
void sovia_clan_pool_exit(struct sovia_clan_pool *pool);
int sovia_clan_pool_lend(struct sovia_clan_pool *pool, u32 node, u32 count, u32 *cookies);
int sovia_clan_pool_return(struct sovia_clan_pool *pool, u32 node, const u32 *cookies,
			   u32 count);
bool sovia_clan_pool_has_plenty(const struct sovia_clan_pool *pool, u32 node);
void sovia_clan_pool_reclaim(struct sovia_clan_pool *pool, u32 node);

#endif /* _SOVIA_CLAN_POOL_H */

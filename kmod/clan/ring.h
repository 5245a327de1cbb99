/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What goes from one node to another in shared memory (Documentation/clan.rst).  Knows of
 * memory alone: neither of devices nor of VIs.
 */
#ifndef _SOVIA_CLAN_RING_H
#define _SOVIA_CLAN_RING_H

#include <linux/types.h>
#include <sovia/clan.h>

/* Longer messages are in pages.  A parameter in the lab's builds (vi_bench.c). */
#if IS_ENABLED(CONFIG_SOVIA_FAULT)
extern unsigned int sovia_clan_inline;
#else
#define sovia_clan_inline	SOVIA_CLAN_INLINE
#endif

/**
 * struct sovia_clan_geometry - sizes of the memory, as they were when it was found
 * @nodes: how many sections there are
 * @ring: entries of a ring
 * @pool: pages of a pool
 * @uuid: names the memory
 */
struct sovia_clan_geometry {
	u32	nodes;
	u32	ring;
	u32	pool;
	u8	uuid[16];
};

/**
 * struct sovia_clan_area - where an area is
 * @words: its indices
 * @cookies: its ring of cookies
 * @ring: its ring of entries
 */
struct sovia_clan_area {
	struct sovia_clan_words	*words;
	__le32			*cookies;
	struct sovia_clan_entry	*ring;
};

/**
 * struct sovia_clan_out - the writer's end
 * @own: its area for the reader
 * @theirs: the reader's area for it
 * @size: entries of the ring
 * @write: entries written
 * @told: those that the reader may know of
 * @read: those that it has taken, as far as the writer knows
 * @returned: cookies taken back
 *
 * The owner serialises all calls for it.  What the reader writes is not trusted.
 */
struct sovia_clan_out {
	struct sovia_clan_area	own;
	struct sovia_clan_area	theirs;
	u32			size;
	u32			write;
	u32			told;
	u32			read;
	u32			returned;
};

/**
 * struct sovia_clan_in - the reader's end
 * @own: its area for the writer
 * @theirs: the writer's area for it
 * @size: entries of the ring
 * @read: entries taken
 * @told: those that the writer may know of
 * @write: entries written, as far as the reader knows
 * @returned: cookies given back
 *
 * The owner serialises all calls for it.  What the writer writes is not trusted.
 */
struct sovia_clan_in {
	struct sovia_clan_area	own;
	struct sovia_clan_area	theirs;
	u32			size;
	u32			read;
	u32			told;
	u32			write;
	u32			returned;
};

int sovia_clan_check_header(const struct sovia_clan_header *shared, u64 size,
			    struct sovia_clan_geometry *geometry);
u64 sovia_clan_slot_at(const struct sovia_clan_geometry *geometry, u32 node);
u64 sovia_clan_area_at(const struct sovia_clan_geometry *geometry, u32 writer, u32 other);
u64 sovia_clan_pool_at(const struct sovia_clan_geometry *geometry, u32 node);
void sovia_clan_area_set(struct sovia_clan_area *area, void *at);

/* Where the server says whether a node is there. */
static inline const __le32 *sovia_clan_present(const void *memory, u32 node)
{
	return (const __le32 *)(memory + SOVIA_CLAN_PAGE) + node;
}

void sovia_clan_out_reset(struct sovia_clan_out *out);
int sovia_clan_out_look(struct sovia_clan_out *out);
int sovia_clan_out_room(struct sovia_clan_out *out);
bool sovia_clan_out_news(const struct sovia_clan_out *out);
struct sovia_clan_entry *sovia_clan_out_next(struct sovia_clan_out *out);
void sovia_clan_out_put(struct sovia_clan_out *out, const struct sovia_clan_entry *entry,
			u32 bytes);
bool sovia_clan_out_publish(struct sovia_clan_out *out);
int sovia_clan_out_wait(struct sovia_clan_out *out);
int sovia_clan_out_cookie(struct sovia_clan_out *out, u32 *cookie);

void sovia_clan_in_reset(struct sovia_clan_in *in);
int sovia_clan_in_take(struct sovia_clan_in *in, struct sovia_clan_entry *entry);
void sovia_clan_in_untake(struct sovia_clan_in *in);
void sovia_clan_in_return(struct sovia_clan_in *in, u32 cookie);
bool sovia_clan_in_publish(struct sovia_clan_in *in);
void sovia_clan_in_sleep(struct sovia_clan_in *in);
bool sovia_clan_in_news(const struct sovia_clan_in *in);

#endif /* _SOVIA_CLAN_RING_H */

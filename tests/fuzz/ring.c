// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of kmod/clan/ring.c: both ends of a ring in memory that may change before each read.
 *
 * Whatever is in the memory, no end leaves its bounds or believes more than the ring can hold.
 * While nothing else has written to it, entries and cookies arrive once and in order, and an end
 * that waits is woken.
 */
#include "input.h"
#include "../../kmod/clan/ring.h"

#define RING	32u
#define AREA	sovia_clan_area(RING)

int fuzz_skbs;
bool fuzz_no_memory(void) { return false; }

static struct input in;
static u8 *areas[2];
static bool hostile, honest;
/* What is under way, while the memory is honest. */
static u32 put, taken, given, back;
static bool reader_sleeps, writer_waits;
/* It is woken when more than that have been taken. */
static u32 enough;

/* The memory is somebody else's as well. */
void fuzz_shared(void)
{
	u8 how;
	u32 at;

	if (!hostile)
		return;
	how = take8(&in);
	if (how & 3 || !in.left)
		return;
	honest = false;
	at = (take16(&in) % (AREA / 4)) * 4;
	/* Mostly the words: most of the rest is data. */
	if (how & 4)
		at %= 320;
	*(u32 *)(areas[how >> 3 & 1] + at) = how & 16 ? take32(&in) : take8(&in);
}

static void do_put(struct sovia_clan_out *out, bool publish)
{
	struct sovia_clan_entry entry = { .kind = SOVIA_CLAN_DATA };
	int room = sovia_clan_out_room(out);
	u32 len = take8(&in);
	bool rings;

	MUST(room == 0 || room == 1 || room == -EPROTO);
	MUST(!honest || room == (put - taken < RING) || !room);
	if (room == 1) {
		entry.len = cpu_to_le32(len);
		entry.imm = cpu_to_le32(put);
		memset(entry.data, put, min(len, SOVIA_CLAN_INLINE));
		sovia_clan_out_put(out, &entry, sizeof(entry));
		put++;
	}
	if (!publish)
		return;
	rings = sovia_clan_out_publish(out);
	if (honest && reader_sleeps && room == 1)
		MUST(rings);
	if (rings)
		reader_sleeps = false;
}

static void do_take(struct sovia_clan_in *reader)
{
	/* On the heap, for the sanitizer. */
	struct sovia_clan_entry *entry = malloc(sizeof(*entry));
	u32 len, i;
	int got = sovia_clan_in_take(reader, entry);

	MUST(got == 0 || got == 1 || (got == -EPROTO && !honest));
	if (got == 1 && honest) {
		len = le32_to_cpu(entry->len);
		MUST(le32_to_cpu(entry->imm) == taken);
		for (i = 0; i < min(len, SOVIA_CLAN_INLINE) && len <= SOVIA_CLAN_INLINE; i++)
			MUST(entry->data[i] == (u8)taken);
		taken++;
	}
	free(entry);
}

static void do_publish(struct sovia_clan_in *reader)
{
	bool more = (s32)(reader->read - enough) > 0, rings = sovia_clan_in_publish(reader);

	if (honest && writer_waits && more)
		MUST(rings);
	if (rings)
		writer_waits = false;
}

static void do_cookie(struct sovia_clan_out *out)
{
	u32 cookie;
	int got = sovia_clan_out_cookie(out, &cookie);

	MUST(got == 0 || got == 1 || (got == -EPROTO && !honest));
	if (got == 1 && honest) {
		MUST(cookie == back);
		back++;
	}
}

static void step(struct sovia_clan_out *out, struct sovia_clan_in *reader)
{
	int err;

	switch (take8(&in) % 8) {
	case 0:
		do_put(out, true);
		break;
	case 1:
		do_put(out, false);
		break;
	case 2:
	case 3:
		do_take(reader);
		break;
	case 4:
		do_publish(reader);
		break;
	case 5:
		/* A reader sleeps when it has taken all. */
		sovia_clan_in_sleep(reader);
		reader_sleeps = !sovia_clan_in_news(reader);
		break;
	case 6:
		if (out->write - out->read < RING)
			break;
		err = sovia_clan_out_wait(out);
		MUST(err == 0 || err == 1 || (err == -EPROTO && !honest));
		writer_waits = !err;
		enough = out->read + (out->write - out->read) / 2;
		break;
	case 7:
		if (given - back < SOVIA_CLAN_COOKIES)
			sovia_clan_in_return(reader, given++);
		do_cookie(out);
		break;
	}
	MUST(out->write - out->read <= RING);
	MUST(reader->write - reader->read <= RING);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct sovia_clan_out out = { .size = RING };
	struct sovia_clan_in reader = { .size = RING };
	struct sovia_clan_geometry geometry;

	in = (struct input){ .data = data, .left = size };
	hostile = take8(&in) & 1;
	honest = true;
	put = 0;
	taken = 0;
	given = 0;
	back = 0;
	reader_sleeps = false;
	writer_waits = false;
	areas[0] = aligned_alloc(64, AREA);
	areas[1] = aligned_alloc(64, AREA);
	memset(areas[0], 0, AREA);
	memset(areas[1], 0, AREA);
	if (size >= sizeof(struct sovia_clan_header) &&
	    !sovia_clan_check_header((const void *)data, ~0ull, &geometry)) {
		MUST(sovia_clan_pool_at(&geometry, geometry.nodes - 1) +
		     (u64)geometry.pool * SOVIA_CLAN_PAGE ==
		     sovia_clan_size(geometry.nodes, geometry.ring, geometry.pool));
	}
	sovia_clan_area_set(&out.own, areas[0]);
	sovia_clan_area_set(&out.theirs, areas[1]);
	reader.own = out.theirs;
	reader.theirs = out.own;
	sovia_clan_out_reset(&out);
	sovia_clan_in_reset(&reader);
	while (in.left)
		step(&out, &reader);
	free(areas[0]);
	free(areas[1]);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings in shared memory.
 *
 * Each word has one writer.  The other end may write anything into its own at any time, so
 * words and entries are read once, into private memory, and checked there; what an end knows
 * of its own part is private as well, and never read back.
 *
 *	writer						reader
 *	entry, then write		------------->	write, then entry
 *	read				<-------------	read, when it has copied the entry
 *	cookie, returned		<-------------	cookie, then returned, then read
 *
 * A word tells when its writer wants the doorbell (virtio's event index): it is rung only if
 * the other index goes past it.  Each end writes its index, then reads the other's word; or its
 * word, then the other's index.  With full barriers in between one of them sees the other
 * (Documentation/models/clan.pml).
 *
 * No locked instruction may touch the memory: a kernel with one processor leaves out the lock.
 */
#include <asm/barrier.h>
#include <asm/byteorder.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "ring.h"

/* ---- where things are --------------------------------------------------- */

static bool is_size(u32 value, u32 least, u32 most)
{
	return value >= least && value <= most && !(value & (value - 1));
}

/**
 * sovia_clan_check_header() - check the memory that a device has
 * @shared: its header
 * @size: bytes of it
 * @geometry: the result, valid on success only
 *
 * Context: any.
 * Return: 0, -ENODEV not ours, -EPROTONOSUPPORT another version, -ERANGE sizes that make no
 * sense, or that the memory has no room for.
 */
int sovia_clan_check_header(const struct sovia_clan_header *shared, u64 size,
			    struct sovia_clan_geometry *geometry)
{
	struct sovia_clan_header header;

	if (size < SOVIA_CLAN_PAGE)
		return -ENODEV;
	memcpy(&header, shared, sizeof(header));
	/* Of memory that may change no check is to be made twice. */
	barrier();
	if (memcmp(header.magic, SOVIA_CLAN_MAGIC, sizeof(header.magic)))
		return -ENODEV;
	if (le32_to_cpu(header.version) != SOVIA_CLAN_VERSION)
		return -EPROTONOSUPPORT;
	geometry->nodes = le32_to_cpu(header.nodes);
	geometry->ring = le32_to_cpu(header.ring);
	geometry->pool = le32_to_cpu(header.pool);
	memcpy(geometry->uuid, header.uuid, sizeof(geometry->uuid));
	if (geometry->nodes < 2 || geometry->nodes > SOVIA_CLAN_NODES_MAX ||
	    !is_size(geometry->ring, SOVIA_CLAN_RING_MIN, SOVIA_CLAN_RING_MAX) ||
	    !is_size(geometry->pool, SOVIA_CLAN_POOL_MIN, SOVIA_CLAN_POOL_MAX))
		return -ERANGE;
	return sovia_clan_size(geometry->nodes, geometry->ring, geometry->pool) <= size ? 0 :
											  -ERANGE;
}

/**
 * sovia_clan_slot_at() - where a node's struct sovia_clan_slot is
 * @geometry: of the memory
 * @node: its number
 *
 * Context: any.
 * Return: offset in the memory.
 */
u64 sovia_clan_slot_at(const struct sovia_clan_geometry *geometry, u32 node)
{
	return 2 * SOVIA_CLAN_PAGE +
	       node * sovia_clan_section(geometry->nodes, geometry->ring, geometry->pool);
}

/**
 * sovia_clan_area_at() - where an area is
 * @geometry: of the memory
 * @writer: whose section it is in
 * @other: the other node
 *
 * Context: any.
 * Return: offset in the memory.
 */
u64 sovia_clan_area_at(const struct sovia_clan_geometry *geometry, u32 writer, u32 other)
{
	return sovia_clan_slot_at(geometry, writer) + SOVIA_CLAN_PAGE +
	       other * sovia_clan_area(geometry->ring);
}

/**
 * sovia_clan_pool_at() - where a node's pool is
 * @geometry: of the memory
 * @node: its number
 *
 * Context: any.
 * Return: offset in the memory.
 */
u64 sovia_clan_pool_at(const struct sovia_clan_geometry *geometry, u32 node)
{
	return sovia_clan_area_at(geometry, node, geometry->nodes);
}

/**
 * sovia_clan_area_set() - set where an area is
 * @area: it
 * @at: its first byte
 *
 * Context: any.
 */
void sovia_clan_area_set(struct sovia_clan_area *area, void *at)
{
	area->words = at;
	area->cookies = at + SOVIA_CLAN_COOKIES_AT;
	area->ring = at + SOVIA_CLAN_PAGE;
}

/* ---- words ---------------------------------------------------------------- */

static void set_word(__le32 *word, u32 value)
{
	WRITE_ONCE(*word, cpu_to_le32(value));
}

static u32 get_word(const __le32 *word)
{
	return le32_to_cpu(READ_ONCE(*word));
}

static void publish_word(__le32 *word, u32 value)
{
	/* What was written before is seen by who sees it: pairs with observe_word(). */
	virt_store_release(word, cpu_to_le32(value));
}

static u32 observe_word(const __le32 *word)
{
	/* Pairs with publish_word(). */
	return le32_to_cpu(virt_load_acquire(word));
}

/* Has an index gone beyond @event, from @old to @now? */
static bool is_passed(u32 event, u32 old, u32 now)
{
	return now - event - 1 < now - old;
}

/* ---- the writer ----------------------------------------------------------- */

/**
 * sovia_clan_out_reset() - begin anew
 * @out: whose places and size are set
 *
 * Context: the reader does not look at it.
 */
void sovia_clan_out_reset(struct sovia_clan_out *out)
{
	out->write = 0;
	out->told = 0;
	out->read = 0;
	out->returned = 0;
	set_word(&out->own.words->space, -1);
	publish_word(&out->own.words->write, 0);
}

/**
 * sovia_clan_out_look() - look how far the reader is
 * @out: the writer
 *
 * Context: any.
 * Return: 0, or -EPROTO: it writes nonsense.
 */
int sovia_clan_out_look(struct sovia_clan_out *out)
{
	u32 read = observe_word(&out->theirs.words->read);

	if (read - out->read > out->write - out->read)
		return -EPROTO;
	out->read = read;
	return 0;
}

/**
 * sovia_clan_out_room() - is there room for an entry
 * @out: the writer
 *
 * Context: any.
 * Return: 1, 0 if not, or -EPROTO: the reader writes nonsense.
 */
int sovia_clan_out_room(struct sovia_clan_out *out)
{
	int err;

	if (out->write - out->read < out->size)
		return 1;
	err = sovia_clan_out_look(out);
	if (err)
		return err;
	return out->write - out->read < out->size;
}

/**
 * sovia_clan_out_news() - is there something that the writer should not leave for later
 * @out: the writer
 *
 * Room is for it to look for when it needs some.
 *
 * Context: any; a hint, if the owner's other calls are not excluded.
 * Return: true if the reader has returned cookies, or may write nonsense.
 */
bool sovia_clan_out_news(const struct sovia_clan_out *out)
{
	u32 known = READ_ONCE(out->read);

	return get_word(&out->theirs.words->returned) != READ_ONCE(out->returned) ||
	       get_word(&out->theirs.words->read) - known > READ_ONCE(out->write) - known;
}

/**
 * sovia_clan_out_next() - the next entry, for the writer to fill in; the reader learns of it later
 * @out: the writer; there is room
 *
 * Context: any.
 * Return: the entry, in the memory: not to be read.
 */
struct sovia_clan_entry *sovia_clan_out_next(struct sovia_clan_out *out)
{
	return &out->own.ring[out->write++ & (out->size - 1)];
}

/**
 * sovia_clan_out_put() - write an entry; the reader learns of it later
 * @out: the writer; there is room
 * @entry: what
 * @bytes: how many bytes of it have a meaning
 *
 * Context: any.
 */
void sovia_clan_out_put(struct sovia_clan_out *out, const struct sovia_clan_entry *entry,
			u32 bytes)
{
	memcpy(sovia_clan_out_next(out), entry, bytes);
}

/**
 * sovia_clan_out_publish() - let the reader have what was put
 * @out: the writer
 *
 * Context: any.
 * Return: true if the doorbell is to be rung.
 */
bool sovia_clan_out_publish(struct sovia_clan_out *out)
{
	u32 old = out->told;

	if (out->write == old)
		return false;
	publish_word(&out->own.words->write, out->write);
	out->told = out->write;
	/* Pairs with sovia_clan_in_sleep(). */
	virt_mb();
	return is_passed(get_word(&out->theirs.words->event), old, out->write);
}

/**
 * sovia_clan_out_wait() - have the doorbell rung when the reader has taken half of what it has
 * @out: the writer
 *
 * Context: any.
 * Return: 0, 1 if it has already, so that it will not ring, or -EPROTO.
 */
int sovia_clan_out_wait(struct sovia_clan_out *out)
{
	u32 read = out->read, half = (out->write - read) / 2;
	int err;

	set_word(&out->own.words->space, read + half);
	/* Pairs with sovia_clan_in_publish(). */
	virt_mb();
	err = sovia_clan_out_look(out);
	if (err)
		return err;
	return out->read - read > half;
}

/**
 * sovia_clan_out_cookie() - take a cookie back
 * @out: the writer
 * @cookie: set to it; which pages were lent to the reader is for the caller to know
 *
 * Context: any.
 * Return: 1, 0 if there is none, or -EPROTO.
 */
int sovia_clan_out_cookie(struct sovia_clan_out *out, u32 *cookie)
{
	u32 returned = observe_word(&out->theirs.words->returned);

	if (returned - out->returned > SOVIA_CLAN_COOKIES)
		return -EPROTO;
	if (returned == out->returned)
		return 0;
	*cookie = get_word(&out->theirs.cookies[out->returned % SOVIA_CLAN_COOKIES]);
	out->returned++;
	return 1;
}

/* ---- the reader ------------------------------------------------------------- */

/**
 * sovia_clan_in_reset() - begin anew
 * @in: whose places and size are set
 *
 * Context: the writer does not look at it.
 */
void sovia_clan_in_reset(struct sovia_clan_in *in)
{
	in->read = 0;
	in->told = 0;
	in->write = 0;
	in->returned = 0;
	set_word(&in->own.words->returned, 0);
	set_word(&in->own.words->event, 0);
	publish_word(&in->own.words->read, 0);
}

/* How many bytes of an entry to copy, by what it says of itself: no fewer than it needs. */
static u32 body_of(const struct sovia_clan_entry *entry)
{
	u32 len = le32_to_cpu(entry->len);

	/* Set-up is never in pages. */
	if (len <= (entry->kind == SOVIA_CLAN_DATA ? sovia_clan_inline : SOVIA_CLAN_INLINE))
		return len;
	return min(len / SOVIA_CLAN_PAGE + 1, SOVIA_CLAN_PAGES) * sizeof(*entry->cookie);
}

/**
 * sovia_clan_in_take() - take the next entry
 * @in: the reader
 * @entry: set to a copy of it: unchecked but for its place; the bytes behind those that it
 *	needs are undefined
 *
 * Context: any.
 * Return: 1, 0 if there is none, or -EPROTO: the writer writes nonsense.
 */
int sovia_clan_in_take(struct sovia_clan_in *in, struct sovia_clan_entry *entry)
{
	const struct sovia_clan_entry *shared;

	if (in->read == in->write) {
		u32 write = observe_word(&in->theirs.words->write);

		if (write - in->read > in->size)
			return -EPROTO;
		if (write == in->read)
			return 0;
		in->write = write;
	}
	shared = &in->theirs.ring[in->read & (in->size - 1)];
	memcpy(entry, shared, offsetof(struct sovia_clan_entry, data));
	/* From here on what has been copied says how long it is. */
	barrier();
	memcpy(entry->data, shared->data, body_of(entry));
	barrier();
	in->read++;
	return 1;
}

/**
 * sovia_clan_in_untake() - take the last entry again later
 * @in: the reader, after sovia_clan_in_take()
 *
 * Context: any.
 */
void sovia_clan_in_untake(struct sovia_clan_in *in)
{
	in->read--;
}

/**
 * sovia_clan_in_return() - give a cookie back; the writer learns of it later
 * @in: the reader
 * @cookie: of an entry that was taken; its page has been copied
 *
 * The writer lends no more pages than there is room for.
 *
 * Context: any.
 */
void sovia_clan_in_return(struct sovia_clan_in *in, u32 cookie)
{
	set_word(&in->own.cookies[in->returned % SOVIA_CLAN_COOKIES], cookie);
	in->returned++;
}

/**
 * sovia_clan_in_publish() - let the writer have the room of what was taken
 * @in: the reader
 *
 * Context: any.
 * Return: true if the doorbell is to be rung.
 */
bool sovia_clan_in_publish(struct sovia_clan_in *in)
{
	u32 old = in->told;

	publish_word(&in->own.words->returned, in->returned);
	publish_word(&in->own.words->read, in->read);
	in->told = in->read;
	/* Pairs with sovia_clan_out_wait(). */
	virt_mb();
	return is_passed(get_word(&in->theirs.words->space), old, in->read);
}

/**
 * sovia_clan_in_sleep() - have the doorbell rung when something is written
 * @in: the reader, which has taken all
 *
 * It will not ring for what has been written before: to be followed by sovia_clan_in_news().
 *
 * Context: any.
 */
void sovia_clan_in_sleep(struct sovia_clan_in *in)
{
	set_word(&in->own.words->event, in->read);
	/* Pairs with sovia_clan_out_publish(). */
	virt_mb();
}

/**
 * sovia_clan_in_news() - has something been written that has not been taken
 * @in: the reader
 *
 * Context: any; a hint, if the owner's other calls are not excluded.
 * Return: true if so.
 */
bool sovia_clan_in_news(const struct sovia_clan_in *in)
{
	return observe_word(&in->theirs.words->write) != READ_ONCE(in->read);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/clan_ring_test.c"
#endif

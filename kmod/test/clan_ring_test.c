// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of clan/ring.c; included by it. */
#include "suites.h"

#define RING_TEST_SIZE	32u

/* Both ends of what goes from one node to another. */
struct ring_test {
	struct sovia_clan_out	out;
	struct sovia_clan_in	in;
};

static struct ring_test *ring_test_make(struct kunit *test)
{
	struct ring_test *ring = kunit_kzalloc(test, sizeof(*ring), GFP_KERNEL);
	void *writers = kunit_kzalloc(test, sovia_clan_area(RING_TEST_SIZE), GFP_KERNEL);
	void *readers = kunit_kzalloc(test, sovia_clan_area(RING_TEST_SIZE), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, ring && writers && readers);
	sovia_clan_area_set(&ring->out.own, writers);
	sovia_clan_area_set(&ring->out.theirs, readers);
	ring->in.own = ring->out.theirs;
	ring->in.theirs = ring->out.own;
	ring->out.size = RING_TEST_SIZE;
	ring->in.size = RING_TEST_SIZE;
	sovia_clan_out_reset(&ring->out);
	sovia_clan_in_reset(&ring->in);
	return ring;
}

/* Let all indices begin shortly before they wrap. */
static void ring_test_advance(struct ring_test *ring, u32 index)
{
	ring->out.write = index;
	ring->out.told = index;
	ring->out.read = index;
	ring->out.returned = index;
	ring->in.read = index;
	ring->in.told = index;
	ring->in.write = index;
	ring->in.returned = index;
	set_word(&ring->out.own.words->write, index);
	set_word(&ring->out.own.words->space, index - 1);
	set_word(&ring->in.own.words->read, index);
	set_word(&ring->in.own.words->returned, index);
	set_word(&ring->in.own.words->event, index);
}

static void ring_test_put(struct ring_test *ring, u32 imm)
{
	const struct sovia_clan_entry entry = {
		.kind = SOVIA_CLAN_DATA, .len = cpu_to_le32(4), .imm = cpu_to_le32(imm),
		.data = { imm, imm >> 8, imm >> 16, imm >> 24 },
	};

	sovia_clan_out_put(&ring->out, &entry, offsetof(struct sovia_clan_entry, data) + 4);
}

/* Returns what was put, or 0 if there is nothing. */
static u32 ring_test_take(struct kunit *test, struct ring_test *ring)
{
	struct sovia_clan_entry entry;
	int got = sovia_clan_in_take(&ring->in, &entry);

	if (!got)
		return 0;
	KUNIT_EXPECT_EQ(test, got, 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry.len), 4);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(*entry.cookie), le32_to_cpu(entry.imm));
	return le32_to_cpu(entry.imm);
}

static void ring_header(struct kunit *test)
{
	struct sovia_clan_header header = {
		.magic = "SOVACLA", .version = cpu_to_le32(1), .nodes = cpu_to_le32(4),
		.ring = cpu_to_le32(256), .pool = cpu_to_le32(512), .uuid = { 1, [15] = 2 },
	};
	u64 size = sovia_clan_size(4, 256, 512);
	struct sovia_clan_geometry geometry;

	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, size, &geometry), -ENODEV);
	memcpy(header.magic, SOVIA_CLAN_MAGIC, sizeof(header.magic));
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, 100, &geometry), -ENODEV);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, size - 1, &geometry), -ERANGE);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, size, &geometry), 0);
	KUNIT_EXPECT_TRUE(test, geometry.nodes == 4 && geometry.ring == 256 &&
			  geometry.pool == 512);
	KUNIT_EXPECT_EQ(test, memcmp(geometry.uuid, header.uuid, 16), 0);
	header.version = cpu_to_le32(2);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, size, &geometry),
			-EPROTONOSUPPORT);
	header.version = cpu_to_le32(1);
	header.nodes = cpu_to_le32(1);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, size, &geometry), -ERANGE);
	header.nodes = cpu_to_le32(SOVIA_CLAN_NODES_MAX + 1);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, U64_MAX, &geometry), -ERANGE);
	header.nodes = cpu_to_le32(SOVIA_CLAN_NODES_MAX);
	header.ring = cpu_to_le32(SOVIA_CLAN_RING_MAX);
	header.pool = cpu_to_le32(SOVIA_CLAN_POOL_MAX);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, U64_MAX, &geometry), 0);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, U32_MAX, &geometry), -ERANGE);
	header.ring = cpu_to_le32(48);
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, U64_MAX, &geometry), -ERANGE);
	header.ring = 0;
	KUNIT_EXPECT_EQ(test, sovia_clan_check_header(&header, U64_MAX, &geometry), -ERANGE);
}

/* No two parts share a byte, and none is outside. */
static void ring_layout(struct kunit *test)
{
	const struct sovia_clan_geometry geometry = { .nodes = 3, .ring = 64, .pool = 128 };
	u64 end = 2 * SOVIA_CLAN_PAGE;
	u32 i, j;

	BUILD_BUG_ON(sizeof(struct sovia_clan_entry) != 128);
	BUILD_BUG_ON(sizeof(struct sovia_clan_words) > SOVIA_CLAN_COOKIES_AT);
	for (i = 0; i < geometry.nodes; i++) {
		KUNIT_EXPECT_EQ(test, sovia_clan_slot_at(&geometry, i), end);
		end += SOVIA_CLAN_PAGE;
		for (j = 0; j < geometry.nodes; j++) {
			KUNIT_EXPECT_EQ(test, sovia_clan_area_at(&geometry, i, j), end);
			end += SOVIA_CLAN_PAGE + 64 * sizeof(struct sovia_clan_entry);
		}
		KUNIT_EXPECT_EQ(test, sovia_clan_pool_at(&geometry, i), end);
		end += 128 * SOVIA_CLAN_PAGE;
	}
	KUNIT_EXPECT_EQ(test, sovia_clan_size(3, 64, 128), end);
}

/* Everything arrives once and in order, beyond the wrap, whatever is under way. */
static void ring_order(struct kunit *test)
{
	struct ring_test *ring = ring_test_make(test);
	u32 put = 1, taken = 1, count;

	ring_test_advance(ring, -RING_TEST_SIZE / 2);
	for (count = 1; count <= RING_TEST_SIZE; count++) {
		while (put - taken < count) {
			KUNIT_ASSERT_EQ(test, sovia_clan_out_room(&ring->out), 1);
			ring_test_put(ring, put++);
		}
		sovia_clan_out_publish(&ring->out);
		while (put != taken)
			KUNIT_ASSERT_EQ(test, ring_test_take(test, ring), taken++);
		KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), 0);
		sovia_clan_in_publish(&ring->in);
	}
}

static bool ring_test_sleep(struct ring_test *ring)
{
	sovia_clan_in_sleep(&ring->in);
	return sovia_clan_in_news(&ring->in);
}

/* A reader that sleeps is woken once; one that does not is not. */
static void ring_doorbell(struct kunit *test)
{
	struct ring_test *ring = ring_test_make(test);

	ring_test_advance(ring, -2);
	KUNIT_EXPECT_FALSE(test, ring_test_sleep(ring));
	ring_test_put(ring, 1);
	KUNIT_EXPECT_TRUE(test, sovia_clan_out_publish(&ring->out));
	ring_test_put(ring, 2);
	KUNIT_EXPECT_FALSE(test, sovia_clan_out_publish(&ring->out));
	/* Nothing new. */
	KUNIT_EXPECT_FALSE(test, sovia_clan_out_publish(&ring->out));
	KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), 1);
	KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), 2);
	ring_test_put(ring, 3);
	KUNIT_EXPECT_FALSE(test, sovia_clan_out_publish(&ring->out));
	/* It would not ring. */
	KUNIT_EXPECT_TRUE(test, ring_test_sleep(ring));
	KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), 3);
	KUNIT_EXPECT_FALSE(test, ring_test_sleep(ring));
	ring_test_put(ring, 4);
	ring_test_put(ring, 5);
	KUNIT_EXPECT_TRUE(test, sovia_clan_out_publish(&ring->out));
}

/* A writer that waits for room is woken once, when half of it is there. */
static void ring_full(struct kunit *test)
{
	struct ring_test *ring = ring_test_make(test);
	u32 i;

	ring_test_advance(ring, -3);
	for (i = 1; i <= RING_TEST_SIZE; i++) {
		KUNIT_EXPECT_EQ(test, sovia_clan_out_room(&ring->out), 1);
		ring_test_put(ring, i);
	}
	KUNIT_EXPECT_EQ(test, sovia_clan_out_room(&ring->out), 0);
	sovia_clan_out_publish(&ring->out);
	KUNIT_EXPECT_EQ(test, sovia_clan_out_wait(&ring->out), 0);
	for (i = 1; i <= RING_TEST_SIZE / 2; i++) {
		KUNIT_EXPECT_FALSE(test, sovia_clan_in_publish(&ring->in));
		KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), i);
	}
	KUNIT_EXPECT_FALSE(test, sovia_clan_in_publish(&ring->in));
	KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), i++);
	KUNIT_EXPECT_TRUE(test, sovia_clan_in_publish(&ring->in));
	KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), i++);
	KUNIT_EXPECT_FALSE(test, sovia_clan_in_publish(&ring->in));
	KUNIT_EXPECT_EQ(test, sovia_clan_out_room(&ring->out), 1);
	for (; i <= RING_TEST_SIZE; i++)
		KUNIT_EXPECT_EQ(test, ring_test_take(test, ring), i);
	sovia_clan_in_publish(&ring->in);
	/* It would not ring. */
	KUNIT_EXPECT_EQ(test, sovia_clan_out_wait(&ring->out), 1);
}

static void ring_cookies(struct kunit *test)
{
	struct ring_test *ring = ring_test_make(test);
	u32 round, i, cookie;

	ring_test_advance(ring, -SOVIA_CLAN_COOKIES / 2);
	for (round = 0; round < 3; round++) {
		KUNIT_EXPECT_EQ(test, sovia_clan_out_cookie(&ring->out, &cookie), 0);
		for (i = 0; i < SOVIA_CLAN_COOKIES; i++)
			sovia_clan_in_return(&ring->in, i ^ round);
		KUNIT_EXPECT_EQ(test, sovia_clan_out_cookie(&ring->out, &cookie), 0);
		sovia_clan_in_publish(&ring->in);
		for (i = 0; i < SOVIA_CLAN_COOKIES; i++) {
			KUNIT_ASSERT_EQ(test, sovia_clan_out_cookie(&ring->out, &cookie), 1);
			KUNIT_ASSERT_EQ(test, cookie, i ^ round);
		}
	}
}

/* The other end writes what it likes. */
static void ring_nonsense(struct kunit *test)
{
	struct ring_test *ring = ring_test_make(test);
	struct sovia_clan_entry *entry = ring->out.own.ring, copy;
	u32 cookie;

	set_word(&ring->out.own.words->write, RING_TEST_SIZE + 1);
	KUNIT_EXPECT_EQ(test, sovia_clan_in_take(&ring->in, &copy), -EPROTO);
	set_word(&ring->out.own.words->write, -1);
	KUNIT_EXPECT_EQ(test, sovia_clan_in_take(&ring->in, &copy), -EPROTO);
	/* Longer than anything: as many bytes are copied as there are. */
	set_word(&ring->out.own.words->write, 2);
	entry[0].len = cpu_to_le32(U32_MAX);
	entry[1].len = cpu_to_le32(SOVIA_CLAN_INLINE + 1);
	entry[1].cookie[0] = cpu_to_le32(77);
	KUNIT_EXPECT_EQ(test, sovia_clan_in_take(&ring->in, &copy), 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(copy.len), U32_MAX);
	KUNIT_EXPECT_EQ(test, sovia_clan_in_take(&ring->in, &copy), 1);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(copy.cookie[0]), 77);

	ring_test_advance(ring, 0);
	for (ring->out.write = 0; ring->out.write < RING_TEST_SIZE;)
		ring_test_put(ring, 1);
	set_word(&ring->in.own.words->read, RING_TEST_SIZE + 1);
	KUNIT_EXPECT_EQ(test, sovia_clan_out_room(&ring->out), -EPROTO);
	KUNIT_EXPECT_EQ(test, sovia_clan_out_wait(&ring->out), -EPROTO);
	set_word(&ring->in.own.words->read, -1);
	KUNIT_EXPECT_EQ(test, sovia_clan_out_room(&ring->out), -EPROTO);
	set_word(&ring->in.own.words->returned, SOVIA_CLAN_COOKIES + 1);
	KUNIT_EXPECT_EQ(test, sovia_clan_out_cookie(&ring->out, &cookie), -EPROTO);
	set_word(&ring->in.own.words->returned, -1);
	KUNIT_EXPECT_EQ(test, sovia_clan_out_cookie(&ring->out, &cookie), -EPROTO);
}

static struct kunit_case ring_cases[] = {
	KUNIT_CASE(ring_header),
	KUNIT_CASE(ring_layout),
	KUNIT_CASE(ring_order),
	KUNIT_CASE(ring_doorbell),
	KUNIT_CASE(ring_full),
	KUNIT_CASE(ring_cookies),
	KUNIT_CASE(ring_nonsense),
	{}
};

struct kunit_suite sovia_clan_ring_suite = {
	.name = "sovia-clan_ring",
	.test_cases = ring_cases,
};

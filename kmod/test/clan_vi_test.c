// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of clan/vi.c, vi_data.c, node.c and port.c; included by the first.  Our node is 0;
 * node 1 is played by the test, which writes what it likes.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include "suites.h"

#define VI_TEST_NODES	2u
#define VI_TEST_RING	32u
#define VI_TEST_POOL	64u
#define VI_TEST_GENERATION	77u
#define CLAN_TEST_QUIET_MAX	(301 * HZ)
/* Entries but BYE that wait for a node that does not read. */
#define CLAN_TEST_WAITING	1024u

/**
 * struct vi_test - our node, and the ends of the other one
 * @memory: of both
 * @port: ours
 * @node: the other one
 * @out: from it
 * @in: to it
 * @request: the last that was not answered
 * @upcall: the module's own
 * @path: of the last hello
 * @seal_err: result of the seal upcall
 * @opened: established upcalls
 * @closed: closed upcalls
 * @err: of the last one
 * @received: receive upcalls
 * @bytes: of all of them
 * @told: entries that the other node may know of, at the last one
 * @early: receive upcalls before established
 * @devices: those whose message names a network device
 * @done: send_done upcalls
 * @lost: those that were not ok
 * @ended: the ended upcall
 * @listed: the port is a way
 * @stopped: the port has been stopped
 * @mutes: calls of the port's mute
 * @muted: of the last one
 * @holds: the established upcall waits for @release
 * @held: it does
 * @release: it may return
 */
struct vi_test {
	void			*memory;
	struct sovia_clan_port	*port;
	struct sovia_clan_node	*node;
	struct sovia_clan_out	out;
	struct sovia_clan_in	in;
	struct sovia_vi_request	*request;
	void			(*upcall)(struct sovia_vi_request *req);
	struct sovia_path	path;
	int			seal_err;
	int			opened;
	int			closed;
	int			err;
	int			received;
	u32			bytes;
	u32			told;
	int			early;
	int			devices;
	int			done;
	int			lost;
	struct completion	ended;
	bool			listed;
	bool			stopped;
	int			mutes;
	bool			muted;
	bool			holds;
	struct completion	held;
	struct completion	release;
};

static struct vi_test vi_test;

static int vi_test_seal(struct sovia_vi *vi, const struct sovia_path *path,
			struct sovia_hello *hello)
{
	vi_test.path = *path;
	return vi_test.seal_err;
}

static void vi_test_way(struct sovia_vi *vi, struct sovia_clan_way *way)
{
	memcpy(way->uuid, vi_test.port->geometry.uuid, sizeof(way->uuid));
	way->number = 1;
	way->generation = vi_test.node->generation;
}

static void vi_test_established(struct sovia_vi *vi, const struct sovia_hello *hello,
				unsigned int hello_len)
{
	vi_test.opened++;
	if (vi_test.holds) {
		complete(&vi_test.held);
		wait_for_completion(&vi_test.release);
	}
}

static void vi_test_closed(struct sovia_vi *vi, int err)
{
	vi_test.closed++;
	vi_test.err = err;
}

static bool vi_test_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm)
{
	vi_test.early += !vi_test.opened;
	vi_test.received++;
	vi_test.bytes += skb->len;
	vi_test.told = vi_test.node->in.told;
	vi_test.devices += !!skb->dev;
	return false;
}

static void vi_test_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool ok)
{
	vi_test.done++;
	vi_test.lost += !ok;
}

static void vi_test_ended(struct sovia_vi *vi)
{
	complete(&vi_test.ended);
}

static const struct sovia_vi_client vi_test_client = {
	.seal		= vi_test_seal,
	.way		= vi_test_way,
	.established	= vi_test_established,
	.closed		= vi_test_closed,
	.receive	= vi_test_receive,
	.send_done	= vi_test_send_done,
	.ended		= vi_test_ended,
};

static const struct sovia_vi_attr vi_test_attr = {
	.send_depth = 4, .recv_depth = 4, .recv_first = 4, .msg_size = 16384,
};

static void vi_test_requested(struct sovia_vi_request *req)
{
	vi_test.request = req;
}

static void vi_test_doorbell(struct sovia_clan_port *port, u32 node)
{
}

static void vi_test_mute(struct sovia_clan_port *port, bool mute)
{
	vi_test.mutes++;
	vi_test.muted = mute;
}

/* Let the bottom half and the works that it has queued do what there is to do. */
static void vi_test_settle(void)
{
	sovia_clan_port_rung(vi_test.port);
	do {
		msleep(20);
	} while (test_bit(NAPI_STATE_SCHED, &vi_test.port->napi.state));
	flush_workqueue(sovia_setup_wq);
}

/* ---- the other node ------------------------------------------------------------- */

static __le32 *vi_test_generation(u32 number)
{
	struct sovia_clan_slot *slot = vi_test.memory +
				       sovia_clan_slot_at(&vi_test.port->geometry, number);

	return &slot->generation;
}

/* What another kernel does when it begins anew. */
static void vi_test_begin(u32 generation)
{
	struct sovia_clan_words *words = vi_test.out.own.words;

	sovia_clan_out_reset(&vi_test.out);
	sovia_clan_in_reset(&vi_test.in);
	words->peer = 0;
	words->epoch = cpu_to_le32(le32_to_cpu(words->epoch) + 1);
	*vi_test_generation(1) = cpu_to_le32(generation);
	vi_test_settle();
	words->peer = vi_test.out.theirs.words->epoch;
	vi_test_settle();
}

/* Likewise, and ours has left it alone for long enough. */
static void vi_test_open(u32 generation)
{
	vi_test_begin(generation);
	vi_test.node->quiet = jiffies;
	/* First it greets, then it opens. */
	vi_test_settle();
	vi_test_settle();
}

static void vi_test_put(const struct sovia_clan_entry *entry)
{
	sovia_clan_out_put(&vi_test.out, entry, sizeof(*entry));
}

static void vi_test_write(const struct sovia_clan_entry *entry)
{
	vi_test_put(entry);
	sovia_clan_out_publish(&vi_test.out);
	vi_test_settle();
}

/* Writes the same entry many times, as long as it is read. */
static void vi_test_flood(const struct sovia_clan_entry *entry, u32 count)
{
	u32 i;

	for (i = 1; i <= count && READ_ONCE(vi_test.node->open); i++) {
		vi_test_put(entry);
		if (i % VI_TEST_RING && i < count)
			continue;
		sovia_clan_out_publish(&vi_test.out);
		do {
			sovia_clan_port_rung(vi_test.port);
			cond_resched();
			sovia_clan_out_look(&vi_test.out);
		} while (READ_ONCE(vi_test.node->open) && vi_test.out.read != vi_test.out.write);
	}
	vi_test_settle();
}

/* How many entries wait until it reads. */
static u32 vi_test_waiting(void)
{
	struct sovia_clan_control *control;
	u32 count = 0;

	spin_lock_bh(&vi_test.node->lock);
	list_for_each_entry(control, &vi_test.node->control, list)
		count++;
	spin_unlock_bh(&vi_test.node->lock);
	return count;
}

/* Have the bottom half do what it does each second. */
static void vi_test_second(void)
{
	msleep(1100);
	WRITE_ONCE(vi_test.port->say_at, jiffies);
	vi_test_settle();
}

/* Takes the next entry and expects it to be of a kind. */
static struct sovia_clan_entry vi_test_take(struct kunit *test, u8 kind)
{
	struct sovia_clan_entry entry = {};

	KUNIT_EXPECT_EQ(test, sovia_clan_in_take(&vi_test.in, &entry), 1);
	KUNIT_EXPECT_EQ(test, entry.kind, kind);
	sovia_clan_in_publish(&vi_test.in);
	return entry;
}

static void vi_test_nothing(struct kunit *test)
{
	struct sovia_clan_entry entry;

	KUNIT_EXPECT_EQ(test, sovia_clan_in_take(&vi_test.in, &entry), 0);
}

/* An entry for a VI of ours, with a body if it is REQ, REP or REJ. */
static struct sovia_clan_entry vi_test_entry(struct sovia_vi *vi, u8 kind, u16 err)
{
	const struct sovia_clan_setup setup = {
		.epoch = cpu_to_le32(55), .vi = cpu_to_le16(5), .err = cpu_to_le16(err),
	};
	struct sovia_clan_entry entry = { .kind = kind };

	if (vi) {
		entry.vi = cpu_to_le16(to_clan(vi)->number);
		entry.epoch = cpu_to_le32(to_clan(vi)->epoch);
	}
	if (kind == SOVIA_CLAN_REQ || kind == SOVIA_CLAN_REP || kind == SOVIA_CLAN_REJ) {
		entry.len = cpu_to_le32(sizeof(setup));
		memcpy(entry.data, &setup, sizeof(setup));
	}
	if (kind == SOVIA_CLAN_DATA)
		entry.len = cpu_to_le32(1);
	return entry;
}

/* What it has the client sign: both ends' nodes. */
static void vi_test_path(struct kunit *test, const struct sovia_path *path)
{
	const __le32 local[] = { 0, *vi_test_generation(0), cpu_to_le32(7) };
	const __le32 remote[] = { cpu_to_le32(1), *vi_test_generation(1), cpu_to_le32(7) };

	KUNIT_EXPECT_EQ(test, memcmp(path->local, local, sizeof(local)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(path->remote, remote, sizeof(remote)), 0);
}

static void vi_test_answer(struct sovia_vi *vi, u8 kind, u16 err)
{
	const struct sovia_clan_entry entry = vi_test_entry(vi, kind, err);

	vi_test_write(&entry);
}

/* ---- our node ------------------------------------------------------------------- */

static int vi_test_init(struct kunit *test)
{
	u64 size = sovia_clan_size(VI_TEST_NODES, VI_TEST_RING, VI_TEST_POOL);
	struct sovia_clan_header *header = vzalloc(size);

	KUNIT_ASSERT_NOT_NULL(test, header);
	memcpy(header->magic, SOVIA_CLAN_MAGIC, sizeof(header->magic));
	header->version = cpu_to_le32(SOVIA_CLAN_VERSION);
	header->nodes = cpu_to_le32(VI_TEST_NODES);
	header->ring = cpu_to_le32(VI_TEST_RING);
	header->pool = cpu_to_le32(VI_TEST_POOL);
	header->uuid[0] = 7;
	vi_test = (struct vi_test){ .memory = header, .upcall = clan_request_upcall };
	set_upcall(vi_test_requested);
	init_completion(&vi_test.ended);
	init_completion(&vi_test.held);
	init_completion(&vi_test.release);
	vi_test.port = sovia_clan_port_alloc(header, size, 0);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, vi_test.port);
	vi_test.port->net = &init_net;
	vi_test.port->prov = &sovia_clan_provider;
	vi_test.port->doorbell = vi_test_doorbell;
	vi_test.node = &vi_test.port->node[1];
	vi_test.out.own = vi_test.node->in.theirs;
	vi_test.out.theirs = vi_test.node->in.own;
	vi_test.out.size = VI_TEST_RING;
	vi_test.in.own = vi_test.out.own;
	vi_test.in.theirs = vi_test.out.theirs;
	vi_test.in.size = VI_TEST_RING;
	sovia_clan_port_begin(vi_test.port);
	vi_test_open(VI_TEST_GENERATION);
	KUNIT_ASSERT_TRUE(test, vi_test.node->open);
	sovia_clan_way_add(vi_test.port);
	vi_test.listed = true;
	return 0;
}

static void vi_test_stop(void)
{
	if (vi_test.listed)
		sovia_clan_way_remove(vi_test.port);
	vi_test.listed = false;
	if (!vi_test.stopped)
		sovia_clan_port_stop(vi_test.port);
	vi_test.stopped = true;
}

static void vi_test_exit(struct kunit *test)
{
	set_upcall(vi_test.upcall);
	if (IS_ERR_OR_NULL(vi_test.port))
		return;
	vi_test_stop();
	sovia_clan_port_free(vi_test.port);
	vfree(vi_test.memory);
}

static void vi_test_end(struct sovia_vi *vi)
{
	vi->prov->end(vi);
	wait_for_completion(&vi_test.ended);
}

static struct sovia_vi *vi_test_ask(struct kunit *test)
{
	const struct sovia_hello hello = {};
	const struct sovia_pair pair = {};
	struct sovia_vi *vi = clan_connect(&init_net, &pair, &vi_test_attr, &hello,
					   &vi_test_client, NULL);

	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, vi);
	return vi;
}

static struct sovia_vi *vi_test_up(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_ask(test);

	vi_test_take(test, SOVIA_CLAN_REQ);
	vi_test_answer(vi, SOVIA_CLAN_REP, 0);
	KUNIT_EXPECT_EQ(test, vi_test.opened, 1);
	vi_test_take(test, SOVIA_CLAN_RTU);
	return vi;
}

static int vi_test_post(struct kunit *test, struct sovia_vi *vi, u32 len, bool unsignaled)
{
	const struct sovia_post how = { .unsignaled = unsignaled };
	struct sk_buff *skb = alloc_skb(len, GFP_KERNEL);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	memset(skb_put(skb, len), 'x', len);
	local_bh_disable();
	ret = vi->prov->post_send(vi, skb, &how);
	local_bh_enable();
	kfree_skb(skb);
	return ret;
}

/* ---- cases ------------------------------------------------------------------------ */

static void vi_connects(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_ask(test);
	struct sovia_clan_entry entry = vi_test_take(test, SOVIA_CLAN_REQ);
	const struct sovia_clan_entry rep = vi_test_entry(vi, SOVIA_CLAN_REP, 0);
	const struct sovia_clan_entry data = vi_test_entry(vi, SOVIA_CLAN_DATA, 0);
	struct sovia_clan_setup setup;

	memcpy(&setup, entry.data, sizeof(setup));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(setup.vi), to_clan(vi)->number);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(setup.epoch), to_clan(vi)->epoch);
	vi_test_path(test, &vi_test.path);
	/* What comes right behind REP waits for the client. */
	vi_test_put(&rep);
	vi_test_write(&data);
	entry = vi_test_take(test, SOVIA_CLAN_RTU);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(entry.vi), 5);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry.epoch), 55);
	KUNIT_EXPECT_EQ(test, vi_test.opened, 1);
	KUNIT_EXPECT_EQ(test, vi_test.received, 1);
	KUNIT_EXPECT_EQ(test, vi_test.early, 0);
	KUNIT_EXPECT_EQ(test, vi_test.devices, 0);
	vi_test_answer(vi, SOVIA_CLAN_BYE, 0);
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_EQ(test, vi_test.err, -ECONNRESET);
	vi_test_end(vi);
	vi_test_take(test, SOVIA_CLAN_BYE);
}

static void vi_accepts(struct kunit *test)
{
	const struct sovia_hello hello = {};
	struct sovia_clan_entry entry;
	struct sovia_clan_setup setup;
	struct sovia_vi *vi;

	vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
	KUNIT_ASSERT_NOT_NULL(test, vi_test.request);
	KUNIT_EXPECT_PTR_EQ(test, vi_test.request->prov, &sovia_clan_provider);
	vi_test_path(test, &vi_test.request->path);
	vi = sovia_clan_provider.accept(vi_test.request, &vi_test_attr, &hello, &vi_test_client,
					NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, vi);
	entry = vi_test_take(test, SOVIA_CLAN_REP);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(entry.vi), 5);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(entry.epoch), 55);
	memcpy(&setup, entry.data, sizeof(setup));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(setup.vi), to_clan(vi)->number);
	KUNIT_EXPECT_EQ(test, vi_test.opened, 0);
	vi_test_answer(vi, SOVIA_CLAN_RTU, 0);
	KUNIT_EXPECT_EQ(test, vi_test.opened, 1);
	KUNIT_EXPECT_EQ(test, vi_test.closed, 0);
	vi_test_end(vi);
	vi_test_take(test, SOVIA_CLAN_BYE);
}

/* Without a secret neither REQ nor REP is sent. */
static void vi_unsealed(struct kunit *test)
{
	const struct sovia_hello hello = {};
	const struct sovia_pair pair = {};
	struct sovia_vi *vi;

	vi_test.seal_err = -ESTALE;
	vi = clan_connect(&init_net, &pair, &vi_test_attr, &hello, &vi_test_client, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(vi), -ESTALE);
	vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
	KUNIT_ASSERT_NOT_NULL(test, vi_test.request);
	vi = sovia_clan_provider.accept(vi_test.request, &vi_test_attr, &hello, &vi_test_client,
					NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, vi);
	flush_workqueue(sovia_setup_wq);
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	vi_test_end(vi);
	vi_test_take(test, SOVIA_CLAN_BYE);
	vi_test_nothing(test);
}

/* A port that goes takes its VIs with it, and is not found any more. */
static void vi_port_goes(struct kunit *test)
{
	const struct sovia_clan_way none = { .number = 1, .generation = VI_TEST_GENERATION };
	struct sovia_vi *vi = vi_test_up(test);
	struct sovia_clan_way way, ours;

	vi_test_way(vi, &way);
	KUNIT_EXPECT_TRUE(test, sovia_clan_way_meets(&init_net, &way, &ours));
	KUNIT_EXPECT_EQ(test, ours.number, 0);
	KUNIT_EXPECT_EQ(test, ours.generation, vi_test.port->generation);
	/* another memory, another generation, ourselves, no node at all */
	KUNIT_EXPECT_FALSE(test, sovia_clan_way_meets(&init_net, &none, NULL));
	KUNIT_EXPECT_FALSE(test, sovia_clan_way_meets(&init_net, &ours, NULL));
	way.generation++;
	KUNIT_EXPECT_FALSE(test, sovia_clan_way_meets(&init_net, &way, NULL));
	way.generation = 0;
	KUNIT_EXPECT_FALSE(test, sovia_clan_way_meets(&init_net, &way, NULL));
	vi_test_way(vi, &way);
	way.number = U32_MAX;
	KUNIT_EXPECT_FALSE(test, sovia_clan_way_meets(&init_net, &way, NULL));

	vi_test_way(vi, &way);
	sovia_clan_way_remove(vi_test.port);
	vi_test.listed = false;
	KUNIT_EXPECT_FALSE(test, sovia_clan_way_meets(&init_net, &way, NULL));
	KUNIT_EXPECT_PTR_EQ(test, sovia_clan_way_node(&init_net, &way), NULL);
	vi_test_end(vi);
}

/* The client takes an errno of a few; the peer may write any. */
static void vi_rejected(struct kunit *test)
{
	static const struct {
		u16 wire;
		int err;
	} table[] = {
		{ 0, -ECONNREFUSED }, { ECONNREFUSED, -ECONNREFUSED }, { EBUSY, -EBUSY },
		{ EAGAIN, -EAGAIN }, { ESTALE, -ESTALE }, { EPROTO, -EPROTO },
		{ ENOMEM, -ECONNREFUSED }, { 4096, -ECONNREFUSED }, { U16_MAX, -ECONNREFUSED },
	};
	struct sovia_vi *vi;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		vi = vi_test_ask(test);
		vi_test_take(test, SOVIA_CLAN_REQ);
		vi_test_answer(vi, SOVIA_CLAN_REJ, table[i].wire);
		KUNIT_EXPECT_EQ(test, vi_test.closed, i + 1);
		KUNIT_EXPECT_EQ(test, vi_test.err, table[i].err);
		vi_test_end(vi);
	}
	vi_test_nothing(test);
	KUNIT_EXPECT_EQ(test, vi_test.opened, 0);
}

/* A VI that is not answered is closed; one that has been is not. */
static void vi_no_answer(struct kunit *test)
{
	const struct sovia_hello hello = {};
	struct sovia_vi *vi = vi_test_up(test);

	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&to_clan(vi)->late));
	mod_delayed_work(sovia_setup_wq, &to_clan(vi)->late, 0);
	flush_delayed_work(&to_clan(vi)->late);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.closed, 0);
	vi_test_end(vi);
	vi_test_take(test, SOVIA_CLAN_BYE);

	vi = vi_test_ask(test);
	vi_test_take(test, SOVIA_CLAN_REQ);
	mod_delayed_work(sovia_setup_wq, &to_clan(vi)->late, 0);
	flush_delayed_work(&to_clan(vi)->late);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_EQ(test, vi_test.err, -ETIMEDOUT);
	vi_test_end(vi);

	vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
	KUNIT_ASSERT_NOT_NULL(test, vi_test.request);
	vi = sovia_clan_provider.accept(vi_test.request, &vi_test_attr, &hello, &vi_test_client,
					NULL);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, vi);
	vi_test_take(test, SOVIA_CLAN_REP);
	mod_delayed_work(sovia_setup_wq, &to_clan(vi)->late, 0);
	flush_delayed_work(&to_clan(vi)->late);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.closed, 2);
	KUNIT_EXPECT_EQ(test, vi_test.err, -ETIMEDOUT);
	vi_test_end(vi);
	vi_test_take(test, SOVIA_CLAN_BYE);
}

/* Entries of another VI are dropped, whatever they are. */
static void vi_strangers(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_up(test);
	struct sovia_clan_entry entry;
	u8 kind;

	for (kind = SOVIA_CLAN_DATA; kind < SOVIA_CLAN_KINDS; kind++) {
		if (kind == SOVIA_CLAN_REQ)
			continue;
		entry = vi_test_entry(vi, kind, EBUSY);
		entry.epoch = cpu_to_le32(to_clan(vi)->epoch + 1);
		vi_test_write(&entry);
		entry = vi_test_entry(vi, kind, EBUSY);
		entry.vi = cpu_to_le16(to_clan(vi)->number + 1);
		vi_test_write(&entry);
	}
	/* Whose end has gone is told so. */
	vi_test_take(test, SOVIA_CLAN_BYE);
	vi_test_take(test, SOVIA_CLAN_BYE);
	KUNIT_EXPECT_EQ(test, vi_test.received, 0);
	KUNIT_EXPECT_EQ(test, vi_test.closed, 0);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
	vi_test_end(vi);
}

/* One entry that violates the protocol ends the node. */
static void vi_violations(struct kunit *test)
{
	static const struct {
		u8  kind;
		u32 len;
		u32 cookie;
	} table[] = {
		{ 0, 0 }, { SOVIA_CLAN_KINDS, 0 }, { U8_MAX, sizeof(struct sovia_clan_setup) },
		{ SOVIA_CLAN_DATA, 0 },
		{ SOVIA_CLAN_DATA, 16385 },
		{ SOVIA_CLAN_DATA, SOVIA_CLAN_PAGES * SOVIA_CLAN_PAGE + 1 },
		{ SOVIA_CLAN_DATA, U32_MAX },
		{ SOVIA_CLAN_DATA, 4096, VI_TEST_POOL },
		{ SOVIA_CLAN_DATA, 4096, U32_MAX },
		{ SOVIA_CLAN_REQ, 0 }, { SOVIA_CLAN_REQ, 112 },
		{ SOVIA_CLAN_REP, 1 }, { SOVIA_CLAN_REJ, 0 },
		{ SOVIA_CLAN_RTU, 1 }, { SOVIA_CLAN_BYE, 4 },
		/* a second answer, and one that is not for this end */
		{ SOVIA_CLAN_REP, sizeof(struct sovia_clan_setup) }, { SOVIA_CLAN_RTU, 0 },
	};
	struct sovia_clan_entry entry;
	struct sovia_vi *vi;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		vi_test.opened = 0;
		vi_test.closed = 0;
		vi = vi_test_up(test);
		entry = vi_test_entry(vi, table[i].kind, 0);
		entry.len = cpu_to_le32(table[i].len);
		entry.cookie[0] = cpu_to_le32(table[i].cookie);
		vi_test_write(&entry);
		KUNIT_EXPECT_EQ_MSG(test, vi_test.closed, 1, "entry %u", i);
		KUNIT_EXPECT_EQ_MSG(test, vi_test.err, -EPROTO, "entry %u", i);
		KUNIT_EXPECT_FALSE(test, vi_test.node->open);
		KUNIT_EXPECT_EQ(test, vi_test_post(test, vi, 1, true), -ENOTCONN);
		KUNIT_EXPECT_EQ(test, vi_test.received, 0);
		vi_test_end(vi);
		/* Longer each time, whatever it does. */
		KUNIT_EXPECT_EQ(test, vi_test.node->strikes, i + 1);
		KUNIT_EXPECT_TRUE(test, time_after(vi_test.node->quiet,
						   jiffies + (HZ / 2 << min(i, 8u))));
		KUNIT_EXPECT_TRUE(test, time_before(vi_test.node->quiet,
						    jiffies + CLAN_TEST_QUIET_MAX));
		vi_test_begin(VI_TEST_GENERATION + i + 1);
		KUNIT_EXPECT_FALSE(test, vi_test.node->open);
		vi_test_open(VI_TEST_GENERATION + i + 1);
		KUNIT_ASSERT_TRUE(test, vi_test.node->open);
	}
}

/* Indices that make no sense, and pages that were not lent. */
static void vi_wild_words(struct kunit *test)
{
	struct sovia_clan_words *words = vi_test.out.own.words;
	__le32 *table[] = { &words->write, &words->read, &words->returned };
	struct sovia_vi *vi;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		vi_test.opened = 0;
		vi_test.closed = 0;
		vi = vi_test_up(test);
		*table[i] = cpu_to_le32(le32_to_cpu(*table[i]) + 100000);
		vi_test_settle();
		KUNIT_EXPECT_EQ_MSG(test, vi_test.closed, 1, "word %u", i);
		KUNIT_EXPECT_EQ(test, vi_test.err, -EPROTO);
		vi_test_end(vi);
		vi_test_open(VI_TEST_GENERATION + i + 1);
		KUNIT_ASSERT_TRUE(test, vi_test.node->open);
	}
	vi_test.closed = 0;
	vi_test.opened = 0;
	vi = vi_test_up(test);
	/* It was lent no page. */
	sovia_clan_in_return(&vi_test.in, 3);
	sovia_clan_in_publish(&vi_test.in);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_EQ(test, vi_test.err, -EPROTO);
	vi_test_end(vi);
}

/* A node that boots, and one that leaves, take their VIs with them. */
static void vi_node_comes_and_goes(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_up(test);

	vi_test_open(VI_TEST_GENERATION + 1);
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_EQ(test, vi_test.err, -ECONNRESET);
	vi_test_end(vi);
	/* It is told of a VI that it does not know. */
	vi_test_take(test, SOVIA_CLAN_BYE);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);

	vi_test.opened = 0;
	vi_test.closed = 0;
	vi = vi_test_up(test);
	*vi_test_generation(1) = 0;
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_FALSE(test, vi_test.node->open);
	vi_test_end(vi);
	/* It begins anew with us alone. */
	vi_test_open(VI_TEST_GENERATION + 2);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
	vi_test.out.own.words->peer = 0;
	vi_test_settle();
	KUNIT_EXPECT_FALSE(test, vi_test.node->open);
	KUNIT_EXPECT_EQ(test, vi_test.node->strikes, 0);
	/* Indices of the new epoch are no violation. */
	vi_test_open(VI_TEST_GENERATION + 2);
	vi_test.opened = 0;
	vi_test.closed = 0;
	vi = vi_test_up(test);
	vi_test.out.own.words->epoch = cpu_to_le32(12345);
	vi_test.out.own.words->write = cpu_to_le32(1 << 20);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.err, -ECONNRESET);
	KUNIT_EXPECT_EQ(test, vi_test.node->strikes, 0);
	vi_test_end(vi);
}

/* A node may not fill our memory with requests. */
static void vi_requests_bounded(struct kunit *test)
{
	struct sovia_vi_request *request[CLAN_REQUESTS_MAX] = {};
	struct sovia_clan_entry entry;
	struct sovia_clan_setup setup;
	u32 i;

	for (i = 0; i < CLAN_REQUESTS_MAX; i++) {
		vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
		request[i] = vi_test.request;
	}
	vi_test_nothing(test);
	vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
	entry = vi_test_take(test, SOVIA_CLAN_REJ);
	memcpy(&setup, entry.data, sizeof(setup));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(setup.err), EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, vi_test.request, request[i - 1]);
	for (i = 0; i < CLAN_REQUESTS_MAX; i++) {
		sovia_clan_provider.reject(request[i], -ECONNREFUSED);
		entry = vi_test_take(test, SOVIA_CLAN_REJ);
		memcpy(&setup, entry.data, sizeof(setup));
		KUNIT_EXPECT_EQ(test, le16_to_cpu(setup.err), ECONNREFUSED);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&vi_test.node->requests), 0);
}

/* ... nor with answers that it does not read. */
static void vi_requests_unread(struct kunit *test)
{
	const struct sovia_clan_entry req = vi_test_entry(NULL, SOVIA_CLAN_REQ, 0);
	const struct sovia_hello hello = {};
	const struct sovia_pair pair = {};
	struct sovia_vi *vi;
	u32 waiting;

	clan_unlisten(&init_net);
	vi_test_flood(&req, 3 * CLAN_TEST_WAITING);
	waiting = vi_test_waiting();
	KUNIT_EXPECT_GT(test, waiting, 0);
	KUNIT_EXPECT_LE(test, waiting, CLAN_TEST_WAITING);
	/* Another request for it fails at once. */
	vi = clan_connect(&init_net, &pair, &vi_test_attr, &hello, &vi_test_client, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(vi), -EBUSY);
	if (!IS_ERR(vi))
		vi_test_end(vi);
	/* It has done nothing that it must not do, and reads again. */
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
	for (waiting += VI_TEST_RING; waiting; waiting--) {
		vi_test_take(test, SOVIA_CLAN_REJ);
		if (waiting % VI_TEST_RING == 1)
			vi_test_settle();
	}
	vi_test_nothing(test);
	clan_listen(&init_net, vi_test_requested);
	vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
	KUNIT_ASSERT_NOT_NULL(test, vi_test.request);
	sovia_clan_provider.reject(vi_test.request, -EBUSY);
	vi_test_take(test, SOVIA_CLAN_REJ);
}

/* Each REP of an unknown VI gets a BYE.  A node that reads none of them violates the protocol. */
static void vi_answers_unread(struct kunit *test)
{
	const struct sovia_clan_entry rep = vi_test_entry(NULL, SOVIA_CLAN_REP, 0);

	vi_test_flood(&rep, VI_TEST_RING + 10);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
	KUNIT_EXPECT_EQ(test, vi_test_waiting(), 10);
	/* So many would take minutes where the kernel checks memory. */
	spin_lock_bh(&vi_test.node->lock);
	KUNIT_EXPECT_EQ(test, vi_test.node->waiting, 10);
	vi_test.node->waiting = 2 * U16_MAX - 11;
	spin_unlock_bh(&vi_test.node->lock);
	vi_test_flood(&rep, 10);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
	KUNIT_EXPECT_EQ(test, vi_test_waiting(), 20);
	vi_test_flood(&rep, 2);
	KUNIT_EXPECT_FALSE(test, vi_test.node->open);
	KUNIT_EXPECT_EQ(test, vi_test.node->strikes, 1);
	KUNIT_EXPECT_EQ(test, vi_test_waiting(), 0);
}

/* Where no one listens requests are refused, at once or when their turn comes. */
static void vi_no_listener(struct kunit *test)
{
	struct sovia_clan_entry entry;
	struct sovia_clan_setup setup;

	clan_unlisten(&init_net);
	vi_test_answer(NULL, SOVIA_CLAN_REQ, 0);
	entry = vi_test_take(test, SOVIA_CLAN_REJ);
	memcpy(&setup, entry.data, sizeof(setup));
	KUNIT_EXPECT_EQ(test, le16_to_cpu(setup.err), ECONNREFUSED);
	clan_listen(&init_net, vi_test_requested);
	down_write(&clan_listen_sem);
	entry = vi_test_entry(NULL, SOVIA_CLAN_REQ, 0);
	vi_test_put(&entry);
	sovia_clan_out_publish(&vi_test.out);
	sovia_clan_port_rung(vi_test.port);
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&vi_test.node->requests), 1);
	clan_request_upcall = NULL;
	up_write(&clan_listen_sem);
	vi_test_settle();
	vi_test_take(test, SOVIA_CLAN_REJ);
	KUNIT_EXPECT_EQ(test, atomic_read(&vi_test.node->requests), 0);
	KUNIT_EXPECT_NULL(test, vi_test.request);
}

/* Doorbells without messages are not heard beyond some, until the next second. */
static void vi_storm(struct kunit *test)
{
	int i;

	vi_test.port->mute = vi_test_mute;
	local_bh_disable();
	/* What came in this second would count. */
	vi_test.port->moved = 0;
	WRITE_ONCE(vi_test.port->rung, 0);
	/* So that the second does not end here. */
	WRITE_ONCE(vi_test.port->say_at, jiffies + HZ);
	for (i = 0; i < 1000; i++)
		sovia_clan_port_interrupt(vi_test.port);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, vi_test.mutes, 0);
	local_bh_disable();
	WRITE_ONCE(vi_test.port->say_at, jiffies + HZ);
	for (i = 0; i < 2000; i++)
		sovia_clan_port_interrupt(vi_test.port);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, vi_test.mutes, 1);
	KUNIT_EXPECT_TRUE(test, vi_test.muted);
	WRITE_ONCE(vi_test.port->say_at, jiffies);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.mutes, 2);
	KUNIT_EXPECT_FALSE(test, vi_test.muted);
}

/* A reader that takes nothing stops its sender, which learns when it goes on. */
static void vi_full(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_up(test);
	struct sovia_clan_entry entry;
	int posted = 0, signaled = 0, ret;

	while ((ret = vi_test_post(test, vi, 100, true)) >= 0) {
		posted++;
		signaled += ret == SOVIA_POSTED;
	}
	KUNIT_EXPECT_EQ(test, ret, -EAGAIN);
	/* No more need a completion than the VI is deep. */
	KUNIT_EXPECT_EQ(test, signaled, vi_test_attr.send_depth);
	KUNIT_EXPECT_LE(test, posted, VI_TEST_RING);
	KUNIT_EXPECT_EQ(test, vi_test.done, 0);
	while (posted--) {
		entry = vi_test_take(test, SOVIA_CLAN_DATA);
		KUNIT_EXPECT_EQ(test, le32_to_cpu(entry.len), 100);
	}
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.done, signaled);
	KUNIT_EXPECT_EQ(test, vi_test.lost, 0);
	KUNIT_EXPECT_EQ(test, vi_test_post(test, vi, 100, true), SOVIA_POSTED_UNSIGNALED);
	KUNIT_EXPECT_EQ(test, vi_test_post(test, vi, 100, false), SOVIA_POSTED);
	/* What has no completion when the VI ends gets one. */
	vi_test_end(vi);
	KUNIT_EXPECT_EQ(test, vi_test.done, signaled + 1);
	KUNIT_EXPECT_EQ(test, vi_test.lost, 1);
}

/* Pages that a reader keeps are missed by itself alone, and come back when it goes. */
static void vi_pages(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_up(test);
	struct sovia_clan_entry entry;
	u32 kept, i;

	while (vi_test_post(test, vi, 8192, true) >= 0)
		;
	kept = vi_test.port->pool.lent[1];
	KUNIT_EXPECT_LE(test, kept, VI_TEST_POOL / 2);
	KUNIT_EXPECT_EQ(test, vi_test.port->pool.count, VI_TEST_POOL - kept);
	entry = vi_test_take(test, SOVIA_CLAN_DATA);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_LT(test, le32_to_cpu(entry.cookie[i]), VI_TEST_POOL);
		sovia_clan_in_return(&vi_test.in, le32_to_cpu(entry.cookie[i]));
	}
	sovia_clan_in_publish(&vi_test.in);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.port->pool.count, VI_TEST_POOL - kept + 2);
	vi_test_open(VI_TEST_GENERATION + 1);
	KUNIT_EXPECT_EQ(test, vi_test.port->pool.count, VI_TEST_POOL);
	vi_test_end(vi);
}

/* The writer of a long message may wait for its pages: it learns at once that it has been taken. */
static void vi_long_taken(struct kunit *test)
{
	struct sovia_vi *vi = vi_test_up(test);
	struct sovia_clan_entry entry = vi_test_entry(vi, SOVIA_CLAN_DATA, 0);
	u32 told, i;

	for (i = 0; i < 4; i++)
		entry.cookie[i] = cpu_to_le32(i);
	for (i = 0; i < 2; i++) {
		told = vi_test.node->in.told;
		entry.len = cpu_to_le32(i ? 16384 : 8192);
		vi_test_put(&entry);
		vi_test_write(&entry);
		KUNIT_EXPECT_EQ(test, vi_test.received, 2 * (i + 1));
		/* When the second one came. */
		KUNIT_EXPECT_EQ(test, vi_test.told - told, i);
	}
	vi_test_end(vi);
}

/* A port that has not begun is freed without a trace, even before it has a doorbell. */
static void vi_never_begun(struct kunit *test)
{
	const struct sovia_clan_geometry *geometry = &vi_test.port->geometry;
	u64 at = sovia_clan_slot_at(geometry, 1);
	u64 size = sovia_clan_section(geometry->nodes, geometry->ring, geometry->pool);
	void *before = vmalloc(size);
	struct sovia_clan_port *port;

	KUNIT_ASSERT_NOT_NULL(test, before);
	memcpy(before, vi_test.memory + at, size);
	port = sovia_clan_port_alloc(vi_test.memory, at + size, 1);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, port);
	/* One that interrupts has begun. */
	KUNIT_EXPECT_TRUE(test, test_bit(NAPI_STATE_SCHED, &port->napi.state));
	sovia_clan_port_free(port);
	KUNIT_EXPECT_EQ(test, memcmp(before, vi_test.memory + at, size), 0);
	vfree(before);
}

/* Nothing is written into the section of a number that is another node's. */
static void vi_number_lost(struct kunit *test)
{
	__le32 *present = vi_test.memory + SOVIA_CLAN_PAGE;
	struct sovia_clan_words *words = vi_test.node->out.own.words;
	struct sovia_vi *vi = vi_test_up(test);

	*present = cpu_to_le32(5);
	vi_test_settle();
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_EQ(test, vi_test.err, -ENODEV);
	KUNIT_EXPECT_EQ(test, vi_test_post(test, vi, 1, true), -ENOTCONN);
	/* The other one begins. */
	*vi_test_generation(0) = cpu_to_le32(99);
	memset(words, 0x55, sizeof(*words));
	WRITE_ONCE(vi_test.port->say_at, jiffies);
	vi_test_settle();
	/* It stays lost: another node has written over the indices. */
	*present = 0;
	vi_test_settle();
	KUNIT_EXPECT_FALSE(test, vi_test.node->open);
	vi_test_end(vi);
	vi_test_stop();
	KUNIT_EXPECT_EQ(test, le32_to_cpu(*vi_test_generation(0)), 99);
	KUNIT_EXPECT_PTR_EQ(test, memchr_inv(words, 0x55, sizeof(*words)), NULL);
}

/* Pages that are kept when no VI is left for which they were lent are taken back. */
static void vi_keeps_pages(struct kunit *test)
{
	struct sovia_clan_pool *pool = &vi_test.port->pool;
	struct sovia_vi *vi = vi_test_up(test);
	struct sovia_clan_entry entry;
	u32 epoch, i;

	while (vi_test_post(test, vi, 8192, true) >= 0)
		;
	/* A reader may be slow. */
	vi_test_second();
	KUNIT_EXPECT_LT(test, pool->count, VI_TEST_POOL);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
	epoch = vi_test.node->epoch;
	vi_test_end(vi);
	/* A VI that is being set up does not keep them lent. */
	vi_test.opened = 0;
	vi_test.closed = 0;
	vi = vi_test_ask(test);
	vi_test_second();
	KUNIT_EXPECT_EQ(test, pool->count, VI_TEST_POOL);
	KUNIT_EXPECT_EQ(test, vi_test.closed, 1);
	KUNIT_EXPECT_EQ(test, vi_test.err, -ECONNRESET);
	/* It learns of it from the epoch, if it is there at all. */
	KUNIT_EXPECT_NE(test, vi_test.node->epoch, epoch);
	KUNIT_EXPECT_EQ(test, vi_test.node->strikes, 0);
	vi_test_end(vi);

	/* Those that have been returned were not kept. */
	vi_test_open(VI_TEST_GENERATION);
	KUNIT_ASSERT_TRUE(test, vi_test.node->open);
	vi_test.opened = 0;
	vi = vi_test_up(test);
	KUNIT_EXPECT_GE(test, vi_test_post(test, vi, 8192, true), 0);
	vi_test_end(vi);
	entry = vi_test_take(test, SOVIA_CLAN_DATA);
	for (i = 0; i < 2; i++)
		sovia_clan_in_return(&vi_test.in, le32_to_cpu(entry.cookie[i]));
	sovia_clan_in_publish(&vi_test.in);
	vi_test_second();
	KUNIT_EXPECT_EQ(test, pool->count, VI_TEST_POOL);
	KUNIT_EXPECT_TRUE(test, vi_test.node->open);
}

/* What the other node takes after a VI has been ended is not reported as taken. */
static void vi_ends_first(struct kunit *test)
{
	struct sovia_clan_entry rep;
	struct sovia_vi *vi;

	vi = vi_test_ask(test);
	vi_test_take(test, SOVIA_CLAN_REQ);
	/* The end waits for the upcall, longer than for a grace period. */
	vi_test.holds = true;
	rep = vi_test_entry(vi, SOVIA_CLAN_REP, 0);
	vi_test_put(&rep);
	sovia_clan_out_publish(&vi_test.out);
	sovia_clan_port_rung(vi_test.port);
	wait_for_completion(&vi_test.held);
	vi_test_take(test, SOVIA_CLAN_RTU);
	KUNIT_EXPECT_EQ(test, vi_test_post(test, vi, 100, false), SOVIA_POSTED);
	vi->prov->end(vi);
	synchronize_rcu();
	vi_test_take(test, SOVIA_CLAN_DATA);
	do {
		sovia_clan_port_rung(vi_test.port);
		msleep(20);
	} while (test_bit(NAPI_STATE_SCHED, &vi_test.port->napi.state));
	KUNIT_EXPECT_EQ(test, vi_test.done, 0);
	complete(&vi_test.release);
	wait_for_completion(&vi_test.ended);
	KUNIT_EXPECT_EQ(test, vi_test.done, 1);
	KUNIT_EXPECT_EQ(test, vi_test.lost, 1);
	vi_test_take(test, SOVIA_CLAN_BYE);
}

static struct kunit_case vi_cases[] = {
	KUNIT_CASE(vi_connects),
	KUNIT_CASE(vi_accepts),
	KUNIT_CASE(vi_unsealed),
	KUNIT_CASE(vi_port_goes),
	KUNIT_CASE(vi_rejected),
	KUNIT_CASE(vi_no_answer),
	KUNIT_CASE(vi_strangers),
	KUNIT_CASE(vi_violations),
	KUNIT_CASE(vi_wild_words),
	KUNIT_CASE(vi_node_comes_and_goes),
	KUNIT_CASE(vi_requests_bounded),
	KUNIT_CASE(vi_requests_unread),
	KUNIT_CASE(vi_answers_unread),
	KUNIT_CASE(vi_no_listener),
	KUNIT_CASE(vi_storm),
	KUNIT_CASE(vi_full),
	KUNIT_CASE(vi_pages),
	KUNIT_CASE(vi_long_taken),
	KUNIT_CASE(vi_never_begun),
	KUNIT_CASE(vi_number_lost),
	KUNIT_CASE(vi_keeps_pages),
	KUNIT_CASE(vi_ends_first),
	{}
};

struct kunit_suite sovia_clan_vi_suite = {
	.name = "sovia-clan_vi",
	.init = vi_test_init,
	.exit = vi_test_exit,
	.test_cases = vi_cases,
};

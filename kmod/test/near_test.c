// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of near.c; included by it. */
#include "peer/peer_way.h"
#include "suites.h"

/**
 * struct near_test - both ends of a connection between two namespaces
 * @snets: the namespaces, of which only the addresses are looked at
 * @asker: the anchor of the first, which has been announced
 * @answerer: of the second
 * @peer: of the asker
 */
struct near_test {
	struct sovia_net	*snets;
	struct sovia_anchor	*asker;
	struct sovia_anchor	*answerer;
	struct sovia_peer	*peer;
};

static const u8 near_test_nonce[SOVIA_NONCE_LEN] = { 1, 2, 3, 4, 5, [31] = 6 };

static int near_test_init(struct kunit *test)
{
	struct near_test *nt = kunit_kzalloc(test, sizeof(*nt), GFP_KERNEL);

	if (!nt)
		return -ENOMEM;
	test->priv = nt;
	nt->snets = kunit_kcalloc(test, 2, sizeof(*nt->snets), GFP_KERNEL);
	nt->asker = kunit_kzalloc(test, sizeof(*nt->asker), GFP_KERNEL);
	nt->answerer = kunit_kzalloc(test, sizeof(*nt->answerer), GFP_KERNEL);
	nt->peer = kunit_kzalloc(test, sizeof(*nt->peer), GFP_KERNEL);
	if (!nt->snets || !nt->asker || !nt->answerer || !nt->peer)
		return -ENOMEM;
	/* This reference is never put: KUnit frees it. */
	kref_init(&nt->peer->kref);
	nt->asker->active = true;
	nt->asker->snet = &nt->snets[0];
	ipv6_addr_set_v4mapped(htonl(0xc0000201), &nt->asker->pair.local);
	ipv6_addr_set_v4mapped(htonl(0xc0000202), &nt->asker->pair.remote);
	nt->answerer->snet = &nt->snets[1];
	nt->answerer->pair.local = nt->asker->pair.remote;
	nt->answerer->pair.remote = nt->asker->pair.local;
	sovia_near_announce(nt->asker, nt->peer, near_test_nonce);
	return 0;
}

static void near_test_exit(struct kunit *test)
{
	struct near_test *nt = test->priv;

	if (!nt)
		return;
	if (nt->asker)
		sovia_near_withdraw(nt->asker);
	if (nt->answerer)
		set_twin(&nt->answerer->twin, NULL);
}

static void near_meets(struct kunit *test)
{
	struct near_test *nt = test->priv;

	KUNIT_EXPECT_TRUE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	KUNIT_EXPECT_PTR_EQ(test, nt->answerer->twin, nt->peer);
	/* Again: only the last one counts. */
	KUNIT_EXPECT_TRUE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	sovia_near_withdraw(nt->asker);
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	KUNIT_EXPECT_NULL(test, nt->answerer->twin);
	KUNIT_EXPECT_EQ(test, kref_read(&nt->peer->kref), 1);
}

static void near_needs_the_nonce(struct kunit *test)
{
	u8 nonce[sizeof(near_test_nonce)];
	struct near_test *nt = test->priv;

	memcpy(nonce, near_test_nonce, sizeof(nonce));
	nonce[sizeof(nonce) - 1] ^= 1;
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, nonce));
	nonce[sizeof(nonce) - 1] ^= 1;
	nonce[0] ^= 1;
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, nonce));
}

static void near_needs_the_addresses(struct kunit *test)
{
	struct near_test *nt = test->priv;
	struct sovia_pair *pair = &nt->answerer->pair;

	pair->local.s6_addr[15] ^= 4;
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	pair->local.s6_addr[15] ^= 4;
	pair->remote.s6_addr[15] ^= 4;
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	swap(pair->local, pair->remote);
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
}

/* What is sent back to its sender proves nothing. */
static void near_needs_another_end(struct kunit *test)
{
	struct near_test *nt = test->priv;

	nt->answerer->active = true;
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	nt->answerer->active = false;
	nt->answerer->snet = nt->asker->snet;
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
}

static void near_joins(struct kunit *test)
{
	struct near_test *nt = test->priv;
	const struct sovia_pair here = {};
	struct sovia_peer *own = kunit_kzalloc(test, sizeof(*own), GFP_KERNEL);
	struct sovia_pair pair;

	KUNIT_ASSERT_NOT_NULL(test, own);
	own->snet = nt->answerer->snet;
	KUNIT_EXPECT_PTR_EQ(test, sovia_peer_provider(own), &sovia_verbs_provider);
	sovia_near_meet(nt->answerer, near_test_nonce);
	sovia_near_join(own, nt->answerer);
	KUNIT_EXPECT_NULL(test, nt->answerer->twin);
	KUNIT_EXPECT_PTR_EQ(test, sovia_peer_provider(own), &sovia_near_provider);
	/* The other namespace exits. */
	sovia_near_part(nt->peer);
	KUNIT_EXPECT_EQ(test, PTR_ERR(sovia_near_beyond(own, &here, &pair)), -ECONNREFUSED);
	KUNIT_EXPECT_FALSE(test, sovia_near_meet(nt->answerer, near_test_nonce));
	/* The next exchange is with another kernel. */
	sovia_near_join(own, nt->answerer);
	KUNIT_EXPECT_PTR_EQ(test, sovia_peer_provider(own), &sovia_verbs_provider);
	sovia_near_withdraw(nt->asker);
	KUNIT_EXPECT_EQ(test, kref_read(&nt->peer->kref), 1);
}

static struct kunit_case near_test_cases[] = {
	KUNIT_CASE(near_meets),
	KUNIT_CASE(near_needs_the_nonce),
	KUNIT_CASE(near_needs_the_addresses),
	KUNIT_CASE(near_needs_another_end),
	KUNIT_CASE(near_joins),
	{}
};

struct kunit_suite sovia_near_suite = {
	.name = "sovia-near",
	.init = near_test_init,
	.exit = near_test_exit,
	.test_cases = near_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of trials, link_trial.c.  Included by link.c after link_test.c, whose provider and
 * helpers it uses.
 */
static struct sovia_link *trial_test_get(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_NOT_NULL(test, link);
	link->lane.trial = true;
	return link;
}

/* Number of messages posted, or of padded ones. */
static int trial_test_sent(const struct sovia_link *link, bool padded)
{
	const struct test_vi *tv = container_of(link->lane.vi, struct test_vi, vi);
	unsigned int most = sizeof(struct sovia_hdr) + SOVIA_PAYLOAD_MIN;
	int i, count = 0;

	for (i = 0; i < tv->count; i++)
		count += !padded || tv->msgs[i]->len == most;
	return count;
}

/* The peer sends ACK or PROBE. */
static void trial_test_hear(struct kunit *test, struct sovia_link *link, u8 type,
			    unsigned int padding)
{
	struct sovia_lane *lane = &link->lane;
	const struct sovia_msg msg = {
		.type = type, .len = padding,
		.seq = lane->credit.rx_next, .ack = lane->credit.tx_una,
	};
	struct sk_buff *skb = alloc_skb(sizeof(struct sovia_hdr) + padding, GFP_KERNEL);
	struct sovia_vi *vi = lane->vi;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	sovia_msg_build(skb_put(skb, sizeof(struct sovia_hdr)), &msg, lane->version);
	skb_put_zero(skb, padding);
	local_bh_disable();
	if (!vi->client->receive(vi, skb, NULL))
		kfree_skb(skb);
	local_bh_enable();
	link_flush();
}

static void trial_test_wait_for_vi(struct kunit *test, struct sovia_link *link)
{
	int tries = 500;

	while (!READ_ONCE(link->lane.vi) && tries--)
		msleep(20);
	link_flush();
	KUNIT_ASSERT_NOT_NULL(test, link->lane.vi);
}

/* Nothing is heard for two seconds. */
static void trial_test_fail(struct kunit *test, struct sovia_link *link)
{
	int i;

	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_NE(test, link->trial_wait, 0UL);
	KUNIT_EXPECT_GE(test, trial_test_sent(link, true), 1);
	KUNIT_EXPECT_EQ(test, trial_test_sent(link, true), trial_test_sent(link, false));
	/* It may fire by itself as well. */
	for (i = 0; i < 4 && link->trial_wait; i++) {
		KUNIT_EXPECT_LE(test, trial_test_sent(link, true), 4);
		link_test_happen(test, link, HAS_TIMER);
	}
	KUNIT_EXPECT_EQ(test, link->trial_wait, 0UL);
}

/* CONN is not sent before the peer's long message has come. */
static void trial_active(struct kunit *test)
{
	struct sovia_link *link = trial_test_get(test);
	struct socket *sock = test_socket(test);

	link_test_attach(test, link, sock->sk);
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_CONNECTING);
	KUNIT_EXPECT_FALSE(test, link->lane.open);
	KUNIT_EXPECT_EQ(test, trial_test_sent(link, true), trial_test_sent(link, false));
	trial_test_hear(test, link, SOVIA_ACK, SOVIA_PAYLOAD_MIN);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	KUNIT_EXPECT_EQ(test, link->trial_wait, 0UL);
	/* An ACK, and CONN. */
	KUNIT_EXPECT_EQ(test, trial_test_sent(link, false), trial_test_sent(link, true) + 2);
	KUNIT_EXPECT_EQ(test, link->lane.credit.tx_next, 1U);
	/* A late one is an ACK. */
	trial_test_hear(test, link, SOVIA_ACK, SOVIA_PAYLOAD_MIN);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	sock_release(sock);
	link_test_gone(test, link);
}

static struct sovia_link *trial_test_accept(struct kunit *test)
{
	struct sovia_link *link = trial_test_get(test);

	link_test_ask(test, link, TEST_PEER_ID, 0);
	link_flush();
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_CONNECTING);
	KUNIT_EXPECT_EQ(test, trial_test_sent(link, false), 0);
	return link;
}

/* The passive end answers, each time, and is UP with the next message, whatever that is. */
static void trial_passive(struct kunit *test)
{
	static const u8 types[] = { SOVIA_ACK, SOVIA_PROBE };
	struct sovia_link *link;
	int i;

	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		link = trial_test_accept(test);
		trial_test_hear(test, link, SOVIA_ACK, SOVIA_PAYLOAD_MIN);
		trial_test_hear(test, link, SOVIA_ACK, SOVIA_PAYLOAD_MIN);
		KUNIT_EXPECT_EQ(test, trial_test_sent(link, true), 2);
		KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_CONNECTING);
		trial_test_hear(test, link, types[i], 0);
		KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
		KUNIT_EXPECT_EQ(test, link->lane.credit.rx_next, types[i] == SOVIA_PROBE ? 1U : 0U);
		link_test_gone(test, link);
	}
}

/* What does not belong to a trial ends the link. */
static void trial_violated(struct kunit *test)
{
	struct sovia_link *link;

	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	link = trial_test_accept(test);
	trial_test_hear(test, link, SOVIA_PROBE, 0);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	link_test_gone(test, link);
	link = trial_test_accept(test);
	trial_test_hear(test, link, SOVIA_ACK, 0);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	link_test_gone(test, link);
	link = trial_test_get(test);
	link_test_happen(test, link, HAS_START);
	link_test_happen(test, link, HAS_ESTABLISHED);
	trial_test_hear(test, link, SOVIA_ACK, 0);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	sovia_memory_clear(link->snet, &link->pair);
	link_test_gone(test, link);
}

/* The second failed trial of a set-up ends it, and says that there is no way. */
static void trial_fails(struct kunit *test)
{
	struct sovia_link *link = trial_test_get(test);
	struct socket *sock = test_socket(test);

	link_test_attach(test, link, sock->sk);
	trial_test_fail(test, link);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_CONNECTING);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_SYN_SENT);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(link->snet, &link->pair, NULL), SOVIA_MEMORY_NONE);
	trial_test_wait_for_vi(test, link);
	/* The peer has noticed first. */
	link_test_happen(test, link, HAS_ESTABLISHED);
	link_test_happen(test, link, HAS_CLOSED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_err, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, sovia_memory_ask(link->snet, &link->pair, NULL), SOVIA_MEMORY_TCP);
	sovia_memory_clear(link->snet, &link->pair);
	sock_release(sock);
	link_test_gone(test, link);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* In RECOVERING it is a failed attempt, as often as it may be; messages keep their numbers. */
static void trial_recovers(struct kunit *test)
{
	struct sovia_link *link = trial_test_get(test);
	struct socket *sock = test_socket(test);
	int i;

	link->lane.trial = false;
	link_test_reach(test, link, sock->sk, STAGE_UP);
	link->lane.trial = true;
	link_test_happen(test, link, HAS_CLOSED);
	for (i = 0; i < 3; i++) {
		trial_test_wait_for_vi(test, link);
		trial_test_fail(test, link);
		KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	}
	trial_test_wait_for_vi(test, link);
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_EQ(test, link->lane.credit.tx_next, 0U);
	trial_test_hear(test, link, SOVIA_ACK, SOVIA_PAYLOAD_MIN);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	KUNIT_EXPECT_EQ(test, link->lane.credit.tx_next, 1U);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_SYN_SENT);
	sock_release(sock);
	link_test_gone(test, link);
}

static struct kunit_case link_trial_test_cases[] = {
	KUNIT_CASE(trial_active),
	KUNIT_CASE(trial_passive),
	KUNIT_CASE(trial_violated),
	KUNIT_CASE(trial_fails),
	KUNIT_CASE(trial_recovers),
	{}
};

struct kunit_suite sovia_link_trial_suite = {
	.name = "sovia-link-trial",
	.test_cases = link_trial_test_cases,
};

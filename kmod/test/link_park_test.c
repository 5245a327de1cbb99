// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of links that are parked, and of windows that grow.  Included by link.c after
 * link_life_test.c, whose provider and helpers it uses; link_test.c has the states.
 */

/* A link in a stage, with one connection. */
static struct sovia_link *park_test_reach(struct kunit *test, struct socket *sock,
					  enum link_stage stage)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));

	KUNIT_ASSERT_NOT_NULL(test, link);
	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	link_test_reach(test, link, sock->sk, stage);
	return link;
}

/* A link that is UP, with one connection, and nothing under way. */
static struct sovia_link *park_test_link(struct kunit *test, struct socket *sock)
{
	struct sovia_link *link = park_test_reach(test, sock, STAGE_UP);

	link_test_receive(test, link, SOVIA_ACK, 0, true);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&link->lane.credit), 0U);
	return link;
}

static void park_test_end(struct kunit *test, struct sovia_link *link, struct socket *sock)
{
	sock_release(sock);
	link_test_gone(test, link);
	rcu_barrier();
}

/* The last message that was posted. */
static struct sovia_hdr *park_test_posted(struct sovia_link *link)
{
	struct test_vi *tv = container_of(link->lane.vi, struct test_vi, vi);

	return (struct sovia_hdr *)tv->msgs[tv->count - 1]->data;
}

static void park_grows(struct kunit *test)
{
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_link(test, sock);
	struct sovia_lane *lane = &link->lane;
	struct sovia_vi *vi = lane->vi;

	spin_lock_bh(&lane->lock);
	lane->grows = true;
	sovia_credit_begin(&lane->credit, 4);
	sovia_credit_grant(&lane->credit, 4);
	spin_unlock_bh(&lane->lock);
	test_more = 0;
	/* The peer waits for credits. */
	link_test_receive(test, link, SOVIA_PROBE, SOVIA_F_WANT | SOVIA_F_ACKREQ, true);
	KUNIT_EXPECT_EQ(test, test_more, 2 * 8 + 2U);
	KUNIT_EXPECT_EQ(test, lane->credit.own_window, 4U);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(park_test_posted(link)->ref), 4U);
	/* Not a second time until they are posted, and are told of. */
	test_more = 0;
	link_test_receive(test, link, SOVIA_PROBE, SOVIA_F_WANT, true);
	local_bh_disable();
	vi->client->rx_grown(vi, 18);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, lane->credit.own_window, 8U);
	KUNIT_EXPECT_EQ(test, test_more, 0U);
	/* There was something to acknowledge. */
	KUNIT_EXPECT_EQ(test, park_test_posted(link)->type, SOVIA_ACK);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(park_test_posted(link)->ref), 8U);
	/* For lack of memory nothing has changed: it may be asked for again. */
	link_test_receive(test, link, SOVIA_PROBE, SOVIA_F_WANT | SOVIA_F_ACKREQ, true);
	KUNIT_EXPECT_EQ(test, test_more, 2 * 16 + 2U);
	test_more = 0;
	local_bh_disable();
	vi->client->rx_grown(vi, 15);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, lane->credit.own_window, 8U);
	link_test_receive(test, link, SOVIA_PROBE, SOVIA_F_WANT | SOVIA_F_ACKREQ, true);
	KUNIT_EXPECT_EQ(test, test_more, 2 * 16 + 2U);
	park_test_end(test, link, sock);
}

/* What the peer sends behind its PARK, which we have agreed to, is lost, and no violation. */
static void park_is_deaf(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_link(test, sock);
	unsigned long bad = snmp_fold_field(snet->mib, SOVIA_STAT_bad_message);
	u32 next;

	sovia_connd_queue(&connd_hold);
	wait_for_completion(&connd_held);
	link_test_receive(test, link, SOVIA_PARK, 0, true);
	KUNIT_EXPECT_TRUE(test, link->lane.parked);
	next = link->lane.credit.rx_next;
	link_test_receive(test, link, SOVIA_PROBE, 0, true);
	KUNIT_EXPECT_EQ(test, link->lane.credit.rx_next, next);
	complete(&connd_go);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_PARKED);
	KUNIT_EXPECT_EQ(test, snmp_fold_field(snet->mib, SOVIA_STAT_bad_message), bad);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
	KUNIT_EXPECT_NULL(test, link->lane.room);
	park_test_end(test, link, sock);
}

/* What is queued between the peer's PARK and the end of the VI resumes the link. */
static void park_is_late(struct kunit *test)
{
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_link(test, sock);
	unsigned int before = link->snet->link_count;

	sovia_connd_queue(&connd_hold);
	wait_for_completion(&connd_held);
	link_test_receive(test, link, SOVIA_PARK, 0, true);
	sovia_lane_probe(&link->lane);
	complete(&connd_go);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_TRUE(test, link->resumes);
	KUNIT_EXPECT_NOT_NULL(test, link->lane.room);
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	KUNIT_EXPECT_FALSE(test, link->resumes);
	KUNIT_EXPECT_EQ(test, link->snet->link_count, before);
	KUNIT_EXPECT_EQ(test, link->snet->parked_count, 0U);
	/* PARK of ours, repeated over the next VI, is a PROBE. */
	link_test_receive(test, link, SOVIA_ACK, 0, true);
	KUNIT_EXPECT_TRUE(test, sovia_lane_ask_park(&link->lane));
	KUNIT_EXPECT_EQ(test, park_test_posted(link)->type, SOVIA_PARK);
	sovia_lane_probe(&link->lane);
	link_test_happen(test, link, HAS_CLOSED);
	while (!READ_ONCE(link->lane.vi))
		msleep(20);
	link_flush();
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, sovia_credit_flight(&link->lane.credit), 2U);
	KUNIT_EXPECT_EQ(test, SOVIA_TX_CB(skb_peek(&link->lane.unacked))->type, SOVIA_PROBE);
	park_test_end(test, link, sock);
}

/* PARK that comes right behind the end of the set-up, before the thread has seen that. */
static void park_before_up(struct kunit *test)
{
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_reach(test, sock, STAGE_ASKING);

	sovia_connd_queue(&connd_hold);
	wait_for_completion(&connd_held);
	link_test_established(link);
	link_test_receive(test, link, SOVIA_ACK, 0, true);
	link_test_receive(test, link, SOVIA_PARK, 0, true);
	KUNIT_EXPECT_TRUE(test, link->lane.parked);
	complete(&connd_go);
	link_flush();
	/* Its connection uses it again. */
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_TRUE(test, link->resumes);
	park_test_end(test, link, sock);
}

/* As if there were more links than may be.  Returns how many there are. */
static unsigned int park_test_fill(struct sovia_net *snet)
{
	unsigned int count = snet->link_count;

	sovia_max_links = 1;
	snet->link_count = 2;
	return count;
}

/* A parked link that is to be used again counts: if there are too many it waits. */
static void park_waits_for_room(struct kunit *test)
{
	unsigned int most = sovia_max_links, count;
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_link(test, sock);
	struct sovia_net *snet = link->snet;

	link_test_receive(test, link, SOVIA_PARK, 0, true);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_PARKED);
	count = park_test_fill(snet);
	/* Ours waits, and the peer's is refused. */
	sovia_lane_probe(&link->lane);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_PARKED);
	KUNIT_EXPECT_TRUE(test, link->waits_room);
	link_test_ask(test, link, TEST_PEER_ID, link->lane.id);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_PARKED);
	KUNIT_EXPECT_EQ(test, test_requests, 0);
	snet->link_count = count;
	sovia_max_links = most;
	while (READ_ONCE(link->state) == SOVIA_LINK_PARKED)
		msleep(20);
	KUNIT_EXPECT_EQ(test, snet->link_count, count + 1);
	park_test_end(test, link, sock);
}

/* ... but not for longer than a recovery takes. */
static void park_waits_in_vain(struct kunit *test)
{
	unsigned int most = sovia_max_links, count;
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_link(test, sock);
	struct sovia_net *snet = link->snet;

	link_test_receive(test, link, SOVIA_PARK, 0, true);
	link_flush();
	count = park_test_fill(snet);
	sovia_lane_probe(&link->lane);
	link_flush();
	KUNIT_EXPECT_TRUE(test, link->waits_room);
	link->recovery.since = jiffies - MAX_JIFFY_OFFSET;
	while (READ_ONCE(link->state) == SOVIA_LINK_PARKED)
		msleep(20);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	snet->link_count = count;
	sovia_max_links = most;
	park_test_end(test, link, sock);
}

/* The peer resumes a link that waits for room here. */
static void park_wait_is_over(struct kunit *test)
{
	unsigned int most = sovia_max_links, count;
	struct socket *sock = test_socket(test);
	struct sovia_link *link = park_test_link(test, sock);
	struct sovia_net *snet = link->snet;

	link_test_receive(test, link, SOVIA_PARK, 0, true);
	link_flush();
	count = park_test_fill(snet);
	sovia_lane_probe(&link->lane);
	link_flush();
	KUNIT_ASSERT_TRUE(test, link->waits_room);
	/* Room, and the peer is first. */
	snet->link_count = count;
	sovia_max_links = most;
	link_test_ask(test, link, TEST_PEER_ID, link->lane.id);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_FALSE(test, link->waits_room);
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_ASSERT_EQ(test, link->state, SOVIA_LINK_UP);
	link_test_receive(test, link, SOVIA_ACK, 0, true);
	/* Much later it is parked again, while there is no room, and nothing is to be sent. */
	link->recovery.since = jiffies - MAX_JIFFY_OFFSET;
	link_test_receive(test, link, SOVIA_PARK, 0, true);
	link_flush();
	KUNIT_ASSERT_EQ(test, link->state, SOVIA_LINK_PARKED);
	count = park_test_fill(snet);
	/* The timer of when it was UP is still armed: as if it fired. */
	sovia_link_event(link, SOVIA_LINK_EV_TIMER);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_PARKED);
	snet->link_count = count;
	sovia_max_links = most;
	park_test_end(test, link, sock);
}

/* A peer that answers PARK as a PROBE is not the only one that is asked. */
static void park_asks_others(struct kunit *test)
{
	struct socket *socks[2] = { test_socket(test), test_socket(test) };
	struct sovia_net *snet = sovia_net(&init_net);
	unsigned int most = sovia_max_links;
	struct sovia_link *a, *b, *fresh, *found;
	int i;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	a = link_test_get(htonl(0x0a630021));
	b = link_test_get(htonl(0x0a630022));
	fresh = link_test_get(htonl(0x0a630023));
	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	KUNIT_ASSERT_NOT_NULL(test, fresh);
	link_test_reach(test, a, socks[0]->sk, STAGE_UP);
	link_test_reach(test, b, socks[1]->sk, STAGE_UP);
	link_test_receive(test, a, SOVIA_ACK, 0, true);
	link_test_receive(test, b, SOVIA_ACK, 0, true);
	sovia_link_set_idle(a, true);
	sovia_link_set_idle(b, true);
	sovia_max_links = 1;
	for (i = 0; i < 2; i++) {
		/* What link_make_room() does. */
		found = sovia_link_excess(fresh);
		KUNIT_ASSERT_NOT_NULL(test, found);
		KUNIT_EXPECT_PTR_EQ(test, found, i ? b : a);
		KUNIT_EXPECT_TRUE(test, sovia_link_ask_park(found));
		link_test_receive(test, found, SOVIA_ACK, 0, true);
		sovia_link_put(found);
	}
	/* One that is parked and waits is one more: there is room for it, or another one goes. */
	sovia_max_links = snet->link_count;
	KUNIT_EXPECT_NULL(test, sovia_link_excess(fresh));
	sovia_link_set_parked(fresh, true);
	KUNIT_EXPECT_NULL(test, sovia_link_excess(fresh));
	sovia_max_links = snet->link_count;
	found = sovia_link_excess(fresh);
	KUNIT_EXPECT_NOT_NULL(test, found);
	if (found)
		sovia_link_put(found);
	sovia_link_set_parked(fresh, false);
	sovia_max_links = most;
	link_test_gone(test, fresh);
	park_test_end(test, a, socks[0]);
	park_test_end(test, b, socks[1]);
}

/* Idle ones are counted, the least recently used first. */
static void park_idlest(struct kunit *test)
{
	struct socket *socks[3];
	struct sovia_link *links[3], *found;
	struct sovia_net *snet = sovia_net(&init_net);
	unsigned int before = snet->idle_count;
	int i;

	test_connect_err = 0;
	test_post_err = 0;
	for (i = 0; i < 3; i++) {
		socks[i] = test_socket(test);
		links[i] = link_test_get(htonl(0x0a630010 + i));
		KUNIT_ASSERT_NOT_NULL(test, links[i]);
		link_test_reach(test, links[i], socks[i]->sk, STAGE_UP);
		sovia_link_set_idle(links[i], true);
	}
	KUNIT_EXPECT_EQ(test, snet->idle_count, before + 3);
	sovia_link_set_idle(links[0], false);
	sovia_link_set_idle(links[0], true);
	found = sovia_link_idlest(snet);
	KUNIT_EXPECT_PTR_EQ(test, found, links[1]);
	sovia_link_put(found);
	sovia_link_set_parked(links[1], true);
	sovia_link_set_idle(links[1], true);
	found = sovia_link_idlest(snet);
	KUNIT_EXPECT_PTR_EQ(test, found, links[2]);
	sovia_link_put(found);
	KUNIT_EXPECT_EQ(test, snet->parked_count, 1U);
	for (i = 0; i < 3; i++)
		park_test_end(test, links[i], socks[i]);
	KUNIT_EXPECT_EQ(test, snet->idle_count, before);
	KUNIT_EXPECT_EQ(test, snet->parked_count, 0U);
}

static struct kunit_case link_park_test_cases[] = {
	KUNIT_CASE(park_grows),
	KUNIT_CASE(park_is_deaf),
	KUNIT_CASE(park_is_late),
	KUNIT_CASE(park_before_up),
	KUNIT_CASE(park_waits_for_room),
	KUNIT_CASE(park_waits_in_vain),
	KUNIT_CASE(park_wait_is_over),
	KUNIT_CASE(park_asks_others),
	KUNIT_CASE(park_idlest),
	{}
};

struct kunit_suite sovia_link_park_suite = {
	.name = "sovia-link-park",
	.test_cases = link_park_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of the VI of a link, its slots and half-open links: what waits for what.
 * Included by link.c after link_test.c, whose provider and helpers it uses.
 */
/* The VI of a link that is ending keeps back the next one, and nothing else. */
static void link_waits_for_end(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);
	struct sovia_vi *old;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, STAGE_UP);
	old = link->vi;
	test_end_later = true;
	link_test_happen(test, link, HAS_CLOSED);
	KUNIT_EXPECT_PTR_EQ(test, link->vi, old);
	KUNIT_EXPECT_PTR_EQ(test, link->lane.vi, NULL);
	/* An attempt of ours waits. */
	link_test_happen(test, link, HAS_TIMER);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_TRUE(test, link->wanted);
	KUNIT_EXPECT_EQ(test, test_vis, 1);
	/* Upcalls of the old one mean nothing any more. */
	old->client->established(old, &(struct sovia_hello){}, 0);
	old->client->closed(old, -ECONNRESET);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_EQ(test, link->events, 0UL);
	/* Requests of the peer wait, too, but only the last one. */
	test_rejected = 0;
	link_test_ask(test, link, TEST_PEER_ID, link->lane.id);
	link_flush();
	KUNIT_EXPECT_NOT_NULL(test, link->deferred);
	KUNIT_EXPECT_EQ(test, test_rejected, 0);
	link_test_ask(test, link, TEST_PEER_ID, link->lane.id);
	link_flush();
	KUNIT_EXPECT_EQ(test, test_rejected, -EAGAIN);
	KUNIT_EXPECT_EQ(test, test_requests, 1);
	test_end_later = false;
	test_vi_ended(old);
	link_flush();
	KUNIT_EXPECT_NULL(test, link->deferred);
	KUNIT_EXPECT_EQ(test, test_requests, 0);
	KUNIT_EXPECT_EQ(test, test_vis, 1);
	KUNIT_ASSERT_NOT_NULL(test, link->vi);
	KUNIT_EXPECT_PTR_EQ(test, link->lane.vi, link->vi);
	KUNIT_EXPECT_FALSE(test, link->lane.active);
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	sock_release(sock);
	link_test_gone(test, link);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A link whose VI does not end goes DOWN nevertheless; the next one does not wait for it. */
static void link_down_does_not_wait(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002)), *next;
	struct socket *sock = test_socket(test);
	struct sovia_vi *old;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, STAGE_ASKING);
	old = link->vi;
	test_end_later = true;
	/* Our attempt does not count, the peer's request waits for its end. */
	link->lane.active = false;
	link_test_happen(test, link, HAS_REQUEST);
	KUNIT_EXPECT_NOT_NULL(test, link->deferred);
	link_test_happen(test, link, HAS_KILL);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_CLOSE);
	/* It has got a link of its own. */
	KUNIT_EXPECT_NULL(test, link->deferred);
	KUNIT_EXPECT_EQ(test, test_requests, 0);
	KUNIT_EXPECT_EQ(test, test_vis, 2);
	sock_release(sock);
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, kref_read(&link->kref), 2);
	next = link_test_get(htonl(0x0a630002));
	KUNIT_ASSERT_NOT_NULL(test, next);
	KUNIT_EXPECT_PTR_NE(test, next, link);
	KUNIT_EXPECT_EQ(test, next->state, SOVIA_LINK_CONNECTING);
	test_end_later = false;
	link_test_gone(test, next);
	test_vi_ended(old);
	link_flush();
	KUNIT_EXPECT_EQ(test, kref_read(&link->kref), 1);
	sovia_link_put(link);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A peer without room is asked again as long as a connection waits. */
static void link_peer_busy(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);
	int i, tries = 500;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, STAGE_ASKING);
	for (i = 0; i < 3; i++) {
		link_test_closed(link, -EBUSY);
		link_flush();
		KUNIT_ASSERT_EQ(test, link->state, SOVIA_LINK_CONNECTING);
		KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_SYN_SENT);
		while (!READ_ONCE(link->lane.vi) && tries--)
			msleep(20);
		link_flush();
		KUNIT_ASSERT_NOT_NULL(test, link->lane.vi);
	}
	sock_release(sock);
	link_test_closed(link, -EBUSY);
	while (READ_ONCE(link->state) != SOVIA_LINK_DOWN && tries--)
		msleep(20);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	sovia_link_put(link);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

#define LINK_CROWD	9

/* A user's set-ups beyond his slots wait in order; others do not wait for him. */
static void link_slots_of_users(struct kunit *test)
{
	struct sovia_link *crowd[LINK_CROWD], *other;
	struct socket *socks[LINK_CROWD];
	int i;

	test_connect_err = 0;
	test_post_err = 0;
	for (i = 0; i < LINK_CROWD; i++) {
		crowd[i] = link_test_get(htonl(0x0a630002 + i));
		KUNIT_ASSERT_NOT_NULL(test, crowd[i]);
		socks[i] = test_socket(test);
		link_test_attach(test, crowd[i], socks[i]->sk);
	}
	KUNIT_EXPECT_EQ(test, test_vis, LINK_CROWD - 1);
	KUNIT_EXPECT_EQ(test, crowd[LINK_CROWD - 1]->slot, SOVIA_SLOT_WAITS);
	KUNIT_EXPECT_EQ(test, crowd[LINK_CROWD - 1]->state, SOVIA_LINK_CONNECTING);
	other = link_test_get_by(htonl(0x0a630102), KUIDT_INIT(1), NULL);
	KUNIT_ASSERT_NOT_NULL(test, other);
	link_test_happen(test, other, HAS_START);
	KUNIT_EXPECT_NOT_NULL(test, other->vi);
	/* One set-up has ended: but its VI has not. */
	test_end_later = true;
	link_test_happen(test, crowd[0], HAS_CLOSED);
	KUNIT_EXPECT_EQ(test, crowd[0]->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_EQ(test, crowd[LINK_CROWD - 1]->slot, SOVIA_SLOT_WAITS);
	test_end_later = false;
	test_vi_ended(test_ending);
	link_flush();
	KUNIT_EXPECT_EQ(test, crowd[LINK_CROWD - 1]->slot, SOVIA_SLOT_HELD);
	KUNIT_EXPECT_NOT_NULL(test, crowd[LINK_CROWD - 1]->vi);
	/* An established link needs none. */
	link_test_happen(test, crowd[1], HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, crowd[1]->slot, SOVIA_SLOT_NONE);
	link_test_gone(test, other);
	for (i = 0; i < LINK_CROWD; i++) {
		sock_release(socks[i]);
		link_test_gone(test, crowd[i]);
	}
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A set-up that a link has given up holds back the next one between the same addresses. */
static void link_slot_of_silent_peer(struct kunit *test)
{
	struct sovia_link *old = link_test_get(htonl(0x0a630002)), *next, *other;
	struct sovia_vi *blocked;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_NOT_NULL(test, old);
	link_test_happen(test, old, HAS_START);
	blocked = old->vi;
	test_end_later = true;
	link_test_happen(test, old, HAS_KILL);
	test_end_later = false;
	KUNIT_EXPECT_EQ(test, old->slot, SOVIA_SLOT_HELD);
	next = link_test_get(htonl(0x0a630002));
	KUNIT_ASSERT_NOT_NULL(test, next);
	link_test_happen(test, next, HAS_START);
	KUNIT_EXPECT_EQ(test, next->slot, SOVIA_SLOT_WAITS);
	KUNIT_EXPECT_NULL(test, next->vi);
	other = link_test_get(htonl(0x0a630003));
	KUNIT_ASSERT_NOT_NULL(test, other);
	link_test_happen(test, other, HAS_START);
	KUNIT_EXPECT_NOT_NULL(test, other->vi);
	test_vi_ended(blocked);
	link_flush();
	KUNIT_EXPECT_EQ(test, old->slot, SOVIA_SLOT_NONE);
	/* Not for nothing. */
	KUNIT_EXPECT_EQ(test, next->state, SOVIA_LINK_DOWN);
	link_test_gone(test, old);
	link_test_gone(test, next);
	link_test_gone(test, other);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* Links of two users that wait start in turn, and those who leave the queue do not stop it. */
static void link_slots_in_turn(struct kunit *test)
{
	struct sovia_link *links[76];
	kuid_t one = KUIDT_INIT(101), two = KUIDT_INIT(102);
	unsigned int limit = sovia_max_links;
	int i;

	test_connect_err = 0;
	test_post_err = 0;
	sovia_max_links = 400;
	/* 60 slots of others, then 14 links of one user and two of another. */
	for (i = 0; i < 76; i++) {
		kuid_t uid = i < 60 ? KUIDT_INIT(i / 6) : i < 74 ? one : two;

		links[i] = link_test_get_by(htonl(0x0a630002 + i), uid, NULL);
		KUNIT_ASSERT_NOT_NULL(test, links[i]);
		/* Otherwise it is not wanted when its turn comes. */
		links[i]->conn_count = 1;
		link_test_happen(test, links[i], HAS_START);
		KUNIT_EXPECT_EQ(test, links[i]->slot, i <= 60 || i == 74 ? SOVIA_SLOT_HELD :
				SOVIA_SLOT_WAITS);
	}
	/* The first one in the queue leaves, and the one behind it. */
	link_test_happen(test, links[61], HAS_KILL);
	link_test_happen(test, links[63], HAS_KILL);
	/* Each user has one slot, and 62 are taken: three have to end for the next. */
	for (i = 0; i < 3; i++)
		link_test_happen(test, links[i], HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, links[75]->slot + links[62]->slot,
			SOVIA_SLOT_HELD + SOVIA_SLOT_WAITS);
	link_test_happen(test, links[3], HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, links[75]->slot, SOVIA_SLOT_HELD);
	KUNIT_EXPECT_EQ(test, links[62]->slot, SOVIA_SLOT_HELD);
	KUNIT_EXPECT_EQ(test, links[64]->slot, SOVIA_SLOT_WAITS);
	sovia_max_links = limit;
	for (i = 0; i < 76; i++)
		link_test_gone(test, links[i]);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A peer that requests more links than it has slots is told to come again. */
static void link_slots_of_peers(struct kunit *test)
{
	struct sovia_link *as = kunit_kzalloc(test, sizeof(*as), GFP_KERNEL), *link;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, as);
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	ipv6_addr_set_v4mapped(htonl(0x0a630001), &as->pair.local);
	ipv6_addr_set_v4mapped(htonl(0x0a630002), &as->pair.remote);
	test_rejected = 0;
	for (i = 0; i < LINK_CROWD; i++) {
		KUNIT_EXPECT_EQ(test, test_rejected, 0);
		as->pair.lane = i;
		link_test_ask(test, as, TEST_PEER_ID, 0);
		link_flush();
	}
	KUNIT_EXPECT_EQ(test, test_rejected, -EBUSY);
	KUNIT_EXPECT_EQ(test, test_vis, LINK_CROWD - 1);
	/* Another peer is not concerned. */
	test_rejected = 0;
	ipv6_addr_set_v4mapped(htonl(0x0a630003), &as->pair.remote);
	link_test_ask(test, as, TEST_PEER_ID, 0);
	link_flush();
	KUNIT_EXPECT_EQ(test, test_rejected, 0);
	KUNIT_EXPECT_EQ(test, test_vis, LINK_CROWD);
	while ((link = sovia_link_first(sovia_net(&init_net)))) {
		sovia_link_event(link, SOVIA_LINK_EV_KILL);
		link_flush();
		sovia_link_put(link);
	}
	KUNIT_EXPECT_EQ(test, test_vis, 0);
	KUNIT_EXPECT_EQ(test, test_requests, 0);
}

/* Half-open links of a user are a part of all, and never evict a link. */
static void link_half_open(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_link *unused, *half[8], *other;
	unsigned int limit = sovia_max_links;
	int i;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(snet), 0);
	unused = link_test_left(test, htonl(0x0a630002), STAGE_UP);
	sovia_max_links = 32;
	for (i = 0; i < ARRAY_SIZE(half); i++) {
		half[i] = link_test_get(htonl(0x0a630010 + i));
		KUNIT_ASSERT_NOT_NULL(test, half[i]);
	}
	KUNIT_EXPECT_NULL(test, link_test_get(htonl(0x0a630020)));
	other = link_test_get_by(htonl(0x0a630020), KUIDT_INIT(1), NULL);
	KUNIT_EXPECT_NOT_NULL(test, other);
	if (other)
		link_test_gone(test, other);
	/* The last quarter is for peers that have a link: 9 links, 12 in all. */
	sovia_max_links = 12;
	KUNIT_EXPECT_NULL(test, link_test_get_by(htonl(0x0a630021), KUIDT_INIT(1), NULL));
	KUNIT_EXPECT_EQ(test, unused->state, SOVIA_LINK_UP);
	sovia_max_links = limit;
	for (i = 0; i < ARRAY_SIZE(half); i++)
		link_test_gone(test, half[i]);
	link_test_gone(test, unused);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A connection of the link, as if connect() found that its direction is missing. */
static void link_test_wait_to_open(struct kunit *test, struct sovia_link *link, struct sock *sk)
{
	lock_sock(sk);
	sovia_state_event(sk, SOVIA_EV_CONNECT);
	KUNIT_EXPECT_EQ(test, link_test_join(test, link, sk), 1);
	release_sock(sk);
	sovia_link_open(link, GLOBAL_ROOT_UID);
	link_flush();
	KUNIT_EXPECT_TRUE(test, link->peering.waits);
}

static void link_test_direction(struct kunit *test, bool early, int err)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *first = test_socket(test), *late = test_socket(test);
	struct sovia_peer *peer;
	struct sovia_vi *old;

	KUNIT_ASSERT_NOT_NULL(test, link);
	peer = sovia_peer_get(link->snet, &link->pair);
	KUNIT_ASSERT_NOT_NULL(test, peer);
	peer->state = SOVIA_PEER_PAIRED;
	peer->version = SOVIA_WIRE_VERSION;
	peer->out = true;
	link_test_attach(test, link, first->sk);
	/* Else the reply needs a MAC. */
	link->lane.active = false;
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_ASSERT_EQ(test, link->state, SOVIA_LINK_UP);
	/* As if the anchor had been lost.  No attempt begins before that. */
	peer->out = false;
	sovia_peer_set_timer(peer, 100 * HZ);
	if (early)
		link_test_wait_to_open(test, link, late->sk);
	old = link->vi;
	test_end_later = true;
	link_test_happen(test, link, HAS_CLOSED);
	link_test_happen(test, link, HAS_TIMER);
	KUNIT_EXPECT_TRUE(test, link->wanted);
	if (!early)
		link_test_wait_to_open(test, link, late->sk);
	test_end_later = false;
	test_vi_ended(old);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_NOT_NULL(test, link->lane.vi);
	KUNIT_EXPECT_EQ(test, late->sk->sk_state, TCP_SYN_SENT);
	peer->out = !err;
	sovia_peer_wake(peer, err);
	link_flush();
	KUNIT_EXPECT_EQ(test, late->sk->sk_state, err ? TCP_CLOSE : TCP_SYN_SENT);
	/* Its CONN waits for the lane. */
	KUNIT_EXPECT_EQ(test, link->lane.ctl_count, err ? 0U : 1U);
	KUNIT_EXPECT_EQ(test, first->sk->sk_state, TCP_SYN_SENT);
	peer->state = SOVIA_PEER_NONE;
	peer->out = false;
	if (timer_delete_sync(&peer->timer))
		sovia_peer_put(peer);
	sock_release(late);
	sock_release(first);
	link_test_gone(test, link);
}

/* Connections that wait for their direction learn of it, or of its failure, in RECOVERING. */
static void link_waits_for_direction(struct kunit *test)
{
	test_connect_err = 0;
	test_post_err = 0;
	test_provider.introduced = true;
	link_test_direction(test, false, 0);
	link_test_direction(test, false, -ECONNREFUSED);
	link_test_direction(test, true, 0);
	link_test_direction(test, true, -ECONNREFUSED);
	test_provider.introduced = false;
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

static struct kunit_case link_vi_test_cases[] = {
	KUNIT_CASE(link_waits_for_end),
	KUNIT_CASE(link_down_does_not_wait),
	KUNIT_CASE(link_peer_busy),
	KUNIT_CASE(link_slots_of_users),
	KUNIT_CASE(link_slot_of_silent_peer),
	KUNIT_CASE(link_slots_in_turn),
	KUNIT_CASE(link_slots_of_peers),
	KUNIT_CASE(link_half_open),
	KUNIT_CASE(link_waits_for_direction),
	{}
};

struct kunit_suite sovia_link_vi_suite = {
	.name = "sovia-link-vi",
	.test_cases = link_vi_test_cases,
};

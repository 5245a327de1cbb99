// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of single cases in the life of a link: races, timers, doubts, room.
 * Included by link.c after link_test.c, whose provider and helpers it uses.
 */
#define LINK_RACES	200
#define LINK_TIMER_RACES	2000
#define LINK_INSISTS		6

/* A connection that attaches when the link is up sends CONN at once, without an upcall. */
static void link_up_told_once(struct kunit *test, const struct sovia_pair *pair)
{
	struct sovia_link *link = sovia_link_get(sovia_net(&init_net), pair, &test_provider,
						 GLOBAL_ROOT_UID, NULL, GFP_KERNEL);
	struct socket *first = test_socket(test), *late = test_socket(test);
	struct test_vi *tv;
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_attach(test, link, first->sk);
	tv = container_of(link->lane.vi, struct test_vi, vi);

	lock_sock(late->sk);
	sovia_state_event(late->sk, SOVIA_EV_CONNECT);
	link_test_established(link);
	while (READ_ONCE(link->state) != SOVIA_LINK_UP)
		cond_resched();
	ret = link_test_join(test, link, late->sk);
	release_sock(late->sk);
	link_flush();
	KUNIT_EXPECT_EQ(test, ret, 1);
	/* The CONN of the first one. */
	KUNIT_EXPECT_EQ(test, tv->count, 1);

	sock_release(late);
	sock_release(first);
	link_test_end(test, pair);
	sovia_link_put(link);
}

static void link_up_races(struct kunit *test)
{
	struct sovia_pair pair = {};
	int i;

	ipv6_addr_set_v4mapped(htonl(0x0a630001), &pair.local);
	ipv6_addr_set_v4mapped(htonl(0x0a630002), &pair.remote);
	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	for (i = 0; i < LINK_RACES; i++)
		link_up_told_once(test, &pair);
}

static struct sovia_link *link_test_get_by(__be32 remote, kuid_t uid, struct sovia_tenant *tenant)
{
	struct sovia_pair pair = {};

	ipv6_addr_set_v4mapped(htonl(0x0a630001), &pair.local);
	ipv6_addr_set_v4mapped(remote, &pair.remote);
	return sovia_link_get(sovia_net(&init_net), &pair, &test_provider, uid, tenant,
			      GFP_KERNEL);
}

static struct sovia_link *link_test_get(__be32 remote)
{
	return link_test_get_by(remote, GLOBAL_ROOT_UID, NULL);
}

static bool link_test_listed(const struct sovia_link *link)
{
	lockdep_assert_held(&link->snet->link_lock);
	return !hlist_unhashed(&link->net_node);
}

/* An unused link with an unacknowledged message. */
static struct sovia_link *link_test_left(struct kunit *test, __be32 remote, enum link_stage stage)
{
	struct sovia_link *link = link_test_get(remote);
	struct socket *sock = test_socket(test);

	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, stage);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, link->conn_count, 0U);
	KUNIT_EXPECT_GT(test, skb_queue_len(&link->lane.unacked), 0U);
	return link;
}

static void link_test_gone(struct kunit *test, struct sovia_link *link)
{
	link_test_happen(test, link, HAS_KILL);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	sovia_link_put(link);
}

static struct sovia_link *link_test_get_local(u32 remote, struct sovia_tenant *tenant)
{
	return link_test_get_by(htonl(remote), GLOBAL_ROOT_UID, tenant);
}

/* Links within this host: where a tenant has many, its end at once without connections. */
static void link_local_tenants(struct kunit *test)
{
	struct sovia_tenant *tenant = sovia_tenant_get(&init_net, KUIDT_INIT(12345));
	struct sovia_tenant *tenant2 = sovia_tenant_get(&init_net, KUIDT_INIT(12346));
	struct sovia_link **links, *other;
	unsigned int count = 0, most = 200;

	KUNIT_ASSERT_NOT_NULL(test, tenant);
	KUNIT_ASSERT_NOT_NULL(test, tenant2);
	links = kunit_kcalloc(test, most, sizeof(*links), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, links);
	test_provider.local = true;
	do {
		links[count] = link_test_get_local(0x0a640000 + count, tenant);
		KUNIT_ASSERT_NOT_NULL(test, links[count]);
	} while (sovia_link_idle_wait(links[count++]) && count < most);
	other = link_test_get_local(0x0a650000, tenant2);
	KUNIT_ASSERT_NOT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, sovia_link_idle_wait(links[0]), 0UL);
	KUNIT_EXPECT_EQ(test, sovia_link_idle_wait(other), (unsigned long)HZ);
	link_test_gone(test, links[--count]);
	KUNIT_EXPECT_EQ(test, sovia_link_idle_wait(links[0]), (unsigned long)HZ);
	link_test_gone(test, other);
	while (count)
		link_test_gone(test, links[--count]);
	/* Not established, or without connections. */
	while ((links[count] = link_test_get_local(0x0a640000 + count, tenant)))
		count++;
	KUNIT_EXPECT_EQ(test, count, 128U);
	/* One that is DOWN counts until it is freed. */
	link_test_happen(test, links[count - 1], HAS_KILL);
	KUNIT_EXPECT_NULL(test, link_test_get_local(0x0a640000 + count, tenant));
	sovia_link_put(links[--count]);
	KUNIT_EXPECT_EQ(test, atomic_read(&tenant->local_spare), 127);
	other = link_test_get_local(0x0a650000, tenant2);
	KUNIT_EXPECT_NOT_NULL(test, other);
	if (other)
		link_test_gone(test, other);
	while (count)
		link_test_gone(test, links[--count]);
	KUNIT_EXPECT_EQ(test, atomic_read(&tenant->local_links), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&tenant->local_spare), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&tenant2->local_links), 0);
	sovia_tenant_put(tenant);
	sovia_tenant_put(tenant2);
	test_provider.local = false;
}

/* The timer fires around the time it is stopped: its reference is dropped once. */
static void link_timer_races(struct kunit *test)
{
	int i;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	for (i = 0; i < LINK_TIMER_RACES; i++) {
		struct sovia_link *link = link_test_get(htonl(0x0a630002));
		ktime_t stop;

		KUNIT_ASSERT_NOT_NULL(test, link);
		sovia_link_keep(link);
		sovia_connd_flush();
		WRITE_ONCE(link->keep_until, 0);
		stop = ktime_add_ns(ktime_get(), TICK_NSEC * i / LINK_TIMER_RACES);
		sovia_link_set_timer(link, 1);
		while (ktime_before(ktime_get(), stop))
			cpu_relax();
		sovia_link_event(link, SOVIA_LINK_EV_KILL);
		link_flush();
		KUNIT_EXPECT_EQ(test, kref_read(&link->kref), 1);
		sovia_link_put(link);
	}
}

/* Number of PROBEs sent. */
static int link_test_probes(struct sovia_link *link)
{
	struct test_vi *tv = container_of(link->lane.vi, struct test_vi, vi);
	int i, probes = 0;

	spin_lock_bh(&link->lane.lock);
	for (i = 0; i < tv->count; i++)
		probes += SOVIA_TX_CB(tv->msgs[i])->type == SOVIA_PROBE;
	spin_unlock_bh(&link->lane.lock);
	return probes;
}

static void link_test_rtr(struct kunit *test, bool answered)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);
	int tries = 500;

	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, STAGE_UP);
	KUNIT_EXPECT_EQ(test, link_test_probes(link), 1);
	if (answered) {
		spin_lock_bh(&link->lane.lock);
		link->lane.credit.tx_una = link->lane.credit.tx_next;
		spin_unlock_bh(&link->lane.lock);
	}
	while (READ_ONCE(link->rtr_retry) && tries--)
		msleep(20);
	KUNIT_EXPECT_EQ(test, READ_ONCE(link->rtr_retry), 0UL);
	KUNIT_EXPECT_EQ(test, link_test_probes(link), answered ? 1 : LINK_INSISTS);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	sock_release(sock);
	link_test_gone(test, link);
}

/* The side that must send first repeats its PROBE until it is acknowledged, with a limit. */
static void link_rtr_retries(struct kunit *test)
{
	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	test_first = true;
	link_test_rtr(test, false);
	link_test_rtr(test, true);
	test_first = false;
}

/* A fresh request for a link that is UP, whose lane answers the PROBE or not. */
static void link_test_doubt(struct kunit *test, bool answered)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);
	int probes;

	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, STAGE_UP);
	probes = link_test_probes(link);
	test_rejected = 0;
	link_test_happen(test, link, HAS_REQUEST);
	link_test_happen(test, link, HAS_REQUEST);
	KUNIT_EXPECT_EQ(test, test_rejected, -EAGAIN);
	KUNIT_ASSERT_EQ(test, link->state, SOVIA_LINK_UP);
	KUNIT_EXPECT_EQ(test, link_test_probes(link), probes + 1);
	link_test_happen(test, link, HAS_TIMER);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	if (answered) {
		spin_lock_bh(&link->lane.lock);
		link->lane.credit.tx_una = link->lane.credit.tx_next;
		spin_unlock_bh(&link->lane.lock);
	}
	/* The probe's timeout is over. */
	link->doubt_end = jiffies;
	link->waiting = false;
	link_test_happen(test, link, HAS_TIMER);
	KUNIT_EXPECT_EQ(test, link->state, answered ? SOVIA_LINK_UP : SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_state, TCP_SYN_SENT);
	/* If the lane is dead, the next request is accepted. */
	test_rejected = 0;
	link_test_happen(test, link, HAS_REQUEST);
	KUNIT_EXPECT_EQ(test, link->state, answered ? SOVIA_LINK_UP : SOVIA_LINK_DOWN);
	KUNIT_EXPECT_EQ(test, test_rejected, answered ? -EAGAIN : 0);
	sock_release(sock);
	link_test_end(test, &link->pair);
	sovia_link_put(link);
}

static void link_doubts(struct kunit *test)
{
	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	link_test_doubt(test, true);
	link_test_doubt(test, false);
}

/* A second lookup, because the link was DOWN, does not find the same link. */
static void link_down_is_unlisted(struct kunit *test)
{
	unsigned long end = jiffies + HZ;
	enum sovia_link_state state;
	struct sovia_link *link;
	bool listed;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one processor");
	link = link_test_get(htonl(0x0a630002));
	KUNIT_ASSERT_NOT_NULL(test, link);
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	/* The connection thread runs up to the point where it needs the table's lock. */
	spin_lock_bh(&link->snet->link_lock);
	sovia_link_event(link, SOVIA_LINK_EV_KILL);
	while (READ_ONCE(link->state) != SOVIA_LINK_DOWN && time_before(jiffies, end))
		cpu_relax();
	listed = link_test_listed(link);
	state = READ_ONCE(link->state);
	spin_unlock_bh(&link->snet->link_lock);
	KUNIT_EXPECT_TRUE(test, listed);
	KUNIT_EXPECT_NE(test, state, SOVIA_LINK_DOWN);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	sovia_link_put(link);
}

static bool link_test_no_sockets(struct sovia_net *snet)
{
	int i;

	for (i = 0; i < 100 && atomic_read(&snet->socks); i++) {
		rcu_barrier();
		msleep(20);
	}
	return !atomic_read(&snet->socks);
}

/* An idle namespace stops listening, unless a new socket needs it. */
static void link_idle_listens(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);

	KUNIT_ASSERT_EQ(test, sovia_link_listen(snet), 0);
	/* Sockets of previous cases are freed after a grace period. */
	KUNIT_ASSERT_TRUE(test, link_test_no_sockets(snet));
	mutex_lock(&snet->listen_mutex);
	sovia_link_net_idle(snet);
	/* The work may check before or after this. */
	msleep(200);
	atomic_inc(&snet->socks);
	KUNIT_EXPECT_TRUE(test, snet->listening);
	mutex_unlock(&snet->listen_mutex);
	test_settle();
	KUNIT_EXPECT_TRUE(test, snet->listening);

	atomic_dec(&snet->socks);
	sovia_link_net_idle(snet);
	test_settle();
	KUNIT_EXPECT_FALSE(test, snet->listening);
	KUNIT_EXPECT_EQ(test, sovia_link_listen(snet), 0);
	KUNIT_EXPECT_TRUE(test, snet->listening);
}

/* A link beyond the limit replaces an unused one only. */
static void link_room(struct kunit *test)
{
	struct sovia_net *snet = sovia_net(&init_net);
	unsigned int limit = sovia_max_links, before = snet->link_count;
	struct socket *sock = test_socket(test);
	struct sovia_link *a, *b, *c;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(snet), 0);
	a = link_test_left(test, htonl(0x0a630002), STAGE_UP);
	sovia_max_links = before + 1;
	KUNIT_EXPECT_EQ(test, snet->link_count, sovia_max_links);
	b = link_test_left(test, htonl(0x0a630003), STAGE_RECOVERING);
	KUNIT_EXPECT_EQ(test, snet->link_count, sovia_max_links);
	KUNIT_EXPECT_EQ(test, a->state, SOVIA_LINK_DOWN);
	c = link_test_get(htonl(0x0a630004));
	KUNIT_ASSERT_NOT_NULL(test, c);
	/* Not before the new one is established. */
	KUNIT_EXPECT_EQ(test, b->state, SOVIA_LINK_RECOVERING);
	link_test_reach(test, c, sock->sk, STAGE_UP);
	KUNIT_EXPECT_EQ(test, snet->link_count, sovia_max_links);
	KUNIT_EXPECT_EQ(test, b->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_NULL(test, link_test_get(htonl(0x0a630005)));
	KUNIT_EXPECT_EQ(test, c->state, SOVIA_LINK_UP);
	sovia_max_links = limit;
	sock_release(sock);
	link_test_gone(test, a);
	link_test_gone(test, b);
	link_test_gone(test, c);
	KUNIT_EXPECT_EQ(test, snet->link_count, before);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A connection that joins a link before it is evicted keeps it; a later one finds it DOWN. */
static void link_room_joined(struct kunit *test)
{
	struct sovia_link *link = link_test_left(test, htonl(0x0a630002), STAGE_UP);
	struct socket *first = test_socket(test), *late = test_socket(test);
	int ret;

	lock_sock(first->sk);
	sovia_state_event(first->sk, SOVIA_EV_CONNECT);
	ret = link_test_join(test, link, first->sk);
	release_sock(first->sk);
	KUNIT_EXPECT_EQ(test, ret, 1);
	KUNIT_EXPECT_FALSE(test, sovia_link_unlist_unused(link));
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	sock_release(first);
	KUNIT_EXPECT_TRUE(test, sovia_link_retire(link));
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	lock_sock(late->sk);
	sovia_state_event(late->sk, SOVIA_EV_CONNECT);
	KUNIT_EXPECT_EQ(test, link_test_join(test, link, late->sk), -ENOTCONN);
	release_sock(late->sk);
	sock_release(late);
	sovia_connd_flush();
	rcu_barrier();
	sovia_link_put(link);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
}

/* A connection with a queued control message counts until it or the link ends. */
static void link_ctl_count(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);
	struct sovia_conn *conn;
	int refs, tries = 500;

	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, STAGE_UP);
	while (sovia_credit_may_send(&link->lane.credit) && tries--)
		sovia_lane_probe(&link->lane);
	conn = test_conn(sock);
	refs = refcount_read(&conn->refs);
	sovia_conn_control(conn, SOVIA_WAKEUP, 0);
	KUNIT_EXPECT_EQ(test, link->lane.ctl_count, 1U);
	/* Recovery keeps the count. */
	link_test_happen(test, link, HAS_CLOSED);
	while (!READ_ONCE(link->lane.vi) && tries--)
		msleep(20);
	link_test_happen(test, link, HAS_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_UP);
	KUNIT_EXPECT_EQ(test, link->lane.ctl_count, 1U);
	sovia_conn_leave(conn);
	KUNIT_EXPECT_EQ(test, link->lane.ctl_count, 0U);
	KUNIT_EXPECT_EQ(test, (int)refcount_read(&conn->refs), refs);
	/* What is owed to the peer outlives the socket. */
	sovia_conn_control(conn, SOVIA_RESET, 0);
	sovia_conn_get(conn);
	sock_release(sock);
	KUNIT_EXPECT_EQ(test, link->lane.ctl_count, 1U);
	link_test_happen(test, link, HAS_KILL);
	KUNIT_EXPECT_EQ(test, link->lane.ctl_count, 0U);
	/* The socket's reference goes with its memory. */
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, (int)refcount_read(&conn->refs), 1);
	sovia_conn_put(conn);
	rcu_barrier();
	/* The socket and its reference are gone. */
	KUNIT_EXPECT_EQ(test, kref_read(&link->kref), 1);
	sovia_link_put(link);
}

/* START of a NEW link without connections ends it. */
static void link_unwanted(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));

	KUNIT_ASSERT_NOT_NULL(test, link);
	sovia_link_event(link, SOVIA_LINK_EV_START);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_TRUE(test, hlist_unhashed(&link->net_node));
	KUNIT_EXPECT_EQ(test, test_vis, 0);
	sovia_link_put(link);
}

/*
 * The peer has lost a lane that was up, and its request is before that event in the queue: what has
 * been taken is not forgotten when the next lane fails.
 */
static void link_up_behind_request(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);

	KUNIT_ASSERT_NOT_NULL(test, link);
	test_connect_err = 0;
	test_post_err = 0;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	link_test_reach(test, link, sock->sk, STAGE_ASKING);
	sovia_connd_queue(&connd_hold);
	wait_for_completion(&connd_held);
	link_test_ask(test, link, TEST_PEER_ID, link->lane.id);
	link_test_established(link);
	link_test_receive(test, link, SOVIA_PROBE, 0, true);
	complete(&connd_go);
	link_flush();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_EQ(test, test_requests, 0);
	link_test_happen(test, link, HAS_CLOSED);
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_RECOVERING);
	KUNIT_EXPECT_EQ(test, link->lane.credit.rx_next, 1U);
	sock_release(sock);
	link_test_gone(test, link);
	rcu_barrier();
}

/* A refusal ends the link at last, unless the attempt was early, for an event of a device. */
static void link_refused_early(struct kunit *test)
{
	struct sovia_link *link = link_test_get(htonl(0x0a630002));
	struct socket *sock = test_socket(test);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, link);
	test_connect_err = 0;
	test_post_err = 0;
	link_test_reach(test, link, sock->sk, STAGE_RECOVERING);
	for (i = 0; i < 4 * SOVIA_LINK_REFUSALS && link->lane.vi; i++) {
		link_test_closed(link, -ECONNREFUSED);
		link_flush();
		if (link->state == SOVIA_LINK_DOWN)
			break;
		/* Every other one. */
		link->recovery.due = jiffies + (i % 2 ? 0 : 3600 * HZ);
		link_test_happen(test, link, HAS_TIMER);
	}
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_EQ(test, i, 2 * SOVIA_LINK_REFUSALS - 2);
	KUNIT_EXPECT_EQ(test, sock->sk->sk_err, ECONNRESET);
	sock_release(sock);
	link_test_gone(test, link);
}

static struct kunit_case link_life_test_cases[] = {
	KUNIT_CASE(link_up_races),
	KUNIT_CASE(link_local_tenants),
	KUNIT_CASE(link_timer_races),
	KUNIT_CASE(link_rtr_retries),
	KUNIT_CASE(link_doubts),
	KUNIT_CASE(link_down_is_unlisted),
	KUNIT_CASE(link_unwanted),
	KUNIT_CASE(link_up_behind_request),
	KUNIT_CASE(link_idle_listens),
	KUNIT_CASE(link_room),
	KUNIT_CASE(link_room_joined),
	KUNIT_CASE(link_ctl_count),
	KUNIT_CASE(link_refused_early),
	{}
};

struct kunit_suite sovia_link_life_suite = {
	.name = "sovia-link-life",
	.test_cases = link_life_test_cases,
};

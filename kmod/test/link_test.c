// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of all events of a link, in every state.  The provider
 * below does nothing by itself, so that the link stays in each state as long as the test
 * wants.  One socket waits for the link: it is notified of its end, exactly once.
 * Included by link.c.
 */
#include <linux/delay.h>
#include <net/ipv6.h>
#include "link/connd.h"
#include "link/lane_tx.h"
#include "link/link_net.h"
#include "link/link_request.h"
#include "link/link_state.h"
#include "link/link_table.h"
#include "link/link_vi.h"
#include "sock/rx.h"
#include "sock_helper.h"
#include "suites.h"

#define TEST_VI_MESSAGES	8

/**
 * struct test_vi - a VI without a transport, driven by the test
 * @vi: the link layer's part
 * @msgs: posted messages, with references
 * @count: their number
 */
struct test_vi {
	struct sovia_vi	vi;
	struct sk_buff	*msgs[TEST_VI_MESSAGES];
	unsigned int	count;
};

/* Results that the provider returns, and the calls that it received. */
static int test_connect_err, test_post_err;
static int test_vis, test_rejected, test_requests;
static bool test_first;
/* The end of a VI waits for the test, which calls test_vi_ended(). */
static bool test_end_later;
static struct sovia_vi *test_ending;

static struct sovia_vi *test_vi_make(const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_vi_client *client, void *context);

static struct sovia_vi *test_prov_connect(struct net *net, const struct sovia_pair *pair,
					  const struct sovia_vi_attr *attr,
					  const struct sovia_hello *hello,
					  const struct sovia_vi_client *client, void *context)
{
	if (test_connect_err)
		return ERR_PTR(test_connect_err);
	return test_vi_make(pair, attr, client, context);
}

static struct sovia_vi *test_prov_accept(struct sovia_vi_request *req,
					 const struct sovia_vi_attr *attr,
					 const struct sovia_hello *hello,
					 const struct sovia_vi_client *client, void *context)
{
	struct sovia_vi *vi = test_vi_make(&req->pair, attr, client, context);

	test_requests--;
	kfree(req);
	return vi;
}

static void test_prov_reject(struct sovia_vi_request *req, int err)
{
	test_rejected = err;
	test_requests--;
	kfree(req);
}

static int test_prov_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			       const struct sovia_post *how)
{
	struct test_vi *tv = container_of(vi, struct test_vi, vi);

	if (test_post_err)
		return test_post_err;
	if (tv->count == TEST_VI_MESSAGES)
		return -EAGAIN;
	tv->msgs[tv->count++] = skb_get(skb);
	return SOVIA_POSTED;
}

static void test_prov_fail(struct sovia_vi *vi)
{
	vi->client->closed(vi, -ECONNRESET);
}

/* As a provider's work does it. */
static void test_vi_ended(struct sovia_vi *vi)
{
	struct test_vi *tv = container_of(vi, struct test_vi, vi);

	while (tv->count) {
		local_bh_disable();
		vi->client->send_done(vi, tv->msgs[--tv->count], false);
		local_bh_enable();
		kfree_skb(tv->msgs[tv->count]);
	}
	test_vis--;
	vi->client->ended(vi);
	kfree(tv);
}

static void test_prov_end(struct sovia_vi *vi)
{
	/* Some providers call closed, too. */
	vi->client->closed(vi, -ECONNRESET);
	if (test_end_later)
		test_ending = vi;
	else
		test_vi_ended(vi);
}

static const struct sovia_provider test_provider = {
	.name		= "test",
	.connect	= test_prov_connect,
	.accept		= test_prov_accept,
	.reject		= test_prov_reject,
	.post_send	= test_prov_post_send,
	.fail		= test_prov_fail,
	.end		= test_prov_end,
};

static struct sovia_vi *test_vi_make(const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_vi_client *client, void *context)
{
	struct test_vi *tv = kzalloc(sizeof(*tv), GFP_KERNEL);

	if (!tv)
		return ERR_PTR(-ENOMEM);
	tv->vi = (struct sovia_vi) {
		.prov = &test_provider, .client = client, .context = context,
		.pair = *pair, .attr = *attr, .max_frags = 1, .sends_first = test_first,
	};
	test_vis++;
	return &tv->vi;
}

/**
 * enum link_stage - state of a link, in more detail
 * @STAGE_NEW: NEW
 * @STAGE_ASKING: CONNECTING, with a VI
 * @STAGE_WAITING: CONNECTING without one: the peer's attempt wins
 * @STAGE_UP: UP
 * @STAGE_RECOVERING: RECOVERING, with a VI
 * @STAGE_DOWN: DOWN
 * @STAGES: number of stages
 */
enum link_stage {
	STAGE_NEW, STAGE_ASKING, STAGE_WAITING, STAGE_UP, STAGE_RECOVERING, STAGE_DOWN, STAGES
};

static const char * const stage_names[STAGES] = {
	"NEW", "asking", "waiting", "UP", "RECOVERING", "DOWN"
};

/**
 * enum link_happening - events of a link
 * @HAS_START: another connection needs it
 * @HAS_FAILED: the provider's connect fails at once
 * @HAS_ESTABLISHED: the established upcall
 * @HAS_BAD_HELLO: the same with an invalid hello
 * @HAS_ESTABLISHED_TWICE: the same twice
 * @HAS_CLOSED: the closed upcall
 * @HAS_CLOSED_TWICE: the same twice
 * @HAS_CLOSED_ESTABLISHED: closed, then established
 * @HAS_ESTABLISHED_CLOSED: established, then closed
 * @HAS_REJECTED: closed with -EAGAIN, because the peer's attempt wins
 * @HAS_POST_ERROR: a message cannot be posted
 * @HAS_REQUEST: a fresh request of a peer that has no link
 * @HAS_OLD_REQUEST: a fresh request that the peer sent before its reply to ours
 * @HAS_TIMER: its timer has fired
 * @HAS_KILL: the namespace is destroyed
 * @LINK_HAPPENINGS: number of events
 */
enum link_happening {
	HAS_START, HAS_FAILED, HAS_ESTABLISHED, HAS_BAD_HELLO, HAS_ESTABLISHED_TWICE,
	HAS_CLOSED, HAS_CLOSED_TWICE, HAS_CLOSED_ESTABLISHED, HAS_ESTABLISHED_CLOSED,
	HAS_REJECTED, HAS_POST_ERROR, HAS_REQUEST, HAS_OLD_REQUEST, HAS_TIMER, HAS_KILL,
	LINK_HAPPENINGS
};

#define NEW	SOVIA_LINK_NEW
#define CONN	SOVIA_LINK_CONNECTING
#define UP	SOVIA_LINK_UP
#define RECO	SOVIA_LINK_RECOVERING
#define DOWN	SOVIA_LINK_DOWN

/* The expected state afterwards; upcalls need a stage with a VI. */
static const struct {
	const char		*name;
	enum sovia_link_state	next[STAGES];
} link_expected[LINK_HAPPENINGS] = {
	/* NEW, asking, waiting, UP, RECOVERING, DOWN */
	[HAS_START] = { "start", { CONN, CONN, CONN, UP, RECO, DOWN } },
	[HAS_FAILED] = { "failed", { DOWN, CONN, CONN, UP, RECO, DOWN } },
	[HAS_ESTABLISHED] = { "established", { NEW, UP, CONN, UP, UP, DOWN } },
	[HAS_BAD_HELLO] = { "bad hello", { NEW, DOWN, CONN, DOWN, DOWN, DOWN } },
	[HAS_ESTABLISHED_TWICE] = { "est. twice", { NEW, UP, CONN, UP, UP, DOWN } },
	[HAS_CLOSED] = { "closed", { NEW, DOWN, CONN, RECO, RECO, DOWN } },
	[HAS_CLOSED_TWICE] = { "closed twice", { NEW, DOWN, CONN, RECO, RECO, DOWN } },
	[HAS_CLOSED_ESTABLISHED] = { "closed, est.", { NEW, DOWN, CONN, RECO, RECO, DOWN } },
	[HAS_ESTABLISHED_CLOSED] = { "est., closed", { NEW, RECO, CONN, RECO, RECO, DOWN } },
	[HAS_REJECTED] = { "rejected", { NEW, CONN, CONN, RECO, RECO, DOWN } },
	[HAS_POST_ERROR] = { "post error", { NEW, CONN, CONN, RECO, RECO, DOWN } },
	[HAS_REQUEST] = { "request", { CONN, CONN, CONN, UP, DOWN, DOWN } },
	[HAS_OLD_REQUEST] = { "old request", { CONN, CONN, CONN, UP, RECO, DOWN } },
	[HAS_TIMER] = { "timer", { NEW, CONN, CONN, UP, RECO, DOWN } },
	[HAS_KILL] = { "kill", { DOWN, DOWN, DOWN, DOWN, DOWN, DOWN } },
};

#undef NEW
#undef CONN
#undef UP
#undef RECO
#undef DOWN

/* IDs of the peer: of the existing link, and of a fresh request. */
#define TEST_PEER_ID		4711
#define TEST_PEER_FRESH_ID	4712

static void link_test_hello(struct sovia_link *link, struct sovia_hello *hello, u64 id, u64 our_id)
{
	const struct sovia_params params = {
		.window = 8, .payload = SOVIA_PAYLOAD_MIN, .lane = link->pair.lane,
		.id = id, .peer_id = our_id, .rx_next = our_id ? link->lane.credit.tx_una : 0,
	};

	sovia_hello_build(hello, &params);
}

static void link_test_established(struct sovia_link *link)
{
	struct sovia_vi *vi = link->lane.vi;
	struct sovia_hello hello;

	link_test_hello(link, &hello, TEST_PEER_ID, link->lane.id);
	if (vi)
		vi->client->established(vi, &hello, sizeof(hello));
}

static void link_test_closed(struct sovia_link *link, int err)
{
	struct sovia_vi *vi = link->lane.vi;

	if (vi)
		vi->client->closed(vi, err);
}

static void link_test_ask(struct kunit *test, struct sovia_link *link, u64 id, u64 our_id)
{
	struct sovia_vi_request *req = kzalloc(sizeof(*req), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, req);
	req->prov = &test_provider;
	req->net = &init_net;
	req->pair = link->pair;
	link_test_hello(link, &req->hello, id, our_id);
	req->hello_len = sizeof(req->hello);
	test_requests++;
	sovia_link_request(req);
}

static void link_test_request(struct kunit *test, struct sovia_link *link, u64 id)
{
	link_test_ask(test, link, id, 0);
}

/* Works of the connection thread queue others. */
static void link_flush(void)
{
	int i;

	for (i = 0; i < 2; i++)
		sovia_connd_flush();
}

static DECLARE_COMPLETION(connd_held);
static DECLARE_COMPLETION(connd_go);

static void connd_hold_work(struct kthread_work *work)
{
	complete(&connd_held);
	wait_for_completion(&connd_go);
}

static DEFINE_KTHREAD_WORK(connd_hold, connd_hold_work);

static void link_test_upcalls(struct kunit *test, struct sovia_link *link,
			      enum link_happening what)
{
	struct sovia_vi *vi = link->lane.vi;

	switch (what) {
	case HAS_FAILED:
		test_connect_err = -EHOSTUNREACH;
		fallthrough;
	case HAS_START:
		sovia_link_event(link, SOVIA_LINK_EV_START);
		break;
	case HAS_ESTABLISHED_TWICE:
		link_test_established(link);
		fallthrough;
	case HAS_ESTABLISHED:
		link_test_established(link);
		break;
	case HAS_BAD_HELLO:
		if (vi)
			vi->client->established(vi, &(struct sovia_hello){}, 0);
		break;
	case HAS_CLOSED_TWICE:
		link_test_closed(link, -ECONNRESET);
		fallthrough;
	case HAS_CLOSED:
		link_test_closed(link, -EHOSTUNREACH);
		break;
	case HAS_CLOSED_ESTABLISHED:
		link_test_closed(link, -EHOSTUNREACH);
		link_test_established(link);
		break;
	case HAS_ESTABLISHED_CLOSED:
		link_test_established(link);
		link_test_closed(link, -EHOSTUNREACH);
		break;
	case HAS_REJECTED:
		link_test_closed(link, -EAGAIN);
		break;
	case HAS_POST_ERROR:
		test_post_err = -EIO;
		sovia_lane_probe(&link->lane);
		break;
	case HAS_REQUEST:
		link_test_request(test, link, TEST_PEER_FRESH_ID);
		break;
	case HAS_OLD_REQUEST:
		link_test_request(test, link, TEST_PEER_ID);
		break;
	case HAS_TIMER:
		sovia_link_event(link, SOVIA_LINK_EV_TIMER);
		break;
	case HAS_KILL:
		sovia_link_event(link, SOVIA_LINK_EV_KILL);
		break;
	case LINK_HAPPENINGS:
		break;
	}
}

/* The connection thread sees all of what happens at once. */
static void link_test_happen(struct kunit *test, struct sovia_link *link,
			     enum link_happening what)
{
	sovia_connd_queue(&connd_hold);
	wait_for_completion(&connd_held);
	link_test_upcalls(test, link, what);
	complete(&connd_go);
	link_flush();
}

static int link_test_join(struct kunit *test, struct sovia_link *link, struct sock *sk)
{
	struct sovia_conn *conn;

	sovia_link_ref(link);
	conn = sovia_conn_create(link, sk, 1, 2, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	sovia_rx_join(sk, conn, false);
	return sovia_link_attach(conn);
}

/* Put a socket on the link, in SYN_SENT, as connect() does. */
static void link_test_attach(struct kunit *test, struct sovia_link *link, struct sock *sk)
{
	lock_sock(sk);
	sovia_sk(sk)->connect.link_retries = 0;
	sovia_state_event(sk, SOVIA_EV_CONNECT);
	KUNIT_EXPECT_EQ(test, link_test_join(test, link, sk), 0);
	release_sock(sk);
	link_flush();
}

static void link_test_reach(struct kunit *test, struct sovia_link *link, struct sock *sk,
			    enum link_stage stage)
{
	int tries = 500;

	if (stage == STAGE_NEW)
		return;
	link_test_attach(test, link, sk);
	if (stage == STAGE_WAITING)
		link_test_happen(test, link, HAS_REJECTED);
	else if (stage == STAGE_UP || stage == STAGE_RECOVERING)
		link_test_happen(test, link, HAS_ESTABLISHED);
	else if (stage == STAGE_DOWN)
		link_test_happen(test, link, HAS_CLOSED);
	if (stage == STAGE_RECOVERING) {
		link_test_happen(test, link, HAS_CLOSED);
		/* The link starts the next attempt. */
		while (!READ_ONCE(link->lane.vi) && tries--)
			msleep(20);
		link_flush();
	}
}

/* The test's link, or its replacement. */
static void link_test_end(struct kunit *test, const struct sovia_pair *pair)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct sovia_link *link = sovia_link_get(snet, pair, &test_provider, GLOBAL_ROOT_UID,
						 GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_happen(test, link, HAS_KILL);
	sovia_link_put(link);
	KUNIT_EXPECT_EQ(test, test_vis, 0);
	KUNIT_EXPECT_EQ(test, test_requests, 0);
}

static void link_test_one(struct kunit *test, const struct sovia_pair *pair,
			  enum link_stage stage, enum link_happening what)
{
	struct sovia_net *snet = sovia_net(&init_net);
	struct socket *sock = test_socket(test);
	enum sovia_link_state next = link_expected[what].next[stage];
	struct sovia_link *link;

	test_connect_err = 0;
	test_post_err = 0;
	test_rejected = 0;
	link = sovia_link_get(snet, pair, &test_provider, GLOBAL_ROOT_UID, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, link);
	link_test_reach(test, link, sock->sk, stage);
	link_test_happen(test, link, what);
	KUNIT_EXPECT_EQ_MSG(test, link->state, next, "%s, %s", stage_names[stage],
			    link_expected[what].name);
	if (stage != STAGE_NEW)
		KUNIT_EXPECT_EQ_MSG(test, sock->sk->sk_state,
				    next == SOVIA_LINK_DOWN ? TCP_CLOSE : TCP_SYN_SENT, "%s, %s",
				    stage_names[stage], link_expected[what].name);
	/* Both sides connect: the lower address wins. */
	if (what == HAS_REQUEST && stage == STAGE_ASKING)
		KUNIT_EXPECT_EQ(test, test_rejected,
				sovia_link_own_attempt_counts(link) ? -EAGAIN : 0);
	if (what == HAS_OLD_REQUEST && (stage == STAGE_UP || stage == STAGE_RECOVERING))
		KUNIT_EXPECT_EQ(test, test_rejected, -EAGAIN);
	/* The request may be forged: the lane is probed. */
	if (what == HAS_REQUEST && stage == STAGE_UP)
		KUNIT_EXPECT_EQ(test, test_rejected, -EAGAIN);
	test_connect_err = 0;
	sock_release(sock);
	link_test_end(test, pair);
	rcu_barrier();
	KUNIT_EXPECT_EQ(test, link->state, SOVIA_LINK_DOWN);
	KUNIT_EXPECT_EQ_MSG(test, kref_read(&link->kref), 1, "%s, %s", stage_names[stage],
			    link_expected[what].name);
	sovia_link_put(link);
}

static const enum link_stage link_stages[] = {
	STAGE_NEW, STAGE_ASKING, STAGE_WAITING, STAGE_UP, STAGE_RECOVERING, STAGE_DOWN,
};

static void link_stage_name(const enum link_stage *stage, char *desc)
{
	strscpy(desc, stage_names[*stage], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(link, link_stages, link_stage_name);

static void link_all(struct kunit *test)
{
	enum link_stage stage = *(const enum link_stage *)test->param_value;
	struct sovia_pair pair = {}, other = {};
	enum link_happening what;

	ipv6_addr_set_v4mapped(htonl(0x0a630001), &pair.local);
	ipv6_addr_set_v4mapped(htonl(0x0a630002), &pair.remote);
	other.local = pair.remote;
	other.remote = pair.local;
	KUNIT_ASSERT_EQ(test, sovia_link_listen(sovia_net(&init_net)), 0);
	for (what = 0; what < LINK_HAPPENINGS; what++)
		link_test_one(test, &pair, stage, what);
	/* Crossing requests are the only case that depends on the addresses. */
	link_test_one(test, &other, stage, HAS_REQUEST);
}

#define LINK_RACES	200
#define LINK_TIMER_RACES	2000
#define LINK_INSISTS		6

/* A connection that attaches when the link is up sends CONN at once, without an upcall. */
static void link_up_told_once(struct kunit *test, const struct sovia_pair *pair)
{
	struct sovia_link *link = sovia_link_get(sovia_net(&init_net), pair, &test_provider,
						 GLOBAL_ROOT_UID, GFP_KERNEL);
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

static struct sovia_link *link_test_get_by(__be32 remote, kuid_t uid)
{
	struct sovia_pair pair = {};

	ipv6_addr_set_v4mapped(htonl(0x0a630001), &pair.local);
	ipv6_addr_set_v4mapped(remote, &pair.remote);
	return sovia_link_get(sovia_net(&init_net), &pair, &test_provider, uid, GFP_KERNEL);
}

static struct sovia_link *link_test_get(__be32 remote)
{
	return link_test_get_by(remote, GLOBAL_ROOT_UID);
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
		sovia_link_event(link, SOVIA_LINK_EV_START);
		sovia_connd_flush();
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

static struct kunit_case link_test_cases[] = {
	KUNIT_CASE_PARAM(link_all, link_gen_params),
	KUNIT_CASE(link_up_races),
	KUNIT_CASE(link_timer_races),
	KUNIT_CASE(link_rtr_retries),
	KUNIT_CASE(link_doubts),
	KUNIT_CASE(link_down_is_unlisted),
	KUNIT_CASE(link_idle_listens),
	KUNIT_CASE(link_room),
	KUNIT_CASE(link_ctl_count),
	{}
};

struct kunit_suite sovia_link_suite = {
	.name = "sovia-link",
	.test_cases = link_test_cases,
};

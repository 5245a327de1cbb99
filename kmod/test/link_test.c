// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of all events of a link, in every state.  The provider
 * below does nothing by itself, so that the link stays in each state as long as the test
 * wants.  One socket waits for the link: it is notified of its end, exactly once.
 * Included by link.c.
 */
#include <linux/delay.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include "core/connd.h"
#include "lane/lane_park.h"
#include "lane/lane_tx.h"
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

/* What it has been asked for last. */
static unsigned int test_more;

static void test_prov_post_more(struct sovia_vi *vi, unsigned int depth)
{
	test_more = depth;
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

static struct sovia_provider test_provider = {
	.name		= "test",
	.connect	= test_prov_connect,
	.accept		= test_prov_accept,
	.reject		= test_prov_reject,
	.post_send	= test_prov_post_send,
	.post_more	= test_prov_post_more,
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
 * @STAGE_PARKED: PARKED
 * @STAGE_DOWN: DOWN
 * @STAGES: number of stages
 */
enum link_stage {
	STAGE_NEW, STAGE_ASKING, STAGE_WAITING, STAGE_UP, STAGE_RECOVERING, STAGE_PARKED,
	STAGE_DOWN, STAGES
};

static const char * const stage_names[STAGES] = {
	"NEW", "asking", "waiting", "UP", "RECOVERING", "PARKED", "DOWN"
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
 * @HAS_PARK: the peer asks to park it, when nothing is under way
 * @HAS_PARK_USED: the same, when something is
 * @HAS_ASKED_CLOSED: we have asked, and the peer closes the VI
 * @HAS_ASKED_USED_CLOSED: the same, but we have sent something behind that
 * @HAS_TIMER: its timer has fired
 * @HAS_KILL: the namespace is destroyed
 * @LINK_HAPPENINGS: number of events
 */
enum link_happening {
	HAS_START, HAS_FAILED, HAS_ESTABLISHED, HAS_BAD_HELLO, HAS_ESTABLISHED_TWICE,
	HAS_CLOSED, HAS_CLOSED_TWICE, HAS_CLOSED_ESTABLISHED, HAS_ESTABLISHED_CLOSED,
	HAS_REJECTED, HAS_POST_ERROR, HAS_REQUEST, HAS_OLD_REQUEST, HAS_PARK, HAS_PARK_USED,
	HAS_ASKED_CLOSED, HAS_ASKED_USED_CLOSED, HAS_TIMER, HAS_KILL,
	LINK_HAPPENINGS
};

#define NEW	SOVIA_LINK_NEW
#define CONN	SOVIA_LINK_CONNECTING
#define UP	SOVIA_LINK_UP
#define RECO	SOVIA_LINK_RECOVERING
#define PARK	SOVIA_LINK_PARKED
#define DOWN	SOVIA_LINK_DOWN

/* The expected state afterwards; upcalls need a stage with a VI. */
static const struct {
	const char		*name;
	enum sovia_link_state	next[STAGES];
} link_expected[LINK_HAPPENINGS] = {
	/* NEW, asking, waiting, UP, RECOVERING, PARKED, DOWN */
	[HAS_START] = { "start", { CONN, CONN, CONN, UP, RECO, RECO, DOWN } },
	[HAS_FAILED] = { "failed", { DOWN, CONN, CONN, UP, RECO, RECO, DOWN } },
	[HAS_ESTABLISHED] = { "established", { NEW, UP, CONN, UP, UP, PARK, DOWN } },
	[HAS_BAD_HELLO] = { "bad hello", { NEW, DOWN, CONN, DOWN, DOWN, PARK, DOWN } },
	[HAS_ESTABLISHED_TWICE] = { "est. twice", { NEW, UP, CONN, UP, UP, PARK, DOWN } },
	[HAS_CLOSED] = { "closed", { NEW, DOWN, CONN, RECO, RECO, PARK, DOWN } },
	[HAS_CLOSED_TWICE] = { "closed twice", { NEW, DOWN, CONN, RECO, RECO, PARK, DOWN } },
	[HAS_CLOSED_ESTABLISHED] = { "closed, est.",
				     { NEW, DOWN, CONN, RECO, RECO, PARK, DOWN } },
	[HAS_ESTABLISHED_CLOSED] = { "est., closed",
				     { NEW, RECO, CONN, RECO, RECO, PARK, DOWN } },
	[HAS_REJECTED] = { "rejected", { NEW, CONN, CONN, RECO, RECO, PARK, DOWN } },
	[HAS_POST_ERROR] = { "post error", { NEW, CONN, CONN, RECO, RECO, RECO, DOWN } },
	[HAS_REQUEST] = { "request", { CONN, CONN, CONN, UP, DOWN, DOWN, DOWN } },
	[HAS_OLD_REQUEST] = { "old request", { CONN, CONN, CONN, UP, RECO, PARK, DOWN } },
	[HAS_PARK] = { "park", { NEW, CONN, CONN, PARK, RECO, PARK, DOWN } },
	[HAS_PARK_USED] = { "park used", { NEW, CONN, CONN, UP, RECO, RECO, DOWN } },
	[HAS_ASKED_CLOSED] = { "asked, closed", { NEW, DOWN, CONN, PARK, RECO, PARK, DOWN } },
	[HAS_ASKED_USED_CLOSED] = { "asked, used, closed",
				    { NEW, DOWN, CONN, RECO, RECO, RECO, DOWN } },
	[HAS_TIMER] = { "timer", { NEW, CONN, CONN, UP, RECO, PARK, DOWN } },
	[HAS_KILL] = { "kill", { DOWN, DOWN, DOWN, DOWN, DOWN, DOWN, DOWN } },
};

#undef NEW
#undef CONN
#undef UP
#undef RECO
#undef PARK
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

	sovia_hello_build(hello, &params, SOVIA_WIRE_VERSION);
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

/* A message of the peer, which has received what we have sent, or nothing of it. */
static void link_test_receive(struct kunit *test, struct sovia_link *link, u8 type, u16 flags,
			      bool acked)
{
	struct sovia_credit *credit = &link->lane.credit;
	const struct sovia_msg msg = {
		.type = type, .flags = flags, .seq = credit->rx_next,
		.ack = acked ? credit->tx_next : credit->tx_una,
	};
	struct sovia_vi *vi = link->lane.vi;
	struct sk_buff *skb = sovia_msg_alloc(0, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	sovia_msg_build(skb_push(skb, sizeof(struct sovia_hdr)), &msg, SOVIA_WIRE_VERSION);
	local_bh_disable();
	KUNIT_EXPECT_FALSE(test, vi->client->receive(vi, skb, NULL));
	local_bh_enable();
	kfree_skb(skb);
}

/* ... in states where there may be one. */
static void link_test_message(struct kunit *test, struct sovia_link *link, u8 type, bool acked)
{
	if (link->lane.vi && link->lane.up)
		link_test_receive(test, link, type, 0, acked);
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
		sovia_link_keep(link);
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
	case HAS_PARK:
		link_test_message(test, link, SOVIA_PARK, true);
		break;
	case HAS_PARK_USED:
		sovia_lane_probe(&link->lane);
		link_test_message(test, link, SOVIA_PARK, false);
		break;
	case HAS_ASKED_USED_CLOSED:
	case HAS_ASKED_CLOSED:
		link_test_message(test, link, SOVIA_ACK, true);
		sovia_lane_ask_park(&link->lane);
		if (what == HAS_ASKED_USED_CLOSED)
			sovia_lane_probe(&link->lane);
		link_test_closed(link, -ECONNRESET);
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
	/* Who wanted it has gone. */
	WRITE_ONCE(link->keep_until, 0);
}

static int link_test_join(struct kunit *test, struct sovia_link *link, struct sock *sk)
{
	struct sovia_conn *conn;

	sovia_link_ref(link);
	conn = sovia_conn_create(&link->lane, sk, 1, 2, 0, GFP_KERNEL);
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
	else if (stage == STAGE_UP || stage == STAGE_RECOVERING || stage == STAGE_PARKED)
		link_test_happen(test, link, HAS_ESTABLISHED);
	else if (stage == STAGE_DOWN)
		link_test_happen(test, link, HAS_CLOSED);
	link->lane.parks = true;
	if (stage == STAGE_PARKED)
		link_test_happen(test, link, HAS_PARK);
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
						 NULL, GFP_KERNEL);

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
	link = sovia_link_get(snet, pair, &test_provider, GLOBAL_ROOT_UID, NULL, GFP_KERNEL);
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
	if (what == HAS_OLD_REQUEST && stage >= STAGE_UP && stage != STAGE_DOWN)
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
	STAGE_NEW, STAGE_ASKING, STAGE_WAITING, STAGE_UP, STAGE_RECOVERING, STAGE_PARKED,
	STAGE_DOWN,
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

static struct kunit_case link_test_cases[] = {
	KUNIT_CASE_PARAM(link_all, link_gen_params),
	{}
};

struct kunit_suite sovia_link_suite = {
	.name = "sovia-link",
	.test_cases = link_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of peer.c, peer_hello.c and peer_meet.c; included by the last. */
#include <linux/inetdevice.h>
#include <linux/kthread.h>
#include "core/connd.h"
#include "link/link_net.h"
#include "peer/peer_hello.h"
#include "peer/rendezvous.h"
#include "suites.h"

/**
 * struct peer_test - a peer that the suite plays
 * @snet: namespace
 * @pair: as we see it
 * @path: likewise
 * @anchor: the newest connection; without a socket
 * @hello: what was said on it
 * @len: its length
 * @key: that it has, or zeros
 * @secret: that both have
 */
struct peer_test {
	struct sovia_net	*snet;
	struct sovia_pair	pair;
	struct sovia_path	path;
	struct sovia_anchor	*anchor;
	u64			hello[SOVIA_RDV_LEN_MAX / sizeof(u64)];
	unsigned int		len;
	struct sovia_secret	key;
	struct sovia_secret	secret;
};

/* Addresses that no host has (RFC 5737), others in each case. */
static atomic_t peer_test_hosts = ATOMIC_INIT(0);

static void peer_test_connect(struct kunit *test, bool active)
{
	struct peer_test *pt = test->priv;

	pt->anchor = kzalloc(sizeof(*pt->anchor), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pt->anchor);
	sovia_anchor_init(pt->anchor, pt->snet, &pt->pair, active);
	/* So its work does nothing. */
	set_bit(SOVIA_ANCHOR_CLOSED, &pt->anchor->flags);
}

/* An IPv4 address of an interface with an RDMA device. */
static bool peer_test_address(struct in6_addr *addr)
{
	const struct in_device *in_dev;
	const struct in_ifaddr *ifa;
	struct net_device *dev;
	bool found = false;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, dev) {
		in_dev = __in_dev_get_rcu(dev);
		ifa = in_dev ? rcu_dereference(in_dev->ifa_list) : NULL;
		if (!ifa)
			continue;
		ipv6_addr_set_v4mapped(ifa->ifa_local, addr);
		if (!sovia_verbs_provider.reaches(&init_net, addr, dev))
			continue;
		found = true;
	}
	rcu_read_unlock();
	return found;
}

static int peer_test_init(struct kunit *test)
{
	struct peer_test *pt = kunit_kzalloc(test, sizeof(*pt), GFP_KERNEL);
	int host = atomic_inc_return(&peer_test_hosts);

	if (!pt)
		return -ENOMEM;
	test->priv = pt;
	pt->snet = sovia_net(&init_net);
	ipv6_addr_set_v4mapped(htonl(0xc0000200 + host), &pt->pair.remote);
	if (!peer_test_address(&pt->pair.local))
		kunit_skip(test, "no RDMA device");
	memcpy(pt->path.local, &pt->pair.local, sizeof(pt->path.local));
	memcpy(pt->path.remote, &pt->pair.remote, sizeof(pt->path.remote));
	sovia_link_listen(pt->snet);
	peer_test_connect(test, false);
	return 0;
}

/* The connection ends, and the suite's reference to it. */
static void peer_test_disconnect(struct peer_test *pt)
{
	sovia_peer_lost(pt->anchor);
	sovia_anchor_put(pt->anchor);
	pt->anchor = NULL;
}

static void peer_test_exit(struct kunit *test)
{
	struct peer_test *pt = test->priv;
	struct sovia_peer *peer = sovia_peer_find(pt->snet, &pt->pair);

	if (pt->anchor)
		peer_test_disconnect(pt);
	if (!peer)
		return;
	sovia_peer_drop_anchor(&peer->attempt);
	sovia_peer_drop_anchor(&peer->anchor);
}

static const struct sovia_rdv_msg peer_test_greeting = {
	.type = SOVIA_RDV_HELLO,
	.offer = {
		.version_min = 1, .version_max = 200, .instance = { 1, 2, 3 },
		.nonce = { 4, 5, 6 }, .window = 32, .lanes = 1, .payload = 16384,
	},
};

static void peer_test_deliver(struct peer_test *pt)
{
	memcpy(pt->anchor->in, pt->hello, pt->len);
	pt->anchor->in_len = pt->len;
	/* Sent by its work, if it had a socket. */
	clear_bit(SOVIA_ANCHOR_SEND, &pt->anchor->flags);
	sovia_peer_message(pt->anchor);
}

/* Returns the answer's code, and takes the secret if that is OK. */
static int peer_test_say(struct kunit *test, const struct sovia_rdv_msg *hello)
{
	struct peer_test *pt = test->priv;
	struct sovia_anchor *anchor = pt->anchor;
	struct sovia_rdv_msg *msg = kunit_kzalloc(test, sizeof(*msg), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, msg);
	*msg = *hello;
	if (ipv6_addr_any(&msg->offer.saddr))
		msg->offer.saddr = pt->pair.remote;
	msg->offer.daddr = pt->pair.local;
	pt->len = sovia_rdv_build(pt->hello, msg);
	if (msg->has_mac)
		sovia_secret_sign(&pt->secret, pt->hello, pt->len);
	anchor->out_len = 0;
	peer_test_deliver(pt);
	if (!anchor->out_len || sovia_rdv_parse(anchor->out, anchor->out_len, msg) ||
	    msg->type != SOVIA_RDV_ANSWER)
		return -1;
	if (msg->code != SOVIA_RDV_OK)
		return msg->code;
	if (!(msg->offer.flags & (SOVIA_RDV_F_AGAIN | SOVIA_RDV_F_JOIN)))
		sovia_secret_derive(&pt->secret, &pt->key, pt->hello, pt->len, anchor->out,
				    anchor->out_len - SOVIA_RDV_MAC_LEN);
	KUNIT_EXPECT_TRUE(test, sovia_secret_signed(&pt->secret, anchor->out, anchor->out_len));
	return SOVIA_RDV_OK;
}

static int peer_test_state(const struct peer_test *pt)
{
	const struct sovia_peer *peer = sovia_peer_find(pt->snet, &pt->pair);

	return peer ? (int)peer->state : -1;
}

static void peer_is_welcome(struct kunit *test)
{
	struct peer_test *pt = test->priv;

	KUNIT_EXPECT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_OK);
	KUNIT_EXPECT_EQ(test, peer_test_state(pt), SOVIA_PEER_PAIRED);
	KUNIT_EXPECT_TRUE(test, pt->anchor->settled);
	peer_test_disconnect(pt);
	KUNIT_EXPECT_EQ(test, peer_test_state(pt), SOVIA_PEER_UNANCHORED);
}

static void peer_must_use_its_address(struct kunit *test)
{
	struct sovia_rdv_msg msg = peer_test_greeting;

	ipv6_addr_set_v4mapped(htonl(0xc0000281), &msg.offer.saddr);
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_NAT);
	KUNIT_EXPECT_EQ(test, peer_test_state(test->priv), -1);
}

static void peer_needs_our_version(struct kunit *test)
{
	struct sovia_rdv_msg msg = peer_test_greeting;

	msg.offer.version_max = SOVIA_WIRE_VERSION - 1;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_NO_VERSION);
	msg.offer.version_max = SOVIA_WIRE_VERSION + 9;
	msg.offer.version_min = SOVIA_WIRE_VERSION + 1;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_NO_VERSION);
	KUNIT_EXPECT_EQ(test, peer_test_state(test->priv), -1);
}

/* A claim ends nothing while the anchor is there. */
static void peer_is_not_replaced(struct kunit *test)
{
	struct peer_test *pt = test->priv;
	struct sovia_secret secret;
	struct sovia_anchor *first;

	KUNIT_ASSERT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_OK);
	secret = pt->secret;
	first = pt->anchor;
	clear_bit(SOVIA_ANCHOR_SEND, &first->flags);
	peer_test_connect(test, false);
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_BUSY);
	/* It is asked whether it is still there. */
	KUNIT_EXPECT_EQ(test, ((struct sovia_rdv_hdr *)first->out)->type, SOVIA_RDV_PING);
	KUNIT_EXPECT_EQ(test, peer_test_state(pt), SOVIA_PEER_PAIRED);
	KUNIT_EXPECT_EQ(test, memcmp(&sovia_peer_find(pt->snet, &pt->pair)->secret, &secret,
				     sizeof(secret)), 0);
	peer_test_disconnect(pt);
	pt->anchor = first;
	peer_test_disconnect(pt);
	/* It is gone, so another one may come. */
	peer_test_connect(test, false);
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_OK);
	KUNIT_EXPECT_NE(test, memcmp(&pt->secret, &secret, sizeof(secret)), 0);
}

/* Who has the secret gets another anchor, and the secret stays. */
static void peer_comes_again(struct kunit *test)
{
	struct sovia_rdv_msg msg = peer_test_greeting;
	struct peer_test *pt = test->priv;
	struct sovia_secret secret;
	struct sovia_anchor *first;

	KUNIT_ASSERT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_OK);
	secret = pt->secret;
	first = pt->anchor;
	msg.offer.flags = SOVIA_RDV_F_AGAIN;
	msg.has_mac = true;
	peer_test_connect(test, false);
	pt->secret.bytes[0] ^= 1;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_BUSY);
	peer_test_disconnect(pt);
	peer_test_connect(test, false);
	pt->secret = secret;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_OK);
	KUNIT_EXPECT_EQ(test, memcmp(&pt->secret, &secret, sizeof(secret)), 0);
	KUNIT_EXPECT_TRUE(test, test_bit(SOVIA_ANCHOR_SHUT, &first->flags));
	sovia_peer_lost(first);
	sovia_anchor_put(first);
	KUNIT_EXPECT_EQ(test, peer_test_state(pt), SOVIA_PEER_PAIRED);
}

/* The other direction needs an exchange of its own, and gives that alone. */
static void peer_joins(struct kunit *test)
{
	struct sovia_rdv_msg msg = peer_test_greeting;
	struct peer_test *pt = test->priv;
	struct sovia_anchor *first;
	struct sovia_peer *peer;

	KUNIT_ASSERT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_OK);
	peer = sovia_peer_find(pt->snet, &pt->pair);
	KUNIT_EXPECT_TRUE(test, peer->in);
	KUNIT_EXPECT_FALSE(test, peer->out);
	/* As if we had asked. */
	peer->in = false;
	peer->out = true;
	first = pt->anchor;
	msg.offer.flags = SOVIA_RDV_F_JOIN;
	msg.has_mac = true;
	peer_test_connect(test, false);
	pt->secret.bytes[0] ^= 1;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_BUSY);
	KUNIT_EXPECT_FALSE(test, peer->in);
	pt->secret.bytes[0] ^= 1;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_OK);
	KUNIT_EXPECT_TRUE(test, peer->in && peer->out);
	KUNIT_EXPECT_PTR_EQ(test, peer->anchor, first);
	peer_test_disconnect(pt);
	KUNIT_EXPECT_TRUE(test, peer->in && peer->out);
	pt->anchor = first;
	peer_test_disconnect(pt);
	KUNIT_EXPECT_FALSE(test, peer->in || peer->out);
	/* Without an anchor it is one. */
	peer_test_connect(test, false);
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_OK);
	KUNIT_EXPECT_PTR_EQ(test, peer->anchor, pt->anchor);
	KUNIT_EXPECT_TRUE(test, peer->in && !peer->out);
}

/* Who is not known may have forgotten us, or been forgotten: as if it came the first time. */
static void peer_comes_again_unknown(struct kunit *test)
{
	struct sovia_rdv_msg msg = peer_test_greeting;

	msg.offer.flags = SOVIA_RDV_F_AGAIN;
	msg.has_mac = true;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), SOVIA_RDV_OK);
	KUNIT_EXPECT_EQ(test, peer_test_state(test->priv), SOVIA_PEER_PAIRED);
}

static void peer_says_too_much(struct kunit *test)
{
	struct peer_test *pt = test->priv;

	KUNIT_ASSERT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_OK);
	KUNIT_EXPECT_FALSE(test, test_bit(SOVIA_ANCHOR_SHUT, &pt->anchor->flags));
	peer_test_deliver(pt);
	KUNIT_EXPECT_TRUE(test, test_bit(SOVIA_ANCHOR_SHUT, &pt->anchor->flags));
}

static void peer_answers_unasked(struct kunit *test)
{
	struct sovia_rdv_msg msg = peer_test_greeting;
	struct peer_test *pt = test->priv;

	msg.type = SOVIA_RDV_ANSWER;
	msg.has_mac = true;
	KUNIT_EXPECT_EQ(test, peer_test_say(test, &msg), -1);
	KUNIT_EXPECT_TRUE(test, test_bit(SOVIA_ANCHOR_SHUT, &pt->anchor->flags));
	KUNIT_EXPECT_EQ(test, peer_test_state(pt), -1);
}

static void peer_test_request(const struct peer_test *pt, u8 lane, u32 generation,
			      struct sovia_vi_request *req, struct sovia_params *params)
{
	const struct sovia_path back = {};
	struct sovia_path path = back;

	memset(req, 0, sizeof(*req));
	*params = (struct sovia_params){
		.window = 32, .payload = 16384, .lane = lane, .id = 1, .generation = generation,
	};
	req->prov = &sovia_verbs_provider;
	req->pair = pt->pair;
	req->path = pt->path;
	memcpy(path.local, pt->path.remote, sizeof(path.local));
	memcpy(path.remote, pt->path.local, sizeof(path.remote));
	sovia_hello_build(&req->hello, params, SOVIA_WIRE_VERSION);
	sovia_secret_seal(&pt->secret, SOVIA_SEAL_REQ, &req->hello, &path);
}

static int peer_test_check(const struct peer_test *pt, struct sovia_vi_request *req,
			   const struct sovia_params *params)
{
	struct sovia_peer *peer;

	return sovia_peer_check_request(pt->snet, req, params->lane, params->generation,
					&peer);
}

static void peer_requests(struct kunit *test)
{
	struct peer_test *pt = test->priv;
	struct sovia_vi_request req;
	struct sovia_params params;

	peer_test_request(pt, 0, 1, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), -ESTALE);
	KUNIT_ASSERT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_OK);
	peer_test_request(pt, 0, 2, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), 0);
	/* The same one once more, for one that was deferred. */
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), 0);
	/* Sent again, an older one, a newer one, another lane's. */
	req.checked = false;
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), -EAGAIN);
	peer_test_request(pt, 0, 1, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), -EAGAIN);
	peer_test_request(pt, 1, 1, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), 0);
	peer_test_request(pt, 0, 3, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), 0);
	/* By another path; a wrong MAC changes nothing. */
	peer_test_request(pt, 0, 9, &req, &params);
	req.path.remote[15]++;
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), -ESTALE);
	peer_test_request(pt, 0, 4, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), 0);
	/* Without the anchor as well: a lane that is lost is resumed. */
	peer_test_disconnect(pt);
	peer_test_request(pt, 0, 5, &req, &params);
	KUNIT_EXPECT_EQ(test, peer_test_check(pt, &req, &params), 0);
}

/* ---- the exit of a namespace -------------------------------------------- */

/**
 * struct peer_exit - a namespace exits while the connection thread is busy
 * @hold: keeps that busy
 * @held: it is
 * @go: until then
 * @stopped: the namespace has no anchors
 * @snet: the namespace
 */
struct peer_exit {
	struct kthread_work	hold;
	struct completion	held;
	struct completion	go;
	struct completion	stopped;
	struct sovia_net	*snet;
};

static void peer_test_hold(struct kthread_work *work)
{
	struct peer_exit *pe = container_of(work, struct peer_exit, hold);

	complete(&pe->held);
	wait_for_completion(&pe->go);
}

static int peer_test_stop(void *arg)
{
	struct peer_exit *pe = arg;

	sovia_anchors_stop(pe->snet);
	complete(&pe->stopped);
	return 0;
}

/* Peers are the connection thread's also then: the exit waits for it, and does not touch them. */
static void peer_is_not_taken_away(struct kunit *test)
{
	struct peer_exit *pe = kunit_kzalloc(test, sizeof(*pe), GFP_KERNEL);
	struct peer_test *pt = test->priv;
	struct task_struct *task;
	struct sovia_peer *peer;
	bool waits;

	KUNIT_ASSERT_NOT_NULL(test, pe);
	KUNIT_ASSERT_EQ(test, peer_test_say(test, &peer_test_greeting), SOVIA_RDV_OK);
	peer = sovia_peer_find(pt->snet, &pt->pair);
	KUNIT_ASSERT_EQ(test, sovia_rendezvous_admit(pt->anchor), 0);
	/* From here on its work closes it. */
	flush_work(&pt->anchor->work);
	clear_bit(SOVIA_ANCHOR_CLOSED, &pt->anchor->flags);
	pe->snet = pt->snet;
	init_completion(&pe->held);
	init_completion(&pe->go);
	init_completion(&pe->stopped);
	kthread_init_work(&pe->hold, peer_test_hold);
	sovia_connd_queue(&pe->hold);
	wait_for_completion(&pe->held);
	task = kthread_run(peer_test_stop, pe, "sovia-test-exit");
	if (IS_ERR(task)) {
		complete(&pe->go);
		KUNIT_FAIL(test, "no thread");
		return;
	}
	waits = !wait_for_completion_timeout(&pe->stopped, HZ);
	KUNIT_EXPECT_TRUE(test, waits);
	KUNIT_EXPECT_TRUE(test, test_bit(SOVIA_ANCHOR_CLOSED, &pt->anchor->flags));
	KUNIT_EXPECT_PTR_EQ(test, peer->anchor, pt->anchor);
	complete(&pe->go);
	if (waits)
		wait_for_completion(&pe->stopped);
	KUNIT_EXPECT_NULL(test, peer->anchor);
	KUNIT_EXPECT_EQ(test, peer_test_state(pt), SOVIA_PEER_UNANCHORED);
	sovia_anchor_put(pt->anchor);
	pt->anchor = NULL;
}

static struct kunit_case peer_test_cases[] = {
	KUNIT_CASE(peer_is_welcome),
	KUNIT_CASE(peer_must_use_its_address),
	KUNIT_CASE(peer_needs_our_version),
	KUNIT_CASE(peer_is_not_replaced),
	KUNIT_CASE(peer_comes_again),
	KUNIT_CASE(peer_comes_again_unknown),
	KUNIT_CASE(peer_joins),
	KUNIT_CASE(peer_says_too_much),
	KUNIT_CASE(peer_answers_unasked),
	KUNIT_CASE(peer_requests),
	KUNIT_CASE(peer_is_not_taken_away),
	{}
};

struct kunit_suite sovia_peer_suite = {
	.name = "sovia-peer",
	.init = peer_test_init,
	.exit = peer_test_exit,
	.test_cases = peer_test_cases,
};

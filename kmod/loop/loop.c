// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop providers: VIs between two addresses of one host, without a device.  One is for those of
 * a namespace, the other (near) for those of two, whose kernel has proved to be the same: near.c.
 *
 * Two VIs share a wire.  A message sent is cloned onto the queue of the other
 * end and delivered from softirq (irq_poll), where the sender's completion is
 * reported as well: the same order of events as with a real device.  The sk_buff of an
 * unsignaled message is passed on instead, unless its link may outlive the VI.  A VI whose two
 * addresses are the same is its own peer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/list.h>
#include <linux/module.h>
#include <linux/irq_poll.h>
#include <linux/kref.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "core/net.h"
#include "core/objcount.h"
#include "core/provider.h"
#include "core/work.h"

#define LOOP_POLL_WEIGHT	64

static bool loop_lane;
module_param(loop_lane, bool, 0444);
MODULE_PARM_DESC(loop_lane, "connections within this host use a lane, as others do, for tests (N)");

struct loop_vi;

/**
 * struct loop_wire - shared by two VIs
 * @kref: one for each end, one for a pending request
 * @lock: protects @end; taken with bottom halves off, inside lane locks
 * @end: the VIs; accept sets the passive one.  Only loop_end() clears them, so that the
 *	connection thread can use what it finds here without a reference.
 */
struct loop_wire {
	struct kref	kref;
	spinlock_t	lock;	/* see above */
	struct loop_vi	*end[2];
};

/**
 * struct loop_vi - one end
 * @vi: the client's part
 * @wire: the wire
 * @side: index in loop_wire::end
 * @poll: delivers @rxq and reports the completions of @sent
 * @rxq: received messages
 * @sent: ring of vi.attr.send_depth sent messages without a completion,
 *	with a reference each
 * @head: completions added.  Written by post_send, one at a time.
 * @tail: completions reported.  Written by @poll.
 * @closed: the client has been told that it is dead; connection thread
 * @end_work: frees it, on the end queue, after it has left its wire
 * @rcu: frees it
 *
 * @poll accesses it once more after irq_poll_complete(), so it is freed a
 * grace period after @poll has been disabled.
 */
struct loop_vi {
	struct sovia_vi		vi;
	struct loop_wire	*wire;
	unsigned int		side;
	struct irq_poll		poll;
	struct sk_buff_head	rxq;
	struct sk_buff		**sent;
	unsigned int		head;
	unsigned int		tail;
	bool			closed;
	struct work_struct	end_work;
	struct rcu_head		rcu;
};

/**
 * struct loop_request - a request and the wire that it brings
 * @req: what the client sees
 * @wire: with a reference
 */
struct loop_request {
	struct sovia_vi_request	req;
	struct loop_wire	*wire;
};

static void (*loop_request_upcall)(struct sovia_vi_request *req);

static struct loop_vi *to_loop(struct sovia_vi *vi)
{
	return container_of(vi, struct loop_vi, vi);
}

static void wire_free(struct kref *kref)
{
	kfree(container_of(kref, struct loop_wire, kref));
}

static void wire_put(struct loop_wire *wire)
{
	kref_put(&wire->kref, wire_free);
}

/* The next completion, or NULL. */
static struct sk_buff *next_sent(struct loop_vi *lv)
{
	struct sk_buff *skb;

	/* Pairs with the release in loop_post_send(). */
	if (lv->tail == smp_load_acquire(&lv->head))
		return NULL;
	skb = lv->sent[lv->tail % lv->vi.attr.send_depth];
	/* The slot may be reused from here on. */
	smp_store_release(&lv->tail, lv->tail + 1);
	return skb;
}

static int loop_poll(struct irq_poll *poll, int budget)
{
	struct loop_vi *lv = container_of(poll, struct loop_vi, poll);
	struct sk_buff *skb;
	int done = 0;

	while (done < budget && (skb = next_sent(lv))) {
		lv->vi.client->send_done(&lv->vi, skb, true);
		kfree_skb(skb);
		done++;
	}
	while (done < budget && (skb = skb_dequeue(&lv->rxq))) {
		if (!lv->vi.client->receive(&lv->vi, skb, sovia_imm_of(skb)))
			kfree_skb(skb);
		done++;
	}
	if (done < budget) {
		irq_poll_complete(poll);
		/* Work may have been queued between the last check and irq_poll_complete(). */
		if (!skb_queue_empty_lockless(&lv->rxq) ||
		    lv->tail != READ_ONCE(lv->head))
			irq_poll_sched(poll);
	}
	return done;
}

static void loop_request_free(struct loop_request *lr)
{
	kfree(lr);
	sovia_object_dec(requests);
}

static void loop_end_work(struct work_struct *work);

static struct loop_vi *loop_alloc(const struct sovia_provider *prov, const struct sovia_pair *pair,
				  const struct sovia_vi_attr *attr,
				  const struct sovia_vi_client *client, void *context)
{
	struct loop_vi *lv = kzalloc(sizeof(*lv), GFP_KERNEL);

	if (!lv)
		return NULL;
	lv->sent = kvcalloc(attr->send_depth, sizeof(*lv->sent), GFP_KERNEL);
	if (!lv->sent) {
		kfree(lv);
		return NULL;
	}
	sovia_object_inc(loop_vis);
	lv->vi.prov = prov;
	lv->vi.client = client;
	lv->vi.context = context;
	lv->vi.pair = *pair;
	lv->vi.attr = *attr;
	lv->vi.max_frags = MAX_SKB_FRAGS;
	lv->vi.imm = true;
	skb_queue_head_init(&lv->rxq);
	irq_poll_init(&lv->poll, LOOP_POLL_WEIGHT, loop_poll);
	INIT_WORK(&lv->end_work, loop_end_work);
	return lv;
}

static void loop_free(struct loop_vi *lv)
{
	kvfree(lv->sent);
	kfree_rcu(lv, rcu);
	sovia_object_dec(loop_vis);
}

static void loop_drain(struct loop_vi *lv)
{
	struct sk_buff *skb;

	skb_queue_purge(&lv->rxq);
	local_bh_disable();
	while ((skb = next_sent(lv))) {
		lv->vi.client->send_done(&lv->vi, skb, false);
		kfree_skb(skb);
	}
	local_bh_enable();
}

static struct loop_wire *wire_alloc(void)
{
	struct loop_wire *wire = kzalloc(sizeof(*wire), GFP_KERNEL);

	if (wire) {
		kref_init(&wire->kref);
		spin_lock_init(&wire->lock);
	}
	return wire;
}

/* By an end, a peer that has ended, or one that could not be set up; and by a test. */
static void loop_close(struct loop_vi *lv, int err)
{
	if (lv->closed)
		return;
	lv->closed = true;
	lv->vi.client->closed(&lv->vi, err);
}

/* There is no path, so that the MAC is over none. */
static int loop_seal(struct loop_vi *lv, struct sovia_hello *hello)
{
	static const struct sovia_path none;

	return lv->vi.prov->introduced ? lv->vi.client->seal(&lv->vi, &none, hello) : 0;
}

/* Send a request to the client of the other end, whose addresses are @pair. */
static int loop_send_request(struct net *net, const struct sovia_pair *pair,
			     const struct sovia_hello *hello, struct loop_vi *lv)
{
	struct loop_request *lr = kzalloc(sizeof(*lr), GFP_KERNEL);

	if (!lr)
		return -ENOMEM;
	sovia_object_inc(requests);
	kref_get(&lv->wire->kref);
	lr->wire = lv->wire;
	lr->req.prov = lv->vi.prov;
	lr->req.net = net;
	lr->req.pair = *pair;
	lr->req.hello = *hello;
	lr->req.hello_len = sizeof(*hello);
	loop_request_upcall(&lr->req);
	return 0;
}

/* The active end of a wire. */
static struct loop_vi *loop_begin(const struct sovia_provider *prov, const struct sovia_pair *pair,
				  const struct sovia_vi_attr *attr,
				  const struct sovia_vi_client *client, void *context)
{
	struct loop_wire *wire = wire_alloc();
	struct loop_vi *lv;

	if (!wire)
		return NULL;
	lv = loop_alloc(prov, pair, attr, client, context);
	if (!lv) {
		wire_put(wire);
		return NULL;
	}
	lv->wire = wire;
	wire->end[0] = lv;
	return lv;
}

static struct sovia_vi *loop_begun(struct loop_vi *lv, int err)
{
	if (!err)
		return &lv->vi;
	wire_put(lv->wire);
	loop_free(lv);
	return ERR_PTR(err);
}

static struct sovia_vi *loop_connect(struct net *net, const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context)
{
	const struct sovia_pair mirror = {
		.local = pair->remote, .remote = pair->local, .scope = pair->scope, .l3 = pair->l3,
	};
	struct loop_vi *lv = loop_begin(&sovia_loop_provider, pair, attr, client, context);

	if (!lv)
		return ERR_PTR(-ENOMEM);
	if (ipv6_addr_equal(&pair->local, &pair->remote)) {
		lv->wire->end[1] = lv;
		client->established(&lv->vi, hello, sizeof(*hello));
		return &lv->vi;
	}
	return loop_begun(lv, loop_send_request(net, &mirror, hello, lv));
}

static struct sovia_vi *near_connect(struct net *net, const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context)
{
	struct loop_vi *lv = loop_begin(&sovia_near_provider, pair, attr, client, context);
	struct sovia_hello sealed = *hello;
	struct sovia_pair beyond;
	struct net *other;
	int err;

	if (!lv)
		return ERR_PTR(-ENOMEM);
	/* Its upcall below holds it for the request. */
	other = client->beyond(&lv->vi, &beyond);
	if (IS_ERR(other))
		return loop_begun(lv, PTR_ERR(other));
	err = loop_seal(lv, &sealed);
	if (!err)
		err = loop_send_request(other, &beyond, &sealed, lv);
	put_net(other);
	return loop_begun(lv, err);
}

/*
 * Either end may send as soon as it is established, and a link that recovers does.  What the
 * passive end sends waits for the active one, which has received nothing before.
 */
static void loop_establish(struct loop_vi *passive, const struct loop_request *lr,
			   struct loop_vi *active, const struct sovia_hello *reply)
{
	irq_poll_disable(&active->poll);
	passive->vi.client->established(&passive->vi, &lr->req.hello, lr->req.hello_len);
	active->vi.client->established(&active->vi, reply, sizeof(*reply));
	irq_poll_enable(&active->poll);
	/* What was queued in between could not schedule it. */
	irq_poll_sched(&active->poll);
}

static struct sovia_vi *loop_accept(struct sovia_vi_request *req,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_hello *hello,
				    const struct sovia_vi_client *client, void *context)
{
	struct loop_request *lr = container_of(req, struct loop_request, req);
	struct loop_wire *wire = lr->wire;
	struct sovia_hello sealed = *hello;
	struct loop_vi *lv, *peer;

	lv = loop_alloc(req->prov, &req->pair, attr, client, context);
	if (!lv) {
		req->prov->reject(req, -ENOMEM);
		return ERR_PTR(-ENOMEM);
	}
	lv->wire = wire;
	lv->side = 1;
	spin_lock_bh(&wire->lock);
	peer = wire->end[0];
	wire->end[1] = lv;
	spin_unlock_bh(&wire->lock);
	/* It stays while we are here: only this thread lets VIs leave their wires. */
	if (peer && !peer->closed && !loop_seal(lv, &sealed))
		loop_establish(lv, lr, peer, &sealed);
	else
		loop_close(lv, -ECONNRESET);
	loop_request_free(lr);
	return &lv->vi;
}

static void loop_reject(struct sovia_vi_request *req, int err)
{
	struct loop_request *lr = container_of(req, struct loop_request, req);
	struct loop_vi *peer;

	/* It stays while we are here, as in loop_accept(). */
	spin_lock_bh(&lr->wire->lock);
	peer = lr->wire->end[0];
	spin_unlock_bh(&lr->wire->lock);
	/* As with verbs, it is the peer that lacks memory. */
	if (peer)
		loop_close(peer, err == -ENOMEM ? -EBUSY : err);
	wire_put(lr->wire);
	loop_request_free(lr);
}

/* Queue a message at the other end, if there is one. */
static int loop_hand_over(struct loop_vi *lv, struct sk_buff *skb, struct sk_buff *original)
{
	struct loop_wire *wire = lv->wire;
	struct loop_vi *peer;

	spin_lock(&wire->lock);
	peer = wire->end[!lv->side];
	if (peer) {
		skb_queue_tail(&peer->rxq, skb);
		if (original) {
			lv->sent[lv->head % lv->vi.attr.send_depth] = skb_get(original);
			/* Pairs with the acquire in next_sent(). */
			smp_store_release(&lv->head, lv->head + 1);
		}
		irq_poll_sched(&peer->poll);
		if (original && peer != lv)
			irq_poll_sched(&lv->poll);
	}
	spin_unlock(&wire->lock);
	return peer ? 0 : -ENOTCONN;
}

static int loop_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			  const struct sovia_post *how)
{
	struct loop_vi *lv = to_loop(vi);
	struct sk_buff *clone;
	int err;

	sovia_imm_attach(skb, how->has_imm, how->imm);
	/* Certain to arrive, as nothing outlives the VI. */
	if (how->unsignaled && vi->prov->local)
		return loop_hand_over(lv, skb, NULL) ?: SOVIA_POSTED_TAKEN;
	/* Pairs with the release in next_sent(). */
	if (!how->unsignaled && lv->head - smp_load_acquire(&lv->tail) >= vi->attr.send_depth)
		return -EAGAIN;
	clone = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!clone)
		return -EAGAIN;
	err = loop_hand_over(lv, clone, how->unsignaled ? NULL : skb);
	if (err) {
		kfree_skb(clone);
		return err;
	}
	return how->unsignaled ? SOVIA_POSTED_UNSIGNALED : SOVIA_POSTED;
}

static void loop_fail(struct sovia_vi *vi)
{
	loop_close(to_loop(vi), -EIO);
}

/* It has left its wire, so the queues only shrink. */
static void loop_end_work(struct work_struct *work)
{
	struct loop_vi *lv = container_of(work, struct loop_vi, end_work);

	irq_poll_disable(&lv->poll);
	wire_put(lv->wire);
	loop_drain(lv);
	lv->vi.client->ended(&lv->vi);
	loop_free(lv);
}

static void loop_end(struct sovia_vi *vi)
{
	struct loop_vi *lv = to_loop(vi), *peer;
	struct loop_wire *wire = lv->wire;

	spin_lock_bh(&wire->lock);
	peer = wire->end[!lv->side];
	wire->end[lv->side] = NULL;
	if (peer == lv)
		wire->end[!lv->side] = NULL;
	spin_unlock_bh(&wire->lock);
	if (peer && peer != lv)
		loop_close(peer, -ECONNRESET);
	queue_work(sovia_end_wq, &lv->end_work);
}

static int loop_listen(struct net *net, void (*request)(struct sovia_vi_request *req))
{
	loop_request_upcall = request;
	return 0;
}

static void loop_unlisten(struct net *net)
{
}

const struct sovia_provider sovia_loop_provider = {
	.name		= "loop",
	.stats		= SOVIA_STAT_loop_tx_msgs,
	.local		= true,
	.in_memory	= true,
	.by_lane	= &loop_lane,
	.listen		= loop_listen,
	.unlisten	= loop_unlisten,
	.connect	= loop_connect,
	.accept		= loop_accept,
	.reject		= loop_reject,
	.post_send	= loop_post_send,
	.end		= loop_end,
};

const struct sovia_provider sovia_near_provider = {
	.name		= "loop",
	.stats		= SOVIA_STAT_loop_tx_msgs,
	.introduced	= true,
	.in_memory	= true,
	.by_lane	= &loop_lane,
	.listen		= loop_listen,
	.unlisten	= loop_unlisten,
	.connect	= near_connect,
	.accept		= loop_accept,
	.reject		= loop_reject,
	.post_send	= loop_post_send,
	.fail		= loop_fail,
	.end		= loop_end,
};

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/loop_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A faulty VI wraps the provider's VI: calls and upcalls go through it, and most are
 * passed on.  Other VIs are not wrapped, so fault injection does not slow down their
 * data path.
 *
 * Delayed calls and upcalls are queued on fault_vi::todo for a work.  Messages stay in
 * order, and so do completions.
 *
 * The provider's contract is checked below this layer: vi_check.c.
 */
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/slab.h>
#include "core/work.h"
#include "fault.h"
#include "fault_kind.h"
#include "vi_check.h"

/* The smallest packet that a device may split a message into. */
#define FAULT_PACKET	256

/* ---- delayed calls and upcalls ----------------------------------------- */

/**
 * enum fault_step - delayed call or upcall
 * @STEP_POST: the provider's post_send
 * @STEP_SENT: the client's send_done; the following are the client's, too
 * @STEP_LOST: send_done of a message that was never posted; called when the VI ends
 * @STEP_RECEIVE: receive
 * @STEP_UNPOSTED: rx_unposted, with -1
 * @STEP_CLOSED: closed
 */
enum fault_step {
	STEP_POST,
	STEP_SENT,
	STEP_LOST,
	STEP_RECEIVE,
	STEP_UNPOSTED,
	STEP_CLOSED,
};

/**
 * struct fault_item - a delayed call or upcall
 * @node: in fault_vi::todo
 * @step: which
 * @due: when, in jiffies
 * @skb: the message, with a reference, or NULL
 * @how: how to post it, or its immediate data
 * @err: for closed
 * @done: for send_done
 */
struct fault_item {
	struct list_head	node;
	enum fault_step		step;
	unsigned long		due;
	struct sk_buff		*skb;
	struct sovia_post	how;
	int			err;
	bool			done;
};

/**
 * struct fault_vi - a VI that can be faulty
 * @vi: the link layer's part
 * @real: the provider's, once it is known
 * @up_lock: held during receive and send_done, which may come from the provider and from
 *	@work; outside socket and lane locks
 * @lock: protects what follows, and serialises the real post_send; inside lane locks,
 *	taken with bottom halves off
 * @todo: delayed calls and upcalls, by time
 * @posts: messages in @todo to post
 * @cut: failed by a fault: nothing is passed on any more
 * @ending: the link layer has ended it: nothing is posted any more
 * @silent: ended: @todo is not processed any more
 * @work: processes @todo
 */
struct fault_vi {
	struct sovia_vi		vi;
	struct sovia_vi		*real;
	spinlock_t		up_lock;	/* see above */
	spinlock_t		lock;		/* see above */
	struct list_head	todo;
	unsigned int		posts;
	bool			cut;
	bool			ending;
	bool			silent;
	struct delayed_work	work;
};

static struct fault_vi *to_fault(struct sovia_vi *vi)
{
	return container_of(vi, struct fault_vi, vi);
}

static struct fault_item *item_alloc(enum fault_step step, enum fault_kind kind)
{
	struct fault_item *item = kzalloc(sizeof(*item), GFP_ATOMIC | __GFP_NOWARN);

	if (item) {
		item->step = step;
		item->due = jiffies + msecs_to_jiffies(sovia_fault_delay(kind));
	}
	return item;
}

static void item_free(struct fault_item *item)
{
	kfree_skb(item->skb);
	kfree(item);
}

/* Schedule the work for the first item, or to retry it. */
static void fault_schedule(struct fault_vi *fv, unsigned long due)
{
	unsigned long now = jiffies;

	lockdep_assert_held(&fv->lock);
	if (!fv->silent)
		mod_delayed_work(sovia_setup_wq, &fv->work, time_after(due, now) ? due - now : 0);
}

/* Insert by time, but never before another item of the same kind. */
static void fault_queue_locked(struct fault_vi *fv, struct fault_item *item)
{
	struct fault_item *before;

	lockdep_assert_held(&fv->lock);
	list_for_each_entry_reverse(before, &fv->todo, node)
		if (before->step == item->step || !time_after(before->due, item->due))
			break;
	list_add(&item->node, &before->node);
	fv->posts += item->step == STEP_POST;
	fault_schedule(fv, list_first_entry(&fv->todo, struct fault_item, node)->due);
}

/* After fault_silence() only fault_drain() handles it. */
static void fault_queue(struct fault_vi *fv, struct fault_item *item)
{
	spin_lock_bh(&fv->lock);
	fault_queue_locked(fv, item);
	spin_unlock_bh(&fv->lock);
}

static struct fault_item *fault_find(struct fault_vi *fv, enum fault_step step)
{
	struct fault_item *item;

	lockdep_assert_held(&fv->lock);
	list_for_each_entry(item, &fv->todo, node)
		if (item->step == step)
			return item;
	return NULL;
}

static bool fault_waits(struct fault_vi *fv, enum fault_step step)
{
	bool waits;

	spin_lock_bh(&fv->lock);
	waits = fault_find(fv, step);
	spin_unlock_bh(&fv->lock);
	return waits;
}

/* Fail the VI towards the link layer.  Messages in flight are lost. */
static void fault_cut(struct fault_vi *fv, int err)
{
	struct fault_item *item = item_alloc(STEP_CLOSED, FAULT_CLOSE);

	if (!item)
		return;
	item->err = err;
	item->due = jiffies;
	spin_lock_bh(&fv->lock);
	WRITE_ONCE(fv->cut, true);
	spin_unlock_bh(&fv->lock);
	fault_queue(fv, item);
}

/* ---- calls -------------------------------------------------------------- */

static int real_post(struct fault_vi *fv, struct sk_buff *skb, const struct sovia_post *asked)
{
	struct sovia_post how = *asked;

	lockdep_assert_held(&fv->lock);
	/* send_done cannot be delayed unless it is called. */
	if (sovia_fault_wanted(FAULT_SENT))
		how.unsignaled = false;
	return fv->real->prov->post_send(fv->real, skb, &how);
}

/* Deferred sends must be signaled. */
static int post_later(struct fault_vi *fv, struct sk_buff *skb, const struct sovia_post *how)
{
	struct fault_item *item = item_alloc(STEP_POST, FAULT_DELAY);

	if (!item)
		return -EAGAIN;
	item->skb = skb_get(skb);
	item->how = *how;
	item->how.unsignaled = false;
	fault_queue_locked(fv, item);
	return SOVIA_POSTED;
}

/* Its send_done is called when the VI ends. */
static int post_drop(struct fault_vi *fv, struct sk_buff *skb, const struct sovia_post *how)
{
	struct fault_item *item;

	if (!how->unsignaled) {
		item = item_alloc(STEP_LOST, FAULT_DROP);
		if (!item)
			return -EAGAIN;
		item->skb = skb_get(skb);
		item->due += MAX_JIFFY_OFFSET / 2;
		fault_queue(fv, item);
	}
	fault_cut(fv, sovia_fault_error(FAULT_DROP));
	return how->unsignaled ? SOVIA_POSTED_UNSIGNALED : SOVIA_POSTED;
}

static int fault_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			   const struct sovia_post *how)
{
	struct fault_vi *fv = to_fault(vi);
	int ret;

	if (READ_ONCE(fv->cut))
		return -ENOTCONN;
	if (sovia_fault_fires(FAULT_POST))
		return sovia_fault_error(FAULT_POST);
	if (sovia_fault_fires(FAULT_DROP))
		return post_drop(fv, skb, how);
	spin_lock(&fv->lock);
	if (fv->posts || sovia_fault_fires(FAULT_DELAY))
		ret = post_later(fv, skb, how);
	else
		ret = real_post(fv, skb, how);
	spin_unlock(&fv->lock);
	if (ret >= 0 && sovia_fault_fires(FAULT_CLOSE))
		fault_cut(fv, sovia_fault_error(FAULT_CLOSE));
	return ret;
}

static void fault_end(struct sovia_vi *vi)
{
	struct fault_vi *fv = to_fault(vi);

	spin_lock_bh(&fv->lock);
	fv->ending = true;
	spin_unlock_bh(&fv->lock);
	fv->real->prov->end(fv->real);
}

static void fault_fail(struct sovia_vi *vi)
{
	struct fault_vi *fv = to_fault(vi);

	fv->real->prov->fail(fv->real);
}

static void fault_post_more(struct sovia_vi *vi, unsigned int depth)
{
	struct fault_vi *fv = to_fault(vi);

	fv->real->prov->post_more(fv->real, depth);
}

/* Wait for the work and our upcalls; none starts afterwards. */
static void fault_silence(struct fault_vi *fv)
{
	spin_lock_bh(&fv->lock);
	fv->silent = true;
	spin_unlock_bh(&fv->lock);
	cancel_delayed_work_sync(&fv->work);
}

/* Call send_done for the remaining messages. */
static void fault_drain(struct fault_vi *fv)
{
	struct fault_item *item, *next;

	list_for_each_entry_safe(item, next, &fv->todo, node) {
		local_bh_disable();
		if (item->step == STEP_POST || item->step == STEP_SENT ||
		    item->step == STEP_LOST)
			fv->vi.client->send_done(&fv->vi, item->skb, false);
		local_bh_enable();
		item_free(item);
	}
}

/* Operations on a VI; the others are called on the real provider. */
static const struct sovia_provider fault_provider = {
	.name		= "fault",
	.post_send	= fault_post_send,
	.post_more	= fault_post_more,
	.fail		= fault_fail,
	.end		= fault_end,
};

/* ---- upcalls ------------------------------------------------------------ */

static int fault_seal(struct sovia_vi *vi, const struct sovia_path *path,
		      struct sovia_hello *hello)
{
	struct fault_vi *fv = vi->context;

	return fv->vi.client->seal(&fv->vi, path, hello);
}

static struct net *fault_beyond(struct sovia_vi *vi, struct sovia_pair *pair)
{
	struct fault_vi *fv = vi->context;

	return fv->vi.client->beyond(&fv->vi, pair);
}

static void fault_way(struct sovia_vi *vi, struct sovia_clan_way *way)
{
	struct fault_vi *fv = vi->context;

	fv->vi.client->way(&fv->vi, way);
}

static void fault_established(struct sovia_vi *vi, const struct sovia_hello *hello,
			      unsigned int hello_len)
{
	struct fault_vi *fv = vi->context;

	/* connect may not have returned yet */
	WRITE_ONCE(fv->real, vi);
	fv->vi.max_frags = vi->max_frags;
	fv->vi.copybreak = vi->copybreak;
	fv->vi.has_tos = vi->has_tos;
	fv->vi.tos = vi->tos;
	fv->vi.imm = vi->imm;
	fv->vi.sends_first = vi->sends_first;
	if (sovia_fault_fires(FAULT_SETUP)) {
		fault_cut(fv, sovia_fault_error(FAULT_SETUP));
		return;
	}
	if (sovia_fault_fires(FAULT_HELLO))
		hello_len = 0;
	if (sovia_fault_fires(FAULT_LATE))
		msleep(sovia_fault_delay(FAULT_LATE));
	fv->vi.client->established(&fv->vi, hello, hello_len);
}

/* After fault_cut() this is the second closed upcall. */
static void fault_closed(struct sovia_vi *vi, int err)
{
	struct fault_vi *fv = vi->context;

	fv->vi.client->closed(&fv->vi, err);
}

static bool receive_up(struct fault_vi *fv, struct sk_buff *skb, const u32 *imm)
{
	lockdep_assert_held(&fv->up_lock);
	return fv->vi.client->receive(&fv->vi, skb, imm);
}

static void receive_item(struct fault_vi *fv, struct fault_item *item)
{
	if (receive_up(fv, item->skb, item->how.has_imm ? &item->how.imm : NULL))
		item->skb = NULL;
}

/* The provider reuses its sk_buff: copy it. */
static struct fault_item *receive_copy(struct sk_buff *skb, const u32 *imm)
{
	struct fault_item *item = item_alloc(STEP_RECEIVE, FAULT_SWAP);

	if (!item)
		return NULL;
	item->skb = skb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!item->skb) {
		kfree(item);
		return NULL;
	}
	item->how.has_imm = imm;
	if (imm)
		item->how.imm = *imm;
	return item;
}

/* The swapped message, to be received after the current one. */
static struct fault_item *receive_swapped(struct fault_vi *fv)
{
	struct fault_item *item;

	spin_lock(&fv->lock);
	item = fault_find(fv, STEP_RECEIVE);
	if (item)
		list_del(&item->node);
	spin_unlock(&fv->lock);
	return item;
}

static bool receive_faulty(struct fault_vi *fv, struct sk_buff *skb, const u32 *imm)
{
	struct fault_item *item;
	bool taken;

	if (READ_ONCE(fv->cut) || sovia_fault_fires(FAULT_LOSE))
		return false;
	item = receive_swapped(fv);
	if (!item && sovia_fault_fires(FAULT_SWAP)) {
		item = receive_copy(skb, imm);
		if (item) {
			fault_queue(fv, item);
			return false;
		}
	}
	if (!item && skb->len > FAULT_PACKET && sovia_fault_fires(FAULT_SHORT)) {
		item = receive_copy(skb, imm);
		if (item) {
			skb_trim(item->skb, skb->len - FAULT_PACKET);
			receive_item(fv, item);
			item_free(item);
			return false;
		}
	}
	if (!item && sovia_fault_fires(FAULT_TWICE))
		item = receive_copy(skb, imm);
	taken = receive_up(fv, skb, imm);
	if (item) {
		receive_item(fv, item);
		item_free(item);
	}
	return taken;
}

/* Report a descriptor as unposted, and later as posted again. */
static void fault_starve(struct fault_vi *fv)
{
	struct fault_item *item = item_alloc(STEP_UNPOSTED, FAULT_STARVE);

	if (!item)
		return;
	fv->vi.client->rx_unposted(&fv->vi, 1);
	fault_queue(fv, item);
}

static bool fault_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm)
{
	struct fault_vi *fv = vi->context;
	bool taken;

	if (sovia_fault_fires(FAULT_STARVE))
		fault_starve(fv);
	spin_lock_bh(&fv->up_lock);
	taken = receive_faulty(fv, skb, imm);
	spin_unlock_bh(&fv->up_lock);
	return taken;
}

static void fault_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool done)
{
	struct fault_vi *fv = vi->context;
	struct fault_item *item = NULL;

	/* After fault_cut() it is unknown what has arrived. */
	done = done && !READ_ONCE(fv->cut);
	spin_lock_bh(&fv->up_lock);
	if (done && (fault_waits(fv, STEP_SENT) || sovia_fault_fires(FAULT_SENT)))
		item = item_alloc(STEP_SENT, FAULT_SENT);
	if (item) {
		item->skb = skb_get(skb);
		item->done = done;
		fault_queue(fv, item);
	} else {
		fv->vi.client->send_done(&fv->vi, skb, done);
	}
	spin_unlock_bh(&fv->up_lock);
}

static void fault_doubted(struct sovia_vi *vi)
{
	struct fault_vi *fv = vi->context;

	fv->vi.client->doubted(&fv->vi);
}

static void fault_rx_unposted(struct sovia_vi *vi, int delta)
{
	struct fault_vi *fv = vi->context;

	fv->vi.client->rx_unposted(&fv->vi, delta);
}

static void fault_rx_grown(struct sovia_vi *vi, unsigned int depth)
{
	struct fault_vi *fv = vi->context;

	fv->vi.client->rx_grown(&fv->vi, depth);
}

static void fault_ended(struct sovia_vi *vi)
{
	struct fault_vi *fv = vi->context;

	fault_silence(fv);
	fault_drain(fv);
	fv->vi.client->ended(&fv->vi);
	kfree(fv);
}

static const struct sovia_vi_client fault_client = {
	.seal		= fault_seal,
	.beyond		= fault_beyond,
	.way		= fault_way,
	.established	= fault_established,
	.closed		= fault_closed,
	.doubted	= fault_doubted,
	.receive	= fault_receive,
	.send_done	= fault_send_done,
	.rx_unposted	= fault_rx_unposted,
	.rx_grown	= fault_rx_grown,
	.ended		= fault_ended,
};

/* ---- work --------------------------------------------------------------- */

/* Post due messages; return the first due upcall. */
static struct fault_item *fault_next(struct fault_vi *fv)
{
	struct fault_item *item;
	int ret;

	lockdep_assert_held(&fv->lock);
	while ((item = list_first_entry_or_null(&fv->todo, struct fault_item, node))) {
		if (time_after(item->due, jiffies)) {
			fault_schedule(fv, item->due);
			return NULL;
		}
		if (item->step == STEP_POST) {
			ret = fv->cut || fv->ending ? -ENOTCONN :
				real_post(fv, item->skb, &item->how);
			if (ret == -EAGAIN) {
				fault_schedule(fv, jiffies + 1);
				return NULL;
			}
			fv->posts--;
			if (ret < 0)
				item->step = STEP_LOST;
		}
		list_del(&item->node);
		if (item->step != STEP_POST)
			return item;
		item_free(item);
	}
	return NULL;
}

static void fault_do(struct fault_vi *fv, struct fault_item *item)
{
	switch (item->step) {
	case STEP_SENT:
	case STEP_LOST:
		fv->vi.client->send_done(&fv->vi, item->skb, item->done && !READ_ONCE(fv->cut));
		break;
	case STEP_RECEIVE:
		if (!READ_ONCE(fv->cut))
			receive_item(fv, item);
		break;
	case STEP_UNPOSTED:
		fv->vi.client->rx_unposted(&fv->vi, -1);
		break;
	case STEP_CLOSED:
		fv->vi.client->closed(&fv->vi, item->err);
		break;
	case STEP_POST:
		break;
	}
}

static void fault_work(struct work_struct *work)
{
	struct fault_vi *fv = container_of(to_delayed_work(work), struct fault_vi, work);
	struct fault_item *item;

	do {
		spin_lock_bh(&fv->up_lock);
		spin_lock(&fv->lock);
		item = fault_next(fv);
		spin_unlock(&fv->lock);
		if (item)
			fault_do(fv, item);
		spin_unlock_bh(&fv->up_lock);
		if (item)
			item_free(item);
	} while (item);
}

/* ---- set-up ------------------------------------------------------------- */

static struct fault_vi *fault_alloc(const struct sovia_pair *pair,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_vi_client *client, void *context)
{
	struct fault_vi *fv = kzalloc(sizeof(*fv), GFP_KERNEL);

	if (!fv)
		return NULL;
	fv->vi.prov = &fault_provider;
	fv->vi.client = client;
	fv->vi.context = context;
	fv->vi.pair = *pair;
	fv->vi.attr = *attr;
	spin_lock_init(&fv->up_lock);
	spin_lock_init(&fv->lock);
	INIT_LIST_HEAD(&fv->todo);
	INIT_DELAYED_WORK(&fv->work, fault_work);
	return fv;
}

static struct sovia_vi *fault_made(struct fault_vi *fv, struct sovia_vi *real)
{
	if (IS_ERR(real)) {
		fault_silence(fv);
		fault_drain(fv);
		kfree(fv);
		return real;
	}
	WRITE_ONCE(fv->real, real);
	return &fv->vi;
}

/**
 * sovia_fault_connect() - sovia_provider::connect of @prov, or of a faulty one
 * @prov: the provider
 * @net: see there, as all that follow
 * @pair: see there
 * @attr: see there
 * @hello: see there
 * @client: see there
 * @context: see there
 *
 * Context: connection thread; may sleep.
 * Return: the VI, or an ERR_PTR.
 */
struct sovia_vi *sovia_fault_connect(const struct sovia_provider *prov, struct net *net,
				     const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context)
{
	struct fault_vi *fv;

	if (!sovia_fault_applies(prov))
		return sovia_vi_check_connect(prov, net, pair, attr, hello, client, context);
	fv = fault_alloc(pair, attr, client, context);
	if (!fv)
		return ERR_PTR(-ENOMEM);
	if (sovia_fault_fires(FAULT_CONNECT))
		return fault_made(fv, ERR_PTR(sovia_fault_error(FAULT_CONNECT)));
	return fault_made(fv, sovia_vi_check_connect(prov, net, pair, attr, hello,
						     &fault_client, fv));
}

/**
 * sovia_fault_accept() - sovia_provider::accept of the request's, or of a faulty one
 * @req: the request; consumed
 * @attr: see there, as all that follow
 * @hello: see there
 * @client: see there
 * @context: see there
 *
 * Context: connection thread; may sleep.
 * Return: the VI, or an ERR_PTR.
 */
struct sovia_vi *sovia_fault_accept(struct sovia_vi_request *req,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_hello *hello,
				    const struct sovia_vi_client *client, void *context)
{
	const struct sovia_provider *prov = req->prov;
	struct fault_vi *fv;
	int err = -ENOMEM;

	if (!sovia_fault_applies(prov))
		return sovia_vi_check_accept(req, attr, hello, client, context);
	fv = fault_alloc(&req->pair, attr, client, context);
	if (fv && !sovia_fault_fires(FAULT_CONNECT))
		return fault_made(fv, sovia_vi_check_accept(req, attr, hello,
							    &fault_client, fv));
	if (fv) {
		err = sovia_fault_error(FAULT_CONNECT);
		kfree(fv);
	}
	prov->reject(req, err);
	return ERR_PTR(err);
}

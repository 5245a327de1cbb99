// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on demand, between the link layer and the providers.
 *
 *	/sys/kernel/debug/sovia/fault/
 *		loop, verbs	Y: VIs of this provider that are set up from now on
 *				can be faulty
 *		imm		N: and have no immediate data, so that every message
 *				has its number: without one, DATA that a provider
 *				loses, doubles or swaps is not noticed at once
 *		FAULT/		one folder for each that is in fault_table[]
 *
 * A faulty VI is a VI of ours in front of the provider's: the link layer calls us,
 * the provider calls us, and most of the time we pass it on.  Other VIs are not
 * touched, so none of this costs anything on the way of a byte.
 *
 * The files of a fault mean what those of the kernel's fault injection mean, which
 * few kernels are built with: it happens with @probability percent, to every
 * @interval-th only, and @times times in all (-1: without end).  "fired" says how
 * often it has happened.
 *
 * What is late waits in fault_vi::todo for a work.  Messages stay in order among
 * themselves, and so do completions.
 *
 * On the way, the provider's side of the contract in provider.h is checked: one
 * that breaks it gets a warning.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/random.h>
#include <linux/slab.h>
#include "compat/workqueue.h"
#include "debugfs.h"
#include "fault.h"

/* ---- what can happen, and whether it does ----------------------------- */

/**
 * enum fault_kind - what can happen
 * @FAULT_CONNECT: connect and accept fail at once, with @error
 * @FAULT_SETUP: closed with @error comes where established should
 * @FAULT_HELLO: established comes without the peer's hello
 * @FAULT_LATE: established comes @delay ms late
 * @FAULT_POST: post_send fails with @error
 * @FAULT_DELAY: a message is sent @delay ms late
 * @FAULT_DROP: a message is lost, and the VI dies of @error
 * @FAULT_CLOSE: a message is sent, and the VI dies of @error
 * @FAULT_SENT: sent comes @delay ms late
 * @FAULT_LOSE: a message that arrives is lost, without an error
 * @FAULT_TWICE: a message arrives twice
 * @FAULT_SWAP: a message arrives after the next one, or @delay ms late
 * @FAULT_SHORT: a message arrives without one of its packets, without an error
 * @FAULT_STARVE: there is no memory for a descriptor for @delay ms
 * @FAULT_KINDS: how many there are
 */
enum fault_kind {
	FAULT_CONNECT,
	FAULT_SETUP,
	FAULT_HELLO,
	FAULT_LATE,
	FAULT_POST,
	FAULT_DELAY,
	FAULT_DROP,
	FAULT_CLOSE,
	FAULT_SENT,
	FAULT_LOSE,
	FAULT_TWICE,
	FAULT_SWAP,
	FAULT_SHORT,
	FAULT_STARVE,
	FAULT_KINDS
};

/**
 * struct fault - one kind, as its folder shows it
 * @name: of the folder
 * @error: a positive errno, or 0 if it has none; the default
 * @delay: in ms, or 0 if it has none; likewise
 * @probability: in percent
 * @interval: happens to every so many-th only
 * @times: happens so many times more, or without end if negative
 * @seen: chances that it has had, for @interval
 * @fired: how often it has happened
 */
struct fault {
	const char	*name;
	u32		error;
	u32		delay;
	u32		probability;
	u32		interval;
	atomic_t	times;
	atomic_t	seen;
	atomic_t	fired;
};

#define FAULT(_name, _error, _delay) {					\
	.name = _name, .error = _error, .delay = _delay,		\
	.interval = 1, .times = ATOMIC_INIT(1),				\
}

static struct fault fault_table[FAULT_KINDS] = {
	[FAULT_CONNECT]	= FAULT("connect", ENOMEM, 0),
	[FAULT_SETUP]	= FAULT("setup", ECONNREFUSED, 0),
	[FAULT_HELLO]	= FAULT("hello", 0, 0),
	[FAULT_LATE]	= FAULT("late", 0, 100),
	[FAULT_POST]	= FAULT("post", EAGAIN, 0),
	[FAULT_DELAY]	= FAULT("delay", 0, 20),
	[FAULT_DROP]	= FAULT("drop", ETIMEDOUT, 0),
	[FAULT_CLOSE]	= FAULT("close", ECONNRESET, 0),
	[FAULT_SENT]	= FAULT("sent", 0, 20),
	[FAULT_LOSE]	= FAULT("lose", 0, 0),
	[FAULT_TWICE]	= FAULT("twice", 0, 0),
	[FAULT_SWAP]	= FAULT("swap", 0, 100),
	[FAULT_SHORT]	= FAULT("short", 0, 0),
	[FAULT_STARVE]	= FAULT("starve", 0, 20),
};

static bool fault_loop, fault_verbs;

static bool fault_applies(const struct sovia_provider *prov)
{
	return prov->local ? READ_ONCE(fault_loop) : READ_ONCE(fault_verbs);
}

/* Does it happen now? */
static bool fault_fires(enum fault_kind kind)
{
	struct fault *fault = &fault_table[kind];
	u32 probability = READ_ONCE(fault->probability);
	u32 interval = READ_ONCE(fault->interval);

	if (!probability || !atomic_read(&fault->times))
		return false;
	if (interval > 1 && (u32)atomic_inc_return(&fault->seen) % interval)
		return false;
	if (get_random_u32_below(100) >= probability)
		return false;
	/* Another processor may have taken the last one. */
	if (atomic_read(&fault->times) > 0 && atomic_dec_if_positive(&fault->times) < 0)
		return false;
	atomic_inc(&fault->fired);
	return true;
}

static int fault_error(enum fault_kind kind)
{
	return -(int)clamp_t(u32, READ_ONCE(fault_table[kind].error), 1, MAX_ERRNO);
}

/* The smallest packet that a device may cut a message into. */
#define FAULT_PACKET	256

/* ---- what is late ------------------------------------------------------ */

/**
 * enum fault_step - what is done later
 * @STEP_POST: the provider's post_send
 * @STEP_SENT: the client's sent; as all that follow
 * @STEP_LOST: sent of a message that was never posted; comes with the end
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
 * struct fault_item - something that is to be done
 * @node: in fault_vi::todo
 * @step: what
 * @due: when, in jiffies
 * @skb: the message, with a reference, or NULL
 * @how: how it goes, or what came beside it
 * @err: for closed
 * @done: for sent
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

/* What a provider has done: bits of fault_vi::seen. */
#define SEEN_ESTABLISHED	0
#define SEEN_OPEN		1	/* it has returned */
#define SEEN_CLOSED		2
#define SEEN_RECEIVING		3

/**
 * struct fault_vi - a VI that can be faulty
 * @vi: what the link layer sees
 * @real: the provider's, once it is known
 * @up_lock: held during receive and sent, which may come from the provider and from
 *	@work; outside socket and lane locks
 * @lock: protects what follows, and serialises the real post_send; inside lane locks,
 *	taken with bottom halves off
 * @todo: what is late, by time
 * @posts: messages in @todo that go out
 * @cut: our doing: nothing goes through any more
 * @silent: it is being destroyed, nothing in @todo is done any more
 * @posting: the processor that is in the real post_send, or -1
 * @posted: real messages whose sent upcall is due
 * @seen: SEEN_*
 * @work: does what is in @todo
 */
struct fault_vi {
	struct sovia_vi		vi;
	struct sovia_vi		*real;
	spinlock_t		up_lock;	/* see above */
	spinlock_t		lock;		/* see above */
	struct list_head	todo;
	unsigned int		posts;
	bool			cut;
	bool			silent;
	int			posting;
	atomic_t		posted;
	unsigned long		seen;
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
		item->due = jiffies + msecs_to_jiffies(READ_ONCE(fault_table[kind].delay));
	}
	return item;
}

static void item_free(struct fault_item *item)
{
	kfree_skb(item->skb);
	kfree(item);
}

/* When the first one is due, or has been tried in vain. */
static void fault_schedule(struct fault_vi *fv, unsigned long due)
{
	unsigned long now = jiffies;

	lockdep_assert_held(&fv->lock);
	if (!fv->silent)
		mod_delayed_work(system_percpu_wq, &fv->work, time_after(due, now) ? due - now : 0);
}

/* By time, but never before another one of the same kind. */
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

/* If nothing is begun any more, fault_free() deals with it. */
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

/* The end, as the link layer sees it.  What is under way is lost. */
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
	int ret;

	lockdep_assert_held(&fv->lock);
	/* What is to be late has to come. */
	if (READ_ONCE(fault_table[FAULT_SENT].probability))
		how.unsignaled = false;
	fv->posting = smp_processor_id();
	/* It may be completed before the call returns. */
	atomic_inc(&fv->posted);
	ret = fv->real->prov->post_send(fv->real, skb, &how);
	if (ret != SOVIA_POSTED)
		atomic_dec(&fv->posted);
	WARN_ONCE(ret > 0 && !how.unsignaled, "%s: a message came to nothing in silence",
		  fv->real->prov->name);
	fv->posting = -1;
	return ret;
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

/* What becomes of it is told with the VI's end. */
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
	fault_cut(fv, fault_error(FAULT_DROP));
	return how->unsignaled ? SOVIA_POSTED_UNSIGNALED : SOVIA_POSTED;
}

static int fault_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			   const struct sovia_post *how)
{
	struct fault_vi *fv = to_fault(vi);
	int ret;

	if (READ_ONCE(fv->cut))
		return -ENOTCONN;
	if (fault_fires(FAULT_POST))
		return fault_error(FAULT_POST);
	if (fault_fires(FAULT_DROP))
		return post_drop(fv, skb, how);
	spin_lock(&fv->lock);
	if (fv->posts || fault_fires(FAULT_DELAY))
		ret = post_later(fv, skb, how);
	else
		ret = real_post(fv, skb, how);
	spin_unlock(&fv->lock);
	if (ret >= 0 && fault_fires(FAULT_CLOSE))
		fault_cut(fv, fault_error(FAULT_CLOSE));
	return ret;
}

static void fault_disconnect(struct sovia_vi *vi)
{
	struct fault_vi *fv = to_fault(vi);

	fv->real->prov->disconnect(fv->real);
}

static void fault_fail(struct sovia_vi *vi)
{
	struct fault_vi *fv = to_fault(vi);

	fv->real->prov->fail(fv->real);
}

/* Waits for what we do ourselves; nothing is begun after that. */
static void fault_silence(struct fault_vi *fv)
{
	spin_lock_bh(&fv->lock);
	fv->silent = true;
	spin_unlock_bh(&fv->lock);
	cancel_delayed_work_sync(&fv->work);
}

/* Messages whose sent has not come have it now. */
static void fault_free(struct fault_vi *fv)
{
	struct fault_item *item, *next;

	list_for_each_entry_safe(item, next, &fv->todo, node) {
		local_bh_disable();
		if (item->step == STEP_POST || item->step == STEP_SENT ||
		    item->step == STEP_LOST)
			fv->vi.client->sent(&fv->vi, item->skb, false);
		local_bh_enable();
		item_free(item);
	}
	kfree(fv);
}

static void fault_destroy(struct sovia_vi *vi)
{
	struct fault_vi *fv = to_fault(vi);

	fault_silence(fv);
	fv->real->prov->destroy(fv->real);
	fault_free(fv);
}

/* What is called through a VI; the other calls are the real provider's. */
static const struct sovia_provider fault_provider = {
	.name		= "fault",
	.post_send	= fault_post_send,
	.fail		= fault_fail,
	.disconnect	= fault_disconnect,
	.destroy	= fault_destroy,
};

/* ---- upcalls ------------------------------------------------------------ */

static void fault_established(struct sovia_vi *vi, const struct sovia_hello *hello,
			      unsigned int hello_len)
{
	struct fault_vi *fv = vi->context;

	/* connect may not have returned yet */
	WRITE_ONCE(fv->real, vi);
	fv->vi.max_frags = vi->max_frags;
	fv->vi.imm = vi->imm;
	fv->vi.sends_first = vi->sends_first;
	WARN_ONCE(test_and_set_bit(SEEN_ESTABLISHED, &fv->seen) ||
		  test_bit(SEEN_CLOSED, &fv->seen),
		  "%s: established twice, or too late", vi->prov->name);
	if (fault_fires(FAULT_SETUP)) {
		fault_cut(fv, fault_error(FAULT_SETUP));
		return;
	}
	if (fault_fires(FAULT_HELLO))
		hello_len = 0;
	if (fault_fires(FAULT_LATE))
		msleep(READ_ONCE(fault_table[FAULT_LATE].delay));
	fv->vi.client->established(&fv->vi, hello, hello_len);
	set_bit(SEEN_OPEN, &fv->seen);
}

/* If we have cut it, the client hears a second time that it is over. */
static void fault_closed(struct sovia_vi *vi, int err)
{
	struct fault_vi *fv = vi->context;

	WARN_ONCE(test_and_set_bit(SEEN_CLOSED, &fv->seen), "%s: closed twice", vi->prov->name);
	fv->vi.client->closed(&fv->vi, err);
}

static void check_upcall(struct fault_vi *fv)
{
	WARN_ONCE(READ_ONCE(fv->posting) == smp_processor_id(),
		  "%s: upcall from inside post_send", fv->real->prov->name);
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

/* The provider goes on to use its sk_buff, so keep another one. */
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

/* The one that is to come after the message that has just come. */
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

	if (READ_ONCE(fv->cut) || fault_fires(FAULT_LOSE))
		return false;
	item = receive_swapped(fv);
	if (!item && fault_fires(FAULT_SWAP)) {
		item = receive_copy(skb, imm);
		if (item) {
			fault_queue(fv, item);
			return false;
		}
	}
	if (!item && skb->len > FAULT_PACKET && fault_fires(FAULT_SHORT)) {
		item = receive_copy(skb, imm);
		if (item) {
			skb_trim(item->skb, skb->len - FAULT_PACKET);
			receive_item(fv, item);
			item_free(item);
			return false;
		}
	}
	if (!item && fault_fires(FAULT_TWICE))
		item = receive_copy(skb, imm);
	taken = receive_up(fv, skb, imm);
	if (item) {
		receive_item(fv, item);
		item_free(item);
	}
	return taken;
}

/* A descriptor is missing, and comes back. */
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

	WARN_ONCE(test_and_set_bit(SEEN_RECEIVING, &fv->seen),
		  "%s: two messages at a time", vi->prov->name);
	WARN_ONCE(!READ_ONCE(fv->cut) && !test_bit(SEEN_OPEN, &fv->seen),
		  "%s: a message before established", vi->prov->name);
	WARN_ONCE(imm && !vi->imm, "%s: immediate data", vi->prov->name);
	if (fault_fires(FAULT_STARVE))
		fault_starve(fv);
	spin_lock_bh(&fv->up_lock);
	check_upcall(fv);
	taken = receive_faulty(fv, skb, imm);
	spin_unlock_bh(&fv->up_lock);
	clear_bit(SEEN_RECEIVING, &fv->seen);
	return taken;
}

static void fault_sent(struct sovia_vi *vi, struct sk_buff *skb, bool done)
{
	struct fault_vi *fv = vi->context;
	struct fault_item *item = NULL;

	WARN_ONCE(atomic_dec_return(&fv->posted) < 0, "%s: sent without a message, or twice",
		  vi->prov->name);
	/* After the cut it is unknown what has arrived. */
	done = done && !READ_ONCE(fv->cut);
	spin_lock_bh(&fv->up_lock);
	check_upcall(fv);
	if (done && (fault_waits(fv, STEP_SENT) || fault_fires(FAULT_SENT)))
		item = item_alloc(STEP_SENT, FAULT_SENT);
	if (item) {
		item->skb = skb_get(skb);
		item->done = done;
		fault_queue(fv, item);
	} else {
		fv->vi.client->sent(&fv->vi, skb, done);
	}
	spin_unlock_bh(&fv->up_lock);
}

static void fault_rx_unposted(struct sovia_vi *vi, int delta)
{
	struct fault_vi *fv = vi->context;

	fv->vi.client->rx_unposted(&fv->vi, delta);
}

static const struct sovia_vi_client fault_client = {
	.established	= fault_established,
	.closed		= fault_closed,
	.receive	= fault_receive,
	.sent		= fault_sent,
	.rx_unposted	= fault_rx_unposted,
};

/* ---- later -------------------------------------------------------------- */

/* Posts what is due; returns the next other thing that is. */
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
			ret = fv->cut ? -ENOTCONN : real_post(fv, item->skb, &item->how);
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
		fv->vi.client->sent(&fv->vi, item->skb, item->done && !READ_ONCE(fv->cut));
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
	fv->posting = -1;
	return fv;
}

static struct sovia_vi *fault_made(struct fault_vi *fv, struct sovia_vi *real)
{
	if (IS_ERR(real)) {
		fault_silence(fv);
		fault_free(fv);
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

	if (!fault_applies(prov))
		return prov->connect(net, pair, attr, hello, client, context);
	fv = fault_alloc(pair, attr, client, context);
	if (!fv)
		return ERR_PTR(-ENOMEM);
	if (fault_fires(FAULT_CONNECT))
		return fault_made(fv, ERR_PTR(fault_error(FAULT_CONNECT)));
	return fault_made(fv, prov->connect(net, pair, attr, hello, &fault_client, fv));
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

	if (!fault_applies(prov))
		return prov->accept(req, attr, hello, client, context);
	fv = fault_alloc(&req->pair, attr, client, context);
	if (fv && !fault_fires(FAULT_CONNECT))
		return fault_made(fv, prov->accept(req, attr, hello, &fault_client, fv));
	if (fv) {
		err = fault_error(FAULT_CONNECT);
		fault_free(fv);
	}
	prov->reject(req, err);
	return ERR_PTR(err);
}

/**
 * sovia_fault_init() - make the files
 *
 * They go with the module's folder.
 *
 * Context: module init.
 */
void sovia_fault_init(void)
{
	struct dentry *top = debugfs_create_dir("fault", sovia_debugfs_dir()), *folder;
	struct fault *fault;

	debugfs_create_bool("loop", 0600, top, &fault_loop);
	debugfs_create_bool("verbs", 0600, top, &fault_verbs);
	for (fault = fault_table; fault < fault_table + FAULT_KINDS; fault++) {
		folder = debugfs_create_dir(fault->name, top);
		debugfs_create_u32("probability", 0600, folder, &fault->probability);
		debugfs_create_u32("interval", 0600, folder, &fault->interval);
		debugfs_create_atomic_t("times", 0600, folder, &fault->times);
		debugfs_create_atomic_t("fired", 0600, folder, &fault->fired);
		if (fault->error)
			debugfs_create_u32("errno", 0600, folder, &fault->error);
		if (fault->delay)
			debugfs_create_u32("delay", 0600, folder, &fault->delay);
	}
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/fault_test.c"
#endif

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract of provider.h, checked on both sides: in kernels with CONFIG_PROVE_LOCKING
 * a VI of ours wraps each of the provider's, and all calls and upcalls go through it.
 * Faults (fault_vi.c) are above it: their VIs violate the contract on purpose.
 *
 * The check_*() functions record a call or an upcall and return a description of its
 * violation, or NULL.  The call is passed on in any case.
 */
#include <linux/bug.h>
#include <linux/kernel.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "vi_check.h"

/* Events of a VI: bits of vi_check::seen. */
#define SEEN_ESTABLISHED	0	/* the upcall has started */
#define SEEN_OPEN		1	/* it has returned */
#define SEEN_CLOSED		2
#define SEEN_RECEIVING		3	/* the upcall is running */
#define SEEN_END		4	/* the call */
#define SEEN_ENDED		5	/* the upcall */
#define SEEN_VIOLATION		6	/* one has been reported */
#define SEEN_SEALED		7

/* Beyond the send depth: one that is being posted, one that is being completed. */
#define CHECK_SPARE		2

/**
 * struct vi_check - a VI that checks another one
 * @vi: the client's part
 * @real: the provider's, once it is known
 * @name: the provider's
 * @seen: SEEN_*
 * @poster: the task that is in post_send, or was when a softirq did it; or NULL
 * @missing: receive descriptors that rx_unposted has reported
 * @depth: receives that are kept posted, as far as is known
 * @lock: protects what follows; the innermost one, taken with bottom halves off
 * @count: messages in @posted
 * @room: maximum of @count
 * @rcu: frees it: a late upcall finds SEEN_ENDED for a while
 * @posted: messages whose send_done upcall is due, in order; no references
 */
struct vi_check {
	struct sovia_vi		vi;
	struct sovia_vi		*real;
	const char		*name;
	unsigned long		seen;
	struct task_struct	*poster;
	atomic_t		missing;
	unsigned int		depth;
	spinlock_t		lock;	/* see above */
	unsigned int		count;
	unsigned int		room;
	struct rcu_head		rcu;
	struct sk_buff		*posted[];
};

static struct vi_check *to_check(struct sovia_vi *vi)
{
	return container_of(vi, struct vi_check, vi);
}

/* Once for each VI: later violations may be consequences. */
static void check_report(struct vi_check *vc, const char *violation)
{
	WARN(violation && !test_and_set_bit(SEEN_VIOLATION, &vc->seen), "%s: %s\n", vc->name,
	     violation);
}

/* ---- messages in flight ------------------------------------------------- */

static const char *check_add(struct vi_check *vc, struct sk_buff *skb)
{
	const char *violation = NULL;

	spin_lock_bh(&vc->lock);
	if (vc->count < vc->room)
		vc->posted[vc->count++] = skb;
	else
		violation = "more messages under way than send_depth";
	spin_unlock_bh(&vc->lock);
	return violation;
}

static const char *check_remove(struct vi_check *vc, const struct sk_buff *skb, bool in_order)
{
	const char *violation = NULL;
	unsigned int i = 0;

	spin_lock_bh(&vc->lock);
	while (i < vc->count && vc->posted[i] != skb)
		i++;
	if (i == vc->count) {
		violation = "send_done without a message, or twice";
	} else {
		if (i && in_order)
			violation = "send_done out of order";
		vc->count--;
		memmove(&vc->posted[i], &vc->posted[i + 1], (vc->count - i) * sizeof(skb));
	}
	spin_unlock_bh(&vc->lock);
	return violation;
}

/* ---- calls -------------------------------------------------------------- */

/* It may complete before the call returns, so it is counted from now on. */
static const char *check_post(struct vi_check *vc, struct sk_buff *skb,
			      const struct sovia_post *how)
{
	const char *violation = check_add(vc, skb);

	if (READ_ONCE(vc->poster))
		return "two posts at a time";
	WRITE_ONCE(vc->poster, current);
	if (!test_bit(SEEN_ESTABLISHED, &vc->seen))
		return "a post before established";
	if (test_bit(SEEN_END, &vc->seen))
		return "a post after end";
	if (skb->len > vc->vi.attr.msg_size || skb_shinfo(skb)->nr_frags > vc->vi.max_frags)
		return "a post of a message that is too large";
	if (how->has_imm && !vc->vi.imm)
		return "a post with immediate data";
	if (how->unsignaled && skb_shared(skb))
		return "an unsignaled post with another reference";
	return violation;
}

static const char *check_posted(struct vi_check *vc, const struct sk_buff *skb,
				const struct sovia_post *how, int ret)
{
	WRITE_ONCE(vc->poster, NULL);
	if (ret == SOVIA_POSTED)
		return NULL;
	if (ret > SOVIA_POSTED_TAKEN || (ret > 0 && !how->unsignaled))
		return "no send_done, though it was asked for";
	return check_remove(vc, skb, false);
}

static int check_vi_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			      const struct sovia_post *how)
{
	struct vi_check *vc = to_check(vi);
	int ret;

	check_report(vc, check_post(vc, skb, how));
	ret = vc->real->prov->post_send(vc->real, skb, how);
	check_report(vc, check_posted(vc, skb, how, ret));
	return ret;
}

static const char *check_more(struct vi_check *vc, unsigned int depth)
{
	if (!test_bit(SEEN_ESTABLISHED, &vc->seen))
		return "more receives before established";
	if (test_bit(SEEN_END, &vc->seen))
		return "more receives after end";
	if (depth <= READ_ONCE(vc->depth))
		return "no more receives than before";
	return depth > vc->vi.attr.recv_depth ? "more receives than there may be" : NULL;
}

static void check_vi_post_more(struct sovia_vi *vi, unsigned int depth)
{
	struct vi_check *vc = to_check(vi);

	check_report(vc, check_more(vc, depth));
	vc->real->prov->post_more(vc->real, depth);
}

static void check_vi_fail(struct sovia_vi *vi)
{
	struct vi_check *vc = to_check(vi);

	vc->real->prov->fail(vc->real);
}

static const char *check_end(struct vi_check *vc)
{
	return test_and_set_bit(SEEN_END, &vc->seen) ? "end twice" : NULL;
}

static void check_vi_end(struct sovia_vi *vi)
{
	struct vi_check *vc = to_check(vi);

	check_report(vc, check_end(vc));
	vc->real->prov->end(vc->real);
}

/* Operations on a VI; the others are called on the provider. */
static const struct sovia_provider check_provider = {
	.name		= "check",
	.post_send	= check_vi_post_send,
	.post_more	= check_vi_post_more,
	.fail		= check_vi_fail,
	.end		= check_vi_end,
};

/* ---- upcalls ------------------------------------------------------------ */

static const char *check_upcall(struct vi_check *vc)
{
	if (test_bit(SEEN_ENDED, &vc->seen))
		return "an upcall after ended";
	if (READ_ONCE(vc->poster) == current)
		return "an upcall from inside post_send";
	return NULL;
}

static const char *check_established(struct vi_check *vc, unsigned int hello_len)
{
	if (test_and_set_bit(SEEN_ESTABLISHED, &vc->seen))
		return "established twice";
	if (test_bit(SEEN_CLOSED, &vc->seen))
		return "established after closed";
	if (hello_len > sizeof(struct sovia_hello))
		return "established with a hello that is too long";
	return check_upcall(vc);
}

static int check_vi_seal(struct sovia_vi *vi, const struct sovia_path *path,
			 struct sovia_hello *hello)
{
	struct vi_check *vc = vi->context;
	const char *wrong = check_upcall(vc);

	might_sleep();
	if (test_and_set_bit(SEEN_SEALED, &vc->seen))
		wrong = "sealed twice";
	if (test_bit(SEEN_ESTABLISHED, &vc->seen))
		wrong = "sealed after established";
	check_report(vc, wrong);
	return vc->vi.client->seal(&vc->vi, path, hello);
}

static struct net *check_vi_beyond(struct sovia_vi *vi, struct sovia_pair *pair)
{
	struct vi_check *vc = vi->context;

	check_report(vc, check_upcall(vc));
	return vc->vi.client->beyond(&vc->vi, pair);
}

static void check_vi_way(struct sovia_vi *vi, struct sovia_clan_way *way)
{
	struct vi_check *vc = vi->context;

	check_report(vc, check_upcall(vc));
	vc->vi.client->way(&vc->vi, way);
}

static void check_vi_established(struct sovia_vi *vi, const struct sovia_hello *hello,
				 unsigned int hello_len)
{
	struct vi_check *vc = vi->context;

	might_sleep();
	/* connect may not have returned yet */
	WRITE_ONCE(vc->real, vi);
	vc->vi.max_frags = vi->max_frags;
	vc->vi.copybreak = vi->copybreak;
	vc->vi.has_tos = vi->has_tos;
	vc->vi.tos = vi->tos;
	vc->vi.imm = vi->imm;
	vc->vi.sends_first = vi->sends_first;
	check_report(vc, check_established(vc, hello_len));
	vc->vi.client->established(&vc->vi, hello, hello_len);
	set_bit(SEEN_OPEN, &vc->seen);
}

static const char *check_closed(struct vi_check *vc, int err)
{
	if (test_and_set_bit(SEEN_CLOSED, &vc->seen))
		return "closed twice";
	if (err >= 0)
		return "closed without an error";
	if (in_hardirq())
		return "closed from hard interrupt";
	return check_upcall(vc);
}

static void check_vi_closed(struct sovia_vi *vi, int err)
{
	struct vi_check *vc = vi->context;

	check_report(vc, check_closed(vc, err));
	vc->vi.client->closed(&vc->vi, err);
}

static const char *check_receive(struct vi_check *vc, const struct sk_buff *skb, const u32 *imm)
{
	if (test_and_set_bit(SEEN_RECEIVING, &vc->seen))
		return "two messages received at a time";
	if (!test_bit(SEEN_OPEN, &vc->seen))
		return "a message received before established has returned";
	if (imm && !vc->vi.imm)
		return "a message received with immediate data";
	if (skb->len > vc->vi.attr.msg_size)
		return "a message received that is too large";
	if (!in_softirq())
		return "a message received with bottom halves on";
	return check_upcall(vc);
}

static bool check_vi_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm)
{
	struct vi_check *vc = vi->context;
	bool taken;

	check_report(vc, check_receive(vc, skb, imm));
	taken = vc->vi.client->receive(&vc->vi, skb, imm);
	clear_bit(SEEN_RECEIVING, &vc->seen);
	return taken;
}

static const char *check_send_done(struct vi_check *vc, const struct sk_buff *skb, bool ok)
{
	const char *violation = check_remove(vc, skb, ok);

	if (!in_softirq())
		return "send_done with bottom halves on";
	return violation ?: check_upcall(vc);
}

static void check_vi_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool ok)
{
	struct vi_check *vc = vi->context;

	check_report(vc, check_send_done(vc, skb, ok));
	vc->vi.client->send_done(&vc->vi, skb, ok);
}

static const char *check_rx_unposted(struct vi_check *vc, int delta)
{
	if (atomic_add_return(delta, &vc->missing) < 0)
		return "more descriptors posted again than were missing";
	return check_upcall(vc);
}

static void check_vi_rx_unposted(struct sovia_vi *vi, int delta)
{
	struct vi_check *vc = vi->context;

	check_report(vc, check_rx_unposted(vc, delta));
	vc->vi.client->rx_unposted(&vc->vi, delta);
}

static const char *check_grown(struct vi_check *vc, unsigned int depth)
{
	if (depth > vc->vi.attr.recv_depth)
		return "more receives than there may be are posted";
	WRITE_ONCE(vc->depth, max(READ_ONCE(vc->depth), depth));
	return in_softirq() ? check_upcall(vc) : "rx_grown with bottom halves on";
}

static void check_vi_rx_grown(struct sovia_vi *vi, unsigned int depth)
{
	struct vi_check *vc = vi->context;

	check_report(vc, check_grown(vc, depth));
	vc->vi.client->rx_grown(&vc->vi, depth);
}

static void check_vi_doubted(struct sovia_vi *vi)
{
	struct vi_check *vc = vi->context;

	might_sleep();
	check_report(vc, check_upcall(vc));
	vc->vi.client->doubted(&vc->vi);
}

static const char *check_ended(struct vi_check *vc)
{
	const char *violation = check_upcall(vc);

	set_bit(SEEN_ENDED, &vc->seen);
	if (!test_bit(SEEN_END, &vc->seen))
		return "ended without end";
	if (test_bit(SEEN_RECEIVING, &vc->seen))
		return "ended during an upcall";
	if (READ_ONCE(vc->count))
		return "ended without a send_done that was due";
	return violation;
}

static void check_vi_ended(struct sovia_vi *vi)
{
	struct vi_check *vc = vi->context;

	might_sleep();
	check_report(vc, check_ended(vc));
	vc->vi.client->ended(&vc->vi);
	kvfree_rcu(vc, rcu);
}

static const struct sovia_vi_client check_client = {
	.seal		= check_vi_seal,
	.beyond		= check_vi_beyond,
	.way		= check_vi_way,
	.established	= check_vi_established,
	.closed		= check_vi_closed,
	.doubted	= check_vi_doubted,
	.receive	= check_vi_receive,
	.send_done	= check_vi_send_done,
	.rx_unposted	= check_vi_rx_unposted,
	.rx_grown	= check_vi_rx_grown,
	.ended		= check_vi_ended,
};

/* ---- set-up ------------------------------------------------------------- */

/* Only real providers: those of KUnit tests may violate the contract. */
static bool check_applies(const struct sovia_provider *prov)
{
	const struct sovia_provider * const *known = sovia_providers;

	while (*known && *known != prov)
		known++;
	return *known;
}

static struct vi_check *check_alloc(const struct sovia_provider *prov,
				    const struct sovia_pair *pair,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_vi_client *client, void *context)
{
	unsigned int room = attr->send_depth + CHECK_SPARE;
	struct vi_check *vc = kvzalloc(struct_size(vc, posted, room), GFP_KERNEL);

	if (!vc)
		return NULL;
	vc->vi.prov = &check_provider;
	vc->vi.client = client;
	vc->vi.context = context;
	vc->vi.pair = *pair;
	vc->vi.attr = *attr;
	vc->name = prov->name;
	vc->room = room;
	vc->depth = attr->recv_first;
	spin_lock_init(&vc->lock);
	return vc;
}

static struct sovia_vi *check_made(struct vi_check *vc, struct sovia_vi *real)
{
	if (IS_ERR(real)) {
		kvfree_rcu(vc, rcu);
		return real;
	}
	WRITE_ONCE(vc->real, real);
	return &vc->vi;
}

/**
 * sovia_vi_check_connect() - sovia_provider::connect of @prov, with a checked VI
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
struct sovia_vi *sovia_vi_check_connect(const struct sovia_provider *prov, struct net *net,
					const struct sovia_pair *pair,
					const struct sovia_vi_attr *attr,
					const struct sovia_hello *hello,
					const struct sovia_vi_client *client, void *context)
{
	struct vi_check *vc;

	if (!check_applies(prov))
		return prov->connect(net, pair, attr, hello, client, context);
	vc = check_alloc(prov, pair, attr, client, context);
	if (!vc)
		return ERR_PTR(-ENOMEM);
	return check_made(vc, prov->connect(net, pair, attr, hello, &check_client, vc));
}

/**
 * sovia_vi_check_accept() - sovia_provider::accept of the request's, with a checked VI
 * @req: the request; consumed
 * @attr: see there, as all that follow
 * @hello: see there
 * @client: see there
 * @context: see there
 *
 * Context: connection thread; may sleep.
 * Return: the VI, or an ERR_PTR.
 */
struct sovia_vi *sovia_vi_check_accept(struct sovia_vi_request *req,
				       const struct sovia_vi_attr *attr,
				       const struct sovia_hello *hello,
				       const struct sovia_vi_client *client, void *context)
{
	const struct sovia_provider *prov = req->prov;
	struct vi_check *vc;

	if (!check_applies(prov))
		return prov->accept(req, attr, hello, client, context);
	vc = check_alloc(prov, &req->pair, attr, client, context);
	if (!vc) {
		prov->reject(req, -ENOMEM);
		return ERR_PTR(-ENOMEM);
	}
	return check_made(vc, prov->accept(req, attr, hello, &check_client, vc));
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/vi_check_test.c"
#endif

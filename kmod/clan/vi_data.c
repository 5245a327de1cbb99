// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of VIs in shared memory.  A message is copied into the memory when it is posted, and
 * out of it by the bottom half: up to SOVIA_CLAN_INLINE bytes in the entry, else in pages of
 * the sender's pool, which come back as cookies.
 */
#include <linux/skbuff.h>
#include <net/busy_poll.h>
#include "clan.h"
#include "core/page.h"

/* Linear part of a message with pages: what the layers above parse. */
#define CLAN_LINEAR	128

/* ---- sending ------------------------------------------------------------------ */

static u32 pages_of(u32 len)
{
	return len > sovia_clan_inline ? DIV_ROUND_UP(len, SOVIA_CLAN_PAGE) : 0;
}

static void *page_at(const struct sovia_clan_node *owner, u32 cookie)
{
	return owner->pages + cookie * SOVIA_CLAN_PAGE;
}

/* Returns 0 with @count pages, -EAGAIN, or -EPROTO. */
static int clan_reserve(struct sovia_clan_node *node, u32 count, u32 *cookies)
{
	struct sovia_clan_pool *pool = &node->port->pool;
	int err, room;

	room = sovia_clan_out_room(&node->out);
	if (room <= 0)
		return room ?: -EAGAIN;
	if (!count || !sovia_clan_pool_lend(pool, node->number, count, cookies))
		return 0;
	err = sovia_clan_node_observe(node);
	return err ?: sovia_clan_pool_lend(pool, node->number, count, cookies);
}

/* Is there so much room that a later message, which finds less, may ask for its completion? */
static bool has_plenty(const struct sovia_clan_node *node)
{
	return node->out.write - node->out.read < node->out.size / 2 &&
	       sovia_clan_pool_has_plenty(&node->port->pool, node->number);
}

static void note_lent(struct sovia_clan_vi *cv)
{
	if (cv->lender)
		return;
	cv->lender = true;
	cv->node->lenders++;
}

static void write_message(struct sovia_clan_vi *cv, struct sk_buff *skb,
			  const struct sovia_post *how, const u32 *cookies)
{
	const struct sovia_clan_node *own = &cv->port->node[cv->port->number];
	struct sovia_clan_entry *entry = sovia_clan_out_next(&cv->node->out);
	u32 len = skb->len, count = pages_of(len), i;

	entry->vi = cpu_to_le16(cv->their_number);
	entry->kind = SOVIA_CLAN_DATA;
	entry->flags = how->has_imm ? SOVIA_CLAN_F_IMM : 0;
	entry->epoch = cpu_to_le32(cv->their_epoch);
	entry->len = cpu_to_le32(len);
	entry->imm = cpu_to_le32(how->imm);
	if (!count)
		skb_copy_bits(skb, 0, entry->data, len);
	for (i = 0; i < count; i++) {
		u32 at = i * SOVIA_CLAN_PAGE;

		entry->cookie[i] = cpu_to_le32(cookies[i]);
		skb_copy_bits(skb, at, page_at(own, cookies[i]),
			      min(len - at, SOVIA_CLAN_PAGE));
	}
}

static void note_sent(struct sovia_clan_vi *cv, struct sk_buff *skb)
{
	cv->sent[cv->head++ % cv->vi.attr.send_depth] = (struct sovia_clan_sent){
		.skb = skb_get(skb), .index = cv->node->out.write,
	};
	if (list_empty(&cv->sender))
		list_add_tail(&cv->sender, &cv->node->senders);
	/* What it has taken so far need not be told. */
	sovia_clan_out_look(&cv->node->out);
	sovia_clan_node_wait(cv->node);
}

static int clan_post(struct sovia_clan_vi *cv, struct sk_buff *skb, const struct sovia_post *how)
{
	u32 cookies[SOVIA_CLAN_PAGES];
	bool unsignaled = false;
	int err = -EAGAIN;

	if (!cv->node->open || READ_ONCE(cv->state) == SOVIA_CLAN_DEAD)
		return -ENOTCONN;
	if (how->unsignaled) {
		unsignaled = has_plenty(cv->node);
		/* The bottom half leaves it to us.  A violation is found by it as well. */
		if (!unsignaled && !sovia_clan_node_observe(cv->node))
			unsignaled = has_plenty(cv->node);
	}
	/* Those that wait are first. */
	if (list_empty(&cv->node->control) &&
	    (unsignaled || cv->head - cv->tail < cv->vi.attr.send_depth))
		err = clan_reserve(cv->node, pages_of(skb->len), cookies);
	if (err) {
		sovia_clan_node_wait(cv->node);
		return err == -EAGAIN ? err : -ENOTCONN;
	}
	if (pages_of(skb->len))
		note_lent(cv);
	write_message(cv, skb, how, cookies);
	if (!unsignaled) {
		note_sent(cv, skb);
		return SOVIA_POSTED;
	}
	if (!cv->vi.prov->local)
		return SOVIA_POSTED_UNSIGNALED;
	/* Certain to arrive, as nothing outlives the VI. */
	kfree_skb(skb);
	return SOVIA_POSTED_TAKEN;
}

/**
 * sovia_clan_post_send() - struct sovia_provider::post_send
 * @vi: the VI
 * @skb: the message
 * @how: how to send it
 *
 * Context: see there.
 * Return: see there.
 */
int sovia_clan_post_send(struct sovia_vi *vi, struct sk_buff *skb, const struct sovia_post *how)
{
	struct sovia_clan_vi *cv = container_of(vi, struct sovia_clan_vi, vi);
	struct sovia_clan_node *node = cv->node;
	bool rings;
	int ret;

	spin_lock(&node->lock);
	ret = clan_post(cv, skb, how);
	/* If not the message, then perhaps entries that had waited. */
	rings = sovia_clan_out_publish(&node->out);
	spin_unlock(&node->lock);
	if (rings)
		sovia_clan_node_ring(node);
	return ret;
}

/**
 * sovia_clan_vi_complete() - report the oldest message of a VI that is not completed
 * @cv: there is one
 * @ok: the other node has it; otherwise the VI has ended
 *
 * Context: node->lock held, which is dropped for the upcall.
 */
void sovia_clan_vi_complete(struct sovia_clan_vi *cv, bool ok)
{
	struct sk_buff *skb = cv->sent[cv->tail++ % cv->vi.attr.send_depth].skb;
	struct sovia_clan_node *node = cv->node;

	if (cv->tail == cv->head)
		list_del_init(&cv->sender);
	spin_unlock_bh(&node->lock);
	local_bh_disable();
	cv->vi.client->send_done(&cv->vi, skb, ok);
	kfree_skb(skb);
	local_bh_enable();
	spin_lock_bh(&node->lock);
}

/* ---- receiving ------------------------------------------------------------------ */

/* Add a page for as much as it holds of @rest bytes.  Returns how many, or 0 without memory. */
static u32 add_page(struct sk_buff *skb, u32 rest)
{
	unsigned int order = rest > SOVIA_PAGE_BYTES / 2 ? SOVIA_PAGE_ORDER : 0;
	struct page *page = sovia_page_alloc(order, GFP_ATOMIC | __GFP_NOWARN, NUMA_NO_NODE);
	u32 size = PAGE_SIZE << order, len = min(rest, size);

	if (!page)
		return 0;
	skb_add_rx_frag(skb, skb_shinfo(skb)->nr_frags, page, 0, len, size);
	return len;
}

static struct sk_buff *make_skb(struct sovia_clan_port *port, u32 len)
{
	u32 linear = len <= SOVIA_COPYBREAK ? len : CLAN_LINEAR, rest, done;
	struct sk_buff *skb = napi_alloc_skb(&port->napi, linear);

	if (!skb)
		return NULL;
	/* It may outlive the port's, which is no interface anyway. */
	skb->dev = NULL;
	skb_put(skb, linear);
	skb_mark_for_recycle(skb);
	for (rest = len - linear; rest; rest -= done) {
		done = add_page(skb, rest);
		if (!done) {
			kfree_skb(skb);
			return NULL;
		}
	}
	return skb;
}

/* Returns 0 or -EPROTO. */
static int read_message(struct sovia_clan_node *node, struct sk_buff *skb,
			const struct sovia_clan_entry *entry)
{
	u32 count = pages_of(skb->len), i;

	if (!count)
		memcpy(skb->data, entry->data, skb->len);
	for (i = 0; i < count; i++) {
		u32 cookie = le32_to_cpu(entry->cookie[i]), at = i * SOVIA_CLAN_PAGE;

		if (cookie >= node->port->geometry.pool)
			return -EPROTO;
		skb_store_bits(skb, at, page_at(node, cookie),
			       min(skb->len - at, SOVIA_CLAN_PAGE));
	}
	/* Before it uses pages for others the sender begins anew: node_part(). */
	virt_rmb();
	return !count || sovia_clan_node_same(node) ? 0 : -EPROTO;
}

/**
 * sovia_clan_vi_deliver() - pass a message to the client
 * @cv: its VI, which the client knows to be up
 * @skb: the message; consumed
 *
 * Context: bottom halves off; one at a time.
 */
void sovia_clan_vi_deliver(struct sovia_clan_vi *cv, struct sk_buff *skb)
{
	if (!cv->vi.client->receive(&cv->vi, skb, sovia_imm_of(skb)))
		kfree_skb(skb);
}

/* Returns true if the message is to be delivered; otherwise it has been queued. */
static bool is_deliverable(struct sovia_clan_vi *cv, struct sk_buff *skb)
{
	bool up;

	spin_lock_bh(&cv->lock);
	up = cv->state == SOVIA_CLAN_UP;
	if (!up)
		__skb_queue_tail(&cv->early, skb);
	spin_unlock_bh(&cv->lock);
	return up;
}

/**
 * sovia_clan_vi_receive() - a message has come
 * @cv: for it
 * @entry: the message's; its len is in bounds
 *
 * Context: bottom half.
 * Return: 0, -ENOMEM to be asked again, or -EPROTO.
 */
int sovia_clan_vi_receive(struct sovia_clan_vi *cv, const struct sovia_clan_entry *entry)
{
	u32 len = le32_to_cpu(entry->len);
	u8 state = READ_ONCE(cv->state);
	struct sk_buff *skb;
	int err;

	if (state == SOVIA_CLAN_DEAD)
		return 0;
	if (!len || len > cv->vi.attr.msg_size || state == SOVIA_CLAN_ASKED ||
	    skb_queue_len_lockless(&cv->early) > cv->vi.attr.recv_depth)
		return -EPROTO;
	skb = make_skb(cv->port, len);
	if (!skb)
		return -ENOMEM;
	err = read_message(cv->node, skb, entry);
	if (err) {
		kfree_skb(skb);
		return err;
	}
	sovia_imm_attach(skb, entry->flags & SOVIA_CLAN_F_IMM, le32_to_cpu(entry->imm));
	skb_mark_napi_id(skb, &cv->port->napi);
	if (is_deliverable(cv, skb))
		sovia_clan_vi_deliver(cv, skb);
	return 0;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Send descriptors of a VI on verbs.
 *
 * They are a ring.  post_send takes the next one.  Completions come in order, and each
 * releases all descriptors up to its own, so a send that the device has copied need not
 * be signaled unless its client requires that: one in VERBS_TX_UNSIGNALED is, so that
 * the send queue does not fill up.
 *
 * The others hold a reference to the sk_buff and its DMA mappings until
 * their completion.  verbs_tx_free() releases messages that a dead queue pair has not
 * sent and reports them to the client.  One in quarantine reports them before, and keeps
 * their memory alone, so that no socket waits for the device.
 */

#include <linux/slab.h>

#include "core/objcount.h"
#include "verbs.h"

/* Maximum of consecutive unsignaled descriptors; less than half of a short ring. */
#define VERBS_TX_UNSIGNALED	8

static void verbs_tx_unmap(struct verbs_tx *tx)
{
	const struct sk_buff *skb = tx->skb ?: tx->kept;
	struct ib_device *ibdev = verbs_ibdev(tx->v);
	unsigned int i;

	for (i = 0; i < tx->num_sge; i++)
		if (!i && skb_headlen(skb))
			ib_dma_unmap_single(ibdev, tx->sge[i].addr, tx->sge[i].length,
					    DMA_TO_DEVICE);
		else
			ib_dma_unmap_page(ibdev, tx->sge[i].addr, tx->sge[i].length,
					  DMA_TO_DEVICE);
	sovia_object_add(mappings, -(long)tx->num_sge);
	tx->num_sge = 0;
}

static int verbs_tx_add(struct verbs_tx *tx, u64 addr, unsigned int length)
{
	struct ib_sge *sge = &tx->sge[tx->num_sge];

	if (ib_dma_mapping_error(verbs_ibdev(tx->v), addr))
		return -EAGAIN;
	sge->addr = addr;
	sge->length = length;
	sge->lkey = tx->v->qp->pd->local_dma_lkey;
	tx->num_sge++;
	sovia_object_inc(mappings);
	return 0;
}

/* Maps tx->skb; -EAGAIN if the mapping fails for lack of space. */
static int verbs_tx_map(struct verbs_tx *tx)
{
	struct ib_device *ibdev = verbs_ibdev(tx->v);
	struct sk_buff *skb = tx->skb;
	unsigned int i;
	int err = 0;

	if (skb_headlen(skb))
		err = verbs_tx_add(tx, ib_dma_map_single(ibdev, skb->data, skb_headlen(skb),
							 DMA_TO_DEVICE), skb_headlen(skb));
	for (i = 0; !err && i < skb_shinfo(skb)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		err = verbs_tx_add(tx, ib_dma_map_page(ibdev, skb_frag_page(frag),
						       skb_frag_off(frag), skb_frag_size(frag),
						       DMA_TO_DEVICE), skb_frag_size(frag));
	}
	if (err)
		verbs_tx_unmap(tx);
	return err;
}

/* Posts @skb as inline data, which is copied at once. */
static int verbs_tx_post_inline(struct verbs_tx *tx, const struct sk_buff *skb,
				struct ib_send_wr *wr)
{
	struct ib_sge sge = {
		.addr	= (uintptr_t)skb->data,
		.length	= skb->len,
	};

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags |= IB_SEND_INLINE;
	return ib_post_send(tx->v->qp, wr, NULL);
}

static int verbs_tx_post_mapped(struct verbs_tx *tx, struct ib_send_wr *wr)
{
	int err = verbs_tx_map(tx);

	if (err)
		return err;
	wr->sg_list = tx->sge;
	wr->num_sge = tx->num_sge;
	err = ib_post_send(tx->v->qp, wr, NULL);
	if (err)
		verbs_tx_unmap(tx);
	return err;
}

static bool verbs_tx_full(const struct verbs_vi *v)
{
	/* Pairs with the release in verbs_tx_reap(): the slot is ours to write. */
	return v->tx_head - smp_load_acquire(&v->tx_tail) >= v->vi.attr.send_depth;
}

/**
 * verbs_post_send - post_send of struct sovia_provider
 * @vi: VI
 * @skb: message, at most vi->max_frags fragments
 * @how: immediate data and flags
 *
 * Context: any but hard interrupt; the caller serialises.
 * Return: enum sovia_posted, -EAGAIN if there is no room now, or another negative
 * errno.
 */
int verbs_post_send(struct sovia_vi *vi, struct sk_buff *skb, const struct sovia_post *how)
{
	struct verbs_vi *v = verbs_vi(vi);
	enum verbs_state state = READ_ONCE(v->state);
	struct verbs_tx *tx;
	struct ib_send_wr wr = {
		.opcode		= how->has_imm ? IB_WR_SEND_WITH_IMM : IB_WR_SEND,
		.ex.imm_data	= cpu_to_be32(how->imm),
	};
	bool copied = skb->len <= v->max_inline && !skb_is_nonlinear(skb);
	bool unsignaled;
	int err;

	if (state != VERBS_OPEN && state != VERBS_OPENING)
		return -ENOTCONN;
	if (verbs_tx_full(v))
		return -EAGAIN;
	if (skb->len > vi->attr.msg_size || skb_shinfo(skb)->nr_frags > vi->max_frags)
		return -EMSGSIZE;

	tx = &v->tx[v->tx_head & v->tx_mask];
	/* Signal the last of a row: its completion releases the others. */
	unsignaled = how->unsignaled && copied && (v->tx_head + 1) % v->tx_unsignaled;
	if (!unsignaled) {
		tx->skb = skb_get(skb);
		wr.send_flags = IB_SEND_SIGNALED;
	}
	wr.wr_cqe = &tx->cqe;
	/* The completion may run before the call returns. */
	if (copied)
		err = verbs_tx_post_inline(tx, skb, &wr);
	else
		err = verbs_tx_post_mapped(tx, &wr);
	if (err) {
		if (!unsignaled)
			kfree_skb(skb);
		tx->skb = NULL;
		if (err != -EAGAIN)
			verbs_vi_fail(v, 0);
		return err;
	}
	v->tx_head++;
	return unsignaled ? SOVIA_POSTED_UNSIGNALED : SOVIA_POSTED;
}

/* Frees a descriptor whose skb has been completed. */
static struct sk_buff *verbs_tx_release(struct verbs_tx *tx)
{
	struct sk_buff *skb = tx->skb;

	verbs_tx_unmap(tx);
	tx->skb = NULL;
	return skb;
}

/* Everything up to and including @last has been sent. */
static void verbs_tx_reap(struct verbs_vi *v, const struct verbs_tx *last)
{
	struct sk_buff *skb;
	struct verbs_tx *tx;

	do {
		tx = &v->tx[v->tx_tail & v->tx_mask];
		skb = verbs_tx_release(tx);
		/* Pairs with the acquire in verbs_tx_full(). */
		smp_store_release(&v->tx_tail, v->tx_tail + 1);
		if (!skb)
			continue;
		v->vi.client->send_done(&v->vi, skb, true);
		consume_skb(skb);
	} while (tx != last);
}

static void verbs_tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct verbs_tx *tx = container_of(wc->wr_cqe, struct verbs_tx, cqe);

	if (likely(wc->status == IB_WC_SUCCESS))
		verbs_tx_reap(tx->v, tx);
	else
		verbs_vi_failed_wc(tx->v, wc);
}

/**
 * verbs_tx_alloc - allocate the send descriptors
 * @v: VI with a queue pair
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM; verbs_tx_free() cleans up in both cases.
 */
int verbs_tx_alloc(struct verbs_vi *v)
{
	unsigned int slots = roundup_pow_of_two(v->vi.attr.send_depth);
	unsigned int i;

	v->tx = kvcalloc(slots, sizeof(*v->tx), GFP_KERNEL);
	v->tx_sge = kvcalloc(slots * v->max_sge, sizeof(*v->tx_sge), GFP_KERNEL);
	if (!v->tx || !v->tx_sge)
		return -ENOMEM;
	v->tx_mask = slots - 1;
	v->tx_unsignaled = min_t(unsigned int, VERBS_TX_UNSIGNALED, v->vi.attr.send_depth / 2);
	for (i = 0; i < slots; i++) {
		v->tx[i].cqe.done = verbs_tx_done;
		v->tx[i].v = v;
		v->tx[i].sge = v->tx_sge + i * v->max_sge;
	}
	return 0;
}

/* Report a message that has not been sent, and drop the reference to it. */
static void verbs_tx_report(struct verbs_vi *v, struct sk_buff *skb)
{
	local_bh_disable();
	v->vi.client->send_done(&v->vi, skb, false);
	local_bh_enable();
	kfree_skb(skb);
}

/**
 * verbs_tx_disown - report messages that the device may still read, and keep their memory
 * @v: VI that is ending
 *
 * The sockets that they come from, and what is charged to them, do not wait for the device.
 * Without memory for that a message stays as it is until verbs_tx_free().
 *
 * Context: process; owns the NAPI of the completion queue.
 */
void verbs_tx_disown(struct verbs_vi *v)
{
	unsigned int i;

	for (i = 0; v->tx && i <= v->tx_mask; i++) {
		struct verbs_tx *tx = &v->tx[i];
		struct sk_buff *skb = tx->skb;

		if (!skb)
			continue;
		if (tx->num_sge) {
			/* It has the data, but neither owner nor destructor. */
			tx->kept = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
			if (!tx->kept)
				continue;
		}
		tx->skb = NULL;
		verbs_tx_report(v, skb);
	}
}

/**
 * verbs_tx_free - free the send descriptors and unsent messages
 * @v: VI whose queue pair is drained or was never connected
 *
 * Context: process, may sleep.
 */
void verbs_tx_free(struct verbs_vi *v)
{
	struct sk_buff *skb;
	unsigned int i;

	for (i = 0; v->tx && i <= v->tx_mask; i++) {
		if (!v->tx[i].skb && !v->tx[i].kept)
			continue;
		skb = verbs_tx_release(&v->tx[i]);
		if (skb)
			verbs_tx_report(v, skb);
		kfree_skb(v->tx[i].kept);
	}
	kvfree(v->tx);
	kvfree(v->tx_sge);
}

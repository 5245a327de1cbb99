// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive descriptors of a VI on verbs.
 *
 * A descriptor takes a message of any size: the first bytes in a small head, the
 * rest in pages.  The head is copied into an sk_buff preallocated in the
 * descriptor, so that nothing can fail once a message has arrived.
 *
 * The client borrows a small message, at most half a page, and the descriptor is reposted with the
 * same memory.  For a large one the pages that it used move to the client with
 * the sk_buff; they are replaced and the descriptor posted before the
 * client sees the message.  Without memory it waits in verbs_vi::rx_unposted until
 * verbs_rx_refill_work() has allocated some.
 *
 * Descriptors are posted VERBS_RX_BATCH at a time.  The ring has spare ones to make up
 * for those that wait for a batch.
 *
 * A VI may begin with a few receives, and get the others when its client asks: until then there
 * are no spare ones, and each is posted by itself.
 *
 * Messages that arrive before the VI is open wait in
 * verbs_vi::early_rx.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/slab.h>
#include <net/busy_poll.h>

#include "core/objcount.h"
#include "core/page.h"
#include "core/work.h"
#include "verbs.h"

#define VERBS_REFILL_DELAY	msecs_to_jiffies(10)

static unsigned int verbs_page_size(const struct verbs_vi *v)
{
	return PAGE_SIZE << v->rx_order;
}

/* ---- memory ---- */

/* One that stays mapped, or NULL. */
static struct page *verbs_rx_kept(struct verbs_vi *v, gfp_t gfp, u64 *addr)
{
	struct page *page;
	dma_addr_t dma;

	if (!v->rx_mapped || gfpflags_allow_blocking(gfp))
		return NULL;
	page = sovia_mapped_alloc(v->rx_mapped, gfp, &dma);
	if (page)
		*addr = dma;
	return page;
}

/* One that is mapped for this receive. */
static struct page *verbs_rx_page(struct verbs_vi *v, gfp_t gfp, u64 *addr)
{
	struct page *page;

	page = sovia_page_alloc(v->rx_order, gfp, verbs_node(verbs_ibdev(v)));
	if (!page)
		return NULL;
	*addr = ib_dma_map_page(verbs_ibdev(v), page, 0, verbs_page_size(v), DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(verbs_ibdev(v), *addr)) {
		sovia_page_free(page, v->rx_order);
		return NULL;
	}
	sovia_object_inc(mappings);
	return page;
}

static int verbs_rx_fill_page(struct verbs_rx *rx, unsigned int i, gfp_t gfp)
{
	struct verbs_vi *v = rx->v;
	struct ib_sge *sge = &rx->sge[i + 1];
	struct page *page;
	u64 addr;

	page = verbs_rx_kept(v, gfp, &addr);
	__assign_bit(i, &rx->kept, page);
	if (!page)
		page = verbs_rx_page(v, gfp, &addr);
	if (!page)
		return -ENOMEM;
	rx->pages[i] = page;
	sge->addr = addr;
	sge->length = verbs_page_size(v);
	sge->lkey = v->qp->pd->local_dma_lkey;
	return 0;
}

/* Allocates a descriptor's missing memory.  Partial results are kept on -ENOMEM. */
static int verbs_rx_fill(struct verbs_rx *rx, gfp_t gfp)
{
	unsigned int i;
	int err;

	gfp |= __GFP_NOWARN;
	if (!rx->skb) {
		rx->skb = alloc_skb(VERBS_HEAD, gfp);
		if (!rx->skb)
			return -ENOMEM;
		skb_mark_napi_id(rx->skb, &rx->v->cq->napi);
	}
	for (i = 0; i < rx->v->rx_num_pages; i++) {
		if (rx->pages[i])
			continue;
		err = verbs_rx_fill_page(rx, i, gfp);
		if (err)
			return err;
	}
	return 0;
}

/*
 * Unmaps page @i, unless it stays mapped; the caller owns it then.  @synced: what the device has
 * written has been copied to it, where that is needed, and the page is in use by now.
 */
static struct page *verbs_rx_take_page(struct verbs_rx *rx, unsigned int i, bool synced)
{
	struct ib_device *ibdev = verbs_ibdev(rx->v);
	struct page *page = rx->pages[i];

	rx->pages[i] = NULL;
	if (test_bit(i, &rx->kept)) {
		if (!synced)
			ib_dma_sync_single_for_cpu(ibdev, rx->sge[i + 1].addr,
						   verbs_page_size(rx->v), DMA_FROM_DEVICE);
		return page;
	}
	if (!ib_uses_virt_dma(ibdev))
		dma_unmap_page_attrs(ibdev->dma_device, rx->sge[i + 1].addr,
				     verbs_page_size(rx->v), DMA_FROM_DEVICE,
				     synced ? DMA_ATTR_SKIP_CPU_SYNC : 0);
	sovia_object_dec(mappings);
	return page;
}

static int verbs_rx_init(struct verbs_rx *rx, struct verbs_vi *v, unsigned int i, gfp_t gfp)
{
	struct ib_device *ibdev = verbs_ibdev(v);

	rx->v = v;
	rx->pages = v->rx_pages + i * v->rx_num_pages;
	rx->sge = v->rx_sge + i * (v->rx_num_pages + 1);
	rx->head = kmalloc(VERBS_HEAD, gfp);
	if (!rx->head)
		return -ENOMEM;
	rx->sge[0].addr = ib_dma_map_single(ibdev, rx->head, VERBS_HEAD, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(ibdev, rx->sge[0].addr)) {
		kfree(rx->head);
		rx->head = NULL;
		return -ENOMEM;
	}
	sovia_object_inc(mappings);
	sovia_object_inc(receives);
	rx->sge[0].length = VERBS_HEAD;
	rx->sge[0].lkey = v->qp->pd->local_dma_lkey;
	rx->wr.wr_cqe = &rx->cqe;
	rx->wr.sg_list = rx->sge;
	rx->wr.num_sge = v->rx_num_pages + 1;
	return verbs_rx_fill(rx, gfp);
}

static void verbs_rx_release(struct verbs_rx *rx)
{
	unsigned int i;

	if (!rx->head)
		return;
	for (i = 0; i < rx->v->rx_num_pages; i++)
		if (rx->pages[i])
			sovia_page_free(verbs_rx_take_page(rx, i, false), rx->v->rx_order);
	ib_dma_unmap_single(verbs_ibdev(rx->v), rx->sge[0].addr, VERBS_HEAD, DMA_FROM_DEVICE);
	sovia_object_dec(mappings);
	sovia_object_dec(receives);
	kfree(rx->head);
	kfree_skb(rx->skb);
	rx->head = NULL;
	rx->skb = NULL;
}

/* ---- posting ---- */

/* Syncs the parts that the processor has read for the device. */
static void verbs_rx_sync_for_device(struct verbs_rx *rx)
{
	struct ib_device *ibdev = verbs_ibdev(rx->v);

	ib_dma_sync_single_for_device(ibdev, rx->sge[0].addr, VERBS_HEAD, DMA_FROM_DEVICE);
	if (rx->v->rx_num_pages)
		ib_dma_sync_single_for_device(ibdev, rx->sge[1].addr,
					      verbs_page_size(rx->v), DMA_FROM_DEVICE);
}

/* Adds a complete descriptor to the batch, and posts the batch if it is full. */
static int verbs_rx_chain(struct verbs_vi *v, struct verbs_rx *rx)
{
	rx->wr.next = NULL;
	if (v->rx_waiting)
		v->rx_last->wr.next = &rx->wr;
	else
		v->rx_first = rx;
	v->rx_last = rx;
	if (++v->rx_waiting < v->rx_batch)
		return 0;
	v->rx_waiting = 0;
	return ib_post_recv(v->qp, &v->rx_first->wr, NULL);
}

/* Posts a complete descriptor, possibly later with a batch, unless the VI is dead. */
static void verbs_rx_post(struct verbs_rx *rx)
{
	struct verbs_vi *v = rx->v;
	int err = 0;

	verbs_rx_sync_for_device(rx);
	/* Under the lock: draining relies on nothing being posted after death. */
	spin_lock_bh(&v->lock);
	if (v->state != VERBS_DEAD)
		err = verbs_rx_chain(v, rx);
	spin_unlock_bh(&v->lock);
	if (err)
		verbs_vi_fail(v, 0);
}

static void verbs_rx_starve(struct verbs_rx *rx)
{
	struct verbs_vi *v = rx->v;

	/* Before refill_work can find it: the count must not fall below zero. */
	if (verbs_vi_usable(v))
		v->vi.client->rx_unposted(&v->vi, 1);
	spin_lock_bh(&v->lock);
	list_add_tail(&rx->entry, &v->rx_unposted);
	spin_unlock_bh(&v->lock);
	queue_delayed_work(sovia_setup_wq, &v->refill_work, VERBS_REFILL_DELAY);
}

/* Refills and reposts a descriptor whose memory was taken, in part or whole. */
static void verbs_rx_renew(struct verbs_rx *rx)
{
	if (likely(!verbs_rx_fill(rx, GFP_ATOMIC)))
		verbs_rx_post(rx);
	else
		verbs_rx_starve(rx);
}

/* The first descriptor on @list; NULL if the VI is dead or dying. */
static struct verbs_rx *verbs_rx_next(struct verbs_vi *v, struct list_head *list)
{
	struct verbs_rx *rx = NULL;

	spin_lock_bh(&v->lock);
	if (v->state != VERBS_DEAD && !v->error)
		rx = list_first_entry_or_null(list, struct verbs_rx, entry);
	if (rx)
		list_del(&rx->entry);
	spin_unlock_bh(&v->lock);
	return rx;
}

/* Puts a descriptor that still lacks memory back at the front. */
static void verbs_rx_still_starved(struct verbs_rx *rx)
{
	struct verbs_vi *v = rx->v;

	spin_lock_bh(&v->lock);
	list_add(&rx->entry, &v->rx_unposted);
	spin_unlock_bh(&v->lock);
	queue_delayed_work(sovia_setup_wq, &v->refill_work, VERBS_REFILL_DELAY);
}

/* No hard reclaim, as for a refill: keep what could be allocated, the client may ask again. */
static void verbs_rx_grow(struct verbs_vi *v)
{
	unsigned int want = READ_ONCE(v->rx_goal) + VERBS_RX_BATCH - 1;

	if (v->rx_made >= want)
		return;
	while (v->rx_made < want) {
		struct verbs_rx *rx = &v->rx[v->rx_made];

		if (!verbs_vi_usable(v))
			return;
		if (verbs_rx_init(rx, v, v->rx_made, GFP_KERNEL | __GFP_NORETRY)) {
			verbs_rx_release(rx);
			break;
		}
		v->rx_made++;
		verbs_rx_post(rx);
	}
	/* Upcalls expect bottom halves to be off. */
	spin_lock_bh(&v->lock);
	if (v->rx_made == want)
		v->rx_batch = VERBS_RX_BATCH;
	spin_unlock(&v->lock);
	if (verbs_vi_usable(v))
		v->vi.client->rx_grown(&v->vi, v->rx_made - (VERBS_RX_BATCH - 1));
	local_bh_enable();
}

/**
 * verbs_post_more - struct sovia_provider::post_more
 * @vi: the VI
 * @depth: see there
 *
 * Context: as there.
 */
void verbs_post_more(struct sovia_vi *vi, unsigned int depth)
{
	struct verbs_vi *v = verbs_vi(vi);

	WRITE_ONCE(v->rx_goal, depth);
	mod_delayed_work(sovia_setup_wq, &v->refill_work, 0);
}

/**
 * verbs_rx_refill_work - allocate memory for descriptors that lack it, and make more
 * @work: verbs_vi::refill_work
 *
 * Context: workqueue.
 */
void verbs_rx_refill_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(to_delayed_work(work), struct verbs_vi, refill_work);
	struct verbs_rx *rx;

	while ((rx = verbs_rx_next(v, &v->rx_unposted))) {
		/* No hard reclaim: retry later. */
		if (verbs_rx_fill(rx, GFP_KERNEL | __GFP_NORETRY)) {
			verbs_rx_still_starved(rx);
			return;
		}
		verbs_rx_post(rx);
		/* Upcalls expect bottom halves to be off. */
		local_bh_disable();
		if (verbs_vi_usable(v))
			v->vi.client->rx_unposted(&v->vi, -1);
		local_bh_enable();
	}
	verbs_rx_grow(v);
}

/* ---- delivery to the client ---- */

/* Copies the head of the message into the descriptor's sk_buff. */
static void verbs_rx_put_head(struct verbs_rx *rx, unsigned int len)
{
	ib_dma_sync_single_for_cpu(verbs_ibdev(rx->v), rx->sge[0].addr, len, DMA_FROM_DEVICE);
	skb_put_data(rx->skb, rx->head, len);
}

/* Empties the sk_buff of a borrowed message. */
static void verbs_rx_reset_skb(struct sk_buff *skb, unsigned int truesize)
{
	skb_shinfo(skb)->nr_frags = 0;
	skb->data = skb->head;
	skb_reset_tail_pointer(skb);
	skb->len = 0;
	skb->data_len = 0;
	skb->truesize = truesize;
	skb->pp_recycle = 0;
}

/* The client borrows the message, and may take it if necessary. */
static void verbs_rx_lend(struct verbs_rx *rx, unsigned int rest, const u32 *imm)
{
	struct verbs_vi *v = rx->v;
	struct sk_buff *skb = rx->skb;
	unsigned int truesize = skb->truesize;
	struct page *unmap = NULL;

	if (rest) {
		ib_dma_sync_single_for_cpu(verbs_ibdev(v), rx->sge[1].addr, rest,
					   DMA_FROM_DEVICE);
		skb_add_rx_frag(skb, 0, rx->pages[0], 0, rest, verbs_page_size(v));
		skb_mark_for_recycle(skb);
		/* An extra reference, so that a page that is taken lives until it is unmapped. */
		if (!test_bit(0, &rx->kept)) {
			unmap = rx->pages[0];
			get_page(unmap);
		}
	}
	/* If it is taken it may be freed at once, and the page with it. */
	if (unlikely(v->vi.client->receive(&v->vi, skb, imm))) {
		rx->skb = NULL;
		if (rest)
			verbs_rx_take_page(rx, 0, true);
	} else {
		verbs_rx_reset_skb(skb, truesize);
	}
	if (unmap)
		put_page(unmap);
	verbs_rx_renew(rx);
}

/* The client gets the memory, after the descriptor was refilled and reposted. */
static void verbs_rx_give(struct verbs_rx *rx, unsigned int rest, const u32 *imm)
{
	struct verbs_vi *v = rx->v;
	struct sk_buff *skb = rx->skb;
	unsigned int i, len;

	for (i = 0; rest; i++, rest -= len) {
		len = min(rest, verbs_page_size(v));
		skb_add_rx_frag(skb, i, verbs_rx_take_page(rx, i, false), 0, len,
				verbs_page_size(v));
	}
	skb_mark_for_recycle(skb);
	rx->skb = NULL;
	verbs_rx_renew(rx);
	/* If the client does not take it, free it here. */
	if (!v->vi.client->receive(&v->vi, skb, imm))
		kfree_skb(skb);
}

static void verbs_rx_deliver(struct verbs_rx *rx)
{
	unsigned int head = min_t(unsigned int, rx->len, VERBS_HEAD);
	unsigned int rest = rx->len - head;
	unsigned int header = rx->has_imm ? 0 : sizeof(struct sovia_hdr);
	/* The descriptor may be reposted before these are used. */
	const u32 imm = rx->imm, *has = rx->has_imm ? &imm : NULL;

	verbs_rx_put_head(rx, head);
	if (rx->len <= header + rx->v->vi.copybreak)
		verbs_rx_lend(rx, rest, has);
	else
		verbs_rx_give(rx, rest, has);
}

/*
 * Before the established() upcall: keep the message.  Returns false if the VI is open
 * by now.
 */
static bool verbs_rx_keep(struct verbs_rx *rx)
{
	struct verbs_vi *v = rx->v;
	enum verbs_state state;

	spin_lock_bh(&v->lock);
	state = v->state;
	if (state == VERBS_CONNECTING || state == VERBS_OPENING)
		list_add_tail(&rx->entry, &v->early_rx);
	spin_unlock_bh(&v->lock);

	if (state == VERBS_CONNECTING && v->passive)
		verbs_vi_heard(v);
	return state != VERBS_OPEN;
}

static void verbs_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct verbs_rx *rx = container_of(wc->wr_cqe, struct verbs_rx, cqe);
	struct verbs_vi *v = rx->v;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		verbs_vi_failed_wc(v, wc);
		return;
	}
	rx->len = wc->byte_len;
	rx->has_imm = wc->wc_flags & IB_WC_WITH_IMM;
	rx->imm = rx->has_imm ? be32_to_cpu(wc->ex.imm_data) : 0;
	if (unlikely(rx->len > v->vi.attr.msg_size)) {
		pr_notice_ratelimited("link to %pI6c: message too long (%u bytes)\n",
				      &v->vi.pair.remote, rx->len);
		verbs_vi_die(v, -EPROTO);
		return;
	}
	/* Pairs with the release in verbs_vi_opened(): the replay is over. */
	if (unlikely(smp_load_acquire(&v->state) != VERBS_OPEN) && verbs_rx_keep(rx))
		return;
	verbs_rx_deliver(rx);
}

/**
 * verbs_rx_replay - deliver messages that arrived before the VI was open
 * @v: VI in state VERBS_OPENING
 *
 * Messages that complete during the replay are appended.
 *
 * Context: process.
 */
void verbs_rx_replay(struct verbs_vi *v)
{
	struct verbs_rx *rx;

	/* Upcalls expect bottom halves to be off. */
	local_bh_disable();
	while ((rx = verbs_rx_next(v, &v->early_rx)))
		verbs_rx_deliver(rx);
	local_bh_enable();
}

/* ---- life ---- */

/**
 * verbs_rx_alloc - allocate the receive descriptors and their memory
 * @v: VI with a queue pair
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM; verbs_rx_free() cleans up in both cases.
 */
int verbs_rx_alloc(struct verbs_vi *v)
{
	unsigned int depth = verbs_rx_depth(v);
	unsigned int i;
	int err = 0;

	v->rx = kvcalloc(depth, sizeof(*v->rx), GFP_KERNEL);
	v->rx_pages = kvcalloc(depth * v->rx_num_pages + 1, sizeof(*v->rx_pages), GFP_KERNEL);
	v->rx_sge = kvcalloc(depth * (v->rx_num_pages + 1), sizeof(*v->rx_sge), GFP_KERNEL);
	if (!v->rx || !v->rx_pages || !v->rx_sge)
		return -ENOMEM;
	for (i = 0; i < depth; i++)
		v->rx[i].cqe.done = verbs_rx_done;
	v->rx_goal = v->vi.attr.recv_first;
	v->rx_batch = v->rx_goal < v->vi.attr.recv_depth ? 1 : VERBS_RX_BATCH;
	v->rx_made = v->rx_goal + v->rx_batch - 1;
	for (i = 0; i < v->rx_made && !err; i++)
		err = verbs_rx_init(&v->rx[i], v, i, GFP_KERNEL);
	return err;
}

/**
 * verbs_rx_post_all - post the first receives of a new VI
 * @v: VI whose queue pair is not connected yet
 *
 * Context: process.
 * Return: 0 or the driver's errno.
 */
int verbs_rx_post_all(struct verbs_vi *v)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < v->rx_made && !err; i++)
		err = ib_post_recv(v->qp, &v->rx[i].wr, NULL);
	return err;
}

/**
 * verbs_rx_free - free the receive descriptors and their memory
 * @v: VI whose queue pair is drained or was never connected
 *
 * Context: process, may sleep.
 */
void verbs_rx_free(struct verbs_vi *v)
{
	unsigned int i;

	for (i = 0; v->rx && v->rx_pages && v->rx_sge && i < verbs_rx_depth(v); i++)
		verbs_rx_release(&v->rx[i]);
	kvfree(v->rx);
	kvfree(v->rx_pages);
	kvfree(v->rx_sge);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that is registered for what is sent, against memory that is copied, and messages that are
 * fetched instead of sent (SOVIA 4.1, figure 6, tables 2 and 3; "RDMA"):
 *
 *	client				server
 *	REG_MR, SEND offer ----------->
 *		<===================== READ
 *		<--------------------- SEND, when it has completed
 *	LOCAL_INV
 *
 * What answers a completion is posted in softirq, as a protocol would.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "kvipl.h"

/* More than caches hold, for memory that is copied once. */
#define COPIED	SZ_16M

/* One more for each region: what this end sends. */
#define SLOTS	(KVIPL_RECEIVES + KVIPL_REGIONS)

static bool is_iwarp(const struct kvipl_end *end)
{
	return rdma_protocol_iwarp(end->id->device, end->id->port_num);
}

/* ---- regions --------------------------------------------------------- */

/* How many this end needs. */
static u32 regions(const struct kvipl_end *end)
{
	switch (end->req.what) {
	case KVIPL_LATENCY_REG:
		return KVIPL_REGIONS;
	case KVIPL_REG:
		return end->passive ? 0 : KVIPL_REGIONS;
	case KVIPL_OFFER:
		return end->passive ? 1 : KVIPL_REGIONS;
	case KVIPL_READ:
	case KVIPL_WRITE:
		return 1;
	default:
		return 0;
	}
}

static int invalidate(struct kvipl_region *region)
{
	struct ib_send_wr wr = {
		.opcode			= IB_WR_LOCAL_INV,
		.wr_cqe			= &region->invalidated,
		.send_flags		= IB_SEND_SIGNALED,
		.ex.invalidate_rkey	= region->mr->rkey,
	};

	return ib_post_send(region->end->id->qp, &wr, NULL);
}

static void over(struct kvipl_end *end)
{
	WRITE_ONCE(end->over, end->over + 1);
	wake_up(&end->step);
}

static void invalidated(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kvipl_region *region = container_of(wc->wr_cqe, struct kvipl_region, invalidated);

	if (wc->status == IB_WC_SUCCESS)
		over(region->end);
	else
		kvipl_fail(region->end);
}

/* Give the memory a new key.  The request that is to be posted first. */
static int prepare(struct kvipl_region *region, int access, struct ib_reg_wr *reg)
{
	int mapped = ib_map_mr_sg(region->mr, &region->end->sg, 1, NULL, PAGE_SIZE);

	if (mapped != 1)
		return mapped < 0 ? mapped : -EINVAL;
	ib_update_fast_reg_key(region->mr, ib_inc_rkey(region->mr->rkey));
	*reg = (struct ib_reg_wr){
		.wr.opcode	= IB_WR_REG_MR,
		.mr		= region->mr,
		.key		= region->mr->rkey,
		.access		= access,
	};
	return 0;
}

/* One that is not in use.  Returns NULL with an error in @err. */
static struct kvipl_region *await_region(struct kvipl_end *end, u32 number, int *err)
{
	*err = -ETIMEDOUT;
	if (!wait_event_timeout(end->step, READ_ONCE(end->gone) ||
				number - READ_ONCE(end->over) < KVIPL_REGIONS, KVIPL_STEP))
		return NULL;
	*err = end->gone ? -ECONNRESET : 0;
	return end->gone ? NULL : &end->region[number % KVIPL_REGIONS];
}

static int await_over(struct kvipl_end *end, u32 count)
{
	if (!wait_event_timeout(end->step, READ_ONCE(end->gone) ||
				READ_ONCE(end->over) == count, KVIPL_STEP))
		return -ETIMEDOUT;
	return READ_ONCE(end->over) == count ? 0 : -ECONNRESET;
}

/* ---- offers ---------------------------------------------------------- */

/* A message of a region, from the slot that is the region's.  Its sge is the caller's. */
static void fill_offer(struct kvipl_region *region, struct ib_sge *sge, struct ib_send_wr *wr)
{
	struct kvipl_end *end = region->end;
	u32 number = region - end->region, slot = KVIPL_RECEIVES + number;

	end->slots[slot] = (struct kvipl_offer){
		.addr = region->mr ? region->mr->iova : 0, .key = region->mr ? region->mr->rkey : 0,
		.region = number,
	};
	*sge = (struct ib_sge){
		.addr = end->slots_dma + slot * sizeof(*end->slots), .length = sizeof(*end->slots),
		.lkey = end->pd->local_dma_lkey,
	};
	*wr = (struct ib_send_wr){ .opcode = IB_WR_SEND, .sg_list = sge, .num_sge = 1 };
}

static int send_fetched(struct kvipl_region *region)
{
	struct ib_send_wr wr;
	struct ib_sge sge;

	fill_offer(region, &sge, &wr);
	wr.wr_cqe = &region->sent;
	return ib_post_send(region->end->id->qp, &wr, NULL);
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kvipl_region *region = container_of(wc->wr_cqe, struct kvipl_region, sent);
	struct kvipl_end *end = region->end;
	int err = wc->status == IB_WC_SUCCESS ? 0 : -EIO;

	if (!err && end->req.what == KVIPL_LATENCY_REG)
		err = invalidate(region);
	else if (!err && end->req.what == KVIPL_OFFER)
		err = send_fetched(region);
	if (err)
		kvipl_fail(end);
	else if (end->req.what != KVIPL_LATENCY_REG)
		over(end);
}

/* READ into or WRITE from the buffer. */
static void fill_rdma(struct kvipl_end *end, const struct kvipl_offer *offer,
		      enum ib_wr_opcode opcode, struct ib_sge *sge, struct ib_rdma_wr *wr)
{
	bool sink = opcode == IB_WR_RDMA_READ && is_iwarp(end);

	*sge = (struct ib_sge){
		.addr = sink ? end->region[0].mr->iova : end->dma, .length = end->req.size,
		.lkey = sink ? end->region[0].mr->lkey : end->pd->local_dma_lkey,
	};
	*wr = (struct ib_rdma_wr){
		.wr = { .opcode = opcode, .sg_list = sge, .num_sge = 1 },
		.remote_addr = offer->addr, .rkey = offer->key,
	};
}

static int fetch(struct kvipl_end *end, const struct kvipl_offer *offer)
{
	struct ib_rdma_wr read;
	struct ib_sge sge;

	if (offer->region >= KVIPL_REGIONS)
		return -EPROTO;
	fill_rdma(end, offer, IB_WR_RDMA_READ, &sge, &read);
	read.wr.wr_cqe = &end->region[offer->region].sent;
	read.wr.send_flags = IB_SEND_SIGNALED;
	return ib_post_send(end->id->qp, &read.wr, NULL);
}

/**
 * kvipl_memory_received() - a message has come
 * @end: at this end
 *
 * Context: softirq.
 */
void kvipl_memory_received(struct kvipl_end *end)
{
	const struct kvipl_offer *offer;
	int err;

	if (end->req.what != KVIPL_OFFER)
		return;
	offer = &end->slots[end->received % KVIPL_RECEIVES];
	if (end->passive)
		err = fetch(end, offer);
	else if (offer->region < KVIPL_REGIONS)
		err = invalidate(&end->region[offer->region]);
	else
		err = -EPROTO;
	if (err || kvipl_post_receive(end))
		kvipl_fail(end);
}

/* ---- the ends -------------------------------------------------------- */

/**
 * kvipl_has_slots() - are its messages offers
 * @end: an end
 *
 * Context: any.
 * Return: true if so.
 */
bool kvipl_has_slots(const struct kvipl_end *end)
{
	return end->slots;
}

/**
 * kvipl_memory_create() - make what a run with registered memory needs
 * @end: it has a queue pair
 *
 * Context: process.
 * Return: 0 or a negative errno.  kvipl_memory_destroy() follows in any case.
 */
int kvipl_memory_create(struct kvipl_end *end)
{
	u32 i, pages = PAGE_ALIGN(offset_in_page(end->buffer) + end->req.size) >> PAGE_SHIFT;
	struct ib_device *device = end->id->device;
	struct kvipl_offer *slots;

	sg_init_one(&end->sg, end->buffer, end->req.size);
	sg_dma_address(&end->sg) = end->dma;
	sg_dma_len(&end->sg) = end->req.size;
	for (i = 0; i < KVIPL_REGIONS; i++) {
		struct kvipl_region *region = &end->region[i];

		region->end = end;
		region->sent.done = sent;
		region->invalidated.done = invalidated;
		if (i >= regions(end))
			continue;
		region->mr = ib_alloc_mr(end->pd, IB_MR_TYPE_MEM_REG, pages);
		if (IS_ERR(region->mr))
			return PTR_ERR(region->mr);
	}
	if (end->req.what == KVIPL_LATENCY_COPY) {
		end->program = kzalloc(end->req.size, GFP_KERNEL);
		return end->program ? 0 : -ENOMEM;
	}
	if (end->req.what < KVIPL_READ)
		return 0;
	slots = kcalloc(SLOTS, sizeof(*slots), GFP_KERNEL);
	if (!slots)
		return -ENOMEM;
	end->slots_dma = ib_dma_map_single(device, slots, SLOTS * sizeof(*slots),
					   DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, end->slots_dma)) {
		kfree(slots);
		return -ENOMEM;
	}
	end->slots = slots;
	return 0;
}

/**
 * kvipl_memory_destroy() - free that
 * @end: its queue pair is gone
 *
 * Context: process.
 */
void kvipl_memory_destroy(struct kvipl_end *end)
{
	u32 i;

	for (i = 0; i < KVIPL_REGIONS; i++)
		if (!IS_ERR_OR_NULL(end->region[i].mr))
			ib_dereg_mr(end->region[i].mr);
	if (end->slots)
		ib_dma_unmap_single(end->id->device, end->slots_dma, SLOTS * sizeof(*end->slots),
				    DMA_BIDIRECTIONAL);
	kfree(end->slots);
	kfree(end->program);
}

/* What READ writes into has to be registered with iWARP; it is for the whole run. */
static int register_sink(struct kvipl_end *end)
{
	struct ib_reg_wr reg;
	int err;

	if (!is_iwarp(end))
		return 0;
	err = prepare(&end->region[0], IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, &reg);
	return err ?: ib_post_send(end->id->qp, &reg.wr, NULL);
}

/* The server's memory, for the whole run. */
static int offer_memory(struct kvipl_end *end)
{
	int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	struct ib_send_wr wr;
	struct ib_reg_wr reg;
	struct ib_sge sge;
	int err;

	err = prepare(&end->region[0], access, &reg);
	if (err)
		return err;
	fill_offer(&end->region[0], &sge, &wr);
	wr.wr_cqe = &end->region[0].sent;
	reg.wr.next = &wr;
	return ib_post_send(end->id->qp, &reg.wr, NULL);
}

/**
 * kvipl_memory_serve() - serve a run that is not one of messages
 * @end: the passive end
 *
 * Context: process.
 * Return: 0 at once for a run of messages, or a negative errno when the run has ended.
 */
int kvipl_memory_serve(struct kvipl_end *end)
{
	int err = 0;

	if (end->req.what == KVIPL_READ || end->req.what == KVIPL_WRITE)
		err = offer_memory(end);
	else if (end->req.what == KVIPL_OFFER)
		err = register_sink(end);
	else if (end->req.what != KVIPL_REG)
		return 0;
	/* A node that has gone does not say so. */
	if (!err)
		wait_event_timeout(end->step, READ_ONCE(end->gone), KVIPL_RUN);
	return err ?: -ECONNRESET;
}

/* ---- runs ------------------------------------------------------------ */

static void report(const struct kvipl_request *req, u32 count, u64 ns)
{
	snprintf(kvipl_result, sizeof(kvipl_result),
		 "{\"size\": %u, \"count\": %u, \"bytes\": %llu, \"ns\": %llu}\n",
		 req->size, count, (u64)req->size * count, ns);
}

static int register_one(struct kvipl_end *end, u32 number)
{
	struct kvipl_region *region;
	struct ib_send_wr inv;
	struct ib_reg_wr reg;
	int err;

	region = await_region(end, number, &err);
	if (!region)
		return err;
	err = prepare(region, IB_ACCESS_REMOTE_READ, &reg);
	if (err)
		return err;
	inv = (struct ib_send_wr){
		.opcode = IB_WR_LOCAL_INV, .wr_cqe = &region->invalidated,
		.send_flags = IB_SEND_SIGNALED, .ex.invalidate_rkey = region->mr->rkey,
	};
	reg.wr.next = &inv;
	return ib_post_send(end->id->qp, &reg.wr, NULL);
}

static int offer_one(struct kvipl_end *end, u32 number)
{
	struct kvipl_region *region;
	struct ib_send_wr wr;
	struct ib_reg_wr reg;
	struct ib_sge sge;
	int err;

	region = await_region(end, number, &err);
	if (!region)
		return err;
	err = prepare(region, IB_ACCESS_REMOTE_READ, &reg);
	if (err)
		return err;
	fill_offer(region, &sge, &wr);
	wr.wr_cqe = &region->sent;
	reg.wr.next = &wr;
	return ib_post_send(end->id->qp, &reg.wr, NULL);
}

static int run_regions(struct kvipl_end *end)
{
	bool offers = end->req.what == KVIPL_OFFER;
	u64 begin = ktime_get_ns();
	int err = 0;
	u32 i;

	for (i = 0; i < end->req.count && !err; i++)
		err = offers ? offer_one(end, i) : register_one(end, i);
	err = err ?: await_over(end, end->req.count);
	if (!err)
		report(&end->req, end->req.count, ktime_get_ns() - begin);
	return err;
}

static int run_reads(struct kvipl_end *end)
{
	struct kvipl_region *region;
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	u64 begin;
	int err;
	u32 i;

	err = kvipl_await_received(end, 1) ?: register_sink(end);
	begin = ktime_get_ns();
	for (i = 0; i < end->req.count && !err; i++) {
		region = await_region(end, i, &err);
		if (!region)
			break;
		fill_rdma(end, &end->slots[0], IB_WR_RDMA_READ, &sge, &wr);
		wr.wr.wr_cqe = &region->sent;
		wr.wr.send_flags = IB_SEND_SIGNALED;
		err = ib_post_send(end->id->qp, &wr.wr, NULL);
	}
	err = err ?: await_over(end, end->req.count);
	if (!err)
		report(&end->req, end->req.count, ktime_get_ns() - begin);
	return err;
}

static int run_writes(struct kvipl_end *end)
{
	u32 i, count = roundup(end->req.count, KVIPL_SIGNAL);
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	u64 begin;
	int err;

	err = kvipl_await_received(end, 1);
	begin = ktime_get_ns();
	for (i = 0; i < count && !err; i++) {
		fill_rdma(end, &end->slots[0], IB_WR_RDMA_WRITE, &sge, &wr);
		err = kvipl_post_send(end, &wr.wr);
	}
	if (!err && !wait_event_timeout(end->step, READ_ONCE(end->gone) ||
					READ_ONCE(end->sent) == count, KVIPL_STEP))
		err = -ETIMEDOUT;
	if (!err && READ_ONCE(end->sent) != count)
		err = -ECONNRESET;
	if (!err)
		report(&end->req, count, ktime_get_ns() - begin);
	return err;
}

/**
 * kvipl_memory_run() - make a run of registered memory
 * @end: the active end, connected
 *
 * Context: process.
 * Return: 0 with the result in kvipl_result, or a negative errno.
 */
int kvipl_memory_run(struct kvipl_end *end)
{
	switch (end->req.what) {
	case KVIPL_REG:
	case KVIPL_OFFER:
		return run_regions(end);
	case KVIPL_READ:
		return run_reads(end);
	default:
		return run_writes(end);
	}
}

/**
 * kvipl_memory_send() - send a message that is registered for it, or copied
 * @end: from this end
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int kvipl_memory_send(struct kvipl_end *end)
{
	struct ib_sge sge = {
		.addr = end->dma, .length = end->req.size, .lkey = end->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND };
	struct kvipl_region *region;
	struct ib_reg_wr reg;
	int err;

	if (end->req.what == KVIPL_LATENCY_COPY) {
		memcpy(end->buffer, end->program, end->req.size);
		return kvipl_post_send(end, &wr);
	}
	region = await_region(end, end->posted++, &err);
	if (!region)
		return err;
	err = prepare(region, IB_ACCESS_LOCAL_WRITE, &reg);
	if (err)
		return err;
	sge.addr = region->mr->iova;
	sge.lkey = region->mr->lkey;
	wr.wr_cqe = &region->sent;
	wr.send_flags = IB_SEND_SIGNALED;
	reg.wr.next = &wr;
	return ib_post_send(end->id->qp, &reg.wr, NULL);
}

/**
 * kvipl_copy() - make a run of copies
 * @req: how many of which size
 *
 * Context: process.
 * Return: 0 with the result in kvipl_result, or -ENOMEM.
 */
int kvipl_copy(const struct kvipl_request *req)
{
	void *to = kmalloc(req->size, GFP_KERNEL);
	u32 i, each = COPIED / req->size;
	u8 *from = vzalloc(COPIED);
	u64 begin;

	if (to && from) {
		begin = ktime_get_ns();
		for (i = 0; i < req->count; i++)
			memcpy(to, from + i % each * req->size, req->size);
		report(req, req->count, ktime_get_ns() - begin);
	}
	vfree(from);
	kfree(to);
	return to && from ? 0 : -ENOMEM;
}

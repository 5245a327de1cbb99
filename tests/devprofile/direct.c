// SPDX-License-Identifier: GPL-2.0-only
/*
 * A data path in memory, for devices of one machine: connections are set up by the software device,
 * messages of the kernel's users go from the sender's memory to the receiver's at once.  So what a
 * message costs without its device can be counted (scripts/bench --adapter): everything here is the
 * device's, and nothing of it is outside of this module but the interrupt.
 *
 * SEND alone, with or without immediate data.  Queues are exact, completions raise an interrupt
 * where the consumer has asked for one, a message waits while there is no receive for it, and the
 * error state flushes what is posted, in order.  One lock for all, as its instructions do not matter.
 */
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/spinlock.h>

#include "devprofile.h"

/**
 * struct dp_wqe - a descriptor
 * @cqe: for its completion
 * @opcode: IB_WR_SEND or IB_WR_SEND_WITH_IMM, of one that is sent
 * @imm: immediate data
 * @signaled: it completes if there is no error, too
 * @is_inline: @sge is the queue's own memory
 * @num_sge: pieces
 * @sge: the pieces
 */
struct dp_wqe {
	struct ib_cqe		*cqe;
	enum ib_wr_opcode	opcode;
	__be32			imm;
	bool			signaled;
	bool			is_inline;
	int			num_sge;
	struct ib_sge		sge[DP_SGES];
};

/**
 * struct dp_queue - descriptors that are posted, the oldest first
 * @size: how many there may be
 * @head: number of the oldest
 * @tail: number of the next one that is posted
 * @wqes: descriptors, by number modulo @size
 * @inlined: @max_inline bytes of each
 * @max_inline: see there
 */
struct dp_queue {
	u32		size;
	u32		head;
	u32		tail;
	struct dp_wqe	*wqes;
	u8		*inlined;
	u32		max_inline;
};

/**
 * struct dp_qp - a queue pair whose data path is here
 * @entry: in the list of them
 * @qp: the queue pair
 * @peer: the one it is connected to, NULL until it has sent
 * @dest: its number
 * @rq_psn: first number of a packet that it receives
 * @sq_psn: that it sends
 * @ready: it may receive
 * @can_send: it may send
 * @failed: it is in the error state
 * @signal_all: each descriptor completes
 * @sq: to send
 * @rq: to receive
 */
struct dp_qp {
	struct list_head	entry;
	struct ib_qp		*qp;
	struct dp_qp		*peer;
	u32			dest;
	u32			rq_psn;
	u32			sq_psn;
	bool			ready;
	bool			can_send;
	bool			failed;
	bool			signal_all;
	struct dp_queue		sq;
	struct dp_queue		rq;
};

/**
 * struct dp_cq - completions of such queue pairs
 * @used: there are some
 * @armed: the next one raises an interrupt
 * @size: room
 * @head: number of the oldest
 * @tail: number of the next
 * @wcs: completions, by number modulo @size
 * @work: the interrupt
 * @cq: the completion queue
 */
struct dp_cq {
	bool		used;
	bool		armed;
	u32		size;
	u32		head;
	u32		tail;
	struct ib_wc	*wcs;
	struct irq_work	work;
	struct ib_cq	*cq;
};

/* Behind the driver's own state. */
const size_t dp_direct_qp_size = sizeof(struct dp_qp);
const size_t dp_direct_cq_size = sizeof(struct dp_cq);

static LIST_HEAD(direct_qps);
/* Inlined, so that its instructions are the device's.  Interrupts are off. */
static arch_spinlock_t direct_lock = __ARCH_SPIN_LOCK_UNLOCKED;

#define direct_enter(flags) do { local_irq_save(flags); arch_spin_lock(&direct_lock); } while (0)
#define direct_leave(flags) do { arch_spin_unlock(&direct_lock); local_irq_restore(flags); } while (0)

static struct dp_qp *to_dp_qp(const struct ib_qp *qp)
{
	return (void *)qp + dp_dev(qp->device)->qp_tail;
}

static struct dp_cq *to_dp_cq(const struct ib_cq *cq)
{
	return (void *)cq + dp_dev(cq->device)->cq_tail;
}

/* ---- completions ---- */

static void interrupt(struct irq_work *work)
{
	struct dp_cq *dcq = container_of(work, struct dp_cq, work);

	dcq->cq->comp_handler(dcq->cq, dcq->cq->cq_context);
}

static void complete_one(struct dp_cq *dcq, const struct ib_wc *wc)
{
	if (WARN_ONCE(dcq->tail - dcq->head == dcq->size, "a completion queue overruns"))
		return;
	dcq->wcs[dcq->tail++ % dcq->size] = *wc;
	if (!dcq->armed)
		return;
	dcq->armed = false;
	irq_work_queue(&dcq->work);
}

static void complete_send(struct dp_qp *dq, const struct dp_wqe *wqe, enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_cqe = wqe->cqe, .status = status, .opcode = IB_WC_SEND, .qp = dq->qp,
	};

	if (status || wqe->signaled)
		complete_one(to_dp_cq(dq->qp->send_cq), &wc);
}

static void complete_recv(struct dp_qp *dq, const struct dp_wqe *wqe, const struct dp_wqe *from,
			  u32 len, enum ib_wc_status status)
{
	struct ib_wc wc = {
		.wr_cqe = wqe->cqe, .status = status, .opcode = IB_WC_RECV, .byte_len = len,
		.qp = dq->qp, .src_qp = dq->dest, .port_num = 1,
	};

	if (from && from->opcode == IB_WR_SEND_WITH_IMM) {
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = from->imm;
	}
	complete_one(to_dp_cq(dq->qp->recv_cq), &wc);
}

/* ---- queues ---- */

static int queue_init(struct dp_queue *queue, u32 size, u32 max_inline)
{
	queue->size = size;
	queue->max_inline = max_inline;
	queue->wqes = kvcalloc(size, sizeof(*queue->wqes), GFP_KERNEL);
	queue->inlined = kvcalloc(size, max_inline ?: 1, GFP_KERNEL);
	return queue->wqes && queue->inlined ? 0 : -ENOMEM;
}

static void queue_free(struct dp_queue *queue)
{
	kvfree(queue->wqes);
	kvfree(queue->inlined);
	memset(queue, 0, sizeof(*queue));
}

static bool queue_is_empty(const struct dp_queue *queue)
{
	return queue->head == queue->tail;
}

/* The next descriptor to fill in, or NULL if there is no room. */
static struct dp_wqe *queue_next(struct dp_queue *queue)
{
	if (queue->tail - queue->head == queue->size)
		return NULL;
	return &queue->wqes[queue->tail % queue->size];
}

static struct dp_wqe *queue_pop(struct dp_queue *queue)
{
	return &queue->wqes[queue->head++ % queue->size];
}

static void flush(struct dp_qp *dq)
{
	while (!queue_is_empty(&dq->sq))
		complete_send(dq, queue_pop(&dq->sq), IB_WC_WR_FLUSH_ERR);
	while (!queue_is_empty(&dq->rq))
		complete_recv(dq, queue_pop(&dq->rq), NULL, 0, IB_WC_WR_FLUSH_ERR);
}

/* ---- messages ---- */

static noinline void copy(void *to, const void *from, size_t len)
{
	size_t words = len / 8, rest = len % 8;

	/* Not memcpy(): that is the kernel's. */
	asm volatile("rep movsq" : "+D" (to), "+S" (from), "+c" (words) : : "memory");
	asm volatile("rep movsb" : "+D" (to), "+S" (from), "+c" (rest) : : "memory");
}

static u32 length(const struct dp_wqe *wqe)
{
	u32 sum = 0;
	int i;

	for (i = 0; i < wqe->num_sge; i++)
		sum += wqe->sge[i].length;
	return sum;
}

static void *memory_of(const struct dp_wqe *wqe, const struct ib_sge *sge)
{
	return wqe->is_inline || !dp_dma_device() ? (void *)(uintptr_t)sge->addr :
						    dp_dma_virt(sge->addr);
}

/* False if something is not mapped. */
static bool copy_message(const struct dp_wqe *to, const struct dp_wqe *from)
{
	const struct ib_sge *in = from->sge, *out = to->sge;
	u32 in_off = 0, out_off = 0, left = length(from);

	while (left) {
		u32 some = min3(left, in->length - in_off, out->length - out_off);
		void *source = memory_of(from, in), *target = memory_of(to, out);

		if (WARN_ONCE(some && (!source || !target), "nothing is mapped there"))
			return false;
		if (some)
			copy(target + out_off, source + in_off, some);
		left -= some;
		in_off += some;
		out_off += some;
		if (in_off == in->length) {
			in++;
			in_off = 0;
		}
		if (out_off == out->length) {
			out++;
			out_off = 0;
		}
	}
	return true;
}

static bool are_peers(const struct dp_qp *a, const struct dp_qp *b)
{
	return a != b && b->ready && !b->failed && b->qp->qp_num == a->dest &&
	       a->qp->qp_num == b->dest && a->sq_psn == b->rq_psn;
}

static void fail(struct dp_qp *dq)
{
	dq->failed = true;
	flush(dq);
}

/* Send what can be sent. */
static void run(struct dp_qp *dq)
{
	struct dp_qp *other;

	if (!dq->peer)
		list_for_each_entry(other, &direct_qps, entry)
			if (are_peers(dq, other)) {
				dq->peer = other;
				break;
			}
	/* It may not be ready yet. */
	if (!dq->peer)
		return;
	while (!queue_is_empty(&dq->sq)) {
		struct dp_wqe *wqe, *into;
		u32 len;

		if (dq->peer->failed) {
			complete_send(dq, queue_pop(&dq->sq), IB_WC_RETRY_EXC_ERR);
			fail(dq);
			return;
		}
		if (queue_is_empty(&dq->peer->rq))
			return;
		wqe = queue_pop(&dq->sq);
		into = queue_pop(&dq->peer->rq);
		len = length(wqe);
		if (len > length(into) || !copy_message(into, wqe)) {
			complete_recv(dq->peer, into, NULL, 0, IB_WC_LOC_LEN_ERR);
			complete_send(dq, wqe, IB_WC_REM_INV_REQ_ERR);
			fail(dq->peer);
			fail(dq);
			return;
		}
		complete_recv(dq->peer, into, wqe, len, IB_WC_SUCCESS);
		complete_send(dq, wqe, IB_WC_SUCCESS);
	}
}

/* Those that send to it may go on. */
static void run_senders(struct dp_qp *dq)
{
	struct dp_qp *other = dq->peer;

	if (other) {
		if (!queue_is_empty(&other->sq))
			run(other);
		return;
	}
	list_for_each_entry(other, &direct_qps, entry)
		if ((other->peer == dq || are_peers(other, dq)) && !queue_is_empty(&other->sq))
			run(other);
}

/* Returns 0, -ENOMEM or -EOPNOTSUPP. */
static int take_send(struct dp_qp *dq, const struct ib_send_wr *wr)
{
	struct dp_wqe *wqe = queue_next(&dq->sq);
	u32 off = 0;
	int i;

	if (!wqe)
		return -ENOMEM;
	/* Others than a SEND drain the queue (ib_drain_sq()). */
	if (wr->opcode != IB_WR_SEND && wr->opcode != IB_WR_SEND_WITH_IMM && !dq->failed)
		return -EOPNOTSUPP;
	wqe->cqe = wr->wr_cqe;
	wqe->opcode = wr->opcode;
	wqe->imm = wr->ex.imm_data;
	wqe->signaled = dq->signal_all || (wr->send_flags & IB_SEND_SIGNALED);
	wqe->is_inline = wr->send_flags & IB_SEND_INLINE;
	wqe->num_sge = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i] = wr->sg_list[i];
		if (!wqe->is_inline)
			continue;
		if (off + wr->sg_list[i].length > dq->sq.max_inline)
			return -EINVAL;
		wqe->sge[i].addr = (uintptr_t)(dq->sq.inlined + dq->sq.max_inline *
					       (dq->sq.tail % dq->sq.size) + off);
		copy((void *)(uintptr_t)wqe->sge[i].addr, (void *)(uintptr_t)wr->sg_list[i].addr,
		     wr->sg_list[i].length);
		off += wr->sg_list[i].length;
	}
	dq->sq.tail++;
	return 0;
}

/**
 * dp_direct_post_send() - post_send of a queue pair whose data path is here
 * @qp: the queue pair
 * @wr: descriptors
 * @bad_wr: set to the one that failed
 *
 * Context: any.
 * Return: 0, -ENOMEM without room, -EINVAL, or -EOPNOTSUPP for what is not a SEND.
 */
int dp_direct_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr)
{
	struct dp_qp *dq = to_dp_qp(qp);
	unsigned long flags;
	int err = 0;

	direct_enter(flags);
	for (; wr && !err; wr = wr->next) {
		err = dq->can_send || dq->failed ? take_send(dq, wr) : -EINVAL;
		if (err)
			*bad_wr = wr;
	}
	if (dq->failed)
		flush(dq);
	else
		run(dq);
	direct_leave(flags);
	return err;
}

/**
 * dp_direct_post_recv() - post_recv of a queue pair whose data path is here
 * @qp: the queue pair
 * @wr: descriptors
 * @bad_wr: set to the one that failed
 *
 * Context: any.
 * Return: 0, or -ENOMEM without room.
 */
int dp_direct_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr)
{
	struct dp_qp *dq = to_dp_qp(qp);
	unsigned long flags;
	int err = 0, i;

	direct_enter(flags);
	for (; wr; wr = wr->next) {
		struct dp_wqe *wqe = queue_next(&dq->rq);

		if (!wqe) {
			*bad_wr = wr;
			err = -ENOMEM;
			break;
		}
		wqe->cqe = wr->wr_cqe;
		wqe->num_sge = wr->num_sge;
		for (i = 0; i < wr->num_sge; i++)
			wqe->sge[i] = wr->sg_list[i];
		dq->rq.tail++;
	}
	if (dq->failed)
		flush(dq);
	else
		run_senders(dq);
	direct_leave(flags);
	return err;
}

/* ---- queue pairs ---- */

/**
 * dp_direct_create_qp() - a queue pair has its data path here
 * @qp: the queue pair, which the driver has made
 * @init: what it was asked for
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM; dp_direct_destroy_qp() cleans up in both cases.
 */
int dp_direct_create_qp(struct ib_qp *qp, const struct ib_qp_init_attr *init)
{
	struct dp_qp *dq = to_dp_qp(qp);
	unsigned long flags;

	memset(dq, 0, sizeof(*dq));
	INIT_LIST_HEAD(&dq->entry);
	dq->qp = qp;
	dq->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	if (queue_init(&dq->sq, init->cap.max_send_wr, init->cap.max_inline_data) ||
	    queue_init(&dq->rq, init->cap.max_recv_wr, 0))
		return -ENOMEM;
	direct_enter(flags);
	to_dp_cq(init->send_cq)->used = true;
	to_dp_cq(init->recv_cq)->used = true;
	list_add(&dq->entry, &direct_qps);
	direct_leave(flags);
	return 0;
}

static void forget_completions(struct dp_cq *dcq, const struct ib_qp *qp)
{
	u32 i, left = dcq->head;

	for (i = dcq->head; i != dcq->tail; i++)
		if (dcq->wcs[i % dcq->size].qp != qp)
			dcq->wcs[left++ % dcq->size] = dcq->wcs[i % dcq->size];
	dcq->tail = left;
}

/**
 * dp_direct_destroy_qp() - a queue pair ends
 * @qp: the queue pair
 *
 * What it has completed and nobody has polled is forgotten.
 *
 * Context: process.
 */
void dp_direct_destroy_qp(struct ib_qp *qp)
{
	struct dp_qp *dq = to_dp_qp(qp), *other;
	unsigned long flags;

	direct_enter(flags);
	list_del(&dq->entry);
	list_for_each_entry(other, &direct_qps, entry)
		if (other->peer == dq) {
			other->peer = NULL;
			/* Nobody answers. */
			if (!queue_is_empty(&other->sq))
				complete_send(other, queue_pop(&other->sq), IB_WC_RETRY_EXC_ERR);
			fail(other);
		}
	forget_completions(to_dp_cq(qp->send_cq), qp);
	forget_completions(to_dp_cq(qp->recv_cq), qp);
	direct_leave(flags);
	queue_free(&dq->sq);
	queue_free(&dq->rq);
}

/**
 * dp_direct_modify_qp() - the driver has changed a queue pair
 * @qp: the queue pair
 * @attr: to what
 * @mask: what of it
 *
 * Context: process.
 */
void dp_direct_modify_qp(struct ib_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct dp_qp *dq = to_dp_qp(qp);
	unsigned long flags;

	direct_enter(flags);
	if (mask & IB_QP_DEST_QPN)
		dq->dest = attr->dest_qp_num;
	if (mask & IB_QP_RQ_PSN)
		dq->rq_psn = attr->rq_psn;
	if (mask & IB_QP_SQ_PSN)
		dq->sq_psn = attr->sq_psn;
	if (mask & IB_QP_STATE) {
		dq->ready = attr->qp_state == IB_QPS_RTR || attr->qp_state == IB_QPS_RTS;
		dq->can_send = attr->qp_state == IB_QPS_RTS;
		if (attr->qp_state == IB_QPS_ERR)
			fail(dq);
		else if (dq->ready)
			run_senders(dq);
	}
	direct_leave(flags);
}

/* ---- completion queues ---- */

/**
 * dp_direct_create_cq() - a completion queue may be for queue pairs whose data path is here
 * @cq: the completion queue
 * @cqe: its size
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM.
 */
int dp_direct_create_cq(struct ib_cq *cq, u32 cqe)
{
	struct dp_cq *dcq = to_dp_cq(cq);

	memset(dcq, 0, sizeof(*dcq));
	dcq->cq = cq;
	dcq->size = cqe;
	init_irq_work(&dcq->work, interrupt);
	dcq->wcs = kvcalloc(cqe, sizeof(*dcq->wcs), GFP_KERNEL);
	return dcq->wcs ? 0 : -ENOMEM;
}

/**
 * dp_direct_destroy_cq() - a completion queue ends
 * @cq: the completion queue, which no queue pair uses
 *
 * Context: process, may sleep.
 */
void dp_direct_destroy_cq(struct ib_cq *cq)
{
	struct dp_cq *dcq = to_dp_cq(cq);

	irq_work_sync(&dcq->work);
	kvfree(dcq->wcs);
	dcq->wcs = NULL;
}

/**
 * dp_direct_uses() - does a completion queue have completions from here alone
 * @cq: the completion queue
 *
 * Context: any.
 * Return: true if so.
 */
bool dp_direct_uses(const struct ib_cq *cq)
{
	return to_dp_cq(cq)->used;
}

/**
 * dp_direct_poll_cq() - poll_cq of such a completion queue
 * @cq: the completion queue
 * @entries: how many at most
 * @wc: room for them
 *
 * Context: any.
 * Return: how many there are.
 */
int dp_direct_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc)
{
	struct dp_cq *dcq = to_dp_cq(cq);
	unsigned long flags;
	int count = 0;

	direct_enter(flags);
	while (count < entries && dcq->head != dcq->tail)
		wc[count++] = dcq->wcs[dcq->head++ % dcq->size];
	direct_leave(flags);
	return count;
}

/**
 * dp_direct_req_notify_cq() - req_notify_cq of such a completion queue
 * @cq: the completion queue
 * @how: see there
 *
 * Context: any.
 * Return: 1 if there are completions and the caller wants to know of them, or 0.
 */
int dp_direct_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags how)
{
	struct dp_cq *dcq = to_dp_cq(cq);
	unsigned long flags;
	bool missed;

	direct_enter(flags);
	dcq->armed = true;
	missed = dcq->head != dcq->tail;
	direct_leave(flags);
	return missed && (how & IB_CQ_REPORT_MISSED_EVENTS);
}

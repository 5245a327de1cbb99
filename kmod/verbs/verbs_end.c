// SPDX-License-Identifier: GPL-2.0-only
/*
 * End of a VI on verbs: two steps on the end queue, neither of which waits for the set-up or
 * for completions.
 *
 *	end		DEAD, so that no receive is posted and no upcall but send_done starts
 *	  (setup_work has returned)
 *	end_work	wait for rdma_cm's handler, disconnect, begin to drain the queue pair
 *	  (both drain descriptors complete)
 *	finish_work	nothing is in flight: report unsent messages, free, upcall ended
 *
 * If the device does not complete them in time, the VI is quarantined: it keeps its memory,
 * mapped for the device, until they do complete or the device is removed.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/slab.h>

#include "core/objcount.h"
#include "core/work.h"
#include "debug/fault.h"
#include "verbs.h"

/* ---- free ---- */

/* Waits for the handler that may be running; later ones see a dead VI. */
static void verbs_vi_flush_events(struct verbs_vi *v)
{
	if (!v->id)
		return;
	rdma_lock_handler(v->id);
	rdma_unlock_handler(v->id);
}

/* Nothing is in flight. */
static void verbs_vi_free_rings(struct verbs_vi *v)
{
	cancel_delayed_work_sync(&v->refill_work);
	verbs_tx_free(v);
	verbs_rx_free(v);
}

/* After this no upcall but ended follows. */
static void verbs_vi_free_rest(struct verbs_vi *v)
{
	cancel_work_sync(&v->heard_work);
	if (v->rq)
		verbs_request_drop(v->rq, -EAGAIN);
	if (v->id)
		rdma_destroy_id(v->id);
	verbs_dev_detach(v);
	cancel_delayed_work_sync(&v->fail_work);
	cancel_delayed_work_sync(&v->deadline);
}

static void verbs_vi_release(struct verbs_vi *v)
{
	if (v->qp) {
		verbs_vi_free_rings(v);
		rdma_destroy_qp(v->id);
	}
	verbs_vi_free_rest(v);
}

static void verbs_vi_kfree(struct verbs_vi *v)
{
	kfree(v);
	sovia_object_dec(verbs_vis);
}

/**
 * verbs_vi_free - free a VI that has no upcall ended
 * @v: VI in any state, but nothing is in flight and its set-up works have returned
 *
 * When it returns no upcall is running, and none follows.
 *
 * Context: process, may sleep; holds no lock.
 */
void verbs_vi_free(struct verbs_vi *v)
{
	verbs_vi_silence(v);
	verbs_vi_flush_events(v);
	verbs_vi_release(v);
	verbs_vi_kfree(v);
}

static void verbs_vi_ended(struct verbs_vi *v)
{
	v->vi.client->ended(&v->vi);
	verbs_vi_kfree(v);
}

/**
 * verbs_vi_abandon - free a VI in quarantine whose device is being removed
 * @v: VI without a queue pair any more; the completion queues are gone, too
 *
 * Context: process, may sleep; holds no lock.
 */
void verbs_vi_abandon(struct verbs_vi *v)
{
	/* It may have been queued by a late completion, and must not find the VI. */
	cancel_work_sync(&v->finish_work);
	cancel_delayed_work_sync(&v->drain_deadline);
	verbs_vi_free_rings(v);
	verbs_vi_free_rest(v);
	verbs_vi_ended(v);
}

/* ---- draining ---- */

static void verbs_drained(struct verbs_vi *v)
{
	if (atomic_dec_and_test(&v->draining))
		queue_work(sovia_end_wq, &v->finish_work);
}

static void verbs_drain_tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	verbs_drained(container_of(wc->wr_cqe, struct verbs_vi, drain_tx));
}

static void verbs_drain_rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	verbs_drained(container_of(wc->wr_cqe, struct verbs_vi, drain_rx));
}

/*
 * As ib_drain_qp(), which waits without a deadline: a last descriptor on each queue, whose
 * completion tells that there is no other.  A driver may refuse the state, where the peer or the
 * firmware has ended the queue pair before: then it flushes what is posted all the same.
 */
static int verbs_drain_post(struct verbs_vi *v)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct ib_send_wr tx = { .wr_cqe = &v->drain_tx, .opcode = IB_WR_SEND };
	struct ib_recv_wr rx = { .wr_cqe = &v->drain_rx };
	int err;

	v->drain_tx.done = verbs_drain_tx_done;
	v->drain_rx.done = verbs_drain_rx_done;
	err = ib_modify_qp(v->qp, &attr, IB_QP_STATE);
	if (err)
		pr_debug("link to %pI6c: no error state: %pe\n", &v->vi.pair.remote, ERR_PTR(err));
	err = ib_post_send(v->qp, &tx, NULL);
	if (!err)
		err = sovia_fault_drain() ? -EIO : ib_post_recv(v->qp, &rx, NULL);
	return err;
}

/*
 * One that has never been ready to receive has nothing in flight, and not all drivers flush what is
 * posted to it: qedr's device does not know of it yet.  Under the handler mutex it does not become
 * ready.  Returns true if it has been destroyed.
 */
static bool verbs_destroy_unready(struct verbs_vi *v)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	bool unready;

	/* iWARP's states are others. */
	if (v->cm_established || verbs_iwarp(v))
		return false;
	cancel_delayed_work_sync(&v->refill_work);
	rdma_lock_handler(v->id);
	unready = !ib_query_qp(v->qp, &attr, IB_QP_STATE, &init) && attr.qp_state == IB_QPS_INIT;
	if (unready)
		rdma_destroy_qp(v->id);
	rdma_unlock_handler(v->id);
	return unready;
}

/* A device that does not take a descriptor has failed, and does not complete the other one. */
static void verbs_drain(struct verbs_vi *v)
{
	int err;

	/* The third is ours: the deadline is to be there when finish_work is queued. */
	atomic_set(&v->draining, 3);
	/* Not under the deadline: what is quarantined may be freed by its device's removal. */
	err = verbs_drain_post(v);
	v->drain_end = jiffies + (err ? 0 : VERBS_DRAIN_TIMEOUT);
	queue_delayed_work(sovia_end_wq, &v->drain_deadline, err ? 0 : VERBS_DRAIN_LOOK);
	if (!err)
		verbs_drained(v);
}

/**
 * verbs_drain_late - verbs_vi::drain_deadline: does the device complete in time
 * @work: the work
 *
 * Context: process, the end queue.
 */
void verbs_drain_late(struct work_struct *work)
{
	struct verbs_vi *v = container_of(to_delayed_work(work), struct verbs_vi,
					  drain_deadline);

	if (time_before(jiffies, v->drain_end) && !verbs_dev_failed(v))
		queue_delayed_work(sovia_end_wq, &v->drain_deadline, VERBS_DRAIN_LOOK);
	else
		verbs_dev_quarantine(v);
}

/* ---- the end ---- */

/**
 * verbs_finish_work - verbs_vi::finish_work: nothing is in flight, free the VI
 * @work: the work
 *
 * Context: process, the end queue.
 */
void verbs_finish_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(work, struct verbs_vi, finish_work);

	cancel_delayed_work_sync(&v->drain_deadline);
	if (!verbs_dev_release(v))
		return;
	verbs_vi_release(v);
	verbs_vi_ended(v);
}

/**
 * verbs_end_work - verbs_vi::end_work: the set-up work has returned, stop the VI
 * @work: the work
 *
 * Context: process, the end queue.
 */
void verbs_end_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(work, struct verbs_vi, end_work);

	cancel_work_sync(&v->break_work);
	verbs_vi_flush_events(v);
	if (v->started) {
		rdma_disconnect(v->id);
		if (!verbs_destroy_unready(v)) {
			verbs_drain(v);
			return;
		}
		verbs_vi_free_rings(v);
		v->qp = NULL;
	}
	verbs_vi_release(v);
	verbs_vi_ended(v);
}

/**
 * verbs_end - struct sovia_provider::end
 * @vi: see there
 *
 * Context: see there.
 */
void verbs_end(struct sovia_vi *vi)
{
	struct verbs_vi *v = verbs_vi(vi);
	bool idle;

	verbs_vi_silence(v);
	/* No other is queued once it is dead. */
	idle = cancel_work(&v->setup_work);
	spin_lock_bh(&v->lock);
	v->setups -= idle;
	v->ending = true;
	idle = !v->setups;
	spin_unlock_bh(&v->lock);
	if (idle)
		queue_work(sovia_end_wq, &v->end_work);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Life of a VI on verbs.
 *
 *	connect, accept
 *	      |
 *	      v          established, then replay
 *	  CONNECTING ----------> OPENING ----------> OPEN
 *	      |                     |                 |
 *	      |     (after the replay, if it failed)  |
 *	      +---------------------+-----------------+----> DEAD ----> destroyed
 *	                          closed                 destroy
 *
 * Only verbs_vi_opened(), verbs_vi_die() and verbs_vi_silence() change the state, and the
 * first two call established and closed, serialised by verbs_vi::lock.  A VI that fails while
 * it is being opened is closed by the opener, so that closed never
 * overtakes established.
 *
 * What may block in the set-up is done by setup_work on the set-up queue.  The end: see
 * verbs_end.c.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "core/objcount.h"
#include "core/page.h"
#include "core/work.h"
#include "verbs.h"

/* Flushed completions may be processed before the error that caused them. */
#define VERBS_FLUSH_DELAY	(HZ / 10)

/* ---- states ---- */

static bool verbs_vi_begin_open(struct verbs_vi *v)
{
	bool first;

	spin_lock_bh(&v->lock);
	first = v->state == VERBS_CONNECTING;
	if (first)
		WRITE_ONCE(v->state, VERBS_OPENING);
	spin_unlock_bh(&v->lock);
	return first;
}

/* 1 if another early message has arrived, to be replayed first; an errno if the VI is dead. */
static int verbs_vi_end_open(struct verbs_vi *v)
{
	int ret = 0;

	spin_lock_bh(&v->lock);
	if (v->state != VERBS_OPENING) {
		/* the client destroys it already */
	} else if (v->error) {
		WRITE_ONCE(v->state, VERBS_DEAD);
		ret = v->error;
	} else if (!list_empty(&v->early_rx)) {
		ret = 1;
	} else {
		/* Pairs with the acquire in verbs_rx_done(): receives go up directly. */
		smp_store_release(&v->state, VERBS_OPEN);
	}
	spin_unlock_bh(&v->lock);
	return ret;
}

/**
 * verbs_vi_opened - the connection is established: notify the client
 * @v: VI; its peer_hello is set
 *
 * Does nothing unless the VI is being connected.
 *
 * Context: process, holds the handler mutex of the VI's identifier.
 */
void verbs_vi_opened(struct verbs_vi *v)
{
	int err;

	if (!verbs_vi_begin_open(v))
		return;
	cancel_delayed_work(&v->deadline);
	v->vi.client->established(&v->vi, &v->peer_hello, v->peer_hello_len);
	do {
		verbs_rx_replay(v);
		err = verbs_vi_end_open(v);
	} while (err > 0);
	if (err)
		v->vi.client->closed(&v->vi, err);
}

/**
 * verbs_vi_die - the connection has ended: notify the client, once
 * @v: VI in any state
 * @err: negative errno for the closed upcall
 *
 * Context: any but hard interrupt, verbs_vi::lock not held.
 */
void verbs_vi_die(struct verbs_vi *v, int err)
{
	bool tell = false;

	spin_lock_bh(&v->lock);
	switch (v->state) {
	case VERBS_OPENING:
		if (!v->error)
			v->error = err;
		break;
	case VERBS_CONNECTING:
	case VERBS_OPEN:
		WRITE_ONCE(v->state, VERBS_DEAD);
		tell = true;
		break;
	case VERBS_DEAD:
		break;
	}
	spin_unlock_bh(&v->lock);
	if (!tell)
		return;
	cancel_delayed_work(&v->deadline);
	v->vi.client->closed(&v->vi, err);
}

/**
 * verbs_vi_doubt - the port of a VI is down: one that is being connected dies, an open one may not
 * @v: VI in any state
 *
 * Context: process, verbs_vi::lock not held.
 */
void verbs_vi_doubt(struct verbs_vi *v)
{
	switch (READ_ONCE(v->state)) {
	case VERBS_CONNECTING:
		/* It would wait for VERBS_STEP_MS.  The client tries again, with pauses. */
		verbs_vi_die(v, -EBUSY);
		break;
	case VERBS_OPENING:
	case VERBS_OPEN:
		v->vi.client->doubted(&v->vi);
		break;
	case VERBS_DEAD:
		break;
	}
}

/**
 * verbs_vi_silence - the client has ended the VI: DEAD without an upcall
 * @v: VI in any state
 *
 * After this no upcall but send_done starts, and no receive is posted.
 *
 * Context: any but hard interrupt, verbs_vi::lock not held.
 */
void verbs_vi_silence(struct verbs_vi *v)
{
	spin_lock_bh(&v->lock);
	WRITE_ONCE(v->state, VERBS_DEAD);
	spin_unlock_bh(&v->lock);
}

/**
 * verbs_vi_fail - verbs_vi_die() for contexts where the client must not be called
 * @v: VI in any state but destroyed
 * @delay: jiffies to wait for an event that reports the cause
 *
 * Context: any.
 */
void verbs_vi_fail(struct verbs_vi *v, unsigned long delay)
{
	if (delay)
		queue_delayed_work(sovia_end_wq, &v->fail_work, delay);
	else
		mod_delayed_work(sovia_end_wq, &v->fail_work, 0);
}

/**
 * verbs_vi_heard - a message has arrived, so the peer has established the connection
 * @v: VI that may not be established yet
 *
 * The connection manager's message (RTU) may have been lost.
 *
 * Context: any.
 */
void verbs_vi_heard(struct verbs_vi *v)
{
	/* rdma_cm would take it from here, but its locks are not fit for it. */
	queue_work(sovia_setup_wq, &v->heard_work);
}

/**
 * verbs_vi_step - start a step of the set-up, with a timeout of VERBS_STEP_MS
 * @v: VI that is being connected
 *
 * Context: any.
 */
void verbs_vi_step(struct verbs_vi *v)
{
	mod_delayed_work(sovia_end_wq, &v->deadline, msecs_to_jiffies(VERBS_STEP_MS));
}

static void verbs_fail_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(to_delayed_work(work), struct verbs_vi, fail_work);

	verbs_vi_die(v, -ECONNRESET);
}

static void verbs_deadline_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(to_delayed_work(work), struct verbs_vi, deadline);

	/* Has it opened since?  Only the set-up has deadlines. */
	if (READ_ONCE(v->state) == VERBS_CONNECTING)
		verbs_vi_die(v, -ETIMEDOUT);
}

/**
 * verbs_vi_failed_wc - a descriptor failed, and the VI with it
 * @v: VI
 * @wc: completion; only its wr_cqe and status may be trusted
 *
 * Flushed completions after the first failed one need no handling: their
 * descriptors are freed with the VI.
 *
 * Context: softirq.
 */
void verbs_vi_failed_wc(struct verbs_vi *v, const struct ib_wc *wc)
{
	enum verbs_state state = READ_ONCE(v->state);

	switch (wc->status) {
	case IB_WC_WR_FLUSH_ERR:
		/* In VERBS_OPEN the cause may be reported later, in other states it is not. */
		if (state == VERBS_OPEN || state == VERBS_OPENING)
			verbs_vi_fail(v, VERBS_FLUSH_DELAY);
		break;
	case IB_WC_RETRY_EXC_ERR:
	case IB_WC_RNR_RETRY_EXC_ERR:
		verbs_vi_die(v, -ETIMEDOUT);
		break;
	default:
		if (state != VERBS_DEAD)
			pr_notice_ratelimited("link to %pI6c: %s\n", &v->vi.pair.remote,
					      ib_wc_status_msg(wc->status));
		verbs_vi_die(v, -ECONNRESET);
		break;
	}
}

/* ---- queue pair ---- */

static void verbs_qp_event(struct ib_event *event, void *context)
{
	struct verbs_vi *v = context;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		verbs_vi_heard(v);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
	/* cxgb4 tells of its completion queue's here. */
	case IB_EVENT_CQ_ERR:
		/* may be a hard interrupt */
		verbs_vi_fail(v, 0);
		break;
	default:
		break;
	}
}

/*
 * Chooses the pages of a receive descriptor: single ones if the device takes enough pieces, larger
 * ones otherwise, and where memory is really mapped for the device: a mapping costs more than what
 * is copied instead, messages of up to half a page.
 */
static int verbs_size_rx(struct verbs_vi *v, struct ib_device *ibdev)
{
	unsigned int rest = v->vi.attr.msg_size - min(v->vi.attr.msg_size, VERBS_HEAD);
	unsigned int most = min(ibdev->attrs.max_recv_sge - 1, (int)MAX_SKB_FRAGS);
	unsigned int order = 0;

	while (!ib_uses_virt_dma(ibdev) && PAGE_SIZE << order < min(rest, SOVIA_MAPPED_BYTES))
		order++;
	while (DIV_ROUND_UP(rest, PAGE_SIZE << order) > most)
		if (++order > PAGE_ALLOC_COSTLY_ORDER) {
			pr_warn_ratelimited("%s: max_recv_sge %d too small for %u-byte messages\n",
					    dev_name(&ibdev->dev), ibdev->attrs.max_recv_sge,
					    v->vi.attr.msg_size);
			return -EOPNOTSUPP;
		}
	v->rx_order = order;
	v->rx_num_pages = DIV_ROUND_UP(rest, PAGE_SIZE << order);
	v->vi.copybreak = max_t(unsigned int, SOVIA_COPYBREAK, (PAGE_SIZE << order) / 2);
	return 0;
}

/* A message may begin and end anywhere in a page. */
static void verbs_size_tx(struct verbs_vi *v, const struct ib_device *ibdev)
{
	unsigned int pages = v->vi.attr.msg_size / PAGE_SIZE + 2;

	v->max_sge = min3(pages + 1, (unsigned int)MAX_SKB_FRAGS + 1,
			  (unsigned int)ibdev->attrs.max_send_sge);
	v->vi.max_frags = v->max_sge - 1;
}

/* Descriptors of each queue, and one each to drain it. */
static unsigned int verbs_send_wrs(const struct verbs_vi *v)
{
	return v->vi.attr.send_depth + 1;
}

static unsigned int verbs_recv_wrs(const struct verbs_vi *v)
{
	return verbs_rx_depth(v) + 1;
}

/* Returns 0, or -EOPNOTSUPP if the device's queues are too short. */
static int verbs_check_depth(const struct verbs_vi *v, const struct ib_device *ibdev)
{
	unsigned int need = max(verbs_send_wrs(v), verbs_recv_wrs(v));

	if (need <= max(ibdev->attrs.max_qp_wr, 0))
		return 0;
	pr_warn_ratelimited("%s: max_qp_wr %d too small, a link needs %u\n",
			    dev_name(&ibdev->dev), ibdev->attrs.max_qp_wr, need);
	return -EOPNOTSUPP;
}

static int verbs_create_qp_inline(struct verbs_vi *v, unsigned int max_inline)
{
	struct ib_qp_init_attr attr = {
		.event_handler	= verbs_qp_event,
		.qp_context	= v,
		.send_cq	= v->cq->cq,
		.recv_cq	= v->cq->cq,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
		.cap.max_send_wr	= verbs_send_wrs(v),
		.cap.max_recv_wr	= verbs_recv_wrs(v),
		.cap.max_send_sge	= v->max_sge,
		.cap.max_recv_sge	= v->rx_num_pages + 1,
		.cap.max_inline_data	= max_inline,
	};
	int err = rdma_create_qp(v->id, verbs_dev_pd(v->dev), &attr);

	if (err)
		return err;
	v->qp = v->id->qp;
	/* rdma_cm has created it for us; rdma(8) shows whose it is. */
	v->qp->res.kern_name = KBUILD_MODNAME;
	v->ibdev = v->qp->device;
	/* iWARP has no immediate data, and see verbs_established(). */
	v->vi.imm = !verbs_iwarp(v);
	v->vi.sends_first = verbs_iwarp(v) && !v->passive;
	v->max_inline = min(attr.cap.max_inline_data, max_inline);
	return 0;
}

/* With more pieces or descriptors than the device was tried with, it may have less inline data. */
static int verbs_create_qp(struct verbs_vi *v)
{
	unsigned int max_inline = verbs_dev_max_inline(v->dev);
	int err = verbs_create_qp_inline(v, max_inline);

	if (err && max_inline > VERBS_INLINE_LESS)
		err = verbs_create_qp_inline(v, VERBS_INLINE_LESS);
	return err && max_inline ? verbs_create_qp_inline(v, 0) : err;
}

/**
 * verbs_vi_attach - give a VI its device
 * @v: VI whose identifier rdma_cm has bound to a device
 *
 * From then on the VI is closed before rdma_cm handles the device's removal.
 *
 * Context: process, may sleep; holds the handler mutex of the VI's identifier.
 * Return: 0, -ENODEV if it has been removed or is not for the VI's namespace, -EOPNOTSUPP if it
 * supports too little of something, which is logged, or another negative errno.
 */
int verbs_vi_attach(struct verbs_vi *v)
{
	struct ib_device *ibdev = v->id->device;
	int err;

	if (!ibdev || !verbs_dev_serves(ibdev, v->net))
		return -ENODEV;
	err = verbs_check_depth(v, ibdev) ?: verbs_size_rx(v, ibdev);
	if (err)
		return err;
	verbs_size_tx(v, ibdev);
	v->port = v->id->port_num;
	err = verbs_dev_attach(v, ibdev);
	if (!err && v->rx_order == SOVIA_MAPPED_ORDER)
		v->rx_mapped = verbs_dev_mapped(v->dev);
	return err;
}

/**
 * verbs_vi_create_qp - give a VI its queue pair and descriptors
 * @v: VI
 *
 * All receives are posted on success.  In all cases verbs_vi_free() cleans up.
 *
 * Context: process, may sleep; holds the handler mutex of the VI's identifier.
 * Return: 0, -ENODEV if it has no device, or another negative errno.
 */
int verbs_vi_create_qp(struct verbs_vi *v)
{
	int err;

	if (!v->dev)
		return -ENODEV;
	err = verbs_create_qp(v);
	if (err)
		return err;
	err = verbs_tx_alloc(v);
	if (err)
		return err;
	err = verbs_rx_alloc(v);
	if (err)
		return err;
	return verbs_rx_post_all(v);
}

/* ---- set-up ---- */

/* The set-up work has returned.  If the client has ended the VI, go on with that. */
static void verbs_vi_setup_done(struct verbs_vi *v)
{
	bool end;

	spin_lock_bh(&v->lock);
	end = !--v->setups && v->ending;
	spin_unlock_bh(&v->lock);
	if (end)
		queue_work(sovia_end_wq, &v->end_work);
}

static void verbs_setup_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(work, struct verbs_vi, setup_work);

	if (verbs_vi_usable(v))
		verbs_cm_setup(v, READ_ONCE(v->setup));
	verbs_vi_setup_done(v);
}

/**
 * verbs_vi_setup - let the set-up work do the next thing
 * @v: VI that is being connected; nothing happens if it is dead
 * @setup: what to do
 *
 * Context: any.
 */
void verbs_vi_setup(struct verbs_vi *v, enum verbs_setup setup)
{
	spin_lock_bh(&v->lock);
	if (v->state != VERBS_DEAD) {
		WRITE_ONCE(v->setup, setup);
		v->setups += queue_work(sovia_setup_wq, &v->setup_work);
	}
	spin_unlock_bh(&v->lock);
}

/* ---- life ---- */

/* Set the error state of the queue pair, which flushes all posted descriptors. */
static void verbs_break_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(work, struct verbs_vi, break_work);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	rdma_lock_handler(v->id);
	if (v->qp)
		ib_modify_qp(v->qp, &attr, IB_QP_STATE);
	rdma_unlock_handler(v->id);
}

/**
 * verbs_vi_alloc - allocate a VI without an identifier
 * @pair: see struct sovia_provider::connect
 * @attr: see there
 * @hello: see there
 * @client: see there
 * @context: see there
 *
 * Context: process, may sleep.
 * Return: the VI, or NULL.  Free it with verbs_vi_free().
 */
struct verbs_vi *verbs_vi_alloc(const struct sovia_pair *pair,
				const struct sovia_vi_attr *attr,
				const struct sovia_hello *hello,
				const struct sovia_vi_client *client, void *context)
{
	struct verbs_vi *v = kzalloc(sizeof(*v), GFP_KERNEL);

	if (!v)
		return NULL;
	sovia_object_inc(verbs_vis);
	v->vi.prov = &sovia_verbs_provider;
	v->vi.client = client;
	v->vi.context = context;
	v->vi.pair = *pair;
	v->vi.attr = *attr;
	v->hello = *hello;
	v->state = VERBS_CONNECTING;
	spin_lock_init(&v->lock);
	INIT_LIST_HEAD(&v->early_rx);
	INIT_LIST_HEAD(&v->rx_unposted);
	INIT_WORK(&v->setup_work, verbs_setup_work);
	INIT_WORK(&v->end_work, verbs_end_work);
	INIT_WORK(&v->finish_work, verbs_finish_work);
	INIT_WORK(&v->break_work, verbs_break_work);
	INIT_DELAYED_WORK(&v->drain_deadline, verbs_drain_late);
	INIT_WORK(&v->heard_work, verbs_heard_work);
	INIT_DELAYED_WORK(&v->fail_work, verbs_fail_work);
	INIT_DELAYED_WORK(&v->deadline, verbs_deadline_work);
	INIT_DELAYED_WORK(&v->refill_work, verbs_rx_refill_work);
	return v;
}

static void verbs_fail(struct sovia_vi *vi)
{
	queue_work(sovia_end_wq, &verbs_vi(vi)->break_work);
}

const struct sovia_provider sovia_verbs_provider = {
	.name		= "verbs",
	.stats		= SOVIA_STAT_verbs_tx_msgs,
	.introduced	= true,
	.rx_borrowed	= true,
	.reaches	= verbs_dev_reaches,
	.listen		= verbs_listen,
	.unlisten	= verbs_unlisten,
	.connect	= verbs_connect,
	.accept		= verbs_accept,
	.reject		= verbs_reject,
	.post_send	= verbs_post_send,
	.post_more	= verbs_post_more,
	.fail		= verbs_fail,
	.end		= verbs_end,
};

/**
 * sovia_verbs_init - register for the system's RDMA devices
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int sovia_verbs_init(void)
{
	return verbs_dev_init();
}

/**
 * sovia_verbs_exit - release all devices
 *
 * Every VI's end has been requested, every request answered and every namespace
 * unlistened before.
 *
 * Context: process, may sleep.
 */
void sovia_verbs_exit(void)
{
	verbs_dev_exit();
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/verbs_test.c"
#endif

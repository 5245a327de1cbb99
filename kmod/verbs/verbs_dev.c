// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: one protection domain each, and the completion queues that VIs share.
 *
 * A queue is polled by its own NAPI instance rather than by the RDMA core,
 * because recv(), poll() and epoll can busy poll NAPI instances.
 *
 * A device is added and removed by callbacks of the RDMA core.  This client is
 * registered after rdma_cm's, which the
 * module depends on, and clients are removed last in, first out: VIs and
 * their identifiers are destroyed before rdma_cm handles the removal.
 *
 * Removal: unlist the device, so that no VI can be attached any more; close its
 * VIs; wait until the client has destroyed them; free.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/completion.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "compat/netdevice.h"
#include "param.h"
#include "verbs.h"

/* Size of a shared completion queue; more only if a single VI needs more. */
#define VERBS_CQ_SIZE	4096

/* In addition to its descriptors a VI needs room for the two that drain it. */
#define VERBS_CQ_SPARE	4

/* More would only waste memory. */
#define VERBS_CQS_MAX	64

static unsigned int verbs_cqs = 1;
sovia_param(cqs, verbs_cqs, 1, VERBS_CQS_MAX, 0444);
MODULE_PARM_DESC(cqs, "completion queues per device, lanes are spread over them, 1-64 (1)");

/**
 * struct verbs_dev - an RDMA device
 * @entry: in verbs_devs
 * @ibdev: the device
 * @pd: its protection domain; only the local key is used, no memory is registered
 * @napi_dev: a dummy network device, required by NAPI
 * @cqs: struct verbs_cq
 * @num_cqs: length of @cqs
 * @vis: struct verbs_vi attached to it
 * @removed: the device is being removed
 * @idle: @removed is set and @vis is empty
 *
 * Protected by verbs_dev_lock.
 */
struct verbs_dev {
	struct list_head	entry;
	struct ib_device	*ibdev;
	struct ib_pd		*pd;
	struct net_device	*napi_dev;
	struct list_head	cqs;
	unsigned int		num_cqs;
	struct list_head	vis;
	bool			removed;
	struct completion	idle;
};

static struct ib_client verbs_ib_client;
static DEFINE_MUTEX(verbs_dev_lock);	/* "the device lock" */
static LIST_HEAD(verbs_devs);

/**
 * verbs_dev_pd - protection domain of a device
 * @dev: device that a VI of the caller is attached to
 */
struct ib_pd *verbs_dev_pd(const struct verbs_dev *dev)
{
	return dev->pd;
}

static struct verbs_dev *verbs_dev_find(const struct ib_device *ibdev)
{
	struct verbs_dev *dev;

	lockdep_assert_held(&verbs_dev_lock);
	list_for_each_entry(dev, &verbs_devs, entry)
		if (dev->ibdev == ibdev)
			return dev;
	return NULL;
}

/* ---- completion queues ---- */

static void verbs_cq_event(struct ib_cq *ibcq, void *context)
{
	struct verbs_cq *cq = context;

	napi_schedule(&cq->napi);
}

static int verbs_cq_poll(struct napi_struct *napi, int budget)
{
	struct verbs_cq *cq = container_of(napi, struct verbs_cq, napi);
	/* With IB_POLL_DIRECT the caller polls; NAPI ensures a single one. */
	int done = ib_process_cq_direct(cq->cq, budget);

	/* While a program spins there are no events; else look again for lost ones. */
	if (done < budget && napi_complete_done(napi, done) &&
	    ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		napi_schedule(napi);
	return done;
}

static struct verbs_cq *verbs_cq_create(struct verbs_dev *dev, unsigned int need)
{
	unsigned int limit = max(dev->ibdev->attrs.max_cqe, 0);
	const struct ib_cq_init_attr attr = {
		.cqe = min(max_t(unsigned int, need, VERBS_CQ_SIZE), limit),
		.comp_vector = dev->num_cqs % max(dev->ibdev->num_comp_vectors, 1),
	};
	struct verbs_cq *cq;

	if (need > limit)
		return ERR_PTR(-ENOSPC);

	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->size = attr.cqe;
	cq->cq = ib_create_cq(dev->ibdev, verbs_cq_event, NULL, cq, &attr);
	if (IS_ERR(cq->cq)) {
		int err = PTR_ERR(cq->cq);

		kfree(cq);
		return ERR_PTR(err);
	}
	/* ib_create_cq() set IB_POLL_DIRECT; ib_drain_qp() would poll concurrently with NAPI. */
	cq->cq->poll_ctx = IB_POLL_SOFTIRQ;
	netif_napi_add(dev->napi_dev, &cq->napi, verbs_cq_poll);
	napi_enable(&cq->napi);
	ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	list_add_tail(&cq->entry, &dev->cqs);
	dev->num_cqs++;
	return cq;
}

/* The least used queue that has room. */
static struct verbs_cq *verbs_cq_find(struct verbs_dev *dev, unsigned int need)
{
	struct verbs_cq *cq, *best = NULL;

	list_for_each_entry(cq, &dev->cqs, entry)
		if (cq->size - cq->used >= need && (!best || cq->used < best->used))
			best = cq;
	return best;
}

static struct verbs_cq *verbs_cq_get(struct verbs_dev *dev, unsigned int need)
{
	struct verbs_cq *cq = verbs_cq_find(dev, need);
	struct verbs_cq *new;

	if (cq && (!cq->used || dev->num_cqs >= verbs_cqs))
		return cq;
	new = verbs_cq_create(dev, need);
	/* fewer queues than wanted suffice, too */
	if (IS_ERR(new) && cq)
		return cq;
	return new;
}

static void verbs_cqs_free(struct verbs_dev *dev)
{
	struct verbs_cq *cq, *next;

	list_for_each_entry_safe(cq, next, &dev->cqs, entry) {
		napi_disable(&cq->napi);
		ib_destroy_cq(cq->cq);
		/* Waits for busy pollers that may have looked up its NAPI ID. */
		netif_napi_del(&cq->napi);
		kfree(cq);
	}
}

/* ---- VIs ---- */

/**
 * verbs_dev_attach - give a VI its device and room in a completion queue
 * @v: VI without a device
 * @ibdev: device that rdma_cm has chosen
 *
 * Context: process, may sleep; holds the handler mutex of the VI's identifier.
 * Return: 0, -ENODEV if the device is going away or cannot carry VIs, -ENOSPC,
 * -ENOMEM or the driver's errno.
 */
int verbs_dev_attach(struct verbs_vi *v, struct ib_device *ibdev)
{
	unsigned int need = v->vi.attr.send_depth + verbs_rx_depth(v) + VERBS_CQ_SPARE;
	struct verbs_dev *dev;
	struct verbs_cq *cq;
	int err = -ENODEV;

	mutex_lock(&verbs_dev_lock);
	dev = verbs_dev_find(ibdev);
	if (!dev)
		goto unlock;
	cq = verbs_cq_get(dev, need);
	err = PTR_ERR_OR_ZERO(cq);
	if (err)
		goto unlock;
	cq->used += need;
	v->cq = cq;
	v->cqes = need;
	v->dev = dev;
	list_add_tail(&v->dev_entry, &dev->vis);
unlock:
	mutex_unlock(&verbs_dev_lock);
	return err;
}

/**
 * verbs_dev_detach - undo verbs_dev_attach()
 * @v: VI without a queue pair, attached or not
 *
 * After this the device may be freed.  Waits for the closed upcall of a removal
 * in progress.
 *
 * Context: process, may sleep.
 */
void verbs_dev_detach(struct verbs_vi *v)
{
	struct verbs_dev *dev = v->dev;

	if (!dev)
		return;
	mutex_lock(&verbs_dev_lock);
	list_del(&v->dev_entry);
	v->cq->used -= v->cqes;
	v->dev = NULL;
	if (dev->removed && list_empty(&dev->vis))
		complete(&dev->idle);
	mutex_unlock(&verbs_dev_lock);
}

/**
 * verbs_dev_has_netdev - has_netdev of struct sovia_provider
 * @ndev: see there
 *
 * Context: any.
 * Return: see there.
 */
bool verbs_dev_has_netdev(struct net_device *ndev)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);

	if (!ibdev)
		return false;
	ib_device_put(ibdev);
	return true;
}

/* ---- the RDMA core's callbacks ---- */

static bool verbs_dev_usable(struct ib_device *ibdev)
{
	u32 port;

	rdma_for_each_port(ibdev, port)
		if (rdma_cap_ib_cm(ibdev, port) || rdma_cap_iw_cm(ibdev, port))
			return true;
	return false;
}

static void verbs_dev_free(struct verbs_dev *dev)
{
	if (!IS_ERR_OR_NULL(dev->pd))
		ib_dealloc_pd(dev->pd);
	if (dev->napi_dev)
		free_netdev(dev->napi_dev);
	kfree(dev);
}

static int verbs_dev_add(struct ib_device *ibdev)
{
	struct verbs_dev *dev;

	if (!verbs_dev_usable(ibdev))
		return -EOPNOTSUPP;
	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->napi_dev = alloc_netdev_dummy(0);
	if (!dev->napi_dev) {
		verbs_dev_free(dev);
		return -ENOMEM;
	}
	dev->pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(dev->pd)) {
		int err = PTR_ERR(dev->pd);

		pr_warn("%s: cannot allocate a PD: %d\n", dev_name(&ibdev->dev), err);
		verbs_dev_free(dev);
		return err;
	}
	dev->ibdev = ibdev;
	INIT_LIST_HEAD(&dev->cqs);
	INIT_LIST_HEAD(&dev->vis);
	init_completion(&dev->idle);
	ib_set_client_data(ibdev, &verbs_ib_client, dev);

	mutex_lock(&verbs_dev_lock);
	list_add_tail(&dev->entry, &verbs_devs);
	mutex_unlock(&verbs_dev_lock);
	return 0;
}

/* Takes the device off the list and closes its VIs.  Are there any? */
static bool verbs_dev_close_vis(struct verbs_dev *dev)
{
	struct verbs_vi *v;
	bool any;

	mutex_lock(&verbs_dev_lock);
	list_del(&dev->entry);
	dev->removed = true;
	list_for_each_entry(v, &dev->vis, dev_entry)
		verbs_vi_die(v, -ENODEV);
	any = !list_empty(&dev->vis);
	mutex_unlock(&verbs_dev_lock);
	return any;
}

static void verbs_dev_remove(struct ib_device *ibdev, void *data)
{
	struct verbs_dev *dev = data;

	if (verbs_dev_close_vis(dev))
		while (!wait_for_completion_timeout(&dev->idle, 30 * HZ))
			pr_warn("%s: device removal blocked by active links\n",
				dev_name(&ibdev->dev));
	verbs_cqs_free(dev);
	verbs_dev_free(dev);
}

static struct ib_client verbs_ib_client = {
	.name	= "sovia",
	.add	= verbs_dev_add,
	.remove	= verbs_dev_remove,
};

/**
 * verbs_dev_init - register for the system's devices
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno.
 */
int verbs_dev_init(void)
{
	return ib_register_client(&verbs_ib_client);
}

/**
 * verbs_dev_exit - release all devices
 *
 * Every VI has been destroyed before.
 *
 * Context: process, may sleep.
 */
void verbs_dev_exit(void)
{
	ib_unregister_client(&verbs_ib_client);
}

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
 * VIs; wait until the client has ended them; free.  A VI whose queue pair does not drain is
 * not waited for: its queue pair is destroyed, after which the device accesses nothing of it,
 * then the completion queues, after which no handler runs, then the rest.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "compat/list.h"
#include "compat/netdevice.h"
#include "debug/objcount.h"
#include "param.h"
#include "verbs.h"
#include "work.h"

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
 * @entry: in verbs_devs, protected by verbs_devs_lock
 * @kref: one until it is removed, one for each VI
 * @cq_lock: held while a completion queue is made; outside @lock, which is not held over
 *	that: a driver may take long, or for ever
 * @lock: the device lock, protects what follows @napi_dev, except @failed and @fail_work
 * @ibdev: the device
 * @pd: its protection domain; only the local key is used, no memory is registered
 * @napi_dev: a dummy network device, required by NAPI
 * @cqs: struct verbs_cq
 * @num_cqs: length of @cqs
 * @vis: struct verbs_vi attached to it
 * @stuck: those in quarantine; while there are any, no other is attached
 * @removed: the device is being removed
 * @failed: it has reported that a completion queue does not work any more: no VI is attached
 * @fail_work: closes its VIs then
 * @idle: @removed is set and @vis has become empty; it may fill again from @stuck
 */
struct verbs_dev {
	struct list_head	entry;
	struct kref		kref;
	struct mutex		cq_lock;	/* see above */
	struct mutex		lock;		/* see above */
	struct ib_device	*ibdev;
	struct ib_pd		*pd;
	struct net_device	*napi_dev;
	struct list_head	cqs;
	unsigned int		num_cqs;
	struct list_head	vis;
	struct list_head	stuck;
	bool			removed;
	bool			failed;
	struct work_struct	fail_work;
	struct completion	idle;
};

static struct ib_client verbs_ib_client;
static DEFINE_MUTEX(verbs_devs_lock);	/* protects verbs_devs; never held over a driver's call */
static LIST_HEAD(verbs_devs);

/**
 * verbs_dev_pd - protection domain of a device
 * @dev: device that a VI of the caller is attached to
 */
struct ib_pd *verbs_dev_pd(const struct verbs_dev *dev)
{
	return dev->pd;
}

static void verbs_dev_kfree(struct kref *kref)
{
	kfree(container_of(kref, struct verbs_dev, kref));
}

/* With a reference, or NULL. */
static struct verbs_dev *verbs_dev_find(const struct ib_device *ibdev)
{
	struct verbs_dev *dev, *found = NULL;

	mutex_lock(&verbs_devs_lock);
	list_for_each_entry(dev, &verbs_devs, entry)
		if (dev->ibdev == ibdev) {
			kref_get(&dev->kref);
			found = dev;
			break;
		}
	mutex_unlock(&verbs_devs_lock);
	return found;
}

/* The device with the lowest index from @index on, with a reference, or NULL. */
static struct verbs_dev *verbs_dev_from(const struct net *net, u32 index)
{
	struct verbs_dev *dev, *found = NULL;

	mutex_lock(&verbs_devs_lock);
	list_for_each_entry(dev, &verbs_devs, entry)
		if (dev->ibdev->index >= index &&
		    (!found || dev->ibdev->index < found->ibdev->index) &&
		    rdma_dev_access_netns(dev->ibdev, net))
			found = dev;
	if (found)
		kref_get(&found->kref);
	mutex_unlock(&verbs_devs_lock);
	return found;
}

/* False if it has been removed. */
static bool verbs_dev_show(struct verbs_dev *dev, u32 *index, struct sovia_device_info *info)
{
	bool shown;

	mutex_lock(&dev->lock);
	shown = !dev->removed;
	if (shown) {
		*index = dev->ibdev->index;
		strscpy(info->name, dev_name(&dev->ibdev->dev), sizeof(info->name));
		info->vis = list_count_nodes(&dev->vis);
		info->stuck = list_count_nodes(&dev->stuck);
		info->cqs = dev->num_cqs;
	}
	mutex_unlock(&dev->lock);
	return shown;
}

/**
 * sovia_verbs_device_from() - go through the devices of a namespace
 * @net: the namespace
 * @index: 0, or one more than the last device's; set to this one's
 * @info: filled in
 *
 * Context: process, may sleep.
 * Return: false if there are no more.
 */
bool sovia_verbs_device_from(const struct net *net, u32 *index, struct sovia_device_info *info)
{
	struct verbs_dev *dev;
	bool shown = false;

	while (!shown) {
		dev = verbs_dev_from(net, *index);
		if (!dev)
			return false;
		/* A removed one is not listed any more. */
		shown = verbs_dev_show(dev, index, info);
		kref_put(&dev->kref, verbs_dev_kfree);
	}
	return true;
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

/* Completions may have been lost, and VIs would wait for them. */
static void verbs_fail_vis(struct work_struct *work)
{
	struct verbs_dev *dev = container_of(work, struct verbs_dev, fail_work);
	struct verbs_vi *v;

	mutex_lock(&dev->lock);
	list_for_each_entry(v, &dev->vis, dev_entry)
		verbs_vi_die(v, -EIO);
	mutex_unlock(&dev->lock);
}

/* An event that is not a completion: the queue has overrun, or the device cannot access it. */
static void verbs_cq_failed(struct ib_event *event, void *context)
{
	struct verbs_cq *cq = context;
	struct verbs_dev *dev = cq->dev;

	if (event->event != IB_EVENT_CQ_ERR)
		return;
	pr_err_ratelimited("%s: a completion queue has failed, device not used until it is removed\n",
			   dev_name(&event->device->dev));
	WRITE_ONCE(dev->failed, true);
	/* may be a hard interrupt */
	queue_work(sovia_end_wq, &dev->fail_work);
}

static struct verbs_cq *verbs_cq_create(struct verbs_dev *dev, unsigned int vector,
					unsigned int need)
{
	unsigned int limit = max(dev->ibdev->attrs.max_cqe, 0);
	const struct ib_cq_init_attr attr = {
		.cqe = min(max_t(unsigned int, need, VERBS_CQ_SIZE), limit),
		.comp_vector = vector % max(dev->ibdev->num_comp_vectors, 1),
	};
	struct verbs_cq *cq;

	if (need > limit) {
		pr_warn_ratelimited("%s: max_cqe %u too small, a link needs %u\n",
				    dev_name(&dev->ibdev->dev), limit, need);
		return ERR_PTR(-ENOSPC);
	}
	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->dev = dev;
	cq->size = attr.cqe;
	cq->cq = ib_create_cq(dev->ibdev, verbs_cq_event, verbs_cq_failed, cq, &attr);
	if (IS_ERR(cq->cq)) {
		int err = PTR_ERR(cq->cq);

		kfree(cq);
		return ERR_PTR(err);
	}
	netif_napi_add(dev->napi_dev, &cq->napi, verbs_cq_poll);
	napi_enable(&cq->napi);
	ib_req_notify_cq(cq->cq, IB_CQ_NEXT_COMP);
	return cq;
}

/* The least used queue that has room. */
static struct verbs_cq *verbs_cq_find(struct verbs_dev *dev, unsigned int need)
{
	struct verbs_cq *cq, *best = NULL;

	lockdep_assert_held(&dev->lock);
	list_for_each_entry(cq, &dev->cqs, entry)
		if (cq->size - cq->used >= need && (!best || cq->used < best->used))
			best = cq;
	return best;
}

/* Is another queue to be made, as @best is NULL, or used while there may be more? */
static bool verbs_cq_is_wanted(const struct verbs_dev *dev, const struct verbs_cq *best)
{
	return !best || (best->used && dev->num_cqs < verbs_cqs);
}

/* Returns 0, or -ENODEV if no VI is to be attached. */
static int verbs_dev_check(const struct verbs_dev *dev)
{
	return dev->removed || READ_ONCE(dev->failed) || !list_empty(&dev->stuck) ? -ENODEV : 0;
}

/*
 * See to it that there is a queue with room.  Returns 0 or a negative errno; 0, too, if fewer
 * queues than wanted suffice.
 */
static int verbs_cq_provide(struct verbs_dev *dev, unsigned int need)
{
	struct verbs_cq *best, *cq;
	unsigned int vector;
	bool wanted;
	int err;

	/* Removal waits for us: see verbs_dev_close_vis(). */
	lockdep_assert_held(&dev->cq_lock);
	mutex_lock(&dev->lock);
	err = verbs_dev_check(dev);
	best = verbs_cq_find(dev, need);
	wanted = verbs_cq_is_wanted(dev, best);
	vector = dev->num_cqs;
	mutex_unlock(&dev->lock);
	if (err || !wanted)
		return err;
	cq = verbs_cq_create(dev, vector, need);
	if (IS_ERR(cq))
		return best ? 0 : PTR_ERR(cq);
	mutex_lock(&dev->lock);
	list_add_tail(&cq->entry, &dev->cqs);
	dev->num_cqs++;
	mutex_unlock(&dev->lock);
	return 0;
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

static int verbs_dev_add_vi(struct verbs_dev *dev, struct verbs_vi *v, unsigned int need)
{
	struct verbs_cq *cq;
	int err;

	lockdep_assert_held(&dev->lock);
	err = verbs_dev_check(dev);
	if (err)
		return err;
	/* It has room still, as none but the holder of cq_lock takes any. */
	cq = verbs_cq_find(dev, need);
	cq->used += need;
	v->cq = cq;
	v->cqes = need;
	v->dev = dev;
	list_add_tail(&v->dev_entry, &dev->vis);
	return 0;
}

/**
 * verbs_dev_attach - give a VI its device and room in a completion queue
 * @v: VI without a device
 * @ibdev: device that rdma_cm has chosen
 *
 * Context: process, may sleep; holds the handler mutex of the VI's identifier.
 * Return: 0, -ENODEV if the device is going away, cannot carry VIs or is broken, -ENOSPC,
 * -ENOMEM or the driver's errno.
 */
int verbs_dev_attach(struct verbs_vi *v, struct ib_device *ibdev)
{
	unsigned int need = v->vi.attr.send_depth + verbs_rx_depth(v) + VERBS_CQ_SPARE;
	struct verbs_dev *dev = verbs_dev_find(ibdev);
	int err;

	if (!dev)
		return -ENODEV;
	mutex_lock(&dev->cq_lock);
	err = verbs_cq_provide(dev, need);
	if (!err) {
		mutex_lock(&dev->lock);
		err = verbs_dev_add_vi(dev, v, need);
		mutex_unlock(&dev->lock);
	}
	mutex_unlock(&dev->cq_lock);
	/* Otherwise the VI has the reference. */
	if (err)
		kref_put(&dev->kref, verbs_dev_kfree);
	return err;
}

/* @v has left a list: let the removal go on if it was the last. */
static void verbs_dev_left(struct verbs_dev *dev)
{
	lockdep_assert_held(&dev->lock);
	if (dev->removed && list_empty(&dev->vis))
		complete(&dev->idle);
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
	mutex_lock(&dev->lock);
	v->dev = NULL;
	/* The completion queues of an abandoned one are gone. */
	if (!v->abandoned) {
		list_del(&v->dev_entry);
		v->cq->used -= v->cqes;
		verbs_dev_left(dev);
	}
	mutex_unlock(&dev->lock);
	kref_put(&dev->kref, verbs_dev_kfree);
}

/**
 * verbs_dev_quarantine - the queue pair of a VI does not drain: its device is broken
 * @v: VI that is ending
 *
 * The VI keeps everything, because the device may still access it, until a late completion
 * or the removal of the device.  The latter does not wait for it.
 *
 * Context: process, may sleep.
 */
void verbs_dev_quarantine(struct verbs_vi *v)
{
	struct verbs_dev *dev = v->dev;

	pr_err("%s: link to %pI6c does not drain, device not used until it does, or is removed\n",
	       dev_name(&dev->ibdev->dev), &v->vi.pair.remote);
	sovia_object_inc(stuck_vis);
	mutex_lock(&dev->lock);
	v->stuck = true;
	list_move_tail(&v->dev_entry, &dev->stuck);
	verbs_dev_left(dev);
	mutex_unlock(&dev->lock);
}

/**
 * verbs_dev_release - a VI has drained, in time or late
 * @v: VI that is ending
 *
 * Context: process, may sleep.
 * Return: false if the removal of its device frees it.
 */
bool verbs_dev_release(struct verbs_vi *v)
{
	struct verbs_dev *dev = v->dev;
	bool ours;

	mutex_lock(&dev->lock);
	ours = !v->abandoned;
	if (ours && v->stuck) {
		v->stuck = false;
		list_move_tail(&v->dev_entry, &dev->vis);
		sovia_object_dec(stuck_vis);
	}
	mutex_unlock(&dev->lock);
	return ours;
}

static int verbs_is_netdev(struct net_device *ndev, struct netdev_nested_priv *unused)
{
	struct ib_device *ibdev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);

	if (!ibdev)
		return 0;
	ib_device_put(ibdev);
	return 1;
}

/**
 * verbs_dev_has_netdev - has_netdev of struct sovia_provider
 * @ndev: see there; it may be a VLAN or a bond above the RDMA device's, or IPoIB's
 *
 * Context: under RCU.
 * Return: see there.
 */
bool verbs_dev_has_netdev(struct net_device *ndev)
{
	struct netdev_nested_priv none = {};

	return ndev->type == ARPHRD_INFINIBAND || verbs_is_netdev(ndev, &none) ||
	       netdev_walk_all_lower_dev_rcu(ndev, verbs_is_netdev, &none);
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
	kref_put(&dev->kref, verbs_dev_kfree);
}

/* Without a protection domain, and not listed.  Returns NULL if there is no memory. */
static struct verbs_dev *verbs_dev_alloc(struct ib_device *ibdev)
{
	struct verbs_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);

	if (!dev)
		return NULL;
	kref_init(&dev->kref);
	mutex_init(&dev->cq_lock);
	mutex_init(&dev->lock);
	INIT_WORK(&dev->fail_work, verbs_fail_vis);
	dev->ibdev = ibdev;
	INIT_LIST_HEAD(&dev->cqs);
	INIT_LIST_HEAD(&dev->vis);
	INIT_LIST_HEAD(&dev->stuck);
	init_completion(&dev->idle);
	dev->napi_dev = alloc_netdev_dummy(0);
	if (dev->napi_dev)
		return dev;
	verbs_dev_free(dev);
	return NULL;
}

static void verbs_dev_list(struct verbs_dev *dev)
{
	mutex_lock(&verbs_devs_lock);
	list_add_tail(&dev->entry, &verbs_devs);
	mutex_unlock(&verbs_devs_lock);
}

static int verbs_dev_add(struct ib_device *ibdev)
{
	struct verbs_dev *dev;

	if (!verbs_dev_usable(ibdev))
		return -EOPNOTSUPP;
	dev = verbs_dev_alloc(ibdev);
	if (!dev)
		return -ENOMEM;
	dev->pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(dev->pd)) {
		int err = PTR_ERR(dev->pd);

		pr_warn("%s: cannot allocate a PD: %d\n", dev_name(&ibdev->dev), err);
		verbs_dev_free(dev);
		return err;
	}
	ib_set_client_data(ibdev, &verbs_ib_client, dev);
	verbs_dev_list(dev);
	return 0;
}

/* Takes the device off the list and closes its VIs.  No queue is made any more after this. */
static void verbs_dev_close_vis(struct verbs_dev *dev)
{
	struct verbs_vi *v;

	mutex_lock(&verbs_devs_lock);
	list_del(&dev->entry);
	mutex_unlock(&verbs_devs_lock);
	mutex_lock(&dev->lock);
	dev->removed = true;
	list_for_each_entry(v, &dev->vis, dev_entry)
		verbs_vi_die(v, -ENODEV);
	mutex_unlock(&dev->lock);
	/* One that is being made is waited for. */
	mutex_lock(&dev->cq_lock);
	mutex_unlock(&dev->cq_lock);
}

/*
 * If no other VI is attached, those in quarantine belong to the removal from here on: a late
 * completion changes nothing.  Until then it puts its VI back among the others.
 */
static bool verbs_dev_abandon(struct verbs_dev *dev, struct list_head *stuck)
{
	struct verbs_vi *v;
	bool idle;

	mutex_lock(&dev->lock);
	idle = list_empty(&dev->vis);
	if (idle)
		list_splice_init(&dev->stuck, stuck);
	list_for_each_entry(v, stuck, dev_entry)
		v->abandoned = true;
	mutex_unlock(&dev->lock);
	return idle;
}

static void verbs_dev_free_stuck(struct list_head *stuck)
{
	struct verbs_vi *v, *next;

	list_for_each_entry_safe(v, next, stuck, dev_entry) {
		sovia_object_dec(stuck_vis);
		verbs_vi_abandon(v);
	}
}

static void verbs_dev_remove(struct ib_device *ibdev, void *data)
{
	struct verbs_dev *dev = data;
	LIST_HEAD(stuck);
	struct verbs_vi *v;

	verbs_dev_close_vis(dev);
	while (!verbs_dev_abandon(dev, &stuck))
		if (!wait_for_completion_timeout(&dev->idle, 30 * HZ))
			pr_warn("%s: device removal blocked by active links\n",
				dev_name(&ibdev->dev));
	list_for_each_entry(v, &stuck, dev_entry)
		rdma_destroy_qp(v->id);
	verbs_cqs_free(dev);
	cancel_work_sync(&dev->fail_work);
	verbs_dev_free_stuck(&stuck);
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
 * Every VI's end has been requested before.
 *
 * Context: process, may sleep.
 */
void verbs_dev_exit(void)
{
	ib_unregister_client(&verbs_ib_client);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/verbs_dev_test.c"
#endif

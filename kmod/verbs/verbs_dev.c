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
#include <linux/if_vlan.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "compat/list.h"
#include "compat/netdevice.h"
#include "core/objcount.h"
#include "core/page.h"
#include "core/param.h"
#include "core/work.h"
#include "verbs.h"

/* Size of a shared completion queue; more only if a single VI needs more. */
#define VERBS_CQ_SIZE	4096

/* In addition to its descriptors a VI needs room for the two that drain it. */
#define VERBS_CQ_SPARE	4

/* More would only waste memory. */
#define VERBS_CQS_MAX	64

/* Queue pairs that do not drain before the device counts as broken: each keeps its memory. */
#define VERBS_STUCK	8

/* Of all devices: their interrupts are spread over processors together. */
static atomic_t verbs_vector = ATOMIC_INIT(-1);

static unsigned int verbs_cqs = 1;
sovia_param(cqs, verbs_cqs, 1, VERBS_CQS_MAX, 0444);
MODULE_PARM_DESC(cqs, "completion queues per device, lanes are spread over them, 1-64 (1)");

enum {
	VERBS_NS_NEVER,
	VERBS_NS_MOVED,
	VERBS_NS_SHARED,
};

static unsigned int verbs_namespaces = VERBS_NS_MOVED;
sovia_param(verbs_namespaces, verbs_namespaces, VERBS_NS_NEVER, VERBS_NS_SHARED, 0444);
MODULE_PARM_DESC(verbs_namespaces, "RDMA devices in other network namespaces than the first: 0 none, 1 those moved there, 2 shared ones, too (1)");

/**
 * struct verbs_dev - an RDMA device
 * @entry: in verbs_devs, protected by verbs_devs_lock; readers use RCU
 * @rcu: readers find it in the list
 * @kref: one until it is removed, one for each VI
 * @cq_lock: held while completion queues are made or freed; outside @lock, which is not held over
 *	that: a driver may take long, or for ever
 * @lock: the device lock, protects what follows @napi_dev, except @failed and @fail_work
 * @ibdev: the device
 * @pd: its protection domain; only the local key is used, no memory is registered
 * @mapped: pages that stay mapped for it, or NULL
 * @max_inline: bytes of a message that a queue pair can have inline, as far as they are of use
 * @events: the device's events
 * @napi_dev: a dummy network device, required by NAPI
 * @cqs: struct verbs_cq
 * @num_cqs: length of @cqs
 * @vis: struct verbs_vi attached to it
 * @stuck: those in quarantine; while there are VERBS_STUCK, no other is attached
 * @num_stuck: length of @stuck; read without the lock, too
 * @removed: the device is being removed
 * @failed: it has reported that a completion queue does not work any more: no VI is attached
 * @fail_work: closes its VIs then
 * @idle: @removed is set and @vis has become empty; it may fill again from @stuck
 */
struct verbs_dev {
	struct list_head	entry;
	struct rcu_head		rcu;
	struct kref		kref;
	struct mutex		cq_lock;	/* see above */
	struct mutex		lock;		/* see above */
	struct ib_device	*ibdev;
	struct ib_pd		*pd;
	struct sovia_mapped	*mapped;
	unsigned int		max_inline;
	struct ib_event_handler	events;
	struct net_device	*napi_dev;
	struct list_head	cqs;
	unsigned int		num_cqs;
	struct list_head	vis;
	struct list_head	stuck;
	unsigned int		num_stuck;
	bool			removed;
	bool			failed;
	struct work_struct	fail_work;
	struct completion	idle;
};

static struct ib_client verbs_ib_client;
static DEFINE_MUTEX(verbs_devs_lock);	/* protects verbs_devs; never held over a driver's call */
static LIST_HEAD(verbs_devs);
static BLOCKING_NOTIFIER_HEAD(verbs_chain);

/**
 * verbs_dev_pd - protection domain of a device
 * @dev: device that a VI of the caller is attached to
 */
struct ib_pd *verbs_dev_pd(const struct verbs_dev *dev)
{
	return dev->pd;
}

/**
 * verbs_dev_mapped - pages that stay mapped for a device
 * @dev: device that a VI of the caller is attached to
 *
 * Context: any.
 * Return: their pools, or NULL.
 */
struct sovia_mapped *verbs_dev_mapped(const struct verbs_dev *dev)
{
	return dev->mapped;
}

/**
 * verbs_dev_max_inline - how many bytes a queue pair can have inline
 * @dev: device that a VI of the caller is attached to
 */
unsigned int verbs_dev_max_inline(const struct verbs_dev *dev)
{
	return dev->max_inline;
}

static void verbs_dev_kfree(struct kref *kref)
{
	kfree_rcu(container_of(kref, struct verbs_dev, kref), rcu);
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

/**
 * verbs_dev_serves - may a network namespace have VIs on a device
 * @ibdev: the device
 * @net: the namespace
 *
 * RDMA bypasses the policy of the host for its containers' interfaces, and the kernel's queue
 * pairs are in no control group: so only with a device that the administrator has moved into the
 * namespace, unless verbs_namespaces says otherwise.  The initial one may have what the core gives
 * it.
 *
 * Context: any.
 * Return: true if so.
 */
bool verbs_dev_serves(struct ib_device *ibdev, const struct net *net)
{
	if (!rdma_dev_access_netns(ibdev, net))
		return false;
	return net_eq(net, &init_net) || verbs_namespaces == VERBS_NS_SHARED ||
	       (verbs_namespaces == VERBS_NS_MOVED &&
		net_eq(read_pnet(&ibdev->coredev.rdma_net), net));
}

/**
 * verbs_devs_serve - is there a device that a network namespace may have VIs on
 * @net: the namespace
 *
 * Context: process, may sleep.
 * Return: true if so.
 */
bool verbs_devs_serve(const struct net *net)
{
	struct verbs_dev *dev;
	bool found = false;

	mutex_lock(&verbs_devs_lock);
	list_for_each_entry(dev, &verbs_devs, entry)
		found |= verbs_dev_serves(dev->ibdev, net);
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
		    verbs_dev_serves(dev->ibdev, net))
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
		info->stuck = dev->num_stuck;
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

/*
 * Nothing is polled until verbs_cq_disown().  Not napi_disable(): since Linux 6.14 two of them
 * would wait for each other, and since 6.13 the queue would have another NAPI ID afterwards.
 */
static void verbs_cq_own(struct verbs_cq *cq)
{
	/* One that is polled already would be polled again for each look. */
	while (test_bit(NAPI_STATE_SCHED, &cq->napi.state) || !napi_schedule_prep(&cq->napi))
		usleep_range(20, 200);
}

/* Schedule the poll: completions may have come while it was owned. */
static void verbs_cq_disown(struct verbs_cq *cq)
{
	local_bh_disable();
	__napi_schedule(&cq->napi);
	local_bh_enable();
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

/* As many as there are processors to take them. */
static int verbs_next_vector(const struct ib_device *ibdev)
{
	unsigned int count = min_t(unsigned int, ibdev->num_comp_vectors, num_online_cpus());

	return (unsigned int)atomic_inc_return(&verbs_vector) % max(count, 1U);
}

static struct verbs_cq *verbs_cq_create(struct verbs_dev *dev, unsigned int need)
{
	unsigned int limit = max(dev->ibdev->attrs.max_cqe, 0);
	const struct ib_cq_init_attr attr = {
		.cqe = min(max_t(unsigned int, need, VERBS_CQ_SIZE), limit),
		.comp_vector = verbs_next_vector(dev->ibdev),
	};
	struct verbs_cq *cq;

	if (need > limit) {
		pr_warn_ratelimited("%s: max_cqe %u too small, a link needs %u\n",
				    dev_name(&dev->ibdev->dev), limit, need);
		return ERR_PTR(-ENOSPC);
	}
	cq = kzalloc_node(sizeof(*cq), GFP_KERNEL, verbs_node(dev->ibdev));
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

/* Has it failed, or does it keep too much?  A hint without the device lock. */
static bool verbs_dev_is_broken(const struct verbs_dev *dev)
{
	return READ_ONCE(dev->failed) || READ_ONCE(dev->num_stuck) >= VERBS_STUCK;
}

/* Returns 0, or -ENODEV if no VI is to be attached. */
static int verbs_dev_check(struct verbs_dev *dev)
{
	return dev->removed || verbs_dev_is_broken(dev) ? -ENODEV : 0;
}

/*
 * See to it that there is a queue with room.  Returns 0 or a negative errno; 0, too, if fewer
 * queues than wanted suffice.
 */
static int verbs_cq_provide(struct verbs_dev *dev, unsigned int need)
{
	struct verbs_cq *best, *cq;
	bool wanted;
	int err;

	/* Removal waits for us: see verbs_dev_close_vis(). */
	lockdep_assert_held(&dev->cq_lock);
	mutex_lock(&dev->lock);
	err = verbs_dev_check(dev);
	best = verbs_cq_find(dev, need);
	wanted = verbs_cq_is_wanted(dev, best);
	mutex_unlock(&dev->lock);
	if (err || !wanted)
		return err;
	cq = verbs_cq_create(dev, need);
	if (IS_ERR(cq))
		return best ? 0 : PTR_ERR(cq);
	mutex_lock(&dev->lock);
	list_add_tail(&cq->entry, &dev->cqs);
	dev->num_cqs++;
	mutex_unlock(&dev->lock);
	return 0;
}

/* It is not polled any more. */
static void verbs_cq_free(struct verbs_cq *cq)
{
	ib_destroy_cq(cq->cq);
	/* Waits for busy pollers that may have looked up its NAPI ID. */
	netif_napi_del(&cq->napi);
	kfree(cq);
}

/* Nothing is polled after this: completions that are there stay. */
static void verbs_cqs_stop(struct verbs_dev *dev)
{
	struct verbs_cq *cq;

	list_for_each_entry(cq, &dev->cqs, entry)
		napi_disable(&cq->napi);
}

static void verbs_cqs_free(struct verbs_dev *dev)
{
	struct verbs_cq *cq, *next;

	list_for_each_entry_safe(cq, next, &dev->cqs, entry)
		verbs_cq_free(cq);
}

/* Of the queues without a VI, all but one are more than needed, if there are enough: takes one. */
static struct verbs_cq *verbs_cq_take_spare(struct verbs_dev *dev)
{
	struct verbs_cq *cq, *spare = NULL;
	unsigned int unused = 0;

	lockdep_assert_held(&dev->cq_lock);
	lockdep_assert_held(&dev->lock);
	if (dev->removed || dev->num_cqs <= verbs_cqs)
		return NULL;
	list_for_each_entry(cq, &dev->cqs, entry)
		if (!cq->used) {
			spare = cq;
			unused++;
		}
	if (unused < 2)
		return NULL;
	list_del(&spare->entry);
	dev->num_cqs--;
	return spare;
}

/* Many links may have been there once, each with its part of a queue. */
static void verbs_cqs_trim(struct verbs_dev *dev)
{
	struct verbs_cq *spare;

	/* While a queue is made, which may take long, the next VI that leaves does it. */
	if (!mutex_trylock(&dev->cq_lock))
		return;
	do {
		mutex_lock(&dev->lock);
		spare = verbs_cq_take_spare(dev);
		mutex_unlock(&dev->lock);
		if (spare) {
			napi_disable(&spare->napi);
			verbs_cq_free(spare);
		}
	} while (spare);
	/* Removal waits for us, too: see verbs_dev_close_vis(). */
	mutex_unlock(&dev->cq_lock);
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
	verbs_cqs_trim(dev);
	kref_put(&dev->kref, verbs_dev_kfree);
}

/**
 * verbs_dev_failed - has the device of a VI reported that it, or a completion queue, has failed
 * @v: VI that is attached
 *
 * Context: any.
 * Return: true if so: what is posted may never complete.
 */
bool verbs_dev_failed(const struct verbs_vi *v)
{
	return READ_ONCE(v->dev->failed);
}

/**
 * verbs_dev_quarantine - the queue pair of a VI does not drain: its device may be broken
 * @v: VI that is ending
 *
 * The VI keeps all memory that the device may still access, until a late completion or the
 * removal of the device.  The latter does not wait for it.  Nor do sockets: what they have sent is
 * reported now.
 *
 * Context: process, may sleep.
 */
void verbs_dev_quarantine(struct verbs_vi *v)
{
	struct verbs_dev *dev = v->dev;
	unsigned int count;

	sovia_object_inc(stuck_vis);
	verbs_cq_own(v->cq);
	verbs_tx_disown(v);
	verbs_cq_disown(v->cq);
	mutex_lock(&dev->lock);
	v->stuck = true;
	list_move_tail(&v->dev_entry, &dev->stuck);
	verbs_dev_left(dev);
	count = dev->num_stuck + 1;
	WRITE_ONCE(dev->num_stuck, count);
	mutex_unlock(&dev->lock);
	pr_err("%s: link to %pI6c does not drain%s\n", dev_name(&dev->ibdev->dev),
	       &v->vi.pair.remote, count < VERBS_STUCK ? "" :
	       ", nor do others: device not used until they do, or it is removed");
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
		WRITE_ONCE(dev->num_stuck, dev->num_stuck - 1);
		sovia_object_dec(stuck_vis);
	}
	mutex_unlock(&dev->lock);
	return ours;
}

/* ---- which addresses devices have ---- */

/* RoCE: the device's table of addresses has those of VLANs and bonds above its interface, too. */
static bool verbs_has_gid(struct ib_device *ibdev, u32 port, const struct in6_addr *addr,
			  struct net_device *ndev, enum ib_gid_type type)
{
	const struct ib_gid_attr *attr;

	attr = rdma_find_gid_by_port(ibdev, (const union ib_gid *)addr, type, port, ndev);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

/* iWARP: rdma_cm takes a device for its own interface, and for VLANs above that. */
static bool verbs_is_iwarp_of(struct ib_device *ibdev, struct net_device *ndev)
{
	struct ib_device *found;

	if (is_vlan_dev(ndev))
		ndev = vlan_dev_real_dev(ndev);
	found = ib_device_get_by_netdev(ndev, ibdev->ops.driver_id);
	if (found)
		ib_device_put(found);
	return found == ibdev;
}

static bool verbs_port_reaches(struct ib_device *ibdev, u32 port, const struct in6_addr *addr,
			       struct net_device *ndev)
{
	if (rdma_cap_iw_cm(ibdev, port))
		return verbs_is_iwarp_of(ibdev, ndev);
	if (!rdma_cap_ib_cm(ibdev, port))
		return false;
	if (rdma_protocol_ib(ibdev, port))
		return ndev->type == ARPHRD_INFINIBAND;
	return verbs_has_gid(ibdev, port, addr, ndev, IB_GID_TYPE_ROCE_UDP_ENCAP) ||
	       verbs_has_gid(ibdev, port, addr, ndev, IB_GID_TYPE_ROCE);
}

/**
 * verbs_dev_reaches - reaches of struct sovia_provider
 * @net: see there
 * @addr: see there
 * @ndev: see there; it may be a VLAN or a bond above the RDMA device's, or IPoIB's
 *
 * The answer is rdma_cm's: it chooses the device by the same tables.  Not all drivers tell the core
 * which interface is theirs, and some interfaces have a device that carries no VI.
 *
 * Context: under RCU.
 * Return: see there.
 */
bool verbs_dev_reaches(const struct net *net, const struct in6_addr *addr,
		       struct net_device *ndev)
{
	struct verbs_dev *dev;
	u32 port;

	list_for_each_entry_rcu(dev, &verbs_devs, entry) {
		if (verbs_dev_is_broken(dev) || !verbs_dev_serves(dev->ibdev, net))
			continue;
		rdma_for_each_port(dev->ibdev, port)
			if (verbs_port_reaches(dev->ibdev, port, addr, ndev))
				return true;
	}
	return false;
}

/* ---- events of a device ---- */

/**
 * sovia_verbs_watch() - have a notifier called when devices, ports or their addresses have come
 * @nb: the notifier
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int sovia_verbs_watch(struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&verbs_chain, nb);
}

/**
 * sovia_verbs_unwatch() - undo sovia_verbs_watch()
 * @nb: the notifier, which is not called any more when this returns
 *
 * Context: process.
 */
void sovia_verbs_unwatch(struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&verbs_chain, nb);
}

static void verbs_devices_changed(void)
{
	blocking_notifier_call_chain(&verbs_chain, 0, NULL);
}

/* Nothing that is posted completes but by software, which some drivers do when they are polled. */
static void verbs_dev_fatal(struct verbs_dev *dev)
{
	struct verbs_cq *cq;

	pr_err_ratelimited("%s: the device has failed, not used until it is removed\n",
			   dev_name(&dev->ibdev->dev));
	WRITE_ONCE(dev->failed, true);
	queue_work(sovia_end_wq, &dev->fail_work);
	mutex_lock(&dev->lock);
	local_bh_disable();
	list_for_each_entry(cq, &dev->cqs, entry)
		napi_schedule(&cq->napi);
	local_bh_enable();
	mutex_unlock(&dev->lock);
}

/* No message arrives until the port is active again, which may be soon. */
static void verbs_port_failed(struct verbs_dev *dev, u32 port)
{
	struct verbs_vi *v;

	mutex_lock(&dev->lock);
	list_for_each_entry(v, &dev->vis, dev_entry)
		if (v->port == port)
			verbs_vi_doubt(v);
	mutex_unlock(&dev->lock);
}

static void verbs_dev_event(struct ib_event_handler *events, struct ib_event *event)
{
	struct verbs_dev *dev = container_of(events, struct verbs_dev, events);

	switch (event->event) {
	case IB_EVENT_DEVICE_FATAL:
		verbs_dev_fatal(dev);
		break;
	case IB_EVENT_PORT_ERR:
		verbs_port_failed(dev, event->element.port_num);
		break;
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_GID_CHANGE:
		verbs_devices_changed();
		break;
	default:
		break;
	}
}

/* ---- what a device can do ---- */

/* Completions of a queue that no queue pair has posted to. */
static void verbs_trial_event(struct ib_cq *ibcq, void *context)
{
}

/* Returns 0 or a negative errno. */
static int verbs_trial_qp(struct verbs_dev *dev, struct ib_cq *cq, unsigned int max_inline)
{
	struct ib_qp_init_attr attr = {
		.send_cq	= cq,
		.recv_cq	= cq,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
		.cap.max_send_wr	= 2,
		.cap.max_recv_wr	= 2,
		.cap.max_send_sge	= 2,
		.cap.max_recv_sge	= 2,
		.cap.max_inline_data	= max_inline,
	};
	struct ib_qp *qp = ib_create_qp(dev->pd, &attr);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	dev->max_inline = min(attr.cap.max_inline_data, max_inline);
	ib_destroy_qp(qp);
	return 0;
}

/*
 * Can the device carry VIs, and with how much inline data?  Devices tell neither: some have no
 * queue pairs for the kernel, or too few pieces in a message.
 */
static int verbs_dev_try(struct verbs_dev *dev)
{
	static const unsigned int sizes[] = {
		VERBS_INLINE, 280, 256, VERBS_INLINE_LESS, 96, 64, sizeof(struct sovia_hdr), 0
	};
	const struct ib_cq_init_attr attr = { .cqe = 2 * 2 };
	const struct ib_device_attr *attrs = &dev->ibdev->attrs;
	struct ib_cq *cq;
	unsigned int i;
	int err = 0;

	if (min(attrs->max_send_sge, attrs->max_recv_sge) < 2)
		return -EOPNOTSUPP;
	cq = ib_create_cq(dev->ibdev, verbs_trial_event, NULL, dev, &attr);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		err = verbs_trial_qp(dev, cq, sizes[i]);
		if (!err)
			break;
	}
	ib_destroy_cq(cq);
	return err;
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
	sovia_mapped_destroy(dev->mapped);
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
	INIT_IB_EVENT_HANDLER(&dev->events, ibdev, verbs_dev_event);
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
	list_add_tail_rcu(&dev->entry, &verbs_devs);
	mutex_unlock(&verbs_devs_lock);
	ib_register_event_handler(&dev->events);
	verbs_devices_changed();
}

static int verbs_dev_add(struct ib_device *ibdev)
{
	struct verbs_dev *dev;
	int err;

	if (!verbs_dev_usable(ibdev))
		return -EOPNOTSUPP;
	dev = verbs_dev_alloc(ibdev);
	if (!dev)
		return -ENOMEM;
	dev->pd = ib_alloc_pd(ibdev, 0);
	if (IS_ERR(dev->pd)) {
		err = PTR_ERR(dev->pd);
		pr_warn("%s: cannot allocate a PD: %d\n", dev_name(&ibdev->dev), err);
		verbs_dev_free(dev);
		return err;
	}
	err = verbs_dev_try(dev);
	/* Others may pass: want of memory, or of queue pairs. */
	if (err == -EINVAL || err == -EOPNOTSUPP) {
		pr_notice("%s: not used, it has no queue pair for links: %pe\n",
			  dev_name(&ibdev->dev), ERR_PTR(err));
		verbs_dev_free(dev);
		return err;
	}
	if (!ib_uses_virt_dma(ibdev))
		dev->mapped = sovia_mapped_create(ibdev->dma_device);
	ib_set_client_data(ibdev, &verbs_ib_client, dev);
	verbs_dev_list(dev);
	return 0;
}

/* Takes the device off the list and closes its VIs.  No queue is made any more after this. */
static void verbs_dev_close_vis(struct verbs_dev *dev)
{
	struct verbs_vi *v;

	ib_unregister_event_handler(&dev->events);
	mutex_lock(&verbs_devs_lock);
	list_del_rcu(&dev->entry);
	mutex_unlock(&verbs_devs_lock);
	/* Readers of the list use the device. */
	synchronize_rcu();
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
	/* A driver may look at the queue pair of a completion. */
	verbs_cqs_stop(dev);
	list_for_each_entry(v, &stuck, dev_entry) {
		/* It has queued the deadline, and may not have returned. */
		flush_work(&v->end_work);
		cancel_delayed_work_sync(&v->refill_work);
		rdma_destroy_qp(v->id);
	}
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

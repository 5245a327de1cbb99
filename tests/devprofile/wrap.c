// SPDX-License-Identifier: GPL-2.0-only
/*
 * What replaces the operations of a device.
 *
 * What user space makes passes as it is: profiles are about the kernel's users.
 */
#include <linux/delay.h>
#include <linux/minmax.h>
#include <linux/version.h>
#include <rdma/iw_cm.h>

#include "devprofile.h"

/* How long a driver waits for its firmware. */
#define DP_COMMAND_MS	2000

/* From the value of a profile, 0 where it has none. */
static int least(int ours, int theirs)
{
	return ours ? min(ours, theirs) : theirs;
}

static int dp_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			   struct ib_udata *udata)
{
	const struct dp_dev *dp = dp_dev(ibdev);
	const struct dp_profile *profile = dp->profile;
	int err = dp->orig.query_device(ibdev, attr, udata);

	if (err)
		return err;
	attr->max_send_sge = least(profile->send_sge, attr->max_send_sge);
	attr->max_recv_sge = least(profile->recv_sge, attr->max_recv_sge);
	attr->max_qp_wr = least(profile->qp_wr, attr->max_qp_wr);
	attr->max_qp = least(profile->qps, attr->max_qp);
	attr->max_cqe = least(profile->cqe, attr->max_cqe);
	return 0;
}

static int dp_get_port_immutable(struct ib_device *ibdev, u32 port,
				 struct ib_port_immutable *immutable)
{
	const struct dp_dev *dp = dp_dev(ibdev);
	int err = dp->orig.get_port_immutable(ibdev, port, immutable);

	if (!err && dp->profile->raw_only) {
		immutable->core_cap_flags = RDMA_CORE_PORT_RAW_PACKET;
		immutable->max_mad_size = 0;
	}
	return err;
}

/* May the queue pair be made?  The inline data that it gets may be less than it asks for. */
static int check_qp(const struct dp_dev *dp, struct ib_qp_init_attr *init)
{
	const struct dp_profile *profile = dp->profile;
	struct ib_qp_cap *cap = &init->cap;
	u32 wr = max(cap->max_send_wr, cap->max_recv_wr);

	if (init->qp_type != IB_QPT_RC)
		return 0;
	if (profile->no_rc)
		return -EINVAL;
	if (profile->send_sge && cap->max_send_sge > profile->send_sge)
		return -EINVAL;
	if (profile->recv_sge && cap->max_recv_sge > profile->recv_sge)
		return -EINVAL;
	if (profile->qp_wr && wr * (profile->quanta ?: 1) > profile->qp_wr)
		return -EINVAL;
	if (cap->max_inline_data > profile->max_inline) {
		if (profile->inline_mode == DP_REFUSE)
			return -EINVAL;
		cap->max_inline_data = profile->max_inline;
	}
	return 0;
}

/* Of one that user space has made qp->uobject is set, but not yet when it is made. */
static bool dp_is_direct(const struct dp_dev *dp, const struct ib_qp *qp)
{
	return dp->profile->direct && !qp->uobject && qp->qp_type == IB_QPT_RC;
}

static int dp_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct dp_dev *dp = dp_dev(qp->device);
	int err;

	if (udata)
		return dp->orig.create_qp(qp, init, udata);
	err = check_qp(dp, init);
	if (err)
		return err;
	if (atomic_inc_return(&dp->qps) > dp->profile->qps && dp->profile->qps)
		err = -ENOMEM;
	else
		err = dp->orig.create_qp(qp, init, udata);
	if (!err && dp_is_direct(dp, qp)) {
		err = dp_direct_create_qp(qp, init);
		if (err) {
			dp_direct_destroy_qp(qp);
			dp->orig.destroy_qp(qp, udata);
		}
	}
	if (err)
		atomic_dec(&dp->qps);
	return err;
}

/* Does the device not know of it yet?  Of those drivers that tell it late. */
static bool dp_keeps(const struct dp_dev *dp, struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	return dp->profile->keeps_init && !qp->uobject && qp->qp_type == IB_QPT_RC &&
	       !dp->orig.query_qp(qp, &attr, IB_QP_STATE, &init) && attr.qp_state == IB_QPS_INIT;
}

static int dp_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			struct ib_udata *udata)
{
	struct dp_dev *dp = dp_dev(qp->device);
	int err;

	if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_ERR && dp_keeps(dp, qp))
		return 0;
	err = dp->orig.modify_qp(qp, attr, mask, udata);
	if (err || udata || qp->qp_type != IB_QPT_RC)
		return err;
	if (dp_is_direct(dp, qp))
		dp_direct_modify_qp(qp, attr, mask);
	if (READ_ONCE(dp->dead))
		return -EIO;
	if (!(mask & IB_QP_STATE) || attr->qp_state != IB_QPS_ERR)
		return 0;
	if (READ_ONCE(dp->slow)) {
		msleep(DP_COMMAND_MS);
		return -ETIMEDOUT;
	}
	return dp->profile->modify_err;
}

static int dp_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	struct dp_dev *dp = dp_dev(qp->device);
	bool ours = !qp->uobject;
	int err;

	if (dp_is_direct(dp, qp))
		dp_direct_destroy_qp(qp);
	err = dp->orig.destroy_qp(qp, udata);

	if (!err && ours)
		atomic_dec(&dp->qps);
	return err;
}

/* Does a queue pair fail with its device?  Only those that the kernel's users connect do. */
static bool dp_is_dead(const struct dp_dev *dp, const struct ib_qp *qp)
{
	return READ_ONCE(dp->dead) && !qp->uobject && qp->qp_type == IB_QPT_RC;
}

static int dp_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr)
{
	struct dp_dev *dp = dp_dev(qp->device);

	if (dp_is_dead(dp, qp)) {
		*bad_wr = wr;
		return -EIO;
	}
	/* What drains it, and does not complete. */
	if (dp_keeps(dp, qp))
		return 0;
	if (dp_is_direct(dp, qp))
		return dp_direct_post_send(qp, wr, bad_wr);
	if (dp_dma_device() && !qp->uobject)
		return dp_dma_post_send(dp, qp, wr, bad_wr);
	return dp->orig.post_send(qp, wr, bad_wr);
}

static int dp_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr)
{
	struct dp_dev *dp = dp_dev(qp->device);

	if (dp_is_dead(dp, qp)) {
		*bad_wr = wr;
		return -EIO;
	}
	if (dp_is_direct(dp, qp))
		return dp_direct_post_recv(qp, wr, bad_wr);
	if (dp_dma_device() && !qp->uobject)
		return dp_dma_post_recv(dp, qp, wr, bad_wr);
	return dp->orig.post_recv(qp, wr, bad_wr);
}

/* Nothing completes, not even by software: as of the drivers that do not flush. */
static int dp_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc)
{
	struct dp_dev *dp = dp_dev(cq->device);
	int found;

	if (dp->profile->direct && !cq->uobject && dp_direct_uses(cq))
		found = dp_direct_poll_cq(cq, entries, wc);
	else
		found = dp->orig.poll_cq(cq, entries, wc);
	if (found > 0 && READ_ONCE(dp->dead) && wc->qp->qp_type == IB_QPT_RC)
		return 0;
	return cq == READ_ONCE(dp->failed_cq) ? 0 : found;
}

static int dp_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags how)
{
	struct dp_dev *dp = dp_dev(cq->device);
	int missed = 0;

	if (cq->uobject || !dp_direct_uses(cq))
		missed = dp->orig.req_notify_cq(cq, how);
	/* Queue pairs may use it later. */
	return cq->uobject ? missed : dp_direct_req_notify_cq(cq, how) || missed;
}

/* The third argument: of user space, or NULL. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
#define dp_cq_user	uverbs_attr_bundle
#else
#define dp_cq_user	ib_udata
#endif

static int dp_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			struct dp_cq_user *user)
{
	struct dp_dev *dp = dp_dev(cq->device);
	const struct dp_profile *profile = dp->profile;
	int err;

	if (!user && profile->cqe && attr->cqe > profile->cqe)
		return -EINVAL;
	if (!user && attr->comp_vector >= cq->device->num_comp_vectors)
		return -EINVAL;
	err = dp->orig.create_cq(cq, attr, user);
	if (!err && !user && profile->direct) {
		err = dp_direct_create_cq(cq, cq->cqe);
		if (err)
			dp->orig.destroy_cq(cq, NULL);
	}
	/* ib_alloc_cq() has no handler. */
	if (!err && !user && cq->event_handler)
		WRITE_ONCE(dp->cq, cq);
	return err;
}

static int dp_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	struct dp_dev *dp = dp_dev(cq->device);

	if (READ_ONCE(dp->cq) == cq)
		WRITE_ONCE(dp->cq, NULL);
	/* The next one may have its memory. */
	if (READ_ONCE(dp->failed_cq) == cq)
		WRITE_ONCE(dp->failed_cq, NULL);
	if (dp->profile->direct && !cq->uobject)
		dp_direct_destroy_cq(cq);
	return dp->orig.destroy_cq(cq, udata);
}

/**
 * dp_fail_cq() - report an overrun of a completion queue, which completes nothing any more
 * @dp: of its device
 *
 * Context: process; the queue stays.
 * Return: 0, or -ENOENT if there is none.
 */
int dp_fail_cq(struct dp_dev *dp)
{
	struct ib_cq *cq = READ_ONCE(dp->cq);
	struct ib_event event = {
		.device = dp->ibdev, .event = IB_EVENT_CQ_ERR, .element.cq = cq,
	};

	if (!cq)
		return -ENOENT;
	WRITE_ONCE(dp->failed_cq, cq);
	cq->event_handler(&event, cq->cq_context);
	return 0;
}

static void dp_dealloc_driver(struct ib_device *ibdev)
{
	struct dp_dev *dp = dp_dev(ibdev);
	void (*dealloc)(struct ib_device *ibdev) = dp->orig.dealloc_driver;

	if (dealloc)
		dealloc(ibdev);
	dp_dev_gone(dp);
}

/* The core moves a device between network namespaces only if its driver can do this, which cards' drivers can. */
static void dp_disassociate_ucontext(struct ib_ucontext *context)
{
}

/*
 * Cards have the port mapper's addresses on the wire.  siw, which has no mapper, has those that were
 * asked for, which it reads before it returns; and its TCP is the host's, where iwpmd holds each port that
 * it maps.  So both ends move mapped ports out of the range that they are from.
 */
#define DP_MAPPED	32768
#define DP_MOVED	28000

static iw_event_handler dp_iw_upcall;

static struct sockaddr_storage dp_moved(const struct sockaddr_storage *mapped)
{
	struct sockaddr_storage moved = *mapped;
	/* At the same offset in sockaddr_in6. */
	__be16 *port = &((struct sockaddr_in *)&moved)->sin_port;

	if (ntohs(*port) >= DP_MAPPED)
		*port = htons(ntohs(*port) - DP_MOVED);
	return moved;
}

static int dp_iw_event(struct iw_cm_id *id, struct iw_cm_event *event)
{
	__be16 *port = &((struct sockaddr_in *)&event->remote_addr)->sin_port;

	/* A port that the kernel has not been told of stays as it is. */
	if (event->event == IW_CM_EVENT_CONNECT_REQUEST &&
	    ntohs(*port) >= DP_MAPPED - DP_MOVED && !READ_ONCE(dp_dev(id->device)->unknown_port))
		*port = htons(ntohs(*port) + DP_MOVED);
	return dp_iw_upcall(id, event);
}

static int dp_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	const struct sockaddr_storage local = id->local_addr, remote = id->m_remote_addr;
	int err;

	id->local_addr = dp_moved(&id->m_local_addr);
	id->m_remote_addr = dp_moved(&remote);
	err = dp_dev(id->device)->orig.iw_connect(id, param);
	id->local_addr = local;
	id->m_remote_addr = remote;
	return err;
}

static int dp_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	const struct sockaddr_storage local = id->local_addr;
	int err;

	/* iw_cm has one for all. */
	if (id->event_handler != dp_iw_event)
		dp_iw_upcall = id->event_handler;
	id->event_handler = dp_iw_event;
	id->local_addr = dp_moved(&id->m_local_addr);
	err = dp_dev(id->device)->orig.iw_create_listen(id, backlog);
	id->local_addr = local;
	return err;
}

/**
 * dp_wrap() - replace the operations of a device
 * @dp: its entry; it is not registered yet
 *
 * Context: any.
 */
void dp_wrap(struct dp_dev *dp)
{
	struct ib_device *ibdev = dp->ibdev;
	struct ib_device_ops *ops = &ibdev->ops;
	const struct dp_profile *profile = dp->profile;

	ops->query_device = dp_query_device;
	ops->get_port_immutable = dp_get_port_immutable;
	ops->create_qp = dp_create_qp;
	ops->modify_qp = dp_modify_qp;
	ops->destroy_qp = dp_destroy_qp;
	ops->create_cq = dp_create_cq;
	ops->destroy_cq = dp_destroy_cq;
	ops->post_send = dp_post_send;
	ops->post_recv = dp_post_recv;
	ops->poll_cq = dp_poll_cq;
	ops->dealloc_driver = dp_dealloc_driver;
	ops->disassociate_ucontext = dp_disassociate_ucontext;
	if (profile->direct) {
		ops->req_notify_cq = dp_req_notify_cq;
		dp->qp_tail = ALIGN(ops->size_ib_qp, 64);
		dp->cq_tail = ALIGN(ops->size_ib_cq, 64);
		ops->size_ib_qp = dp->qp_tail + dp_direct_qp_size;
		ops->size_ib_cq = dp->cq_tail + dp_direct_cq_size;
	}
	/* It is one of those that the core wants of a device for the kernel's users. */
	if (profile->no_kverbs)
		ops->poll_cq = NULL;
	if (profile->vectors)
		ibdev->num_comp_vectors = profile->vectors;
	if (profile->port_mapper) {
		ibdev->iw_driver_flags &= ~IW_F_NO_PORT_MAP;
		ops->iw_connect = dp_iw_connect;
		ops->iw_create_listen = dp_iw_create_listen;
	}
}

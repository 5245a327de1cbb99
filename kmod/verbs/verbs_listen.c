// SPDX-License-Identifier: GPL-2.0-only
/*
 * The passive side: listeners, and requests until the client answers them.
 *
 * A request arrives with its own identifier, which is passed to the client
 * inside struct verbs_request and to the VI when the request is accepted.
 *
 * Identifiers pin their network namespace, so a namespace that listens is not
 * destroyed: the client must stop listening when it is no longer needed.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/atomic.h>
#include <linux/in.h>
#include <linux/ipv6.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>
#include <rdma/iw_cm.h>

#include "core/addr.h"
#include "core/net.h"
#include "core/objcount.h"
#include "core/work.h"
#include "verbs.h"

/* Requests that the client has not answered yet, in all and of one peer. */
#define VERBS_MAX_REQUESTS	128
#define VERBS_PEER_REQUESTS	16

/* rdma_listen()'s backlog; only some drivers use it. */
#define VERBS_BACKLOG		128

/**
 * struct verbs_request - a peer's request until the client answers
 * @req: the client's part
 * @entry: in verbs_requests
 * @id: identifier of the future VI
 * @error: errno if it has failed; protected by the handler mutex
 * @why: errno that @reject_work rejects it with
 * @reject_work: rejects it, on the end queue
 */
struct verbs_request {
	struct sovia_vi_request	req;
	struct list_head	entry;
	struct rdma_cm_id	*id;
	int			error;
	int			why;
	struct work_struct	reject_work;
};

/**
 * struct verbs_listener - a network namespace that accepts requests
 * @entry: in verbs_listeners
 * @net: the namespace; held by the identifiers
 * @request: upcall
 * @id4: listens on all IPv4 addresses, or NULL
 * @id6: listens on all IPv6 addresses, or NULL
 */
struct verbs_listener {
	struct list_head	entry;
	struct net		*net;
	void			(*request)(struct sovia_vi_request *req);
	struct rdma_cm_id	*id4;
	struct rdma_cm_id	*id6;
};

static DEFINE_MUTEX(verbs_listen_lock);	/* protects verbs_listeners */
static LIST_HEAD(verbs_listeners);
static DEFINE_SPINLOCK(verbs_requests_lock);	/* protects verbs_requests */
static LIST_HEAD(verbs_requests);
static atomic_t verbs_pending = ATOMIC_INIT(0);

/* ---- requests ---- */

static int verbs_pair(struct sovia_pair *pair, struct net *net, const struct rdma_cm_id *id)
{
	const struct rdma_addr *addr = &id->route.addr;

	memset(pair, 0, sizeof(*pair));
	if (sovia_sockaddr_addr(&pair->local, &addr->src_addr) ||
	    sovia_sockaddr_addr(&pair->remote, &addr->dst_addr))
		return -EAFNOSUPPORT;
	if (ipv6_addr_type(&pair->local) & IPV6_ADDR_LINKLOCAL)
		pair->scope = addr->dev_addr.bound_dev_if;
	pair->l3 = l3mdev_master_ifindex_by_index(net, addr->dev_addr.bound_dev_if);
	pair->passive = ipv6_addr_equal(&pair->local, &pair->remote);
	return 0;
}

static int verbs_request_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct verbs_request *rq = id->context;

	/* Any event means that the peer no longer waits or cannot be reached. */
	rq->error = event->event == RDMA_CM_EVENT_DEVICE_REMOVAL ? -ENODEV : -ECONNRESET;
	return 0;
}

/* Does the peer's request come from a privileged port? */
static bool verbs_from_reserved(const struct rdma_cm_id *id)
{
	/* At the same offset in sockaddr_in6. */
	const struct sockaddr_in *from = (const struct sockaddr_in *)&id->route.addr.dst_addr;

	return from->sin_port && ntohs(from->sin_port) < SOVIA_PORTS_RESERVED;
}

/* Has the peer fewer than its part of the pending requests?  Counts this one then. */
static bool verbs_request_admit(struct verbs_request *rq, const struct rdma_cm_id *id)
{
	/* Those that users of the peer can make do not displace its kernel's. */
	int most = verbs_from_reserved(id) ? VERBS_PEER_REQUESTS : VERBS_PEER_REQUESTS / 2;
	const struct verbs_request *other;
	int same = 0;

	spin_lock(&verbs_requests_lock);
	list_for_each_entry(other, &verbs_requests, entry)
		same += other->req.net == rq->req.net &&
			ipv6_addr_equal(&other->req.pair.remote, &rq->req.pair.remote);
	if (same < most)
		list_add_tail(&rq->entry, &verbs_requests);
	spin_unlock(&verbs_requests_lock);
	return same < most;
}

static void verbs_reject_work(struct work_struct *work);

static int verbs_new_request(struct rdma_cm_id *id, struct verbs_listener *lis,
			     const struct rdma_conn_param *conn)
{
	struct verbs_request *rq = kzalloc(sizeof(*rq), GFP_KERNEL);
	int err;

	if (!rq)
		return -ENOMEM;
	rq->req.net = lis->net;
	err = verbs_pair(&rq->req.pair, lis->net, id) ?: verbs_path(id, &rq->req.path);
	if (!err && !verbs_request_admit(rq, id))
		err = -EBUSY;
	if (err) {
		kfree(rq);
		return err;
	}
	sovia_object_inc(requests);
	rq->req.prov = &sovia_verbs_provider;
	rq->req.hello_len = min_t(unsigned int, conn->private_data_len, sizeof(rq->req.hello));
	memcpy(&rq->req.hello, conn->private_data, rq->req.hello_len);
	rq->id = id;
	INIT_WORK(&rq->reject_work, verbs_reject_work);
	id->context = rq;
	id->event_handler = verbs_request_handler;
	/* The client owns it from here on. */
	lis->request(&rq->req);
	return 0;
}

static u32 verbs_reject_code(int err)
{
	switch (err) {
	case -EAGAIN:
		return SOVIA_CODE_BUSY;
	case -EPROTO:
		return SOVIA_CODE_PROTOCOL;
	case -EBUSY:
	case -ENOMEM:
	case -ENOSPC:
	/* The device that it came by is going away, or has failed. */
	case -ENODEV:
	case -EIO:
		return SOVIA_CODE_NO_MEMORY;
	case -ESTALE:
		return SOVIA_CODE_NO_LINK;
	default:
		return SOVIA_CODE_NO_LISTENER;
	}
}

static void verbs_send_reject(struct rdma_cm_id *id, int err)
{
	const struct sovia_reject rej = {
		.magic	= cpu_to_be32(SOVIA_WIRE_MAGIC),
		.code	= cpu_to_be32(verbs_reject_code(err)),
	};

	rdma_reject(id, &rej, sizeof(rej), IB_CM_REJ_CONSUMER_DEFINED);
}

/*
 * iWARP's port mapper (iwpmd) replaces ports, and a request has its own one if the mapper has not
 * answered in time.  The request's MAC proves who asks, as it does over RoCE.
 */
static bool verbs_ports_are_mapped(const struct rdma_cm_id *id)
{
	return id->device && rdma_cap_iw_cm(id->device, id->port_num) &&
	       !(id->device->iw_driver_flags & IW_F_NO_PORT_MAP);
}

static int verbs_refuse_user(struct rdma_cm_id *id, const struct verbs_listener *lis)
{
	sovia_stat_inc(sovia_net(lis->net), bad_port);
	pr_warn_ratelimited("link request of %pISpc: not from a reserved port\n",
			    &id->route.addr.dst_addr);
	verbs_send_reject(id, -ECONNREFUSED);
	/* not 0: rdma_cm destroys the identifier */
	return -EACCES;
}

static int verbs_listen_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	int err;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	if (!verbs_from_reserved(id) && !verbs_ports_are_mapped(id))
		return verbs_refuse_user(id, id->context);
	err = -EBUSY;
	if (!atomic_add_unless(&verbs_pending, 1, VERBS_MAX_REQUESTS))
		goto reject;
	err = verbs_new_request(id, id->context, &event->param.conn);
	if (err)
		goto forget;
	return 0;
forget:
	atomic_dec(&verbs_pending);
reject:
	verbs_send_reject(id, -EBUSY);
	/* not 0: rdma_cm destroys the identifier */
	return err;
}

static void verbs_request_free(struct verbs_request *rq)
{
	spin_lock(&verbs_requests_lock);
	list_del(&rq->entry);
	spin_unlock(&verbs_requests_lock);
	kfree(rq);
	sovia_object_dec(requests);
	atomic_dec(&verbs_pending);
}

/**
 * verbs_request_drop - reject a request and free it
 * @rq: the request
 * @err: see struct sovia_provider::reject
 *
 * Context: process, may sleep; no locks.
 */
void verbs_request_drop(struct verbs_request *rq, int err)
{
	struct rdma_cm_id *id = rq->id;

	rdma_lock_handler(id);
	if (!rq->error)
		verbs_send_reject(id, err);
	rdma_unlock_handler(id);
	rdma_destroy_id(id);
	verbs_request_free(rq);
}

static void verbs_reject_work(struct work_struct *work)
{
	struct verbs_request *rq = container_of(work, struct verbs_request, reject_work);

	verbs_request_drop(rq, rq->why);
}

/**
 * verbs_reject - reject of struct sovia_provider
 * @req: see there
 * @err: see there
 *
 * Context: connection thread.
 */
void verbs_reject(struct sovia_vi_request *req, int err)
{
	struct verbs_request *rq = container_of(req, struct verbs_request, req);

	rq->why = err;
	queue_work(sovia_end_wq, &rq->reject_work);
}

/* Replies to the peer with a queue pair. */
static int verbs_answer_request(struct verbs_vi *v, const struct verbs_request *rq)
{
	struct rdma_conn_param param;
	int err;

	if (rq->error)
		return rq->error;
	verbs_set_timers(v->id);
	err = verbs_vi_attach(v);
	if (!err)
		err = verbs_vi_create_qp(v);
	if (!err)
		err = verbs_seal(v);
	if (err) {
		verbs_send_reject(v->id, err);
		return err;
	}
	verbs_conn_param(v, &param);
	verbs_vi_step(v);
	v->started = true;
	/* Rejects by itself if it fails. */
	return rdma_accept(v->id, &param);
}

/**
 * verbs_answer - the VI takes over the request's identifier and replies to the peer
 * @v: VI with a request
 *
 * Context: set-up queue.
 */
void verbs_answer(struct verbs_vi *v)
{
	struct verbs_request *rq = v->rq;
	struct rdma_cm_id *id = rq->id;
	int err;

	rdma_lock_handler(id);
	id->context = v;
	id->event_handler = verbs_vi_handler;
	v->id = id;
	v->rq = NULL;
	err = verbs_answer_request(v, rq);
	rdma_unlock_handler(id);
	verbs_request_free(rq);
	if (err)
		verbs_vi_die(v, err);
}

/**
 * verbs_accept - accept of struct sovia_provider
 * @req: see there
 * @attr: see there
 * @hello: see there
 * @client: see there
 * @context: see there
 *
 * Context: connection thread.
 * Return: see there.
 */
struct sovia_vi *verbs_accept(struct sovia_vi_request *req,
			      const struct sovia_vi_attr *attr,
			      const struct sovia_hello *hello,
			      const struct sovia_vi_client *client, void *context)
{
	struct verbs_request *rq = container_of(req, struct verbs_request, req);
	struct verbs_vi *v = verbs_vi_alloc(&req->pair, attr, hello, client, context);

	if (!v) {
		verbs_reject(req, -ENOMEM);
		return ERR_PTR(-ENOMEM);
	}
	v->passive = true;
	v->peer_hello = req->hello;
	v->peer_hello_len = req->hello_len;
	v->net = req->net;
	v->rq = rq;
	verbs_vi_step(v);
	verbs_vi_setup(v, VERBS_SETUP_PASSIVE);
	return &v->vi;
}

/* ---- listeners ---- */

static struct rdma_cm_id *verbs_listen_on(struct verbs_listener *lis,
					  const struct in6_addr *any)
{
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(lis->net, verbs_listen_handler, lis, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	sovia_sockaddr(&addr, any, 0, verbs_service_port);
	verbs_set_service_type(id, sovia_tos_of_net(sovia_net(lis->net)));
	err = rdma_set_afonly(id, 1);
	if (!err)
		err = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!err)
		err = rdma_listen(id, VERBS_BACKLOG);
	if (err) {
		rdma_destroy_id(id);
		return ERR_PTR(err);
	}
	return id;
}

static struct verbs_listener *verbs_listener_find(const struct net *net)
{
	struct verbs_listener *lis;

	lockdep_assert_held(&verbs_listen_lock);
	list_for_each_entry(lis, &verbs_listeners, entry)
		if (lis->net == net)
			return lis;
	return NULL;
}

static int verbs_listener_start(struct rdma_cm_id **id, struct verbs_listener *lis,
				const struct in6_addr *any)
{
	struct rdma_cm_id *fresh;

	if (*id)
		return 0;
	fresh = verbs_listen_on(lis, any);
	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	*id = fresh;
	return 0;
}

/* Each family works without the other.  Returns 0 if nothing is left to retry. */
static int verbs_listener_start_all(struct verbs_listener *lis)
{
	struct in6_addr any4;
	int err4, err6 = 0;

	ipv6_addr_set_v4mapped(htonl(INADDR_ANY), &any4);
	err4 = verbs_listener_start(&lis->id4, lis, &any4);
	/* An IPv4-only listener would prevent rdma_cm from using devices that need IPv6. */
	if (ipv6_mod_enabled())
		err6 = verbs_listener_start(&lis->id6, lis, &in6addr_any);
	return err4 ?: err6;
}

static struct verbs_listener *verbs_listener_get(struct net *net,
						 void (*request)(struct sovia_vi_request *req))
{
	struct verbs_listener *lis = verbs_listener_find(net);

	if (lis)
		return lis;
	lis = kzalloc(sizeof(*lis), GFP_KERNEL);
	if (!lis)
		return NULL;
	lis->net = net;
	lis->request = request;
	list_add_tail(&lis->entry, &verbs_listeners);
	return lis;
}

/**
 * verbs_listen - listen of struct sovia_provider
 * @net: see there; held until verbs_unlisten()
 * @request: see there
 *
 * Other namespaces than the first do not listen without a device of theirs: rdma_cm listens on all,
 * and iWARP's drivers and siw have one port for all namespaces.  A call that follows when there is
 * one does.
 *
 * Context: worker, which has all capabilities; may sleep.
 * Return: 0, or a negative errno: another call may succeed.
 */
int verbs_listen(struct net *net, void (*request)(struct sovia_vi_request *req))
{
	struct verbs_listener *lis;
	int err = -ENOMEM;

	if (!net_eq(net, &init_net) && !verbs_devs_serve(net))
		return 0;
	mutex_lock(&verbs_listen_lock);
	lis = verbs_listener_get(net, request);
	if (lis)
		err = verbs_listener_start_all(lis);
	mutex_unlock(&verbs_listen_lock);
	return err;
}

/**
 * verbs_unlisten - unlisten of struct sovia_provider
 * @net: see there
 *
 * Destroying a listener waits for its handlers, and no new ones start.
 *
 * Context: process, may sleep.
 */
void verbs_unlisten(struct net *net)
{
	struct verbs_listener *lis;

	mutex_lock(&verbs_listen_lock);
	lis = verbs_listener_find(net);
	if (lis)
		list_del(&lis->entry);
	mutex_unlock(&verbs_listen_lock);
	/* Not under the lock: other namespaces do not wait.  For one the client serialises. */
	if (!lis)
		return;
	if (lis->id6)
		rdma_destroy_id(lis->id6);
	if (lis->id4)
		rdma_destroy_id(lis->id4);
	kfree(lis);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/verbs_listen_test.c"
#endif

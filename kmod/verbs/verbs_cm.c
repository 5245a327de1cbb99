// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection manager's side of a VI: rdma_cm, and setting up a VI.
 *
 *	active				passive
 *	connect: resolve address
 *	 ADDR_RESOLVED: resolve route
 *	 ROUTE_RESOLVED: queue pair,
 *	     receives posted, hello --->  CONNECT_REQUEST: the request upcall
 *					  accept: queue pair, receives posted,
 *	 ESTABLISHED	<---------------      hello
 *	     --------------------------->  ESTABLISHED, or the first message
 *
 * rdma_cm calls handlers of an identifier one at a time, under a mutex that
 * rdma_lock_handler() takes too.  It serialises all that happens to a VI before
 * it is open.  An identifier is destroyed with its VI or its request, never from
 * its own handler; so handlers return 0, except for a request without an owner.
 *
 * A work on the set-up queue does what may wait for the device, not the handler, because
 * all handlers of the system share one thread; some devices connect synchronously.
 *
 * A dead VI belongs to its end; its events are ignored.
 */

#define pr_fmt(fmt) "sovia: " fmt

#include <linux/in.h>
#include <linux/module.h>
#include <net/ipv6.h>
#include <rdma/ib_cm.h>

#include "core/addr.h"
#include "core/param.h"
#include "verbs.h"

/*
 * Number and timeout of tries of address resolution.  rdma_cm misses a
 * neighbour that answers before it has started to wait, and checks again only at
 * the timeout; so short timeouts speed up link set-up.
 */
#define VERBS_RESOLVE_MS	250
#define VERBS_RESOLVE_TRIES	12

/*
 * A send is tried seven times in all; on rxe 7 retries would mean infinite retries, as
 * they do on all devices for RNR.
 */
#define VERBS_RETRIES		6
#define VERBS_RNR_RETRIES	7

/* RNR timer: 0.64 ms (IBTA table 45). */
#define VERBS_RNR_TIMER		12

unsigned int verbs_service_port = SOVIA_SERVICE_PORT;
sovia_param(service_port, verbs_service_port, 1, SOVIA_PORTS_RESERVED - 1, 0444);
MODULE_PARM_DESC(service_port, "rdma_cm port of the service, 1-1023 (299)");

/*
 * 4.096 us * 2^17 = 0.54 s per try; devices may take up to four times as long.  With less
 * than 2^10, a few milliseconds in all, a busy processor kills lanes.  Five bits.
 */
#define VERBS_ACK_TIMEOUT_MIN	10
#define VERBS_ACK_TIMEOUT_MAX	31
static unsigned int verbs_ack_timeout = 17;
sovia_param(ack_timeout, verbs_ack_timeout, VERBS_ACK_TIMEOUT_MIN, VERBS_ACK_TIMEOUT_MAX, 0444);
MODULE_PARM_DESC(ack_timeout, "QP retransmission timeout, 4 us * 2^n, 10-31 (17)");

/*
 * Requests come from privileged ports, the range that sunrpc uses.
 * Each uses the next one: with iWARP they are ports of TCP connections, and one that was used may
 * be in TIME_WAIT for the same peer.
 */
#define VERBS_SOURCE_MIN	665
#define VERBS_SOURCE_MAX	(SOVIA_PORTS_RESERVED - 1)
#define VERBS_SOURCES		(VERBS_SOURCE_MAX - VERBS_SOURCE_MIN + 1)

static atomic_t verbs_source = ATOMIC_INIT(0);

/**
 * verbs_path - the path that an identifier's queue pair will use
 * @id: its route is resolved, or it has a request
 * @path: filled in
 *
 * Context: process.
 * Return: 0, or -EAFNOSUPPORT if the addresses are of another family.
 */
int verbs_path(const struct rdma_cm_id *id, struct sovia_path *path)
{
	const struct rdma_route *route = &id->route;
	struct in6_addr local, remote;
	int err;

	/*
	 * Not rdma_read_gids(), which computes them from the addresses that the peer claims.
	 * With iWARP there is no record, and the addresses are those of the TCP connection.
	 */
	if (route->path_rec) {
		memcpy(path->local, &route->path_rec->sgid, sizeof(path->local));
		memcpy(path->remote, &route->path_rec->dgid, sizeof(path->remote));
		return 0;
	}
	err = sovia_sockaddr_addr(&local, &route->addr.src_addr) ?:
	      sovia_sockaddr_addr(&remote, &route->addr.dst_addr);
	if (err)
		return err;
	memcpy(path->local, &local, sizeof(path->local));
	memcpy(path->remote, &remote, sizeof(path->remote));
	return 0;
}

/* ---- errors ---- */

/* The inverse of verbs_reject_code(). */
static int verbs_reject_errno(u32 code)
{
	switch (code) {
	case SOVIA_CODE_BUSY:
		return -EAGAIN;
	case SOVIA_CODE_PROTOCOL:
		return -EPROTO;
	case SOVIA_CODE_NO_MEMORY:
		return -EBUSY;
	case SOVIA_CODE_NO_LINK:
		return -ESTALE;
	default:
		return -ECONNREFUSED;
	}
}

/* IB and RoCE report the connection manager's reason, iWARP an errno. */
static int verbs_reason_errno(int status)
{
	switch (status) {
	case IB_CM_REJ_TIMEOUT:
		return -ETIMEDOUT;
	case IB_CM_REJ_NO_QP:
	case IB_CM_REJ_NO_RESOURCES:
		return -EBUSY;
	case IB_CM_REJ_STALE_CONN:
	case -ECONNRESET:
		return -ECONNRESET;
	case IB_CM_REJ_INVALID_GID:
	case IB_CM_REJ_INVALID_LID:
		return -EHOSTUNREACH;
	default:
		return -ECONNREFUSED;
	}
}

/*
 * The peer's own reason, if it sent one.  Not rdma_consumer_reject_data(): some
 * iWARP drivers report such a rejection as -ECONNRESET, which it does not recognise.
 */
static int verbs_rejected(const struct rdma_cm_event *event)
{
	const struct sovia_reject *rej = event->param.conn.private_data;

	if (rej && event->param.conn.private_data_len >= sizeof(*rej) &&
	    rej->magic == cpu_to_be32(SOVIA_WIRE_MAGIC))
		return verbs_reject_errno(be32_to_cpu(rej->code));
	return verbs_reason_errno(event->status);
}

/* For local failures, from rdma_cm's calls and events. */
static int verbs_route_errno(int status)
{
	switch (status) {
	case -ENODEV:
	case -ENETUNREACH:
	case -EADDRNOTAVAIL:
	case -ENOMEM:
		return status;
	default:
		return -EHOSTUNREACH;
	}
}

/* ---- events of a VI ---- */

static void verbs_addr_error(struct verbs_vi *v, int status)
{
	if (status == -ETIMEDOUT && ++v->tries < VERBS_RESOLVE_TRIES)
		/* not from here: it waits for the handler */
		verbs_vi_setup(v, VERBS_SETUP_ADDR);
	else
		verbs_vi_die(v, verbs_route_errno(status));
}

/* Holds the handler mutex. */
static int verbs_start_route(struct verbs_vi *v)
{
	const struct rdma_dev_addr *dev = &v->id->route.addr.dev_addr;
	int err;

	/* rdma_cm may have found a way out through another L3 domain. */
	if (l3mdev_master_ifindex_by_index(dev->net, dev->bound_dev_if) != v->vi.pair.l3)
		return -ENETUNREACH;
	err = verbs_vi_attach(v);
	if (err)
		return err;
	verbs_vi_step(v);
	err = rdma_resolve_route(v->id, VERBS_STEP_MS);
	return err ? verbs_route_errno(err) : 0;
}

/*
 * rdma_cm cannot cope with rdma_destroy_id() racing with route resolution while it
 * removes the device: it may look at the device's type when there is no device any more.
 * With a VI that is attached, removal waits until both are gone.
 */
static void verbs_setup_route(struct verbs_vi *v)
{
	int err = 0;

	rdma_lock_handler(v->id);
	/* Otherwise the device may be gone. */
	if (verbs_vi_usable(v))
		err = verbs_start_route(v);
	rdma_unlock_handler(v->id);
	if (err)
		verbs_vi_die(v, err);
}

static bool verbs_comm_est(struct verbs_vi *v)
{
	bool est;

	spin_lock_bh(&v->lock);
	est = !list_empty(&v->early_rx);
	spin_unlock_bh(&v->lock);
	return est;
}

/* With iWARP there is no path: the card makes something of what both ends want. */
static void verbs_note_tos(struct verbs_vi *v)
{
	const struct sa_path_rec *path = v->id->route.path_rec;

	v->vi.has_tos = path;
	v->vi.tos = path ? path->traffic_class : 0;
}

/*
 * With iWARP the passive side must not send before the active one has: a message that
 * overtakes the end of the handshake breaks the connection (RFC 5044, 7.1).
 */
static void verbs_established(struct verbs_vi *v, const struct rdma_conn_param *conn)
{
	verbs_note_tos(v);
	v->cm_established = true;
	if (v->passive && verbs_iwarp(v) && !verbs_comm_est(v))
		return;
	if (!v->passive) {
		v->peer_hello_len = min_t(unsigned int, conn->private_data_len,
					  sizeof(v->peer_hello));
		memcpy(&v->peer_hello, conn->private_data, v->peer_hello_len);
	}
	verbs_vi_opened(v);
}

/**
 * verbs_heard_work - a message arrived before the connection was established
 * @work: verbs_vi::heard_work
 *
 * Context: workqueue.
 */
void verbs_heard_work(struct work_struct *work)
{
	struct verbs_vi *v = container_of(work, struct verbs_vi, heard_work);

	/* This comes back as an event, except with iWARP. */
	rdma_notify(v->id, IB_EVENT_COMM_EST);
	rdma_lock_handler(v->id);
	if (v->cm_established)
		verbs_vi_opened(v);
	rdma_unlock_handler(v->id);
}

static void verbs_disconnected(struct verbs_vi *v)
{
	verbs_vi_die(v, -ECONNRESET);
	/* Replies to the disconnect, if the peer sent it. */
	rdma_disconnect(v->id);
}

static void verbs_vi_event(struct verbs_vi *v, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		verbs_vi_step(v);
		verbs_vi_setup(v, VERBS_SETUP_ROUTE);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		verbs_vi_step(v);
		verbs_vi_setup(v, VERBS_SETUP_CONNECT);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		verbs_established(v, &event->param.conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
		verbs_addr_error(v, event->status);
		break;
	case RDMA_CM_EVENT_ROUTE_ERROR:
		verbs_vi_die(v, verbs_route_errno(event->status));
		break;
	case RDMA_CM_EVENT_REJECTED:
		verbs_vi_die(v, verbs_rejected(event));
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
		verbs_vi_die(v, event->status == -ETIMEDOUT ? -ETIMEDOUT : -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		verbs_vi_die(v, -ENODEV);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_ADDR_CHANGE:
		verbs_vi_die(v, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		verbs_disconnected(v);
		break;
	default:
		break;
	}
}

/**
 * verbs_vi_handler - rdma_cm's handler of a VI's identifier
 * @id: identifier, its context is the VI
 * @event: what happened
 *
 * Context: process, holds the handler mutex.
 * Return: 0, so that the identifier lives as long as the VI.
 */
int verbs_vi_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct verbs_vi *v = id->context;

	if (verbs_vi_usable(v))
		verbs_vi_event(v, event);
	return 0;
}

/* ---- active side ---- */

/**
 * verbs_seal - let the client complete the hello, now that the path is known
 * @v: VI that is being set up
 *
 * Context: set-up queue, holds the handler mutex.
 * Return: 0 or a negative errno.
 */
int verbs_seal(struct verbs_vi *v)
{
	struct sovia_path path;

	return verbs_path(v->id, &path) ?: v->vi.client->seal(&v->vi, &path, &v->hello);
}

/**
 * verbs_conn_param - rdma_cm's connection parameters of both sides
 * @v: VI; @param points to its hello
 * @param: filled in
 *
 * Context: any.
 */
void verbs_conn_param(struct verbs_vi *v, struct rdma_conn_param *param)
{
	*param = (struct rdma_conn_param) {
		.private_data		= &v->hello,
		.private_data_len	= sizeof(v->hello),
		.retry_count		= VERBS_RETRIES,
		.rnr_retry_count	= VERBS_RNR_RETRIES,
	};
}

/**
 * verbs_set_timers - set the timers that detect a dead or busy peer
 * @id: identifier that is not connected yet
 *
 * Context: process.
 */
void verbs_set_timers(struct rdma_cm_id *id)
{
	rdma_set_ack_timeout(id, verbs_ack_timeout);
	rdma_set_min_rnr_timer(id, VERBS_RNR_TIMER);
}

/**
 * verbs_set_service_type - set the type of service of what an identifier sends
 * @id: identifier without an address yet, or one that is to listen
 * @tos: which one, or SOVIA_TOS_DEFAULT
 *
 * The request tells the peer, where the fabric carries that; with iWARP each end has its own,
 * the passive one from its listener.
 *
 * Context: process.
 */
void verbs_set_service_type(struct rdma_cm_id *id, unsigned int tos)
{
	if (tos != SOVIA_TOS_DEFAULT)
		rdma_set_service_type(id, tos);
}

/* The route is resolved: create the queue pair, send the request. */
static void verbs_setup_connect(struct verbs_vi *v)
{
	struct rdma_conn_param param;
	int err = 0;

	rdma_lock_handler(v->id);
	if (!verbs_vi_usable(v))
		goto unlock;
	err = verbs_vi_create_qp(v) ?: verbs_seal(v);
	if (err)
		goto unlock;
	verbs_conn_param(v, &param);
	verbs_vi_step(v);
	v->started = true;
	err = rdma_connect_locked(v->id, &param);
	/* With iWARP, TCP uses that port already, or has it in TIME_WAIT: try another one. */
	if (err == -EADDRINUSE || err == -EADDRNOTAVAIL)
		err = -EAGAIN;
unlock:
	rdma_unlock_handler(v->id);
	if (err)
		verbs_vi_die(v, err);
}

static int verbs_try_sources(struct verbs_vi *v, bool shared)
{
	const struct sovia_pair *pair = &v->vi.pair;
	int err, tries = VERBS_SOURCES;
	struct sockaddr_storage src;

	rdma_set_reuseaddr(v->id, shared);
	do {
		v->source = VERBS_SOURCE_MAX -
			    (unsigned int)atomic_inc_return(&verbs_source) % VERBS_SOURCES;
		sovia_sockaddr(&src, &pair->local, pair->scope, v->source);
		err = rdma_bind_addr(v->id, (struct sockaddr *)&src);
	} while ((err == -EADDRINUSE || err == -EADDRNOTAVAIL) && --tries);
	return err;
}

/* rdma_cm would take the first interface that has the address, in whatever L3 domain. */
static void verbs_pin_device(struct verbs_vi *v)
{
	struct rdma_dev_addr *addr = &v->id->route.addr.dev_addr;
	const struct sovia_pair *pair = &v->vi.pair;
	struct net_device *dev;

	rcu_read_lock();
	dev = sovia_address_device(addr->net, &pair->local, pair->l3);
	if (dev)
		addr->bound_dev_if = dev->ifindex;
	rcu_read_unlock();
}

/*
 * A source port of its own, or if all are taken, one that other identifiers of ours
 * have as well: two addresses and two ports need not differ but with iWARP, where TCP
 * sees to it.
 */
static int verbs_bind_source(struct verbs_vi *v)
{
	int err;

	verbs_pin_device(v);
	err = verbs_try_sources(v, false);
	if (err == -EADDRINUSE || err == -EADDRNOTAVAIL)
		err = verbs_try_sources(v, true);
	if (!err)
		rdma_set_reuseaddr(v->id, true);
	return err;
}

static int verbs_resolve(struct verbs_vi *v)
{
	const struct sovia_pair *pair = &v->vi.pair;
	struct sockaddr_storage src, dst;

	sovia_sockaddr(&src, &pair->local, pair->scope, v->source);
	sovia_sockaddr(&dst, &pair->remote, pair->scope, verbs_service_port);
	return rdma_resolve_addr(v->id, (struct sockaddr *)&src, (struct sockaddr *)&dst,
				 VERBS_RESOLVE_MS);
}

static void verbs_setup_address(struct verbs_vi *v)
{
	int err = verbs_resolve(v);

	if (err)
		verbs_vi_die(v, verbs_route_errno(err));
}

static int verbs_create_id(struct verbs_vi *v)
{
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(v->net, verbs_vi_handler, v, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	v->id = id;
	verbs_set_timers(id);
	verbs_set_service_type(id, v->vi.attr.tos);
	err = verbs_bind_source(v);
	return err ? verbs_route_errno(err) : 0;
}

/* This runs in a worker, which has all capabilities. */
static void verbs_setup_active(struct verbs_vi *v)
{
	int err = verbs_create_id(v);

	if (err)
		verbs_vi_die(v, err);
	else
		verbs_setup_address(v);
}

/**
 * verbs_cm_setup - do the next thing of a set-up
 * @v: VI that is being connected
 * @setup: what
 *
 * Context: set-up queue.
 */
void verbs_cm_setup(struct verbs_vi *v, enum verbs_setup setup)
{
	switch (setup) {
	case VERBS_SETUP_ACTIVE:
		verbs_setup_active(v);
		break;
	case VERBS_SETUP_PASSIVE:
		verbs_answer(v);
		break;
	case VERBS_SETUP_ADDR:
		verbs_setup_address(v);
		break;
	case VERBS_SETUP_ROUTE:
		verbs_setup_route(v);
		break;
	case VERBS_SETUP_CONNECT:
		verbs_setup_connect(v);
		break;
	}
}

/**
 * verbs_connect - connect of struct sovia_provider
 * @net: see there
 * @pair: see there
 * @attr: see there
 * @hello: see there
 * @client: see there
 * @context: see there
 *
 * Context: connection thread.
 * Return: see there.
 */
struct sovia_vi *verbs_connect(struct net *net, const struct sovia_pair *pair,
			       const struct sovia_vi_attr *attr,
			       const struct sovia_hello *hello,
			       const struct sovia_vi_client *client, void *context)
{
	struct verbs_vi *v = verbs_vi_alloc(pair, attr, hello, client, context);

	if (!v)
		return ERR_PTR(-ENOMEM);
	v->net = net;
	verbs_vi_step(v);
	verbs_vi_setup(v, VERBS_SETUP_ACTIVE);
	return &v->vi;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/verbs_cm_test.c"
#endif

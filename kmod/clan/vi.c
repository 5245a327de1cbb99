// SPDX-License-Identifier: GPL-2.0-only
/*
 * VIs in shared memory: the provider's calls.
 *
 *	active				passive
 *	ASKED	REQ ------------------>	request
 *		<------------------ REP	ASKED		accept
 *	ANSWERED
 *		RTU ------------------>	ANSWERED
 *	UP				UP
 *
 * REJ instead of REP, BYE from an end that ends.  Entries of a VI that has gone are dropped, and
 * its REP is answered with BYE.  An end that is ASKED for too long is given up.  The bottom half
 * finds VIs under RCU; a work tells the client.
 */
#include <linux/module.h>
#include <linux/random.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include "clan.h"
#include "core/objcount.h"
#include "core/work.h"
#include "vi_bench.h"

/* Two wake-ups, of either end, where these are slow. */
static ushort clan_poll = 500;
module_param(clan_poll, ushort, 0644);
MODULE_PARM_DESC(clan_poll, "how long receivers of connections in shared memory look for data before they sleep, us (500)");

/* Requests that a node may have open; the rest is refused. */
#define CLAN_REQUESTS_MAX	64

/* How long the other end of a set-up may take for its answer, which is lost if it does not read. */
#define CLAN_ANSWER		(20 * HZ)

/**
 * struct clan_request - a request, and whom to answer
 * @req: what the client sees
 * @node: who asks
 * @vi: number of its VI
 * @epoch: of that
 * @work: tells the client
 */
struct clan_request {
	struct sovia_vi_request	req;
	struct sovia_clan_node	*node;
	u16			vi;
	u32			epoch;
	struct work_struct	work;
};

/* Of the initial namespace, or NULL.  Changed under the semaphore, held by who calls it. */
static void (*clan_request_upcall)(struct sovia_vi_request *req);
static DECLARE_RWSEM(clan_listen_sem);

static struct sovia_clan_vi *to_clan(struct sovia_vi *vi)
{
	return container_of(vi, struct sovia_clan_vi, vi);
}

/* ---- what the client is told ------------------------------------------------ */

/* Messages that came too early.  The last of them lets the bottom half go on itself. */
static void deliver_early(struct sovia_clan_vi *cv)
{
	struct sk_buff *skb;

	for (;;) {
		spin_lock_bh(&cv->lock);
		skb = __skb_dequeue(&cv->early);
		if (!skb && cv->state == SOVIA_CLAN_ANSWERED)
			cv->state = SOVIA_CLAN_UP;
		spin_unlock_bh(&cv->lock);
		if (!skb)
			return;
		local_bh_disable();
		sovia_clan_vi_deliver(cv, skb);
		local_bh_enable();
	}
}

/* Before the client knows, which may send at once.  Returns 0 or a negative errno. */
static int send_rtu(struct sovia_clan_vi *cv)
{
	return cv->passive ? 0 : sovia_clan_control(cv->node, SOVIA_CLAN_RTU, cv->their_number,
						    cv->their_epoch, NULL);
}

static void clan_vi_work(struct work_struct *work)
{
	struct sovia_clan_vi *cv = container_of(work, struct sovia_clan_vi, work);
	bool answered, tell;
	int err = 0;

	spin_lock_bh(&cv->lock);
	answered = cv->state == SOVIA_CLAN_ANSWERED;
	spin_unlock_bh(&cv->lock);
	if (answered)
		err = send_rtu(cv);
	if (answered && err) {
		sovia_clan_vi_closed(cv, -ECONNRESET);
	} else if (answered) {
		cv->vi.client->established(&cv->vi, &cv->hello, sizeof(cv->hello));
		deliver_early(cv);
	}
	spin_lock_bh(&cv->lock);
	tell = cv->state == SOVIA_CLAN_DEAD && !cv->told;
	cv->told |= tell;
	spin_unlock_bh(&cv->lock);
	if (tell)
		cv->vi.client->closed(&cv->vi, cv->err);
}

/**
 * sovia_clan_vi_closed() - a VI is dead
 * @cv: the VI
 * @err: why, a negative errno
 *
 * Context: process or softirq.
 */
void sovia_clan_vi_closed(struct sovia_clan_vi *cv, int err)
{
	spin_lock_bh(&cv->lock);
	if (cv->state != SOVIA_CLAN_DEAD) {
		WRITE_ONCE(cv->state, SOVIA_CLAN_DEAD);
		cv->err = err;
		/* Under the lock: who has seen DEAD cancels it, and may free the VI then. */
		queue_work(sovia_setup_wq, &cv->work);
	}
	spin_unlock_bh(&cv->lock);
}

static void clan_late_work(struct work_struct *work)
{
	struct sovia_clan_vi *cv = container_of(to_delayed_work(work), struct sovia_clan_vi, late);

	if (READ_ONCE(cv->state) == SOVIA_CLAN_ASKED)
		sovia_clan_vi_closed(cv, -ETIMEDOUT);
}

/**
 * sovia_clan_vi_answered() - REP or RTU has come
 * @cv: the VI
 * @setup: body of REP, or NULL
 *
 * Context: bottom half.
 * Return: false if that violates the protocol.
 */
bool sovia_clan_vi_answered(struct sovia_clan_vi *cv, const struct sovia_clan_setup *setup)
{
	bool valid;

	spin_lock_bh(&cv->lock);
	valid = cv->state == SOVIA_CLAN_ASKED && cv->passive == !setup;
	if (valid && setup) {
		cv->their_number = le16_to_cpu(setup->vi);
		cv->their_epoch = le32_to_cpu(setup->epoch);
		cv->hello = setup->hello;
	}
	if (valid)
		WRITE_ONCE(cv->state, SOVIA_CLAN_ANSWERED);
	else
		valid = cv->state == SOVIA_CLAN_DEAD;
	if (!cv->told)
		queue_work(sovia_setup_wq, &cv->work);
	spin_unlock_bh(&cv->lock);
	return valid;
}

/* ---- requests --------------------------------------------------------------- */

static void request_free(struct clan_request *cr)
{
	atomic_dec(&cr->node->requests);
	sovia_clan_port_put(cr->node->port);
	kfree(cr);
	sovia_object_dec(requests);
}

/* If it is lost, as the peer does not read or there is no memory for it, the peer gives up. */
static void clan_refuse(struct sovia_clan_node *node, u16 vi, u32 epoch, int err)
{
	const struct sovia_clan_setup setup = { .err = cpu_to_le16(-err) };

	sovia_clan_control(node, SOVIA_CLAN_REJ, vi, epoch, &setup);
}

static void request_work(struct work_struct *work)
{
	struct clan_request *cr = container_of(work, struct clan_request, work);

	down_read(&clan_listen_sem);
	if (clan_request_upcall) {
		if (!sovia_vi_bench_request(&cr->req))
			clan_request_upcall(&cr->req);
	} else {
		clan_refuse(cr->node, cr->vi, cr->epoch, -ECONNREFUSED);
		request_free(cr);
	}
	up_read(&clan_listen_sem);
}

/*
 * An end of a way, as MACs have it: node, its generation, and half of the memory's uuid, for which
 * there is room.  64 random bits tell memories apart as well.
 */
static void path_end(const struct sovia_clan_port *port, u32 number, u32 generation, u8 *end)
{
	__le32 words[] = { cpu_to_le32(number), cpu_to_le32(generation) };

	memcpy(end, words, sizeof(words));
	memcpy(end + sizeof(words), port->geometry.uuid, sizeof(words));
}

static void path_to(const struct sovia_clan_node *node, struct sovia_path *path)
{
	const struct sovia_clan_port *port = node->port;

	path_end(port, port->number, port->generation, path->local);
	path_end(port, node->number, READ_ONCE(node->generation), path->remote);
}

/**
 * sovia_clan_requested() - REQ has come
 * @node: from whom
 * @setup: its body
 *
 * Context: bottom half.
 */
void sovia_clan_requested(struct sovia_clan_node *node, const struct sovia_clan_setup *setup)
{
	u16 vi = le16_to_cpu(setup->vi);
	u32 epoch = le32_to_cpu(setup->epoch);
	struct clan_request *cr = NULL;

	if (atomic_inc_return(&node->requests) <= CLAN_REQUESTS_MAX)
		cr = kzalloc(sizeof(*cr), GFP_ATOMIC | __GFP_NOWARN);
	if (!cr || !READ_ONCE(clan_request_upcall)) {
		atomic_dec(&node->requests);
		kfree(cr);
		clan_refuse(node, vi, epoch, cr ? -ECONNREFUSED : -EBUSY);
		return;
	}
	sovia_object_inc(requests);
	refcount_inc(&node->port->refs);
	cr->node = node;
	cr->vi = vi;
	cr->epoch = epoch;
	cr->req.prov = node->port->prov;
	cr->req.net = node->port->net;
	path_to(node, &cr->req.path);
	memcpy(&cr->req.pair.local, setup->remote, sizeof(cr->req.pair.local));
	memcpy(&cr->req.pair.remote, setup->local, sizeof(cr->req.pair.remote));
	cr->req.pair.passive = ipv6_addr_equal(&cr->req.pair.local, &cr->req.pair.remote);
	cr->req.hello = setup->hello;
	cr->req.hello_len = sizeof(setup->hello);
	INIT_WORK(&cr->work, request_work);
	queue_work(sovia_setup_wq, &cr->work);
}

/* ---- VIs ---------------------------------------------------------------------- */

static void vi_free(struct sovia_clan_vi *cv)
{
	if (cv->port)
		sovia_clan_port_put(cv->port);
	kvfree(cv->sent);
	kfree_rcu(cv, rcu);
	sovia_object_dec(clan_vis);
}

static void clan_end_work(struct work_struct *work)
{
	struct sovia_clan_vi *cv = container_of(work, struct sovia_clan_vi, end_work);

	/* The bottom half does not find it any more: clan_end(). */
	synchronize_rcu();
	cancel_delayed_work_sync(&cv->late);
	cancel_work_sync(&cv->work);
	spin_lock_bh(&cv->node->lock);
	if (cv->lender && !--cv->node->lenders)
		cv->node->left = jiffies;
	while (cv->tail != cv->head)
		sovia_clan_vi_complete(cv, false);
	spin_unlock_bh(&cv->node->lock);
	__skb_queue_purge(&cv->early);
	cv->vi.client->ended(&cv->vi);
	vi_free(cv);
}

static struct sovia_clan_vi *vi_alloc(const struct sovia_provider *prov,
				      const struct sovia_pair *pair,
				      const struct sovia_vi_attr *attr,
				      const struct sovia_vi_client *client, void *context)
{
	struct sovia_clan_vi *cv = kzalloc(sizeof(*cv), GFP_KERNEL);

	if (!cv)
		return NULL;
	cv->sent = kvcalloc(attr->send_depth, sizeof(*cv->sent), GFP_KERNEL);
	if (!cv->sent) {
		kfree(cv);
		return NULL;
	}
	sovia_object_inc(clan_vis);
	cv->vi.prov = prov;
	cv->vi.client = client;
	cv->vi.context = context;
	cv->vi.pair = *pair;
	cv->vi.attr = *attr;
	cv->vi.max_frags = MAX_SKB_FRAGS;
	cv->vi.imm = true;
	cv->epoch = get_random_u32();
	spin_lock_init(&cv->lock);
	__skb_queue_head_init(&cv->early);
	INIT_WORK(&cv->work, clan_vi_work);
	INIT_DELAYED_WORK(&cv->late, clan_late_work);
	INIT_LIST_HEAD(&cv->sender);
	INIT_WORK(&cv->end_work, clan_end_work);
	return cv;
}

/* The VI takes over a reference to the node's port. */
static void vi_set_node(struct sovia_clan_vi *cv, struct sovia_clan_node *node)
{
	cv->node = node;
	cv->port = node->port;
}

/* Let the bottom half find it.  Returns 0 or a negative errno. */
static int vi_publish(struct sovia_clan_vi *cv)
{
	return xa_alloc_cyclic_bh(&cv->port->vis, &cv->number, cv, XA_LIMIT(1, U16_MAX),
				  &cv->port->next, GFP_KERNEL) < 0 ? -EBUSY : 0;
}

static int send_setup(struct sovia_clan_vi *cv, u8 kind, const struct sovia_hello *hello)
{
	struct sovia_clan_setup setup = {
		.epoch = cpu_to_le32(cv->epoch), .vi = cpu_to_le16(cv->number), .hello = *hello,
	};
	int err;

	memcpy(setup.local, &cv->vi.pair.local, sizeof(setup.local));
	memcpy(setup.remote, &cv->vi.pair.remote, sizeof(setup.remote));
	err = sovia_clan_control(cv->node, kind, cv->their_number, cv->their_epoch, &setup);
	if (!err)
		queue_delayed_work(sovia_setup_wq, &cv->late, CLAN_ANSWER);
	return err;
}

/* Complete a hello.  Returns 0 or a negative errno. */
static int clan_seal(struct sovia_clan_vi *cv, const struct sovia_hello *hello,
		     struct sovia_hello *sealed)
{
	struct sovia_path path;

	*sealed = *hello;
	if (!cv->vi.prov->introduced)
		return 0;
	path_to(cv->node, &path);
	return cv->vi.client->seal(&cv->vi, &path, sealed);
}

/* Returns 0 or a negative errno. */
static int vi_ask(struct sovia_clan_vi *cv, const struct sovia_hello *hello)
{
	struct sovia_hello sealed;
	int err;

	err = clan_seal(cv, hello, &sealed) ?: vi_publish(cv);
	if (err)
		return err;
	err = send_setup(cv, SOVIA_CLAN_REQ, &sealed);
	if (!err)
		return 0;
	xa_erase_bh(&cv->port->vis, cv->number);
	spin_lock_bh(&cv->lock);
	WRITE_ONCE(cv->state, SOVIA_CLAN_DEAD);
	cv->told = true;
	spin_unlock_bh(&cv->lock);
	cancel_work_sync(&cv->work);
	return err == -ENOTCONN ? -EHOSTUNREACH : err;
}

static struct sovia_clan_node *node_of(struct net *net, struct sovia_clan_vi *cv)
{
	struct sovia_clan_way way;

	if (cv->vi.prov->local)
		return sovia_clan_soft_node(net);
	cv->vi.client->way(&cv->vi, &way);
	return sovia_clan_way_node(net, &way);
}

static struct sovia_vi *connect_over(const struct sovia_provider *prov, struct net *net,
				     const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context)
{
	struct sovia_clan_vi *cv = vi_alloc(prov, pair, attr, client, context);
	struct sovia_clan_node *node;
	int err = -EHOSTUNREACH;

	if (!cv)
		return ERR_PTR(-ENOMEM);
	node = node_of(net, cv);
	if (node) {
		vi_set_node(cv, node);
		err = vi_ask(cv, hello);
	}
	if (!err)
		return &cv->vi;
	vi_free(cv);
	return ERR_PTR(err);
}

static struct sovia_vi *clan_connect(struct net *net, const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context)
{
	return connect_over(&sovia_clan_provider, net, pair, attr, hello, client, context);
}

static struct sovia_vi *soft_connect(struct net *net, const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context)
{
	return connect_over(&sovia_clan_soft_provider, net, pair, attr, hello, client, context);
}

static void clan_reject(struct sovia_vi_request *req, int err)
{
	struct clan_request *cr = container_of(req, struct clan_request, req);

	/* As with verbs, it is the peer that lacks memory. */
	clan_refuse(cr->node, cr->vi, cr->epoch, err == -ENOMEM ? -EBUSY : err);
	request_free(cr);
}

static struct sovia_vi *clan_accept(struct sovia_vi_request *req,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_hello *hello,
				    const struct sovia_vi_client *client, void *context)
{
	struct clan_request *cr = container_of(req, struct clan_request, req);
	struct sovia_clan_vi *cv = vi_alloc(req->prov, &req->pair, attr, client, context);
	struct sovia_hello sealed;

	if (!cv) {
		clan_reject(req, -ENOMEM);
		return ERR_PTR(-ENOMEM);
	}
	refcount_inc(&cr->node->port->refs);
	vi_set_node(cv, cr->node);
	cv->passive = true;
	cv->their_number = cr->vi;
	cv->their_epoch = cr->epoch;
	cv->hello = req->hello;
	if (clan_seal(cv, hello, &sealed) || vi_publish(cv) ||
	    send_setup(cv, SOVIA_CLAN_REP, &sealed))
		sovia_clan_vi_closed(cv, -ECONNRESET);
	request_free(cr);
	return &cv->vi;
}

static void clan_fail(struct sovia_vi *vi)
{
	sovia_clan_vi_closed(to_clan(vi), -EIO);
}

static void clan_end(struct sovia_vi *vi)
{
	struct sovia_clan_vi *cv = to_clan(vi);

	if (cv->number)
		xa_erase_bh(&cv->port->vis, cv->number);
	spin_lock_bh(&cv->lock);
	WRITE_ONCE(cv->state, SOVIA_CLAN_DEAD);
	cv->told = true;
	spin_unlock_bh(&cv->lock);
	spin_lock_bh(&cv->node->lock);
	list_del_init(&cv->sender);
	spin_unlock_bh(&cv->node->lock);
	/* One that has asked does not know whom yet: the answer finds it gone. */
	if (cv->their_number)
		sovia_clan_control(cv->node, SOVIA_CLAN_BYE, cv->their_number, cv->their_epoch,
				   NULL);
	queue_work(sovia_end_wq, &cv->end_work);
}

static void set_upcall(void (*request)(struct sovia_vi_request *req))
{
	down_write(&clan_listen_sem);
	WRITE_ONCE(clan_request_upcall, request);
	up_write(&clan_listen_sem);
}

static int clan_listen(struct net *net, void (*request)(struct sovia_vi_request *req))
{
	if (net_eq(net, &init_net))
		set_upcall(request);
	return 0;
}

static void clan_unlisten(struct net *net)
{
	if (net_eq(net, &init_net))
		set_upcall(NULL);
}

const struct sovia_provider sovia_clan_provider = {
	.name		= "clan",
	.stats		= SOVIA_STAT_clan_tx_msgs,
	.introduced	= true,
	.in_memory	= true,
	.poll_usec	= &clan_poll,
	.listen		= clan_listen,
	.unlisten	= clan_unlisten,
	.connect	= clan_connect,
	.accept		= clan_accept,
	.reject		= clan_reject,
	.post_send	= sovia_clan_post_send,
	.fail		= clan_fail,
	.end		= clan_end,
};

const struct sovia_provider sovia_clan_soft_provider = {
	.name		= "clan-soft",
	.stats		= SOVIA_STAT_loop_tx_msgs,
	.local		= true,
	.in_memory	= true,
	.listen		= clan_listen,
	.unlisten	= clan_unlisten,
	.connect	= soft_connect,
	.accept		= clan_accept,
	.reject		= clan_reject,
	.post_send	= sovia_clan_post_send,
	.fail		= clan_fail,
	.end		= clan_end,
};

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/clan_vi_test.c"
#endif

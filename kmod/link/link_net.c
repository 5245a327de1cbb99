// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link layer in a network namespace: it listens for link requests from the first
 * socket to the last one, which ends all links.
 *
 * Listening and links hold the namespace, so its exit finds neither and has nothing to wait
 * for.  The initial namespace listens until the module is unloaded.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "core/connd.h"
#include "core/work.h"
#include "link_net.h"
#include "link_request.h"
#include "link_state.h"
#include "link_table.h"
#include "peer/peer_memory.h"

/* Retry of a failed listen over verbs: the delay doubles each time. */
#define SOVIA_LISTEN_RETRY_MIN	HZ
#define SOVIA_LISTEN_RETRY_MAX	(60 * HZ)

/* Namespaces that listen, or did: sovia_net::served_node. */
static LIST_HEAD(served_nets);
static DEFINE_SPINLOCK(served_lock);	/* protects served_nets */

/* Listen over all providers that are @local, or all others.  Idempotent. */
static int listen_over(struct sovia_net *snet, bool local)
{
	const struct sovia_provider * const *prov;
	int err, first = 0;

	for (prov = sovia_providers; *prov; prov++) {
		if ((*prov)->local != local)
			continue;
		err = (*prov)->listen(snet->net, sovia_link_request);
		if (err && !snet->listen_wait)
			pr_warn("cannot listen for links over %s: %pe%s\n", (*prov)->name,
				ERR_PTR(err), local ? "" : ", retrying");
		first = first ?: err;
	}
	return first;
}

/*
 * Listen for other hosts in a work: the service port needs CAP_NET_BIND_SERVICE, which
 * the program that opens the first socket may lack.  Failures may be temporary: retry.
 */
static void listen_work(struct work_struct *work)
{
	struct sovia_net *snet = container_of(to_delayed_work(work), struct sovia_net,
					      listen_work);

	if (!listen_over(snet, false)) {
		if (snet->listen_wait)
			pr_notice("listening for links now\n");
		snet->listen_wait = 0;
		return;
	}
	snet->listen_wait = clamp(2 * snet->listen_wait, (unsigned long)SOVIA_LISTEN_RETRY_MIN,
				  (unsigned long)SOVIA_LISTEN_RETRY_MAX);
	queue_delayed_work(sovia_listen_wq, &snet->listen_work, snet->listen_wait);
}

/* For the module's exit.  Once for each namespace. */
static void net_served(struct sovia_net *snet)
{
	spin_lock(&served_lock);
	if (!snet->served) {
		list_add(&snet->served_node, &served_nets);
		WRITE_ONCE(snet->served, true);
	}
	spin_unlock(&served_lock);
}

/*
 * sovia_link_devices_changed() queues listen_work only while this is set, and under the same lock:
 * so once it is cleared, cancel_delayed_work_sync() is final.
 */
static void net_may_listen(struct sovia_net *snet, bool may)
{
	spin_lock(&served_lock);
	snet->may_listen = may;
	spin_unlock(&served_lock);
}

/**
 * sovia_link_listen() - start to listen for link requests in a namespace
 * @snet: the namespace, which has a socket
 *
 * Called by the first listen() and connect().
 * Not an error without verbs: peers on this host remain, and a device may be added.
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_link_listen(struct sovia_net *snet)
{
	int err = 0;

	/* Pairs with stop_listening(): it sees the socket counted, or we its flag. */
	smp_mb();
	if (READ_ONCE(snet->listening))
		return 0;
	net_served(snet);
	mutex_lock(&snet->listen_mutex);
	if (!snet->listening) {
		err = listen_over(snet, true);
		if (!err) {
			net_may_listen(snet, true);
			queue_delayed_work(sovia_listen_wq, &snet->listen_work, 0);
			flush_delayed_work(&snet->listen_work);
			get_net_track(snet->net, &snet->listen_tracker, GFP_KERNEL);
			WRITE_ONCE(snet->listening, true);
		}
	}
	mutex_unlock(&snet->listen_mutex);
	return err;
}

/* With @unused, only if no socket relies on it.  The caller holds the namespace. */
static void stop_listening(struct sovia_net *snet, bool unused)
{
	const struct sovia_provider * const *prov;
	bool was;

	mutex_lock(&snet->listen_mutex);
	was = snet->listening;
	WRITE_ONCE(snet->listening, false);
	/* Pairs with the one in sovia_link_listen(). */
	smp_mb();
	if (unused && atomic_read(&snet->socks)) {
		WRITE_ONCE(snet->listening, was);
	} else if (was) {
		net_may_listen(snet, false);
		cancel_delayed_work_sync(&snet->listen_work);
		snet->listen_wait = 0;
		for (prov = sovia_providers; *prov; prov++)
			(*prov)->unlisten(snet->net);
		put_net_track(snet->net, &snet->listen_tracker);
	}
	mutex_unlock(&snet->listen_mutex);
}

/* The second step after the last socket, in the connection thread: end the links. */
static void net_sweep(struct kthread_work *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, sweep_work);
	struct sovia_link *link;

	while (!atomic_read(&snet->socks) && (link = sovia_link_first(snet))) {
		sovia_link_down(link, -ECONNRESET);
		sovia_link_put(link);
	}
	put_net(snet->net);
}

/* The first one: stop listening, which may wait for devices. */
static void net_idle(struct work_struct *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, idle_work);

	/* A new socket keeps it listening, or starts it again. */
	stop_listening(snet, true);
	/* The reference goes on with the work, unless that is queued already. */
	if (!sovia_connd_queue(&snet->sweep_work))
		put_net(snet->net);
}

/*
 * What was not reached for want of a device may be now, and a link that has lost its lane need not
 * wait for its next turn.
 */
static void net_devices(struct kthread_work *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, devices_work);
	struct sovia_link *link;
	unsigned long id;

	sovia_memories_forget_why(snet, SOVIA_WHY_DEVICE);
	for (id = 0; (link = sovia_link_from(snet, &id)); id++) {
		if (link->state == SOVIA_LINK_RECOVERING && !link->trial_wait)
			sovia_link_event(link, SOVIA_LINK_EV_TIMER);
		sovia_link_put(link);
	}
	put_net(snet->net);
}

/**
 * sovia_link_devices_changed() - RDMA devices, ports or addresses of them have come
 *
 * A namespace that did not listen over them for want of one may do so now.
 *
 * Context: process.
 */
void sovia_link_devices_changed(void)
{
	struct sovia_net *snet;

	spin_lock(&served_lock);
	list_for_each_entry(snet, &served_nets, served_node) {
		if (snet->may_listen)
			mod_delayed_work(sovia_listen_wq, &snet->listen_work, 0);
		if (maybe_get_net(snet->net) && !sovia_connd_queue(&snet->devices_work))
			put_net(snet->net);
	}
	spin_unlock(&served_lock);
}

/**
 * sovia_link_net_init() - prepare a namespace's part in the link layer
 * @snet: the namespace
 *
 * Context: pernet init.
 */
void sovia_link_net_init(struct sovia_net *snet)
{
	spin_lock_init(&snet->link_lock);
	hash_init(snet->links);
	xa_init_flags(&snet->link_ids, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	INIT_LIST_HEAD(&snet->far_links);
	INIT_LIST_HEAD(&snet->parked_links);
	mutex_init(&snet->listen_mutex);
	INIT_DELAYED_WORK(&snet->listen_work, listen_work);
	INIT_WORK(&snet->idle_work, net_idle);
	kthread_init_work(&snet->sweep_work, net_sweep);
	kthread_init_work(&snet->devices_work, net_devices);
}

/**
 * sovia_link_net_idle() - release what the link layer holds of a namespace
 * @snet: a namespace that was served; without sockets, or it goes on
 *
 * Context: any.
 */
void sovia_link_net_idle(struct sovia_net *snet)
{
	/* If it is exiting, links and listening are gone: they would hold it. */
	if (maybe_get_net(snet->net) && !queue_work(sovia_listen_wq, &snet->idle_work))
		put_net(snet->net);
}

/**
 * sovia_link_sock_put() - a socket is about to be freed
 * @snet: its namespace, still pinned by it
 *
 * Context: any.
 */
void sovia_link_sock_put(struct sovia_net *snet)
{
	if (atomic_dec_and_test(&snet->socks) && READ_ONCE(snet->served) &&
	    !net_eq(snet->net, &init_net))
		sovia_link_net_idle(snet);
}

/**
 * sovia_link_net_exit() - a namespace exits
 * @snet: the namespace; nothing holds it any more
 *
 * Context: process.  Waits for nothing.
 */
void sovia_link_net_exit(struct sovia_net *snet)
{
	WARN_ON_ONCE(snet->listening || !hash_empty(snet->links));
	spin_lock(&served_lock);
	if (snet->served)
		list_del_init(&snet->served_node);
	spin_unlock(&served_lock);
}

/* A namespace that was served, with a reference, or NULL.  Each once. */
static struct sovia_net *served_next(struct list_head *done)
{
	struct sovia_net *snet, *found = NULL;

	spin_lock(&served_lock);
	list_for_each_entry(snet, &served_nets, served_node)
		if (maybe_get_net(snet->net)) {
			list_move(&snet->served_node, done);
			found = snet;
			break;
		}
	spin_unlock(&served_lock);
	return found;
}

/* Each link leaves the table, at the latest when its event is handled. */
static void kill_links(struct sovia_net *snet)
{
	struct sovia_link *link;

	while ((link = sovia_link_first(snet))) {
		sovia_link_event(link, SOVIA_LINK_EV_KILL);
		sovia_connd_flush();
		sovia_link_put(link);
	}
}

/**
 * sovia_link_stop() - end all links of all namespaces
 *
 * Their objects may stay until their VIs have ended: sovia_link_wait().
 *
 * Context: module exit: there are no sockets any more.  Process, may sleep; no locks.
 */
void sovia_link_stop(void)
{
	struct sovia_net *snet;
	LIST_HEAD(done);

	while ((snet = served_next(&done)))
		stop_listening(snet, false);
	/* Requests received before. */
	sovia_connd_flush();
	while ((snet = list_first_entry_or_null(&done, struct sovia_net, served_node))) {
		kill_links(snet);
		spin_lock(&served_lock);
		list_del_init(&snet->served_node);
		spin_unlock(&served_lock);
		put_net(snet->net);
	}
}

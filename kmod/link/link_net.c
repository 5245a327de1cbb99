// SPDX-License-Identifier: GPL-2.0-only
/*
 * The link layer in a network namespace: it listens for link requests from the first
 * socket to the last one, and ends all links when the namespace exits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "compat/workqueue.h"
#include "connd.h"
#include "link_net.h"
#include "link_request.h"
#include "link_state.h"
#include "link_table.h"

/* Retry of a failed listen over verbs: the delay doubles each time. */
#define SOVIA_LISTEN_RETRY_MIN	HZ
#define SOVIA_LISTEN_RETRY_MAX	(60 * HZ)

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
	queue_delayed_work(system_dfl_wq, &snet->listen_work, snet->listen_wait);
}

/**
 * sovia_link_listen() - start to listen for link requests in a namespace
 * @snet: the namespace, which has a socket
 *
 * Starts the connection thread.  Called by the first listen() and connect().
 * Not an error without verbs: peers on this host remain, and a device may be added.
 *
 * Context: process, may sleep; no locks.
 * Return: 0 or a negative errno.
 */
int sovia_link_listen(struct sovia_net *snet)
{
	int err;

	/* Pairs with stop_listening(): it sees the socket counted, or we its flag. */
	smp_mb();
	if (READ_ONCE(snet->listening))
		return 0;
	err = sovia_connd_start();
	if (err)
		return err;
	WRITE_ONCE(snet->served, true);
	mutex_lock(&snet->listen_mutex);
	if (!snet->listening) {
		err = listen_over(snet, true);
		if (!err) {
			queue_delayed_work(system_dfl_wq, &snet->listen_work, 0);
			flush_delayed_work(&snet->listen_work);
			WRITE_ONCE(snet->listening, true);
		}
	}
	mutex_unlock(&snet->listen_mutex);
	return err;
}

/* With @unused, only if no socket relies on it. */
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
		cancel_delayed_work_sync(&snet->listen_work);
		snet->listen_wait = 0;
		for (prov = sovia_providers; *prov; prov++)
			(*prov)->unlisten(snet->net);
	}
	mutex_unlock(&snet->listen_mutex);
}

/* The last socket of a namespace was freed: release what may pin the namespace. */
static void net_idle(struct kthread_work *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, idle_work);
	struct sovia_link *link;

	/* A new socket keeps it listening, or starts it again. */
	stop_listening(snet, true);
	while (!atomic_read(&snet->socks) && (link = sovia_link_first(snet))) {
		sovia_link_down(link, -ECONNRESET);
		sovia_link_put(link);
	}
}

/**
 * sovia_link_net_init() - prepare a namespace's part in the link layer
 * @snet: the namespace
 *
 * Context: pernet init.
 */
void sovia_link_net_init(struct sovia_net *snet)
{
	INIT_DELAYED_WORK(&snet->listen_work, listen_work);
	kthread_init_work(&snet->idle_work, net_idle);
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
		sovia_connd_queue(&snet->idle_work);
}

/**
 * sovia_link_net_exit() - end all links of a namespace that exits
 * @snet: the namespace; it has no sockets any more
 *
 * Context: process, may sleep; no locks.
 */
void sovia_link_net_exit(struct sovia_net *snet)
{
	struct sovia_link *link;

	stop_listening(snet, false);
	/* Wait for requests received before. */
	sovia_connd_flush();
	while ((link = sovia_link_first(snet))) {
		sovia_link_event(link, SOVIA_LINK_EV_KILL);
		sovia_connd_flush();
		sovia_link_put(link);
	}
	/* Sockets and links are freed after a grace period. */
	rcu_barrier();
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices and addresses come and go.
 *
 * An address of this host is removed: it may be another host's from now on (VRRP).  The links
 * from there lose their lanes and their anchor.  No connection is opened over them, and those
 * that there are end after recovery_timeout, unless the address comes back.  The peer finds the
 * same out from its lane, and reaches the other host: whose kernel does not know the link.
 */
#include <linux/inetdevice.h>
#include <linux/workqueue.h>
#include <net/addrconf.h>
#include "core/addr.h"
#include "link_moved.h"
#include "link_net.h"
#include "link_state.h"
#include "peer/peer.h"
#include "peer/peer_meet.h"

/* Devices and addresses that come within this time are one change. */
#define DEVICES_PAUSE	(HZ / 10)

/**
 * sovia_link_moved() - an address like the link's own has been removed
 * @link: in any state
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_moved(struct sovia_link *link)
{
	bool here;

	/* Another interface may have it, or it is back already. */
	rcu_read_lock();
	here = sovia_address_device(link->snet->net, &link->pair.local, link->pair.l3);
	rcu_read_unlock();
	if (here)
		return;
	if (link->peering.peer)
		sovia_peer_moved(link->peering.peer);
	if (link->state == SOVIA_LINK_UP && link->lane.vi)
		link->lane.vi->prov->fail(link->lane.vi);
}

static void address_removed(struct net *net, const struct in6_addr *addr)
{
	struct sovia_net *snet = sovia_net(net);
	struct sovia_link *link;

	spin_lock_bh(&snet->link_lock);
	list_for_each_entry(link, &snet->far_links, far_node)
		if (ipv6_addr_equal(&link->pair.local, addr))
			sovia_link_event(link, SOVIA_LINK_EV_MOVED);
	spin_unlock_bh(&snet->link_lock);
}

/* Under RTNL. */
static int inetaddr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct in_ifaddr *ifa = ptr;
	struct in6_addr addr;

	if (event != NETDEV_DOWN)
		return NOTIFY_DONE;
	ipv6_addr_set_v4mapped(ifa->ifa_local, &addr);
	address_removed(dev_net(ifa->ifa_dev->dev), &addr);
	return NOTIFY_DONE;
}

/* Perhaps in softirq. */
static int inet6addr_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	const struct inet6_ifaddr *ifa = ptr;

	if (event == NETDEV_DOWN)
		address_removed(dev_net(ifa->idev->dev), &ifa->addr);
	return NOTIFY_DONE;
}

static struct notifier_block inetaddr_notifier = {
	.notifier_call = inetaddr_event,
};

static struct notifier_block inet6addr_notifier = {
	.notifier_call = inet6addr_event,
};

static void devices_work(struct work_struct *work)
{
	sovia_link_devices_changed();
}

static DECLARE_DELAYED_WORK(devices_changed, devices_work);

/* Root of a container may change addresses in a loop, and each change concerns all namespaces. */
static int devices_event(struct notifier_block *nb, unsigned long event, void *none)
{
	schedule_delayed_work(&devices_changed, DEVICES_PAUSE);
	return NOTIFY_DONE;
}

static struct notifier_block devices_notifier = {
	.notifier_call = devices_event,
};

/**
 * sovia_moved_init() - begin to watch addresses and RDMA devices
 *
 * Context: module init; namespaces are registered.
 * Return: 0 or a negative errno.
 */
int sovia_moved_init(void)
{
	int err = register_inetaddr_notifier(&inetaddr_notifier);

	if (err)
		return err;
	err = register_inet6addr_notifier(&inet6addr_notifier);
	if (err)
		goto undo_inet;
	err = sovia_verbs_watch(&devices_notifier);
	if (err)
		goto undo_inet6;
	return 0;

undo_inet6:
	unregister_inet6addr_notifier(&inet6addr_notifier);
undo_inet:
	unregister_inetaddr_notifier(&inetaddr_notifier);
	return err;
}

/**
 * sovia_moved_exit() - stop it
 *
 * Context: module exit, before namespaces are unregistered.
 */
void sovia_moved_exit(void)
{
	sovia_verbs_unwatch(&devices_notifier);
	cancel_delayed_work_sync(&devices_changed);
	unregister_inet6addr_notifier(&inet6addr_notifier);
	unregister_inetaddr_notifier(&inetaddr_notifier);
}

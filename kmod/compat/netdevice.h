/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.10 added alloc_netdev_dummy(), 6.14 removed init_dummy_netdev(). */
#ifndef _SOVIA_COMPAT_NETDEVICE_H
#define _SOVIA_COMPAT_NETDEVICE_H

#include <linux/netdevice.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 10, 0)
/* It is up, so that NAPI works: init_dummy_netdev() would forget what was allocated. */
static inline void sovia_setup_dummy(struct net_device *dev)
{
	set_bit(__LINK_STATE_PRESENT, &dev->state);
	set_bit(__LINK_STATE_START, &dev->state);
}

static inline struct net_device *alloc_netdev_dummy(int sizeof_priv)
{
	return alloc_netdev(sizeof_priv, "dummy#", NET_NAME_UNKNOWN, sovia_setup_dummy);
}
#endif

#endif /* _SOVIA_COMPAT_NETDEVICE_H */

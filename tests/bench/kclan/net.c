// SPDX-License-Identifier: GPL-2.0-only
/*
 * IP in the memory: a network device whose packets go through the same rings that runs use, so
 * that TCP can be measured over the same memory as AF_SOVIA.
 *
 * A packet of up to 64 KB is a message (TCP need not segment), copied into the memory and out of
 * it.  Nobody damages it on the way: checksums are not computed.  The bottom half is NAPI; while it
 * runs, and while busy polling keeps it, the other node does not ring.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/skbuff.h>
#include "kclan.h"

/* A packet's length stands before it. */
#define KCLAN_HEAD	sizeof(u32)
#define KCLAN_MTU	9000
#define KCLAN_PACKET	(KCLAN_SLOT - KCLAN_HEAD)

/**
 * struct kclan_net - private part of the device
 * @napi: takes packets
 * @kc: the memory
 */
struct kclan_net {
	struct napi_struct	napi;
	struct kclan		*kc;
};

static netdev_tx_t kclan_net_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct kclan *kc = ((struct kclan_net *)netdev_priv(dev))->kc;
	u8 *slot = kc->ours->slot[kc->head % KCLAN_SLOTS];

	if (skb->len > KCLAN_PACKET) {
		dev->stats.tx_dropped++;
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	if (!kclan_has_room(kc)) {
		netif_stop_queue(dev);
		/* It may have become so in between: pairs with kclan_net_poll(). */
		virt_mb();
		if (!kclan_has_room(kc)) {
			kclan_wake(kc);
			return NETDEV_TX_BUSY;
		}
		netif_start_queue(dev);
	}
	*(u32 *)slot = skb->len;
	skb_copy_bits(skb, 0, slot + KCLAN_HEAD, skb->len);
	/* It is there: pairs with kclan_has_message(). */
	virt_store_release(&kc->ours->head, ++kc->head);
	kclan_wake(kc);
	dev->stats.tx_packets++;
	dev->stats.tx_bytes += skb->len;
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
}

/* Returns NULL without memory. */
static struct sk_buff *take(const u8 *slot, u32 len)
{
	u32 linear = len <= SZ_2K ? len : 256;
	struct sk_buff *skb;
	int err;

	skb = alloc_skb_with_frags(NET_SKB_PAD + linear, len - linear, PAGE_ALLOC_COSTLY_ORDER,
				   &err, GFP_ATOMIC);
	if (!skb)
		return NULL;
	skb_reserve(skb, NET_SKB_PAD);
	skb_put(skb, linear);
	skb->len += len - linear;
	skb->data_len = len - linear;
	skb_store_bits(skb, 0, slot + KCLAN_HEAD, len);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	return skb;
}

static void receive(struct kclan_net *net, struct net_device *dev)
{
	struct kclan *kc = net->kc;
	const u8 *slot = kc->theirs->slot[kc->tail % KCLAN_SLOTS];
	u32 len = READ_ONCE(*(const u32 *)slot);
	struct sk_buff *skb = NULL;

	if (len && len <= KCLAN_PACKET)
		skb = take(slot, len);
	/* It has been copied: pairs with kclan_has_room(). */
	virt_store_release(&kc->ours->tail, ++kc->tail);
	if (!skb) {
		dev->stats.rx_dropped++;
		return;
	}
	dev->stats.rx_packets++;
	dev->stats.rx_bytes += len;
	skb->dev = dev;
	skb_reset_mac_header(skb);
	skb->protocol = (*skb->data >> 4) == 6 ? htons(ETH_P_IPV6) : htons(ETH_P_IP);
	napi_gro_receive(&net->napi, skb);
}

static int kclan_net_poll(struct napi_struct *napi, int budget)
{
	struct kclan_net *net = container_of(napi, struct kclan_net, napi);
	struct net_device *dev = napi->dev;
	struct kclan *kc = net->kc;
	int done = 0;

	while (done < budget && kclan_has_message(kc)) {
		receive(net, dev);
		done++;
	}
	/* The other end may have stopped for room. */
	if (done)
		kclan_wake(kc);
	if (netif_queue_stopped(dev) && kclan_has_room(kc))
		netif_wake_queue(dev);
	if (done == budget || !napi_complete_done(napi, done))
		return done;
	kclan_set_sleeps(kc, true);
	if (kclan_has_message(kc) && napi_schedule_prep(napi)) {
		kclan_set_sleeps(kc, false);
		__napi_schedule(napi);
	}
	return done;
}

/**
 * kclan_net_rung() - the other node has rung
 * @kc: the device
 *
 * Context: hard interrupt.
 */
void kclan_net_rung(struct kclan *kc)
{
	struct net_device *dev = READ_ONCE(kc->net);
	struct kclan_net *net;

	if (!dev)
		return;
	net = netdev_priv(dev);
	if (napi_schedule_prep(&net->napi)) {
		kclan_set_sleeps(kc, false);
		__napi_schedule_irqoff(&net->napi);
	}
}

static int kclan_net_open(struct net_device *dev)
{
	struct kclan_net *net = netdev_priv(dev);

	napi_enable(&net->napi);
	netif_start_queue(dev);
	kclan_set_sleeps(net->kc, true);
	napi_schedule(&net->napi);
	return 0;
}

static int kclan_net_stop(struct net_device *dev)
{
	struct kclan_net *net = netdev_priv(dev);

	netif_stop_queue(dev);
	napi_disable(&net->napi);
	return 0;
}

static const struct net_device_ops kclan_net_ops = {
	.ndo_open	= kclan_net_open,
	.ndo_stop	= kclan_net_stop,
	.ndo_start_xmit	= kclan_net_xmit,
};

static void kclan_net_setup(struct net_device *dev)
{
	dev->netdev_ops = &kclan_net_ops;
	dev->type = ARPHRD_NONE;
	dev->flags = IFF_POINTOPOINT | IFF_NOARP;
	dev->mtu = KCLAN_MTU;
	dev->min_mtu = 68;
	dev->max_mtu = KCLAN_PACKET;
	dev->tx_queue_len = 1000;
	dev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_TSO | NETIF_F_TSO6 |
			NETIF_F_HIGHDMA | NETIF_F_FRAGLIST;
	dev->hw_features = dev->features;
	netif_set_tso_max_size(dev, KCLAN_PACKET);
}

/**
 * kclan_net_make() - make the network device
 * @kc: the memory
 * @peer: number of the other node, which has to do the same
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int kclan_net_make(struct kclan *kc, u32 peer)
{
	struct kclan_net *net;
	struct net_device *dev;
	int err;

	if (peer >= kc->nodes || peer == kc->number)
		return -ENXIO;
	if (kc->net)
		return -EEXIST;
	dev = alloc_netdev(sizeof(*net), "mem%d", NET_NAME_ENUM, kclan_net_setup);
	if (!dev)
		return -ENOMEM;
	net = netdev_priv(dev);
	net->kc = kc;
	netif_napi_add(dev, &net->napi, kclan_net_poll);
	mutex_lock(&kc->mutex);
	kclan_join(kc, peer);
	WRITE_ONCE(kc->net, dev);
	mutex_unlock(&kc->mutex);
	err = register_netdev(dev);
	if (err) {
		WRITE_ONCE(kc->net, NULL);
		synchronize_irq(kc->irq);
		free_netdev(dev);
	}
	return err;
}

/**
 * kclan_net_free() - undo that
 * @kc: the memory
 *
 * Context: process.
 */
void kclan_net_free(struct kclan *kc)
{
	struct net_device *dev = kc->net;

	if (!dev)
		return;
	unregister_netdev(dev);
	WRITE_ONCE(kc->net, NULL);
	synchronize_irq(kc->irq);
	free_netdev(dev);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * klane: IP over a queue pair, as LANEVI emulates a network on VIs (KSOVIA 2.2, 3.1, 3.2): TCP over
 * the same verbs that AF_SOVIA uses, instead of the Ethernet below them.
 *
 * A network device for each pair of addresses that the parameter "lanes" names, LOCAL-PEER in IPv4,
 * which are those of RDMA devices.  Packets are copied into buffers that are mapped once, and sent;
 * what arrives is copied out of such buffers into an sk_buff.  A packet is a message.  There is no
 * flow control: TCP has one, and the queue pair waits for receives.  The queue pair finds damaged
 * packets, so that neither end computes TCP's checksum.
 *
 * The end with the lower address asks for the connection, until it has one; one that is lost is not
 * replaced.  Devices have no ARP, and all the same address.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define KLANE_PORT	7706
#define KLANE_DEPTH	64		/* buffers each way */
#define KLANE_SIGNAL	16		/* one of so many sends is signaled */
#define KLANE_MAX	4		/* devices */
#define KLANE_MTU_MAX	65000
#define KLANE_STEP	(10 * HZ)	/* timeout of each step */
#define KLANE_POLL	16		/* completions polled at once */
#define KLANE_RNR	12		/* 0.64 ms until a send without a receive is tried again */
#define KLANE_FRAGMENT	SZ_16K		/* longer packets are not in fragments of pages */

static char *lanes[KLANE_MAX];
static int num_lanes;
module_param_array(lanes, charp, &num_lanes, 0444);
MODULE_PARM_DESC(lanes, "LOCAL-PEER,... addresses of both ends of each device");

static unsigned int mtu = 9000;
module_param(mtu, uint, 0444);
MODULE_PARM_DESC(mtu, "of the devices, at most 65000 (9000)");

static bool gso[KLANE_MAX];
module_param_array(gso, bool, NULL, 0444);
MODULE_PARM_DESC(gso, "of each device: TCP sends up to 64 KB as one packet (N)");

/**
 * struct klane_buffer - memory for a packet
 * @lane: of this device
 * @data: the packet
 * @dma: its address for the device
 * @cqe: completion of a receive into it, or of a signaled send
 */
struct klane_buffer {
	struct klane	*lane;
	void		*data;
	u64		dma;
	struct ib_cqe	cqe;
};

/**
 * struct klane - a network device over one queue pair
 * @netdev: the device
 * @napi: polls @cq
 * @local: address of this end
 * @peer: address of the other one
 * @gso: packets of up to 64 KB; both ends have the same
 * @id: rdma_cm's identifier, or NULL
 * @pd: protection domain
 * @cq: completions of both queues
 * @size: of a buffer
 * @tx: buffers of sends, used in turn
 * @rx: buffers of receives
 * @posted: sends posted; by the transmit lock
 * @sent: sends completed; by @napi
 * @step: woken by each event of @id
 * @event: the last one + 1, or 0
 * @gone: the connection has ended, or is not to be made any more
 * @work: sets the connection up
 */
struct klane {
	struct net_device	*netdev;
	struct napi_struct	napi;
	__be32			local;
	__be32			peer;
	bool			gso;
	struct rdma_cm_id	*id;
	struct ib_pd		*pd;
	struct ib_cq		*cq;
	unsigned int		size;
	struct klane_buffer	tx[KLANE_DEPTH];
	struct klane_buffer	rx[KLANE_DEPTH];
	u32			posted;
	u32			sent;
	wait_queue_head_t	step;
	int			event;
	bool			gone;
	struct work_struct	work;
};

static struct klane *klanes[KLANE_MAX];
static struct rdma_cm_id *listener;

static bool asks(const struct klane *lane)
{
	return ntohl(lane->local) < ntohl(lane->peer);
}

/* ---- packets --------------------------------------------------------- */

static int post_receive(struct klane_buffer *buffer)
{
	struct klane *lane = buffer->lane;
	struct ib_sge sge = {
		.addr = buffer->dma, .length = lane->size, .lkey = lane->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &buffer->cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(lane->id->qp, &wr, NULL);
}

/* What the kernel clears of it is no more than that, as in drivers of Ethernet. */
static struct sk_buff *alloc(struct net_device *netdev, unsigned int len)
{
	unsigned int room = SKB_DATA_ALIGN(NET_SKB_PAD + NET_IP_ALIGN + len) +
			    SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	struct sk_buff *skb;
	void *fragment;

	if (room > KLANE_FRAGMENT)
		return netdev_alloc_skb_ip_align(netdev, len);
	fragment = netdev_alloc_frag(room);
	if (!fragment)
		return NULL;
	skb = build_skb(fragment, room);
	if (!skb) {
		skb_free_frag(fragment);
		return NULL;
	}
	skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
	skb->dev = netdev;
	return skb;
}

static void deliver(struct klane *lane, const struct klane_buffer *buffer, unsigned int len)
{
	struct net_device *netdev = lane->netdev;
	struct sk_buff *skb = alloc(netdev, len);

	if (!skb) {
		netdev->stats.rx_dropped++;
		return;
	}
	skb_put_data(skb, buffer->data, len);
	skb->protocol = eth_type_trans(skb, netdev);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	netdev->stats.rx_packets++;
	netdev->stats.rx_bytes += len;
	netif_receive_skb(skb);
}

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct klane_buffer *buffer = container_of(wc->wr_cqe, struct klane_buffer, cqe);
	struct klane *lane = buffer->lane;
	struct ib_device *device = cq->device;

	if (wc->status != IB_WC_SUCCESS)
		return;
	ib_dma_sync_single_for_cpu(device, buffer->dma, wc->byte_len, DMA_FROM_DEVICE);
	if (wc->byte_len >= ETH_HLEN)
		deliver(lane, buffer, wc->byte_len);
	ib_dma_sync_single_for_device(device, buffer->dma, lane->size, DMA_FROM_DEVICE);
	if (!READ_ONCE(lane->gone))
		post_receive(buffer);
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct klane_buffer *buffer = container_of(wc->wr_cqe, struct klane_buffer, cqe);
	struct klane *lane = buffer->lane;

	if (wc->status != IB_WC_SUCCESS)
		return;
	WRITE_ONCE(lane->sent, lane->sent + KLANE_SIGNAL);
	/* Pairs with the barrier in transmit(). */
	smp_mb();
	if (netif_queue_stopped(lane->netdev))
		netif_wake_queue(lane->netdev);
}

static int poll(struct napi_struct *napi, int budget)
{
	struct klane *lane = container_of(napi, struct klane, napi);
	struct ib_wc wc[KLANE_POLL];
	int i, n, done = 0;

	while (done < budget) {
		n = ib_poll_cq(lane->cq, min(budget - done, KLANE_POLL), wc);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			wc[i].wr_cqe->done(lane->cq, &wc[i]);
		done += n;
	}
	if (done < budget && napi_complete_done(napi, done) &&
	    ib_req_notify_cq(lane->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		napi_schedule(napi);
	return done;
}

static void completed(struct ib_cq *cq, void *context)
{
	struct klane *lane = context;

	napi_schedule(&lane->napi);
}

static bool is_full(const struct klane *lane)
{
	return lane->posted - READ_ONCE(lane->sent) >= KLANE_DEPTH;
}

static int send(struct klane *lane, struct sk_buff *skb)
{
	struct klane_buffer *buffer = &lane->tx[lane->posted % KLANE_DEPTH];
	struct ib_sge sge = {
		.addr = buffer->dma, .length = skb->len, .lkey = lane->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &buffer->cqe, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
	};

	if (skb->len > lane->size || skb_copy_bits(skb, 0, buffer->data, skb->len))
		return -EINVAL;
	ib_dma_sync_single_for_device(lane->id->device, buffer->dma, skb->len, DMA_TO_DEVICE);
	if ((lane->posted + 1) % KLANE_SIGNAL == 0)
		wr.send_flags = IB_SEND_SIGNALED;
	return ib_post_send(lane->id->qp, &wr, NULL);
}

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct klane *lane = netdev_priv(netdev);

	if (send(lane, skb)) {
		netdev->stats.tx_dropped++;
	} else {
		lane->posted++;
		netdev->stats.tx_packets++;
		netdev->stats.tx_bytes += skb->len;
	}
	dev_kfree_skb_any(skb);
	if (is_full(lane)) {
		netif_stop_queue(netdev);
		/* Pairs with the barrier in sent(). */
		smp_mb();
		if (!is_full(lane))
			netif_start_queue(netdev);
	}
	return NETDEV_TX_OK;
}

static int open(struct net_device *netdev)
{
	/* Otherwise sent() does. */
	if (!is_full(netdev_priv(netdev)))
		netif_start_queue(netdev);
	return 0;
}

static int stop(struct net_device *netdev)
{
	netif_stop_queue(netdev);
	return 0;
}

static const struct net_device_ops netdev_ops = {
	.ndo_open	= open,
	.ndo_stop	= stop,
	.ndo_start_xmit	= transmit,
};

/* ---- queue pair ------------------------------------------------------ */

static int map_buffers(struct klane *lane, struct klane_buffer *buffers,
		       enum dma_data_direction direction,
		       void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct ib_device *device = lane->id->device;
	struct klane_buffer *buffer;

	for (buffer = buffers; buffer < buffers + KLANE_DEPTH; buffer++) {
		buffer->lane = lane;
		buffer->cqe.done = done;
		buffer->data = kmalloc(lane->size, GFP_KERNEL);
		if (!buffer->data)
			return -ENOMEM;
		buffer->dma = ib_dma_map_single(device, buffer->data, lane->size, direction);
		if (ib_dma_mapping_error(device, buffer->dma)) {
			kfree(buffer->data);
			buffer->data = NULL;
			return -ENOMEM;
		}
	}
	return 0;
}

static void unmap_buffers(struct klane *lane, struct klane_buffer *buffers,
			  enum dma_data_direction direction)
{
	struct klane_buffer *buffer;

	for (buffer = buffers; buffer < buffers + KLANE_DEPTH; buffer++) {
		if (!buffer->data)
			continue;
		ib_dma_unmap_single(lane->id->device, buffer->dma, lane->size, direction);
		kfree(buffer->data);
		buffer->data = NULL;
	}
}

static int create_qp(struct klane *lane)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 2 * KLANE_DEPTH + 2 };
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr	= KLANE_DEPTH + 1,
			.max_recv_wr	= KLANE_DEPTH + 1,
			.max_send_sge	= 1,
			.max_recv_sge	= 1,
		},
		.qp_type	= IB_QPT_RC,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
	};
	int i, err;

	lane->pd = ib_alloc_pd(lane->id->device, 0);
	if (IS_ERR(lane->pd)) {
		err = PTR_ERR(lane->pd);
		lane->pd = NULL;
		return err;
	}
	lane->cq = ib_create_cq(lane->id->device, completed, NULL, lane, &cq_attr);
	if (IS_ERR(lane->cq)) {
		err = PTR_ERR(lane->cq);
		lane->cq = NULL;
		return err;
	}
	napi_enable(&lane->napi);
	attr.send_cq = lane->cq;
	attr.recv_cq = lane->cq;
	err = map_buffers(lane, lane->tx, DMA_TO_DEVICE, sent) ?:
	      map_buffers(lane, lane->rx, DMA_FROM_DEVICE, received) ?:
	      rdma_create_qp(lane->id, lane->pd, &attr);
	for (i = 0; i < KLANE_DEPTH && !err; i++)
		err = post_receive(&lane->rx[i]);
	if (!err)
		err = ib_req_notify_cq(lane->cq, IB_CQ_NEXT_COMP);
	return err;
}

/* The identifier, too.  Nothing is sent any more. */
static void destroy(struct klane *lane)
{
	if (!lane->id)
		return;
	if (lane->id->qp) {
		rdma_disconnect(lane->id);
		ib_drain_qp(lane->id->qp);
		rdma_destroy_qp(lane->id);
	}
	if (lane->cq) {
		/* A late completion may have scheduled it. */
		napi_disable(&lane->napi);
		ib_destroy_cq(lane->cq);
	}
	unmap_buffers(lane, lane->tx, DMA_TO_DEVICE);
	unmap_buffers(lane, lane->rx, DMA_FROM_DEVICE);
	if (lane->pd)
		ib_dealloc_pd(lane->pd);
	rdma_destroy_id(lane->id);
	lane->cq = NULL;
	lane->pd = NULL;
	lane->id = NULL;
}

/* ---- connection ------------------------------------------------------ */

static struct klane *find(const struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	const struct rdma_addr *addr = &id->route.addr;
	__be32 local = ((const struct sockaddr_in *)&addr->src_addr)->sin_addr.s_addr;
	__be32 peer = ((const struct sockaddr_in *)&addr->dst_addr)->sin_addr.s_addr;
	bool large = param->private_data_len && *(const bool *)param->private_data;
	int i;

	for (i = 0; i < num_lanes; i++)
		if (klanes[i] && klanes[i]->local == local && klanes[i]->peer == peer &&
		    klanes[i]->gso == large && !asks(klanes[i]) && !klanes[i]->id)
			return klanes[i];
	return NULL;
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct klane *lane = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		lane = find(id, &event->param.conn);
		if (!lane)
			return -ENOENT;
		id->context = lane;
		lane->id = id;
		schedule_work(&lane->work);
		return 0;
	}
	if (!lane)
		return 0;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		WRITE_ONCE(lane->event, event->event + 1);
		/* The end that asks does it itself. */
		if (event->event == RDMA_CM_EVENT_ESTABLISHED && !asks(lane) &&
		    !READ_ONCE(lane->gone))
			netif_carrier_on(lane->netdev);
		break;
	default:
		/* The device may be unregistered by now. */
		if (!READ_ONCE(lane->gone))
			netif_carrier_off(lane->netdev);
		WRITE_ONCE(lane->event, -1);
		break;
	}
	wake_up(&lane->step);
	return 0;
}

static bool has_come(const struct klane *lane, int event)
{
	int last = READ_ONCE(lane->event);

	return READ_ONCE(lane->gone) || last == -1 || last == event;
}

static int await_event(struct klane *lane, enum rdma_cm_event_type type)
{
	if (!wait_event_timeout(lane->step, has_come(lane, type + 1), KLANE_STEP))
		return -ETIMEDOUT;
	return READ_ONCE(lane->event) == type + 1 ? 0 : -ECONNREFUSED;
}

static int connect(struct klane *lane)
{
	struct rdma_conn_param param = {
		.retry_count = 6, .rnr_retry_count = 7,
		.private_data = &lane->gso, .private_data_len = sizeof(lane->gso),
	};
	struct sockaddr_in from = { .sin_family = AF_INET, .sin_addr.s_addr = lane->local };
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(KLANE_PORT), .sin_addr.s_addr = lane->peer,
	};

	return rdma_resolve_addr(lane->id, (struct sockaddr *)&from, (struct sockaddr *)&to,
				 5000) ?:
	       await_event(lane, RDMA_CM_EVENT_ADDR_RESOLVED) ?:
	       rdma_resolve_route(lane->id, 5000) ?:
	       await_event(lane, RDMA_CM_EVENT_ROUTE_RESOLVED) ?:
	       create_qp(lane) ?:
	       rdma_connect(lane->id, &param) ?:
	       await_event(lane, RDMA_CM_EVENT_ESTABLISHED);
}

/* The other end may not be there yet. */
static void ask(struct klane *lane)
{
	while (!READ_ONCE(lane->gone)) {
		WRITE_ONCE(lane->event, 0);
		lane->id = rdma_create_id(&init_net, handler, lane, RDMA_PS_TCP, IB_QPT_RC);
		if (IS_ERR(lane->id)) {
			lane->id = NULL;
			return;
		}
		rdma_set_min_rnr_timer(lane->id, KLANE_RNR);
		if (!connect(lane)) {
			netif_carrier_on(lane->netdev);
			return;
		}
		destroy(lane);
		msleep(200);
	}
}

static void answer(struct klane *lane)
{
	struct rdma_conn_param param = { .retry_count = 6, .rnr_retry_count = 7 };
	int err;

	rdma_set_min_rnr_timer(lane->id, KLANE_RNR);
	err = create_qp(lane) ?: rdma_accept(lane->id, &param);
	if (err) {
		pr_err("%s: cannot accept: %d\n", lane->netdev->name, err);
		destroy(lane);
	}
}

static void set_up(struct work_struct *work)
{
	struct klane *lane = container_of(work, struct klane, work);

	if (asks(lane))
		ask(lane);
	else
		answer(lane);
}

/* ---- devices --------------------------------------------------------- */

static void setup(struct net_device *netdev)
{
	static const u8 address[ETH_ALEN] = { 2, 'k', 'l', 'a', 'n', 'e' };

	ether_setup(netdev);
	netdev->netdev_ops = &netdev_ops;
	netdev->flags |= IFF_NOARP;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = mtu;
	netdev->mtu = mtu;
	netdev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	netdev->needs_free_netdev = false;
	eth_hw_addr_set(netdev, address);
}

static int read_addresses(const char *text, __be32 *local, __be32 *peer)
{
	const char *end;

	return in4_pton(text, -1, (u8 *)local, '-', &end) && *end == '-' &&
	       in4_pton(end + 1, -1, (u8 *)peer, -1, NULL) && *local != *peer ? 0 : -EINVAL;
}

static int create(int number)
{
	struct net_device *netdev = alloc_netdev(sizeof(struct klane), "lane%d", NET_NAME_ENUM,
						 setup);
	struct klane *lane;
	int err;

	if (!netdev)
		return -ENOMEM;
	lane = netdev_priv(netdev);
	lane->netdev = netdev;
	lane->gso = gso[number];
	lane->size = (lane->gso ? GSO_LEGACY_MAX_SIZE : mtu) + ETH_HLEN;
	if (lane->gso)
		netdev->features |= NETIF_F_TSO;
	netdev->hw_features = netdev->features;
	init_waitqueue_head(&lane->step);
	INIT_WORK(&lane->work, set_up);
	err = read_addresses(lanes[number], &lane->local, &lane->peer);
	netif_napi_add(netdev, &lane->napi, poll);
	netif_carrier_off(netdev);
	if (!err)
		err = register_netdev(netdev);
	if (err) {
		free_netdev(netdev);
		return err;
	}
	klanes[number] = lane;
	return 0;
}

/* The listener, if there was one, has gone. */
static void remove(struct klane *lane)
{
	WRITE_ONCE(lane->gone, true);
	wake_up(&lane->step);
	cancel_work_sync(&lane->work);
	netif_carrier_off(lane->netdev);
	/* Nothing is sent after this. */
	unregister_netdev(lane->netdev);
	destroy(lane);
	free_netdev(lane->netdev);
}

static void remove_all(void)
{
	int i;

	if (!IS_ERR_OR_NULL(listener))
		rdma_destroy_id(listener);
	for (i = 0; i < num_lanes; i++)
		if (klanes[i])
			remove(klanes[i]);
}

static int listen(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(KLANE_PORT) };

	listener = rdma_create_id(&init_net, handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	return rdma_bind_addr(listener, (struct sockaddr *)&any) ?: rdma_listen(listener, 4);
}

static int __init klane_init(void)
{
	int i, err = 0;

	if (!num_lanes || mtu < ETH_MIN_MTU || mtu > KLANE_MTU_MAX)
		return -EINVAL;
	for (i = 0; i < num_lanes && !err; i++)
		err = create(i);
	if (!err)
		err = listen();
	if (err) {
		remove_all();
		return err;
	}
	for (i = 0; i < num_lanes; i++)
		if (asks(klanes[i]))
			schedule_work(&klanes[i]->work);
	return 0;
}

static void __exit klane_exit(void)
{
	remove_all();
}

module_init(klane_init);
module_exit(klane_exit);
MODULE_DESCRIPTION("IP over a queue pair, measured");
MODULE_LICENSE("GPL");

// SPDX-License-Identifier: GPL-2.0-only
/*
 * kvipl: verbs between two kernel threads, the limit of what sockets on kernel
 * verbs can reach (kVIPL of the KSOVIA paper).
 *
 * Each node that loads the module is a server.  Writing a line to
 * /sys/kernel/debug/kvipl/run makes a run and blocks until it is done; reading
 * the file returns the result:
 *
 *	ADDRESS latency SIZE COUNT	half round trips, both ends sleep while waiting
 *	ADDRESS bandwidth SIZE COUNT	one way
 *
 * and what memory that is registered costs (memory.c):
 *
 *	ADDRESS latency_reg SIZE COUNT	half round trips, what is sent is registered for it
 *	ADDRESS latency_copy SIZE COUNT	the same, but copied into memory that is mapped
 *	ADDRESS reg SIZE COUNT		memory registered, and invalidated again
 *	ADDRESS copy SIZE COUNT		memory copied; nothing is sent
 *	ADDRESS read SIZE COUNT		READ from memory that the server has registered once
 *	ADDRESS write SIZE COUNT	RDMA WRITE into such memory
 *	ADDRESS offer SIZE COUNT	memory is registered and offered, the server fetches it by
 *					READ and says so, and it is invalidated
 *
 * Completions are processed in softirq and wake the thread; one send of 16 is
 * signaled.  All receives of a connection share one buffer, which is never read.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include "kvipl.h"

static struct rdma_cm_id *listener;
static struct workqueue_struct *servers;
static struct dentry *folder;
static DEFINE_MUTEX(run_mutex);
char kvipl_result[256];

static const char * const names[KVIPL_RUNS] = {
	[KVIPL_LATENCY]		= "latency",
	[KVIPL_LATENCY_REG]	= "latency_reg",
	[KVIPL_LATENCY_COPY]	= "latency_copy",
	[KVIPL_BANDWIDTH]	= "bandwidth",
	[KVIPL_REG]		= "reg",
	[KVIPL_COPY]		= "copy",
	[KVIPL_READ]		= "read",
	[KVIPL_WRITE]		= "write",
	[KVIPL_OFFER]		= "offer",
};

/* ---- queue pair ------------------------------------------------------ */

static void received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kvipl_end *end = container_of(wc->wr_cqe, struct kvipl_end, rx_cqe);

	if (wc->status != IB_WC_SUCCESS) {
		kvipl_fail(end);
		return;
	}
	kvipl_memory_received(end);
	WRITE_ONCE(end->received, end->received + 1);
	wake_up(&end->step);
}

static void sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kvipl_end *end = container_of(wc->wr_cqe, struct kvipl_end, tx_cqe);

	if (wc->status != IB_WC_SUCCESS)
		WRITE_ONCE(end->gone, true);
	else
		WRITE_ONCE(end->sent, end->sent + KVIPL_SIGNAL);
	wake_up(&end->step);
}

/**
 * kvipl_fail() - a completion has failed
 * @end: of this end
 *
 * Context: any.
 */
void kvipl_fail(struct kvipl_end *end)
{
	WRITE_ONCE(end->gone, true);
	wake_up(&end->step);
}

/**
 * kvipl_post_receive() - post one more receive
 * @end: for this end
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int kvipl_post_receive(struct kvipl_end *end)
{
	struct ib_sge sge = {
		.addr	= end->dma,
		.length	= end->req.size,
		.lkey	= end->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &end->rx_cqe, .sg_list = &sge, .num_sge = 1 };

	if (kvipl_has_slots(end)) {
		sge.addr = end->slots_dma + end->receives % KVIPL_RECEIVES * sizeof(*end->slots);
		sge.length = sizeof(*end->slots);
	}
	end->receives++;
	return ib_post_recv(end->id->qp, &wr, NULL);
}

/**
 * kvipl_post_send() - post a request to send, after waiting for room if necessary
 * @end: from this end
 * @wr: the request, without flags and completion
 *
 * Context: process.
 * Return: 0 or a negative errno.
 */
int kvipl_post_send(struct kvipl_end *end, struct ib_send_wr *wr)
{
	if (!wait_event_timeout(end->step, READ_ONCE(end->gone) ||
				end->posted - READ_ONCE(end->sent) < KVIPL_DEPTH, KVIPL_STEP))
		return -ETIMEDOUT;
	if (end->gone)
		return -ECONNRESET;
	wr->wr_cqe = &end->tx_cqe;
	if (++end->posted % KVIPL_SIGNAL == 0)
		wr->send_flags = IB_SEND_SIGNALED;
	return ib_post_send(end->id->qp, wr, NULL);
}

static int send_message(struct kvipl_end *end)
{
	struct ib_sge sge = {
		.addr	= end->dma,
		.length	= end->req.size,
		.lkey	= end->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND };

	switch (end->req.what) {
	case KVIPL_LATENCY_REG:
	case KVIPL_LATENCY_COPY:
		return kvipl_memory_send(end);
	default:
		return kvipl_post_send(end, &wr);
	}
}

/**
 * kvipl_await_received() - wait for a message
 * @end: at this end
 * @number: how many there are then
 *
 * Context: process.
 * Return: 0, -ETIMEDOUT or -ECONNRESET.
 */
int kvipl_await_received(struct kvipl_end *end, u32 number)
{
	if (!wait_event_timeout(end->step, READ_ONCE(end->gone) ||
				READ_ONCE(end->received) >= number, KVIPL_STEP))
		return -ETIMEDOUT;
	return READ_ONCE(end->received) >= number ? 0 : -ECONNRESET;
}

static int create_qp(struct kvipl_end *end)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr	= KVIPL_DEPTH + 1 + 4 * KVIPL_REGIONS,
			.max_recv_wr	= KVIPL_RECEIVES + 1,
			.max_send_sge	= 1,
			.max_recv_sge	= 1,
		},
		.qp_type	= IB_QPT_RC,
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
	};
	struct ib_device *device = end->id->device;
	int i, err;

	end->buffer = kzalloc(end->req.size, GFP_KERNEL);
	if (!end->buffer)
		return -ENOMEM;
	end->dma = ib_dma_map_single(device, end->buffer, end->req.size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(device, end->dma)) {
		kfree(end->buffer);
		end->buffer = NULL;
		return -ENOMEM;
	}
	end->pd = ib_alloc_pd(device, 0);
	if (IS_ERR(end->pd)) {
		err = PTR_ERR(end->pd);
		end->pd = NULL;
		return err;
	}
	end->cq = ib_alloc_cq(device, end, KVIPL_DEPTH + KVIPL_RECEIVES + 4 * KVIPL_REGIONS + 2, 0,
			      IB_POLL_SOFTIRQ);
	if (IS_ERR(end->cq)) {
		err = PTR_ERR(end->cq);
		end->cq = NULL;
		return err;
	}
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	err = rdma_create_qp(end->id, end->pd, &attr) ?: kvipl_memory_create(end);
	for (i = 0; i < KVIPL_RECEIVES && !err; i++)
		err = kvipl_post_receive(end);
	return err;
}

static void destroy(struct kvipl_end *end)
{
	struct ib_device *device = end->id->device;

	if (end->id->qp) {
		rdma_disconnect(end->id);
		ib_drain_qp(end->id->qp);
		rdma_destroy_qp(end->id);
	}
	kvipl_memory_destroy(end);
	if (end->cq)
		ib_free_cq(end->cq);
	if (end->pd)
		ib_dealloc_pd(end->pd);
	if (end->buffer)
		ib_dma_unmap_single(device, end->dma, end->req.size, DMA_BIDIRECTIONAL);
	kfree(end->buffer);
	rdma_destroy_id(end->id);
	kfree(end);
}

/* ---- connection ------------------------------------------------------ */

static void serve(struct work_struct *work);

static struct kvipl_end *end_alloc(void)
{
	struct kvipl_end *end = kzalloc(sizeof(*end), GFP_KERNEL);

	if (!end)
		return NULL;
	init_waitqueue_head(&end->step);
	end->rx_cqe.done = received;
	end->tx_cqe.done = sent;
	INIT_WORK(&end->work, serve);
	return end;
}

static bool acceptable(const struct kvipl_request *req)
{
	return req->what < KVIPL_RUNS && req->size && req->size <= KVIPL_SIZE_MAX &&
	       req->count && req->count <= KVIPL_COUNT_MAX;
}

static int connect_request(struct rdma_cm_id *id, const struct rdma_conn_param *param)
{
	struct kvipl_end *end;

	if (param->private_data_len < sizeof(end->req))
		return -EINVAL;
	end = end_alloc();
	if (!end)
		return -ENOMEM;
	memcpy(&end->req, param->private_data, sizeof(end->req));
	if (!acceptable(&end->req)) {
		kfree(end);
		return -EINVAL;
	}
	end->id = id;
	end->passive = true;
	id->context = end;
	queue_work(servers, &end->work);
	return 0;
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kvipl_end *end = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
		return connect_request(id, &event->param.conn);
	if (!end)
		return 0;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		WRITE_ONCE(end->event, event->event + 1);
		break;
	default:
		WRITE_ONCE(end->gone, true);
		break;
	}
	wake_up(&end->step);
	return 0;
}

static int await_event(struct kvipl_end *end, enum rdma_cm_event_type type)
{
	if (!wait_event_timeout(end->step, READ_ONCE(end->gone) ||
				READ_ONCE(end->event) == type + 1, KVIPL_STEP))
		return -ETIMEDOUT;
	return end->gone ? -ECONNREFUSED : 0;
}

/* READs that a queue pair of the device may have under way, either way. */
static u8 reads(const struct kvipl_end *end)
{
	const struct ib_device_attr *attrs = &end->id->device->attrs;

	return min3(KVIPL_READS, attrs->max_qp_rd_atom, attrs->max_qp_init_rd_atom);
}

static int connect(struct kvipl_end *end, struct sockaddr_in *to)
{
	struct rdma_conn_param param = {
		.private_data		= &end->req,
		.private_data_len	= sizeof(end->req),
		.retry_count		= 6,
		.rnr_retry_count	= 7,
	};
	int err;

	err = rdma_resolve_addr(end->id, NULL, (struct sockaddr *)to, 5000);
	if (!err)
		err = await_event(end, RDMA_CM_EVENT_ADDR_RESOLVED);
	if (!err)
		err = rdma_resolve_route(end->id, 5000);
	if (!err)
		err = await_event(end, RDMA_CM_EVENT_ROUTE_RESOLVED);
	if (!err)
		err = create_qp(end);
	if (!err) {
		param.initiator_depth = reads(end);
		param.responder_resources = reads(end);
		err = rdma_connect(end->id, &param);
	}
	if (!err)
		err = await_event(end, RDMA_CM_EVENT_ESTABLISHED);
	return err;
}

/* ---- the passive side ------------------------------------------------ */

static void serve(struct work_struct *work)
{
	struct kvipl_end *end = container_of(work, struct kvipl_end, work);
	struct rdma_conn_param param = {
		.retry_count		= 6,
		.rnr_retry_count	= 7,
		.initiator_depth	= reads(end),
		.responder_resources	= reads(end),
	};
	u32 i;
	int err;

	err = create_qp(end);
	if (!err)
		err = rdma_accept(end->id, &param);
	if (!err)
		err = kvipl_memory_serve(end);
	for (i = 1; !err; i++) {
		err = kvipl_await_received(end, i);
		if (!err)
			err = kvipl_post_receive(end);
		if (!err && end->req.what <= KVIPL_LATENCY_COPY)
			err = send_message(end);
	}
	destroy(end);
}

/* ---- the active side ------------------------------------------------- */

static int compare(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

static int latency(struct kvipl_end *end)
{
	u32 i, count = end->req.count;
	u32 *ns = kvmalloc_array(count, sizeof(*ns), GFP_KERNEL);
	u64 begin;
	int err = 0;

	if (!ns)
		return -ENOMEM;
	for (i = 0; i < KVIPL_WARM_UP + count && !err; i++) {
		begin = ktime_get_ns();
		err = send_message(end);
		if (!err)
			err = kvipl_await_received(end, i + 1);
		if (i >= KVIPL_WARM_UP)
			ns[i - KVIPL_WARM_UP] = (ktime_get_ns() - begin) / 2;
		if (!err)
			err = kvipl_post_receive(end);
	}
	if (!err) {
		sort(ns, count, sizeof(*ns), compare, NULL);
		snprintf(kvipl_result, sizeof(kvipl_result),
			 "{\"size\": %u, \"count\": %u, \"min_ns\": %u, \"median_ns\": %u, \"p99_ns\": %u}\n",
			 end->req.size, count, ns[0], ns[count / 2], ns[(u64)count * 99 / 100]);
	}
	kvfree(ns);
	return err;
}

static int bandwidth(struct kvipl_end *end)
{
	/* Up to the completion of the last signaled one. */
	u32 i, count = roundup(end->req.count, KVIPL_SIGNAL);
	u64 begin = ktime_get_ns();
	int err = 0;

	for (i = 0; i < count && !err; i++)
		err = send_message(end);
	if (!err && !wait_event_timeout(end->step, READ_ONCE(end->gone) ||
					READ_ONCE(end->sent) == count, KVIPL_STEP))
		err = -ETIMEDOUT;
	if (!err && READ_ONCE(end->sent) != count)
		err = -ECONNRESET;
	if (!err)
		snprintf(kvipl_result, sizeof(kvipl_result),
			 "{\"size\": %u, \"bytes\": %llu, \"ns\": %llu}\n",
			 end->req.size, (u64)end->req.size * count, ktime_get_ns() - begin);
	return err;
}

static int run(const struct kvipl_request *req, __be32 address)
{
	struct sockaddr_in to = {
		.sin_family	= AF_INET,
		.sin_port	= htons(KVIPL_PORT),
		.sin_addr	= { .s_addr = address },
	};
	struct kvipl_end *end = end_alloc();
	int err;

	if (!end)
		return -ENOMEM;
	end->req = *req;
	end->id = rdma_create_id(&init_net, handler, end, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(end->id)) {
		err = PTR_ERR(end->id);
		kfree(end);
		return err;
	}
	err = connect(end, &to);
	if (!err && req->what <= KVIPL_LATENCY_COPY)
		err = latency(end);
	else if (!err && req->what == KVIPL_BANDWIDTH)
		err = bandwidth(end);
	else if (!err)
		err = kvipl_memory_run(end);
	destroy(end);
	return err;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char line[80] = "", address[16], what[16];
	struct kvipl_request req = {};
	__be32 to;
	int err;

	if (len >= sizeof(line) || copy_from_user(line, from, len))
		return -EINVAL;
	if (sscanf(line, "%15s %15s %u %u", address, what, &req.size, &req.count) != 4 ||
	    !in4_pton(address, -1, (u8 *)&to, -1, NULL))
		return -EINVAL;
	req.what = match_string(names, KVIPL_RUNS, what);
	if (!acceptable(&req))
		return -EINVAL;
	mutex_lock(&run_mutex);
	err = req.what == KVIPL_COPY ? kvipl_copy(&req) : run(&req, to);
	mutex_unlock(&run_mutex);
	return err ?: len;
}

static ssize_t run_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	ssize_t ret;

	mutex_lock(&run_mutex);
	ret = simple_read_from_buffer(to, len, pos, kvipl_result, strlen(kvipl_result));
	mutex_unlock(&run_mutex);
	return ret;
}

static const struct file_operations run_fops = {
	.owner	= THIS_MODULE,
	.write	= run_write,
	.read	= run_read,
};

static int __init kvipl_init(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(KVIPL_PORT) };
	int err;

	servers = alloc_workqueue("kvipl", WQ_UNBOUND, 0);
	if (!servers)
		return -ENOMEM;
	listener = rdma_create_id(&init_net, handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener)) {
		err = PTR_ERR(listener);
		goto free_servers;
	}
	err = rdma_bind_addr(listener, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(listener, 16);
	if (err)
		goto free_listener;
	folder = debugfs_create_dir("kvipl", NULL);
	debugfs_create_file("run", 0600, folder, NULL, &run_fops);
	return 0;
free_listener:
	rdma_destroy_id(listener);
free_servers:
	destroy_workqueue(servers);
	return err;
}

static void __exit kvipl_exit(void)
{
	debugfs_remove_recursive(folder);
	rdma_destroy_id(listener);
	destroy_workqueue(servers);
}

module_init(kvipl_init);
module_exit(kvipl_exit);
MODULE_DESCRIPTION("verbs between two kernel threads, measured");
MODULE_LICENSE("GPL");

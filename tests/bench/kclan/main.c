// SPDX-License-Identifier: GPL-2.0-only
/*
 * kclan: memory that two virtual machines share, between two kernel threads: the limit of what
 * sockets in such memory can reach.
 *
 * It drives an ivshmem-doorbell device that is given to it (driver_override), and serves the
 * other nodes of the memory.  Writing a line to /sys/kernel/debug/kclan/run makes a run and
 * blocks until it is done; reading the file returns our own number in a line, and the result:
 *
 *	NODE latency SIZE COUNT POLL COPIES 0	half round trips
 *	NODE bandwidth SIZE COUNT POLL COPIES 0	one way
 *	NODE load SIZE COUNT POLL COPIES RATE	round trips, begun RATE times a second
 *	NODE net 1 1 0 2 0			no run: a network device for IP to that node (net.c)
 *
 * NODE is the other one's number.  A reader looks for POLL microseconds before it sleeps; a
 * doorbell is rung for one that sleeps.  Of COPIES, 2 are into the memory and out of it; with 4
 * there is one more at each end, as sockets have between a program's memory and the kernel's.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include "kclan.h"

/* One device, under the mutex. */
static struct kclan *kclan_device;
static DEFINE_MUTEX(device_mutex);
static struct dentry *folder;
static char result[160];
/* What a program would have, and what a socket would. */
static u8 program[KCLAN_SLOT], kernel[KCLAN_SLOT];

static const char * const names[KCLAN_RUNS] = {
	[KCLAN_LATENCY] = "latency", [KCLAN_BANDWIDTH] = "bandwidth", [KCLAN_LOAD] = "load",
};

static struct kclan_part *part(const struct kclan *kc, u32 node)
{
	return kc->memory + KCLAN_BEGIN + node * sizeof(struct kclan_part);
}

static void ring(const struct kclan *kc)
{
	writel(kc->peer << 16, kc->regs + KCLAN_DOORBELL);
}

static irqreturn_t rung(int irq, void *data)
{
	struct kclan *kc = data;

	wake_up(&kc->wait);
	kclan_net_rung(kc);
	return IRQ_HANDLED;
}

/**
 * kclan_set_sleeps() - say whether this node is to be woken
 * @kc: the device
 * @sleeps: so; then what is waited for is looked at once more
 *
 * Context: any.
 */
void kclan_set_sleeps(struct kclan *kc, bool sleeps)
{
	WRITE_ONCE(kc->ours->sleeps, sleeps);
	/* Pairs with kclan_wake(). */
	virt_mb();
}

/**
 * kclan_wake() - wake the other node, if it sleeps
 * @kc: the device
 *
 * Context: any.
 */
void kclan_wake(const struct kclan *kc)
{
	/* Pairs with kclan_set_sleeps(). */
	virt_mb();
	if (READ_ONCE(kc->theirs->sleeps))
		ring(kc);
}

/* Returns 0 or -ETIMEDOUT. */
static int sleep_until(struct kclan *kc, bool (*condition)(const struct kclan *kc))
{
	long left;

	kclan_set_sleeps(kc, true);
	left = wait_event_timeout(kc->wait, condition(kc), KCLAN_STEP);
	kclan_set_sleeps(kc, false);
	return left ? 0 : -ETIMEDOUT;
}

/**
 * kclan_has_message() - has the other node written
 * @kc: the device
 *
 * Context: any.
 * Return: true if so.
 */
bool kclan_has_message(const struct kclan *kc)
{
	/* Pairs with put(). */
	return virt_load_acquire(&kc->theirs->head) != kc->tail;
}

/**
 * kclan_has_room() - may this node write
 * @kc: the device
 *
 * Context: any.
 * Return: true if so.
 */
bool kclan_has_room(const struct kclan *kc)
{
	/* Pairs with get(). */
	return kc->head - virt_load_acquire(&kc->theirs->tail) < KCLAN_SLOTS;
}

static int get(struct kclan *kc)
{
	u64 end = ktime_get_ns() + kc->req.poll * NSEC_PER_USEC;
	const void *slot = kc->theirs->slot[kc->tail % KCLAN_SLOTS];
	int err;

	while (!kclan_has_message(kc) && ktime_get_ns() < end)
		cpu_relax();
	if (!kclan_has_message(kc)) {
		err = sleep_until(kc, kclan_has_message);
		if (err)
			return err;
	}
	if (kc->req.copies == 4) {
		memcpy(kernel, slot, kc->req.size);
		slot = kernel;
	}
	memcpy(program, slot, kc->req.size);
	/* It has been copied: pairs with kclan_has_room(). */
	virt_store_release(&kc->ours->tail, ++kc->tail);
	/* A writer is woken when it has half the room: it has slept because there was none. */
	if (!(kc->tail % (KCLAN_SLOTS / 2)))
		kclan_wake(kc);
	return 0;
}

static int put(struct kclan *kc)
{
	const void *from = program;
	int err;

	if (!kclan_has_room(kc)) {
		err = sleep_until(kc, kclan_has_room);
		if (err)
			return err;
	}
	if (kc->req.copies == 4) {
		memcpy(kernel, from, kc->req.size);
		from = kernel;
	}
	memcpy(kc->ours->slot[kc->head % KCLAN_SLOTS], from, kc->req.size);
	/* It is there: pairs with kclan_has_message(). */
	virt_store_release(&kc->ours->head, ++kc->head);
	kclan_wake(kc);
	return 0;
}

static void begin(struct kclan *kc, u32 peer)
{
	kc->peer = peer;
	kc->theirs = part(kc, peer);
	kc->head = 0;
	kc->tail = 0;
	kc->ours->sleeps = 0;
	kc->ours->head = 0;
	kc->ours->tail = 0;
}

/**
 * kclan_join() - go on with what another node writes from now on
 * @kc: the device, under its mutex
 * @peer: the node's number, which does the same before either writes
 *
 * Context: process.
 */
void kclan_join(struct kclan *kc, u32 peer)
{
	kc->peer = peer;
	kc->theirs = part(kc, peer);
	kc->head = kc->ours->head;
	/* What is left of runs is no packet. */
	kc->tail = READ_ONCE(kc->theirs->head);
	WRITE_ONCE(kc->ours->tail, kc->tail);
}

/* ---- the server --------------------------------------------------------- */

static bool acceptable(const struct kclan_request *req)
{
	return req->what < KCLAN_RUNS && req->size && req->size <= KCLAN_SLOT &&
	       req->count && req->count <= KCLAN_COUNT_MAX && req->poll <= KCLAN_POLL_MAX &&
	       (req->copies == 2 || req->copies == 4);
}

/* A node that has a new request, or -1. */
static int asking(const struct kclan *kc)
{
	u32 i, seq;

	for (i = 0; i < kc->nodes; i++) {
		/* Pairs with ask(). */
		seq = virt_load_acquire(&part(kc, i)->request.seq);
		if (i != kc->number && seq && seq != kc->served[i])
			return i;
	}
	return -1;
}

static int serve(struct kclan *kc, u32 peer)
{
	u32 i, messages;
	int err = 0;

	kc->req = part(kc, peer)->request;
	kc->served[peer] = kc->req.seq;
	if (!acceptable(&kc->req))
		return -EINVAL;
	begin(kc, peer);
	/* Our indices are 0: pairs with answered(). */
	virt_store_release(&kc->ours->answer, kc->req.seq);
	ring(kc);
	messages = kc->req.count + (kc->req.what == KCLAN_LATENCY ? KCLAN_WARM_UP : 0);
	for (i = 0; i < messages && !err; i++) {
		err = get(kc);
		if (!err && kc->req.what != KCLAN_BANDWIDTH)
			err = put(kc);
	}
	return !err && kc->req.what == KCLAN_BANDWIDTH ? put(kc) : err;
}

static int server(void *data)
{
	struct kclan *kc = data;
	int peer, err;

	while (!kthread_should_stop()) {
		wait_event_timeout(kc->wait, asking(kc) >= 0 || kthread_should_stop(), HZ);
		mutex_lock(&kc->mutex);
		peer = kc->net ? -1 : asking(kc);
		err = peer >= 0 ? serve(kc, peer) : 0;
		mutex_unlock(&kc->mutex);
		if (err)
			pr_notice("a run of node %d has failed: %pe\n", peer, ERR_PTR(err));
	}
	return 0;
}

/* ---- the client ----------------------------------------------------------- */

static bool answered(const struct kclan *kc)
{
	/* Pairs with serve(). */
	return virt_load_acquire(&kc->theirs->answer) == kc->req.seq;
}

static int ask(struct kclan *kc, u32 peer)
{
	begin(kc, peer);
	kc->req.seq = get_random_u32() | 1;
	kc->ours->request = kc->req;
	/* The rest of it is there: pairs with asking(). */
	virt_store_release(&kc->ours->request.seq, kc->req.seq);
	ring(kc);
	return sleep_until(kc, answered);
}

static int compare(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

static int latency(struct kclan *kc)
{
	u32 i, count = kc->req.count;
	u32 *ns = kvmalloc_array(count, sizeof(*ns), GFP_KERNEL);
	u64 since;
	int err = 0;

	if (!ns)
		return -ENOMEM;
	for (i = 0; i < KCLAN_WARM_UP + count && !err; i++) {
		since = ktime_get_ns();
		err = put(kc) ?: get(kc);
		if (i >= KCLAN_WARM_UP)
			ns[i - KCLAN_WARM_UP] = (ktime_get_ns() - since) / 2;
	}
	if (!err) {
		sort(ns, count, sizeof(*ns), compare, NULL);
		snprintf(result, sizeof(result),
			 "{\"size\": %u, \"count\": %u, \"min_ns\": %u, \"median_ns\": %u, \"p99_ns\": %u}\n",
			 kc->req.size, count, ns[0], ns[count / 2], ns[(u64)count * 99 / 100]);
	}
	kvfree(ns);
	return err;
}

/* Up to the message that answers the last one. */
static int bandwidth(struct kclan *kc)
{
	u64 since = ktime_get_ns();
	int err = 0;
	u32 i;

	for (i = 0; i < kc->req.count && !err; i++)
		err = put(kc);
	err = err ?: get(kc);
	if (!err)
		snprintf(result, sizeof(result), "{\"size\": %u, \"bytes\": %llu, \"ns\": %llu}\n",
			 kc->req.size, (u64)kc->req.size * kc->req.count, ktime_get_ns() - since);
	return err;
}

/*
 * Responses count from when a request was due.  The rate of answers is that up to the last one that
 * came while requests were made.
 */
static int load(struct kclan *kc, u32 rate)
{
	u32 asked = 0, answered = 0, served = 0, count = kc->req.count;
	u64 gap = NSEC_PER_SEC / rate, since, now, last = 0, idle;
	u32 *ns = kvmalloc_array(count, sizeof(*ns), GFP_KERNEL);
	int err = 0;

	if (!ns)
		return -ENOMEM;
	since = ktime_get_ns();
	idle = since;
	while (answered < count && !err) {
		now = ktime_get_ns();
		for (; answered < count && kclan_has_message(kc); answered++) {
			err = get(kc);
			ns[answered] = min_t(u64, now - since - answered * gap, U32_MAX);
			idle = now;
		}
		if (asked < count) {
			served = answered;
			last = now;
		}
		/* Half the ring, so that both ends find room. */
		if (!err && asked < count && now >= since + asked * gap &&
		    asked - answered < KCLAN_SLOTS / 2) {
			err = put(kc);
			asked++;
			idle = now;
		} else {
			cond_resched();
		}
		if (now - idle > 10ull * NSEC_PER_SEC)
			err = -ETIMEDOUT;
	}
	if (!err) {
		sort(ns, count, sizeof(*ns), compare, NULL);
		snprintf(result, sizeof(result),
			 "{\"size\": %u, \"count\": %u, \"per_s\": %llu, \"median_ns\": %u, \"p99_ns\": %u}\n",
			 kc->req.size, count, served * NSEC_PER_SEC / max(last - since, 1ull),
			 ns[count / 2], ns[(u64)count * 99 / 100]);
	}
	kvfree(ns);
	return err;
}

static int measure(struct kclan *kc, u32 rate)
{
	switch (kc->req.what) {
	case KCLAN_LATENCY:
		return latency(kc);
	case KCLAN_BANDWIDTH:
		return bandwidth(kc);
	default:
		return load(kc, rate);
	}
}

static int run(struct kclan *kc, const struct kclan_request *req, u32 peer, u32 rate)
{
	int err;

	if (peer >= kc->nodes || peer == kc->number)
		return -ENXIO;
	mutex_lock(&kc->mutex);
	/* IP has the rings from now on. */
	if (kc->net) {
		mutex_unlock(&kc->mutex);
		return -EBUSY;
	}
	kc->req = *req;
	err = ask(kc, peer) ?: measure(kc, rate);
	mutex_unlock(&kc->mutex);
	return err;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct kclan_request req = {};
	char text[80] = "", what[16];
	u32 peer, rate;
	bool net;
	int err;

	if (len >= sizeof(text) || copy_from_user(text, from, len))
		return -EINVAL;
	if (sscanf(text, "%u %15s %u %u %u %u %u", &peer, what, &req.size, &req.count, &req.poll,
		   &req.copies, &rate) != 7)
		return -EINVAL;
	net = !strcmp(what, "net");
	req.what = net ? KCLAN_LATENCY : match_string(names, KCLAN_RUNS, what);
	if (!acceptable(&req) || (req.what == KCLAN_LOAD && !rate))
		return -EINVAL;
	mutex_lock(&device_mutex);
	if (!kclan_device)
		err = -ENODEV;
	else
		err = net ? kclan_net_make(kclan_device, peer) :
			    run(kclan_device, &req, peer, rate);
	mutex_unlock(&device_mutex);
	return err ?: len;
}

static ssize_t run_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	char text[sizeof(result) + 20];
	ssize_t ret = -ENODEV;

	mutex_lock(&device_mutex);
	if (kclan_device) {
		snprintf(text, sizeof(text), "node %u\n%s", kclan_device->number, result);
		ret = simple_read_from_buffer(to, len, pos, text, strlen(text));
	}
	mutex_unlock(&device_mutex);
	return ret;
}

static const struct file_operations run_fops = {
	.owner	= THIS_MODULE,
	.write	= run_write,
	.read	= run_read,
};

/* ---- the device ------------------------------------------------------------- */

/* The memory is mapped.  Returns 0 or a negative errno. */
static int start(struct kclan *kc, struct pci_dev *pdev)
{
	int irq = pci_irq_vector(pdev, 0), err;

	kc->number = readl(kc->regs + KCLAN_POSITION);
	kc->nodes = min_t(u64, ARRAY_SIZE(kc->served),
			  (pci_resource_len(pdev, KCLAN_MEMORY) - KCLAN_BEGIN) / sizeof(*kc->ours));
	if (kc->number >= kc->nodes)
		return -ERANGE;
	kc->ours = part(kc, kc->number);
	memset(kc->ours, 0, offsetof(struct kclan_part, slot));
	kc->irq = irq;
	err = request_irq(irq, rung, 0, KBUILD_MODNAME, kc);
	if (err)
		return err;
	kc->server = kthread_run(server, kc, "kclan");
	if (!IS_ERR(kc->server))
		return 0;
	free_irq(irq, kc);
	return PTR_ERR(kc->server);
}

static int kclan_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct kclan *kc = devm_kzalloc(&pdev->dev, sizeof(*kc), GFP_KERNEL);
	int err;

	if (!kc)
		return -ENOMEM;
	init_waitqueue_head(&kc->wait);
	mutex_init(&kc->mutex);
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	pci_set_master(pdev);
	kc->regs = pcim_iomap(pdev, KCLAN_REGS, 0);
	kc->memory = devm_memremap(&pdev->dev, pci_resource_start(pdev, KCLAN_MEMORY),
				   pci_resource_len(pdev, KCLAN_MEMORY), MEMREMAP_WB);
	if (!kc->regs || IS_ERR_OR_NULL(kc->memory))
		return -ENOMEM;
	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	mutex_lock(&device_mutex);
	err = kclan_device ? -EBUSY : start(kc, pdev);
	if (!err)
		kclan_device = kc;
	mutex_unlock(&device_mutex);
	if (err) {
		pci_free_irq_vectors(pdev);
		return err;
	}
	pci_set_drvdata(pdev, kc);
	pci_info(pdev, "node %u\n", kc->number);
	return 0;
}

static void kclan_remove(struct pci_dev *pdev)
{
	struct kclan *kc = pci_get_drvdata(pdev);

	mutex_lock(&device_mutex);
	kclan_device = NULL;
	mutex_unlock(&device_mutex);
	kthread_stop(kc->server);
	kclan_net_free(kc);
	free_irq(pci_irq_vector(pdev, 0), kc);
	pci_free_irq_vectors(pdev);
}

/* None by itself: driver_override. */
static const struct pci_device_id kclan_ids[] = { {} };

static struct pci_driver kclan_driver = {
	.name		= "kclan",
	.id_table	= kclan_ids,
	.probe		= kclan_probe,
	.remove		= kclan_remove,
};

static int __init kclan_init(void)
{
	int err = pci_register_driver(&kclan_driver);

	if (err)
		return err;
	folder = debugfs_create_dir("kclan", NULL);
	debugfs_create_file("run", 0600, folder, NULL, &run_fops);
	return 0;
}

static void __exit kclan_exit(void)
{
	debugfs_remove_recursive(folder);
	pci_unregister_driver(&kclan_driver);
}

module_init(kclan_init);
module_exit(kclan_exit);
MODULE_DESCRIPTION("shared memory between two kernel threads, measured");
MODULE_LICENSE("GPL");

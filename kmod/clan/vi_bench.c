// SPDX-License-Identifier: GPL-2.0-only
/*
 * VIs in shared memory between two kernel threads: what the provider costs without sockets (the
 * measurements of "VIA over CLAN", 4).  Lab's builds only.
 *
 * Writing a line to /sys/kernel/debug/sovia/vi makes a run with another node of the first memory,
 * whose kernel serves it, and blocks until it is done:
 *
 *	NODE GENERATION latency SIZE COUNT POLL 0		half round trips
 *	NODE GENERATION bandwidth SIZE COUNT POLL WINDOW	one way
 *	NODE GENERATION load SIZE COUNT POLL RATE		round trips, RATE a second
 *
 * WINDOW is how many messages may be on their way, 0: as many as fit.  Reading it returns this
 * node's number and generation, and the result.  A reader looks for messages for POLL
 * microseconds before it sleeps, as sockets do (clan_poll).  Messages of up to clan_inline bytes
 * are in their entry.
 *
 * A run asks for a VI with a lane number that no link has, and has the rest of the request in
 * the hello.  The other node has to have sockets, or it answers no request.  A run begins with some
 * round trips, as an end may send few messages before the other one is up.  The ends are made and
 * ended by the run's own threads, which have the only pointers to them.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <net/busy_poll.h>
#include <net/net_namespace.h>
#include "core/debugfs.h"
#include "core/page.h"
#include "core/param.h"
#include "core/provider.h"
#include "ring.h"
#include "vi_bench.h"
#include "core/way.h"

#define BENCH_DEPTH	64u		/* messages whose completion is due */
#define BENCH_SIGNAL	16u		/* one of so many is signaled, if there is no window */
#define BENCH_COUNT_MAX	1000000u
#define BENCH_SIZE_MAX	65536u
#define BENCH_WARM_UP	100u
#define BENCH_STEP	(10 * HZ)	/* timeout of each step */
#define BENCH_POLL_MAX	10000u		/* us */

/* Bytes that a message may have in its entry, here and at the other node. */
unsigned int sovia_clan_inline = SOVIA_CLAN_INLINE;
sovia_param(clan_inline, sovia_clan_inline, 0, SOVIA_CLAN_INLINE, 0400);
MODULE_PARM_DESC(clan_inline, "bytes that a message in shared memory may have in its entry, for measurements (112)");

enum bench_what { BENCH_LATENCY, BENCH_BANDWIDTH, BENCH_LOAD, BENCH_RUNS };

static const char * const bench_names[BENCH_RUNS] = { "latency", "bandwidth", "load" };

/**
 * struct bench_run - what is measured
 * @what: enum bench_what
 * @size: of a message
 * @count: messages
 * @poll: us
 * @more: the window, or the rate
 */
struct bench_run {
	u32	what;
	u32	size;
	u32	count;
	u32	poll;
	u32	more;
};

/**
 * struct bench_end - one end of a run
 * @vi: its VI
 * @run: what is measured
 * @way: the other end's place in the memory
 * @skb: the message, sent again and again: the provider copies it
 * @wait: woken by each upcall
 * @up: it may send
 * @gone: it is dead
 * @received: messages
 * @sent: messages
 * @signaled: messages whose completion is due, or has come
 * @done: of those, completed
 * @napi_id: NAPI instance of the receiver
 * @awaited: number of messages that is waited for
 * @room: messages that may be on their way
 * @until: what is looked for
 * @late: when that ends, ns
 * @work: serves
 * @ended: nothing is left of the VI
 */
struct bench_end {
	struct sovia_vi		*vi;
	struct bench_run	run;
	struct sovia_clan_way	way;
	struct sk_buff		*skb;
	wait_queue_head_t	wait;
	bool			up;
	bool			gone;
	u32			received;
	u32			sent;
	u32			signaled;
	u32			done;
	unsigned int		napi_id;
	u32			awaited;
	u32			room;
	bool			(*until)(const struct bench_end *end);
	u64			late;
	struct work_struct	work;
	struct completion	ended;
};

static DEFINE_MUTEX(bench_mutex);
static struct workqueue_struct *bench_wq;
static char bench_result[256];

/* ---- upcalls --------------------------------------------------------------- */

static int bench_seal(struct sovia_vi *vi, const struct sovia_path *path,
		      struct sovia_hello *hello)
{
	return 0;
}

static void bench_way(struct sovia_vi *vi, struct sovia_clan_way *way)
{
	*way = ((struct bench_end *)vi->context)->way;
}

static void bench_established(struct sovia_vi *vi, const struct sovia_hello *hello,
			      unsigned int hello_len)
{
	struct bench_end *end = vi->context;

	WRITE_ONCE(end->up, true);
	wake_up(&end->wait);
}

static void bench_closed(struct sovia_vi *vi, int err)
{
	struct bench_end *end = vi->context;

	WRITE_ONCE(end->gone, true);
	wake_up(&end->wait);
}

static bool bench_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm)
{
	struct bench_end *end = vi->context;
	bool taken = skb->len > SOVIA_COPYBREAK;

	WRITE_ONCE(end->napi_id, skb->napi_id);
	if (taken)
		consume_skb(skb);
	WRITE_ONCE(end->received, end->received + 1);
	wake_up(&end->wait);
	return taken;
}

static void bench_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool ok)
{
	struct bench_end *end = vi->context;

	WRITE_ONCE(end->done, end->done + 1);
	wake_up(&end->wait);
}

static void bench_rx_unposted(struct sovia_vi *vi, int delta)
{
}

static void bench_ended(struct sovia_vi *vi)
{
	complete(&((struct bench_end *)vi->context)->ended);
}

static const struct sovia_vi_client bench_client = {
	.seal		= bench_seal,
	.way		= bench_way,
	.established	= bench_established,
	.closed		= bench_closed,
	.receive	= bench_receive,
	.send_done	= bench_send_done,
	.rx_unposted	= bench_rx_unposted,
	.ended		= bench_ended,
};

static const struct sovia_vi_attr bench_attr = {
	.send_depth	= BENCH_DEPTH,
	.recv_depth	= BENCH_DEPTH,
	.recv_first	= BENCH_DEPTH,
	.msg_size	= BENCH_SIZE_MAX,
	.tos		= SOVIA_TOS_DEFAULT,
};

/* ---- messages ---------------------------------------------------------------- */

static bool bench_has(const struct bench_end *end)
{
	return (s32)(READ_ONCE(end->received) - end->awaited) >= 0 || READ_ONCE(end->gone);
}

static bool bench_has_room(const struct bench_end *end)
{
	return end->signaled - READ_ONCE(end->done) < end->room || READ_ONCE(end->gone);
}

static bool bench_enough(void *arg, unsigned long start)
{
	const struct bench_end *end = arg;

	return end->until(end) || ktime_get_ns() >= end->late;
}

/* Look for what is waited for, for a while. */
static void bench_look(struct bench_end *end, bool (*until)(const struct bench_end *end), u64 ns)
{
	end->until = until;
	end->late = ktime_get_ns() + ns;
	if (READ_ONCE(end->napi_id) >= MIN_NAPI_ID && !until(end))
		napi_busy_loop(end->napi_id, bench_enough, end, false, BUSY_POLL_BUDGET);
}

/* Look, then sleep, until the condition is true.  Returns 0, -ETIMEDOUT or -ECONNRESET. */
static int bench_wait(struct bench_end *end, bool (*until)(const struct bench_end *end),
		      long timeout)
{
	bench_look(end, until, (u64)end->run.poll * NSEC_PER_USEC);
	if (!wait_event_timeout(end->wait, until(end), timeout))
		return -ETIMEDOUT;
	return READ_ONCE(end->gone) ? -ECONNRESET : 0;
}

/* Returns 0, -ETIMEDOUT or -ECONNRESET. */
static int bench_await(struct bench_end *end, u32 number)
{
	end->awaited = number;
	return bench_wait(end, bench_has, BENCH_STEP);
}

/* Returns true if the message is on its way, false if there is no room, or it is dead. */
static bool bench_try(struct bench_end *end, bool signaled)
{
	const struct sovia_post how = { .unsignaled = !signaled };
	int ret;

	if (end->signaled - READ_ONCE(end->done) >= BENCH_DEPTH)
		return false;
	/* One call at a time, bottom halves off: as under a lane's lock. */
	local_bh_disable();
	ret = end->vi->prov->post_send(end->vi, end->skb, &how);
	local_bh_enable();
	if (ret == SOVIA_POSTED)
		end->signaled++;
	end->sent += ret >= 0;
	if (ret < 0 && ret != -EAGAIN)
		WRITE_ONCE(end->gone, true);
	return ret >= 0;
}

/* Returns 0, -ETIMEDOUT or -ECONNRESET. */
static int bench_post(struct bench_end *end, u32 window)
{
	bool signaled = window || end->sent % BENCH_SIGNAL == 0;
	int err;

	end->room = window ?: BENCH_DEPTH;
	err = bench_wait(end, bench_has_room, BENCH_STEP);
	while (!err && !bench_try(end, signaled)) {
		/* The ring or the pool is full: wait for one of ours, or for others', a jiffy. */
		end->room = max(1u, end->signaled - READ_ONCE(end->done));
		err = bench_wait(end, bench_has_room, 1);
		if (err == -ETIMEDOUT)
			err = 0;
	}
	return err;
}

/* ---- the ends ------------------------------------------------------------------ */

static struct bench_end *bench_alloc(const struct bench_run *run)
{
	struct bench_end *end = kzalloc(sizeof(*end), GFP_KERNEL);
	u32 paged = run->size > SOVIA_COPYBREAK ? run->size : 0;
	int err;

	if (!end)
		return NULL;
	end->run = *run;
	init_waitqueue_head(&end->wait);
	init_completion(&end->ended);
	/* Long ones are in pages, as those of sockets. */
	end->skb = alloc_skb_with_frags(run->size - paged, paged, SOVIA_PAGE_ORDER, &err,
					GFP_KERNEL | __GFP_ZERO);
	if (!end->skb) {
		kfree(end);
		return NULL;
	}
	skb_put(end->skb, run->size - paged);
	end->skb->len += paged;
	end->skb->data_len = paged;
	return end;
}

static void bench_free(struct bench_end *end)
{
	kfree_skb(end->skb);
	kfree(end);
}

static void bench_end(struct bench_end *end)
{
	end->vi->prov->end(end->vi);
	wait_for_completion(&end->ended);
	bench_free(end);
}

static void fill_hello(struct sovia_hello *hello, const struct bench_run *run)
{
	*hello = (struct sovia_hello){
		.magic = cpu_to_be32(SOVIA_WIRE_MAGIC), .version = SOVIA_WIRE_VERSION,
		.lane = SOVIA_VI_BENCH_LANE, .window = cpu_to_be16(run->what),
		.payload = cpu_to_be32(run->size), .rx_next = cpu_to_be32(run->count),
		.generation = cpu_to_be32(run->poll),
	};
}

static bool bench_acceptable(const struct bench_run *run)
{
	return run->what < BENCH_RUNS && run->size && run->size <= BENCH_SIZE_MAX &&
	       run->count && run->count <= BENCH_COUNT_MAX && run->poll <= BENCH_POLL_MAX;
}

static bool parse_hello(const struct sovia_hello *hello, struct bench_run *run)
{
	*run = (struct bench_run){
		.what = be16_to_cpu(hello->window), .size = be32_to_cpu(hello->payload),
		.count = be32_to_cpu(hello->rx_next), .poll = be32_to_cpu(hello->generation),
	};
	return bench_acceptable(run);
}

static void bench_serve(struct work_struct *work)
{
	struct bench_end *end = container_of(work, struct bench_end, work);
	bool one_way = end->run.what == BENCH_BANDWIDTH;
	int err = 0;
	u32 i;

	wait_event_timeout(end->wait, READ_ONCE(end->up) || READ_ONCE(end->gone), BENCH_STEP);
	for (i = 0; i < BENCH_WARM_UP + end->run.count && !err; i++) {
		err = bench_await(end, i + 1);
		if (!err && (i < BENCH_WARM_UP || !one_way))
			err = bench_post(end, 0);
	}
	if (!err && one_way)
		err = bench_post(end, 0);
	/* Its answer may still be on its way. */
	wait_event_timeout(end->wait, READ_ONCE(end->gone), BENCH_STEP);
	bench_end(end);
}

/**
 * sovia_vi_bench_request() - serve a request, if it is for a run
 * @req: a provider's request; consumed if it is
 *
 * Context: process.
 * Return: true if it is.
 */
bool sovia_vi_bench_request(struct sovia_vi_request *req)
{
	struct sovia_hello hello;
	struct bench_end *end;
	struct bench_run run;

	if (req->prov != &sovia_clan_provider || req->hello_len < sizeof(req->hello) ||
	    req->hello.lane != SOVIA_VI_BENCH_LANE)
		return false;
	end = bench_wq && parse_hello(&req->hello, &run) ? bench_alloc(&run) : NULL;
	if (!end) {
		req->prov->reject(req, -EINVAL);
		return true;
	}
	INIT_WORK(&end->work, bench_serve);
	fill_hello(&hello, &run);
	end->vi = req->prov->accept(req, &bench_attr, &hello, &bench_client, end);
	if (IS_ERR(end->vi))
		bench_free(end);
	else
		queue_work(bench_wq, &end->work);
	return true;
}

/* ---- runs ---------------------------------------------------------------------- */

static int bench_compare(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

static int bench_warm_up(struct bench_end *end)
{
	int err = 0;
	u32 i;

	for (i = 0; i < BENCH_WARM_UP && !err; i++)
		err = bench_post(end, 0) ?: bench_await(end, i + 1);
	return err;
}

static int bench_latency(struct bench_end *end, u32 *ns)
{
	u32 i, count = end->run.count;
	int err = bench_warm_up(end);
	u64 since;

	for (i = 0; i < count && !err; i++) {
		since = ktime_get_ns();
		err = bench_post(end, 0) ?: bench_await(end, BENCH_WARM_UP + i + 1);
		ns[i] = (ktime_get_ns() - since) / 2;
	}
	if (err)
		return err;
	sort(ns, count, sizeof(*ns), bench_compare, NULL);
	snprintf(bench_result, sizeof(bench_result),
		 "{\"size\": %u, \"count\": %u, \"min_ns\": %u, \"median_ns\": %u, \"p99_ns\": %u}\n",
		 end->run.size, count, ns[0], ns[count / 2], ns[(u64)count * 99 / 100]);
	return 0;
}

/* Up to the message that answers the last one. */
static int bench_bandwidth(struct bench_end *end)
{
	int err = bench_warm_up(end);
	u64 since = ktime_get_ns();
	u32 i;

	for (i = 0; i < end->run.count && !err; i++)
		err = bench_post(end, end->run.more);
	err = err ?: bench_await(end, BENCH_WARM_UP + 1);
	if (!err)
		snprintf(bench_result, sizeof(bench_result),
			 "{\"size\": %u, \"bytes\": %llu, \"ns\": %llu}\n", end->run.size,
			 (u64)end->run.size * end->run.count, ktime_get_ns() - since);
	return err;
}

/*
 * Responses count from when a request was due.  The rate of answers is that up to the last one that
 * came while requests were made.
 */
static int bench_load(struct bench_end *end, u32 *ns)
{
	u32 asked = 0, answered = 0, served = 0, count = end->run.count;
	u64 gap = NSEC_PER_SEC / end->run.more, since, now, heard, last = 0;
	int err = bench_warm_up(end);

	since = ktime_get_ns();
	heard = since;
	while (answered < count && !err) {
		u32 got = READ_ONCE(end->received) - BENCH_WARM_UP;

		now = ktime_get_ns();
		/* The other node may send more than it was asked for. */
		for (; answered < count && answered != got; answered++) {
			ns[answered] = min_t(u64, now - since - answered * gap, U32_MAX);
			heard = now;
		}
		/* ... or nothing any more. */
		if (asked != answered && now - heard > jiffies_to_nsecs(BENCH_STEP))
			err = -ETIMEDOUT;
		if (asked < count) {
			served = answered;
			last = now;
		}
		if (asked < count && now >= since + asked * gap && asked - answered < BENCH_DEPTH) {
			asked += bench_try(end, asked % BENCH_SIGNAL == 0);
		} else if (asked == answered && asked < count) {
			/* Nothing is due. */
			cond_resched();
		} else {
			end->awaited = BENCH_WARM_UP + answered + 1;
			bench_look(end, bench_has, 20 * NSEC_PER_USEC);
			cond_resched();
		}
		if (READ_ONCE(end->gone))
			err = -ECONNRESET;
	}
	if (err || !served)
		return err ?: -ENODATA;
	sort(ns, count, sizeof(*ns), bench_compare, NULL);
	snprintf(bench_result, sizeof(bench_result),
		 "{\"size\": %u, \"count\": %u, \"per_s\": %llu, \"median_ns\": %u, \"p99_ns\": %u}\n",
		 end->run.size, count, served * NSEC_PER_SEC / (last - since), ns[count / 2],
		 ns[(u64)count * 99 / 100]);
	return 0;
}

static int bench_measure(struct bench_end *end)
{
	u32 *ns;
	int err;

	if (!wait_event_timeout(end->wait, READ_ONCE(end->up) || READ_ONCE(end->gone), BENCH_STEP))
		return -ETIMEDOUT;
	if (end->run.what == BENCH_BANDWIDTH)
		return bench_bandwidth(end);
	ns = kvmalloc_array(end->run.count, sizeof(*ns), GFP_KERNEL);
	if (!ns)
		return -ENOMEM;
	err = end->run.what == BENCH_LATENCY ? bench_latency(end, ns) : bench_load(end, ns);
	kvfree(ns);
	return err;
}

static int bench_run(const struct bench_run *run, u32 node, u32 generation)
{
	struct sovia_pair pair = { .lane = SOVIA_VI_BENCH_LANE };
	struct sovia_hello hello;
	struct bench_end *end;
	int err;

	end = bench_alloc(run);
	if (!end)
		return -ENOMEM;
	if (!sovia_clan_ways(&init_net, &end->way, 1)) {
		bench_free(end);
		return -ENODEV;
	}
	end->way.number = node;
	end->way.generation = generation;
	/* The ends tell requests by these. */
	pair.local.s6_addr[15] = 1;
	pair.remote.s6_addr[15] = 2;
	fill_hello(&hello, run);
	end->vi = sovia_clan_provider.connect(&init_net, &pair, &bench_attr, &hello, &bench_client,
					      end);
	if (IS_ERR(end->vi)) {
		err = PTR_ERR(end->vi);
		bench_free(end);
		return err;
	}
	err = bench_measure(end);
	bench_end(end);
	return err;
}

static ssize_t bench_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char text[100] = "", what[16];
	struct bench_run run = {};
	u32 node, generation;
	int err;

	if (len >= sizeof(text) || copy_from_user(text, from, len))
		return -EINVAL;
	if (sscanf(text, "%u %u %15s %u %u %u %u", &node, &generation, what, &run.size, &run.count,
		   &run.poll, &run.more) != 7)
		return -EINVAL;
	run.what = match_string(bench_names, BENCH_RUNS, what);
	if (!bench_acceptable(&run) || (run.what == BENCH_LOAD && !run.more))
		return -EINVAL;
	mutex_lock(&bench_mutex);
	err = bench_run(&run, node, generation);
	mutex_unlock(&bench_mutex);
	return err ?: len;
}

static ssize_t bench_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	char text[sizeof(bench_result) + 40];
	struct sovia_clan_way way = {};
	ssize_t ret;

	mutex_lock(&bench_mutex);
	sovia_clan_ways(&init_net, &way, 1);
	snprintf(text, sizeof(text), "%u %u\n%s", way.number, way.generation, bench_result);
	ret = simple_read_from_buffer(to, len, pos, text, strlen(text));
	mutex_unlock(&bench_mutex);
	return ret;
}

static const struct file_operations bench_fops = {
	.owner	= THIS_MODULE,
	.write	= bench_write,
	.read	= bench_read,
};

/**
 * sovia_vi_bench_init() - create the file
 *
 * Context: module init, after sovia_debugfs_init().
 * Return: 0 or -ENOMEM.
 */
int sovia_vi_bench_init(void)
{
	bench_wq = alloc_workqueue("sovia-vi", WQ_UNBOUND, 0);
	if (!bench_wq)
		return -ENOMEM;
	debugfs_create_file("vi", 0600, sovia_debugfs_dir(), NULL, &bench_fops);
	return 0;
}

/**
 * sovia_vi_bench_exit() - wait for runs of others
 *
 * Context: module exit; no request comes any more.
 */
void sovia_vi_bench_exit(void)
{
	destroy_workqueue(bench_wq);
}

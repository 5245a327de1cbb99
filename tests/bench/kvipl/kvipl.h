/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KVIPL_H
#define _KVIPL_H

#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define KVIPL_PORT	7705
#define KVIPL_DEPTH	64		/* sends in flight */
#define KVIPL_RECEIVES	512		/* posted receives */
#define KVIPL_SIGNAL	16		/* one of so many sends is signaled */
#define KVIPL_REGIONS	8		/* of memory that is registered, at once */
#define KVIPL_READS	KVIPL_REGIONS	/* READs in flight */
#define KVIPL_SIZE_MAX	SZ_1M
#define KVIPL_COUNT_MAX	SZ_1M
#define KVIPL_WARM_UP	100
#define KVIPL_STEP	(10 * HZ)	/* timeout of each step */
#define KVIPL_RUN	(600 * HZ)	/* timeout of a run */

/**
 * enum kvipl_what - a run
 * @KVIPL_LATENCY: half round trips
 * @KVIPL_LATENCY_REG: the same; what is sent is registered for it
 * @KVIPL_LATENCY_COPY: the same; what is sent is copied into memory that is mapped
 * @KVIPL_BANDWIDTH: one way
 * @KVIPL_REG: memory registered and invalidated
 * @KVIPL_COPY: memory copied, without a connection
 * @KVIPL_READ: READ from the server's memory
 * @KVIPL_WRITE: RDMA WRITE into it
 * @KVIPL_OFFER: the server fetches by READ what it is offered
 * @KVIPL_RUNS: their number
 */
enum kvipl_what {
	KVIPL_LATENCY,
	KVIPL_LATENCY_REG,
	KVIPL_LATENCY_COPY,
	KVIPL_BANDWIDTH,
	KVIPL_REG,
	KVIPL_COPY,
	KVIPL_READ,
	KVIPL_WRITE,
	KVIPL_OFFER,
	KVIPL_RUNS,
};

/**
 * struct kvipl_request - the private data of a connection request, between equal machines
 * @what: enum kvipl_what
 * @size: of a message, in bytes
 * @count: messages
 */
struct kvipl_request {
	u32	what;
	u32	size;
	u32	count;
};

/**
 * struct kvipl_offer - a message that names memory of its sender
 * @addr: its address for the device
 * @key: permits to fetch it
 * @region: its number
 */
struct kvipl_offer {
	u64	addr;
	u32	key;
	u32	region;
};

/**
 * struct kvipl_region - memory that is registered
 * @end: the end that it belongs to
 * @mr: maps kvipl_end::buffer
 * @sent: completion of what has used it
 * @invalidated: completion of its end
 */
struct kvipl_region {
	struct kvipl_end	*end;
	struct ib_mr		*mr;
	struct ib_cqe		sent;
	struct ib_cqe		invalidated;
};

/**
 * struct kvipl_end - one end of a connection
 * @id: rdma_cm's identifier
 * @req: the request it serves
 * @passive: it is the server's
 * @pd: protection domain
 * @cq: completions, processed in softirq
 * @buffer: sent from and received into
 * @dma: its address for the device
 * @sg: @buffer
 * @program: copied into @buffer by runs that do so
 * @slots: received messages of runs with offers, by turns; behind them what is sent
 * @slots_dma: their address for the device
 * @region: memory.c
 * @rx_cqe: completion of a receive
 * @tx_cqe: completion of a signaled send
 * @received: messages
 * @sent: sends completed
 * @posted: sends posted
 * @receives: receives posted
 * @over: uses of regions that are over
 * @step: woken by each event and completion
 * @event: last event of the connection manager + 1, or 0
 * @gone: the connection has ended, or failed
 * @work: serves, on the passive side
 */
struct kvipl_end {
	struct rdma_cm_id	*id;
	struct kvipl_request	req;
	bool			passive;
	struct ib_pd		*pd;
	struct ib_cq		*cq;
	void			*buffer;
	u64			dma;
	struct scatterlist	sg;
	void			*program;
	struct kvipl_offer	*slots;
	u64			slots_dma;
	struct kvipl_region	region[KVIPL_REGIONS];
	struct ib_cqe		rx_cqe;
	struct ib_cqe		tx_cqe;
	u32			received;
	u32			sent;
	u32			posted;
	u32			receives;
	u32			over;
	wait_queue_head_t	step;
	int			event;
	bool			gone;
	struct work_struct	work;
};

extern char kvipl_result[256];

/* main.c */
int kvipl_post_receive(struct kvipl_end *end);
int kvipl_post_send(struct kvipl_end *end, struct ib_send_wr *wr);
int kvipl_await_received(struct kvipl_end *end, u32 number);
void kvipl_fail(struct kvipl_end *end);

/* memory.c */
bool kvipl_has_slots(const struct kvipl_end *end);
int kvipl_memory_create(struct kvipl_end *end);
void kvipl_memory_destroy(struct kvipl_end *end);
void kvipl_memory_received(struct kvipl_end *end);
int kvipl_memory_serve(struct kvipl_end *end);
int kvipl_memory_run(struct kvipl_end *end);
int kvipl_memory_send(struct kvipl_end *end);
int kvipl_copy(const struct kvipl_request *req);

#endif /* _KVIPL_H */

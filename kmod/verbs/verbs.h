/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The verbs provider: a VI is a reliable connection (RC) queue pair.
 *
 *	verbs.c		life of a VI: its states, its queue pair, its set-up
 *	verbs_end.c	its end: drain, free, quarantine
 *	verbs_cm.c	rdma_cm: events of a VI, the active side
 *	verbs_listen.c	rdma_cm: listeners and requests, the passive side
 *	verbs_dev.c	devices: one PD and a few completion queues each
 *	verbs_tx.c	send descriptors
 *	verbs_rx.c	receive descriptors and their memory
 *
 * Lock order
 *	rdma_cm's handler mutex of an id (rdma_lock_handler)
 *	  verbs_dev::cq_lock
 *	    verbs_dev::lock ("the device lock")
 *	      verbs_vi::lock (spinlock, bottom halves off)
 *
 * Upcalls run without verbs_vi::lock.  The device lock is held over the closed
 * upcall of a device that is removed or has failed, the handler mutex over established, closed and
 * the replay of early receives.  None of them may wait for the VI's end.
 */
#ifndef _SOVIA_VERBS_H
#define _SOVIA_VERBS_H

#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "core/provider.h"

struct sovia_mapped;
struct verbs_dev;
struct verbs_request;
struct verbs_vi;

/*
 * Bytes of a message that land in the descriptor's head, not in pages.  With what an sk_buff has
 * behind them they are 512, where the kernel has no cache of its own for small ones.
 */
#define VERBS_HEAD	192

/*
 * Bytes of a message that are inline; fewer if the device does not support as many.  A longer one
 * is mapped, read by the device, and reported when that is done, which costs more than a copy.
 */
#define VERBS_INLINE		288
#define VERBS_INLINE_LESS	128

/* Receive descriptors that are posted with one call, if there are more than the first few. */
#define VERBS_RX_BATCH	4

/*
 * Timeout of a step of setting up a VI.  ib_cm retransmits a lost request or reply
 * after 4.6 s, or 6.1 s on InfiniBand and before 6.12: three times within it.
 */
#define VERBS_STEP_MS	20000

/*
 * Time for the flushed completions of a dead queue pair.  A device that needs longer is
 * broken: see verbs_drain_late().
 */
#define VERBS_DRAIN_TIMEOUT	(10 * HZ)

/* How often it is looked whether the device has said itself that it is broken. */
#define VERBS_DRAIN_LOOK	HZ

/**
 * struct verbs_cq - a completion queue that several VIs share
 * @entry: in verbs_dev::cqs
 * @dev: its device
 * @cq: the queue
 * @napi: polls it, in softirq or for busy polling (busy_poll.c): one at a
 *	time
 * @size: completions it can hold
 * @used: completions reserved for VIs
 *
 * Room for everything that a VI can have posted is reserved before its queue
 * pair exists, so the queue never overflows.  Lives as long as its device.
 * Protected by the device lock.
 */
struct verbs_cq {
	struct list_head	entry;
	struct verbs_dev	*dev;
	struct ib_cq		*cq;
	struct napi_struct	napi;
	unsigned int		size;
	unsigned int		used;
};

/**
 * struct verbs_tx - send descriptor
 * @cqe: completion
 * @v: its VI
 * @skb: reference to the message, NULL in a free descriptor
 * @kept: memory of a message that has been reported, which the device may still read: quarantine
 * @sge: DMA addresses of its parts
 * @num_sge: how many of @sge are mapped; 0 if the data is inline
 *
 * A slot of the ring verbs_vi::tx.
 */
struct verbs_tx {
	struct ib_cqe	cqe;
	struct verbs_vi	*v;
	struct sk_buff	*skb;
	struct sk_buff	*kept;
	struct ib_sge	*sge;
	unsigned int	num_sge;
};

/**
 * struct verbs_rx - receive descriptor
 * @cqe: completion
 * @wr: the work request
 * @v: its VI
 * @entry: in verbs_vi::early_rx or verbs_vi::rx_unposted
 * @skb: the sk_buff for the next message; NULL if the client
 *	took it and no other could be allocated
 * @head: the first VERBS_HEAD bytes of a message
 * @pages: the rest; NULL where the client took pages
 * @kept: bit of each of @pages that stays mapped when the client takes it, as its pool's do
 * @sge: DMA addresses: @head, then @pages
 * @len: length of the message
 * @has_imm: it has immediate data
 * @imm: immediate data
 *
 * The head is copied into @skb's linear part and never leaves the descriptor:
 * copying a header costs less than unmapping and mapping it, and a borrowed
 * sk_buff that the client keeps after all has no memory mapped for the device.
 * Pages that a message did not use stay here, mapped.
 *
 * Owned by the device while posted, by the softirq that completes it, or by the
 * list it is in.
 */
struct verbs_rx {
	struct ib_cqe		cqe;
	struct ib_recv_wr	wr;
	struct verbs_vi		*v;
	struct list_head	entry;
	struct sk_buff		*skb;
	void			*head;
	struct page		**pages;
	unsigned long		kept;
	struct ib_sge		*sge;
	unsigned int		len;
	bool			has_imm;
	u32			imm;
};

/**
 * enum verbs_state - state of a VI; only verbs.c writes it
 * @VERBS_CONNECTING: created; receives that complete are kept for later
 * @VERBS_OPENING: the established upcall and the replay of early receives run
 * @VERBS_OPEN: data flows
 * @VERBS_DEAD: closed has been called, or destroy
 */
enum verbs_state {
	VERBS_CONNECTING,
	VERBS_OPENING,
	VERBS_OPEN,
	VERBS_DEAD,
};

/**
 * enum verbs_setup - what the set-up work does next: verbs_cm.c, verbs_listen.c
 * @VERBS_SETUP_ACTIVE: make an identifier, start to resolve the peer's address
 * @VERBS_SETUP_PASSIVE: answer the peer's request
 * @VERBS_SETUP_ADDR: try to resolve the address again
 * @VERBS_SETUP_ROUTE: attach to the device, start to resolve the route
 * @VERBS_SETUP_CONNECT: make the queue pair, send the request
 */
enum verbs_setup {
	VERBS_SETUP_ACTIVE,
	VERBS_SETUP_PASSIVE,
	VERBS_SETUP_ADDR,
	VERBS_SETUP_ROUTE,
	VERBS_SETUP_CONNECT,
};

/**
 * struct verbs_vi - a VI
 * @vi: the client's part
 * @id: rdma_cm's identifier; its handler mutex serialises set-up and events
 * @net: network namespace, held by the client
 * @rq: the peer's request, until it is answered
 * @qp: queue pair, NULL before the device is known
 * @ibdev: the device of @qp
 * @dev: device that it is attached to, or NULL
 * @port: of @dev
 * @cq: completion queue, room for @cqes reserved
 * @cqes: see @cq
 * @dev_entry: in verbs_dev::vis or ::stuck, protected by the device lock
 * @stuck: in quarantine; protected by the device lock
 * @abandoned: and its device is being removed, which frees it; likewise
 * @hello: sent to the peer
 * @peer_hello: received from the peer
 * @peer_hello_len: bytes of @peer_hello
 * @passive: the peer requested the VI
 * @started: a request or reply was sent, so the queue pair needs draining
 * @cm_established: rdma_cm has reported the connection established; see verbs_established().
 *	Protected by the handler mutex.
 *
 * @lock: protects @state, @error, @early_rx, @rx_unposted, @setup, @setups and @ending;
 *	receives are posted under it, so that nothing is posted once @state is VERBS_DEAD
 * @state: enum verbs_state
 * @error: errno to close with after VERBS_OPENING, or 0
 * @early_rx: receives that completed before VERBS_OPEN, in order
 * @rx_unposted: receives that wait for memory
 *
 * @source: source port of the request
 * @tries: number of tries of address resolution
 * @setup_work: does what may block, on the set-up queue
 * @setup: what it does next
 * @setups: how often it is queued or running
 * @ending: the client has ended the VI: @end_work follows when @setups is 0
 * @end_work: stops the VI, on the end queue
 * @drain_tx: completion of the last send
 * @drain_rx: completion of the last receive
 * @draining: number of these that are due, and one more until both are posted
 * @drain_deadline: the device does not complete them, or has failed
 * @drain_end: when that is certain, jiffies
 * @finish_work: frees the VI when nothing is in flight, on the end queue
 * @break_work: sets the error state, for tests
 * @heard_work: tells rdma_cm that a message has arrived
 * @deadline: fires if a step of the set-up takes too long
 * @fail_work: closes a VI that failed in a context where upcalls may not run
 * @refill_work: allocates memory for @rx_unposted, and more receives
 *
 * @tx: ring of @tx_mask + 1 descriptors, @vi.attr.send_depth used at a time
 * @tx_sge: their scatter lists
 * @tx_mask: see @tx
 * @tx_unsignaled: one of so many descriptors is signaled
 * @tx_head: next to post; written by post_send, which the client serialises
 * @tx_tail: next to complete; written by the completion handler, one at a time
 * @max_inline: largest message sent inline, 0 if none
 * @max_sge: maximum of scatter/gather entries of a message
 *
 * @rx: verbs_rx_depth() descriptors
 * @rx_made: how many of them are in use, the first ones; written by the set-up and @refill_work
 * @rx_goal: receives that the client wants to be kept posted
 * @rx_batch: descriptors that are posted together; protected by @lock
 * @rx_first: first of the descriptors that wait to be posted together
 * @rx_last: the last one of them
 * @rx_waiting: their number; these three are protected by @lock
 * @rx_pages: their pages
 * @rx_sge: their scatter lists
 * @rx_num_pages: pages of a descriptor
 * @rx_order: size of a page: PAGE_SIZE << @rx_order
 * @rx_mapped: such pages that stay mapped for the device, or NULL
 *
 * Created for the client's connection thread, which also requests its end, see verbs_end.c.
 */
struct verbs_vi {
	struct sovia_vi		vi;
	struct rdma_cm_id	*id;
	struct net		*net;
	struct verbs_request	*rq;
	struct ib_qp		*qp;
	struct ib_device	*ibdev;
	struct verbs_dev	*dev;
	u32			port;
	struct verbs_cq		*cq;
	unsigned int		cqes;
	struct list_head	dev_entry;
	bool			stuck;
	bool			abandoned;
	struct sovia_hello	hello;
	struct sovia_hello	peer_hello;
	unsigned int		peer_hello_len;
	bool			passive;
	bool			started;
	bool			cm_established;

	spinlock_t		lock;	/* see above */
	enum verbs_state	state;
	int			error;
	struct list_head	early_rx;
	struct list_head	rx_unposted;

	u16			source;
	unsigned int		tries;
	struct work_struct	setup_work;
	enum verbs_setup	setup;
	unsigned int		setups;
	bool			ending;
	struct work_struct	end_work;
	struct ib_cqe		drain_tx;
	struct ib_cqe		drain_rx;
	atomic_t		draining;
	struct delayed_work	drain_deadline;
	unsigned long		drain_end;
	struct work_struct	finish_work;
	struct work_struct	break_work;
	struct work_struct	heard_work;
	struct delayed_work	deadline;
	struct delayed_work	fail_work;
	struct delayed_work	refill_work;

	struct verbs_tx		*tx;
	struct ib_sge		*tx_sge;
	unsigned int		tx_mask;
	unsigned int		tx_unsignaled;
	unsigned int		tx_head;
	unsigned int		max_inline;
	unsigned int		max_sge;
	unsigned int		tx_tail ____cacheline_aligned_in_smp;

	struct verbs_rx		*rx;
	unsigned int		rx_made;
	unsigned int		rx_goal;
	unsigned int		rx_batch;
	struct verbs_rx		*rx_first;
	struct verbs_rx		*rx_last;
	unsigned int		rx_waiting;
	struct page		**rx_pages;
	struct ib_sge		*rx_sge;
	unsigned int		rx_num_pages;
	unsigned int		rx_order;
	struct sovia_mapped	*rx_mapped;
};

static inline struct verbs_vi *verbs_vi(struct sovia_vi *vi)
{
	return container_of(vi, struct verbs_vi, vi);
}

static inline struct ib_device *verbs_ibdev(const struct verbs_vi *v)
{
	return v->ibdev;
}

/* Where memory is near to a device; soft ones have no place. */
static inline int verbs_node(const struct ib_device *ibdev)
{
	return ibdev->dma_device ? dev_to_node(ibdev->dma_device) : NUMA_NO_NODE;
}

/* Once the device is known. */
static inline bool verbs_iwarp(const struct verbs_vi *v)
{
	return rdma_protocol_iwarp(v->id->device, v->id->port_num);
}

/* The most receive descriptors of a VI: some may wait to be posted. */
static inline unsigned int verbs_rx_depth(const struct verbs_vi *v)
{
	return v->vi.attr.recv_depth + VERBS_RX_BATCH - 1;
}

/* Is the VI still usable?  Without the lock: a hint. */
static inline bool verbs_vi_usable(const struct verbs_vi *v)
{
	return READ_ONCE(v->state) != VERBS_DEAD;
}

/* verbs.c */
struct verbs_vi *verbs_vi_alloc(const struct sovia_pair *pair,
				const struct sovia_vi_attr *attr,
				const struct sovia_hello *hello,
				const struct sovia_vi_client *client, void *context);
void verbs_vi_setup(struct verbs_vi *v, enum verbs_setup setup);
int verbs_vi_attach(struct verbs_vi *v);
int verbs_vi_create_qp(struct verbs_vi *v);
void verbs_vi_opened(struct verbs_vi *v);
void verbs_vi_die(struct verbs_vi *v, int err);
void verbs_vi_doubt(struct verbs_vi *v);
void verbs_vi_silence(struct verbs_vi *v);
void verbs_vi_fail(struct verbs_vi *v, unsigned long delay);
void verbs_vi_failed_wc(struct verbs_vi *v, const struct ib_wc *wc);
void verbs_vi_heard(struct verbs_vi *v);
void verbs_vi_step(struct verbs_vi *v);

/* verbs_end.c */
void verbs_vi_free(struct verbs_vi *v);
void verbs_vi_abandon(struct verbs_vi *v);
void verbs_end(struct sovia_vi *vi);
void verbs_end_work(struct work_struct *work);
void verbs_drain_late(struct work_struct *work);
void verbs_finish_work(struct work_struct *work);

/* verbs_cm.c */
extern unsigned int verbs_service_port;
struct sovia_vi *verbs_connect(struct net *net, const struct sovia_pair *pair,
			       const struct sovia_vi_attr *attr,
			       const struct sovia_hello *hello,
			       const struct sovia_vi_client *client, void *context);
int verbs_vi_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
int verbs_path(const struct rdma_cm_id *id, struct sovia_path *path);
int verbs_seal(struct verbs_vi *v);
void verbs_conn_param(struct verbs_vi *v, struct rdma_conn_param *param);
void verbs_set_timers(struct rdma_cm_id *id);
void verbs_set_service_type(struct rdma_cm_id *id, unsigned int tos);
void verbs_cm_setup(struct verbs_vi *v, enum verbs_setup setup);
void verbs_heard_work(struct work_struct *work);

/* verbs_listen.c */
int verbs_listen(struct net *net, void (*request)(struct sovia_vi_request *req));
void verbs_unlisten(struct net *net);
struct sovia_vi *verbs_accept(struct sovia_vi_request *req,
			      const struct sovia_vi_attr *attr,
			      const struct sovia_hello *hello,
			      const struct sovia_vi_client *client, void *context);
void verbs_reject(struct sovia_vi_request *req, int err);
void verbs_answer(struct verbs_vi *v);
void verbs_request_drop(struct verbs_request *rq, int err);

/* verbs_dev.c */
int verbs_dev_init(void);
void verbs_dev_exit(void);
bool verbs_devs_serve(const struct net *net);
bool verbs_dev_serves(struct ib_device *ibdev, const struct net *net);
bool verbs_dev_reaches(const struct net *net, const struct in6_addr *addr,
		       struct net_device *ndev);
unsigned int verbs_dev_max_inline(const struct verbs_dev *dev);
struct sovia_mapped *verbs_dev_mapped(const struct verbs_dev *dev);
int verbs_dev_attach(struct verbs_vi *v, struct ib_device *ibdev);
void verbs_dev_detach(struct verbs_vi *v);
bool verbs_dev_failed(const struct verbs_vi *v);
void verbs_dev_quarantine(struct verbs_vi *v);
bool verbs_dev_release(struct verbs_vi *v);
struct ib_pd *verbs_dev_pd(const struct verbs_dev *dev);

/* verbs_tx.c */
int verbs_tx_alloc(struct verbs_vi *v);
void verbs_tx_disown(struct verbs_vi *v);
void verbs_tx_free(struct verbs_vi *v);
int verbs_post_send(struct sovia_vi *vi, struct sk_buff *skb, const struct sovia_post *how);

/* verbs_rx.c */
int verbs_rx_alloc(struct verbs_vi *v);
void verbs_rx_free(struct verbs_vi *v);
int verbs_rx_post_all(struct verbs_vi *v);
void verbs_rx_replay(struct verbs_vi *v);
void verbs_rx_refill_work(struct work_struct *work);
void verbs_post_more(struct sovia_vi *vi, unsigned int depth);

#endif /* _SOVIA_VERBS_H */

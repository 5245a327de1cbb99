// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events of connections whose other end is a socket here (lane/direct.c).
 *
 * The sender, which has its own socket locked, may not lock the receiver's.  It notes the event
 * in the connection, and a softirq of its CPU hands it to the receiver: as soon as the sender has
 * enabled bottom halves again, or after the softirq it runs in.
 */
#include <linux/list.h>
#include <linux/irq_poll.h>
#include <linux/llist.h>
#include "defer.h"
#include "later.h"

#define LATER_WEIGHT	64

/**
 * struct later_queue - connections with events, of a CPU
 * @conns: the connections, with a reference each, newest first
 * @first: those that are being handled, oldest first; @poll's alone
 * @poll: handles them
 */
struct later_queue {
	struct llist_head	conns;
	struct llist_node	*first;
	struct irq_poll		poll;
};

static DEFINE_PER_CPU(struct later_queue, later_queues);

/* All bits fit beside the one that tells that the connection is in a queue. */
#define LATER_QUEUED	(BITS_PER_LONG - 1)

static void later_handle(struct sovia_conn *conn)
{
	int what;

	/* Who adds an event from here on queues the connection again. */
	clear_bit_unlock(LATER_QUEUED, &conn->later);
	/* Pairs with sovia_later(): we see its event, or it sees the cleared bit. */
	smp_mb__after_atomic();
	for (what = 0; what < SOVIA_DEFER_COUNT; what++)
		if (test_and_clear_bit(what, &conn->later))
			sovia_defer_now(conn, what, what < SOVIA_DEFER_ARGS ?
					READ_ONCE(conn->later_arg[what]) : 0);
	sovia_conn_put(conn);
}

static int later_poll(struct irq_poll *poll, int budget)
{
	struct later_queue *queue = container_of(poll, struct later_queue, poll);
	struct llist_node *node;
	int done = 0;

	while (done < budget) {
		if (!queue->first)
			queue->first = llist_reverse_order(llist_del_all(&queue->conns));
		node = queue->first;
		if (!node)
			break;
		/* It may be queued again while it is handled. */
		queue->first = node->next;
		later_handle(llist_entry(node, struct sovia_conn, later_node));
		done++;
	}
	if (done < budget) {
		irq_poll_complete(poll);
		/* One may have been added between the last look and irq_poll_complete(). */
		if (!llist_empty(&queue->conns))
			irq_poll_sched(poll);
	}
	return done;
}

/**
 * sovia_later() - handle an event of a connection soon
 * @conn: the caller holds a reference, or is under RCU
 * @what: which handler
 * @arg: its argument
 *
 * Context: any but hard interrupts.
 */
void sovia_later(struct sovia_conn *conn, enum sovia_deferred what, u32 arg)
{
	struct later_queue *queue;

	if (what < SOVIA_DEFER_ARGS)
		WRITE_ONCE(conn->later_arg[what], arg);
	/* The event's argument comes before the event. */
	smp_mb__before_atomic();
	set_bit(what, &conn->later);
	if (test_and_set_bit(LATER_QUEUED, &conn->later))
		return;
	/* Not if its last reference has just been put: then it has no socket. */
	if (!refcount_inc_not_zero(&conn->refs))
		return;
	local_bh_disable();
	queue = this_cpu_ptr(&later_queues);
	llist_add(&conn->later_node, &queue->conns);
	irq_poll_sched(&queue->poll);
	local_bh_enable();
}

/**
 * sovia_later_init() - make the queues
 *
 * Context: module init.
 * Return: 0.
 */
int __init sovia_later_init(void)
{
	int cpu;

	BUILD_BUG_ON(SOVIA_DEFER_ARGS > SOVIA_CONN_ARGS);
	for_each_possible_cpu(cpu) {
		struct later_queue *queue = per_cpu_ptr(&later_queues, cpu);

		init_llist_head(&queue->conns);
		irq_poll_init(&queue->poll, LATER_WEIGHT, later_poll);
	}
	return 0;
}

/**
 * sovia_later_exit() - wait for the queues
 *
 * Context: module exit, may sleep; there are no connections.
 */
void sovia_later_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		irq_poll_disable(&per_cpu_ptr(&later_queues, cpu)->poll);
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * A node's access to the memory: the other nodes that have it, and the bottom half.
 *
 * A node is open when each end has reset its area for the other one's generation.  Only the
 * bottom half opens and closes nodes, takes entries, and completes messages.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": clan: " fmt

#include <linux/random.h>
#include <linux/slab.h>
#include "clan/clan.h"
#include "compat/timer.h"

#define CLAN_POLL_WEIGHT	64
/* Entries that are taken before their writer learns of it. */
#define CLAN_BATCH		16

static struct sovia_clan_slot *slot_of(const struct sovia_clan_port *port, u32 number)
{
	return port->base + sovia_clan_slot_at(&port->geometry, number);
}

static u32 generation_of(const struct sovia_clan_node *node)
{
	/* Pairs with sovia_clan_port_begin(): its area names no older one. */
	return le32_to_cpu(virt_load_acquire(&slot_of(node->port, node->number)->generation));
}

/* Whom has the other node reset its area for? */
static u32 peer_of(const struct sovia_clan_node *node)
{
	/* Pairs with node_renew() there. */
	return le32_to_cpu(virt_load_acquire(&node->in.theirs.words->peer));
}

static void ring(struct sovia_clan_node *node)
{
	node->port->doorbell(node->port, node->number);
}

/* ---- a node comes and goes ------------------------------------------------ */

static void close_vis(struct sovia_clan_node *node, int err)
{
	struct sovia_clan_vi *cv;
	unsigned long number;

	xa_for_each(&node->port->vis, number, cv)
		if (cv->node == node)
			sovia_clan_vi_closed(cv, err);
}

static void purge_control(struct list_head *controls)
{
	struct sovia_clan_control *control, *next;

	list_for_each_entry_safe(control, next, controls, list)
		kfree(control);
}

/* Nothing that is under way will arrive any more. */
static void node_close(struct sovia_clan_node *node, int err)
{
	struct sovia_clan_vi *cv, *next;
	LIST_HEAD(controls);

	spin_lock_bh(&node->lock);
	node->open = false;
	list_splice_init(&node->control, &controls);
	/* Their messages are completed when they end. */
	list_for_each_entry_safe(cv, next, &node->senders, sender)
		list_del_init(&cv->sender);
	spin_unlock_bh(&node->lock);
	purge_control(&controls);
	close_vis(node, err);
	sovia_clan_pool_reclaim(&node->port->pool, node->number);
}

/* Begin anew with the other node, which has become another one. */
static void node_renew(struct sovia_clan_node *node, u32 generation)
{
	node_close(node, -ECONNRESET);
	sovia_clan_out_reset(&node->out);
	sovia_clan_in_reset(&node->in);
	node->generation = generation;
	/* Pairs with peer_of() there: the area has been reset. */
	virt_store_release(&node->out.own.words->peer, cpu_to_le32(generation));
	if (generation)
		ring(node);
}

/* The other node writes nonsense: nothing more is read of it until it begins anew. */
static void node_fail(struct sovia_clan_node *node)
{
	pr_notice_ratelimited("node %u: ended, as it violates the protocol\n", node->number);
	node_close(node, -EPROTO);
	WRITE_ONCE(node->out.own.words->peer, 0);
	ring(node);
}

/* Returns true if entries may be taken. */
static bool node_look(struct sovia_clan_node *node)
{
	u32 generation = generation_of(node);

	if (generation != node->generation ||
	    (node->open && peer_of(node) != node->port->generation))
		node_renew(node, generation);
	if (node->open || !generation || peer_of(node) != node->port->generation ||
	    READ_ONCE(node->out.own.words->peer) != cpu_to_le32(generation))
		return node->open;
	spin_lock_bh(&node->lock);
	node->open = true;
	spin_unlock_bh(&node->lock);
	return true;
}

/* ---- what goes to it -------------------------------------------------------- */

/**
 * sovia_clan_node_wait() - have the bottom half run when the other node has taken something
 * @node: it
 *
 * Context: node->lock held.
 */
void sovia_clan_node_wait(struct sovia_clan_node *node)
{
	/* It has, or the bottom half is to find the violation. */
	if (sovia_clan_out_wait(&node->out))
		sovia_clan_port_rung(node->port);
}

/* Returns 0 if it has been written, -EAGAIN, or -EPROTO. */
static int write_control(struct sovia_clan_node *node, const struct sovia_clan_control *control)
{
	int room = sovia_clan_out_room(&node->out);

	if (room <= 0)
		return room ?: -EAGAIN;
	sovia_clan_out_put(&node->out, &control->entry, control->bytes);
	return 0;
}

/* Write the control entries that have waited, as far as there is room. */
static int write_controls(struct sovia_clan_node *node)
{
	struct sovia_clan_control *control;
	int err;

	while (!list_empty(&node->control)) {
		control = list_first_entry(&node->control, struct sovia_clan_control, list);
		err = write_control(node, control);
		if (err)
			return err == -EAGAIN ? 0 : err;
		list_del(&control->list);
		kfree(control);
	}
	return 0;
}

/**
 * sovia_clan_control() - send an entry that is not a message
 * @node: whom to
 * @kind: enum sovia_clan_kind
 * @vi: number of its VI
 * @epoch: of that
 * @setup: body, or NULL
 *
 * Context: process or softirq.
 * Return: 0, -ENOTCONN if the node is not open, or -ENOMEM.
 */
int sovia_clan_control(struct sovia_clan_node *node, u8 kind, u16 vi, u32 epoch,
		       const struct sovia_clan_setup *setup)
{
	struct sovia_clan_control *control = kzalloc(sizeof(*control), GFP_ATOMIC);
	u32 len = setup ? sizeof(*setup) : 0;
	bool rings;

	BUILD_BUG_ON(sizeof(*setup) > SOVIA_CLAN_INLINE);
	if (!control)
		return -ENOMEM;
	control->bytes = offsetof(struct sovia_clan_entry, data) + len;
	control->entry.kind = kind;
	control->entry.vi = cpu_to_le16(vi);
	control->entry.epoch = cpu_to_le32(epoch);
	control->entry.len = cpu_to_le32(len);
	if (setup)
		memcpy(control->entry.data, setup, len);
	spin_lock_bh(&node->lock);
	if (!node->open) {
		spin_unlock_bh(&node->lock);
		kfree(control);
		return -ENOTCONN;
	}
	list_add_tail(&control->list, &node->control);
	/* A violation is found by the bottom half as well. */
	write_controls(node);
	if (!list_empty(&node->control))
		sovia_clan_node_wait(node);
	rings = sovia_clan_out_publish(&node->out);
	spin_unlock_bh(&node->lock);
	if (rings)
		ring(node);
	return 0;
}

/* Take back what the other node has returned.  Returns 0 or -EPROTO. */
static int take_back(struct sovia_clan_node *node)
{
	int got, err;
	u32 cookie;

	while ((got = sovia_clan_out_cookie(&node->out, &cookie)) > 0) {
		err = sovia_clan_pool_return(&node->port->pool, node->number, cookie);
		if (err)
			return err;
	}
	return got;
}

/**
 * sovia_clan_node_observe() - look how far the other node is, and use the room
 * @node: open
 *
 * Context: node->lock held.
 * Return: 0 or -EPROTO.
 */
int sovia_clan_node_observe(struct sovia_clan_node *node)
{
	int err = sovia_clan_out_look(&node->out) ?: take_back(node);

	return err ?: write_controls(node);
}

/* The next VI with a message that has arrived, or NULL. */
static struct sovia_clan_vi *next_completed(struct sovia_clan_node *node)
{
	struct sovia_clan_vi *cv;
	const struct sovia_clan_sent *sent;

	list_for_each_entry(cv, &node->senders, sender) {
		sent = &cv->sent[cv->tail % cv->vi.attr.send_depth];
		if ((s32)(node->out.read - sent->index) >= 0)
			return cv;
	}
	return NULL;
}

static int node_send(struct sovia_clan_node *node)
{
	struct sovia_clan_vi *cv;
	bool rings;
	int err;

	spin_lock_bh(&node->lock);
	err = sovia_clan_node_observe(node);
	while (!err && (cv = next_completed(node)))
		sovia_clan_vi_complete(cv, true);
	if (!err && (!list_empty(&node->senders) || !list_empty(&node->control)))
		sovia_clan_node_wait(node);
	rings = !err && sovia_clan_out_publish(&node->out);
	spin_unlock_bh(&node->lock);
	if (rings)
		ring(node);
	return err;
}

/* ---- what comes from it ------------------------------------------------------- */

static void drop_pages(struct sovia_clan_node *node, const struct sovia_clan_entry *entry)
{
	u32 len = le32_to_cpu(entry->len), i;

	for (i = 0; len > SOVIA_CLAN_INLINE && i < DIV_ROUND_UP(len, SOVIA_CLAN_PAGE); i++)
		sovia_clan_in_return(&node->in, le32_to_cpu(entry->cookie[i]));
}

static int take_data(struct sovia_clan_node *node, struct sovia_clan_vi *cv,
		     const struct sovia_clan_entry *entry)
{
	int err = cv ? sovia_clan_vi_receive(cv, entry) : 0;

	/* Who lacks memory takes it again. */
	if (err != -ENOMEM)
		drop_pages(node, entry);
	return err;
}

static int take_answer(struct sovia_clan_node *node, struct sovia_clan_vi *cv,
		       const struct sovia_clan_setup *setup)
{
	/* It has gone: so has the other end, then. */
	if (!cv)
		return sovia_clan_control(node, SOVIA_CLAN_BYE, le16_to_cpu(setup->vi),
					  le32_to_cpu(setup->epoch), NULL) == -ENOMEM ? -ENOMEM : 0;
	return sovia_clan_vi_answered(cv, setup) ? 0 : -EPROTO;
}

/* The peer may write any number. */
static int reject_errno(const struct sovia_clan_setup *setup)
{
	u16 err = le16_to_cpu(setup->err);

	switch (err) {
	case EAGAIN:
	case EBUSY:
	case EPROTO:
	case ESTALE:
		return -err;
	default:
		return -ECONNREFUSED;
	}
}

/* Returns 0, -ENOMEM to be asked again, or -EPROTO. */
static int take_entry(struct sovia_clan_node *node, const struct sovia_clan_entry *entry)
{
	u32 len = le32_to_cpu(entry->len);
	struct sovia_clan_setup setup;
	struct sovia_clan_vi *cv;

	if (len > SOVIA_CLAN_PAGES * SOVIA_CLAN_PAGE)
		return -EPROTO;
	cv = xa_load(&node->port->vis, le16_to_cpu(entry->vi));
	if (cv && (cv->node != node || cv->epoch != le32_to_cpu(entry->epoch)))
		cv = NULL;
	if (entry->kind == SOVIA_CLAN_DATA)
		return take_data(node, cv, entry);
	if (len != (entry->kind == SOVIA_CLAN_RTU || entry->kind == SOVIA_CLAN_BYE ? 0 :
										    sizeof(setup)))
		return -EPROTO;
	memcpy(&setup, entry->data, len);
	switch (entry->kind) {
	case SOVIA_CLAN_REQ:
		sovia_clan_requested(node, &setup);
		return 0;
	case SOVIA_CLAN_REP:
		return take_answer(node, cv, &setup);
	case SOVIA_CLAN_REJ:
		if (cv)
			sovia_clan_vi_closed(cv, reject_errno(&setup));
		return 0;
	case SOVIA_CLAN_RTU:
		return !cv || sovia_clan_vi_answered(cv, NULL) ? 0 : -EPROTO;
	case SOVIA_CLAN_BYE:
		if (cv)
			sovia_clan_vi_closed(cv, -ECONNRESET);
		return 0;
	}
	return -EPROTO;
}

static void node_publish(struct sovia_clan_node *node)
{
	if (node->in.read != node->in.told && sovia_clan_in_publish(&node->in))
		ring(node);
}

/* Returns how many entries were taken, or a negative errno. */
static int node_receive(struct sovia_clan_node *node, int budget)
{
	struct sovia_clan_entry entry;
	int done = 0, got, err;

	while (done < budget) {
		got = sovia_clan_in_take(&node->in, &entry);
		if (got <= 0) {
			if (got)
				return got;
			break;
		}
		err = take_entry(node, &entry);
		if (err == -ENOMEM) {
			sovia_clan_in_untake(&node->in);
			mod_timer(&node->port->retry, jiffies + 1);
			break;
		}
		if (err)
			return err;
		if (!(++done % CLAN_BATCH))
			node_publish(node);
	}
	node_publish(node);
	return done;
}

/* ---- the bottom half ------------------------------------------------------------ */

static int node_poll(struct sovia_clan_node *node, int budget)
{
	int done;

	if (!node_look(node))
		return 0;
	done = node_send(node) ?: node_receive(node, budget);
	if (done < 0) {
		node_fail(node);
		return 0;
	}
	return done;
}

/* Returns true if there is news that no doorbell tells of. */
static bool node_sleep(struct sovia_clan_node *node)
{
	bool news = false;

	if (node->open)
		news = sovia_clan_in_sleep(&node->in) && !timer_pending(&node->port->retry);
	return news || generation_of(node) != node->generation;
}

static int port_poll(struct irq_poll *poll, int budget)
{
	struct sovia_clan_port *port = container_of(poll, struct sovia_clan_port, poll);
	bool again = false;
	int done = 0;
	u32 i;

	rcu_read_lock();
	for (i = 0; i < port->geometry.nodes && done < budget; i++)
		if (i != port->number)
			done += node_poll(&port->node[i], budget - done);
	rcu_read_unlock();
	if (done >= budget)
		return done;
	irq_poll_complete(poll);
	for (i = 0; i < port->geometry.nodes; i++)
		if (i != port->number && node_sleep(&port->node[i]))
			again = true;
	if (again)
		irq_poll_sched(poll);
	return done;
}

/**
 * sovia_clan_port_rung() - our doorbell has been rung
 * @port: the port
 *
 * Context: any.
 */
void sovia_clan_port_rung(struct sovia_clan_port *port)
{
	irq_poll_sched(&port->poll);
}

static void port_retry(struct timer_list *timer)
{
	struct sovia_clan_port *port = timer_container_of(port, timer, retry);

	sovia_clan_port_rung(port);
}

/* ---- the port ----------------------------------------------------------------------- */

static void node_init(struct sovia_clan_port *port, u32 number)
{
	const struct sovia_clan_geometry *geometry = &port->geometry;
	struct sovia_clan_node *node = &port->node[number];

	node->port = port;
	node->number = number;
	spin_lock_init(&node->lock);
	INIT_LIST_HEAD(&node->control);
	INIT_LIST_HEAD(&node->senders);
	sovia_clan_area_set(&node->out.own,
			    port->base + sovia_clan_area_at(geometry, port->number, number));
	sovia_clan_area_set(&node->out.theirs,
			    port->base + sovia_clan_area_at(geometry, number, port->number));
	node->out.size = geometry->ring;
	node->in.own = node->out.own;
	node->in.theirs = node->out.theirs;
	node->in.size = geometry->ring;
}

/**
 * sovia_clan_port_alloc() - make a port for a memory
 * @base: the memory
 * @size: bytes of it
 * @number: the node's own number
 *
 * Context: process.
 * Return: the port, whose net and doorbell are to be set; or an ERR_PTR of
 * sovia_clan_check_header(), -ERANGE, or -ENOMEM.
 */
struct sovia_clan_port *sovia_clan_port_alloc(void *base, u64 size, u32 number)
{
	struct sovia_clan_geometry geometry;
	struct sovia_clan_port *port;
	u32 i;
	int err;

	err = sovia_clan_check_header(base, size, &geometry);
	if (err)
		return ERR_PTR(err);
	if (number >= geometry.nodes)
		return ERR_PTR(-ERANGE);
	port = kvzalloc(struct_size(port, node, geometry.nodes), GFP_KERNEL);
	if (!port)
		return ERR_PTR(-ENOMEM);
	port->base = base;
	port->geometry = geometry;
	port->number = number;
	err = sovia_clan_pool_init(&port->pool, geometry.pool);
	if (err) {
		kvfree(port);
		return ERR_PTR(err);
	}
	xa_init_flags(&port->vis, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	irq_poll_init(&port->poll, CLAN_POLL_WEIGHT, port_poll);
	timer_setup(&port->retry, port_retry, 0);
	for (i = 0; i < geometry.nodes; i++)
		node_init(port, i);
	return port;
}

/**
 * sovia_clan_port_begin() - take part
 * @port: whose net and doorbell are set
 *
 * Context: process.
 */
void sovia_clan_port_begin(struct sovia_clan_port *port)
{
	u32 i;

	/* What an earlier one with our number has left. */
	for (i = 0; i < port->geometry.nodes; i++)
		WRITE_ONCE(port->node[i].out.own.words->peer, 0);
	do {
		port->generation = get_random_u32();
	} while (!port->generation);
	/* Pairs with generation_of(). */
	virt_store_release(&slot_of(port, port->number)->generation,
			   cpu_to_le32(port->generation));
	for (i = 0; i < port->geometry.nodes; i++)
		if (i != port->number)
			ring(&port->node[i]);
	sovia_clan_port_rung(port);
}

/**
 * sovia_clan_port_stop() - leave: the bottom half does not run any more
 * @port: without VIs
 *
 * Context: process, may sleep.
 */
void sovia_clan_port_stop(struct sovia_clan_port *port)
{
	WRITE_ONCE(slot_of(port, port->number)->generation, 0);
	irq_poll_disable(&port->poll);
	timer_delete_sync(&port->retry);
}

/**
 * sovia_clan_port_free() - free a port
 * @port: stopped; its doorbell is rung no more
 *
 * Context: process, may sleep.
 */
void sovia_clan_port_free(struct sovia_clan_port *port)
{
	u32 i;

	for (i = 0; i < port->geometry.nodes; i++)
		purge_control(&port->node[i].control);
	xa_destroy(&port->vis);
	sovia_clan_pool_exit(&port->pool);
	kvfree(port);
}

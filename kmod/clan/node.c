// SPDX-License-Identifier: GPL-2.0-only
/*
 * Nodes that have the memory: they come and go, entries go to them and come from them.
 *
 * A node is open when each end has seen the other's epoch.  Only the bottom half (port.c) opens and
 * closes nodes, takes entries, and completes messages, until the port is stopped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": clan: " fmt

#include <linux/slab.h>
#include "clan.h"
#include "core/net.h"

/* Entries that are taken before their writer learns of it; pages that are taken back at once. */
#define CLAN_BATCH		16
/* A writer learns at once that so long a message has been taken: it may wait for the pages. */
#define CLAN_LONG		SZ_16K
/* Pause before a node that begins anew is greeted: none may monopolise the bottom half. */
#define CLAN_QUIET		(HZ / 10)
/* One that violates the protocol: doubled each time, forgotten after a while. */
#define CLAN_QUIET_STRIKE	HZ
#define CLAN_QUIET_MAX		(300 * HZ)
/* Entries that wait for room: what the other node can be refused, or we can do without. */
#define CLAN_WAITING		1024
/* ... and BYE: twice the number of VIs that can be.  A node with more waiting does not read. */
#define CLAN_WAITING_MAX	(2 * U16_MAX)
/* A node has so long to return the pages of VIs that have ended. */
#define CLAN_KEEP		HZ

static u32 generation_of(const struct sovia_clan_node *node)
{
	/* Pairs with sovia_clan_port_begin(): its areas have been reset. */
	return le32_to_cpu(virt_load_acquire(&node->slot->generation));
}

static u32 epoch_of(const struct sovia_clan_node *node)
{
	/* Pairs with sovia_clan_node_reset() there. */
	return le32_to_cpu(virt_load_acquire(&node->in.theirs.words->epoch));
}

/* Which of our epochs has the other node seen? */
static u32 peer_of(const struct sovia_clan_node *node)
{
	/* Pairs with node_greet() there: its area has been reset. */
	return le32_to_cpu(virt_load_acquire(&node->in.theirs.words->peer));
}

/**
 * sovia_clan_node_ring() - ring a node's doorbell
 * @node: the other one
 *
 * Context: process or softirq.
 */
void sovia_clan_node_ring(struct sovia_clan_node *node)
{
	sovia_stat_inc(sovia_net(node->port->net), clan_rings);
	node->port->doorbell(node->port, node->number);
}

/* ---- a node comes and goes ------------------------------------------------ */

static void close_vis(struct sovia_clan_node *node, int err)
{
	struct sovia_clan_vi *cv;
	unsigned long number;

	rcu_read_lock();
	xa_for_each(&node->port->vis, number, cv)
		if (cv->node == node)
			sovia_clan_vi_closed(cv, err);
	rcu_read_unlock();
}

/**
 * sovia_clan_purge_control() - free entries that wait for room
 * @controls: list of struct sovia_clan_control
 *
 * Context: any; nothing else uses the list.
 */
void sovia_clan_purge_control(struct list_head *controls)
{
	struct sovia_clan_control *control, *next;

	list_for_each_entry_safe(control, next, controls, list)
		kfree(control);
}

/**
 * sovia_clan_node_close() - close a node: its VIs die
 * @node: the node
 * @err: why, a negative errno
 *
 * Context: bottom half, or the port is stopped.
 */
void sovia_clan_node_close(struct sovia_clan_node *node, int err)
{
	struct sovia_clan_vi *cv, *next;
	LIST_HEAD(controls);

	spin_lock_bh(&node->lock);
	WRITE_ONCE(node->open, false);
	list_splice_init(&node->control, &controls);
	node->waiting = 0;
	/* Their messages are completed when they end. */
	list_for_each_entry_safe(cv, next, &node->senders, sender)
		list_del_init(&cv->sender);
	spin_unlock_bh(&node->lock);
	sovia_clan_purge_control(&controls);
	close_vis(node, err);
}

static void reset_indices(struct sovia_clan_node *node)
{
	sovia_clan_out_reset(&node->out);
	node->taken = 0;
	sovia_clan_in_reset(&node->in);
}

/**
 * sovia_clan_node_reset() - begin anew with a node: another epoch, empty rings
 * @node: not open
 *
 * Context: bottom half, or nothing uses the port yet.
 */
void sovia_clan_node_reset(struct sovia_clan_node *node)
{
	struct sovia_clan_words *words = node->out.own.words;

	node->epoch = sovia_clan_random();
	node->seen = 0;
	WRITE_ONCE(words->peer, 0);
	/* Who greets it does not find that the one before was greeted: epoch_of(). */
	virt_store_release(&words->epoch, cpu_to_le32(node->epoch));
	/* Pairs with observe_word() and sovia_clan_node_same(). */
	virt_wmb();
	reset_indices(node);
}

static void node_part(struct sovia_clan_node *node, int err, unsigned long quiet)
{
	sovia_clan_node_close(node, err);
	sovia_clan_node_reset(node);
	/* It may be reading them, and finds another epoch then: sovia_clan_vi_receive(). */
	sovia_clan_pool_reclaim(&node->port->pool, node->number);
	node->quiet = jiffies + quiet;
	sovia_clan_node_ring(node);
}

/* The other node writes nonsense. */
static void node_fail(struct sovia_clan_node *node)
{
	unsigned int doubled;
	unsigned long quiet;

	if (time_after(jiffies, node->opened + CLAN_QUIET_MAX))
		node->strikes = 0;
	doubled = min(node->strikes++, 9u);
	quiet = min_t(unsigned long, CLAN_QUIET_STRIKE << doubled, CLAN_QUIET_MAX);
	pr_notice_ratelimited("node %u: violates the protocol, ignored for %lu s\n", node->number,
			      quiet / HZ);
	node_part(node, -EPROTO, quiet);
}

/**
 * sovia_clan_node_same() - have both ends seen each other's epoch
 * @node: the other one
 *
 * Context: bottom half; elsewhere a hint.
 * Return: true if so.
 */
bool sovia_clan_node_same(const struct sovia_clan_node *node)
{
	/* In this order: it saw ours in the one that it has. */
	return node->seen && peer_of(node) == node->epoch && epoch_of(node) == node->seen &&
	       generation_of(node) == node->generation;
}

/* Returns true if there is an epoch of it that it has not been told that we have seen. */
static bool node_is_new(const struct sovia_clan_node *node)
{
	u32 generation = generation_of(node);

	return generation != node->generation || (generation && epoch_of(node) != node->seen);
}

static void node_greet(struct sovia_clan_node *node)
{
	u32 generation = generation_of(node);
	u32 epoch = generation ? epoch_of(node) : 0;

	WRITE_ONCE(node->generation, generation);
	node->seen = epoch;
	node->quiet = jiffies + 1;
	/* Others that have the memory may have changed them since. */
	reset_indices(node);
	/* Pairs with peer_of() there: our area has been reset. */
	virt_store_release(&node->out.own.words->peer, cpu_to_le32(epoch));
	if (epoch)
		sovia_clan_node_ring(node);
}

/* Returns true if entries may be taken. */
static bool node_look(struct sovia_clan_node *node)
{
	if (node->open && !sovia_clan_node_same(node))
		node_part(node, -ECONNRESET, CLAN_QUIET);
	if (node->open)
		return true;
	if (node_is_new(node)) {
		if (time_before(jiffies, node->quiet))
			return false;
		node_greet(node);
	}
	if (!sovia_clan_node_same(node))
		return false;
	node->opened = jiffies;
	spin_lock_bh(&node->lock);
	WRITE_ONCE(node->open, true);
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
static int write_entry(struct sovia_clan_node *node, const struct sovia_clan_entry *entry,
		       u32 bytes)
{
	int room = sovia_clan_out_room(&node->out);

	if (room <= 0)
		return room ?: -EAGAIN;
	sovia_clan_out_put(&node->out, entry, bytes);
	return 0;
}

/* Write the control entries that have waited, as far as there is room. */
static int write_controls(struct sovia_clan_node *node)
{
	struct sovia_clan_control *control;
	int err;

	while (!list_empty(&node->control)) {
		control = list_first_entry(&node->control, struct sovia_clan_control, list);
		err = write_entry(node, &control->entry, control->bytes);
		if (err)
			return err == -EAGAIN ? 0 : err;
		list_del(&control->list);
		node->waiting--;
		kfree(control);
	}
	return 0;
}

/*
 * No room for a control entry.  The peer decides how long there is none: what waits is bounded.
 * BYE is refused last, as a VI whose end is not told would be believed to live.
 */
static int keep_control(struct sovia_clan_node *node, const struct sovia_clan_entry *entry,
			u32 bytes)
{
	bool is_bye = entry->kind == SOVIA_CLAN_BYE;
	struct sovia_clan_control *control;

	if (node->waiting >= (is_bye ? CLAN_WAITING_MAX : CLAN_WAITING)) {
		sovia_stat_inc(sovia_net(node->port->net), clan_refused);
		return is_bye ? -EPROTO : -EBUSY;
	}
	control = kmalloc(offsetof(struct sovia_clan_control, entry) + bytes,
			  GFP_ATOMIC | __GFP_NOWARN);
	if (!control)
		return -ENOMEM;
	control->bytes = bytes;
	memcpy(&control->entry, entry, bytes);
	list_add_tail(&control->list, &node->control);
	node->waiting++;
	sovia_clan_node_wait(node);
	return 0;
}

static int put_control(struct sovia_clan_node *node, const struct sovia_clan_entry *entry,
		       u32 bytes)
{
	if (!node->open)
		return -ENOTCONN;
	/* In order.  A violation is found by the bottom half as well. */
	if (!write_controls(node) && list_empty(&node->control) &&
	    !write_entry(node, entry, bytes))
		return 0;
	return keep_control(node, entry, bytes);
}

/**
 * sovia_clan_control() - send an entry that is not a message
 * @node: whom to
 * @kind: enum sovia_clan_kind
 * @vi: number of its VI
 * @epoch: of that
 * @setup: body, or NULL
 *
 * It waits if there is no room for it, behind a bounded number of others: those that the node
 * does not read.
 *
 * Context: process or softirq.
 * Return: 0; -ENOTCONN if the node is not open; -EBUSY if too many wait; -EPROTO if so many BYE
 * do that the bottom half is about to leave the node alone; or -ENOMEM.
 */
int sovia_clan_control(struct sovia_clan_node *node, u8 kind, u16 vi, u32 epoch,
		       const struct sovia_clan_setup *setup)
{
	u32 len = setup ? sizeof(*setup) : 0;
	struct sovia_clan_entry entry = {
		.kind = kind, .vi = cpu_to_le16(vi), .epoch = cpu_to_le32(epoch),
		.len = cpu_to_le32(len),
	};
	bool rings;
	int err;

	BUILD_BUG_ON(sizeof(*setup) > SOVIA_CLAN_INLINE);
	if (setup)
		memcpy(entry.data, setup, len);
	spin_lock_bh(&node->lock);
	err = put_control(node, &entry, offsetof(struct sovia_clan_entry, data) + len);
	rings = sovia_clan_out_publish(&node->out);
	spin_unlock_bh(&node->lock);
	if (rings)
		sovia_clan_node_ring(node);
	if (err == -EPROTO)
		sovia_clan_port_rung(node->port);
	return err;
}

/* Take back what the other node has returned.  Returns 0 or -EPROTO. */
static int take_back(struct sovia_clan_node *node)
{
	u32 cookies[CLAN_BATCH], count;
	int got, err;

	do {
		for (count = 0; count < CLAN_BATCH; count++) {
			got = sovia_clan_out_cookie(&node->out, &cookies[count]);
			if (got <= 0)
				break;
		}
		err = count ? sovia_clan_pool_return(&node->port->pool, node->number, cookies,
						     count) : 0;
	} while (!err && got > 0);
	return err ?: got;
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

/* Does nothing wait for the other node?  Who begins to wait has this looked at again. */
static bool node_is_idle(const struct sovia_clan_node *node)
{
	return list_empty_careful(&node->senders) && list_empty_careful(&node->control) &&
	       !sovia_clan_out_news(&node->out);
}

static int node_send(struct sovia_clan_node *node)
{
	struct sovia_clan_vi *cv;
	bool rings;
	int err;

	if (node_is_idle(node))
		return 0;
	spin_lock_bh(&node->lock);
	err = sovia_clan_node_observe(node);
	if (node->waiting >= CLAN_WAITING_MAX)
		err = -EPROTO;
	node->port->moved += node->out.read - node->taken;
	node->taken = node->out.read;
	while (!err && (cv = next_completed(node)))
		sovia_clan_vi_complete(cv, true);
	if (!err && (!list_empty(&node->senders) || !list_empty(&node->control)))
		sovia_clan_node_wait(node);
	rings = !err && sovia_clan_out_publish(&node->out);
	spin_unlock_bh(&node->lock);
	if (rings)
		sovia_clan_node_ring(node);
	return err;
}

/* ---- what comes from it ------------------------------------------------------- */

static void drop_pages(struct sovia_clan_node *node, const struct sovia_clan_entry *entry)
{
	u32 len = le32_to_cpu(entry->len), i;

	for (i = 0; len > sovia_clan_inline && i < DIV_ROUND_UP(len, SOVIA_CLAN_PAGE); i++)
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
					  le32_to_cpu(setup->epoch), NULL);
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
		sovia_clan_node_ring(node);
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
			WRITE_ONCE(node->port->starved, true);
			break;
		}
		if (err)
			return err;
		if (!(++done % CLAN_BATCH) || le32_to_cpu(entry.len) >= CLAN_LONG)
			node_publish(node);
	}
	node_publish(node);
	node->port->moved += done;
	return done;
}

/* ---- the bottom half ------------------------------------------------------------ */

/**
 * sovia_clan_node_poll() - send to a node what waits, and take what it has written
 * @node: another one than ours
 * @budget: how many entries to take
 *
 * Context: bottom half, under RCU.
 * Return: how many were taken.
 */
int sovia_clan_node_poll(struct sovia_clan_node *node, int budget)
{
	int done;

	if (!node_look(node))
		return 0;
	done = node_send(node) ?: node_receive(node, budget);
	if (done >= 0)
		return done;
	/* Nonsense to us is what it writes once it has begun anew. */
	if (sovia_clan_node_same(node))
		node_fail(node);
	else
		node_part(node, -ECONNRESET, CLAN_QUIET);
	return 0;
}

/**
 * sovia_clan_node_has_news() - is there news that no doorbell tells of
 * @node: another one than ours
 *
 * Context: softirq; NAPI may have been given back: a hint.
 * Return: true if so.
 */
bool sovia_clan_node_has_news(const struct sovia_clan_node *node)
{
	if (READ_ONCE(node->open))
		return (sovia_clan_in_news(&node->in) && !READ_ONCE(node->port->starved)) ||
		       !sovia_clan_node_same(node);
	return time_after_eq(jiffies, READ_ONCE(node->quiet)) && node_is_new(node);
}

/* ---- what the bottom half and the timer look for ----------------------------- */

/*
 * Does a node keep pages although all VIs for which it was lent them have ended?  It is paused, or
 * does not want to read.
 */
static bool node_keeps_pages(struct sovia_clan_node *node)
{
	const u32 *lent = &node->port->pool.lent[node->number];
	bool keeps;

	if (!READ_ONCE(*lent))
		return false;
	spin_lock_bh(&node->lock);
	keeps = !node->lenders && time_after_eq(jiffies, node->left + CLAN_KEEP) &&
		!take_back(node) && READ_ONCE(*lent);
	spin_unlock_bh(&node->lock);
	return keeps;
}

/**
 * sovia_clan_node_reclaim() - part from a node that keeps pages for nothing: others need them
 * @node: another one than ours
 *
 * Context: bottom half.
 */
void sovia_clan_node_reclaim(struct sovia_clan_node *node)
{
	if (node->open && node_keeps_pages(node))
		node_part(node, -ECONNRESET, CLAN_QUIET);
}

static bool node_has_messages(const struct sovia_clan_node *node)
{
	return le32_to_cpu(READ_ONCE(node->in.theirs.words->write)) != READ_ONCE(node->in.read);
}

/* Has the next message been there for a jiffy, and no doorbell been heard? */
static bool node_is_late(struct sovia_clan_node *node, unsigned long *next)
{
	const struct sovia_clan_port *port = node->port;
	u32 read = READ_ONCE(node->in.read);
	bool late = node->waits && node->waits_for == read;

	node->waits = true;
	node->waits_for = read;
	*next = jiffies + 1;
	if (late && !READ_ONCE(port->starved) && !test_bit(NAPI_STATE_SCHED, &port->napi.state))
		sovia_stat_inc(sovia_net(port->net), clan_late);
	return late;
}

/**
 * sovia_clan_node_look_later() - is a message late, or a node back
 * @node: another one than ours
 * @next: when to look again, lowered if that is earlier
 *
 * Context: the port's timer.
 * Return: true if the bottom half is to run.
 */
bool sovia_clan_node_look_later(struct sovia_clan_node *node, unsigned long *next)
{
	unsigned long quiet = READ_ONCE(node->quiet);

	if (READ_ONCE(node->open) && node_has_messages(node))
		return node_is_late(node, next);
	node->waits = false;
	if (READ_ONCE(node->open))
		return !sovia_clan_node_same(node);
	if (!node_is_new(node))
		return false;
	if (time_before(jiffies, quiet) && time_before(quiet, *next))
		*next = quiet;
	return time_after_eq(jiffies, quiet);
}

/**
 * sovia_clan_node_is() - is a node there, and still the one that it was
 * @port: the port
 * @number: the node's
 * @generation: its own
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_clan_node_is(const struct sovia_clan_port *port, u32 number, u32 generation)
{
	return number < port->geometry.nodes && number != port->number && generation &&
	       generation_of(&port->node[number]) == generation;
}

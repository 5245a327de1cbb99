// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns: who sends next on a lane.
 *
 * Tenants take turns (deficit round robin, Shreedhar and Varghese), and within a turn connections:
 * however many a tenant has, and however much they send, another one's next message waits for one
 * quantum of each tenant.  Within a turn control messages are first, then the message of
 * a connection that had nothing to send (as fq_codel's new flows) or is preferred by SO_PRIORITY or
 * IP_TOS, then the others in turn.  So a tenant's small requests do not wait for its own bulk; but
 * after some of them it is the bulk's turn.
 *
 * A message costs its length and a constant: each takes a credit of the lane.
 */
#include "conn.h"
#include "turn.h"

/* Of a message, in bytes. */
#define TURN_COST	512
/* What a tenant may send before it is another one's turn: about a message. */
#define TURN_QUANTUM	(16384 + TURN_COST)
/* What may go before a tenant's bulk: four times as much as a message of that. */
#define TURN_AHEAD	(4 * TURN_QUANTUM)

/**
 * sovia_turns_init() - no connection has anything to send
 * @turns: of a new lane
 */
void sovia_turns_init(struct sovia_turns *turns)
{
	int i;

	INIT_LIST_HEAD(&turns->active);
	for (i = 0; i < SOVIA_TURNS; i++) {
		INIT_LIST_HEAD(&turns->turn[i].node);
		INIT_LIST_HEAD(&turns->turn[i].ctl);
		INIT_LIST_HEAD(&turns->turn[i].first);
		INIT_LIST_HEAD(&turns->turn[i].more);
	}
}

static struct sovia_turn *turn_of(struct sovia_turns *turns, const struct sovia_conn *conn)
{
	return &turns->turn[conn->tenant % SOVIA_TURNS];
}

/* Get the turn of a connection's tenant, and activate it if it was idle. */
static struct sovia_turn *turn_begin(struct sovia_turns *turns, const struct sovia_conn *conn)
{
	struct sovia_turn *turn = turn_of(turns, conn);

	if (list_empty(&turn->node)) {
		turn->credit = TURN_QUANTUM;
		list_add_tail(&turn->node, &turns->active);
	}
	return turn;
}

/**
 * sovia_turn_add_ctl() - a connection has a control message to send
 * @turns: of its lane
 * @conn: had none
 *
 * Context: lane lock held.
 */
void sovia_turn_add_ctl(struct sovia_turns *turns, struct sovia_conn *conn)
{
	list_add_tail(&conn->ctl_node, &turn_begin(turns, conn)->ctl);
}

/**
 * sovia_turn_add() - a connection has a stream message to send
 * @turns: of its lane
 * @conn: had none
 *
 * Context: lane lock held.
 */
void sovia_turn_add(struct sovia_turns *turns, struct sovia_conn *conn)
{
	list_add_tail(&conn->ready_node, &turn_begin(turns, conn)->first);
}

/**
 * sovia_turn_again() - a connection has sent a stream message, and has more
 * @turn: of its tenant
 * @conn: the connection
 *
 * Context: lane lock held.
 */
void sovia_turn_again(struct sovia_turn *turn, struct sovia_conn *conn)
{
	list_move_tail(&conn->ready_node, conn->preferred ? &turn->first : &turn->more);
}

/**
 * sovia_turn_del() - a connection has no message of a kind to send any more
 * @turns: of its lane
 * @conn: the connection
 * @node: its ctl_node or ready_node, in a list or not
 *
 * With the last one its tenant is idle: its deficit, positive or negative, is reset.
 *
 * Context: lane lock held.
 */
void sovia_turn_del(struct sovia_turns *turns, struct sovia_conn *conn, struct list_head *node)
{
	struct sovia_turn *turn = turn_of(turns, conn);

	list_del_init(node);
	if (list_empty(&turn->ctl) && list_empty(&turn->first) && list_empty(&turn->more))
		list_del_init(&turn->node);
}

/**
 * sovia_turn_pick() - whose turn is it within a tenant
 * @turn: of the tenant
 * @bulk: as for sovia_turn_next()
 *
 * Context: lane lock held.
 * Return: @turn's ctl, first, or more, which is not empty.
 */
struct list_head *sovia_turn_pick(struct sovia_turn *turn, bool bulk)
{
	if (unlikely(turn->ahead >= TURN_AHEAD) && bulk) {
		turn->ahead = 0;
		if (!list_empty(&turn->more))
			return &turn->more;
		if (!list_empty(&turn->first))
			return &turn->first;
	}
	if (!list_empty(&turn->ctl))
		return &turn->ctl;
	return list_empty(&turn->first) ? &turn->more : &turn->first;
}

static struct sovia_turn *turn_eligible(struct sovia_turns *turns, bool bulk)
{
	struct sovia_turn *turn;

	list_for_each_entry(turn, &turns->active, node)
		if (bulk || !list_empty(&turn->ctl) || !list_empty(&turn->first))
			return turn;
	return NULL;
}

/**
 * sovia_turn_next() - whose turn is it
 * @turns: of a lane
 * @bulk: connections that go on sending may have it
 *
 * Context: lane lock held.
 * Return: one with connections, or NULL if none has any that may send.
 */
struct sovia_turn *sovia_turn_next(struct sovia_turns *turns, bool bulk)
{
	struct sovia_turn *turn;

	while ((turn = turn_eligible(turns, bulk))) {
		if (likely(turn->credit > 0 || list_is_singular(&turns->active)))
			return turn;
		turn->credit += TURN_QUANTUM;
		list_move_tail(&turn->node, &turns->active);
	}
	return NULL;
}

/**
 * sovia_turn_took() - a tenant has sent a message
 * @turns: of a lane
 * @turn: its turn
 * @list: which of its lists the message came from
 * @len: bytes
 *
 * Context: lane lock held.
 */
void sovia_turn_took(struct sovia_turns *turns, struct sovia_turn *turn,
		     const struct list_head *list, unsigned int len)
{
	unsigned int cost = len + TURN_COST;

	/* While it is alone, it owes nothing. */
	if (list_is_singular(&turns->active))
		turn->credit = TURN_QUANTUM;
	else
		turn->credit -= cost;
	if (list != &turn->more)
		turn->ahead += cost;
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/turn_test.c"
#endif

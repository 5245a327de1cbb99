/* SPDX-License-Identifier: GPL-2.0-only */
/* Turns: who sends next on a lane. */
#ifndef _SOVIA_TURN_H
#define _SOVIA_TURN_H

#include <linux/list.h>
#include <linux/types.h>

struct sovia_conn;

/* Tenants beyond this number share turns. */
#define SOVIA_TURNS	16

/**
 * struct sovia_turn - a tenant's connections that have something to send
 * @node: in sovia_turns::active, unless what follows is empty
 * @ctl: connections with control messages waiting, struct sovia_conn::ctl_node
 * @first: connections that had nothing to send, or are preferred, ::ready_node
 * @more: the others with stream messages waiting, likewise
 * @credit: bytes that the tenant may send before it is another one's turn; less than 0 if it has
 *	sent more
 * @ahead: bytes sent from @ctl and @first since it was @more's turn
 */
struct sovia_turn {
	struct list_head	node;
	struct list_head	ctl;
	struct list_head	first;
	struct list_head	more;
	int			credit;
	unsigned int		ahead;
};

/**
 * struct sovia_turns - those of a lane
 * @active: those with connections, the next one first
 * @turn: by the number of the tenant
 *
 * Protected by lane->lock.
 */
struct sovia_turns {
	struct list_head	active;
	struct sovia_turn	turn[SOVIA_TURNS];
};

void sovia_turns_init(struct sovia_turns *turns);
void sovia_turn_add_ctl(struct sovia_turns *turns, struct sovia_conn *conn);
void sovia_turn_add(struct sovia_turns *turns, struct sovia_conn *conn);
void sovia_turn_del(struct sovia_turns *turns, struct sovia_conn *conn, struct list_head *node);
void sovia_turn_again(struct sovia_turn *turn, struct sovia_conn *conn);
struct sovia_turn *sovia_turn_next(struct sovia_turns *turns, bool bulk);
struct list_head *sovia_turn_pick(struct sovia_turn *turn, bool bulk);
void sovia_turn_took(struct sovia_turns *turns, struct sovia_turn *turn,
		     const struct list_head *list, unsigned int len);

#endif /* _SOVIA_TURN_H */

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of turns; included by turn.c. */
#include <linux/slab.h>
#include "suites.h"

#define TURN_CONNS	8

/* Connections that always have something to send. */
static struct sovia_turns *turn_turns;
static struct sovia_conn *turn_conns;

static int turn_test_init(struct kunit *test)
{
	int i;

	turn_turns = kunit_kzalloc(test, sizeof(*turn_turns), GFP_KERNEL);
	turn_conns = kunit_kcalloc(test, TURN_CONNS, sizeof(*turn_conns), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, turn_turns);
	KUNIT_ASSERT_NOT_NULL(test, turn_conns);
	sovia_turns_init(turn_turns);
	for (i = 0; i < TURN_CONNS; i++) {
		INIT_LIST_HEAD(&turn_conns[i].ready_node);
		INIT_LIST_HEAD(&turn_conns[i].ctl_node);
	}
	return 0;
}

/* What the second tenant sends, if not what the first one does. */
static unsigned int turn_small;

/* Who sends next, a message of @len bytes; it has more then if @again. */
static int turn_send(struct kunit *test, unsigned int len, bool again)
{
	struct sovia_turn *turn = sovia_turn_next(turn_turns, true);
	struct list_head *list;
	struct sovia_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, turn);
	list = sovia_turn_pick(turn, true);
	conn = list_first_entry(list, struct sovia_conn, ready_node);
	if (conn->tenant && turn_small)
		len = turn_small;
	if (again)
		sovia_turn_again(turn, conn);
	else
		sovia_turn_del(turn_turns, conn, &conn->ready_node);
	sovia_turn_took(turn_turns, turn, list, len);
	return conn - turn_conns;
}

/* A tenant with seven bulk connections, and one with one: each sends half of the bytes. */
static void turn_fair(struct kunit *test)
{
	unsigned int sent[2] = {};
	int i, who;

	for (i = 0; i < TURN_CONNS; i++) {
		turn_conns[i].tenant = i == 0;
		sovia_turn_add(turn_turns, &turn_conns[i]);
	}
	for (i = 0; i < 700; i++) {
		who = turn_send(test, 16384, true);
		sent[turn_conns[who].tenant]++;
	}
	KUNIT_EXPECT_LE(test, abs((int)(sent[0] - sent[1])), 2);
	/* Small messages are not free, but several of them are one's turn. */
	sent[0] = 0;
	sent[1] = 0;
	turn_small = 64;
	for (i = 0; i < 700; i++) {
		who = turn_send(test, 16384, true);
		sent[turn_conns[who].tenant]++;
	}
	turn_small = 0;
	KUNIT_EXPECT_GT(test, sent[1], sent[0] * 25);
	KUNIT_EXPECT_LT(test, sent[1], sent[0] * 35);
}

/* A connection that begins to send is served before those that go on. */
static void turn_first(struct kunit *test)
{
	int i, preferred = 0;

	for (i = 0; i < 4; i++)
		sovia_turn_add(turn_turns, &turn_conns[i]);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, turn_send(test, 16384, true), i);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, turn_send(test, 16384, true), i);
	sovia_turn_add(turn_turns, &turn_conns[4]);
	KUNIT_EXPECT_EQ(test, turn_send(test, 64, false), 4);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, turn_send(test, 16384, true), i % 4);
	/* One that is preferred stays there, but does not have it all. */
	turn_conns[5].preferred = true;
	sovia_turn_add(turn_turns, &turn_conns[5]);
	for (i = 0; i < 20; i++)
		preferred += turn_send(test, 16384, true) == 5;
	KUNIT_EXPECT_EQ(test, preferred, 16);
}

/* While bulk has to wait, what is not goes on: tenants in turn, too. */
static void turn_urgent(struct kunit *test)
{
	struct sovia_turn *turn;

	turn_conns[1].tenant = 1;
	sovia_turn_add(turn_turns, &turn_conns[0]);
	sovia_turn_add(turn_turns, &turn_conns[1]);
	KUNIT_EXPECT_EQ(test, turn_send(test, 16384, true), 0);
	KUNIT_EXPECT_EQ(test, turn_send(test, 16384, true), 1);
	/* Both go on sending now. */
	KUNIT_EXPECT_NULL(test, sovia_turn_next(turn_turns, false));
	turn_conns[2].tenant = 1;
	sovia_turn_add(turn_turns, &turn_conns[2]);
	turn = sovia_turn_next(turn_turns, false);
	KUNIT_ASSERT_PTR_EQ(test, turn, &turn_turns->turn[1]);
	turn->ahead = TURN_AHEAD;
	KUNIT_EXPECT_PTR_EQ(test, sovia_turn_pick(turn, false), &turn->first);
	KUNIT_EXPECT_PTR_EQ(test, sovia_turn_pick(turn, true), &turn->more);
	sovia_turn_add_ctl(turn_turns, &turn_conns[3]);
	turn->credit = -1;
	KUNIT_EXPECT_PTR_EQ(test, sovia_turn_next(turn_turns, false), &turn_turns->turn[0]);
}

/* A turn is over when the last connection has left. */
static void turn_empty(struct kunit *test)
{
	struct sovia_turn *turn;

	KUNIT_EXPECT_NULL(test, sovia_turn_next(turn_turns, true));
	turn_conns[1].tenant = 1;
	sovia_turn_add(turn_turns, &turn_conns[0]);
	sovia_turn_add_ctl(turn_turns, &turn_conns[1]);
	sovia_turn_del(turn_turns, &turn_conns[0], &turn_conns[0].ready_node);
	turn = sovia_turn_next(turn_turns, true);
	KUNIT_EXPECT_PTR_EQ(test, turn, &turn_turns->turn[1]);
	KUNIT_EXPECT_FALSE(test, list_empty(&turn->ctl));
	sovia_turn_del(turn_turns, &turn_conns[1], &turn_conns[1].ctl_node);
	KUNIT_EXPECT_NULL(test, sovia_turn_next(turn_turns, true));
	KUNIT_EXPECT_TRUE(test, list_empty(&turn_turns->active));
	/* Tenants beyond the table share. */
	turn_conns[2].tenant = SOVIA_TURNS + 1;
	sovia_turn_add(turn_turns, &turn_conns[2]);
	KUNIT_EXPECT_PTR_EQ(test, sovia_turn_next(turn_turns, true), &turn_turns->turn[1]);
}

static struct kunit_case turn_test_cases[] = {
	KUNIT_CASE(turn_fair),
	KUNIT_CASE(turn_first),
	KUNIT_CASE(turn_urgent),
	KUNIT_CASE(turn_empty),
	{}
};

struct kunit_suite sovia_turn_suite = {
	.name = "sovia-turn",
	.init = turn_test_init,
	.test_cases = turn_test_cases,
};

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of state.c; included by it. */
#include "suites.h"

/* All paths of figure 11. */
static const struct state_walk {
	const char *name;
	enum sovia_event events[6];
	u8 states[6];
	int steps;
} state_walks[] = {
	{ "active close",
	  { SOVIA_EV_CONNECT, SOVIA_EV_ACCEPT, SOVIA_EV_CLOSE, SOVIA_EV_DELIVERED, SOVIA_EV_FIN },
	  { TCP_SYN_SENT, TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_CLOSE }, 5 },
	{ "passive close",
	  { SOVIA_EV_PASSIVE, SOVIA_EV_FIN, SOVIA_EV_CLOSE, SOVIA_EV_DELIVERED },
	  { TCP_ESTABLISHED, TCP_CLOSE_WAIT, TCP_LAST_ACK, TCP_CLOSE }, 4 },
	{ "simultaneous close",
	  { SOVIA_EV_PASSIVE, SOVIA_EV_CLOSE, SOVIA_EV_FIN, SOVIA_EV_DELIVERED },
	  { TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_CLOSING, TCP_CLOSE }, 4 },
	{ "close for good",
	  { SOVIA_EV_CONNECT, SOVIA_EV_ACCEPT, SOVIA_EV_CLOSE, SOVIA_EV_DELIVERED,
	    SOVIA_EV_LEAVE },
	  { TCP_SYN_SENT, TCP_ESTABLISHED, TCP_FIN_WAIT1, TCP_FIN_WAIT2, TCP_CLOSE }, 5 },
	{ "the peer has closed for good",
	  { SOVIA_EV_PASSIVE, SOVIA_EV_FIN, SOVIA_EV_LEAVE },
	  { TCP_ESTABLISHED, TCP_CLOSE_WAIT, TCP_CLOSE }, 3 },
	{ "refused",
	  { SOVIA_EV_CONNECT, SOVIA_EV_ABORT, SOVIA_EV_CONNECT },
	  { TCP_SYN_SENT, TCP_CLOSE, TCP_SYN_SENT }, 3 },
	{ "listener",
	  { SOVIA_EV_LISTEN, SOVIA_EV_ABORT, SOVIA_EV_LISTEN },
	  { TCP_LISTEN, TCP_CLOSE, TCP_LISTEN }, 3 },
};

static void state_walk_name(const struct state_walk *w, char *desc)
{
	strscpy(desc, w->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(state_walk, state_walks, state_walk_name);

static void state_walk(struct kunit *test)
{
	const struct state_walk *w = test->param_value;
	u8 state = TCP_CLOSE;
	int i;

	for (i = 0; i < w->steps; i++) {
		state = sovia_state_next(state, w->events[i]);
		KUNIT_EXPECT_EQ(test, state, w->states[i]);
	}
}

/* ABORT leads from every state except CLOSE to CLOSE. */
static void state_abort(struct kunit *test)
{
	u8 state;

	for (state = 1; state < TCP_MAX_STATES; state++) {
		if (!state_names[state] || state == TCP_CLOSE)
			continue;
		KUNIT_EXPECT_EQ(test, sovia_state_next(state, SOVIA_EV_ABORT), TCP_CLOSE);
	}
	KUNIT_EXPECT_EQ(test, sovia_state_next(TCP_CLOSE, SOVIA_EV_ABORT), 0);
}

/* Events that must not be allowed. */
static void state_forbidden(struct kunit *test)
{
	static const struct {
		u8 state;
		enum sovia_event event;
	} cases[] = {
		{ TCP_CLOSE, SOVIA_EV_CLOSE }, { TCP_CLOSE, SOVIA_EV_FIN },
		{ TCP_CLOSE, SOVIA_EV_DELIVERED }, { TCP_CLOSE, SOVIA_EV_ACCEPT },
		{ TCP_LISTEN, SOVIA_EV_CONNECT }, { TCP_LISTEN, SOVIA_EV_FIN },
		{ TCP_SYN_SENT, SOVIA_EV_FIN }, { TCP_SYN_SENT, SOVIA_EV_LISTEN },
		{ TCP_ESTABLISHED, SOVIA_EV_DELIVERED }, { TCP_ESTABLISHED, SOVIA_EV_ACCEPT },
		{ TCP_CLOSE_WAIT, SOVIA_EV_FIN }, { TCP_CLOSE_WAIT, SOVIA_EV_DELIVERED },
		{ TCP_FIN_WAIT2, SOVIA_EV_DELIVERED }, { TCP_FIN_WAIT2, SOVIA_EV_CLOSE },
		{ TCP_CLOSING, SOVIA_EV_FIN }, { TCP_LAST_ACK, SOVIA_EV_FIN },
		{ TCP_ESTABLISHED, SOVIA_EV_LEAVE }, { TCP_FIN_WAIT1, SOVIA_EV_LEAVE },
		{ TCP_LAST_ACK, SOVIA_EV_LEAVE }, { TCP_LISTEN, SOVIA_EV_LEAVE },
		{ 0, SOVIA_EV_ABORT }, { TCP_MAX_STATES, SOVIA_EV_ABORT },
		{ TCP_ESTABLISHED, SOVIA_EV_COUNT },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ(test, sovia_state_next(cases[i].state, cases[i].event), 0);
}

/* From every named state, events of the peer and the program can reach CLOSE:
 * no state is a dead end.
 */
static void state_no_trap(struct kunit *test)
{
	u8 state, next;
	int event;
	bool out;

	for (state = 1; state < TCP_MAX_STATES; state++) {
		if (!state_names[state])
			continue;
		out = false;
		for (event = 0; event < SOVIA_EV_COUNT; event++) {
			next = sovia_state_next(state, event);
			KUNIT_EXPECT_TRUE(test, !next || state_names[next]);
			out |= next && next != state;
		}
		KUNIT_EXPECT_TRUE(test, out);
	}
}

static struct kunit_case state_test_cases[] = {
	KUNIT_CASE_PARAM(state_walk, state_walk_gen_params),
	KUNIT_CASE(state_abort),
	KUNIT_CASE(state_forbidden),
	KUNIT_CASE(state_no_trap),
	{}
};

struct kunit_suite sovia_state_suite = {
	.name = "sovia-state",
	.test_cases = state_test_cases,
};

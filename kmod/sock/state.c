// SPDX-License-Identifier: GPL-2.0-only
/*
 * States of a connection (SOVIA figure 11), under the names that Linux has for
 * those of TCP, as one table.  sovia_state_event() is the gate: nothing else writes
 * sk_state.
 *
 * There is no SYN_RECV: a child is created and ESTABLISHED in one step, because
 * ACCEPT cannot be lost.  There is no TIME_WAIT: a lane delivers in order and exactly
 * once, so nothing of a connection can arrive after its FIN.
 */
#include <net/inet_sock.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include "core/trace.h"
#include "state.h"

/* 0: the event is not allowed in this state. */
static const u8 state_next[TCP_MAX_STATES][SOVIA_EV_COUNT] = {
	[TCP_CLOSE] = {
		[SOVIA_EV_LISTEN]	= TCP_LISTEN,
		[SOVIA_EV_CONNECT]	= TCP_SYN_SENT,
		[SOVIA_EV_PASSIVE]	= TCP_ESTABLISHED,
	},
	[TCP_LISTEN] = {
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_SYN_SENT] = {
		[SOVIA_EV_ACCEPT]	= TCP_ESTABLISHED,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_ESTABLISHED] = {
		[SOVIA_EV_CLOSE]	= TCP_FIN_WAIT1,
		[SOVIA_EV_FIN]		= TCP_CLOSE_WAIT,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_FIN_WAIT1] = {
		[SOVIA_EV_FIN]		= TCP_CLOSING,
		[SOVIA_EV_DELIVERED]	= TCP_FIN_WAIT2,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_FIN_WAIT2] = {
		[SOVIA_EV_FIN]		= TCP_CLOSE,
		[SOVIA_EV_LEAVE]	= TCP_CLOSE,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_CLOSING] = {
		[SOVIA_EV_DELIVERED]	= TCP_CLOSE,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_CLOSE_WAIT] = {
		[SOVIA_EV_CLOSE]	= TCP_LAST_ACK,
		[SOVIA_EV_LEAVE]	= TCP_CLOSE,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
	[TCP_LAST_ACK] = {
		[SOVIA_EV_DELIVERED]	= TCP_CLOSE,
		[SOVIA_EV_ABORT]	= TCP_CLOSE,
	},
};

static const char * const state_names[TCP_MAX_STATES] = {
	[TCP_ESTABLISHED]	= "ESTABLISHED",
	[TCP_SYN_SENT]		= "SYN_SENT",
	[TCP_FIN_WAIT1]		= "FIN_WAIT1",
	[TCP_FIN_WAIT2]		= "FIN_WAIT2",
	[TCP_CLOSE]		= "CLOSE",
	[TCP_CLOSE_WAIT]	= "CLOSE_WAIT",
	[TCP_LAST_ACK]		= "LAST_ACK",
	[TCP_LISTEN]		= "LISTEN",
	[TCP_CLOSING]		= "CLOSING",
};

/**
 * sovia_state_next() - the table
 * @state: TCP_*
 * @event: what happens
 *
 * Context: any.
 * Return: the next state, or 0 if @event is not allowed in @state.
 */
u8 sovia_state_next(u8 state, enum sovia_event event)
{
	if (state >= TCP_MAX_STATES || event >= SOVIA_EV_COUNT)
		return 0;
	return state_next[state][event];
}

/**
 * sovia_state_event() - the gate
 * @sk: a socket
 * @event: what happens to it
 *
 * Context: socket lock held, process or softirq.
 * Return: true if the state changed, false if @event is not allowed in it.
 */
bool sovia_state_event(struct sock *sk, enum sovia_event event)
{
	u8 next = sovia_state_next(sk->sk_state, event);

	sock_owned_by_me(sk);
	if (!next)
		return false;
	trace_sovia_sock_state(sk, sk->sk_state, next);
	/* Readers without the lock see what was written before: they load it with acquire. */
	smp_mb();
	/* With the tracepoint that tools know, sock:inet_sock_set_state. */
	inet_sk_set_state(sk, next);
	return true;
}

/**
 * sovia_state_name() - the name of a state
 * @state: TCP_*
 *
 * Return: its name.
 */
const char *sovia_state_name(u8 state)
{
	return state < TCP_MAX_STATES && state_names[state] ? state_names[state] : "?";
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/state_test.c"
#endif

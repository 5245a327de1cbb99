// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Fuzzer of kmod/sock/state.c: any sequence of events, compared with a model without a
 * table, which tracks the FINs sent and received.
 *
 * Each byte of the input is an event; bytes beyond the last event are invalid ones.
 */
#include "input.h"
#include "../../kmod/sock/state.h"

int fuzz_skbs;
bool fuzz_no_memory(void) { return false; }

enum phase { CLOSED, LISTENING, ASKING, OPEN };

struct model {
	enum phase	phase;
	bool		sent;		/* our FIN is sent */
	bool		delivered;	/* and delivered */
	bool		received;	/* the peer's FIN has arrived */
	bool		last;		/* it arrived before ours was sent */
};

static u8 model_state(const struct model *m)
{
	switch (m->phase) {
	case CLOSED:
		return TCP_CLOSE;
	case LISTENING:
		return TCP_LISTEN;
	case ASKING:
		return TCP_SYN_SENT;
	case OPEN:
		break;
	}
	if (!m->sent)
		return m->received ? TCP_CLOSE_WAIT : TCP_ESTABLISHED;
	if (m->received)
		return m->last ? TCP_LAST_ACK : TCP_CLOSING;
	return m->delivered ? TCP_FIN_WAIT2 : TCP_FIN_WAIT1;
}

/* False if the event is invalid in this state. */
static bool model_event(struct model *m, enum sovia_event event)
{
	bool open = m->phase == OPEN;

	switch (event) {
	case SOVIA_EV_LISTEN:
	case SOVIA_EV_CONNECT:
	case SOVIA_EV_PASSIVE:
		if (m->phase != CLOSED)
			return false;
		*m = (struct model) { .phase = event == SOVIA_EV_LISTEN ? LISTENING :
				      event == SOVIA_EV_CONNECT ? ASKING : OPEN };
		return true;
	case SOVIA_EV_ACCEPT:
		if (m->phase != ASKING)
			return false;
		m->phase = OPEN;
		return true;
	case SOVIA_EV_CLOSE:
		if (!open || m->sent)
			return false;
		m->sent = true;
		m->last = m->received;
		return true;
	case SOVIA_EV_FIN:
		if (!open || m->received)
			return false;
		m->received = true;
		break;
	case SOVIA_EV_DELIVERED:
		if (!open || !m->sent || m->delivered)
			return false;
		m->delivered = true;
		break;
	case SOVIA_EV_LEAVE:
		/* Exactly one of the two has ended its stream. */
		if (!open || !((m->delivered && !m->received) || (m->received && !m->sent)))
			return false;
		m->phase = CLOSED;
		return true;
	case SOVIA_EV_ABORT:
		if (m->phase == CLOSED)
			return false;
		m->phase = CLOSED;
		return true;
	case SOVIA_EV_COUNT:
		return false;
	}
	if (m->delivered && m->received)
		m->phase = CLOSED;
	return true;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct sock sk = { .sk_refcnt = 1, .sk_state = TCP_CLOSE, .owned = true };
	struct input in = { data, size };
	struct model m = { .phase = CLOSED };

	while (in.left) {
		unsigned int event = take8(&in), state = sk.sk_state, next;

		next = sovia_state_next(state, event);
		MUST(sovia_state_event(&sk, event) == !!next);
		MUST(sk.sk_state == (next ? next : state));
		MUST(model_event(&m, min(event, (unsigned int)SOVIA_EV_COUNT)) == !!next);
		MUST(sk.sk_state == model_state(&m));
		MUST(strcmp(sovia_state_name(sk.sk_state), "?"));
		/* No number reads outside the table. */
		MUST(!sovia_state_next(event, event + SOVIA_EV_COUNT));
		sovia_state_name(event);
	}
	return 0;
}

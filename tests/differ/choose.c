// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The choice of calls.
 *
 * It depends on the state of the reference's world, so that most calls make sense,
 * and on the random numbers only.
 */
#include <string.h>
#include "differ.h"

uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static unsigned int below(uint64_t *chance, unsigned int n)
{
	return (uint32_t)(draw(chance) >> 16) % n;
}

static bool one_in(uint64_t *chance, unsigned int n)
{
	return !below(chance, n);
}

/* Weight of each call, and the role of the sockets that it is mostly chosen for. */
static const struct { uint8_t code, weight, role; } weights[] = {
	{ OP_SEND, 30, CONNECTED }, { OP_RECV, 30, CONNECTED }, { OP_SHUTDOWN, 9, CONNECTED },
	{ OP_CLOSE, 5, CONNECTED }, { OP_CLOSE, 1, LISTENING }, { OP_SETOPT, 9, CONNECTED },
	{ OP_GETOPT, 6, CONNECTED }, { OP_SETOPT, 2, FRESH }, { OP_IOCTL, 3, CONNECTED },
	{ OP_NONBLOCK, 3, CONNECTED }, { OP_OWNER, 2, CONNECTED }, { OP_NAMES, 3, CONNECTED },
	{ OP_POLL, 3, CONNECTED }, { OP_SPLICE_IN, 2, CONNECTED }, { OP_SPLICE_OUT, 2, CONNECTED },
	{ OP_SENDFILE, 2, CONNECTED }, { OP_SIGNAL, 4, NONE }, { OP_DUP, 2, CONNECTED },
	{ OP_SOCKET, 6, NONE }, { OP_BIND, 4, FRESH }, { OP_LISTEN, 3, BOUND },
	{ OP_LISTEN, 1, CONNECTED }, { OP_CONNECT, 5, FRESH }, { OP_CONNECT, 2, CONNECTED },
	{ OP_CONNECT, 1, CONNECTING }, { OP_ACCEPT, 6, LISTENING }, { OP_ACCEPT, 1, CONNECTED },
	{ OP_GETOPT, 1, LISTENING }, { OP_SETOPT, 1, LISTENING }, { OP_SHUTDOWN, 1, LISTENING },
	{ OP_POLL, 1, LISTENING }, { OP_POLL, 1, CONNECTING },
	/* Only with small buffers: */
	{ OP_FILL, 6, CONNECTED }, { OP_DRAIN, 9, CONNECTED },
};

static int slot_with(uint64_t *chance, enum role role)
{
	int start = below(chance, SLOTS), i, any = start;

	for (i = 0; i < SLOTS; i++) {
		int slot = (start + i) % SLOTS;
		const struct slot *s = &worlds[REFERENCE].slots[slot];

		if (s->fd < 0)
			continue;
		any = slot;
		if (s->role == role)
			return slot;
	}
	return any;
}

static int empty_slot(uint64_t *chance)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		if (worlds[REFERENCE].slots[i].fd < 0)
			return i;
	return below(chance, SLOTS);
}

/* Limit of the data sent, unless small buffers are filled on purpose. */
static bool too_much(int slot, bool small)
{
	const struct slot *s = &worlds[REFERENCE].slots[slot];

	return s->sent > (small ? 3000 : 30000);
}

static int size_index(uint64_t *chance, int slot, bool small)
{
	if (small)
		return below(chance, 6);
	return below(chance, too_much(slot, small) ? 3 : sizes_count());
}

static int way(uint64_t *chance)
{
	return one_in(chance, 30) ? 4 : one_in(chance, 3) ? (int)below(chance, 4) : 0;
}

static void choose_data(struct op *op, uint64_t *chance, bool small)
{
	if (op->code == OP_SEND) {
		op->a = size_index(chance, op->slot, small);
		op->b = flags_of_send(draw(chance));
		op->c = way(chance);
		if (small && one_in(chance, 4))
			*op = (struct op) { OP_SEND, op->slot, 0, 0, big_size(), 0, 0 };
	} else if (op->code == OP_RECV) {
		op->a = small ? (int)below(chance, 6) : (int)below(chance, sizes_count());
		op->b = flags_of_recv(draw(chance));
		op->c = way(chance);
	} else {
		op->a = size_index(chance, op->slot, small);
		op->b = one_in(chance, 3);
	}
}

static void choose_address(struct op *op, uint64_t *chance)
{
	op->a = one_in(chance, 6) ? (int)below(chance, 7) : op->code == OP_BIND ? 0 : 1;
	if (op->code == OP_BIND && one_in(chance, 3))
		op->a = 1;
	op->b = one_in(chance, 8) ? PORTS : below(chance, PORTS);
}

static void choose_arguments(struct op *op, uint64_t *chance, bool small)
{
	static const int backlogs[] = { 5, 5, 5, 5, 5, 1, -1, 100 };

	switch (op->code) {
	case OP_SOCKET:
	case OP_ACCEPT:
	case OP_NONBLOCK:
	case OP_OWNER:
		op->a = below(chance, 2);
		break;
	case OP_BIND:
	case OP_CONNECT:
		choose_address(op, chance);
		break;
	case OP_LISTEN:
		op->a = backlogs[below(chance, COUNT(backlogs))];
		break;
	case OP_SEND:
	case OP_RECV:
	case OP_SPLICE_IN:
	case OP_SPLICE_OUT:
	case OP_SENDFILE:
		choose_data(op, chance, small);
		break;
	case OP_SHUTDOWN:
		op->a = one_in(chance, 20) ? 3 : below(chance, 3);
		break;
	case OP_SETOPT:
	case OP_GETOPT:
		do {
			op->a = below(chance, option_count());
		} while (!option_makes_sense(op));
		op->b = below(chance, 6);
		op->c = one_in(chance, 10) ? 4 + below(chance, 3) : 0;
		break;
	case OP_IOCTL:
		op->a = below(chance, 8);
		break;
	case OP_POLL:
		op->a = below(chance, 6);
		break;
	case OP_SIGNAL:
		op->a = below(chance, WORKERS);
		op->b = one_in(chance, 3);
		break;
	}
}

void choose(struct op *op, uint64_t *chance, bool small)
{
	int count = COUNT(weights) - (small ? 0 : 2), all = 0, i, at;

	for (i = 0; i < count; i++)
		all += weights[i].weight;
	at = below(chance, all);
	for (i = 0; at >= weights[i].weight; i++)
		at -= weights[i].weight;
	memset(op, 0, sizeof(*op));
	op->code = weights[i].code;
	op->slot = slot_with(chance, one_in(chance, 10) ? below(chance, 6) : weights[i].role);
	op->dest = empty_slot(chance);
	op->hasty = one_in(chance, 12);
	choose_arguments(op, chance, small);
	/* Avoids a wait for TCP's timer after each call. */
	if (call_may_hold_back(op))
		op->hasty = 1;
}

/*
 * Most sequences begin with a connection: s0 listens, s1 connects, s2 is accepted.
 * c of the first call selects small buffers.
 */
int choose_start(struct op *ops, uint64_t *chance)
{
	bool small = one_in(chance, 10);
	int n = 0;

	if (!small && one_in(chance, 4))
		return 0;
	ops[n++] = (struct op) { OP_SOCKET, 0, 0, 1, 0, 0, small };
	if (small) {
		ops[n++] = (struct op) { OP_SETOPT, 0, 0, 1, option_count(), 0, 0 };
		ops[n++] = (struct op) { OP_SETOPT, 0, 0, 1, option_count() + 1, 0, 0 };
	}
	ops[n++] = (struct op) { OP_BIND, 0, 0, 1, 1, 0, 0 };
	ops[n++] = (struct op) { OP_LISTEN, 0, 0, 1, 5, 0, 0 };
	ops[n++] = (struct op) { OP_SOCKET, 0, 1, 1, one_in(chance, 3), 0, 0 };
	if (small) {
		ops[n++] = (struct op) { OP_SETOPT, 1, 0, 1, option_count(), 0, 0 };
		ops[n++] = (struct op) { OP_SETOPT, 1, 0, 1, option_count() + 1, 0, 0 };
	}
	ops[n++] = (struct op) { OP_CONNECT, 1, 0, 0, 1, 0, 0 };
	ops[n++] = (struct op) { OP_ACCEPT, 0, 2, 0, one_in(chance, 3), 0, 0 };
	return n;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The shortest sequence that still differs: without parts of the calls, then without
 * single ones, then with simpler arguments, until nothing more can be removed.
 */
#include <string.h>
#include <sys/socket.h>
#include "differ.h"

#define REPEATS		5
#define PATIENCE_MS	400	/* while shrinking; the result runs with --patience */

static int (*port)(void);

static bool still_differs(struct sequence *s, const struct op *ops, int count)
{
	struct sequence try;

	memset(&try, 0, sizeof(try));
	memcpy(try.ops, ops, count * sizeof(*ops));
	try.count = count;
	run_sequence(&try, NULL, port(), PATIENCE_MS);
	if (try.found.step < 0 || try.found.rule >= 0)
		return false;
	*s = try;
	return true;
}

static bool without(struct sequence *s, int from, int length)
{
	struct op ops[STEPS];
	int rest = s->count - from - length;

	memcpy(ops, s->ops, from * sizeof(*ops));
	memcpy(ops + from, s->ops + from + length, rest * sizeof(*ops));
	return still_differs(s, ops, s->count - length);
}

static bool drop_calls(struct sequence *s)
{
	int length, from;
	bool better = false;

	for (length = s->count / 2; length; length /= 2)
		for (from = 0; from + length <= s->count;)
			if (without(s, from, length))
				better = true;
			else
				from += length;
	return better;
}

static bool simpler(struct sequence *s, int i, struct op op)
{
	struct op ops[STEPS];

	if (!memcmp(&op, &s->ops[i], sizeof(op)))
		return false;
	memcpy(ops, s->ops, s->count * sizeof(*ops));
	ops[i] = op;
	return still_differs(s, ops, s->count);
}

/* Makes one simplification of call @i. */
static bool simplify(struct sequence *s, int i)
{
	struct op op = s->ops[i];
	bool data = op.code == OP_SEND || op.code == OP_RECV;
	int bit;

	op.hasty = 0;
	if (simpler(s, i, op))
		return true;
	if (data) {
		op = s->ops[i];
		op.c = 0;
		if (simpler(s, i, op))
			return true;
		for (bit = 1; bit <= op.b; bit <<= 1) {
			op = s->ops[i];
			op.b &= ~bit;
			if (simpler(s, i, op))
				return true;
		}
		op = s->ops[i];
		if (op.a > 1)
			op.a--;
		return simpler(s, i, op);
	}
	op = s->ops[i];
	if (op.code == OP_SETOPT || op.code == OP_GETOPT)
		op.c = 0;
	else if (op.code == OP_SOCKET || op.code == OP_ACCEPT)
		op.a = 0;
	return simpler(s, i, op);
}

static bool simplify_calls(struct sequence *s)
{
	bool better = false;
	int i;

	for (i = 0; i < s->count; i++)
		while (i < s->count && simplify(s, i))
			better = true;
	return better;
}

/* Returns how many of REPEATS runs of the result differ, in tenths of a run. */
int shrink(struct sequence *s, int (*next_port)(void))
{
	int i, repeated = 0;

	port = next_port;
	for (i = 0; i < REPEATS; i++)
		if (still_differs(s, s->ops, s->count))
			break;
	if (i == REPEATS)
		return 0;
	while (drop_calls(s) | simplify_calls(s))
		;
	for (i = 0; i < REPEATS; i++) {
		struct sequence try = *s;

		run_sequence(&try, NULL, port(), set.patience_ms);
		if (try.found.step >= 0 && try.found.rule < 0) {
			*s = try;
			repeated++;
		}
	}
	return repeated;
}

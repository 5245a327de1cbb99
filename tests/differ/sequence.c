// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A sequence: each call is made in both worlds, then both have to settle in the same
 * state.
 *
 * No time is measured.  While the worlds differ the tester waits, since one
 * of them may be slower; if they still differ after --patience, that is a difference.
 */
#include <poll.h>
#include <string.h>
#include <errno.h>
#include "differ.h"

#define LOOKS	2	/* consecutive comparisons that have to agree */
#define LATE_MS	300	/* limit of the wait for corked or unacknowledged data */

static const char *number_text(char *text, int value)
{
	if (value < 0)
		snprintf(text, TEXT, "-1 %s", strerrorname_np(-value));
	else
		snprintf(text, TEXT, "%d", value);
	return text;
}

static void events_text(char *text, int events)
{
	static const struct { int bit; const char *name; } names[] = {
		{ POLLIN, "IN" }, { POLLPRI, "PRI" }, { POLLOUT, "OUT" }, { POLLERR, "ERR" },
		{ POLLHUP, "HUP" }, { POLLRDHUP, "RDHUP" }, { POLLRDBAND, "RDBAND" },
		{ POLLWRBAND, "WRBAND" }, { POLLRDNORM, "RDNORM" }, { POLLWRNORM, "WRNORM" },
	};
	/* Events that always accompany another one are left out. */
	int i, rest = events;

	if ((rest & (POLLIN | POLLRDNORM)) == (POLLIN | POLLRDNORM))
		rest &= ~POLLRDNORM;
	if ((rest & (POLLOUT | POLLWRNORM)) == (POLLOUT | POLLWRNORM))
		rest &= ~POLLWRNORM;
	text[0] = 0;
	for (i = 0; i < COUNT(names); i++)
		if (rest & names[i].bit)
			strcat(strcat(text, text[0] ? "|" : ""), names[i].name);
	if (!text[0])
		strcpy(text, "nothing");
}

static bool differs(struct difference *d, const char *what, int slot)
{
	if (slot >= 0)
		snprintf(d->what, sizeof(d->what), "%s s%d", what, slot);
	else
		snprintf(d->what, sizeof(d->what), "%s", what);
	return true;
}

/* Are sockets in the same state?  The level of filled buffers is not compared. */
static bool slot_differs(struct difference *d, int slot)
{
	const int unsure = POLLIN | POLLRDNORM | POLLOUT | POLLWRNORM;
	struct look *ref = &worlds[REFERENCE].looks[slot], *sub = &worlds[SUBJECT].looks[slot];
	int mask = coarse ? ~unsure : ~0;

	if ((ref->revents ^ sub->revents) & mask) {
		events_text(d->value[REFERENCE], ref->revents);
		events_text(d->value[SUBJECT], sub->revents);
		return differs(d, "poll", slot);
	}
	if (ref->inq != sub->inq && (!coarse || ref->inq < 0 || sub->inq < 0)) {
		number_text(d->value[REFERENCE], ref->inq);
		number_text(d->value[SUBJECT], sub->inq);
		return differs(d, "FIONREAD", slot);
	}
	if (ref->mark != sub->mark) {
		number_text(d->value[REFERENCE], ref->mark);
		number_text(d->value[SUBJECT], sub->mark);
		return differs(d, "SIOCATMARK", slot);
	}
	return false;
}

/* Filled sockets become writable at different times: edges count only without them. */
static bool edges_count;

/* A blocked accept() has taken the connection, before or after epoll saw the listener ready. */
static bool accepted_by_waiter(const struct world *w, int slot)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		if (atomic_load(&w->tasks[i].state) == DONE && w->tasks[i].call.op->code == OP_ACCEPT &&
		    w->tasks[i].call.kin == w->slots[slot].kin)
			return true;
	return false;
}

static bool edges_differ(struct difference *d)
{
	unsigned int odd = worlds[REFERENCE].edges ^ worlds[SUBJECT].edges;
	int i;

	if (!edges_count)
		return false;
	for (i = 0; i < SLOTS; i++) {
		if (!(odd & 1u << i) || worlds[REFERENCE].slots[i].fd < 0 ||
		    accepted_by_waiter(&worlds[REFERENCE], i))
			continue;
		strcpy(d->value[REFERENCE], worlds[REFERENCE].edges & 1u << i ? "woken" : "not woken");
		strcpy(d->value[SUBJECT], worlds[SUBJECT].edges & 1u << i ? "woken" : "not woken");
		return differs(d, "epoll", i);
	}
	return false;
}

static bool signals_differ(struct difference *d)
{
	static const char * const names[] = { "none", "SIGURG", "SIGIO", "SIGURG, SIGIO" };
	unsigned int ref = worlds[REFERENCE].signals;
	unsigned int sub = worlds[SUBJECT].signals;

	if (ref == sub || !edges_count)
		return false;
	strcpy(d->value[REFERENCE], names[ref]);
	strcpy(d->value[SUBJECT], names[sub]);
	return differs(d, "signals", -1);
}

static bool results_differ(struct difference *d, const struct call *ref, const struct call *sub)
{
	if (!strcmp(ref->text, sub->text))
		return false;
	strcpy(d->value[REFERENCE], ref->text);
	strcpy(d->value[SUBJECT], sub->text);
	return differs(d, "result", -1);
}

/* Has a call returned different results?  Waiting does not change that. */
static bool answers_differ(struct difference *d)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		struct task *ref = &worlds[REFERENCE].tasks[i], *sub = &worlds[SUBJECT].tasks[i];

		if (atomic_load(&ref->state) == DONE && atomic_load(&sub->state) == DONE &&
		    results_differ(d, &ref->call, &sub->call))
			return differs(d, "result of a blocked call", -1);
	}
	return false;
}

static bool task_differs(struct difference *d, int i)
{
	struct task *ref = &worlds[REFERENCE].tasks[i], *sub = &worlds[SUBJECT].tasks[i];
	int states[2] = { atomic_load(&ref->state), atomic_load(&sub->state) };

	if (states[0] == states[1])
		return false;
	strcpy(d->value[REFERENCE], states[0] == DONE ? ref->call.text : "blocks");
	strcpy(d->value[SUBJECT], states[1] == DONE ? sub->call.text : "blocks");
	return differs(d, "thread", i);
}

static bool worlds_differ(struct difference *d)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		if (task_differs(d, i))
			return true;
	for (i = 0; i < SLOTS; i++)
		if (worlds[REFERENCE].slots[i].fd >= 0 && slot_differs(d, i))
			return true;
	return edges_differ(d) || signals_differ(d);
}

static bool late(void)
{
	return !(world_acknowledged(&worlds[REFERENCE]) & world_acknowledged(&worlds[SUBJECT]));
}

/* Waits until both worlds have settled in the same state.  False if they do not. */
static bool settle(struct difference *d, int patience_ms)
{
	double begin = now(), end = begin + patience_ms / 1000.;
	int agreed = 0, turns = 0;

	worlds_uncork();
	do {
		if (answers_differ(d))
			return false;
		world_mark(&worlds[REFERENCE]);
		world_mark(&worlds[SUBJECT]);
		if (turns++ > 4)
			millisecond(turns < 50 ? 0.2 : 5);
		if (!world_asleep(&worlds[REFERENCE]) || !world_asleep(&worlds[SUBJECT])) {
			agreed = 0;
			differs(d, "not settled", -1);
			d->value[REFERENCE][0] = d->value[SUBJECT][0] = 0;
			continue;
		}
		if (!coarse && now() < begin + LATE_MS / 1000. && late())
			continue;
		world_forget_late(&worlds[REFERENCE]);
		world_forget_late(&worlds[SUBJECT]);
		world_look(&worlds[REFERENCE]);
		world_look(&worlds[SUBJECT]);
		agreed = worlds_differ(d) ? 0 : agreed + 1;
	} while (agreed < LOOKS && (agreed || now() < end));
	return agreed >= LOOKS && !answers_differ(d);
}

/* Collects calls that blocked and have returned. */
static void collect(struct sequence *s, int step)
{
	int i, n;

	for (i = 0; i < WORKERS; i++) {
		if (atomic_load(&worlds[REFERENCE].tasks[i].state) != DONE)
			continue;
		for (n = 0; n < 2; n++) {
			struct task *task = &worlds[n].tasks[i];

			strcpy(s->outcomes[task->call.step].text[n], task->call.text);
			s->outcomes[task->call.step].late = task->call.step == step ? -1 : step;
			world_install(&worlds[n], &task->call);
			atomic_store(&task->state, IDLE);
		}
	}
}

static void set_coarse(void)
{
	int i;

	coarse = worlds[REFERENCE].filled || worlds[SUBJECT].filled;
	for (i = 0; i < SLOTS; i++)
		coarse |= worlds[REFERENCE].slots[i].filled || worlds[SUBJECT].slots[i].filled;
}

/* Some calls have no effect on other sockets; and hasty ones do not wait. */
static bool is_quiet(const struct op *op)
{
	return (op->hasty && !anything_blocks()) || op->code == OP_SOCKET || op->code == OP_BIND || op->code == OP_IOCTL ||
	       op->code == OP_NAMES || op->code == OP_NONBLOCK;
}

/*
 * Waits until the effects of a hasty call have arrived, before another socket sees them, a
 * close undoes them, or a timeout misses them.  Corked data stays for the socket's next call.
 */
static void before_step(const struct op *last, const struct op *op, bool timed)
{
	bool all = timed || (last && last->hasty && (last->slot != op->slot || op->code == OP_CLOSE ||
						     op->code == OP_SHUTDOWN));

	if (!all && !(last && last->hasty && !call_may_hold_back(last)))
		return;
	if (all)
		worlds_uncork();
	world_mark(&worlds[REFERENCE]);
	world_mark(&worlds[SUBJECT]);
}

/* Make one call.  True if the sequence goes on. */
static bool make_step(struct sequence *s, int step, int patience_ms)
{
	const struct op *op = &s->ops[step];
	struct outcome *outcome = &s->outcomes[step];
	int worker = call_may_block(op) ? free_worker() : -1;
	bool timed = worker >= 0 && call_has_timeout(op);
	int n;

	before_step(step ? &s->ops[step - 1] : NULL, op, timed);
	for (n = 0; n < 2; n++) {
		if (worker >= 0)
			worlds[n].tasks[worker].timed = timed;
		world_make(&worlds[n], op, step, worker);
		if (worker < 0)
			strcpy(outcome->text[n], worlds[n].main.text);
	}
	edges_count = !coarse;
	set_coarse();
	edges_count &= !coarse;
	if (worker < 0 && results_differ(&s->found, &worlds[0].main, &worlds[1].main))
		return false;
	if (!is_quiet(op)) {
		if (!settle(&s->found, patience_ms))
			return false;
		collect(s, step);
		set_coarse();
		world_forget_edges(&worlds[REFERENCE]);
		world_forget_edges(&worlds[SUBJECT]);
	}
	return true;
}

static void note_difference(struct sequence *s, int step)
{
	int i, n;

	s->found.step = step;
	for (n = 0; n < 2; n++)
		for (i = 0; i < WORKERS; i++) {
			struct task *task = &worlds[n].tasks[i];

			if (atomic_load(&task->state) == DONE)
				strcpy(s->outcomes[task->call.step].text[n], task->call.text);
		}
}

/*
 * Run a sequence.  With @chance calls are chosen while it runs and appended to the
 * existing ones; calls that make no sense are left out.
 */
void run_sequence(struct sequence *s, uint64_t *chance, int port, int patience_ms)
{
	int step, length = s->count, kept = 0;
	bool small = s->count && s->ops[0].c;

	s->found.step = -1;
	s->found.rule = -1;
	coarse = false;
	world_begin(&worlds[REFERENCE], port);
	/* Neither may have what TCP has. */
	world_begin(&worlds[SUBJECT], port + PORTS);
	if (chance)
		length = s->count + 4 + draw(chance) % 24;
	for (step = 0; step < length && kept < STEPS; step++) {
		struct op op = s->ops[step];

		if (chance && step >= s->count)
			choose(&op, chance, small);
		if (!call_is_possible(&op))
			continue;
		s->ops[kept] = op;
		memset(&s->outcomes[kept], 0, sizeof(s->outcomes[kept]));
		s->outcomes[kept].late = -1;
		if (!make_step(s, kept++, patience_ms)) {
			note_difference(s, kept - 1);
			s->count = kept;
			s->found.rule = rules_match(s);
			break;
		}
	}
	s->count = kept;
	world_end(&worlds[REFERENCE]);
	world_end(&worlds[SUBJECT]);
}

/* ---- printing ---- */

void difference_text(const struct sequence *s, char *text, size_t size)
{
	char call[TEXT];

	op_text(&s->ops[s->found.step], call);
	snprintf(text, size, "%s: %s: %s | %s", call, s->found.what, s->found.value[0],
		 s->found.value[1]);
}

static void print_outcome(const struct outcome *outcome, FILE *to)
{
	const char *ref = outcome->text[0], *sub = outcome->text[1];

	if (!strcmp(ref, sub))
		fprintf(to, "%s", ref[0] ? ref : "blocks");
	else
		fprintf(to, "%s: %s   %s: %s", worlds[0].name, ref[0] ? ref : "blocks",
			worlds[1].name, sub[0] ? sub : "blocks");
	if (outcome->late >= 0)
		fprintf(to, "   (blocked until call %d)", outcome->late + 1);
}

void print_sequence(const struct sequence *s, FILE *to)
{
	char text[TEXT];
	int i;

	for (i = 0; i < s->count; i++) {
		op_text(&s->ops[i], text);
		fprintf(to, "# %3d  %-44s ", i + 1, text);
		print_outcome(&s->outcomes[i], to);
		fprintf(to, "%s\n", s->ops[i].hasty ? "   (and at once)" : "");
	}
	if (s->found.step >= 0)
		fprintf(to, "#      %s: %s %s, %s %s\n", s->found.what, worlds[0].name,
			s->found.value[0], worlds[1].name, s->found.value[1]);
}

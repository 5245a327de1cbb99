/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A ring in shared memory and its doorbells: kmod/clan/ring.c.  Names are those of the code.
 * README.rst has the bounds and the results.
 *
 * A store waits in its machine's buffer, and reaches the memory at any later time: a release after
 * all stores before it, others in any order, as long as they are to different words.  A full
 * barrier waits until the buffer is empty.
 */

/* Messages, and entries of the ring. */
#ifndef MESSAGES
#define MESSAGES	4
#endif
#ifndef RING
#define RING		2
#endif

/* Indices are modulo 2^32 in the code.  They start shortly before the wrap. */
#define MOD		16
#define FIRST		14
#define SUB(a, b)	(((a) - (b) + MOD) % MOD)
#define NEXT(a)		(((a) + 1) % MOD)
#define LAST		((FIRST + MESSAGES) % MOD)
#define IS_PASSED(event, old, now)	(SUB(SUB(now, event), 1) < SUB(now, old))

/* The memory, and doorbells that have been rung: the writer's, the reader's. */
#define WRITE		0
#define SPACE		1
#define READ		2
#define EVENT		3
#define ENTRY(i)	(4 + (i) % RING)
byte memory[4 + RING];
bool bell[2];

#define DEPTH		4
typedef buffer {
	byte count;
	byte word[DEPTH];
	byte value[DEPTH];
	bool release[DEPTH];
};
buffer stores[2];

inline store(i, what, to, is_release)
{
	atomic {
		stores[i].count < DEPTH;
		stores[i].word[stores[i].count] = what;
		stores[i].value[stores[i].count] = to;
		stores[i].release[stores[i].count] = is_release;
		stores[i].count++
	}
}

#define BARRIER(i)	stores[i].count == 0

/* Store k of machine i reaches the memory, if it may. */
proctype memory_of(byte i)
{
	byte k, j;
	bool may;

end:	do
	:: atomic {
		stores[i].count > 0;
		k = 0;
		do
		:: k + 1 < stores[i].count -> k++
		:: break
		od;
		may = !stores[i].release[k] || k == 0;
		j = 0;
		do
		:: j < k && stores[i].word[j] == stores[i].word[k] -> may = false; break
		:: j < k && stores[i].word[j] != stores[i].word[k] -> j++
		:: else -> break
		od;
		if
		:: may ->
			memory[stores[i].word[k]] = stores[i].value[k];
			do
			:: k + 1 < stores[i].count ->
				stores[i].word[k] = stores[i].word[k + 1];
				stores[i].value[k] = stores[i].value[k + 1];
				stores[i].release[k] = stores[i].release[k + 1];
				k++
			:: else -> break
			od;
			stores[i].count--
		:: else
		fi;
		k = 0;
		j = 0;
		may = false
	   }
	od
}

proctype writer()
{
	byte write = FIRST, told = FIRST, read = FIRST, seen, old;

	do
	:: write == LAST && told == write -> break
	:: write != LAST && SUB(write, read) < RING ->
		/* sovia_clan_out_put() */
		store(0, ENTRY(write), write, false);
		write = NEXT(write)
	:: write != told ->
		/* sovia_clan_out_publish() */
		old = told;
		store(0, WRITE, write, true);	/* MUTANT entry-late (ring): true => false */
		told = write;
		BARRIER(0);	/* MUTANT publish-no-barrier (ring): BARRIER(0) => skip */
		if
		:: IS_PASSED(memory[EVENT], old, write) -> bell[1] = true
		:: else
		fi
	:: write != LAST && SUB(write, read) == RING ->
		/* sovia_clan_out_room() */
		seen = memory[READ];
		if
		:: seen != read -> read = seen
		:: seen == read && told == write ->
			/* sovia_clan_out_wait() */
			store(0, SPACE, read, false);
			BARRIER(0);	/* MUTANT wait-no-barrier (ring): BARRIER(0) => skip */
			seen = memory[READ];
			if
			:: seen == read -> bell[0]; bell[0] = false	/* MUTANT wait-no-look (ring): seen == read => true */
			:: seen != read -> read = seen
			fi
		:: else
		fi
	od
}

proctype reader()
{
	byte read = FIRST, told = FIRST, write = FIRST, old;

	do
	:: read != write ->
		/* sovia_clan_in_take() */
		assert(memory[ENTRY(read)] == read);
		read = NEXT(read)
	:: told != read ->
		/* sovia_clan_in_publish() */
		old = told;
		store(1, READ, read, true);
		told = read;
		BARRIER(1);	/* MUTANT read-no-barrier (ring): BARRIER(1) => skip */
		if
		:: IS_PASSED(memory[SPACE], old, read) -> bell[0] = true
		:: else
		fi
	:: read == write && told == read ->
		write = memory[WRITE];
		if
		:: write != read
		:: write == read && read == LAST -> break
		:: write == read && read != LAST ->
			/* sovia_clan_in_sleep(), then sovia_clan_in_news() */
			store(1, EVENT, read, false);
			BARRIER(1);	/* MUTANT sleep-no-barrier (ring): BARRIER(1) => skip */
			write = memory[WRITE];
			if
			:: write == read -> bell[1]; bell[1] = false	/* MUTANT sleep-no-look (ring): write == read => true */
			:: write != read
			fi
		fi
	od
}

init {
	atomic {
		memory[WRITE] = FIRST;
		memory[READ] = FIRST;
		memory[SPACE] = SUB(FIRST, 1);
		memory[EVENT] = FIRST;
		run memory_of(0);
		run memory_of(1);
		run writer();
		run reader()
	}
}

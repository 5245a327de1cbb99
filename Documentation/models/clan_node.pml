/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Two nodes of a shared memory that begin anew with each other at any time: kmod/clan/port.c.
 * Names are those of the code.  README.rst has the bounds and the results.
 *
 * What a node writes becomes visible later, in order.
 */

/* How often each begins anew by itself. */
#ifndef RESETS
#define RESETS		1
#endif
/* Entries that each may write in an epoch. */
#ifndef ENTRIES
#define ENTRIES		2
#endif

/* A node's area: its words, of which `write` also tells in which epochs it was written. */
#define EPOCH		0
#define PEER		1
#define WRITE		2
typedef words {
	byte word[3];
};
words area[2];

#define TAGGED(count, own, other)	((count) + 4 * (own) + 32 * (other))
#define COUNT(write)			((write) % 4)
#define OWN(write)			((write) / 4 % 8)
#define OTHER(write)			((write) / 32)

#define DEPTH		6
typedef buffer {
	byte count;
	byte word[DEPTH];
	byte value[DEPTH];
};
buffer stores[2];

bool open[2];

inline store(i, what, to)
{
	atomic {
		stores[i].count < DEPTH;
		stores[i].word[stores[i].count] = what;
		stores[i].value[stores[i].count] = to;
		stores[i].count++
	}
}

proctype memory_of(byte i)
{
	byte k;

end:	do
	:: atomic {
		stores[i].count > 0;
		area[i].word[stores[i].word[0]] = stores[i].value[0];
		stores[i].count--;
		k = 0;
		do
		:: k < stores[i].count ->
			stores[i].word[k] = stores[i].word[k + 1];
			stores[i].value[k] = stores[i].value[k + 1];
			k++
		:: else -> break
		od;
		stores[i].word[k] = 0;
		stores[i].value[k] = 0;
		k = 0
	   }
	od
}

/* node_part(): who sees the epoch sees that peer is 0, and who sees an index sees the epoch. */
inline part()
{
	atomic {
		open[i] = false;
		own++;
		assert(own < 8);
		seen = 0;
		read = 0;
		written = 0
	}
	skip;			/* MUTANT node_index_early (node): skip => store(i, WRITE, 0) */
	store(i, PEER, 0);	/* MUTANT node_peer_kept (node): store(i, PEER, 0) => skip */
	store(i, EPOCH, own);
	store(i, WRITE, 0)
}

/* is_same(), in this order: who has seen our epoch has done so in the one that it has. */
inline look_whether_same()
{
	same = seen && area[j].word[PEER] == own;	/* MUTANT node_open_early (node): area[j].word[PEER] == own => true */
	same = same && area[j].word[EPOCH] == seen	/* MUTANT node_open_stale (node): area[j].word[EPOCH] == seen => true */
}

/* node_look() */
inline look()
{
	look_whether_same();
	if
	:: open[i] && !same -> part()
	:: else
	fi;
	/* node_greet() */
	if
	:: !open[i] && area[j].word[EPOCH] != seen ->
		seen = area[j].word[EPOCH];
		store(i, WRITE, 0);
		store(i, PEER, seen)
	:: else
	fi;
	look_whether_same();
	open[i] = open[i] || same
}

/* sovia_clan_in_take(), node_poll() */
inline take()
{
	got = area[j].word[WRITE];
	if
	:: open[i] && COUNT(got) > read ->
		assert(OWN(got) == seen);
		assert(OTHER(got) == own);
		read++
	:: open[i] && COUNT(got) < read ->
		look_whether_same();
		assert(!same);		/* else it is a violation */
		part()
	:: else
	fi;
	got = 0
}

proctype node(byte i)
{
	byte own, seen, read, written, resets, got, j = 1 - i;
	bool same;

	part();
	do
	:: true ->
		look();
		take();
		if
		:: open[i] && written < ENTRIES ->
			written++;
			store(i, WRITE, TAGGED(written, own, seen))
		:: resets < RESETS -> resets++; part()
		:: true
		fi
	od
}

init {
	atomic {
		run memory_of(0);
		run memory_of(1);
		run node(0);
		run node(1)
	}
}

ltl settles { <>[](open[0] && open[1]) }

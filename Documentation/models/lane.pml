/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Lane credits: kmod/lane/credit.h, lane_tx.c, lane_rx.c, verbs_rx.c.  Names are those
 * of the code; what is atomic here is done under the lane's lock there.  README.rst
 * has the bounds and the results.
 *
 * A message consumes a receive descriptor when it is sent: the worst case of any
 * fabric, so a number that suffices here always suffices.
 */

/* Each side's own w and t; messages that each side sends of either kind. */
#ifndef W0
#define W0	2
#define W1	2
#define T0	2
#define T1	2
#endif
/* What w may grow to, by doubling; t is w at most. */
#ifndef LIMIT0
#define LIMIT0	W0
#endif
#ifndef LIMIT1
#define LIMIT1	W1
#endif
#define GROW	(LIMIT0 > W0 || LIMIT1 > W1)	/* the feature */
#ifndef CTLS
#define CTLS	1
#endif
#ifndef DATAS
#define DATAS	3
#endif
#ifndef DATAS1
#define DATAS1	DATAS	/* of side 1 */
#endif
/* How many DATA may wait in the lane; the rest waits in the socket. */
#ifndef QUEUE
#define QUEUE	1
#endif
/* How often a side may fail to post a message, and to repost a descriptor. */
#ifndef FAILS
#define FAILS	0
#endif
#ifndef STARVES
#define STARVES	0
#endif

/* Sequence numbers are modulo 2^32 in the code.  They start shortly before the wrap. */
#define MOD		16
#define FIRST		14
#define SUB(a, b)	(((a) - (b) + MOD) % MOD)
#define BEFORE(a, b)	(SUB(a, b) >= MOD / 2)

#define MIN(a, b)	((a) < (b) -> (a) : (b))
#define FIRST_W(i)	(i -> W1 : W0)
#define LIMIT(i)	(i -> LIMIT1 : LIMIT0)
#define DEPTH(i)	(2 * FIRST_W(i) + 2)	/* MUTANT depth-w-plus-w-over-t (equal): 2 * FIRST_W(i) + 2 => FIRST_W(i) + FIRST_W(i) / OWN_T(i) */

mtype = { NONE, CTL, DATA, ACK };

typedef side {
	/* struct sovia_credit */
	byte own;		/* what we take, and what of it the peer has been told */
	byte told;
	byte granted;		/* what the peer takes */
	byte tx_next;
	byte tx_una;
	byte rx_next;
	byte rx_acked;
	byte rx_unposted;
	bool asked;

	/* messages queued in the lane, and the number of the first of each kind */
	byte ctl;
	byte ctl_no;
	byte data;
	byte data_no;
	mtype held = NONE;
	byte held_no;
	byte held_ask;
	bool timer;

	/* the receiver: descriptors, whether the bottom half runs, messages received */
	byte posted;
	bool busy;
	bool growing;		/* more of them are to be posted */
	byte ctl_got;
	byte data_got;

	byte fails;
	byte starves;
};

side s[2];
/* Type, number of its kind (ACK: what its sender takes), seq, ack, what it asks for. */
#if LIMIT0 < LIMIT1
chan wire[2] = [2 * LIMIT1 + 2] of { mtype, byte, byte, byte, byte };
#else
chan wire[2] = [2 * LIMIT0 + 2] of { mtype, byte, byte, byte, byte };
#endif
/* To be acknowledged at once, and to be granted more. */
#define ASK	1
#define WANT	2

/* ---- credit.h ---- */

#define FLIGHT(i)	SUB(s[i].tx_next, s[i].tx_una)
#define OWN(i)		s[i].own	/* MUTANT own-before-receives (grow): s[i].own => (s[i].growing -> NEXT_W(i) : s[i].own) */
#define OWN_T(i)	((i -> T1 : T0) < OWN(i) -> (i -> T1 : T0) : OWN(i))
#define NEXT_W(i)	MIN(2 * s[i].own, LIMIT(i))
#define WINDOW(i)	MIN(s[i].granted, OWN(i))	/* MUTANT granted-used-at-once (grow): MIN(s[i].granted, OWN(i)) => s[i].granted */
#define MAY_SEND(i)	(FLIGHT(i) < WINDOW(i))	/* MUTANT window-not-the-smaller (wide): WINDOW(i) => s[i].granted */
#define HERE(i)		SUB(s[i].rx_next, s[i].rx_unposted)	/* MUTANT starved-not-held-back (short): SUB(s[i].rx_next, s[i].rx_unposted) => s[i].rx_next */
#define ACK_NO(i)	(BEFORE(HERE(i), s[i].rx_acked) -> s[i].rx_acked : HERE(i))
#define PENDING(i)	SUB(ACK_NO(i), s[i].rx_acked)
#define UNTOLD(i)	(OWN(i) != s[i].told)
#define ACK_DUE(i)	(PENDING(i) >= OWN_T(i) || (PENDING(i) && (s[i].asked || UNTOLD(i)))) /* MUTANT empty-ack (short): PENDING(i) && => */

#define HAS_WORK(i)	(s[i].held != NONE || s[i].ctl || s[i].data)
#define SENDS(i)	(DATAS + (i) * (DATAS1 - DATAS))
#define ALL_GOT(i)	(s[i].ctl_got == CTLS && s[i].data_got == SENDS(1 - i))

/* ---- lane_tx.c ---- */

/* sovia_credit_ack_sent(), and put the message on the wire. */
inline post(i, type, no, ask)
{
	assert(s[1 - i].posted > 0);
	s[1 - i].posted--;
	wire[1 - i]!type, no, s[i].tx_next, ACK_NO(i), ask;
	s[i].rx_acked = ACK_NO(i);
	s[i].asked = false;
	if
	:: type != ACK ->
		s[i].tx_next = (s[i].tx_next + 1) % MOD;
		/* Not beyond what the receiver takes; all of that is used. */
		assert(FLIGHT(i) <= s[1 - i].own && FLIGHT(i) <= LIMIT(1 - i))	/* MUTANT limit-reached (grow): <= LIMIT => < LIMIT */
	:: else -> s[i].told = OWN(i)
	fi
}

/* lane_next(): the held message, control, data. */
inline take(i)
{
	if
	:: s[i].held != NONE ->
		type = s[i].held; no = s[i].held_no; ask = s[i].held_ask;
		s[i].held = NONE; s[i].held_no = 0; s[i].held_ask = 0
	:: else ->
		ask = 0;
		if
		:: s[i].ctl ->
			type = CTL; no = s[i].ctl_no; s[i].ctl--; s[i].ctl_no++
		:: else ->
			type = DATA; no = s[i].data_no; s[i].data--; s[i].data_no++
		fi
	fi
}

/* More is waiting, and we could use more. */
#define WANTS(i)	(GROW && HAS_WORK(i) && s[i].granted < LIMIT(i))

inline pump(i)
{
	do
	:: HAS_WORK(i) && MAY_SEND(i) ->
		take(i);
		ask = (FLIGHT(i) + 1 >= WINDOW(i) -> (WANTS(i) -> WANT : ASK) : ask);	/* MUTANT last-credit-not-asked (unequal): (WANTS(i) -> WANT : ASK) => ask */
		if
		:: s[i].fails > 0 ->
			s[i].fails--;
			s[i].held = type; s[i].held_no = no; s[i].held_ask = ask; /* MUTANT held-lost (failing): s[i].held = type => skip */
			s[i].timer = true;
			break
		:: true -> post(i, type, no, ask)
		fi
	:: else -> break
	od;
	type = NONE; no = 0; ask = 0
}

inline send_ack(i)
{
	if
	:: s[i].fails > 0 -> s[i].fails--; s[i].timer = true
	:: true -> no = OWN(i); post(i, ACK, no, 0); no = 0
	fi
}

/* ---- processes of each side ---- */

/* sovia_conn_control() and sovia_conn_send(), which leaves the rest in the socket. */
proctype program(bit i)
{
	byte ctls = CTLS, datas = SENDS(i);
	mtype type = NONE; byte no, ask;

	do
	:: atomic { ctls -> ctls--; s[i].ctl++; pump(i) }
	:: atomic { datas && s[i].data < QUEUE -> datas--; s[i].data++; pump(i) }
	:: !ctls && !datas -> break
	od
}

/* verbs_rx_renew(): repost a descriptor, or find no memory for it. */
inline renew(i)
{
	if
	:: s[i].starves > 0 -> s[i].starves--; s[i].rx_unposted++
	:: true -> s[i].posted++
	fi
}

/* The peer wants more than it has been told of, or takes more than we do. */
#define GROWS(i)	(OWN(i) < LIMIT(i) && \
			 (got_ask == WANT && !UNTOLD(i) || s[i].granted > OWN(i)))

/* lane_account() and lane_dispatch(). */
inline account(i)
{
	assert(!BEFORE(s[i].tx_next, got_ack));
	assert(seq == s[i].rx_next);
	una = s[i].tx_una;
	if
	:: BEFORE(s[i].tx_una, got_ack) -> s[i].tx_una = got_ack
	:: else
	fi;
	if
	:: got != ACK ->
		assert(SUB(s[i].rx_next, s[i].rx_acked) < OWN(i));
		s[i].rx_next = (s[i].rx_next + 1) % MOD
	:: else ->
		assert(got_no >= s[i].granted);
		s[i].granted = got_no
	fi;
	s[i].asked = s[i].asked || got_ask;
	s[i].growing = s[i].growing || GROWS(i);
	/* Before the pump, whose messages acknowledge, but do not tell. */
	if
	:: UNTOLD(i) && ACK_DUE(i) -> send_ack(i)	/* MUTANT told-late (grow): send_ack(i) => skip */
	:: else
	fi;
#if !FAILS && !STARVES
	assert(got == ACK || !UNTOLD(i));
#endif
	if
	:: una != s[i].tx_una -> pump(i)
	:: else
	fi;
	if
	:: got == CTL -> assert(got_no == s[i].ctl_got); s[i].ctl_got++
	:: got == DATA -> assert(got_no == s[i].data_got); s[i].data_got++
	:: else
	fi;
	got_no = 0; seq = 0; got_ack = 0; got_ask = 0; una = 0
}

/* The bottom half.  It renews the descriptor of a large message first. */
proctype bottom_half(bit i)
{
	mtype type = NONE, got = NONE; byte no, ask, got_no, seq, got_ack, got_ask, una; bool large;

end:	do
	:: atomic {
		wire[i]?got, got_no, seq, got_ack, got_ask ->
		s[i].busy = true;
#if STARVES
		if
		:: got == DATA -> large = true; renew(i)
		:: true
		fi
	   }
	   atomic {
#endif
		account(i)
	   }
	   atomic {
		if
		:: ACK_DUE(i) -> send_ack(i)
		:: !ACK_DUE(i) && PENDING(i) -> s[i].timer = true	/* MUTANT no-idle-ack (equal): s[i].timer = true => skip */
		:: else
		fi
	   }
	   atomic {
		if
		:: large
		:: !large && got != ACK -> renew(i)
		:: !large && got == ACK -> s[i].posted++
		fi;
		large = false; got = NONE; s[i].busy = false
	   }
	od
}

/* sovia_lane_timeout() */
proctype ack_timer(bit i)
{
	mtype type = NONE; byte no, ask;

end:	do
	:: atomic {
		s[i].timer -> s[i].timer = false;
		pump(i);
		if
		:: PENDING(i) -> send_ack(i)
		:: else
		fi
	   }
	od
}

/* verbs_rx_refill_work() and lane_rx_unposted(): memory is available again. */
proctype memory(bit i)
{
	byte no;

end:	do
	:: atomic {
		s[i].rx_unposted -> s[i].posted++; s[i].rx_unposted--;
		if
		:: ACK_DUE(i) -> send_ack(i)
		:: !ACK_DUE(i) && PENDING(i) -> s[i].timer = true	/* MUTANT no-ack-after-shortage (shortage): s[i].timer = true => skip */
		:: else
		fi
	   }
	od
}

/* The work that posts more receives, after any time: a window counts when they are there. */
proctype grow(bit i)
{
	mtype type = NONE; byte no, ask;

end:	do
	:: atomic {
		s[i].growing ->
		s[i].posted = s[i].posted + 2 * (NEXT_W(i) - s[i].own)	/* MUTANT no-more-receives (grow): 2 * (NEXT_W(i) - s[i].own) => 0 */
	   }
	   atomic {
		s[i].own = NEXT_W(i);
		s[i].growing = s[i].own < LIMIT(i) && s[i].granted > s[i].own;
		/* Not for that alone. */
		if
		:: ACK_DUE(i) -> send_ack(i)	/* MUTANT ack-for-the-grant (grow-short): ACK_DUE(i) => true */
		:: else
		fi;
		pump(i)
	   }
	od
}

init {
	atomic {
		byte i = 0;

		do
		:: i < 2 ->
			s[i].tx_next = FIRST; s[i].tx_una = FIRST;
			s[i].rx_next = FIRST; s[i].rx_acked = FIRST;
			s[i].own = FIRST_W(i); s[i].told = FIRST_W(i);
			s[i].granted = FIRST_W(1 - i);
			s[i].posted = DEPTH(i);	/* MUTANT one-descriptor-less (shortage): DEPTH(i) => DEPTH(i) - 1 */
			s[i].fails = FAILS; s[i].starves = STARVES;
			run program(i); run bottom_half(i); run ack_timer(i); run memory(i);
			run grow(i);
			i++
		:: else -> break
		od
	}
}

/* ---- properties ---- */

#define IDLE(i)		(empty(wire[i]) && !s[i].busy && !s[i].rx_unposted)
#define QUIET		(IDLE(0) && IDLE(1) && !s[0].timer && !s[1].timer)
#define SETTLED(i)	(!HAS_WORK(i) && !FLIGHT(i))
#define STALLED(i)	(HAS_WORK(i) && !MAY_SEND(i))

active proctype watch()
{
end:	do
	/* At the end, everything has arrived. */
	:: atomic { timeout -> assert(ALL_GOT(0) && ALL_GOT(1)); break }
	/* When the lane is idle, no message waits, and the full window is available. */
	:: atomic { QUIET && !(SETTLED(0) && SETTLED(1)) -> assert(SETTLED(0) && SETTLED(1)) }
#if !FAILS && !STARVES
	/* A sender that waits for credit does not depend on a timer. */
	:: atomic { IDLE(0) && IDLE(1) && (STALLED(0) || STALLED(1)) -> assert(!STALLED(0) && !STALLED(1)) }
#endif
	od
}

/* Every message arrives. */
ltl delivered { <> (ALL_GOT(0) && ALL_GOT(1)) }

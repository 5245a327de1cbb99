/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The rendezvous: two kernels pair, over TCP connections that each may open to the other.
 * README.rst has the bounds and the results.
 *
 * Connection i is the one that node i opens; its ports are always the same, so there is
 * one at a time.  TCP delivers in order or ends the connection; an end that has gone answers
 * with RST.  A secret is a number that each OK draws.  The lanes are one, which is up
 * at both nodes from a REP on; it answers a PROBE as long as the other end has it, too.
 *
 * Node 0 has the lower address.
 */

#ifndef BOTH_WANT
#define BOTH_WANT	1	/* both nodes want the peer: attempts may cross */
#endif
#ifndef REBOOTS
#define REBOOTS	0	/* of either node */
#endif
#ifndef CUTS
#define CUTS	0	/* connections that end by themselves, or by a deadline at one end */
#endif
#ifndef DEATHS
#define DEATHS	0	/* of the lane, noticed at one end */
#endif
#ifndef CLAIMS
#define CLAIMS	0	/* HELLOs and answers to node 0 of another kernel, in the name of node 1 */
#endif
#ifndef BLOCKED
#define BLOCKED	2	/* the node whose SYNs a firewall drops; 2: none */
#endif
#ifndef KEYED
#define KEYED	0	/* both have a key, and other kernels do not: an answer waits for CONFIRM */
#endif
#ifndef PROMPT
#define PROMPT	0	/* messages, and what finds a dead end, are faster than retries: for liveness */
#endif

#define SECRETS	8

mtype = { HELLO, JOIN, OK, JOINED, CONFIRM, BUSY, CROSSED, RST };
mtype = { IDLE, ASKING, OFFERED };	/* an attempt of our own */
mtype = { NONE, OUT, IN, CLAIM };	/* which connection is the anchor */

typedef node {
	bool wanted;		/* a program wants a lane */
	mtype attempt = IDLE;
	bool out;		/* our end of our connection */
	bool in;		/* our end of the peer's */
	mtype anchor = NONE;
	byte secret;		/* 0: not paired */
	byte pending;		/* of the peer's connection, until CONFIRM */
	bool up;		/* the lane */
	bool may;		/* open connections over it */
	bool lets;		/* the peer open some */
};
node n[2];

/* To the answerer of connection i, and back. */
chan there[2] = [2] of { mtype, byte };
chan back[2] = [2] of { mtype, byte };

byte reboots = REBOOTS, cuts = CUTS, deaths = DEATHS, claims = CLAIMS;

#define PAIRED(i)	(n[i].secret && n[i].anchor != NONE)
/* Does the other end still have the lane? */
#define ANSWERS(i)	(n[i].up && n[1 - (i)].up && n[0].secret == n[1].secret)
/* Does the other end still have the anchor? */
#define ANCHORED(i)	(n[i].anchor == OUT && n[1 - (i)].in || n[i].anchor == IN && n[1 - (i)].out)

inline no_anchor(e, which)
{
	if
	:: n[e].anchor == which -> n[e].anchor = NONE; n[e].may = false; n[e].lets = false
	:: else
	fi
}

inline empty_chan(ch)
{
	do
	:: ch?_, _
	:: empty(ch) -> break
	od
}

/* Our connection has ended: by RST, or nothing in it counts any more. */
inline out_gone(e)
{
	no_anchor(e, OUT);
	n[e].out = false; n[e].attempt = IDLE;
	empty_chan(back[e])
}

inline in_gone(e)
{
	no_anchor(e, IN);
	n[e].in = false; n[e].pending = 0;
	empty_chan(there[1 - (e)])
}

/* We end it. */
inline close_out(e)
{
	if
	:: n[e].out -> out_gone(e); there[e]!RST, 0
	:: else -> n[e].attempt = IDLE
	fi
}

/* ---- decisions of the connection thread ---- */

/* Forget the peer: only if nothing proves that it is alive. */
inline forget(e)
{
	if
	:: n[e].secret -> assert(!ANSWERS(e))
	:: else
	fi;
	n[e].secret = 0; n[e].up = false; n[e].anchor = NONE; n[e].may = false; n[e].lets = false
}

#define DRAWN(s)	(n[0].secret == s || n[1].secret == s || \
			 n[0].pending == s || n[1].pending == s || \
			 there[0]??[CONFIRM, eval(s)] || there[1]??[CONFIRM, eval(s)] || \
			 back[0]??[OK, eval(s)] || back[1]??[OK, eval(s)] || \
			 there[0]??[HELLO, eval(s)] || there[1]??[HELLO, eval(s)] || \
			 there[0]??[JOIN, eval(s)] || there[1]??[JOIN, eval(s)])

inline draw(s)
{
	s = 1;
	do
	:: DRAWN(s) -> s++
	:: else -> break
	od;
	assert(s < SECRETS)
}

inline pair(e)
{
	forget(e);
	draw(new);
	n[e].secret = new;
	new = 0
}

/* Busy: PING, PROBE.  What does not answer is found to be dead: LOST. */
#define ALIVE(i)	(n[i].secret && (n[i].anchor != NONE || n[i].up))

inline hello(e, again)
{
	if
	/* AGAIN with a right MAC. */
	:: again && n[e].secret == again ->
		if
		/* The anchor may be newer than this HELLO; if it is lost, PING finds out. */
		:: e == 0 && (n[e].attempt == OFFERED || n[e].anchor == OUT) ->	/* MUTANT again-gives-way (claimed): n[e].anchor == OUT => false */
			back[1 - (e)]!CROSSED, 0; n[e].in = false
		:: else ->
			close_out(e);
			n[e].anchor = IN; n[e].lets = true;
			back[1 - (e)]!OK, again
		fi
	:: else ->
		if
		:: ALIVE(e) ->	/* MUTANT claim-believed (claim): ALIVE(e) => false */
			back[1 - (e)]!BUSY, 0; n[e].in = false
		:: !ALIVE(e) && n[e].attempt == OFFERED && e == 0 ->	/* MUTANT both-give-way (settles): e == 0 => false */
			back[1 - (e)]!CROSSED, 0; n[e].in = false
		:: else ->
			if
			:: KEYED -> draw(new); n[e].pending = new; new = 0; back[1 - (e)]!OK, n[e].pending
			:: else ->
				close_out(e);
				pair(e);
				n[e].anchor = IN; n[e].lets = true;
				back[1 - (e)]!OK, n[e].secret
			fi
		fi
	fi
}

/* Since the HELLO an attempt of ours may have succeeded.  Both ends keep that of the lower address. */
#define MAY_TAKE(i)	(n[i].anchor == OUT && i == 1 && !n[i].up || !ALIVE(i))	/* MUTANT neither-kept (keyed): i == 1 => true */

inline confirm(e, sec)
{
	if
	:: n[e].pending && n[e].pending == sec && MAY_TAKE(e) ->	/* MUTANT confirm-believed (keyed): MAY_TAKE(e) => true */
		close_out(e);
		forget(e);
		n[e].secret = sec; n[e].anchor = IN; n[e].lets = true; n[e].pending = 0
	:: else -> back[1 - (e)]!RST, 0; in_gone(e)
	fi
}

/* The other direction.  Who has lost the anchor takes it for AGAIN. */
inline join(e, sec)
{
	if
	:: n[e].secret == sec && n[e].anchor != NONE -> n[e].lets = true; back[1 - (e)]!JOINED, sec
	:: else -> hello(e, sec)
	fi
}

inline joined(e)
{
	if
	:: n[e].anchor != NONE -> n[e].may = true
	:: else
	fi;
	close_out(e)
}

/* OK to our HELLO.  If it is another kernel's, our lane has to be found dead first. */
inline offered(e, sec)
{
	n[e].attempt = IDLE;
	if
	:: n[e].secret == sec ->
		if
		:: n[e].anchor == IN -> n[e].in = false; empty_chan(there[1 - (e)])
		:: else
		fi;
		n[e].anchor = OUT; n[e].may = true
	:: n[e].secret != sec && ALIVE(e) -> close_out(e)	/* MUTANT other-believed (claim): ALIVE(e) => false */
	:: else ->
		forget(e);
		n[e].secret = sec; n[e].anchor = OUT; n[e].may = true;
		if
		:: KEYED && n[e].out -> there[e]!CONFIRM, sec
		:: else
		fi
	fi
}

/* May we open connections, as far as we know? */
#define OPEN(i)		(PAIRED(i) && n[i].may)
#define WAITS(i)	(n[i].wanted && !OPEN(i))
/* The peer does not take them: NO_DIRECTION. */
#define BARRED(i)	(n[i].up && OPEN(i) && !n[1 - (i)].lets)
/* What keepalive, PING or PROBE finds out. */
#define LOST_OUT(i)	(n[i].out && !n[1 - (i)].in && !len(back[i]))
#define LOST_IN(i)	(n[i].in && !n[1 - (i)].out && !len(there[1 - (i)]))
#define LOST_LANE(i)	(n[i].up && !ANSWERS(i))
#define LOST(i)		(LOST_OUT(i) || LOST_IN(i) || LOST_LANE(i) || BARRED(i) || n[i].anchor == CLAIM)
#define TIME		(!PROMPT || !LOST(0) && !LOST(1) && !len(there[0]) && !len(there[1]) && \
			 !len(back[0]) && !len(back[1]))

proctype thread(bit i)
{
	byte secret, new;
	mtype what;

end:	do
	:: atomic {
		TIME && WAITS(i) && n[i].attempt == IDLE && !n[i].out ->
		n[i].attempt = ASKING
	   }
	/* A SYN from the same ports: the old connection is answered with RST, which ends it. */
	:: atomic {
		n[i].attempt == ASKING && BLOCKED != i && !OPEN(i) ->
		in_gone(1 - i);
		empty_chan(back[i]);
		n[i].out = true; n[1 - (i)].in = true;
		n[i].attempt = OFFERED;
		if
		:: n[i].anchor == IN || n[i].anchor == CLAIM -> there[i]!JOIN, n[i].secret
		:: else -> there[i]!HELLO, n[i].secret
		fi
	   }
	/* Needless since, or the SYN has timed out. */
	:: atomic { TIME && n[i].attempt == ASKING && (OPEN(i) || BLOCKED == i) -> n[i].attempt = IDLE }
	/* The peer's connection. */
	:: atomic {
		n[i].in && nempty(there[1 - (i)]) ->
		there[1 - (i)]?what, secret;
		if
		:: what == HELLO -> hello(i, secret)
		:: what == JOIN -> join(i, secret)
		:: what == CONFIRM -> confirm(i, secret)
		:: what == RST -> in_gone(i)
		fi;
		what = 0; secret = 0
	   }
	:: atomic { !n[i].in && nempty(there[1 - (i)]) -> empty_chan(there[1 - (i)]) }
	/* Ours. */
	:: atomic {
		n[i].out && nempty(back[i]) ->
		back[i]?what, secret;
		if
		:: what == OK -> offered(i, secret)
		:: what == JOINED -> joined(i)
		:: what == BUSY || what == CROSSED || what == RST -> out_gone(i)
		fi;
		what = 0; secret = 0
	   }
	:: atomic { !n[i].out && nempty(back[i]) -> empty_chan(back[i]) }
	:: atomic { LOST_OUT(i) -> out_gone(i) }
	:: atomic { LOST_IN(i) -> in_gone(i) }
	:: atomic { n[i].anchor == CLAIM -> no_anchor(i, CLAIM) }
	:: atomic { BARRED(i) -> n[i].may = false }
	:: atomic { LOST_LANE(i) -> n[i].up = false }
	/* REQ and REP, with MACs. */
	:: atomic {
		n[i].wanted && OPEN(i) && !n[i].up &&
		n[1 - (i)].secret == n[i].secret ->
		n[i].up = true; n[1 - (i)].up = true
	   }
	od
}

/* ---- what may happen ---- */

inline reboot(e)
{
	n[e].attempt = IDLE; n[e].out = false; n[e].in = false; n[e].anchor = NONE;
	n[e].secret = 0; n[e].pending = 0; n[e].up = false; n[e].may = false; n[e].lets = false;
	empty_chan(back[e]);
	empty_chan(there[1 - (e)])
}

active proctype world()
{
	byte x, new;

	atomic {
		n[0].wanted = true;
		n[1].wanted = BOTH_WANT;
		run thread(0);
		run thread(1)
	}
end:	do
	:: atomic { reboots -> reboots--; reboot(0) }
	:: atomic { reboots -> reboots--; reboot(1) }
	:: atomic { cuts && n[0].out -> cuts--; close_out(0) }
	:: atomic { cuts && n[1].out -> cuts--; close_out(1) }
	:: atomic { cuts && n[0].in -> cuts--; in_gone(0) }
	:: atomic { cuts && n[1].in -> cuts--; in_gone(1) }
	:: atomic { deaths && n[0].up -> deaths--; n[0].up = false }
	:: atomic { deaths && n[1].up -> deaths--; n[1].up = false }
	/* It has got the ports, and can do no more than the peer after a restart. */
	:: atomic {
		claims ->
		claims--;
		in_gone(0);
		if
		:: ALIVE(0) || n[0].attempt == OFFERED || KEYED	/* BUSY, CROSSED, or it cannot confirm */
		:: else -> close_out(0); pair(0); n[0].anchor = CLAIM
		fi
	   }
	/* Or it answers. */
	:: atomic {
		claims && n[0].attempt == OFFERED ->
		claims--;
		if
		:: KEYED -> n[0].attempt = IDLE	/* its MAC is wrong */
		:: else ->
			draw(new);
			offered(0, new);
			if
			:: n[0].anchor == OUT -> n[0].anchor = CLAIM
			:: else
			fi;
			new = 0
		fi;
		n[0].out = false;
		in_gone(1);
		empty_chan(back[0])
	   }
	od
}

/* Who wants a lane gets one, and may open connections over it, unless its SYNs are dropped. */
#define OPENED(i)	(!n[i].wanted || BLOCKED == i || n[i].may && n[1 - (i)].lets)
#define SETTLED		(n[0].up && n[1].up && n[0].secret == n[1].secret && OPENED(0) && OPENED(1))
ltl settles { <>[](SETTLED) }

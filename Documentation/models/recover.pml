/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Recovery of links: the sequence numbers of a link when its VI dies.
 * README.rst has the bounds and the results.
 *
 * A VI is an attempt v at setting one up.  Its connection manager messages may be lost, or
 * overtaken by those of another attempt.  Messages on the wire when a VI dies are lost,
 * except those already received: a suffix is lost.
 *
 * Node 0 has the lower address.
 */

#ifndef BOTH_WANT
#define BOTH_WANT	0	/* both nodes want the link at the start: requests may cross */
#endif
#ifndef DEATHS
#define DEATHS	1	/* of VIs, at either end */
#endif
#ifndef LOSSES
#define LOSSES	0	/* of messages of the connection manager, or timeouts of an attempt */
#endif
#ifndef OVERTAKES
#define OVERTAKES	0	/* of messages of the connection manager */
#endif
#ifndef REBOOTS
#define REBOOTS	0
#endif
#ifndef LIMITS
#define LIMITS	0	/* how often recovery_timeout expires */
#endif
#ifndef PARKS
#define PARKS	0	/* PARK messages, of either node */
#endif
#ifndef MSGS
#define MSGS	2	/* messages each way in the life of a link */
#endif
#ifndef WINDOW
#define WINDOW	2
#endif
#ifndef VIS
#define VIS	9
#endif

mtype = { NONE, CONNECTING, UP, RECOVERING, PARKED };
mtype = { REQUEST, ANSWER, AGAIN, UNKNOWN };

typedef node {
	mtype link = NONE;
	byte id;		/* of our side of the link */
	byte peer;		/* the peer's id, 0: not known yet */
	byte vi;
	bool asking;		/* the VI is an attempt of our own */
	bool greeted;		/* the VI is established: the lane is on trial */
	bool tried;		/* our long message has been sent over it */
	bool owes;		/* that, or the ACK that confirms the peer's, is to be sent */
	bool open;		/* the lane is up */
	bool ev_up;		/* the thread has not seen that: SOVIA_LINK_EV_UP */
	bool agreed;		/* it has been, until the peer's PARK: the link is to be PARKED */
	bool ev_park;		/* the thread has not looked at that: SOVIA_LINK_EV_PARK */
	bool ending;		/* the VI of before is not gone yet */
	byte deferred;		/* a request that waits for that, 0: none */
	byte there;		/* rx_next of the peer's hello */
	bool wanted;		/* a program wants the link */
	byte unwritten;		/* messages that programs will send */
	byte queued;		/* number of the next message to be queued in the lane */
	byte park;		/* number of the next message after our PARK, 0: none */
	bool wake;		/* the event of a message that is queued while PARKED */
	/* struct sovia_credit; messages between these two are in unacked */
	byte tx_una;
	byte tx_next;
	byte rx_next;
	byte rx_acked;
};
node n[2];

/* The hello in flight for an attempt. */
typedef hello {
	byte id;
	byte peer;
	byte rx;
};
hello h[VIS];

chan cm[2] = [VIS] of { mtype, byte };
/* VI, id of the sender (for the checks), number (a PARK's has PARK added), ACK or LONG (a padded ACK), ack */
chan wire[2] = [WINDOW] of { byte, byte, byte, byte };
#define ACK		255
#define LONG		254
#define PARK		128

byte ids, vis;
byte deaths = DEATHS, losses = LOSSES, overtakes = OVERTAKES, reboots = REBOOTS, limits = LIMITS, parks = PARKS;
bool excuse;		/* a node may now lose a link */

/* ---- link_vi.c ---- */

inline drop_vi(i)
{
	n[i].ending = n[i].ending || n[i].vi != 0;
	n[i].vi = 0; n[i].greeted = false; n[i].tried = false; n[i].owes = false;
	n[i].open = false; n[i].agreed = false; n[i].asking = false; n[i].there = 0;
	n[i].ev_up = false
}

/* ---- link.c ---- */

/* Unless links are parked, all messages are there from the start. */
inline fill(i)
{
	n[i].queued = (PARKS -> 0 : MSGS);
	n[i].unwritten = MSGS - n[i].queued
}

/* The next link does not wait for this one's VI; the request that waited is decided anew. */
inline reset(i)
{
	drop_vi(i);
	n[i].ending = false;
	if
	:: n[i].deferred -> cm[i]!REQUEST, n[i].deferred; n[i].deferred = 0
	:: else
	fi;
	n[i].link = NONE; n[i].id = 0; n[i].peer = 0;
	n[i].tx_una = 0; n[i].tx_next = 0; n[i].rx_next = 0; n[i].rx_acked = 0;
	n[i].park = 0; n[i].wake = false; n[i].ev_park = false;
	fill(i)
}

/* Its sockets get an error: only for a reason, or if nothing was received over it. */
inline down(i)
{
	assert(excuse || !n[i].rx_next);
	reset(i)
}

inline say(i, what, v)
{
	h[v].id = n[i].id; h[v].peer = n[i].peer;
	h[v].rx = n[i].rx_next;	/* MUTANT one-too-many (death): n[i].rx_next => n[i].rx_next + 1 */
	cm[1 - i]!what, v
}

inline connect(i)
{
	vis++;
	assert(vis < VIS);
	n[i].vi = vis; n[i].open = false; n[i].asking = true;
	say(i, REQUEST, vis)
}

inline reject(i, why, v)
{
	h[v].id = 0; h[v].peer = 0; h[v].rx = 0;
	cm[1 - i]!why, v
}

/* The reply says what has arrived; nothing arrives over an older VI any more. */
inline accept(i, v)
{
	drop_vi(i);
	if
	:: n[i].ending ->
		if
		:: n[i].deferred -> reject(i, AGAIN, n[i].deferred)
		:: else
		fi;
		n[i].deferred = v
	:: else ->
		n[i].vi = v; n[i].peer = h[v].id; n[i].there = h[v].rx;
		say(i, ANSWER, v)
	fi
}

/* A lane with a new VI: sovia_lane_rewind(). */
inline established(i)
{
	/* What the peer has is acknowledged; the rest is retransmitted with its old numbers. */
	assert(n[i].tx_una <= n[i].there && n[i].there <= n[i].tx_next);
	n[i].tx_una = n[i].there;
	n[i].tx_next = n[i].there;	/* MUTANT nothing-again (death): n[i].there => n[i].tx_next */
	n[i].there = 0;
	/* It is retransmitted as PROBE. */
	n[i].park = 0;
	n[i].rx_acked = n[i].rx_next;
	n[i].greeted = true;
	n[i].owes = n[i].asking
}

/* lane_open(): messages come and go before the thread knows. */
inline open_lane(i)
{
	n[i].open = true;
	n[i].ev_up = true
}

#define LIVES(i)	(n[i].link == UP || n[i].link == RECOVERING || n[i].link == PARKED)
#define SAME(i, v)	(h[v].peer == n[i].id && h[v].id == n[i].peer)	/* MUTANT ids-not-compared (reboot): (h[v].peer == n[i].id && h[v].id == n[i].peer) => (n[i].link != NONE) */

#define ANSWERS(i)	(n[i].vi && n[i].open && n[1 - i].vi == n[i].vi)

/* ---- link_park.c ---- */

#define FLIGHT(i)	(n[i].tx_next - n[i].tx_una)
#define HAS_WORK(i)	(n[i].tx_next < n[i].queued)
/* Nothing is unacknowledged but our own PARK. */
#define QUIET(i)	(!FLIGHT(i) || FLIGHT(i) == 1 && n[i].park == n[i].tx_next)	/* MUTANT any-for-park (park): n[i].park == n[i].tx_next => n[i].park */
/* It may send PARK. */
#define IDLE(i)		(n[i].open && !FLIGHT(i) && !HAS_WORK(i) && n[i].rx_acked == n[i].rx_next)
/* Its VI ends: it has agreed to that, or asked for it, and has nothing to say since. */
#define RESTS(i)	(n[i].link == UP && (n[i].agreed || n[i].park && FLIGHT(i)) && QUIET(i) && !NEWS(i))	/* MUTANT data-behind-park (park): QUIET(i) => true */
/* Queued since then; what is queued after this sets the event. */
#define NEWS(i)		HAS_WORK(i)	/* MUTANT queued-before-parked (park): HAS_WORK(i) => false */

/* link_failed(): of a lane that was open the thread sees that first.  Or the end of one that has agreed to it. */
inline died(i)
{
	if
	:: n[i].link == CONNECTING && !n[i].ev_up -> reset(i)
	:: else ->
		n[i].link = (RESTS(i) -> PARKED : RECOVERING);
		drop_vi(i)
	fi
}

/* sovia_link_look_parked() */
inline look_parked(i)
{
	if
	:: n[i].link == UP && n[i].agreed -> died(i)
	:: else
	fi
}

/* link_up() */
inline up(i)
{
	n[i].ev_up = false;
	n[i].link = UP;
	look_parked(i)	/* MUTANT park-before-up (park): look_parked(i) => skip */
}

/* ---- link_request.c ---- */

/* sovia_link_catch_up(): a request may overtake the event */
inline catch_up(i)
{
	if
	:: n[i].ev_up -> up(i)	/* MUTANT request-before-up (death): n[i].ev_up => false */
	:: else
	fi
}

/* link_yield() */
inline fresh_request(i, v)
{
	catch_up(i);
	/* The code rejects it, and it comes again when the link is PARKED. */
	if
	:: n[i].ev_park -> n[i].ev_park = false; look_parked(i)
	:: else
	fi;
	if
	:: n[i].link == CONNECTING && n[i].vi && n[i].asking && i == 0 -> reject(i, AGAIN, v)
	/* From the end that we are connected to: its reply to our request has overtaken it. */
	:: LIVES(i) && h[v].id == n[i].peer -> reject(i, AGAIN, v)	/* MUTANT old-request-counts (overtaken): h[v].id == n[i].peer => false */
	/* Its lane answers a PROBE, so it stays up.  (One that does not is in doubt until it dies.) */
	:: n[i].link == UP && (ANSWERS(i) || n[i].agreed) -> reject(i, AGAIN, v)	/* MUTANT lane-not-asked (twice): (ANSWERS(i) || n[i].agreed) => false */
	:: else ->
		/* The peer has lost its side, if there was one. */
		if
		:: LIVES(i) -> down(i)	/* MUTANT numbers-kept (reboot): down(i) => n[i].link = RECOVERING */
		:: else
		fi;
		/* Our own attempt, which this one replaces, is for the same link. */
		if
		:: n[i].link == NONE -> ids++; n[i].id = ids
		:: else
		fi;
		n[i].link = CONNECTING;
		accept(i, v)
	fi
}

/* link_resume() */
inline resume_request(i, v)
{
	catch_up(i);
	if
	:: !SAME(i, v) -> reject(i, UNKNOWN, v)
	:: SAME(i, v) && n[i].link == RECOVERING && n[i].asking && i == 0 -> reject(i, AGAIN, v)
	:: else ->
		n[i].link = (LIVES(i) -> RECOVERING : n[i].link);
		accept(i, v)
	fi
}

inline answered(i, v)
{
	if
	:: n[i].vi == v ->	/* MUTANT old-answer-counts (loss): n[i].vi == v => n[i].vi */
		assert(h[v].peer == n[i].id && (!n[i].peer || n[i].peer == h[v].id));
		n[i].peer = h[v].id; n[i].there = h[v].rx;
		established(i)
	:: else
	fi;
	h[v].id = 0; h[v].peer = 0; h[v].rx = 0
}

inline rejected(i, v)
{
	if
	:: n[i].vi == v && what == AGAIN -> drop_vi(i)
	:: n[i].vi == v && what == UNKNOWN -> down(i)
	:: else
	fi
}

/* The other end no longer has this VI, or no message for it is pending. */
#define NO_MORE(v)	(!cm[0]??[REQUEST, v] && !cm[0]??[ANSWER, v] && !cm[0]??[AGAIN, v] && \
			 !cm[0]??[UNKNOWN, v] && !cm[1]??[REQUEST, v] && !cm[1]??[ANSWER, v] && \
			 !cm[1]??[AGAIN, v] && !cm[1]??[UNKNOWN, v])
#define ALONE(i)	(n[i].vi && (n[1 - i].vi != n[i].vi || !n[0].greeted && !n[1].greeted) && \
			 n[1 - i].deferred != n[i].vi && NO_MORE(eval(n[i].vi)))
/* The higher address lets the lower one try first. */
#define TURN(i)		(i == 0 || !n[0].vi || n[0].link == UP)

/* The connection thread. */
proctype thread(bit i)
{
	byte v;
	mtype what = NONE;

end:	do
	:: atomic {
		cm[i]?what, v ->
		if
		:: what == REQUEST && !h[v].peer -> fresh_request(i, v)
		:: what == REQUEST && h[v].peer -> resume_request(i, v)
		:: what == ANSWER -> answered(i, v)
		:: what == AGAIN || what == UNKNOWN -> rejected(i, v)
		:: losses -> losses--; h[v].id = 0; h[v].peer = 0; h[v].rx = 0
		fi;
		v = 0; what = NONE
	   }
	:: atomic {
		overtakes && len(cm[i]) > 1 ->
		overtakes--;
		cm[i]?what, v;
		cm[i]!what, v;
		v = 0; what = NONE
	   }
	:: atomic {
		n[i].link == NONE && n[i].wanted ->
		ids++; n[i].id = ids; n[i].link = CONNECTING; connect(i)
	   }
	:: atomic {
		(n[i].link == CONNECTING || n[i].link == RECOVERING) && !n[i].vi && !n[i].ending &&
		TURN(i) ->
		connect(i)
	   }
	:: atomic {
		n[i].ending ->
		n[i].ending = false;
		v = n[i].deferred;	/* MUTANT deferred-forgotten (crossing): n[i].deferred => 0 */
		n[i].deferred = 0;
		if
		:: v && !h[v].peer -> fresh_request(i, v)
		:: v && h[v].peer -> resume_request(i, v)
		:: else
		fi;
		v = 0
	   }
	/* A lane that has agreed to be parked does not tell that it is lost. */
	:: atomic { !n[i].agreed && ALONE(i) -> died(i) }
	:: atomic { n[i].ev_up -> up(i) }
	:: atomic { n[i].ev_park -> n[i].ev_park = false; look_parked(i) }
	:: atomic {
		n[i].wake ->
		n[i].wake = false;
		n[i].link = (n[i].link == PARKED -> RECOVERING : n[i].link)
	   }
	/* The attempt or the trial times out, though the reply may still arrive. */
	:: atomic { losses && n[i].vi && !n[i].open && !n[i].agreed -> losses--; died(i) }
	:: atomic { limits && n[i].link == RECOVERING -> limits--; excuse = true; down(i) }
	od
}

/* ---- the lane ---- */

/* lane_account_trial() */
inline take_trial(i)
{
	if
	:: no == LONG && !n[i].asking -> n[i].owes = true	/* MUTANT up-before-confirmed (death): n[i].owes = true => n[i].owes = true; open_lane(i) */
	:: no == LONG && n[i].asking -> assert(n[i].tried); n[i].owes = true; open_lane(i)
	:: else -> assert(n[i].tried && !n[i].asking); open_lane(i)
	fi
}

inline take(i)
{
	/* The peer that sends has the VI established. */
	if
	:: !n[i].greeted -> established(i)
	:: else
	fi;
	if
	:: !n[i].open -> take_trial(i)
	:: else
	fi;
	assert(ack <= n[i].tx_next);
	if
	:: n[i].tx_una < ack -> n[i].tx_una = ack
	:: else
	fi;
	if
	:: no != ACK && no != LONG ->
		/* Each message once, in order, and of this link. */
		assert(no % PARK == n[i].rx_next);
		assert(from == n[i].peer);
		n[i].rx_next++
	:: else
	fi;
	if
	:: no != ACK && no != LONG && no >= PARK && QUIET(i) && !HAS_WORK(i) ->
		n[i].agreed = true;
		n[i].open = false;
		n[i].ev_park = true
	:: else
	fi
}

#define SEND(i, what)	wire[1 - i]!n[i].vi, n[i].id, what, n[i].rx_next; n[i].rx_acked = n[i].rx_next

#define HEARS(i)	(v == n[i].vi && !n[i].agreed)	/* MUTANT hears-after-agreeing (park): && !n[i].agreed => */

proctype lane(bit i)
{
	byte v, from, no, ack;

end:	do
	:: atomic {
		n[i].open && HAS_WORK(i) && FLIGHT(i) < WINDOW && nfull(wire[1 - i]) ->
		SEND(i, n[i].tx_next);
		n[i].tx_next++
	   }
	/* lane_park() */
	:: atomic {
		parks && n[i].link == UP && IDLE(i) && nfull(wire[1 - i]) ->
		parks--;
		SEND(i, PARK + n[i].tx_next);
		n[i].tx_next++; n[i].queued++;
		n[i].park = n[i].tx_next
	   }
	:: atomic { n[i].open && n[i].rx_acked != n[i].rx_next && nfull(wire[1 - i]) -> SEND(i, ACK) }
	:: atomic {
		n[i].owes && nfull(wire[1 - i]) ->
		SEND(i, (n[i].open -> ACK : LONG));
		n[i].owes = false; n[i].tried = true
	   }
	:: atomic {
		wire[i]?v, from, no, ack ->
		if
		:: HEARS(i) -> take(i)	/* MUTANT old-vi-still-receives (death): HEARS(i) => n[i].vi */
		:: else
		fi;
		v = 0; from = 0; no = 0; ack = 0
	   }
	/* The established event reaches the passive side. */
	:: atomic {
		n[i].vi && !n[i].greeted && n[1 - i].vi == n[i].vi && n[1 - i].greeted ->
		established(i)
	   }
	od
}

/* Messages are queued at any time. */
proctype program(bit i)
{
end:	do
	:: atomic {
		LIVES(i) && n[i].unwritten ->
		n[i].unwritten--; n[i].queued++;
		n[i].wake = n[i].wake || n[i].link == PARKED	/* MUTANT no-wake (park): n[i].link == PARKED => false */
	   }
	od
}

/* ---- failures ---- */

proctype fate(bit i)
{
end:	do
	:: atomic { deaths && n[i].greeted && !n[i].agreed -> deaths--; died(i) }
	:: atomic { reboots -> reboots--; excuse = true; reset(i) }
	od
}

init {
	atomic {
		n[0].wanted = true;
		n[1].wanted = BOTH_WANT;
		fill(0); fill(1);
		run program(0); run program(1);
		run thread(0); run thread(1);
		run lane(0); run lane(1);
		run fate(0); run fate(1)
	}
}

/* ---- properties ---- */

#define BOTH_HAVE_IT	(n[0].peer == n[1].id && n[1].peer == n[0].id)
#define BOTH_UP		(n[0].link == UP && n[1].link == UP && n[0].vi == n[1].vi && BOTH_HAVE_IT)
#define BOTH_PARKED	(n[0].link == PARKED && n[1].link == PARKED && BOTH_HAVE_IT)
#define ARRIVED(i)	(!n[i].unwritten && n[1 - i].rx_next == n[i].queued)
#define ALL_THERE	(ARRIVED(0) && ARRIVED(1) && !FLIGHT(0) && !FLIGHT(1))
/* All but a PARK that was lost with its VI. */
#define ALL_PARKED(i)	(ARRIVED(i) || !n[i].unwritten && n[i].park == n[i].queued && \
			 n[1 - i].rx_next == n[i].queued - 1)
#define BOTH_GONE	(n[0].link == NONE && n[1].link == NONE)
/* It has lost its side, and the other one has nothing to say. */
#define ONE_GONE(i)	(excuse && n[i].link == NONE && n[1 - i].link == PARKED && \
			 !n[1 - i].unwritten && QUIET(1 - i) && !HAS_WORK(1 - i))
#define SETTLED		((BOTH_UP && ALL_THERE) || BOTH_GONE || ONE_GONE(0) || ONE_GONE(1) || \
			 (BOTH_PARKED && ALL_PARKED(0) && ALL_PARKED(1)))

/* In the end both have the link and all messages, or neither has it. */
active proctype watch()
{
	timeout -> assert(SETTLED)
}

/* It settles eventually. */
ltl settles { <> [] SETTLED }

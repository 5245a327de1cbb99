/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Answers to messages without a connection: kmod/lane/credit.h (sovia_credit_hold()),
 * lane_tx.c (sovia_lane_reply(), lane_next()).  They are never dropped: README.rst.
 *
 * Two sides send questions (CONN to a port without a listener), each of which is
 * answered.  Both take credit.
 */

/* The window of both sides, and the questions of each. */
#ifndef W
#define W	2
#endif
#ifndef ASKS
#define ASKS	6
#endif

/* sovia_lane::reply_max needs at least this much. */
#define ROOM	(2 * W)

mtype = { ASK, ANSWER, ACK };

typedef side {
	byte next;	/* messages sent */
	byte una;	/* of them acknowledged */
	byte rx;	/* messages received */
	byte acked;	/* the acknowledgment sent last */
	byte waiting;	/* answers queued */
	byte asks;	/* questions sent */
	byte answers;	/* answers received */
};

side s[2];
chan wire[2] = [3 * W] of { mtype, byte };

#define MAY_SEND(i)	(s[i].next - s[i].una < W)
#define HELD(i)		(s[i].waiting > W -> s[i].waiting - W : 0)	/* MUTANT nothing-held (both): s[i].waiting > W -> s[i].waiting - W : 0 => false -> 0 : 0 */
#define ACK_NO(i)	(s[i].rx - HELD(i) < s[i].acked -> s[i].acked : s[i].rx - HELD(i))
#define DONE		(s[0].answers == ASKS && s[1].answers == ASKS)

inline post(i, type)
{
	s[i].acked = ACK_NO(i);
	wire[i]!type, s[i].acked;
	if
	:: type != ACK -> s[i].next++
	:: else
	fi
}

/* sovia_lane_receive() */
inline receive(i, type, ack)
{
	if
	:: ack > s[i].una -> s[i].una = ack
	:: else
	fi;
	if
	:: type != ACK ->
		assert(s[i].rx - s[i].acked < W);	/* sovia_credit_receive() */
		s[i].rx++
	:: else
	fi;
	if
	:: type == ASK ->
		assert(s[i].waiting < ROOM);
		s[i].waiting++
	:: type == ANSWER -> s[i].answers++
	:: else
	fi
}

proctype node(byte i)
{
	mtype type;
	byte ack;

	do
	:: atomic { wire[1 - i]?type, ack -> receive(i, type, ack) }
	:: atomic { s[i].waiting && MAY_SEND(i) -> s[i].waiting--; post(i, ANSWER) }
	:: atomic { !s[i].waiting && s[i].asks < ASKS && MAY_SEND(i) ->	/* MUTANT questions-first (both): !s[i].waiting && s[i].asks => s[i].asks */
		s[i].asks++;
		post(i, ASK)
	   }
	:: atomic { ACK_NO(i) != s[i].acked -> post(i, ACK) }
	:: DONE -> break
	od
}

init {
	atomic { run node(0); run node(1) }
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections: kmod/sock/state.c, connect.c, listen.c, close.c, upcall.c, and how conn.c
 * and lane_tx.c order messages.  Names are those of the code.
 * README.rst has the bounds and the results.
 *
 * Node 0 connects, node 1 listens.  A pair of ports (key) is used by GENS
 * connections one after the other; sockets x of the two nodes belong together.
 * Messages carry the connection that they belong to (gen); only the assertions use it.
 *
 * The lane keeps order and loses nothing (lane.pml).
 */

#ifndef KEYS
#define KEYS	1
#define GENS	2
#endif
#ifndef DATAS
#define DATAS	2	/* messages that programs send, in total */
#endif
#ifndef ODDS
#define ODDS	1	/* refusals, full backlogs, half closes, aborts */
#endif
#ifndef ROOM
#define ROOM	1	/* messages that fit into the lane */
#endif
#define SOCKS	2	/* KEYS * GENS */

mtype = { CLOSED, SYN_SENT, ESTABLISHED, FIN_WAIT1, FIN_WAIT2, CLOSING, CLOSE_WAIT, LAST_ACK };
mtype = { CONN, ACCEPT, REFUSE, RETRY, DATA, FIN, RESET, NOTHING };
/* Bits of ctl and of deferred, in the order in which they are handled. */
#define C_CONN		1
#define C_ACCEPT	2
#define C_RESET		4
#define D_ACCEPT	1
#define D_REFUSE	2
#define D_RETRY		4
#define D_FIN		8
#define D_RESET		16	/* also with SOVIA_CODE_NONE */
/* Flags of DATA and FIN. */
#define F_FIN		1
#define F_GONE		2

typedef sock {
	mtype state = CLOSED;
	bool used;
	bool aborted;		/* a RESET was sent to the peer */
	bool hashed;
	bool orphan;		/* the program has closed it */
	byte ctl;
	byte deferred;
	bool fin_is_gone;	/* argument of D_FIN */
	byte ref;		/* number of the CONN: conn_seq, or the CONN that ACCEPT answers */
	/* sending: queued DATA, queued FIN (flag of the last DATA, or a message) */
	byte sent;
	byte waiting;
	byte fin;
	bool fin_gone;
	bool fin_posted;
	byte flying;		/* DATA in flight */
	/* receiving */
	bool rx_open;
	bool rx_fin;
	bool rx_closed;
	bool peer_gone;
	byte got;
	byte copied;
};
#define FIN_RIDES	1
#define FIN_ALONE	2

typedef node { sock s[SOCKS] };
node n[2];

#define S(i, x)		n[i].s[x]
#define KEY(x)		((x) / GENS)

/* kind, key, number or code, flags, connection */
chan wire[2] = [ROOM] of { mtype, byte, byte, byte, byte };
chan loose[2] = [3] of { mtype, byte, byte, byte };
chan ctlq[2] = [SOCKS] of { byte };

byte conns;		/* number of the last CONN */
byte datas = DATAS;
byte odds = ODDS;
byte finished;		/* client programs that are done */

/* ---- conn.c, conn_table.c ---- */

/* conn_queue_control() */
inline control(i, x, bits)
{
	S(i, x).aborted = S(i, x).aborted || bits == C_RESET;
	if
	:: bits == C_RESET && (S(i, x).ctl & C_CONN) ->	/* MUTANT reset-without-conn (reuse): S(i, x).ctl & C_CONN => false */
		/* The peer does not know the connection yet. */
		ctlq[i]??eval(x);
		S(i, x).ctl = 0
	:: else ->
		if
		:: S(i, x).ctl == 0 -> ctlq[i]!x
		:: else
		fi;
		if
		:: bits == C_RESET ->
			S(i, x).ctl = S(i, x).ctl & C_ACCEPT	/* MUTANT reset-replaces-accept (reuse): S(i, x).ctl & C_ACCEPT => 0 */
		:: else
		fi;
		S(i, x).ctl = S(i, x).ctl | bits
	fi
}

inline purge(i, x)
{
	S(i, x).waiting = 0; S(i, x).fin = 0; S(i, x).fin_posted = false
}

#define HAS(i, x, key)	(S(i, x).hashed && KEY(x) == key)

/* The socket with these ports, or SOCKS. */
inline lookup(i, key, x)
{
	x = 0;
	do
	:: x < SOCKS && HAS(i, x, key) -> break
	:: x < SOCKS && !HAS(i, x, key) -> x++
	:: x == SOCKS -> break
	od
}

/* ---- state.c, close.c ---- */

/* sovia_destroy(): clear unused fields, so that fewer states differ. */
inline destroy(i, x)
{
	S(i, x).deferred = 0; S(i, x).fin_is_gone = false; S(i, x).sent = 0;
	S(i, x).fin_gone = false; S(i, x).flying = 0; S(i, x).rx_open = false;
	S(i, x).rx_fin = false; S(i, x).rx_closed = false; S(i, x).peer_gone = false;
	S(i, x).got = 0; S(i, x).copied = 0
}

inline finish(i, x)
{
	S(i, x).state = CLOSED;
	S(i, x).hashed = false;
	purge(i, x);
	if
	:: S(i, x).orphan -> destroy(i, x)
	:: else
	fi
}

/* sovia_step(LEAVE) */
inline leave(i, x)
{
	if
	:: S(i, x).state == FIN_WAIT2 || S(i, x).state == CLOSE_WAIT -> finish(i, x)
	:: else
	fi
}

inline abort(i, x)
{
	if
	:: S(i, x).hashed -> purge(i, x); control(i, x, C_RESET)
	:: else
	fi;
	finish(i, x)
}

/* sovia_queue_fin() */
inline queue_fin(i, x, gone)
{
	if
	:: S(i, x).waiting -> S(i, x).fin = FIN_RIDES
	:: true -> S(i, x).fin = FIN_ALONE
	fi;
	S(i, x).fin_gone = gone
}

/* All data has arrived; its acknowledgment may still be in flight. */
#define NO_OUTQ(i, x)	(!S(i, x).waiting && !S(i, x).flying)

inline end_sending(i, x, gone)
{
	if
	:: S(i, x).peer_gone && NO_OUTQ(i, x) && S(i, x).state == CLOSE_WAIT -> finish(i, x) /* MUTANT leave-in-silence (reuse): S(i, x).peer_gone && => */
	:: S(i, x).state == ESTABLISHED -> S(i, x).state = FIN_WAIT1; queue_fin(i, x, gone)
	:: S(i, x).state == CLOSE_WAIT -> S(i, x).state = LAST_ACK; queue_fin(i, x, gone)
	:: else
	fi
}

/* sovia_arm_orphan(); its timer is not needed here. */
inline orphan_looks(i, x)
{
	if
	:: S(i, x).orphan && S(i, x).state == FIN_WAIT2 && S(i, x).fin_gone -> leave(i, x)
	:: else
	fi
}

inline close(i, x)
{
	S(i, x).rx_closed = true;
	if
	:: S(i, x).state == CLOSED
	/* connect() is given up, or SO_LINGER with 0 */
	:: odds && S(i, x).state != CLOSED -> odds--; abort(i, x)
	:: S(i, x).state != SYN_SENT && S(i, x).got != S(i, x).copied -> abort(i, x)
	:: S(i, x).state != SYN_SENT && S(i, x).got == S(i, x).copied -> end_sending(i, x, true)
	fi;
	S(i, x).orphan = true;
	if
	:: S(i, x).state == CLOSED -> destroy(i, x)
	:: else -> orphan_looks(i, x)
	fi
}

/* ---- upcall.c: deferred to the owner of the socket ---- */

inline on_accept(i, x)
{
	if
	:: S(i, x).state == SYN_SENT -> S(i, x).state = ESTABLISHED
	:: else
	fi
}

inline on_refuse(i, x)
{
	if
	:: S(i, x).state == SYN_SENT -> finish(i, x)
	:: else
	fi
}

/* REFUSE with BUSY or NO_MEMORY, and the retry timer. */
inline on_retry(i, x)
{
	if
	:: S(i, x).state == SYN_SENT -> control(i, x, C_CONN)
	:: else
	fi
}

inline on_fin(i, x)
{
	if
	:: S(i, x).state == ESTABLISHED ->
		S(i, x).peer_gone = S(i, x).fin_is_gone; S(i, x).state = CLOSE_WAIT
	:: S(i, x).state == FIN_WAIT1 ->
		S(i, x).peer_gone = S(i, x).fin_is_gone; S(i, x).state = CLOSING
	:: S(i, x).state == FIN_WAIT2 -> finish(i, x)
	:: else
	fi
}

inline on_delivered(i, x)
{
	if
	:: S(i, x).state == FIN_WAIT1 -> S(i, x).state = FIN_WAIT2; orphan_looks(i, x)
	:: S(i, x).state == CLOSING || S(i, x).state == LAST_ACK -> finish(i, x)
	:: else
	fi
}

inline on_reset(i, x)
{
	if
	:: S(i, x).state != CLOSED -> finish(i, x)
	:: else
	fi
}

inline defer(i, x, what)
{
	S(i, x).deferred = S(i, x).deferred | what
}

/* sovia_release_cb() */
inline release(i, x)
{
	todo = S(i, x).deferred; S(i, x).deferred = 0;
	if :: todo & D_ACCEPT -> on_accept(i, x) :: else fi;
	if :: todo & D_REFUSE -> on_refuse(i, x) :: else fi;
	if :: todo & D_RETRY -> on_retry(i, x) :: else fi;
	if :: todo & D_FIN -> on_fin(i, x) :: else fi;
	if :: todo & D_RESET -> on_reset(i, x) :: else fi;
	todo = 0
}

proctype owner(bit i)
{
	byte todo;

end:	do
	:: d_step { S(i, 0).deferred -> release(i, 0) }
	:: d_step { S(i, 1).deferred -> release(i, 1) }
	/* sovia_lane_send_done(): a completion takes any time, so deferring it again adds nothing. */
	:: d_step { S(i, 0).fin_posted -> S(i, 0).fin_posted = false; on_delivered(i, 0) }
	:: d_step { S(i, 1).fin_posted -> S(i, 1).fin_posted = false; on_delivered(i, 1) }
	od
}

/* ---- lane_tx.c ---- */

#define READY(i, x)	(S(i, x).waiting || S(i, x).fin)

inline send_ctl(i)
{
	ctlq[i]?<x>;
	if
	:: S(i, x).ctl & C_CONN ->
		conns++;
		S(i, x).ref = conns;
		wire[1 - i]!CONN, KEY(x), conns, 0, x;
		S(i, x).ctl = S(i, x).ctl & ~C_CONN
	:: !(S(i, x).ctl & C_CONN) && (S(i, x).ctl & C_ACCEPT) ->
		wire[1 - i]!ACCEPT, KEY(x), S(i, x).ref, 0, x;
		S(i, x).ctl = S(i, x).ctl & ~C_ACCEPT
	:: !(S(i, x).ctl & C_CONN) && !(S(i, x).ctl & C_ACCEPT) ->
		wire[1 - i]!RESET, KEY(x), 0, 0, x;
		S(i, x).ctl = 0
	fi;
	if
	:: S(i, x).ctl == 0 -> ctlq[i]?_
	:: else
	fi
}

inline send_stream(i, x)
{
	flags = (S(i, x).fin && S(i, x).fin_gone -> F_FIN | F_GONE : F_FIN);
	if
	:: S(i, x).waiting ->
		if
		:: S(i, x).fin == FIN_RIDES && S(i, x).waiting == 1 ->
			S(i, x).fin = 0; S(i, x).fin_posted = true
		:: else -> flags = 0
		fi;
		wire[1 - i]!DATA, KEY(x), S(i, x).sent - S(i, x).waiting, flags, x;
		S(i, x).waiting--; S(i, x).flying++
	:: else ->
		wire[1 - i]!FIN, KEY(x), S(i, x).sent, flags, x;
		S(i, x).fin = 0; S(i, x).fin_posted = true	/* MUTANT fin-not-told (reuse): S(i, x).fin_posted = true => skip */
	fi;
	flags = 0
}

/* sovia_lane_pump(): replies without a connection, control messages, streams. */
proctype pump(bit i)
{
	byte x, key, no, flags;
	mtype kind = NOTHING;

#define MAY_SEND	nfull(wire[1 - i])
#define NO_CTL		(empty(loose[i]) && empty(ctlq[i]))
end:	do
	:: d_step {
		MAY_SEND && nempty(loose[i]) ->
		loose[i]?kind, key, no, x;
		wire[1 - i]!kind, key, no, 0, x;
		kind = NOTHING; key = 0; no = 0; x = 0
	   }
	:: d_step { MAY_SEND && empty(loose[i]) && nempty(ctlq[i]) -> send_ctl(i); x = 0 }
	:: d_step { MAY_SEND && NO_CTL && READY(i, 0) -> send_stream(i, 0) }
	:: d_step { MAY_SEND && NO_CTL && READY(i, 1) -> send_stream(i, 1) }
	od
}

/* ---- the bottom half: lane_rx.c, rx.c, listen.c ---- */

/* sovia_sock_rx_data() */
inline data_message(i, x)
{
	if
	:: !S(i, x).rx_open		/* meant for an earlier connection */
	:: S(i, x).rx_open && S(i, x).rx_closed ->
		control(i, x, C_RESET);
		defer(i, x, D_RESET)
	:: S(i, x).rx_open && !S(i, x).rx_closed ->
		/* Of this connection, in order, and nothing after the FIN. */
		assert(gen == x);
		assert(no == S(i, x).got);
		assert(!S(i, x).rx_fin);
		S(i, x).got++;
		if
		:: flags & F_FIN -> fin_came(i, x, no + 1)
		:: else
		fi
	fi
}

/* All data has arrived before, unless the receiver has closed: then there is a RESET. */
inline fin_came(i, x, end)
{
	assert(gen == x);
	assert(S(i, x).got == end || S(i, x).rx_closed);
	S(i, x).rx_fin = true;
	S(i, x).fin_is_gone = (flags & F_GONE -> true : false);
	defer(i, x, D_FIN)
}

inline fin_message(i, x)
{
	if
	:: S(i, x).rx_open && !S(i, x).rx_fin -> fin_came(i, x, no)
	:: S(i, x).rx_open && S(i, x).rx_fin -> assert(false)
	:: !S(i, x).rx_open -> skip	/* MUTANT early-fin-counts (reuse): skip => S(i, x).rx_fin = true */
	fi
}

inline dispatch(i)
{
	lookup(i, key, x);
	if
	:: x == SOCKS ->
		if
		:: kind == DATA || kind == ACCEPT -> loose[i]!RESET, key, 0, gen
		:: else
		fi
	:: x < SOCKS && kind == DATA -> data_message(i, x)
	:: x < SOCKS && kind == FIN -> fin_message(i, x)
	:: x < SOCKS && kind == RESET ->
		if
		/* Before ACCEPT it belongs to an earlier connection. */
		:: S(i, x).rx_open ->	/* MUTANT reset-before-accept (reuse): S(i, x).rx_open => true */
			/* Of this connection, or no program has the socket, or it is reset anyway. */
			assert(gen == x || S(i, x).orphan || S(1 - i, x).aborted);
			defer(i, x, D_RESET)
		:: else
		fi
	:: x < SOCKS && kind == ACCEPT ->
		if
		:: no == S(i, x).ref && S(i, x).state == SYN_SENT ->	/* MUTANT ref-not-compared (reuse): no == S(i, x).ref && => */
			assert(gen == x);
			S(i, x).rx_open = true;
			defer(i, x, D_ACCEPT)
		:: else
		fi
	:: x < SOCKS && (kind == REFUSE || kind == RETRY) ->
		if
		:: no == S(i, x).ref ->
			assert(gen == x);
			defer(i, x, (kind == REFUSE -> D_REFUSE : D_RETRY))
		:: else
		fi
	fi;
	if
	:: kind == DATA && S(1 - i, gen).flying -> S(1 - i, gen).flying--
	:: else
	fi
}

/*
 * answer_conn(): a child, if the predecessor has left its ports.  Otherwise the
 * client has to retry, perhaps often; the model waits instead of modelling retries
 * that make no difference.
 */
inline answer_conn(i)
{
	if
	:: x == SOCKS && !S(i, gen).used ->
		S(i, gen).used = true;
		S(i, gen).hashed = true;
		S(i, gen).ref = no;
		S(i, gen).rx_open = true;
		S(i, gen).state = ESTABLISHED;
		control(i, gen, C_ACCEPT)
	:: odds -> odds--; loose[i]!RETRY, key, no, gen
	:: x == SOCKS && (odds || S(i, gen).used) ->	/* no listener */
		odds = (odds -> odds - 1 : 0);
		loose[i]!REFUSE, key, no, gen
	fi
}

/* drop_predecessor() */
inline drop_predecessor(i)
{
	lookup(i, key, x);
	if
	:: x < SOCKS && S(i, x).rx_open -> defer(i, x, D_RESET)
	:: else
	fi
}

inline forget()
{
	kind = NOTHING; key = 0; no = 0; flags = 0; gen = 0; x = 0
}

proctype bottom_half(bit i)
{
	byte x, key, no, flags, gen;
	mtype kind = NOTHING;

end:	do
	:: d_step {
		nempty(wire[i]) && !wire[i]?[CONN, _, _, _, _] ->
		wire[i]?kind, key, no, flags, gen;
		dispatch(i);
		forget()
	   }
	:: d_step { wire[i]?CONN, key, no, flags, gen -> drop_predecessor(i) };
	   atomic {
		odds || !HAS(i, 0, key) && !HAS(i, 1, key) ->
		lookup(i, key, x);
		answer_conn(i);
		forget()
	   }
	od
}

/* ---- programs ---- */

#define CAN_SEND(i, x)	(S(i, x).state == ESTABLISHED || S(i, x).state == CLOSE_WAIT)

inline use(i, x)
{
	do
	:: atomic { CAN_SEND(i, x) && datas -> datas--; S(i, x).sent++; S(i, x).waiting++ }
	:: atomic { S(i, x).copied < S(i, x).got -> S(i, x).copied++ }
	:: atomic { CAN_SEND(i, x) && odds -> odds--; end_sending(i, x, false) }	/* shutdown() */
	:: atomic { S(i, x).state != SYN_SENT || odds -> close(i, x); break }
	od
}

proctype client(byte key)
{
	byte x = key * GENS;

	do
	:: x < (key + 1) * GENS ->
		atomic {
			S(0, x).hashed = true; S(0, x).state = SYN_SENT;
			control(0, x, C_CONN)
		};
		use(0, x);
		S(0, x).state == CLOSED;
		x++
	:: else -> break
	od;
	finished++
}

proctype server(byte x)
{
end:	S(1, x).used;
	use(1, x)
}

init {
	atomic {
		run client(0);
#if KEYS == 2
		run client(1);
#endif
		run server(0); run server(1);
		run owner(0); run owner(1);
		run pump(0); run pump(1);
		run bottom_half(0); run bottom_half(1)
	}
}

/* ---- properties ---- */

#define OVER(i)		(S(i, 0).state == CLOSED && S(i, 1).state == CLOSED)

#define DONE		(finished == KEYS && OVER(0) && OVER(1))

/* No deadlock. */
active proctype watch()
{
	timeout -> assert(DONE)
}

/* Whatever the programs do, all connections end. */
ltl closes { <> [] DONE }

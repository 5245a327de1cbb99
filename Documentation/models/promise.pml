/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A window that is given back: PRESSURE and RETURN (limits.rst).  One direction of a connection:
 * the sender's process and bottom half, the receiver's bottom half, its reader, and the memory.
 * Names are those of the code; one atomic step is done under one lock there.  README.rst has the
 * bounds and the results.
 */

/* Bytes of the stream, windows of both sizes, and how often memory is short. */
#ifndef TOTAL
#define TOTAL		6
#endif
#ifndef BIG
#define BIG		3
#endif
#ifndef FLOOR
#define FLOOR		1
#endif
/* What PRESSURE leaves, which is not granted again while memory is short. */
#ifndef LEFT
#define LEFT		FLOOR
#endif
#ifndef PRESSURES
#define PRESSURES	2
#endif

/*
 * A message of an earlier connection on the same ports, which one end gets before ACCEPT: 1, the
 * receiver, RETURN; 2, the sender, a window.
 */
#ifndef STRAY
#define STRAY		0
#endif

/* Other messages of the receiver, which carry the window as well. */
#ifndef MESSAGES
#define MESSAGES	1
#endif

#define MAX(a, b)	((a) > (b) -> (a) : (b))
#define MIN(a, b)	((a) < (b) -> (a) : (b))

mtype = { DATA, RETURN, WINDOW, PRESSURE, ACCEPT };
/* The lane: in order, and what takes credit is bounded. */
chan to_receiver = [3] of { mtype, byte };
chan to_sender = [3] of { mtype, byte };

/* The sender: tx.nxt, tx.wnd_end, messages that wait for the lane, deferred work, RETURN to send. */
byte tx_nxt, tx_wnd_end, txq;
bool asked, owes;
byte asked_edge, owes_edge;

/* rx.open of either end. */
bool rx_open = (STRAY != 1), tx_open = (STRAY != 2);

/* The receiver: rx.nxt, rx.copied, what it tells, has told, what it takes, control messages. */
byte rx_nxt, rx_copied, rcv_wnd_end, rcv_wnd_sent, rcv_wnd_most;
bool ctl_pressure, ctl_wakeup;
byte pressures = PRESSURES, messages = MESSAGES;

/*
 * The memory: AMPLE, windows grow; HELD, above the mark from which they are asked back, they do not;
 * SHORT, above the limit, they are the smallest.  @promised: what the ledger has of this window.
 */
mtype = { AMPLE, HELD, SHORT };
mtype memory_is = AMPLE;
byte promised, size = BIG;

#define LOWERING	(rcv_wnd_end != rcv_wnd_most)

/* sovia_mem_window() of window_size() */
inline measure()
{
	if
	:: memory_is == AMPLE -> size = BIG
	:: memory_is == HELD -> size = MAX(promised, FLOOR)
	:: memory_is == SHORT -> size = FLOOR
	fi
}

/* open_window() */
inline open_window(limit)
{
	measure();
	size = MIN(size, limit);
	if
	:: !LOWERING && rcv_wnd_end < rx_copied + size ->	/* MUTANT not-frozen (one): !LOWERING => true */
		rcv_wnd_end = rx_copied + size;
		rcv_wnd_most = rcv_wnd_end
	:: else
	fi;
	promised = rcv_wnd_most - rx_copied
}

/* sovia_rx_advance() */
inline advance()
{
	open_window(BIG)
}

/* tell_window() */
inline tell()
{
	if
	:: !LOWERING && rcv_wnd_end > rcv_wnd_sent && (rcv_wnd_end - rcv_wnd_sent) * 2 >= size ->
		ctl_wakeup = true
	:: else
	fi
}

/* sendmsg(), and what the owner of the socket does later. */
active proctype sender()
{
end:	do
	:: atomic { tx_nxt < TOTAL && tx_nxt < tx_wnd_end -> tx_nxt++; txq++ }
	:: atomic {
		asked ->
		asked = false;
		owes_edge = MAX(tx_nxt, asked_edge);	/* MUTANT return-below (one): MAX(tx_nxt, asked_edge) => asked_edge */
		tx_wnd_end = owes_edge;	/* MUTANT keeps-window (one): tx_wnd_end = owes_edge => skip */
		owes = true
	   }
	od
}

/* The sender's lane: control messages first. */
active proctype sender_lane()
{
end:	do
	:: atomic { owes && nfull(to_receiver) -> to_receiver!RETURN(owes_edge); owes = false }
	:: atomic { !owes && txq && nfull(to_receiver) -> to_receiver!DATA(0); txq-- }
	od
}

active proctype sender_bottom_half()
{
	byte w;

end:	do
	:: atomic {
		to_sender?WINDOW(w) ->
		if
		:: tx_open ->	/* MUTANT window-of-before (stray-window): tx_open => true */
			tx_wnd_end = MAX(tx_wnd_end, w)
		:: else
		fi;
		w = 0
	   }
	:: atomic { to_sender?ACCEPT(w) -> tx_open = true; tx_wnd_end = MAX(tx_wnd_end, w); w = 0 }
	:: atomic {
		to_sender?PRESSURE(w) ->
		asked = true;
		/* It may be news: room that had not been told. */
		asked_edge = w;	/* MUTANT never-raises (untold): asked_edge = w => asked_edge = MIN(w, tx_wnd_end) */
		w = 0
	   }
	od
}

active proctype receiver_bottom_half()
{
	byte edge;

end:	do
	:: atomic {
		to_receiver?DATA(_) ->
		/* data_check(): what is promised is taken. */
		assert(rx_nxt < rcv_wnd_most);
		rx_nxt++
	   }
	:: atomic {
		to_receiver?RETURN(edge) ->
		if
		:: rx_open ->	/* MUTANT return-of-before (stray-return): rx_open => true */
			assert(LOWERING && edge >= rx_nxt && edge <= rcv_wnd_most);
			rcv_wnd_end = edge;
			rcv_wnd_most = edge;
			promised = rcv_wnd_most - rx_copied;
			open_window(LEFT);	/* MUTANT promised-again (floor): open_window(LEFT) => open_window(BIG) */
			/* What came back stays back. */
			assert(rcv_wnd_most <= MAX(edge, rx_copied + LEFT));
			tell()	/* MUTANT return-untold (one): tell() => skip */
		:: else
		fi;
		edge = 0
	   }
	:: atomic { to_receiver?ACCEPT(_) -> rx_open = true }
	od
}

active proctype reader()
{
end:	do
	:: atomic { rx_copied < rx_nxt -> rx_copied++; advance(); tell() }
	od
}

/* The receiver's lane; any message carries the window. */
active proctype receiver_lane()
{
end:	do
	:: atomic {
		ctl_pressure && nfull(to_sender) ->
		to_sender!PRESSURE(rcv_wnd_end); rcv_wnd_sent = rcv_wnd_end; ctl_pressure = false
	   }
	:: atomic {
		ctl_wakeup && nfull(to_sender) ->
		to_sender!WINDOW(rcv_wnd_end); rcv_wnd_sent = rcv_wnd_end; ctl_wakeup = false
	   }
	:: atomic {
		messages && nfull(to_sender) ->
		to_sender!WINDOW(rcv_wnd_end); rcv_wnd_sent = rcv_wnd_end; messages--
	   }
	od
}

/* sovia_rx_lower() */
active proctype memory()
{
end:	do
	:: atomic {
		pressures && !LOWERING && rcv_wnd_most > MAX(rx_nxt, rx_copied + LEFT) ->
		rcv_wnd_end = MAX(rx_nxt, rx_copied + LEFT);
		ctl_pressure = true;
		if
		:: memory_is = HELD
		:: memory_is = SHORT
		fi;
		pressures--
	   }
	:: atomic { memory_is != AMPLE -> memory_is = AMPLE }
	od
}

active proctype watch()
{
end:	do
	/* Promises are never more than was entered in the ledger. */
	:: atomic { rcv_wnd_most > rx_copied + BIG -> assert(false) }
	/* At the end everything has been read, and nothing is owed. */
	:: atomic { timeout -> assert(rx_copied == TOTAL && !LOWERING && !owes && !asked); break }
	od
}

init {
	atomic {
		rcv_wnd_end = BIG;
		rcv_wnd_sent = BIG;
		rcv_wnd_most = BIG;
		promised = BIG;
		if
		:: STRAY == 1 -> to_receiver!RETURN(FLOOR); to_receiver!ACCEPT(0); tx_wnd_end = BIG
		:: STRAY == 2 -> to_sender!WINDOW(BIG + 1); to_sender!ACCEPT(BIG)
		:: else -> tx_wnd_end = BIG
		fi
	}
}

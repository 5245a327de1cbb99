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
#ifndef PRESSURES
#define PRESSURES	2
#endif

/* Other messages of the receiver, which carry the window as well. */
#ifndef MESSAGES
#define MESSAGES	1
#endif

#define MAX(a, b)	((a) > (b) -> (a) : (b))

mtype = { DATA, RETURN, WINDOW, PRESSURE };
/* The lane: in order, and what takes credit is bounded. */
chan to_receiver = [3] of { mtype, byte };
chan to_sender = [3] of { mtype, byte };

/* The sender: tx.nxt, tx.wnd_end, messages that wait for the lane, deferred work, RETURN to send. */
byte tx_nxt, tx_wnd_end, txq;
bool asked, owes;
byte asked_edge, owes_edge;

/* The receiver: rx.nxt, rx.copied, what it tells, has told, what it takes, control messages. */
byte rx_nxt, rx_copied, rcv_wnd_end, rcv_wnd_sent, rcv_wnd_most;
bool ctl_pressure, ctl_wakeup;
byte size = BIG, pressures = PRESSURES, messages = MESSAGES;

#define LOWERING	(rcv_wnd_end != rcv_wnd_most)

/* sovia_rx_advance() */
inline advance()
{
	if
	:: !LOWERING && rcv_wnd_end < rx_copied + size ->	/* MUTANT not-frozen (one): !LOWERING => true */
		rcv_wnd_end = rx_copied + size;
		rcv_wnd_most = rcv_wnd_end
	:: else
	fi
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
	:: atomic { to_sender?WINDOW(w) -> tx_wnd_end = MAX(tx_wnd_end, w); w = 0 }
	:: atomic { to_sender?PRESSURE(w) -> asked = true; asked_edge = w; w = 0 }
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
		assert(LOWERING && edge >= rx_nxt && edge <= rcv_wnd_most);
		rcv_wnd_end = edge;
		rcv_wnd_most = edge;
		advance();
		tell();	/* MUTANT return-untold (one): tell() => skip */
		edge = 0
	   }
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
		messages && rcv_wnd_sent != rcv_wnd_end && nfull(to_sender) ->
		to_sender!WINDOW(rcv_wnd_end); rcv_wnd_sent = rcv_wnd_end; messages--
	   }
	od
}

/* sovia_rx_lower() */
active proctype memory()
{
end:	do
	:: atomic {
		pressures && !LOWERING && rcv_wnd_most > MAX(rx_nxt, rx_copied + FLOOR) ->
		rcv_wnd_end = MAX(rx_nxt, rx_copied + FLOOR);
		ctl_pressure = true;
		size = FLOOR;
		pressures--
	   }
	:: atomic { size == FLOOR -> size = BIG }
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
		tx_wnd_end = BIG
	}
}

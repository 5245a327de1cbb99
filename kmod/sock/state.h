/* SPDX-License-Identifier: GPL-2.0-only */
/* States of a connection: SOVIA figure 11 under TCP's names. */
#ifndef _SOVIA_STATE_H
#define _SOVIA_STATE_H

#include <linux/types.h>

struct sock;

/**
 * enum sovia_event - events that change a socket's state
 * @SOVIA_EV_LISTEN: listen()
 * @SOVIA_EV_CONNECT: connect()
 * @SOVIA_EV_PASSIVE: created for a listener
 * @SOVIA_EV_ACCEPT: ACCEPT has arrived
 * @SOVIA_EV_CLOSE: close() or shutdown() of the sending half: FIN is sent
 * @SOVIA_EV_FIN: FIN has arrived
 * @SOVIA_EV_DELIVERED: our FIN has been delivered
 * @SOVIA_EV_LEAVE: one side has closed its socket, so no message needs to follow
 * @SOVIA_EV_ABORT: the connection ends for any other reason
 * @SOVIA_EV_COUNT: number of events
 */
enum sovia_event {
	SOVIA_EV_LISTEN,
	SOVIA_EV_CONNECT,
	SOVIA_EV_PASSIVE,
	SOVIA_EV_ACCEPT,
	SOVIA_EV_CLOSE,
	SOVIA_EV_FIN,
	SOVIA_EV_DELIVERED,
	SOVIA_EV_LEAVE,
	SOVIA_EV_ABORT,
	SOVIA_EV_COUNT
};

u8 sovia_state_next(u8 state, enum sovia_event event);
bool sovia_state_event(struct sock *sk, enum sovia_event event);
const char *sovia_state_name(u8 state);

#endif /* _SOVIA_STATE_H */

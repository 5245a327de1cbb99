/* SPDX-License-Identifier: GPL-2.0-only */
/* Which faults are to happen: fault.c decides, fault_vi.c does it. */
#ifndef _SOVIA_FAULT_KIND_H
#define _SOVIA_FAULT_KIND_H

#include "provider.h"

/**
 * enum fault_kind - what can happen
 * @FAULT_CONNECT: connect and accept fail at once, with @error
 * @FAULT_SETUP: closed with @error comes where established should
 * @FAULT_HELLO: established comes without the peer's hello
 * @FAULT_LATE: established comes @delay ms late
 * @FAULT_POST: post_send fails with @error
 * @FAULT_DELAY: a message is sent @delay ms late
 * @FAULT_DROP: a message is lost, and the VI dies of @error
 * @FAULT_CLOSE: a message is sent, and the VI dies of @error
 * @FAULT_SENT: sent comes @delay ms late
 * @FAULT_LOSE: a message that arrives is lost, without an error
 * @FAULT_TWICE: a message arrives twice
 * @FAULT_SWAP: a message arrives after the next one, or @delay ms late
 * @FAULT_SHORT: a message arrives without one of its packets, without an error
 * @FAULT_STARVE: there is no memory for a descriptor for @delay ms
 * @FAULT_KINDS: how many there are
 */
enum fault_kind {
	FAULT_CONNECT,
	FAULT_SETUP,
	FAULT_HELLO,
	FAULT_LATE,
	FAULT_POST,
	FAULT_DELAY,
	FAULT_DROP,
	FAULT_CLOSE,
	FAULT_SENT,
	FAULT_LOSE,
	FAULT_TWICE,
	FAULT_SWAP,
	FAULT_SHORT,
	FAULT_STARVE,
	FAULT_KINDS
};

bool sovia_fault_applies(const struct sovia_provider *prov);
bool sovia_fault_wanted(enum fault_kind kind);
bool sovia_fault_fires(enum fault_kind kind);
int sovia_fault_error(enum fault_kind kind);
unsigned int sovia_fault_delay(enum fault_kind kind);

#endif /* _SOVIA_FAULT_KIND_H */

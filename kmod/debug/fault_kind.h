/* SPDX-License-Identifier: GPL-2.0-only */
/* Kinds of faults: fault.c configures, fault_vi.c implements them. */
#ifndef _SOVIA_FAULT_KIND_H
#define _SOVIA_FAULT_KIND_H

#include "core/provider.h"

/**
 * enum fault_kind - kinds of faults
 * @FAULT_CONNECT: connect and accept fail at once, with @error
 * @FAULT_SETUP: closed with @error is called instead of established
 * @FAULT_HELLO: established is called without the peer's hello
 * @FAULT_LATE: established is called @delay ms late
 * @FAULT_POST: post_send fails with @error
 * @FAULT_DELAY: a message is sent @delay ms late
 * @FAULT_DROP: a message is lost, and the VI fails with @error
 * @FAULT_CLOSE: a message is sent, and the VI fails with @error
 * @FAULT_SENT: send_done is called @delay ms late
 * @FAULT_LOSE: a received message is lost, without an error
 * @FAULT_TWICE: a message is received twice
 * @FAULT_SWAP: a message is received after the next one, or @delay ms late
 * @FAULT_SHORT: a message is received without one of its packets, without an error
 * @FAULT_STARVE: a receive descriptor stays unposted for @delay ms
 * @FAULT_DRAIN: a VI on verbs that ends is not drained
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
	FAULT_DRAIN,
	FAULT_KINDS
};

bool sovia_fault_applies(const struct sovia_provider *prov);
bool sovia_fault_wanted(enum fault_kind kind);
bool sovia_fault_fires(enum fault_kind kind);
int sovia_fault_error(enum fault_kind kind);
unsigned int sovia_fault_delay(enum fault_kind kind);

#endif /* _SOVIA_FAULT_KIND_H */

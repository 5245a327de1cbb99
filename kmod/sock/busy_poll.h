/* SPDX-License-Identifier: GPL-2.0-only */
/* Spinning for data instead of sleeping. */
#ifndef _SOVIA_BUSY_POLL_H
#define _SOVIA_BUSY_POLL_H

#include "sock.h"

void sovia_busy_wait(struct sock *sk, bool nonblock);

#endif /* _SOVIA_BUSY_POLL_H */

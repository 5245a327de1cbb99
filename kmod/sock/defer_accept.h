/* SPDX-License-Identifier: GPL-2.0-only */
/* TCP_DEFER_ACCEPT. */
#ifndef _SOVIA_DEFER_ACCEPT_H
#define _SOVIA_DEFER_ACCEPT_H

#include "sock.h"

void sovia_await_start(struct sock *listener, struct sock *child);
void sovia_await_end(struct sock *listener, struct sock *child);
void sovia_await_timeout(struct sock *child);

#endif /* _SOVIA_DEFER_ACCEPT_H */

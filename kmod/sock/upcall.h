/* SPDX-License-Identifier: GPL-2.0-only */
/* Upcalls of the link layer, and the socket's timer. */
#ifndef _SOVIA_UPCALL_H
#define _SOVIA_UPCALL_H

#include "sock.h"

extern const struct sovia_client sovia_sock_client;
extern void (* const sovia_deferred_handlers[SOVIA_DEFER_COUNT])(struct sock *sk, u32 arg);
void sovia_sk_timeout(struct timer_list *timer);

#endif /* _SOVIA_UPCALL_H */

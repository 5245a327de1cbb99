/* SPDX-License-Identifier: GPL-2.0-only */
/* Work that the bottom half defers to the owner of a socket. */
#ifndef _SOVIA_DEFER_H
#define _SOVIA_DEFER_H

#include "sock.h"

void sovia_release_cb(struct sock *sk);
void sovia_defer_sock(struct sock *sk, enum sovia_deferred what, u32 arg);
void sovia_defer_now(struct sovia_conn *conn, enum sovia_deferred what, u32 arg);
void sovia_defer(struct sovia_conn *conn, enum sovia_deferred what, u32 arg);

#endif /* _SOVIA_DEFER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* shutdown(), close(), FIN and RESET. */
#ifndef _SOVIA_CLOSE_H
#define _SOVIA_CLOSE_H

#include "sock.h"

void sovia_close(struct sock *sk, long timeout);
void sovia_shutdown(struct sock *sk, int how);
int sovia_disconnect(struct sock *sk, int flags);
bool sovia_step(struct sock *sk, enum sovia_event event);
void sovia_done(struct sock *sk, int err);
void sovia_abort(struct sock *sk, int err, u32 code);
void sovia_destroy(struct sock *sk);
void sovia_retire(struct sock *sk);
void sovia_leave_link(struct sock *sk);
void sovia_discard_child(struct sock *child);
void sovia_orphan_timeout(struct sock *sk);
void sovia_arm_orphan(struct sock *sk);

#endif /* _SOVIA_CLOSE_H */

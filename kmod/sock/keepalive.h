/* SPDX-License-Identifier: GPL-2.0-only */
/* Keepalive and TCP_USER_TIMEOUT. */
#ifndef _SOVIA_KEEPALIVE_H
#define _SOVIA_KEEPALIVE_H

#include "sock.h"

unsigned long sovia_keepidle(const struct sock *sk);
unsigned long sovia_keepintvl(const struct sock *sk);
unsigned int sovia_keepcnt(const struct sock *sk);
bool sovia_alive_wanted(const struct sock *sk);
void sovia_alive_start(struct sock *sk);
void sovia_alive_timeout(struct sock *sk);
void sovia_keepalive(struct sock *sk, int on);

#endif /* _SOVIA_KEEPALIVE_H */

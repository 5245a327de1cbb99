/* SPDX-License-Identifier: GPL-2.0-only */
/* connect(), and the client's half of set-up. */
#ifndef _SOVIA_CONNECT_H
#define _SOVIA_CONNECT_H

#include "sock.h"

int sovia_connect(struct sock *sk, struct sockaddr_unsized *uaddr, int addr_len);
void sovia_link_came_up(struct sock *sk);
void sovia_link_barred(struct sock *sk, int err);
void sovia_link_went_down(struct sock *sk, int err);
void sovia_accepted(struct sock *sk);
void sovia_refused(struct sock *sk, u32 code);
void sovia_connect_timeout(struct sock *sk);
unsigned int sovia_retry_seconds(unsigned int retries);

#endif /* _SOVIA_CONNECT_H */

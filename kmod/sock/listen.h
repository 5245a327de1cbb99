/* SPDX-License-Identifier: GPL-2.0-only */
/* listen() and accept(), and the server's half of set-up. */
#ifndef _SOVIA_LISTEN_H
#define _SOVIA_LISTEN_H

#include "compat/accept.h"
#include "sock.h"

int sovia_listen(struct socket *sock, int backlog);
int sovia_accept(struct socket *sock, struct socket *newsock, struct sovia_accept_arg *arg);
struct sock *sovia_accept_dequeue(struct sock *sk, int flags, int *err);
bool sovia_acceptable(struct sock *sk);
void sovia_listen_stop(struct sock *sk);
void sovia_children_pending(struct sock *listener);
void sovia_sock_rx_conn(struct sovia_lane *lane, struct sk_buff *skb,
			const struct sovia_msg *msg);

#endif /* _SOVIA_LISTEN_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Received data and memory control groups. */
#ifndef _SOVIA_CHARGE_H
#define _SOVIA_CHARGE_H

#include "compat/memcg.h"
#include "sock.h"

int sovia_charge_init(void);
void sovia_charge_exit(void);
void sovia_charge_begin(struct sock *sk);
void sovia_charge(struct sock *sk, const struct sk_buff *skb);
void sovia_uncharge(struct sock *sk, const struct sk_buff *skb);

/* Is the group of the socket short of memory?  Its windows should be the smallest then. */
static inline bool sovia_charge_short(const struct sock *sk)
{
	return READ_ONCE(sovia_sk(sk)->rx.pays) && sovia_memcg(sk) && sovia_memcg_short(sk);
}

#endif /* _SOVIA_CHARGE_H */

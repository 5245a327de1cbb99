/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits of all sockets together. */
#ifndef _SOVIA_MEM_H
#define _SOVIA_MEM_H

#include "sock.h"

int sovia_mem_init(void);
void sovia_mem_exit(void);
bool sovia_mem_ample(void);
bool sovia_mem_short(void);
bool sovia_mem_none(void);
void sovia_own_rx(struct sk_buff *skb, struct sock *sk);
void sovia_own_tx(struct sk_buff *skb, struct sock *sk);
void sovia_grow_tx(struct sk_buff *skb, u32 len);
bool sovia_orphan_begin(struct sock *sk);
void sovia_orphan_end(struct sock *sk);

#endif /* _SOVIA_MEM_H */

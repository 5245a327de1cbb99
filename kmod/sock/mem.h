/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits of all sockets together. */
#ifndef _SOVIA_MEM_H
#define _SOVIA_MEM_H

#include "sock.h"

/*
 * The smallest buffers, as tcp_rmem[0] and tcp_wmem[0] have them at first.  The root of a namespace
 * sets its own: they may be less, not more.
 */
#define SOVIA_RCVBUF_LEAST	4096
#define SOVIA_SNDBUF_LEAST	4096

/* The first window of a connection when its tenant has half of its share: a message. */
#define SOVIA_WINDOW_FIRST	16384

void sovia_mem_init(void);
bool sovia_mem_ample(const struct sock *sk);
bool sovia_mem_short(const struct sock *sk);
bool sovia_mem_none(const struct sock *sk);
s64 sovia_mem_cost(u32 bytes);
u32 sovia_mem_floor(const struct sock *sk);
int sovia_mem_least_sndbuf(const struct sock *sk);
u32 sovia_mem_window(const struct sock *sk, u32 size);
void sovia_mem_promise(struct sock *sk, u32 bytes);
s64 sovia_mem_excess(const struct sock *sk);
void sovia_own_tx(struct sk_buff *skb, struct sock *sk);
void sovia_grow_tx(struct sk_buff *skb, u32 len);
bool sovia_orphan_begin(struct sock *sk);
void sovia_orphan_end(struct sock *sk);

#endif /* _SOVIA_MEM_H */

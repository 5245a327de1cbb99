/* SPDX-License-Identifier: GPL-2.0-only */
/* Limits of all sockets together. */
#ifndef _SOVIA_MEM_H
#define _SOVIA_MEM_H

#include "sock.h"

/*
 * The smallest send buffer, as tcp_wmem[0] has it at first.  The root of a namespace sets its own:
 * it may be less, not more.
 */
#define SOVIA_SNDBUF_LEAST	4096

/* A connection begins with it, if that is more than tcp_wmem[1], tcp_rmem[1]: no slow start. */
#define SOVIA_BUF_FIRST		(208 * 1024)
/* None grows larger: what counts them is an int. */
#define SOVIA_BUF_MOST		(INT_MAX / 2)

/* The first window of a connection when its tenant has half of its share: a message. */
#define SOVIA_WINDOW_FIRST	16384

/*
 * What arrives in the smallest window is gathered in a buffer of each of these sizes: rx.c.  They
 * hold as many bytes of it, and take as much memory, with their struct sk_buffs.
 */
#define SOVIA_LEAST_FIRST	SKB_WITH_OVERHEAD(1024)
#define SOVIA_LEAST_SECOND	SKB_WITH_OVERHEAD(2048)
#define SOVIA_WINDOW_LEAST	((u32)(SOVIA_LEAST_FIRST + SOVIA_LEAST_SECOND))
#define SOVIA_LEAST_COST	(1024 + 2048 + 2 * SKB_DATA_ALIGN(sizeof(struct sk_buff)))
/* Until all has been read that was there when the window became the smallest: larger buffers. */
#define SOVIA_LEAST_COST_OLD	(2 * (4096 + SKB_DATA_ALIGN(sizeof(struct sk_buff))))

int sovia_mem_init(void);
bool sovia_mem_ample(const struct sock *sk);
bool sovia_mem_short(const struct sock *sk);
bool sovia_mem_none(const struct sock *sk);
s64 sovia_mem_cost(const struct sock *sk, u32 bytes);
u32 sovia_mem_floor(const struct sock *sk);
int sovia_mem_least_sndbuf(const struct sock *sk);
void sovia_mem_buffers(struct sock *sk);
u32 sovia_mem_window(const struct sock *sk, u32 size, u32 kept);
void sovia_mem_promise(struct sock *sk, u32 bytes);
void sovia_mem_asked(struct sock *sk, s64 bytes);
void sovia_mem_lend(struct sock *sk);
s64 sovia_mem_excess(enum sovia_lent list);
bool sovia_mem_is_due(enum sovia_lent list);
s64 sovia_mem_beyond_share(const struct sovia_tenant *tenant);
void sovia_own_tx(struct sk_buff *skb, struct sock *sk);
void sovia_grow_tx(struct sk_buff *skb, u32 len);
bool sovia_orphan_begin(struct sock *sk);
void sovia_orphan_end(struct sock *sk);

#endif /* _SOVIA_MEM_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Urgent data. */
#ifndef _SOVIA_URGENT_H
#define _SOVIA_URGENT_H

#include "sock.h"

/* States of the urgent mark: see urgent.c. */
enum sovia_urgent {
	SOVIA_URG_NONE,
	SOVIA_URG_EXPECTED,
	SOVIA_URG_HERE,
	SOVIA_URG_TAKEN,
};

void sovia_urgent_message(struct sock *sk, u32 pos);
bool sovia_urgent_data(struct sock *sk, const struct sk_buff *skb, u32 len);
u32 sovia_urgent_cut(const struct sock *sk, u32 pos, u32 avail, bool *skip);
void sovia_urgent_passed(struct sock *sk, u32 len, bool more);
u32 sovia_rx_start(struct sock *sk);
bool sovia_at_mark(const struct sock *sk, u32 pos);
int sovia_recv_urgent(struct sock *sk, struct msghdr *msg, size_t len, int flags);
void sovia_send_urgent(struct sock *sk);

#endif /* _SOVIA_URGENT_H */

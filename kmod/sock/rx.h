/* SPDX-License-Identifier: GPL-2.0-only */
/* From the lane to the receive queue, and the window. */
#ifndef _SOVIA_RX_H
#define _SOVIA_RX_H

#include "sock.h"

bool sovia_sock_rx_data(struct sovia_conn *conn, struct sk_buff *skb,
			const struct sovia_msg *msg);
bool sovia_sock_rx_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len);
bool sovia_rx_keep(struct sock *sk, struct sk_buff *skb);
bool sovia_rx_accepted(struct sock *sk, const struct sovia_conn *conn,
		       const struct sovia_msg *msg);
void sovia_rx_join(struct sock *sk, struct sovia_conn *conn, bool open);
void sovia_rx_leave(struct sock *sk);
bool sovia_rx_close(struct sock *sk);
void sovia_rx_advance(struct sock *sk);
void sovia_rx_settle(struct sock *sk);
void sovia_rx_over(struct sock *sk);
void sovia_rx_purge(struct sock *sk);
void sovia_rx_may_ask(struct sock *sk);
s64 sovia_rx_lower(struct sock *sk, enum sovia_lent list);
void sovia_rx_forget_asked(struct sock *sk);
bool sovia_rx_returned(struct sock *sk, u32 end);
bool sovia_rx_fin(struct sock *sk, const struct sovia_msg *msg);
void sovia_rx_stamp(const struct sock *sk, struct sk_buff *skb);
bool sovia_rx_enough(const struct sovia_sock *ss, u32 start, int target);
void sovia_rx_ready(struct sock *sk, struct sovia_conn *conn, bool urgent);

#endif /* _SOVIA_RX_H */

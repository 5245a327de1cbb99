/* SPDX-License-Identifier: GPL-2.0-only */
/* From the receive queue to the program. */
#ifndef _SOVIA_RECV_H
#define _SOVIA_RECV_H

#include "sock.h"

/**
 * struct sovia_rx_cb - skb->cb of received data in sk_receive_queue
 * @off: bytes of it that the program has read.  Socket lock.
 * @own: its memory is the receiver's, not that of a sender within this host.  Constant.
 * @gathers: it is a buffer that small payloads are copied to
 * @arrived: when its first byte did, for a histogram, or 0
 */
struct sovia_rx_cb {
	u32	off;
	bool	own;
	bool	gathers;
	u64	arrived;
};

#define SOVIA_RX_CB(skb)	((struct sovia_rx_cb *)(skb)->cb)

/**
 * struct sovia_sink - where received data goes
 * @recv_actor: take @len bytes at @off of @skb; socket lock held.  Returns the number
 *	taken, 0 or a negative errno if none.
 * @stops: reading stops at the urgent mark, inline or not
 */
struct sovia_sink {
	int (*recv_actor)(struct sovia_sink *sink, struct sock *sk, struct sk_buff *skb,
			  u32 off, u32 len);
	bool stops;
};

int sovia_recv(struct sock *sk, struct sovia_sink *sink, size_t len, int flags, int target);
int sovia_set_rcvlowat(struct sock *sk, int val);
int sovia_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags);
int sovia_inq(struct sock *sk);
void sovia_tell_window(struct sock *sk);
bool sovia_readable(struct sock *sk);

#endif /* _SOVIA_RECV_H */

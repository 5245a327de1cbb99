/* SPDX-License-Identifier: GPL-2.0-only */
/* From the program to the lane. */
#ifndef _SOVIA_SEND_H
#define _SOVIA_SEND_H

#include "sock.h"

int sovia_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
void sovia_push(struct sock *sk);
void sovia_queue_fin(struct sock *sk, bool gone);
void sovia_give_back(struct sock *sk, u32 end);
bool sovia_window_moved(struct sock *sk, u32 window);
void sovia_purge_queue(struct sock *sk);
void sovia_purge_send(struct sock *sk);
bool sovia_stream_memory_free(const struct sock *sk, int wake);
void sovia_write_space(struct sock *sk);
void sovia_check_space(struct sock *sk);
void sovia_cork_timeout(struct timer_list *timer);
int sovia_outq(const struct sock *sk);
u32 sovia_untaken(const struct sovia_sock *ss);
void sovia_peer_refuses(struct sock *sk, u32 taken);
bool sovia_no_more(struct sock *sk);

#endif /* _SOVIA_SEND_H */

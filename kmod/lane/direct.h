/* SPDX-License-Identifier: GPL-2.0-only */
/* Connections within a namespace, from socket to socket. */
#ifndef _SOVIA_DIRECT_H
#define _SOVIA_DIRECT_H

#include "conn.h"

void sovia_direct_pair(struct sovia_conn *child, u32 seq);
void sovia_direct_part(struct sovia_conn *conn);
void sovia_direct_send(struct sovia_conn *conn, struct sk_buff *skb);
bool sovia_direct_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len);
void sovia_direct_control(struct sovia_conn *conn, u8 type, u32 arg);
u32 sovia_direct_window(const struct sovia_conn *conn, u32 window);

#endif /* _SOVIA_DIRECT_H */

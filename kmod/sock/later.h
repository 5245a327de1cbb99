/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of connections whose other end is a socket here. */
#ifndef _SOVIA_LATER_H
#define _SOVIA_LATER_H

#include "sock.h"

void sovia_later(struct sovia_conn *conn, enum sovia_deferred what, u32 arg);
int sovia_later_init(void);
void sovia_later_exit(void);

#endif /* _SOVIA_LATER_H */

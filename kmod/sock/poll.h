/* SPDX-License-Identifier: GPL-2.0-only */
/* poll(). */
#ifndef _SOVIA_POLL_H
#define _SOVIA_POLL_H

#include "sock.h"

__poll_t sovia_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait);

#endif /* _SOVIA_POLL_H */

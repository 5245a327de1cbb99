/* SPDX-License-Identifier: GPL-2.0-only */
/* Pages from and to pipes. */
#ifndef _SOVIA_SPLICE_H
#define _SOVIA_SPLICE_H

#include "sock.h"

ssize_t sovia_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			  size_t len, unsigned int flags);

#endif /* _SOVIA_SPLICE_H */

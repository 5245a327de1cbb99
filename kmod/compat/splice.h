/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.5 replaced sendpage by a message flag, which older kernels do not have. */
#ifndef _SOVIA_COMPAT_SPLICE_H
#define _SOVIA_COMPAT_SPLICE_H

#include <linux/socket.h>
#include <linux/version.h>
#include <net/sock.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 5, 0)
#define SOVIA_HAS_SENDPAGE
#ifndef MSG_SPLICE_PAGES
/* Ours alone here; stable kernels have it as well, without using it. */
#define MSG_SPLICE_PAGES	0x8000000
#endif

int sovia_sendpage(struct sock *sk, struct page *page, int offset, size_t size, int flags);
ssize_t sovia_ops_sendpage(struct socket *sock, struct page *page, int offset, size_t size,
			   int flags);

#define SOVIA_PROTO_SPLICE	.sendpage = sovia_sendpage,
#define SOVIA_OPS_SENDPAGE	.sendpage = sovia_ops_sendpage,
#else
#define SOVIA_PROTO_SPLICE
#define SOVIA_OPS_SENDPAGE
#endif

void sovia_splice_eof(struct socket *sock);

/* Called when the source has ended before its time.  See Kbuild. */
#ifdef SOVIA_SPLICE_EOF
#define SOVIA_OPS_SPLICE	SOVIA_OPS_SENDPAGE .splice_eof = sovia_splice_eof,
#else
#define SOVIA_OPS_SPLICE	SOVIA_OPS_SENDPAGE
#endif

#endif /* _SOVIA_COMPAT_SPLICE_H */

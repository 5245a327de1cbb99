/* SPDX-License-Identifier: GPL-2.0-only */
/* Where kernels keep what belongs to a socket of IPv6. */
#ifndef _SOVIA_COMPAT_IPV6_H
#define _SOVIA_COMPAT_IPV6_H

#include <linux/ipv6.h>
#include <linux/version.h>
#include <net/inet_sock.h>

/*
 * 6.6 has struct proto say where IPv6's part of a socket is.  Before, it was the end
 * of the socket, and it stays there.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 6, 0)
#define SOVIA_PROTO_PINET6(type, member)	.ipv6_pinfo_offset = offsetof(type, member),
#else
#define SOVIA_PROTO_PINET6(type, member)
#endif

/* A clone does not share its parent's flow labels.  Kbuild knows where they are. */
static inline void sovia_forget_flow_labels(struct sock *sk)
{
#ifdef SOVIA_INET_FL_LIST
	RCU_INIT_POINTER(inet_sk(sk)->ipv6_fl_list, NULL);
#else
	RCU_INIT_POINTER(inet6_sk(sk)->ipv6_fl_list, NULL);
#endif
}

#endif /* _SOVIA_COMPAT_IPV6_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Where kernels keep what belongs to a socket of IPv6. */
#ifndef _SOVIA_COMPAT_IPV6_H
#define _SOVIA_COMPAT_IPV6_H

#include <linux/ipv6.h>
#include <net/inet_sock.h>

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

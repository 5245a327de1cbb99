/* SPDX-License-Identifier: GPL-2.0-only */
/* The link for a destination. */
#ifndef _SOVIA_ROUTE_H
#define _SOVIA_ROUTE_H

#include <net/flow.h>
#include "core/addr.h"
#include "core/provider.h"

struct sock;

int sovia_route(struct sock *sk, const struct in6_addr *daddr, u16 dport,
		struct sovia_pair *pair, const struct sovia_provider **prov);
struct dst_entry *sovia_route_output(struct sock *sk, const struct sovia_pair *pair, u16 lport,
				     u16 rport, struct flowi *fl);
int sovia_check_ipsec(struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport);

#endif /* _SOVIA_ROUTE_H */

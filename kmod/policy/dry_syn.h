/* SPDX-License-Identifier: GPL-2.0-only */
/* What netfilter and inbound IPsec policies say of a connection. */
#ifndef _SOVIA_DRY_SYN_H
#define _SOVIA_DRY_SYN_H

#include "core/net.h"
#include "core/provider.h"

struct dst_entry;
struct sock;

int sovia_dry_syn_net_init(struct sovia_net *snet);
void sovia_dry_syn_net_exit(struct sovia_net *snet);
int sovia_dry_syn_out(struct sock *sk, const struct sovia_pair *pair, u16 rport, bool local);
int sovia_dry_syn_in(struct sock *listener, const struct sovia_pair *pair, u16 lport, u16 rport);
bool sovia_ipsec_admits(struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport,
			struct dst_entry *dst);

#endif /* _SOVIA_DRY_SYN_H */

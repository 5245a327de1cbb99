/* SPDX-License-Identifier: GPL-2.0-only */
/* Type of service of lanes. */
#ifndef _SOVIA_TOS_H
#define _SOVIA_TOS_H

#include "core/net.h"

/* None is set: what rdma_cm's configfs says counts. */
#define SOVIA_TOS_DEFAULT	256

int sovia_tos_net_init(struct sovia_net *snet);
void sovia_tos_net_exit(struct sovia_net *snet);
unsigned int sovia_tos(struct sovia_net *snet, const struct sovia_pair *pair);

/* What a namespace's listener has, and its lanes unless a rule says something else. */
static inline unsigned int sovia_tos_of_net(const struct sovia_net *snet)
{
	return READ_ONCE(snet->tos.value);
}

#endif /* _SOVIA_TOS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Type of service of lanes. */
#ifndef _SOVIA_TOS_H
#define _SOVIA_TOS_H

#include "core/net.h"

int sovia_tos_net_init(struct sovia_net *snet);
void sovia_tos_net_exit(struct sovia_net *snet);
unsigned int sovia_tos(struct sovia_net *snet, const struct sovia_pair *pair);

#endif /* _SOVIA_TOS_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* The links of a namespace. */
#ifndef _SOVIA_LINK_NET_H
#define _SOVIA_LINK_NET_H

#include "link.h"

int sovia_link_listen(struct sovia_net *snet);
void sovia_link_net_init(struct sovia_net *snet);
void sovia_link_net_exit(struct sovia_net *snet);
void sovia_link_net_idle(struct sovia_net *snet);
void sovia_link_sock_put(struct sovia_net *snet);
void sovia_link_devices_changed(void);
void sovia_link_stop(void);

#endif /* _SOVIA_LINK_NET_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* The connections of a link. */
#ifndef _SOVIA_LINK_CONNS_H
#define _SOVIA_LINK_CONNS_H

#include "link.h"

/* How long a loop link without connections stays. */
#define SOVIA_LINK_IDLE_WAIT	HZ

int sovia_link_attach(struct sovia_conn *conn);
void sovia_link_detach(struct sovia_conn *conn);
void sovia_link_notify_up(struct sovia_link *link, struct list_head *conns);
void sovia_link_notify_down(struct sovia_link *link, struct list_head *conns, int err);

#endif /* _SOVIA_LINK_CONNS_H */

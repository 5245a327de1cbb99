/* SPDX-License-Identifier: GPL-2.0-only */
/* The connections of a link. */
#ifndef _SOVIA_LINK_CONNS_H
#define _SOVIA_LINK_CONNS_H

#include "link.h"

int sovia_link_attach(struct sovia_conn *conn);
void sovia_link_detach(struct sovia_conn *conn);
void sovia_link_notify_up(struct sovia_link *link, struct list_head *conns);
void sovia_link_notify_down(struct sovia_link *link, struct list_head *conns, int err);

void sovia_link_notify_open(struct sovia_link *link, int err);
bool sovia_link_may_open(const struct sovia_link *link);
void sovia_link_open(struct sovia_link *link, kuid_t uid);
void sovia_link_shut_out(struct sovia_link *link);
bool sovia_link_takes_requests(const struct sovia_link *link);
bool sovia_link_has_return(const struct sovia_link *link);
u64 sovia_link_key(const struct sovia_link *link);
void sovia_link_refuse(struct sovia_link *link, const struct sovia_msg *conn_msg, u32 code);

#endif /* _SOVIA_LINK_CONNS_H */

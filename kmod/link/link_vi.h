/* SPDX-License-Identifier: GPL-2.0-only */
/* The VI of a link. */
#ifndef _SOVIA_LINK_VI_H
#define _SOVIA_LINK_VI_H

#include "link.h"

void sovia_link_connect(struct sovia_link *link);
void sovia_link_go_on(struct sovia_link *link);
void sovia_link_accept(struct sovia_link *link, struct sovia_vi_request *req, u64 peer_id);
void sovia_link_drop_vi(struct sovia_link *link);
void sovia_link_decide_deferred(struct sovia_link *link);
void sovia_link_vi_ended(struct sovia_link *link);

#endif /* _SOVIA_LINK_VI_H */

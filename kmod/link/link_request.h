/* SPDX-License-Identifier: GPL-2.0-only */
/* Peers' requests for a link. */
#ifndef _SOVIA_LINK_REQUEST_H
#define _SOVIA_LINK_REQUEST_H

#include "link.h"

void sovia_link_request(struct sovia_vi_request *req);
void sovia_link_request_decide(struct sovia_vi_request *req);
void sovia_link_request_reject(struct sovia_vi_request *req, int err);

#endif /* _SOVIA_LINK_REQUEST_H */

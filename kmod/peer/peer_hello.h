/* SPDX-License-Identifier: GPL-2.0-only */
/* MACs of requests and replies. */
#ifndef _SOVIA_PEER_HELLO_H
#define _SOVIA_PEER_HELLO_H

#include "link/link.h"

int sovia_peer_check_request(struct sovia_net *snet, struct sovia_vi_request *req,
			     const struct sovia_params *params, struct sovia_peer **peer);
int sovia_peer_seal(struct sovia_link *link, const struct sovia_path *path,
		    struct sovia_hello *hello);
int sovia_peer_check_reply(const struct sovia_link *link, const struct sovia_hello *hello,
			   const struct sovia_params *params);

#endif /* _SOVIA_PEER_HELLO_H */

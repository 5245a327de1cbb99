/* SPDX-License-Identifier: GPL-2.0-only */
/* MACs of requests and replies. */
#ifndef _SOVIA_PEER_HELLO_H
#define _SOVIA_PEER_HELLO_H

#include "core/provider.h"

struct sovia_peer;

int sovia_peer_check_request(struct sovia_net *snet, struct sovia_vi_request *req,
			     u8 lane, u32 generation, struct sovia_peer **peer);
int sovia_peer_seal(struct sovia_peer *peer, bool active, const struct sovia_path *path,
		    u32 *generation, struct sovia_hello *hello);
int sovia_peer_check_reply(struct sovia_peer *peer, const struct sovia_path *path, u32 generation,
			   const struct sovia_hello *hello);

#endif /* _SOVIA_PEER_HELLO_H */

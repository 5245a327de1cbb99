/* SPDX-License-Identifier: GPL-2.0-only */
/* Lanes, receiving. */
#ifndef _SOVIA_LANE_RX_H
#define _SOVIA_LANE_RX_H

#include "link/link.h"

extern const struct sovia_vi_client sovia_lane_vi_client;

void sovia_lane_reap(struct sovia_lane *lane, struct sk_buff_head *acked);

#endif /* _SOVIA_LANE_RX_H */

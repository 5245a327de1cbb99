/* SPDX-License-Identifier: GPL-2.0-only */
/* Lanes, receiving. */
#ifndef _SOVIA_LANE_RX_H
#define _SOVIA_LANE_RX_H

#include "lane.h"

bool sovia_lane_receive(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm);
void sovia_lane_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool done);
void sovia_lane_rx_unposted(struct sovia_vi *vi, int delta);
void sovia_lane_rx_grown(struct sovia_vi *vi, unsigned int depth);
int sovia_lane_parse_hello(const struct sovia_lane *lane, const struct sovia_hello *hello,
			   unsigned int len, struct sovia_params *params);
void sovia_lane_established(struct sovia_lane *lane, struct sovia_vi *vi,
			    const struct sovia_params *params, int err);
int sovia_lane_rewind(struct sovia_lane *lane, u32 rx_next, struct sk_buff_head *arrived);
void sovia_lane_arrived(struct sovia_lane *lane, struct sk_buff_head *arrived);
void sovia_lane_reap(struct sovia_lane *lane, struct sk_buff_head *acked);

#endif /* _SOVIA_LANE_RX_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Lanes, sending. */
#ifndef _SOVIA_LANE_TX_H
#define _SOVIA_LANE_TX_H

#include "lane.h"

void sovia_lane_arm(struct sovia_lane *lane);
bool sovia_lane_has_work(const struct sovia_lane *lane);
void sovia_lane_pump(struct sovia_lane *lane);
void sovia_lane_ack(struct sovia_lane *lane);
bool sovia_lane_try(struct sovia_lane *lane, bool padded);
void sovia_lane_timeout(struct timer_list *timer);
void sovia_lane_reply(struct sovia_lane *lane, u8 type, u16 sport, u16 dport,
		      u32 ref, u32 code);
struct sk_buff *sovia_msg_alloc(unsigned int linear, gfp_t gfp);
int sovia_msg_repack(struct sk_buff *skb, unsigned int max_frags);
void sovia_lane_probe(struct sovia_lane *lane);
bool sovia_lane_clogged(const struct sovia_lane *lane);

#endif /* _SOVIA_LANE_TX_H */

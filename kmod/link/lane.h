/* SPDX-License-Identifier: GPL-2.0-only */
/* What the lane's files share: lane.c, lane_tx.c, lane_rx.c, link_recover.c, conn.c. */
#ifndef _SOVIA_LANE_H
#define _SOVIA_LANE_H

#include "link.h"

/* lane.c */
extern const struct sovia_client *sovia_link_client;
void sovia_lane_die(struct sovia_lane *lane, int err);
void sovia_conn_account(struct sovia_conn *conn, u32 len, bool acked);
void sovia_tx_free(struct sk_buff_head *list, bool acked);
void sovia_conn_drop_control(struct sovia_lane *lane, struct sovia_conn *conn);

/* lane_tx.c */
void sovia_lane_arm(struct sovia_lane *lane);
bool sovia_lane_has_work(const struct sovia_lane *lane);
void sovia_lane_pump(struct sovia_lane *lane);
void sovia_lane_ack(struct sovia_lane *lane);
void sovia_lane_timeout(struct timer_list *timer);
void sovia_lane_reply(struct sovia_lane *lane, u8 type, u16 sport, u16 dport,
		      u32 ref, u32 code);

/* lane_rx.c */
void sovia_lane_reap(struct sovia_lane *lane, struct sk_buff_head *acked);

/* link_recover.c */
int sovia_lane_rewind(struct sovia_lane *lane, u32 rx_next, struct sk_buff_head *arrived);
void sovia_lane_arrived(struct sovia_lane *lane, struct sk_buff_head *arrived);

/* Does the stream of a connection end with this message? */
static inline bool sovia_tx_is_fin(struct sk_buff *skb)
{
	const struct sovia_tx_cb *cb = SOVIA_TX_CB(skb);

	return cb->type == SOVIA_FIN || (cb->flags & SOVIA_F_FIN);
}

/* Are both ends on this host? */
static inline bool sovia_lane_is_local(const struct sovia_lane *lane)
{
	return lane->link->prov->local;
}

#endif /* _SOVIA_LANE_H */

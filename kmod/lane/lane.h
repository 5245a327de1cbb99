/* SPDX-License-Identifier: GPL-2.0-only */
/* Life cycle of lanes. */
#ifndef _SOVIA_LANE_H
#define _SOVIA_LANE_H

#include "link/link.h"

extern const struct sovia_client *sovia_link_client;

void sovia_link_register_client(const struct sovia_client *client);
int sovia_lane_init(struct sovia_lane *lane, struct sovia_link *link, gfp_t gfp);
void sovia_lane_free(struct sovia_lane *lane);
void sovia_lane_reset(struct sovia_lane *lane);
int sovia_lane_prepare(struct sovia_lane *lane, bool active, u64 peer_id);
struct sovia_lane_room *sovia_lane_room_alloc(const struct sovia_lane *lane, gfp_t gfp);
void sovia_lane_room_free(struct sovia_lane *lane);
void sovia_lane_vi_attr(const struct sovia_lane *lane, struct sovia_vi_attr *attr);
void sovia_lane_hello(const struct sovia_lane *lane, struct sovia_hello *hello);
void sovia_lane_fail(struct sovia_lane *lane, int err);
void sovia_lane_grow(struct sovia_lane *lane, bool wanted);
int sovia_lane_choose(u16 lport, u16 rport);
void sovia_lane_die(struct sovia_lane *lane, int err);
void sovia_conn_account(struct sovia_conn *conn, u32 len, bool acked);
void sovia_tx_free(struct sk_buff_head *list, bool acked);
void sovia_conn_drop_control(struct sovia_lane *lane, struct sovia_conn *conn);

/* Does this message end the stream of its connection? */
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

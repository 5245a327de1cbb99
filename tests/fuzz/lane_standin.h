/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is around the lanes of lane.c and pair.c: their VIs' client, and what they have none of. */
#ifndef FUZZ_LANE_STANDIN_H
#define FUZZ_LANE_STANDIN_H

#include "../../kmod/core/addr.h"
#include "../../kmod/core/objcount.h"
#include "../../kmod/lane/direct.h"
#include "../../kmod/lane/lane.h"
#include "../../kmod/lane/lane_rx.h"
#include "../../kmod/lane/lane_tx.h"

static const struct sovia_pair fuzz_pair;

/* As link_established(), without MACs. */
static void vi_established(struct sovia_vi *vi, const struct sovia_hello *hello, unsigned int len)
{
	struct sovia_params params;
	int err = sovia_lane_parse_hello(vi->context, hello, len, &params);

	sovia_lane_established(vi->context, vi, &params, err);
}

static void vi_closed(struct sovia_vi *vi, int err)
{
	sovia_lane_fail(vi->context, err);
}

static const struct sovia_vi_client fuzz_vi_client = {
	.established = vi_established, .closed = vi_closed, .receive = sovia_lane_receive,
	.send_done = sovia_lane_send_done, .rx_unposted = sovia_lane_rx_unposted,
	.rx_grown = sovia_lane_rx_grown,
};

static bool lane_may_recover(const struct sovia_lane *lane)
{
	return false;
}

/* There are no connections of this kind. */
void sovia_direct_send(struct sovia_conn *conn, struct sk_buff *skb)
{
	abort();
}

bool sovia_direct_copy(struct sovia_conn *conn, struct iov_iter *from, u32 len)
{
	abort();
}

void sovia_direct_control(struct sovia_conn *conn, u8 type, u32 code)
{
	abort();
}

void sovia_direct_part(struct sovia_conn *conn)
{
}

/* There is one pair of addresses. */
u32 sovia_pair_addr_hash(const struct sovia_pair *pair)
{
	return 0;
}

#endif

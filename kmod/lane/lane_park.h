/* SPDX-License-Identifier: GPL-2.0-only */
/* Lanes whose links are parked. */
#ifndef _SOVIA_LANE_PARK_H
#define _SOVIA_LANE_PARK_H

#include "lane.h"

void sovia_lane_take_park(struct sovia_lane *lane);
bool sovia_lane_rests(struct sovia_lane *lane);
bool sovia_lane_ask_park(struct sovia_lane *lane);

#endif /* _SOVIA_LANE_PARK_H */

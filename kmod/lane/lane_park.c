// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lanes whose links are parked: PARK is sent, or taken.  See Documentation/recovery.rst, "Parked
 * links"; link_park.c decides when.
 */
#include "lane.h"
#include "lane_park.h"
#include "lane_tx.h"

/* Is nothing under way, but perhaps a PARK of ours? */
static bool lane_is_quiet(const struct sovia_lane *lane)
{
	return lane->up && !sovia_lane_has_work(lane) &&
	       sovia_credit_flight(&lane->credit) <= lane->parking;
}

/* Have we asked, and the peer has not answered? */
static bool lane_asks(const struct sovia_lane *lane)
{
	return lane->parking && sovia_credit_flight(&lane->credit) == 1;
}

/**
 * sovia_lane_take_park() - the peer asks to park the link
 * @lane: the lane
 *
 * If nothing is under way the lane is not used from now on: what is queued later resumes the link.
 *
 * Context: softirq; no lane lock.
 */
void sovia_lane_take_park(struct sovia_lane *lane)
{
	spin_lock(&lane->lock);
	if (lane->parks && lane->ops->may_recover(lane) && lane_is_quiet(lane)) {
		lane->up = false;
		/* What still comes gets lost with the VI. */
		lane->dead = true;
		lane->parked = true;
		lane->ops->event(lane, SOVIA_LANE_PARKED);
	}
	spin_unlock(&lane->lock);
}

/**
 * sovia_lane_rests() - may a link whose lane is lost do without another one
 * @lane: the lane
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if both ends were to be parked and nothing is under way.
 */
bool sovia_lane_rests(struct sovia_lane *lane)
{
	bool rests;

	spin_lock_bh(&lane->lock);
	rests = lane->parked || lane_asks(lane);
	spin_unlock_bh(&lane->lock);
	return rests;
}

/**
 * sovia_lane_ask_park() - ask the peer to park the link, if nothing is under way
 * @lane: the lane
 *
 * Context: connection thread; no link or lane lock.
 * Return: true if PARK has been sent, now or before, and is not answered.
 */
bool sovia_lane_ask_park(struct sovia_lane *lane)
{
	bool asks;

	spin_lock_bh(&lane->lock);
	if (lane_is_quiet(lane) && !lane_asks(lane) && !sovia_credit_ack_pending(&lane->credit)) {
		lane->probe = SOVIA_PARK;
		sovia_lane_pump(lane);
	}
	asks = lane_asks(lane);
	spin_unlock_bh(&lane->lock);
	return asks;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer liveness.  An idle lane is probed, one without progress fails, one in doubt has a
 * deadline, and the first message of a lane is retried (MPA's RTR).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "core/param.h"
#include "lane/lane.h"
#include "lane/lane_tx.h"
#include "link_park.h"
#include "link_probe.h"
#include "link_state.h"

/* Delay before the first message of a lane is repeated; doubles each time. */
#define SOVIA_LINK_RTR_MIN	(HZ / 10)
#define SOVIA_LINK_RTR_MAX	(16 * SOVIA_LINK_RTR_MIN)

/* Maximum time that a lane in doubt has to answer, in seconds. */
#define SOVIA_LINK_DOUBT_MAX	20

#define SOVIA_LINK_PROBE	5
static unsigned int probe_interval = SOVIA_LINK_PROBE;
sovia_param(probe_interval, probe_interval, 0, SOVIA_PARAM_SECONDS_MAX, 0644);
MODULE_PARM_DESC(probe_interval, "seconds between probes of a lane (0: never)");

/* Rearm the timer. */
static void link_look_again(struct sovia_link *link)
{
	unsigned long interval = READ_ONCE(probe_interval) ?: SOVIA_LINK_PROBE;
	unsigned long wait = link->rtr_retry ?: interval * HZ;
	long left = link->doubt_end - jiffies;

	if (link->doubted)
		wait = min_not_zero(wait, (unsigned long)max(left, 1L));
	if (!link->lane.prov->local)
		sovia_link_set_timer(link, wait);
}

/* With MPA the peer cannot send before our first message: send one. */
static void link_send_rtr(struct sovia_link *link)
{
	struct sovia_lane *lane = &link->lane;

	/* If the lane has been tried, there was one. */
	link->rtr_retry = lane->vi && lane->vi->sends_first && !lane->trial ?
		SOVIA_LINK_RTR_MIN : 0;
	if (!link->rtr_retry)
		return;
	spin_lock_bh(&lane->lock);
	link->seen_una = lane->credit.tx_una;
	spin_unlock_bh(&lane->lock);
	sovia_lane_probe(lane);
}

/*
 * siw processes a message that arrives between its MPA reply and the end of its own
 * set-up only when another one arrives: send more until it is acknowledged.
 */
static void link_retry_rtr(struct sovia_link *link, u32 una)
{
	bool heard = una != link->seen_una;

	if (!heard)
		sovia_lane_probe(&link->lane);
	link->waiting = true;
	link->rtr_retry = heard || link->rtr_retry >= SOVIA_LINK_RTR_MAX ? 0 : 2 * link->rtr_retry;
}

static void link_no_answer(struct sovia_link *link)
{
	pr_notice_ratelimited("link to %pI6c: peer timed out\n", &link->pair.remote);
	sovia_lane_fail(&link->lane, -ETIMEDOUT);
}

/*
 * Probe a lane without traffic.  A lane with unacknowledged messages but no progress for
 * an interval is dead, even if its device reports no error.
 */
static void link_check_progress(struct sovia_link *link, bool flight, u32 una)
{
	if (flight && link->waiting && una == link->seen_una)
		link_no_answer(link);
	else if (!flight)
		sovia_lane_probe(&link->lane);
	link->waiting = true;
	link->seen_una = una;
}

/**
 * sovia_link_doubt() - check whether the lane of a link still answers
 * @link: UP
 *
 * The peer requests a link that is UP here: it has lost its end, or the request is not
 * from the peer.  Or the port is down, perhaps for a moment.  Probing the lane tells.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_doubt(struct sovia_link *link)
{
	unsigned int wait = READ_ONCE(probe_interval) ?: SOVIA_LINK_PROBE;
	struct sovia_lane *lane = &link->lane;
	bool anew;

	spin_lock_bh(&lane->lock);
	/* An answer since then belongs to the doubt before. */
	anew = !link->doubted || lane->credit.tx_una != link->doubt_una;
	link->doubt_una = lane->credit.tx_una;
	spin_unlock_bh(&lane->lock);
	if (!anew)
		return;
	link->doubt_end = jiffies + min_t(unsigned int, wait, SOVIA_LINK_DOUBT_MAX) * HZ;
	link->doubted = true;
	sovia_lane_probe(lane);
	link_look_again(link);
}

/* Has the deadline of a lane in doubt passed without an answer? */
static bool link_is_silent(struct sovia_link *link, u32 una)
{
	if (una != link->doubt_una)
		link->doubted = false;
	return link->doubted && time_after_eq(jiffies, link->doubt_end);
}

/**
 * sovia_link_probe() - check the lane of a link, and rearm the timer
 * @link: UP, over a provider that is not local
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_probe(struct sovia_link *link)
{
	struct sovia_lane *lane = &link->lane;
	bool flight;
	u32 una;

	spin_lock_bh(&lane->lock);
	/* What cannot be posted, for want of memory, is no progress either. */
	flight = sovia_credit_flight(&lane->credit) || !skb_queue_empty(&lane->rtx_queue);
	una = lane->credit.tx_una;
	spin_unlock_bh(&lane->lock);
	if (link_is_silent(link, una))
		link_no_answer(link);
	else if (link->rtr_retry)
		link_retry_rtr(link, una);
	else if (!sovia_link_rest(link) && READ_ONCE(probe_interval))
		link_check_progress(link, flight, una);
	link_look_again(link);
}

/**
 * sovia_link_probe_start() - start to monitor the lane of a link
 * @link: UP
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_probe_start(struct sovia_link *link)
{
	link_send_rtr(link);
	link_look_again(link);
}

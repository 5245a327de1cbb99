// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: when a link whose lane is lost tries again, and when it ends: no VI has been
 * established for recovery_timeout.  See Documentation/recovery.rst; link.c has the states, and
 * sovia_lane_rewind() which messages are sent again.
 */
#include "core/param.h"
#include "lane/lane.h"
#include "link_recover.h"

/* Minimum and maximum delay between attempts. */
#define SOVIA_RECOVERY_PAUSE		(HZ / 10)
#define SOVIA_RECOVERY_PAUSE_MAX	(2 * HZ)

static unsigned int recovery_timeout = 60;
sovia_param(recovery_timeout, recovery_timeout, 0, SOVIA_PARAM_SECONDS_MAX, 0644);
MODULE_PARM_DESC(recovery_timeout, "seconds to recover a link before its connections end (0: do not)");

static unsigned long recovery_timeout_jiffies(void)
{
	return READ_ONCE(recovery_timeout) * (unsigned long)HZ;
}

/**
 * sovia_recovery_wanted() - may this link outlive its lane
 * @link: the link
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_recovery_wanted(const struct sovia_link *link)
{
	return recovery_timeout_jiffies() && !link->lane.prov->local;
}

/**
 * sovia_recovery_established() - the link has a lane
 * @link: has come UP
 *
 * Context: connection thread.
 */
void sovia_recovery_established(struct sovia_link *link)
{
	struct sovia_recovery *r = &link->recovery;

	spin_lock_bh(&link->lane.lock);
	r->tx = link->lane.credit.tx_una;
	r->rx = link->lane.credit.rx_next;
	spin_unlock_bh(&link->lane.lock);
	r->up_since = jiffies;
	r->refused = 0;
}

/**
 * sovia_recovery_begin() - the link has lost its lane
 * @link: was UP
 *
 * Restarts the timeout, unless the lane made no progress.
 *
 * Context: connection thread.
 */
void sovia_recovery_begin(struct sovia_link *link)
{
	struct sovia_recovery *r = &link->recovery;
	bool progress;

	r->due = jiffies;
	r->early = false;
	spin_lock_bh(&link->lane.lock);
	progress = r->tx != link->lane.credit.tx_una || r->rx != link->lane.credit.rx_next;
	spin_unlock_bh(&link->lane.lock);
	if (r->tries && !progress && time_before(jiffies, r->up_since + recovery_timeout_jiffies()))
		return;
	r->since = jiffies;
	r->tries = 0;
}

/**
 * sovia_recovery_restart() - a parked link is resumed, or begins to wait for that
 * @link: RECOVERING, was PARKED; or PARKED
 *
 * Context: connection thread.
 */
void sovia_recovery_restart(struct sovia_link *link)
{
	link->recovery.since = jiffies;
	link->recovery.due = jiffies;
	link->recovery.early = false;
	link->recovery.tries = 0;
}

/**
 * sovia_recovery_left() - how long the link may go on trying
 * @link: RECOVERING, or PARKED and waits for room
 *
 * Context: connection thread.
 * Return: jiffies, 0 if it has timed out.
 */
unsigned long sovia_recovery_left(const struct sovia_link *link)
{
	unsigned long gone = jiffies - link->recovery.since;

	return gone < recovery_timeout_jiffies() ? recovery_timeout_jiffies() - gone : 0;
}

/**
 * sovia_recovery_wait() - how long to wait before the next attempt
 * @link: RECOVERING
 * @first: ours counts if both try at once, so there is no need to wait for the peer's
 *
 * One that is made before that, for a device that has come, is early, and does not put it off.
 *
 * Context: connection thread.
 * Return: jiffies.
 */
unsigned long sovia_recovery_wait(struct sovia_link *link, bool first)
{
	struct sovia_recovery *r = &link->recovery;
	unsigned long wait = 0;
	unsigned int tries;

	if (r->early)
		return time_before(jiffies, r->due) ? r->due - jiffies : 0;
	tries = r->tries++;
	if (tries || !first)
		wait = min(SOVIA_RECOVERY_PAUSE << min(tries, 5U), SOVIA_RECOVERY_PAUSE_MAX);
	r->due = jiffies + wait;
	return wait;
}

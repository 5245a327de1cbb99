// SPDX-License-Identifier: GPL-2.0-only
/*
 * Recovery: how a link continues with another VI when its lane is lost.
 * See Documentation/recovery.rst; link.c has the states.
 *
 * Timeout: a link ends when no VI has been established for recovery_timeout.
 *
 * Lane: a message stays on lane->unacked until the peer acknowledges it.  The
 * hello of a new VI tells which message the peer expects; the missing ones move to
 * the front of lane->rtx_queue, in order, and so keep their numbers.
 */
#include "core/param.h"
#include "core/trace.h"
#include "lane/lane.h"
#include "lane/lane_rx.h"
#include "link_recover.h"

/* Minimum and maximum delay between attempts. */
#define SOVIA_RECOVERY_PAUSE		(HZ / 10)
#define SOVIA_RECOVERY_PAUSE_MAX	(2 * HZ)

static unsigned int recovery_timeout = 60;
sovia_param(recovery_timeout, recovery_timeout, 0, SOVIA_PARAM_SECONDS_MAX, 0644);
MODULE_PARM_DESC(recovery_timeout, "seconds to recover a link before its connections end (0: do not)");

/* ---- timeout --------------------------------------------------------- */

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
	return recovery_timeout_jiffies() && !link->prov->local;
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

/* ---- lane ------------------------------------------------------------ */

/**
 * sovia_lane_rewind() - queue retransmissions from the peer's rx_next
 * @lane: has a new VI, with nothing posted yet
 * @rx_next: number of the message that the peer expects
 * @arrived: list to add messages to that it has, for sovia_lane_arrived()
 *
 * Context: lane lock held.
 * Return: 0, or -EPROTO if @rx_next is out of range.
 */
int sovia_lane_rewind(struct sovia_lane *lane, u32 rx_next, struct sk_buff_head *arrived)
{
	struct sk_buff *skb;
	int err;

	lockdep_assert_held(&lane->lock);
	err = sovia_credit_rewind(&lane->credit, rx_next);
	if (err)
		return err;
	sovia_lane_reap(lane, arrived);
	sovia_stat_add(lane->link->snet, tx_again, skb_queue_len(&lane->unacked));
	lane->count.retransmits += skb_queue_len(&lane->unacked);
	while ((skb = __skb_dequeue_tail(&lane->unacked))) {
		struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;

		trace_sovia_retransmit(lane, SOVIA_TX_CB(skb), true);
		/* What it asked for is over. */
		if (SOVIA_TX_CB(skb)->type == SOVIA_PARK)
			SOVIA_TX_CB(skb)->type = SOVIA_PROBE;
		/* The header is rebuilt, or omitted. */
		if (skb_headroom(skb) < sizeof(struct sovia_hdr))
			__skb_pull(skb, sizeof(struct sovia_hdr));
		if (conn)
			conn->inflight++;
		__skb_queue_head(&lane->rtx_queue, skb);
	}
	return 0;
}

/**
 * sovia_lane_arrived() - complete and free messages that the peer has received
 * @lane: the lane they were posted to
 * @arrived: the messages
 *
 * Their connections were not notified: the completions were lost with the VI.
 *
 * Context: process; no lane lock.
 */
void sovia_lane_arrived(struct sovia_lane *lane, struct sk_buff_head *arrived)
{
	struct sk_buff *skb;

	skb_queue_walk(arrived, skb) {
		struct sovia_conn *conn = SOVIA_TX_CB(skb)->conn;
		bool fin;

		if (!conn)
			continue;
		spin_lock_bh(&lane->lock);
		fin = conn->fin == skb;
		if (fin)
			conn->fin = NULL;
		spin_unlock_bh(&lane->lock);
		if (fin)
			sovia_link_client->delivered(conn);
	}
	sovia_tx_free(arrived, true);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/link_recover_test.c"
#endif

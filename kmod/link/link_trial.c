// SPDX-License-Identifier: GPL-2.0-only
/*
 * Trials: a lane is used when long messages have gone through both ways.  A fabric that
 * passes short ones only (MTU, flow control) would set links up on which data stays.
 * See Documentation/recovery.rst.
 *
 *	active                        passive
 *	established   padded ACK -->  established
 *	      up  <-- padded ACK
 *	              message ----->  up
 *
 * They are ACKs because those take no number: messages that are retransmitted keep theirs.
 * lane_rx.c has what is received, this file the deadline and the repetitions, for which the
 * link's timer is used: the lane of a link is tried in CONNECTING and RECOVERING.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "lane/lane.h"
#include "lane/lane_tx.h"
#include "link_recover.h"
#include "link_state.h"
#include "link_trial.h"

/* Failed trials in a row that end a set-up. */
#define SOVIA_TRIALS		2

/* The first of four waits, each twice as long as the one before: 2 s in all. */
#define SOVIA_TRIAL_WAIT	(2 * HZ / 15)
#define SOVIA_TRIAL_WAIT_MAX	(8 * SOVIA_TRIAL_WAIT)

static void link_trial_wait(struct sovia_link *link)
{
	unsigned long wait = link->trial_wait;

	if (link->state == SOVIA_LINK_RECOVERING)
		wait = min(wait, sovia_recovery_left(link));
	sovia_link_set_timer(link, wait);
}

/**
 * sovia_link_trial_start() - the lane of a link is being tried
 * @link: in any state; its timer is used unless it is UP or DOWN
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_trial_start(struct sovia_link *link)
{
	/* The trial may have ended already. */
	if (link->state != SOVIA_LINK_CONNECTING && link->state != SOVIA_LINK_RECOVERING)
		return;
	link->trial_wait = SOVIA_TRIAL_WAIT;
	link_trial_wait(link);
}

/**
 * sovia_link_trial_go_on() - the timer of a link whose lane is tried has fired
 * @link: CONNECTING or RECOVERING, with a trial_wait
 *
 * The active end sends its part again: memory may have been short at either end, and siw
 * (6.1, 6.12) processes what arrives between its MPA reply and the end of its own set-up
 * only when more arrives.  Four of them fit into the smallest number of descriptors, 2w + 2.
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_trial_go_on(struct sovia_link *link)
{
	bool late = link->trial_wait >= SOVIA_TRIAL_WAIT_MAX;
	struct sovia_lane *lane = &link->lane;

	link->trial_wait *= 2;
	spin_lock_bh(&lane->lock);
	if (!lane->up && !lane->dead) {
		if (late)
			sovia_lane_die(lane, -ETIMEDOUT);
		else if (lane->active && sovia_lane_try(lane, true))
			lane->tried = true;
	}
	spin_unlock_bh(&lane->lock);
	link_trial_wait(link);
}

/**
 * sovia_link_trial_failed() - a set-up has failed: decide, if that was while its lane was tried
 * @link: CONNECTING
 * @err: why, a negative errno
 *
 * Context: connection thread; no link or lane lock.
 * Return: @err if it was not, -EBUSY another lane is to be tried, -ETIMEDOUT there is no way.
 */
int sovia_link_trial_failed(struct sovia_link *link, int err)
{
	if (!link->trial_wait || link->lane.open || err == -EPROTO)
		return err;
	pr_notice_ratelimited("link to %pI6c: %pe, long messages do not get through\n",
			      &link->pair.remote, ERR_PTR(err));
	return ++link->trials < SOVIA_TRIALS ? -EBUSY : -ETIMEDOUT;
}

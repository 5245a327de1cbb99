/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Lane credits: the paper's window w and acknowledgment threshold t (KSOVIA
 * 3.4), as arithmetic on absolute numbers.  Pure functions on one struct,
 * protected by the lane's lock, so that they can be tested and modelled alone.
 *
 * Room at the receiver.  A sender has at most w messages beyond the last
 * acknowledgment it saw.  ACK messages take no credit; each one acknowledges at
 * least one message that the other side still counts as unacknowledged, and a
 * side never has more in flight than it takes itself, so at most w ACKs can be
 * in flight to it.  A lane therefore keeps 2w receive
 * descriptors posted (the paper's w + w/t holds only when acknowledgments are
 * counted, and ours are also sent when a lane falls idle or the peer asks), one
 * more for the descriptor that the bottom half is processing, and one that may stay
 * unposted although its message has been acknowledged: the bottom half acknowledges
 * before it reposts.  Further unposted ones hold acknowledgments back.
 * (Documentation/models/lane.pml)
 *
 * Windows may grow in the life of a VI.  A side raises its own one after it has posted the receives
 * for it, and uses what the other one takes only up to that: so the count above always holds.
 *
 * Answers to messages without a connection are never dropped, and must not need memory
 * without bound.  Up to w of them may wait; each further one holds an acknowledgment
 * back, so that a peer without credit sends no more.  Answers are sent before
 * all else and are not answered, so a side with answers waiting sends nothing that
 * the other one would hold credit for: two sides cannot both wait for credit.
 * (Documentation/models/answers.pml)
 */
#ifndef _SOVIA_CREDIT_H
#define _SOVIA_CREDIT_H

#include "wire.h"

/**
 * struct sovia_credit - sequence numbers and credits of one lane
 * @window: messages we may have unacknowledged: the minimum of @granted and @own_window
 * @granted: messages the peer takes unacknowledged
 * @own_window: messages we take unacknowledged (our w)
 * @told: what the peer knows of @own_window
 * @limit: the largest @own_window
 * @threshold: acknowledge when this many messages are unacknowledged (t)
 * @threshold_limit: that of the largest window
 * @tx_next: number of the next message
 * @tx_una: first number that the peer has not acknowledged
 * @rx_next: number of the next message from the peer
 * @rx_acked: the acknowledgment that we sent last
 * @rx_unposted: receive descriptors that could not be reposted; held back from
 *	acknowledgments until they are
 * @rx_held: messages whose answers wait, beyond what may wait freely; held back as well
 * @asked: the peer requested an immediate acknowledgment
 */
struct sovia_credit {
	u32	window;
	u32	granted;
	u32	own_window;
	u32	told;
	u32	limit;
	u32	threshold;
	u32	threshold_limit;
	u32	tx_next;
	u32	tx_una;
	u32	rx_next;
	u32	rx_acked;
	u32	rx_unposted;
	u32	rx_held;
	bool	asked;
};

/* Credits of a window for connections that go on sending; the rest is kept for others. */
static inline u32 sovia_credit_bulk(u32 window)
{
	return window - window / 8;
}

/*
 * Both sides use the smaller one of what they take.  Each acknowledges before bulk of the other one
 * has to wait.
 */
static inline void sovia_credit_agree(struct sovia_credit *c)
{
	c->window = min(c->granted, c->own_window);
	c->threshold = min(c->threshold_limit, sovia_credit_bulk(c->window ?: c->own_window));
}

/* We take @own_window messages from now on. */
static inline void sovia_credit_take(struct sovia_credit *c, u32 own_window)
{
	c->own_window = own_window;
	sovia_credit_agree(c);
}

/* A new VI: we take @first messages, which its hello tells. */
static inline void sovia_credit_begin(struct sovia_credit *c, u32 first)
{
	c->granted = 0;
	sovia_credit_take(c, min(first, c->limit));
	c->told = c->own_window;
}

/* The peer takes @window messages. */
static inline void sovia_credit_grant(struct sovia_credit *c, u32 window)
{
	c->granted = window;
	sovia_credit_agree(c);
}

/* ... as its ACK says.  -EPROTO: fewer than before, or too many. */
static inline int sovia_credit_granted(struct sovia_credit *c, u32 window)
{
	if (window < c->granted || window > SOVIA_WINDOW_MAX)
		return -EPROTO;
	sovia_credit_grant(c, window);
	return 0;
}

/* What we should take: more if the peer waits for credits, or to use what it takes. */
static inline u32 sovia_credit_goal(const struct sovia_credit *c, bool wanted)
{
	return min(max(wanted ? 2 * c->own_window : c->own_window, c->granted), c->limit);
}

/* @limit: the largest window, which is taken at once unless sovia_credit_begin() follows. */
static inline void sovia_credit_init(struct sovia_credit *c, u32 limit, u32 threshold)
{
	*c = (struct sovia_credit) {
		.limit = limit,
		.threshold_limit = clamp_t(u32, threshold, 1, limit),
	};
	sovia_credit_begin(c, limit);
}

/* Receives that a window needs: see above. */
static inline u32 sovia_credit_receives(u32 window)
{
	return 2 * window + 2;
}

/* The largest window that so many are enough for. */
static inline u32 sovia_credit_of_receives(u32 receives)
{
	return (receives - 2) / 2;
}

/* Number of messages sent that the peer has not acknowledged. */
static inline u32 sovia_credit_flight(const struct sovia_credit *c)
{
	return c->tx_next - c->tx_una;
}

/* May another sequenced message be sent? */
static inline bool sovia_credit_may_send(const struct sovia_credit *c)
{
	return sovia_credit_flight(c) < c->window;
}

/* The acknowledgment to put into the next message. */
static inline u32 sovia_credit_ack(const struct sovia_credit *c)
{
	u32 ack = c->rx_next - c->rx_unposted - c->rx_held;

	return sovia_before(ack, c->rx_acked) ? c->rx_acked : ack;
}

/* That acknowledgment has been sent. */
static inline void sovia_credit_ack_sent(struct sovia_credit *c)
{
	c->rx_acked = sovia_credit_ack(c);
	c->asked = false;
}

/* Is there anything to acknowledge? */
static inline bool sovia_credit_ack_pending(const struct sovia_credit *c)
{
	return sovia_credit_ack(c) != c->rx_acked;
}

/* Have so many messages come, without any of ours to acknowledge them? */
static inline bool sovia_credit_ack_many(const struct sovia_credit *c)
{
	return sovia_credit_ack(c) - c->rx_acked >= c->threshold;
}

/* Must it be acknowledged now, without waiting to piggyback it on a message? */
static inline bool sovia_credit_ack_due(const struct sovia_credit *c)
{
	return sovia_credit_ack_many(c) ||
	       (sovia_credit_ack_pending(c) && (c->asked || c->told != c->own_window));
}

/*
 * A sequenced message was received.  -EPROTO: out of order, -ENOBUFS: beyond the
 * credit granted.
 */
static inline int sovia_credit_receive(struct sovia_credit *c, u32 seq)
{
	if (seq != c->rx_next)
		return -EPROTO;
	if (c->rx_next - c->rx_acked >= c->own_window)
		return -ENOBUFS;
	c->rx_next++;
	return 0;
}

/* An acknowledgment was received.  -EPROTO: of messages never sent. */
static inline int sovia_credit_acked(struct sovia_credit *c, u32 ack)
{
	if (sovia_before(c->tx_next, ack))
		return -EPROTO;
	/* Duplicates and stale ones change nothing. */
	if (sovia_before(c->tx_una, ack))
		c->tx_una = ack;
	return 0;
}

/* @waiting answers are queued: hold credits back if they are many. */
static inline void sovia_credit_hold(struct sovia_credit *c, u32 waiting)
{
	c->rx_held = waiting > c->own_window ? waiting - c->own_window : 0;
}

/* A new VI: all descriptors are posted, and the hello acknowledges what has arrived. */
static inline void sovia_credit_restart(struct sovia_credit *c)
{
	c->rx_acked = c->rx_next;
	c->rx_unposted = 0;
	c->asked = false;
}

/*
 * The peer expects @rx_next on the new VI: all below has arrived, the rest is
 * retransmitted.  -EPROTO: out of range.
 */
static inline int sovia_credit_rewind(struct sovia_credit *c, u32 rx_next)
{
	if (rx_next - c->tx_una > sovia_credit_flight(c))
		return -EPROTO;
	c->tx_una = rx_next;
	c->tx_next = rx_next;
	return 0;
}

#endif /* _SOVIA_CREDIT_H */

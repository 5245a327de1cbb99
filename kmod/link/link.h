/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Links between two addresses: states, recovery, parking, and the VIs of their lanes.
 *
 * Lock order, outermost first (Documentation/locking.rst):
 *	socket lock > conn->lock > sk_receive_queue.lock
 *	socket lock > link_lock > link->lock > lane->lock
 */
#ifndef _SOVIA_LINK_H
#define _SOVIA_LINK_H

#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <net/sock.h>
#include "compat/timer.h"
#include "core/net.h"
#include "core/provider.h"
#include "lane/lane.h"
#include "peer/peer.h"

struct sovia_tenant;

/**
 * enum sovia_link_state - state of a link
 * @SOVIA_LINK_NEW: no lane yet
 * @SOVIA_LINK_CONNECTING: the provider is setting the lane up, or it is tried
 * @SOVIA_LINK_UP: messages flow
 * @SOVIA_LINK_RECOVERING: the lane is lost, another VI is being set up; connections
 *	are not notified
 * @SOVIA_LINK_PARKED: idle, without a VI: link_park.c; connections are not notified
 * @SOVIA_LINK_DOWN: dead and out of the table; connections are notified
 * @SOVIA_LINK_STATES: how many there are
 */
enum sovia_link_state {
	SOVIA_LINK_NEW,
	SOVIA_LINK_CONNECTING,
	SOVIA_LINK_UP,
	SOVIA_LINK_RECOVERING,
	SOVIA_LINK_PARKED,
	SOVIA_LINK_DOWN,
	SOVIA_LINK_STATES
};

/**
 * struct sovia_recovery - recovery of a link: link_recover.c
 * @since: when the lane was lost, jiffies
 * @up_since: when the last one was established, jiffies
 * @tx: the lane's first unacknowledged number then
 * @rx: number of the message expected then
 * @tries: attempts of ours since @since
 * @due: when the next attempt is to be, jiffies
 * @early: the last attempt was made before that, as a device had come
 * @refused: consecutive attempts that the peer's node has refused, without early ones
 *
 * Used by the connection thread only.
 */
struct sovia_recovery {
	unsigned long	since;
	unsigned long	up_since;
	u32		tx;
	u32		rx;
	unsigned int	tries;
	unsigned long	due;
	bool		early;
	unsigned int	refused;
};

/**
 * enum sovia_slot - does a link have a slot for its set-up: link_slot.c
 * @SOVIA_SLOT_NONE: no
 * @SOVIA_SLOT_WAITS: not yet
 * @SOVIA_SLOT_HELD: yes
 */
enum sovia_slot {
	SOVIA_SLOT_NONE,
	SOVIA_SLOT_WAITS,
	SOVIA_SLOT_HELD,
};

/**
 * enum sovia_slot_kind - on whose account a set-up is
 * @SOVIA_SLOT_USER: the user whose connection asked for the link
 * @SOVIA_SLOT_PEER: the peer that asked for it
 * @SOVIA_SLOT_RECOVERY: no user's and no peer's: the link has been up
 * @SOVIA_SLOT_KINDS: how many there are
 */
enum sovia_slot_kind {
	SOVIA_SLOT_USER,
	SOVIA_SLOT_PEER,
	SOVIA_SLOT_RECOVERY,
	SOVIA_SLOT_KINDS
};

/**
 * struct sovia_link - all connections between two addresses that use one lane
 * @kref: the table (until DOWN), each connection, its VI, queued work and the armed timer
 * @rcu: readers of /proc may access it after the last reference
 * @snet: namespace, held
 * @ns_tracker: of that reference
 * @pair: the key
 * @uid: of the socket that asked for it first; invalid if the peer did
 * @opener: uid of the last connect() that waits for the right to open connections
 * @tenant: who asked for it first, within this host, with a reference; else NULL
 * @net_node: in sovia_net::links.  Protected by sovia_net::link_lock.
 * @far_node: in sovia_net::far_links or ::parked_links, unless its provider is local.  Likewise.
 * @parked: in the second one.  Likewise.
 * @idle: counted in sovia_net::idle_count.  Likewise.
 * @id: its number in sovia_net::link_ids.  Likewise.
 * @lock: protects @state and @conns; taken with bottom halves off
 * @state: written by the connection thread only, through link_enter()
 * @conns: struct sovia_conn::link_node
 * @conn_count: length of @conns
 * @events: SOVIA_LINK_EV_* for the connection thread
 * @work: runs in the connection thread
 * @timer: retry of a set-up, the end of a recovery, and the idle probe
 * @lane: the lane
 * @recovery: of the lane
 * @vi: its VI until that has ended, or NULL: see link_vi.c
 * @wanted: an attempt of ours to make one waits
 * @deferred: a request of the peer that waits for the end of @vi, or NULL
 * @pause: delay of the last retry because the peer had no room, jiffies
 * @slot: for its set-up
 * @slot_kind: of the slot that it has or waits for
 * @slot_node: in a list of link_slot.c, unless @slot is SOVIA_SLOT_NONE
 * @slot_behind: links that wait behind it: for its slot, or if it waits, of its user
 * @slot_user: in a hash of link_slot.c, if it is the first of its user that waits
 * @keep_until: it is set up without connections until then, jiffies; or 0
 * @peering: the kernel at the other end; it waits: @wanted, but the peer is not known yet; or UP,
 *	but no connections may be opened
 * @path: of the VI; written by its seal upcall
 * @generation: of the last request; likewise, or from the peer
 * @stale: requests in a row that the peer did not know
 * @seen_una: the lane's first unacknowledged number when the timer last fired
 * @waiting: it has fired, so @seen_una is valid
 * @rtr_retry: jiffies until the first message of the lane is repeated, or 0
 * @trial_wait: jiffies until the trial of its lane goes on or fails, or 0
 * @trials: failed ones in a row
 * @used: number of messages but probes when the timer last fired
 * @park_wanted: the peer is to be asked to park the link
 * @park_asked: when it was last asked, jiffies
 * @waits_room: PARKED, and to be used again when there are fewer links
 * @local_counted: it is in sovia_tenant::local_links of @tenant
 * @spare_counted: it is in local_spare of it.  @lock, once it is in the table.
 * @resumes: RECOVERING, because it was parked
 * @doubted: a peer requested a link that is UP, or its port is down: its lane is being checked
 * @doubt_end: deadline of that, jiffies
 * @doubt_una: the lane's first unacknowledged number when it started
 */
struct sovia_link {
	struct kref			kref;
	struct rcu_head			rcu;
	struct sovia_net		*snet;
	netns_tracker			ns_tracker;
	struct sovia_pair		pair;
	kuid_t				uid;
	kuid_t				opener;
	struct sovia_tenant		*tenant;
	struct hlist_node		net_node;
	struct list_head		far_node;
	bool				parked;
	bool				idle;
	u32				id;
	spinlock_t			lock;	/* see above */
	enum sovia_link_state		state;
	struct list_head		conns;
	unsigned int			conn_count;
	unsigned long			events;
	struct kthread_work		work;
	struct timer_list		timer;
	struct sovia_lane		lane;
	struct sovia_recovery		recovery;
	struct sovia_vi			*vi;
	bool				wanted;
	struct sovia_vi_request		*deferred;
	unsigned long			pause;
	enum sovia_slot			slot;
	enum sovia_slot_kind		slot_kind;
	struct list_head		slot_node;
	struct list_head		slot_behind;
	struct hlist_node		slot_user;
	unsigned long			keep_until;
	struct sovia_peering		peering;
	struct sovia_path		path;
	u32				generation;
	unsigned int			stale;
	u32				seen_una;
	bool				waiting;
	unsigned long			rtr_retry;
	unsigned long			trial_wait;
	unsigned int			trials;
	u32				used;
	bool				park_wanted;
	unsigned long			park_asked;
	bool				waits_room;
	bool				local_counted;
	bool				spare_counted;
	bool				resumes;
	bool				doubted;
	unsigned long			doubt_end;
	u32				doubt_una;
};

/* Events of a link, bits of sovia_link::events. */
#define SOVIA_LINK_EV_START	0	/* it is needed: by a connection, or parked by a message */
#define SOVIA_LINK_EV_UP	1	/* the lane is established */
#define SOVIA_LINK_EV_DOWN	2	/* the lane died */
#define SOVIA_LINK_EV_KILL	3	/* namespace exit */
#define SOVIA_LINK_EV_TIMER	4	/* @timer fired */
#define SOVIA_LINK_EV_BREAK	5	/* debugfs' file break: kill the lane */
#define SOVIA_LINK_EV_ENDED	6	/* the VI is gone */
#define SOVIA_LINK_EV_SLOT	7	/* the set-up it waits for may start */
#define SOVIA_LINK_EV_PEER	8	/* the peer is known, or cannot be */
#define SOVIA_LINK_EV_OPEN	9	/* connections are to be opened over a link of the peer's */
#define SOVIA_LINK_EV_MOVED	10	/* our address has been removed */
#define SOVIA_LINK_EV_TRIAL	11	/* the lane is tried */
#define SOVIA_LINK_EV_PARK	12	/* we have agreed to park it */
#define SOVIA_LINK_EV_SPARE	13	/* it is idle, and is to be parked */
#define SOVIA_LINK_EV_FLUSH	14	/* it is to end if no connection uses it */
#define SOVIA_LINK_EV_DOUBT	15	/* the port that the lane uses is down */

/* The link that a lane is part of. */
static inline struct sovia_link *sovia_link_of(const struct sovia_lane *lane)
{
	return container_of((struct sovia_lane *)lane, struct sovia_link, lane);
}

/* The link of a connection, which has a reference to it. */
static inline struct sovia_link *sovia_conn_link(const struct sovia_conn *conn)
{
	return sovia_link_of(conn->lane);
}

/* Has it been up, and its connections may go on? */
static inline bool sovia_link_lives(enum sovia_link_state state)
{
	return state == SOVIA_LINK_UP || state == SOVIA_LINK_RECOVERING ||
	       state == SOVIA_LINK_PARKED;
}

struct sovia_link *sovia_link_alloc(struct sovia_net *snet, const struct sovia_pair *pair,
				    const struct sovia_provider *prov, kuid_t uid,
				    struct sovia_tenant *tenant, gfp_t gfp);
void sovia_link_ask_room(struct sovia_link *link);
void sovia_link_ref(struct sovia_link *link);
void sovia_link_put(struct sovia_link *link);
void sovia_link_event(struct sovia_link *link, unsigned int event);
void sovia_link_keep(struct sovia_link *link);
void sovia_link_wait(void);
const char *sovia_link_state_name(enum sovia_link_state state);

#endif /* _SOVIA_LINK_H */

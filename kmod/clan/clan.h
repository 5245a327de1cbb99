/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Provider clan: VIs in memory that nodes share (Documentation/clan.rst).
 *
 *	vi.c		the provider's calls, states of a VI
 *	vi_data.c	messages of a VI
 *	node.c		the other nodes: they come and go, entries go to them and come from them
 *	port.c		a node's access to the memory: the bottom half
 *	way.c		which memories this kernel has, and who else is there
 *	pci.c		memories that are PCI devices
 *	soft.c		two nodes in this kernel, for tests
 *	ring.c, pool.c	what they stand on
 */
#ifndef _SOVIA_CLAN_CLAN_H
#define _SOVIA_CLAN_CLAN_H

#include <linux/completion.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/refcount.h>
#include <linux/timer.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "core/provider.h"
#include "pool.h"
#include "ring.h"
#include "core/way.h"

struct sovia_clan_port;

/**
 * struct sovia_clan_node - another node, and what goes to and from it
 * @port: ours
 * @number: its own
 * @slot: what it says of itself
 * @pages: its pool
 * @generation: its generation, or 0; written by the bottom half
 * @epoch: of our area
 * @seen: epoch of its area that ours names, or 0; bottom half
 * @opened: when the node was opened, jiffies; bottom half
 * @quiet: before that it is not looked at, jiffies; bottom half
 * @strikes: how often it has violated the protocol of late; bottom half
 * @taken: sovia_clan_out::read when the bottom half last looked
 * @waits: there was a message when the timer looked
 * @waits_for: and its index
 * @lock: protects what follows; inside lane locks, bottom halves off
 * @open: each end has seen the other's epoch
 * @out: to it
 * @control: struct sovia_clan_control that wait for room in @out
 * @waiting: how many
 * @lenders: VIs that have been lent pages for, and have not ended
 * @left: when the last of them has ended, jiffies
 * @senders: struct sovia_clan_vi::sender, of those with messages not completed
 * @in: from it; bottom half
 * @requests: of it that the client has not answered
 */
struct sovia_clan_node {
	struct sovia_clan_port	*port;
	u32			number;
	struct sovia_clan_slot	*slot;
	void			*pages;
	u32			generation;
	u32			epoch;
	u32			seen;
	unsigned long		opened;
	unsigned long		quiet;
	unsigned int		strikes;
	u32			taken;
	bool			waits;
	u32			waits_for;
	spinlock_t		lock;	/* see above */
	bool			open;
	struct sovia_clan_out	out;
	struct list_head	control;
	u32			waiting;
	u32			lenders;
	unsigned long		left;
	struct list_head	senders;
	struct sovia_clan_in	in;
	atomic_t		requests;
};

/**
 * struct sovia_clan_port - a node of ours in a memory
 * @list: in the list of way.c
 * @refs: VIs, requests, and the owner, until it stops it
 * @unused: there are no more of them
 * @net: the namespace that it serves
 * @prov: the provider of its VIs
 * @base: the memory
 * @geometry: of it
 * @number: the node's own
 * @present: where the server says whether there is a node with it
 * @given: what it said when the port was made
 * @lost: it says something else: another machine has the section, which is not written any more
 * @generation: what it says in its slot
 * @doorbell: rings another node; process or softirq
 * @mute: has interrupts not come, or come again; softirq; or NULL
 * @device: of @doorbell and @mute
 * @napi_dev: a dummy network device, required by NAPI
 * @napi: the bottom half, in softirq or for busy polling
 * @first: node that the next poll begins with
 * @starved: the bottom half lacked memory
 * @linger: how long it waits before it looks again, if messages come fast, ns; or 0
 * @lingering: has it run then
 * @lingers: how often it does so before it goes to sleep
 * @asleep: it is asleep since @slept
 * @slept: ns
 * @look: has the bottom half run once more
 * @say_at: when the bottom half repeats what it has said of itself, jiffies
 * @muted: interrupts do not come
 * @rung: how many have come since @say_at was set; written by their handler
 * @moved: entries taken since then, at either end
 * @sleeps: how often the bottom half has gone to sleep
 * @looked: @sleeps when @look ran
 * @pool: pages of its messages
 * @vis: struct sovia_clan_vi by number; changed by the connection thread, read under RCU
 * @next: where the search for a free number begins
 * @node: by number; of its own only @slot and @pages are used
 */
struct sovia_clan_port {
	struct list_head		list;
	refcount_t			refs;
	struct completion		unused;
	struct net			*net;
	const struct sovia_provider	*prov;
	void				*base;
	struct sovia_clan_geometry	geometry;
	u32				number;
	const __le32			*present;
	__le32				given;
	bool				lost;
	u32				generation;
	void				(*doorbell)(struct sovia_clan_port *port, u32 node);
	void				(*mute)(struct sovia_clan_port *port, bool mute);
	void				*device;
	struct net_device		*napi_dev;
	struct napi_struct		napi;
	u32				first;
	bool				starved;
	u32				linger;
	struct hrtimer			lingering;
	u8				lingers;
	bool				asleep;
	u64				slept;
	struct timer_list		look;
	unsigned long			say_at;
	bool				muted;
	u32				rung;
	u32				moved;
	u32				sleeps;
	u32				looked;
	struct sovia_clan_pool		pool;
	struct xarray			vis;
	u32				next;
	struct sovia_clan_node		node[];
};

/**
 * struct sovia_clan_control - an entry that is not a message, and waits for room
 * @list: in sovia_clan_node::control
 * @bytes: how many of @entry there are, and have been allocated
 * @entry: it
 */
struct sovia_clan_control {
	struct list_head	list;
	u32			bytes;
	struct sovia_clan_entry	entry;
};

/**
 * struct sovia_clan_setup - body of REQ, REP and REJ
 * @local: address of who sends it
 * @remote: the other one
 * @epoch: REQ, REP: of the sender's VI
 * @vi: REQ, REP: the sender's VI
 * @err: REJ: a positive errno
 * @hello: REQ, REP
 */
struct sovia_clan_setup {
	__u8			local[16];
	__u8			remote[16];
	__le32			epoch;
	__le16			vi;
	__le16			err;
	struct sovia_hello	hello;
};

/**
 * enum sovia_clan_state - how far a VI is
 * @SOVIA_CLAN_ASKED: REQ or REP has been sent
 * @SOVIA_CLAN_ANSWERED: REP or RTU has come, or what says as much; the client is being told
 * @SOVIA_CLAN_UP: it knows
 * @SOVIA_CLAN_DEAD: it has been told so, or is about to be
 */
enum sovia_clan_state {
	SOVIA_CLAN_ASKED,
	SOVIA_CLAN_ANSWERED,
	SOVIA_CLAN_UP,
	SOVIA_CLAN_DEAD,
};

/**
 * struct sovia_clan_sent - a message whose completion is due
 * @skb: it, with a reference
 * @index: the reader has it when it has taken that many entries
 */
struct sovia_clan_sent {
	struct sk_buff	*skb;
	u32		index;
};

/**
 * struct sovia_clan_vi - a VI
 * @vi: the client's part
 * @port: its node, with a reference
 * @node: the other one
 * @number: of the VI, in @port
 * @epoch: random: entries of an earlier VI with this number have another
 * @their_number: number of the other end
 * @their_epoch: epoch of the other end
 * @passive: the peer asked for it
 * @lock: protects @state, @err and @early; innermost, bottom halves off
 * @state: enum sovia_clan_state
 * @err: why it is DEAD
 * @told: the client knows of that; @work
 * @early: what came before the client knew that it is up
 * @hello: the peer's
 * @work: tells the client, on sovia_setup_wq
 * @late: gives the set-up up, if there is no answer; on sovia_setup_wq
 * @sent: ring of vi.attr.send_depth messages.  sovia_clan_node::lock, as what follows.
 * @head: messages added
 * @tail: messages completed
 * @sender: in sovia_clan_node::senders while there are some, and it has not been ended
 * @lender: it counts as one in sovia_clan_node::lenders
 * @end_work: frees it
 * @rcu: frees it
 */
struct sovia_clan_vi {
	struct sovia_vi		vi;
	struct sovia_clan_port	*port;
	struct sovia_clan_node	*node;
	u32			number;
	u32			epoch;
	u16			their_number;
	u32			their_epoch;
	bool			passive;
	spinlock_t		lock;	/* see above */
	u8			state;
	int			err;
	bool			told;
	struct sk_buff_head	early;
	struct sovia_hello	hello;
	struct work_struct	work;
	struct delayed_work	late;
	struct sovia_clan_sent	*sent;
	u32			head;
	u32			tail;
	struct list_head	sender;
	bool			lender;
	struct work_struct	end_work;
	struct rcu_head		rcu;
};

/* Not 0, which stands for none. */
static inline u32 sovia_clan_random(void)
{
	return get_random_u32() ?: 1;
}

/* node.c */
void sovia_clan_node_reset(struct sovia_clan_node *node);
void sovia_clan_node_close(struct sovia_clan_node *node, int err);
void sovia_clan_node_reclaim(struct sovia_clan_node *node);
int sovia_clan_node_poll(struct sovia_clan_node *node, int budget);
bool sovia_clan_node_has_news(const struct sovia_clan_node *node);
bool sovia_clan_node_look_later(struct sovia_clan_node *node, unsigned long *next);
void sovia_clan_purge_control(struct list_head *controls);
bool sovia_clan_node_is(const struct sovia_clan_port *port, u32 number, u32 generation);
int sovia_clan_control(struct sovia_clan_node *node, u8 kind, u16 vi, u32 epoch,
		       const struct sovia_clan_setup *setup);
void sovia_clan_node_ring(struct sovia_clan_node *node);
void sovia_clan_node_wait(struct sovia_clan_node *node);
bool sovia_clan_node_same(const struct sovia_clan_node *node);
int sovia_clan_node_observe(struct sovia_clan_node *node);

/* port.c */
struct sovia_clan_port *sovia_clan_port_alloc(void *base, u64 size, u32 number);
void sovia_clan_port_begin(struct sovia_clan_port *port);
void sovia_clan_port_stop(struct sovia_clan_port *port);
void sovia_clan_port_free(struct sovia_clan_port *port);
void sovia_clan_port_rung(struct sovia_clan_port *port);
void sovia_clan_port_interrupt(struct sovia_clan_port *port);
void sovia_clan_port_put(struct sovia_clan_port *port);

/* vi.c */
void sovia_clan_vi_closed(struct sovia_clan_vi *cv, int err);
bool sovia_clan_vi_answered(struct sovia_clan_vi *cv, const struct sovia_clan_setup *setup);
void sovia_clan_requested(struct sovia_clan_node *node, const struct sovia_clan_setup *setup);

/* vi_data.c */
int sovia_clan_post_send(struct sovia_vi *vi, struct sk_buff *skb,
			 const struct sovia_post *how);
int sovia_clan_vi_receive(struct sovia_clan_vi *cv, const struct sovia_clan_entry *entry);
void sovia_clan_vi_deliver(struct sovia_clan_vi *cv, struct sk_buff *skb);
void sovia_clan_vi_complete(struct sovia_clan_vi *cv, bool ok);

/* way.c */
void sovia_clan_way_add(struct sovia_clan_port *port);
void sovia_clan_way_remove(struct sovia_clan_port *port);
struct sovia_clan_node *sovia_clan_way_node(const struct net *net,
					    const struct sovia_clan_way *way);

/* soft.c */
struct sovia_clan_node *sovia_clan_soft_node(const struct net *net);

#endif /* _SOVIA_CLAN_CLAN_H */

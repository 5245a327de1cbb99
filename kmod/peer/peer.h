/* SPDX-License-Identifier: GPL-2.0-only */
/* Other kernels, as far as they have introduced themselves. */
#ifndef _SOVIA_PEER_H
#define _SOVIA_PEER_H

#include "anchor.h"
#include "core/net.h"
#include "core/provider.h"
#include "secret.h"

/**
 * enum sovia_peer_state - what is known of a peer
 * @SOVIA_PEER_NONE: nothing yet
 * @SOVIA_PEER_PAIRED: the secret, and the anchor is there
 * @SOVIA_PEER_UNANCHORED: the secret; the anchor is lost
 */
enum sovia_peer_state {
	SOVIA_PEER_NONE,
	SOVIA_PEER_PAIRED,
	SOVIA_PEER_UNANCHORED,
};

/**
 * struct sovia_peer - another kernel, between two addresses
 * @kref: the table, links, anchors, the armed timer, queued work
 * @snet: namespace, not held; valid while the peer is in the table
 * @pair: the addresses; lane is 0
 * @net_node: in sovia_rendezvous::peers
 * @lru_node: in sovia_rendezvous::peer_lru
 * @id: in sovia_rendezvous::peer_ids
 * @state: enum sovia_peer_state
 * @out: we may open connections to it: an exchange that we began has succeeded, and its or a
 *	later anchor is there.  Read without the connection thread.
 * @in: it may open connections to us.  Likewise.
 * @version: of the wire format, likewise
 * @features: that both have, likewise
 * @key: under which we have met, likewise
 * @way: to it in shared memory, if there is one
 * @users: struct sovia_peering::node of links that are not DOWN
 * @anchor: if PAIRED, with a reference
 * @attempt: of ours, with a reference, or NULL
 * @twin: the other end, in another namespace of this kernel, with a reference, or NULL: near.c
 * @gone: not in the table any more; likewise
 * @asking_since: when the first attempt in a row began, jiffies
 * @asked: when the last one began, jiffies
 * @asking: there was one, and no link could go on since
 * @timer: delay of the next attempt
 * @work: starts it
 * @lock: protects what follows; bottom halves stay on
 * @secret: valid unless the state is NONE
 * @generation: of our last request
 * @heard: of the peer's last request, by lane
 * @rcu: administrators read it without the connection thread: admin/genl_peer.c
 *
 * All but what @lock protects belongs to the connection thread.
 */
struct sovia_peer {
	struct kref		kref;
	struct sovia_net	*snet;
	struct sovia_pair	pair;
	struct hlist_node	net_node;
	struct list_head	lru_node;
	u32			id;
	enum sovia_peer_state	state;
	bool			out;
	bool			in;
	u8			version;
	u64			features;
	struct sovia_key_use	key;
	struct sovia_clan_way	way;
	struct list_head	users;
	struct sovia_anchor	*anchor;
	struct sovia_anchor	*attempt;
	struct sovia_peer	*twin;
	bool			gone;
	unsigned long		asking_since;
	unsigned long		asked;
	bool			asking;
	struct timer_list	timer;
	struct kthread_work	work;
	spinlock_t		lock;	/* see above */
	struct sovia_secret	secret;
	u32			generation;
	u32			heard[SOVIA_LANES_MAX];
	struct rcu_head		rcu;
};

/**
 * struct sovia_peering - a link's part in a peer
 * @peer: the kernel at the other end, with a reference, or NULL; set once
 * @node: in sovia_peer::users, unless the link is DOWN
 * @waits: the link waits until the peer is known, or until connections may be opened
 * @err: why that cannot be, a negative errno, or 0
 */
struct sovia_peering {
	struct sovia_peer	*peer;
	struct list_head	node;
	bool			waits;
	int			err;
};

/**
 * struct sovia_peer_ops - the layer above: links, by their struct sovia_peering
 * @wake: it does not wait any more; @err says whether it may go on.  Connection thread.
 * @uid: the user whose connection waits.  Connection thread.
 * @is_up: its lane is up.  Connection thread.
 * @doubt: find out whether the lane still works, if it is up.  Connection thread.
 * @replaced: another kernel has taken the peer's place: it ends, if it waits for the one before.
 *	Connection thread.
 * @ended: nothing that was agreed holds any more: it ends, unless it waits.  Connection thread.
 * @listen: have providers listen in a namespace.  Process, may sleep.  Returns 0 or an errno.
 */
struct sovia_peer_ops {
	void	(*wake)(struct sovia_peering *peering);
	kuid_t	(*uid)(const struct sovia_peering *peering);
	bool	(*is_up)(const struct sovia_peering *peering);
	void	(*doubt)(struct sovia_peering *peering);
	void	(*replaced)(struct sovia_peering *peering);
	void	(*ended)(struct sovia_peering *peering);
	int	(*listen)(struct sovia_net *snet);
};

extern const struct sovia_peer_ops *sovia_peer_ops;

void sovia_peer_register_ops(const struct sovia_peer_ops *ops);
struct sovia_peer *sovia_peer_find(struct sovia_net *snet, const struct sovia_pair *pair);
struct sovia_peer *sovia_peer_find_sealed(struct sovia_net *snet, struct sovia_vi_request *req);
struct sovia_peer *sovia_peer_get(struct sovia_net *snet, const struct sovia_pair *pair);
void sovia_peer_set_timer(struct sovia_peer *peer, unsigned long delay);
void sovia_peer_drop_anchor(struct sovia_anchor **anchor);
void sovia_peer_wake(struct sovia_peer *peer, int err);
void sovia_peer_go_on(struct sovia_peer *peer);
void sovia_peer_detach(struct sovia_peering *peering);
void sovia_peer_put(struct sovia_peer *peer);
void sovia_peer_attach(struct sovia_peering *peering, struct sovia_peer *peer);
void sovia_peers_tidy(struct sovia_net *snet);
void sovia_peers_flush(struct sovia_net *snet);
void sovia_peers_init(struct sovia_net *snet);
void sovia_peers_stop(struct sovia_net *snet);

#endif /* _SOVIA_PEER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* TCP connections between two kernels: the rendezvous, and what stays of it. */
#ifndef _SOVIA_ANCHOR_H
#define _SOVIA_ANCHOR_H

#include <linux/kref.h>
#include <linux/kthread.h>
#include <linux/net.h>
#include <linux/timer.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <sovia/rendezvous.h>
#include "core/way.h"
#include "core/net.h"
#include "core/provider.h"
#include "key.h"

struct sovia_peer;

#define SOVIA_NONCE_LEN		sizeof_field(struct sovia_rdv_hello, nonce)

/* Bits of sovia_anchor::flags. */
#define SOVIA_ANCHOR_OPEN	0	/* established, and our HELLO is out */
#define SOVIA_ANCHOR_SEND	1	/* out waits to be sent */
#define SOVIA_ANCHOR_FULL	2	/* in waits for the connection thread */
#define SOVIA_ANCHOR_SETTLE	3	/* the exchange is over */
#define SOVIA_ANCHOR_LATE	4	/* the deadline has passed */
#define SOVIA_ANCHOR_SHUT	5	/* the connection thread wants it closed */
#define SOVIA_ANCHOR_CLOSED	6	/* it is, see err */
#define SOVIA_ANCHOR_GONE	7	/* the connection thread has seen that */

/**
 * struct sovia_agreement - what HELLO and ANSWER have agreed on
 * @secret: the new one
 * @key: that it comes from, too
 * @version: of the wire format
 * @features: that both have
 * @way: of the peer in shared memory, if both have it
 */
struct sovia_agreement {
	struct sovia_secret	secret;
	struct sovia_key_use	key;
	u8			version;
	u64			features;
	struct sovia_clan_way	way;
};

/**
 * struct sovia_anchor - a TCP connection to another kernel
 * @kref: the namespace's list until the peer knows of its end, the peer, queued works and the
 *	armed timer
 * @snet: namespace, not held: see sovia_anchors_stop()
 * @net_node: in sovia_rendezvous::anchors.  Protected by sovia_rendezvous::lock.
 * @pair: addresses; lane is 0
 * @active: we ask
 * @uid: of the socket that needs it, invalid if the peer asks
 * @settled: the exchange is over; written by the connection thread
 *
 * @peer: that it belongs to, with a reference, or NULL.  Connection thread.
 * @pending: ANSWER is out, and CONFIRM has to come.  Likewise.
 * @agreed: what it confirms.  Likewise.
 * @told: gives the connection thread a message, and the end
 *
 * @near_node: its offer may be met in this kernel: near.c, which protects this and the next two
 * @nonce: of that offer
 * @near_peer: whose offer it is, with a reference
 * @twin: peer at the other end in this kernel, with a reference, or NULL.  Connection thread.
 *
 * @flags: SOVIA_ANCHOR_*
 * @work: the only user of @sock, on the set-up queue
 * @timer: deadline of the exchange
 * @sock: the socket, or NULL
 * @data_ready: its callback before ours
 * @state_change: likewise
 * @err: why it was closed, a negative errno
 * @second: when @messages was reset, jiffies
 * @messages: received since then
 * @in_len: bytes in @in
 * @out_len: bytes in @out
 * @in: a message, of the work until it is whole, then of the connection thread until taken
 * @out: a message, of the connection thread until sovia_anchor_send(), then of the work until
 *	sent; its bytes stay
 */
struct sovia_anchor {
	struct kref		kref;
	struct sovia_net	*snet;
	struct list_head	net_node;
	struct sovia_pair	pair;
	bool			active;
	kuid_t			uid;
	bool			settled;

	struct sovia_peer	*peer;
	bool			pending;
	struct sovia_agreement	agreed;
	struct kthread_work	told;

	struct hlist_node	near_node;
	u8			nonce[SOVIA_NONCE_LEN];
	struct sovia_peer	*near_peer;
	struct sovia_peer	*twin;

	unsigned long		flags;
	struct work_struct	work;
	struct timer_list	timer;
	struct socket		*sock;
	void			(*data_ready)(struct sock *sk);
	void			(*state_change)(struct sock *sk);
	int			err;
	unsigned long		second;
	unsigned int		messages;
	unsigned int		in_len;
	unsigned int		out_len;
	u64			in[SOVIA_RDV_LEN_MAX / sizeof(u64)];
	u64			out[SOVIA_RDV_LEN_MAX / sizeof(u64)];
};

void sovia_anchor_init(struct sovia_anchor *anchor, struct sovia_net *snet,
		       const struct sovia_pair *pair, bool active);
struct sovia_anchor *sovia_anchor_ask(struct sovia_net *snet, const struct sovia_pair *pair,
				      kuid_t uid);
int sovia_anchor_accept(struct sovia_net *snet, const struct sovia_pair *pair,
			struct socket *sock);
void sovia_anchor_put(struct sovia_anchor *anchor);
bool sovia_anchor_may_send(const struct sovia_anchor *anchor);
void sovia_anchor_send(struct sovia_anchor *anchor, unsigned int len);
bool sovia_anchor_open(const struct sovia_anchor *anchor);
void sovia_anchor_settle(struct sovia_anchor *anchor);
void sovia_anchor_shut(struct sovia_anchor *anchor);
unsigned int sovia_anchor_message(const struct sovia_anchor *anchor);
void sovia_anchor_taken(struct sovia_anchor *anchor);
void sovia_anchors_shut(struct sovia_net *snet);
void sovia_anchors_stop(struct sovia_net *snet);

#endif /* _SOVIA_ANCHOR_H */

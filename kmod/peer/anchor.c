// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP connections between two kernels.  See Documentation/rendezvous.rst.
 *
 * A work of each does all that concerns its socket, and nothing of it waits: the socket's
 * callbacks, a timer and the connection thread queue it.  It gives whole messages to the
 * connection thread, one at a time, and reads no more until that has taken it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/ip6_fib.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/route.h>
#include <net/tcp.h>
#include "anchor.h"
#include "compat/timer.h"
#include "core/connd.h"
#include "core/objcount.h"
#include "core/work.h"
#include "peer.h"
#include "peer_meet.h"
#include "rdv_wire.h"
#include "rendezvous.h"

/* As long as the connection manager repeats a request. */
#define ANCHOR_CONNECT_TIME	(20 * HZ)
/* The exchange, once the connection is established. */
#define ANCHOR_EXCHANGE_TIME	(2 * HZ)
#define ANCHOR_RATE		16	/* messages a second */
#define ANCHOR_RCVBUF		4096
/* Keepalive, seconds. */
#define ANCHOR_IDLE		15
#define ANCHOR_INTERVAL		5
#define ANCHOR_PROBES		3
/* A peer that is silent for so many seconds is gone. */
#define ANCHOR_SILENCE		(ANCHOR_IDLE + ANCHOR_PROBES * ANCHOR_INTERVAL)

static void anchor_free(struct kref *kref)
{
	struct sovia_anchor *anchor = container_of(kref, struct sovia_anchor, kref);

	if (anchor->twin)
		sovia_peer_put(anchor->twin);
	/* The buffers had what the secret was made of. */
	kfree_sensitive(anchor);
	sovia_object_dec(anchors);
}

/**
 * sovia_anchor_put() - drop a reference
 * @anchor: the anchor
 *
 * Context: any.
 */
void sovia_anchor_put(struct sovia_anchor *anchor)
{
	kref_put(&anchor->kref, anchor_free);
}

static void anchor_kick(struct sovia_anchor *anchor)
{
	kref_get(&anchor->kref);
	if (!queue_work(sovia_setup_wq, &anchor->work))
		sovia_anchor_put(anchor);
}

static void anchor_tell(struct sovia_anchor *anchor)
{
	kref_get(&anchor->kref);
	if (!sovia_connd_queue(&anchor->told))
		sovia_anchor_put(anchor);
}

/* ---- the socket --------------------------------------------------------- */

/* Softirq, or under the socket's lock. */
static void anchor_callback(struct sock *sk)
{
	struct sovia_anchor *anchor;

	read_lock_bh(&sk->sk_callback_lock);
	anchor = sk->sk_user_data;
	if (anchor)
		anchor_kick(anchor);
	read_unlock_bh(&sk->sk_callback_lock);
}

static void anchor_attach(struct sovia_anchor *anchor, struct socket *sock)
{
	struct sock *sk = sock->sk;

	anchor->sock = sock;
	sock_set_rcvbuf(sk, ANCHOR_RCVBUF);
	tcp_sock_set_nodelay(sk);
	write_lock_bh(&sk->sk_callback_lock);
	anchor->data_ready = sk->sk_data_ready;
	anchor->state_change = sk->sk_state_change;
	sk->sk_user_data = anchor;
	sk->sk_data_ready = anchor_callback;
	sk->sk_state_change = anchor_callback;
	write_unlock_bh(&sk->sk_callback_lock);
}

static void anchor_detach(struct sovia_anchor *anchor)
{
	struct socket *sock = anchor->sock;
	struct sock *sk = sock->sk;

	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = anchor->data_ready;
	sk->sk_state_change = anchor->state_change;
	write_unlock_bh(&sk->sk_callback_lock);
	anchor->sock = NULL;
	sovia_rendezvous_close(sock);
}

/* The hop limit proves that a peer is on the link: one behind a router is not asked. */
static bool is_routed_v4(struct net *net, const struct sovia_pair *pair)
{
	struct flowi4 fl4 = {
		.flowi4_oif = pair->l3, .flowi4_proto = IPPROTO_TCP,
		.saddr = pair->local.s6_addr32[3], .daddr = pair->remote.s6_addr32[3],
	};
	struct rtable *rt = ip_route_output_key(net, &fl4);
	bool routed;

	if (IS_ERR(rt))
		return false;
	routed = rt->rt_uses_gateway;
	ip_rt_put(rt);
	return routed;
}

static bool is_routed_v6(struct net *net, const struct sovia_pair *pair)
{
	struct flowi6 fl6 = {
		.flowi6_oif = pair->scope ?: pair->l3, .flowi6_proto = IPPROTO_TCP,
		.saddr = pair->local, .daddr = pair->remote,
	};
	struct dst_entry *dst;
	bool routed;

	if (ip6_dst_lookup(net, NULL, &dst, &fl6))
		return false;
	routed = container_of(dst, struct rt6_info, dst)->rt6i_flags & RTF_GATEWAY;
	dst_release(dst);
	return routed;
}

static bool anchor_is_routed(const struct sovia_anchor *anchor)
{
	const struct sovia_pair *pair = &anchor->pair;
	struct net *net = anchor->snet->net;

	if (ipv6_addr_v4mapped(&pair->remote))
		return is_routed_v4(net, pair);
	return is_routed_v6(net, pair);
}

static int anchor_connect(struct sovia_anchor *anchor)
{
	struct socket *sock;
	int err;

	if (anchor_is_routed(anchor)) {
		pr_notice_ratelimited("peer %pI6c is behind a router: no link\n",
				      &anchor->pair.remote);
		return -EHOSTUNREACH;
	}
	sock = sovia_rendezvous_socket(anchor->snet, &anchor->pair);
	if (IS_ERR(sock))
		return PTR_ERR(sock);
	anchor_attach(anchor, sock);
	err = sovia_rendezvous_connect(sock, &anchor->pair);
	return err == -EINPROGRESS ? 0 : err;
}

/* ---- the work ----------------------------------------------------------- */

static void anchor_set_timer(struct sovia_anchor *anchor, unsigned long delay)
{
	kref_get(&anchor->kref);
	if (mod_timer(&anchor->timer, jiffies + delay))
		sovia_anchor_put(anchor);
}

static void anchor_stop_timer(struct sovia_anchor *anchor)
{
	if (timer_delete_sync(&anchor->timer))
		sovia_anchor_put(anchor);
	clear_bit(SOVIA_ANCHOR_LATE, &anchor->flags);
}

static void anchor_timeout(struct timer_list *timer)
{
	struct sovia_anchor *anchor = timer_container_of(anchor, timer, timer);

	set_bit(SOVIA_ANCHOR_LATE, &anchor->flags);
	anchor_kick(anchor);
	sovia_anchor_put(anchor);
}

/*
 * A peer that has lost its end without a word answers with RST, whose hop limit is the
 * host's default: take it.
 */
static void anchor_do_settle(struct sovia_anchor *anchor)
{
	struct sock *sk = anchor->sock->sk;

	anchor_stop_timer(anchor);
	sovia_rendezvous_set_min_ttl(anchor->sock, 0);
	tcp_sock_set_keepidle(sk, ANCHOR_IDLE);
	tcp_sock_set_keepintvl(sk, ANCHOR_INTERVAL);
	tcp_sock_set_keepcnt(sk, ANCHOR_PROBES);
	sock_set_keepalive(sk);
	/* Keepalive rests while a message is under way, which TCP would retry for minutes. */
	tcp_sock_set_user_timeout(sk, ANCHOR_SILENCE * MSEC_PER_SEC);
}

/* Messages are small, and few: one that does not fit means that the peer does not read. */
static int anchor_do_send(struct sovia_anchor *anchor)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };
	struct kvec vec = { .iov_base = anchor->out, .iov_len = anchor->out_len };
	int sent = kernel_sendmsg(anchor->sock, &msg, &vec, 1, vec.iov_len);

	if (sent < 0)
		return sent == -EAGAIN ? -ENOBUFS : sent;
	if (sent < vec.iov_len)
		return -ENOBUFS;
	clear_bit(SOVIA_ANCHOR_SEND, &anchor->flags);
	return 0;
}

static bool anchor_too_fast(struct sovia_anchor *anchor)
{
	if (time_after_eq(jiffies, anchor->second + HZ)) {
		anchor->second = jiffies;
		anchor->messages = 0;
	}
	return ++anchor->messages > ANCHOR_RATE;
}

/* Bytes that are missing in what has arrived of a message, or a negative errno. */
static int anchor_missing(const struct sovia_anchor *anchor)
{
	int len = sovia_rdv_length(anchor->in, anchor->in_len);

	if (!len)
		len = sizeof(struct sovia_rdv_hdr);
	return len < 0 ? len : len - (int)anchor->in_len;
}

static int anchor_do_receive(struct sovia_anchor *anchor)
{
	int missing, got;

	while (!test_bit(SOVIA_ANCHOR_FULL, &anchor->flags)) {
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
		struct kvec vec;

		missing = anchor_missing(anchor);
		if (missing < 0)
			return missing;
		vec.iov_base = (u8 *)anchor->in + anchor->in_len;
		vec.iov_len = missing;
		got = kernel_recvmsg(anchor->sock, &msg, &vec, 1, missing, MSG_DONTWAIT);
		if (got == -EAGAIN)
			return 0;
		if (got <= 0)
			return got ?: -ECONNRESET;
		anchor->in_len += got;
		if (anchor_missing(anchor))
			continue;
		if (anchor_too_fast(anchor))
			return -EDQUOT;
		set_bit(SOVIA_ANCHOR_FULL, &anchor->flags);
		anchor_tell(anchor);
	}
	return 0;
}

/* Do what can be done now.  Returns an errno when the connection is over. */
static int anchor_go_on(struct sovia_anchor *anchor)
{
	int err = 0;

	if (test_bit(SOVIA_ANCHOR_SHUT, &anchor->flags))
		return -ECONNABORTED;
	if (!anchor->sock)
		err = anchor_connect(anchor);
	if (err)
		return err;
	if (test_and_clear_bit(SOVIA_ANCHOR_SETTLE, &anchor->flags))
		anchor_do_settle(anchor);
	if (test_bit(SOVIA_ANCHOR_LATE, &anchor->flags))
		return -ETIMEDOUT;
	switch (READ_ONCE(anchor->sock->sk->sk_state)) {
	case TCP_SYN_SENT:
	case TCP_SYN_RECV:
		return 0;
	case TCP_ESTABLISHED:
	case TCP_CLOSE_WAIT:
		break;
	default:
		return sock_error(anchor->sock->sk) ?: -ECONNRESET;
	}
	if (!test_and_set_bit(SOVIA_ANCHOR_OPEN, &anchor->flags) && anchor->active) {
		sovia_rendezvous_set_min_ttl(anchor->sock, SOVIA_RENDEZVOUS_TTL);
		anchor_set_timer(anchor, ANCHOR_EXCHANGE_TIME);
	}
	if (test_bit(SOVIA_ANCHOR_SEND, &anchor->flags))
		err = anchor_do_send(anchor);
	return err ?: anchor_do_receive(anchor);
}

static void anchor_close(struct sovia_anchor *anchor, int err)
{
	anchor_stop_timer(anchor);
	if (anchor->sock)
		anchor_detach(anchor);
	anchor->err = err;
	set_bit(SOVIA_ANCHOR_CLOSED, &anchor->flags);
	anchor_tell(anchor);
}

static void anchor_work(struct work_struct *work)
{
	struct sovia_anchor *anchor = container_of(work, struct sovia_anchor, work);
	int err = 0;

	if (!test_bit(SOVIA_ANCHOR_CLOSED, &anchor->flags))
		err = anchor_go_on(anchor);
	if (err)
		anchor_close(anchor, err);
	sovia_anchor_put(anchor);
}

/* It is closed.  Connection thread. */
static void anchor_gone(struct sovia_anchor *anchor)
{
	struct sovia_rendezvous *rdv = &anchor->snet->rdv;

	if (test_and_set_bit(SOVIA_ANCHOR_GONE, &anchor->flags))
		return;
	sovia_peer_lost(anchor);
	spin_lock_bh(&rdv->lock);
	list_del_init(&anchor->net_node);
	spin_unlock_bh(&rdv->lock);
	sovia_anchor_put(anchor);
}

static void anchor_told(struct kthread_work *work)
{
	struct sovia_anchor *anchor = container_of(work, struct sovia_anchor, told);

	if (sovia_anchor_message(anchor)) {
		sovia_peer_message(anchor);
		sovia_anchor_taken(anchor);
	}
	if (test_bit(SOVIA_ANCHOR_CLOSED, &anchor->flags))
		anchor_gone(anchor);
	sovia_anchor_put(anchor);
}

/* ---- calls -------------------------------------------------------------- */

/**
 * sovia_anchor_init() - initialise an anchor
 * @anchor: zeroed memory of kzalloc(); the caller has a reference
 * @snet: namespace
 * @pair: the addresses
 * @active: we ask
 *
 * Context: any.
 */
void sovia_anchor_init(struct sovia_anchor *anchor, struct sovia_net *snet,
		       const struct sovia_pair *pair, bool active)
{
	kref_init(&anchor->kref);
	anchor->snet = snet;
	INIT_LIST_HEAD(&anchor->net_node);
	anchor->pair = *pair;
	anchor->active = active;
	anchor->uid = INVALID_UID;
	anchor->second = jiffies;
	INIT_WORK(&anchor->work, anchor_work);
	kthread_init_work(&anchor->told, anchor_told);
	timer_setup(&anchor->timer, anchor_timeout, 0);
	sovia_object_inc(anchors);
}

static struct sovia_anchor *anchor_alloc(struct sovia_net *snet, const struct sovia_pair *pair,
					 bool active)
{
	struct sovia_anchor *anchor = kzalloc(sizeof(*anchor), GFP_KERNEL);

	if (anchor)
		sovia_anchor_init(anchor, snet, pair, active);
	return anchor;
}

/**
 * sovia_anchor_ask() - prepare a connection to another kernel
 * @snet: namespace
 * @pair: the addresses
 * @uid: user that needs it
 *
 * sovia_anchor_send() of our HELLO starts it.
 *
 * Context: connection thread.
 * Return: the anchor with a reference for the caller, or an ERR_PTR: -ENOMEM, -EBUSY the
 * user, or the namespace, has too many, -ENETUNREACH the rendezvous is off.
 */
struct sovia_anchor *sovia_anchor_ask(struct sovia_net *snet, const struct sovia_pair *pair,
				      kuid_t uid)
{
	struct sovia_anchor *anchor = anchor_alloc(snet, pair, true);
	int err;

	if (!anchor)
		return ERR_PTR(-ENOMEM);
	anchor->uid = uid;
	err = sovia_rendezvous_admit(anchor);
	if (err) {
		sovia_anchor_put(anchor);
		return ERR_PTR(err);
	}
	anchor_set_timer(anchor, ANCHOR_CONNECT_TIME);
	return anchor;
}

/**
 * sovia_anchor_accept() - another kernel has connected
 * @snet: namespace
 * @pair: the addresses
 * @sock: the connection; the anchor's on success
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM or -EBUSY.
 */
int sovia_anchor_accept(struct sovia_net *snet, const struct sovia_pair *pair,
			struct socket *sock)
{
	struct sovia_anchor *anchor = anchor_alloc(snet, pair, false);
	int err;

	if (!anchor)
		return -ENOMEM;
	err = sovia_rendezvous_admit(anchor);
	if (!err) {
		anchor_set_timer(anchor, ANCHOR_EXCHANGE_TIME);
		anchor_attach(anchor, sock);
		/* What came before. */
		anchor_kick(anchor);
	}
	sovia_anchor_put(anchor);
	return err;
}

/**
 * sovia_anchor_may_send() - may sovia_anchor::out be overwritten
 * @anchor: the anchor
 *
 * Context: connection thread.
 * Return: true if so.
 */
bool sovia_anchor_may_send(const struct sovia_anchor *anchor)
{
	return !test_bit(SOVIA_ANCHOR_SEND, &anchor->flags);
}

/**
 * sovia_anchor_send() - send the message in sovia_anchor::out, as soon as that is possible
 * @anchor: the anchor, see sovia_anchor_may_send()
 * @len: its length
 *
 * Context: connection thread.
 */
void sovia_anchor_send(struct sovia_anchor *anchor, unsigned int len)
{
	anchor->out_len = len;
	set_bit(SOVIA_ANCHOR_SEND, &anchor->flags);
	anchor_kick(anchor);
}

/**
 * sovia_anchor_open() - is the connection established
 * @anchor: the anchor
 *
 * Context: any; a hint.
 * Return: true if so.
 */
bool sovia_anchor_open(const struct sovia_anchor *anchor)
{
	return test_bit(SOVIA_ANCHOR_OPEN, &anchor->flags);
}

/**
 * sovia_anchor_settle() - the exchange is over, the anchor stays
 * @anchor: the anchor
 *
 * Context: connection thread.
 */
void sovia_anchor_settle(struct sovia_anchor *anchor)
{
	WRITE_ONCE(anchor->settled, true);
	set_bit(SOVIA_ANCHOR_SETTLE, &anchor->flags);
	anchor_kick(anchor);
}

/**
 * sovia_anchor_shut() - close the connection
 * @anchor: the anchor; sovia_peer_lost() follows unless the caller has cleared its peer
 *
 * Context: connection thread.
 */
void sovia_anchor_shut(struct sovia_anchor *anchor)
{
	set_bit(SOVIA_ANCHOR_SHUT, &anchor->flags);
	anchor_kick(anchor);
}

/**
 * sovia_anchor_message() - length of the message in sovia_anchor::in
 * @anchor: the anchor
 *
 * Context: connection thread.
 * Return: its length, 0 if there is none.
 */
unsigned int sovia_anchor_message(const struct sovia_anchor *anchor)
{
	return test_bit(SOVIA_ANCHOR_FULL, &anchor->flags) ? anchor->in_len : 0;
}

/**
 * sovia_anchor_taken() - the message is not needed any more
 * @anchor: has a message
 *
 * Context: connection thread.
 */
void sovia_anchor_taken(struct sovia_anchor *anchor)
{
	anchor->in_len = 0;
	clear_bit_unlock(SOVIA_ANCHOR_FULL, &anchor->flags);
	anchor_kick(anchor);
}

/* Any of a namespace that is not to be shut yet, or with @shut any at all; with a reference. */
static struct sovia_anchor *anchor_first(struct sovia_net *snet, bool shut)
{
	struct sovia_rendezvous *rdv = &snet->rdv;
	struct sovia_anchor *anchor, *found = NULL;

	spin_lock_bh(&rdv->lock);
	list_for_each_entry(anchor, &rdv->anchors, net_node) {
		if (!shut && test_bit(SOVIA_ANCHOR_SHUT, &anchor->flags))
			continue;
		kref_get(&anchor->kref);
		found = anchor;
		break;
	}
	spin_unlock_bh(&rdv->lock);
	return found;
}

/**
 * sovia_anchors_shut() - close all connections of a namespace, soon
 * @snet: the namespace
 *
 * Context: process.
 */
void sovia_anchors_shut(struct sovia_net *snet)
{
	struct sovia_anchor *anchor;

	while ((anchor = anchor_first(snet, false))) {
		sovia_anchor_shut(anchor);
		sovia_anchor_put(anchor);
	}
}

/**
 * sovia_anchors_stop() - close all connections of a namespace, and wait for their works
 * @snet: the namespace, which is exiting: it has no links, and admits no anchors
 *
 * Peers are the connection thread's, also now: it takes the anchors from them.
 *
 * Context: process, may sleep; not the connection thread.
 */
void sovia_anchors_stop(struct sovia_net *snet)
{
	struct sovia_anchor *anchor;

	sovia_anchors_shut(snet);
	while ((anchor = anchor_first(snet, true))) {
		/* It closes, and tells the connection thread. */
		flush_work(&anchor->work);
		sovia_connd_flush();
		sovia_anchor_put(anchor);
	}
}

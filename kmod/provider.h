/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The VI provider: whatever carries VIs.  The lowest layer; it knows nothing of
 * sockets, ports or credits.
 *
 * A VI moves messages (one sk_buff each, header included) reliably and in
 * order, or dies.  The calls below are VIPL's, the upcalls are struct
 * sovia_vi_client.
 */
#ifndef _SOVIA_PROVIDER_H
#define _SOVIA_PROVIDER_H

#include <linux/in6.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <sovia/wire.h>

struct net;
struct sovia_vi;

/*
 * Payloads up to this size are borrowed by the receive upcall and copied; the
 * descriptor is posted again.  Above it the buffer itself moves on.
 */
#define SOVIA_COPYBREAK		2048

/**
 * struct sovia_pair - the two ends of a link, the key to find it
 * @local: own address, IPv4 as v4-mapped
 * @remote: the peer's address, IPv4 as v4-mapped
 * @scope: interface index for link-local IPv6 addresses, otherwise 0
 * @passive: of the two ends of a link from an address to itself over a device,
 *	the one that was asked; otherwise 0
 * @lane: which of the lanes between the two; the client's, no provider looks at it
 */
struct sovia_pair {
	struct in6_addr	local;
	struct in6_addr	remote;
	int		scope;
	int		passive;
	int		lane;
};

/**
 * struct sovia_vi_request - a peer asks for a VI
 * @prov: provider that received it
 * @net: network namespace it was received in
 * @pair: addresses as seen from this side
 * @hello: what the peer sent; only @hello_len bytes of it are there
 * @hello_len: bytes of @hello that the peer sent, at most sizeof(@hello)
 *
 * Allocated by the provider, which embeds it in its own struct.  Ownership goes
 * to the client with sovia_vi_client::request and back to the provider with
 * sovia_provider::accept or ::reject, exactly once.
 */
struct sovia_vi_request {
	const struct sovia_provider	*prov;
	struct net			*net;
	struct sovia_pair		pair;
	struct sovia_hello		hello;
	unsigned int			hello_len;
};

/**
 * struct sovia_vi_client - upcalls of a VI, implemented by the link layer
 * @established: the VI may send.  @hello/@hello_len: what the peer sent (len as
 *	in struct sovia_vi_request).  Process context; at most once, never after
 *	@closed.
 * @closed: the VI is dead or could not be set up; @err is a negative errno:
 *	-ECONNREFUSED no service at the peer, -EHOSTUNREACH / -ENETUNREACH /
 *	-ENODEV no way there, -ETIMEDOUT the peer does not answer, -ECONNRESET
 *	the peer went away, -EPROTO a bad hello or wire error, -EAGAIN rejected
 *	because both sides tried at once (the peer's own attempt counts), or to be
 *	tried again after a while for another reason, -ESTALE rejected because the
 *	peer does not have the link to go on with.  Any context but hard interrupt;
 *	at most once.
 * @receive: a message arrived, skb->len bytes at skb->data.  @imm: what came
 *	beside it, or NULL; only if the VI's @imm says so.
 *	Softirq, one at a time for each VI, in order, and not before @established
 *	has returned: what comes earlier (lost RTU) waits.  Returns true if it took
 *	the sk_buff (then it is the client's, and the provider must have
 *	detached unused pages from it), false if it has been copied and the
 *	provider may post it again.  Payloads above SOVIA_COPYBREAK are always
 *	taken.
 * @send_done: what became of a posted message: once for each that post_send has
 *	answered SOVIA_POSTED for, at the latest from destroy.  @ok: its local
 *	completion came, in the order of the posts; otherwise the VI died first, and
 *	it is unknown whether it has arrived.  The provider drops its reference to
 *	@skb afterwards.  Bottom halves are off.
 * @rx_unposted: the count of receive descriptors that could not be posted again
 *	for want of memory changed by @delta.
 */
struct sovia_vi_client {
	void (*established)(struct sovia_vi *vi, const struct sovia_hello *hello,
			    unsigned int hello_len);
	void (*closed)(struct sovia_vi *vi, int err);
	bool (*receive)(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm);
	void (*send_done)(struct sovia_vi *vi, struct sk_buff *skb, bool ok);
	void (*rx_unposted)(struct sovia_vi *vi, int delta);
};

/**
 * struct sovia_vi_attr - size of a VI
 * @send_depth: messages under way at most
 * @recv_depth: receive descriptors kept posted
 * @msg_size: largest message, header included, in bytes
 */
struct sovia_vi_attr {
	unsigned int	send_depth;
	unsigned int	recv_depth;
	unsigned int	msg_size;
};

/**
 * struct sovia_vi - one VI: a queue pair, or what stands for it
 * @prov: its provider
 * @client: upcalls
 * @context: the client's own
 * @pair: addresses of both ends
 * @attr: its size
 * @max_frags: page fragments that a message may have beside its linear part;
 *	set by the provider before @established
 * @imm: messages can have 32 bits beside them; set as @max_frags
 * @sends_first: the peer has to wait until it has heard from this side: the client
 *	sends something as soon as the VI is established; set as @max_frags
 *
 * Embedded in the provider's own struct.  Created and destroyed by the
 * connection thread; between these two, post_send may be called from any
 * context but hard interrupt, one call at a time.
 */
struct sovia_vi {
	const struct sovia_provider	*prov;
	const struct sovia_vi_client	*client;
	void				*context;
	struct sovia_pair		pair;
	struct sovia_vi_attr		attr;
	unsigned int			max_frags;
	bool				imm;
	bool				sends_first;
};

/**
 * enum sovia_posted - what has become of a message that was posted
 * @SOVIA_POSTED: the send_done upcall comes when it has been sent
 * @SOVIA_POSTED_UNSIGNALED: there will be no upcall for it
 * @SOVIA_POSTED_TAKEN: neither; and it is the provider's own, because nothing can
 *	happen to it any more but to arrive
 *
 * The last two only if the client has allowed them.
 */
enum sovia_posted {
	SOVIA_POSTED,
	SOVIA_POSTED_UNSIGNALED,
	SOVIA_POSTED_TAKEN,
};

/**
 * struct sovia_post - how a message is to be sent
 * @unsignaled: the client can do without the send_done upcall, and has the only reference
 * @has_imm: send @imm beside it; only if the VI's @imm says so
 * @imm: 32 bits in host order
 */
struct sovia_post {
	bool	unsignaled;
	bool	has_imm;
	u32	imm;
};

/**
 * struct sovia_provider - the calls of a VI provider
 * @name: for logs and /proc
 * @local: both ends are on this host, and memory is all it takes: links end when they
 *	have no connections, are neither probed nor recovered, and are not counted
 * @rx_borrowed: what sovia_vi_client::receive gets is the provider's own, if it is no
 *	larger than SOVIA_COPYBREAK: cheaper to copy than to take
 * @has_netdev: does an interface have a device of this provider.  Any context.
 *	NULL: the provider needs none.
 * @listen: take requests in @net from now on and hand them to @request, which
 *	is called in process context.  Idempotent: what could not be had before is
 *	tried again.  May sleep.  Whatever it returns, unlisten follows.
 * @unlisten: the opposite; no @request upcall is under way when it returns.
 *	May sleep.
 * @connect: create a VI and start setting it up towards @pair, sending @hello.
 *	Returns the VI, or an ERR_PTR if not even that was possible.  The
 *	outcome is one of the upcalls established and closed, which may come
 *	before this returns.  Connection thread; may sleep, but does not wait
 *	for the peer.
 * @accept: the same for a request of the peer; consumes @req in every case.
 * @reject: refuse @req and consume it.  @err is a negative errno that the
 *	peer's closed upcall gets if the fabric can carry it (-EAGAIN: both
 *	tried at once, -ECONNREFUSED, -EPROTO, -ESTALE).
 * @post_send: send @skb as @how says.  The provider takes its own reference on
 *	success and keeps it until the local completion.  Returns enum
 *	sovia_posted; -EAGAIN if there is no room now (a send_done upcall will come, or
 *	the caller tries again after a while); or another negative errno: the VI is
 *	dying.  Never sleeps.  The caller serialises the calls for one VI (it holds
 *	a spinlock with bottom halves off); upcalls never happen from inside it.
 * @fail: have the VI die as it does when its device gives up, for tests; closed
 *	follows.  Connection thread.  NULL: nothing can happen to it.
 * @disconnect: tell the peer and stop; no post_send follows.  closed may be called.
 *	Process context.
 * @destroy: free the VI.  Sleeps until nothing is in flight; of the upcalls only
 *	send_done may still come, and none after it returns.  Every sk_buff reference
 *	is dropped.
 */
struct sovia_provider {
	const char *name;
	bool local;
	bool rx_borrowed;
	bool (*has_netdev)(struct net_device *ndev);
	int (*listen)(struct net *net, void (*request)(struct sovia_vi_request *req));
	void (*unlisten)(struct net *net);
	struct sovia_vi *(*connect)(struct net *net, const struct sovia_pair *pair,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_hello *hello,
				    const struct sovia_vi_client *client, void *context);
	struct sovia_vi *(*accept)(struct sovia_vi_request *req,
				   const struct sovia_vi_attr *attr,
				   const struct sovia_hello *hello,
				   const struct sovia_vi_client *client, void *context);
	void (*reject)(struct sovia_vi_request *req, int err);
	int (*post_send)(struct sovia_vi *vi, struct sk_buff *skb,
			 const struct sovia_post *how);
	void (*fail)(struct sovia_vi *vi);
	void (*disconnect)(struct sovia_vi *vi);
	void (*destroy)(struct sovia_vi *vi);
};

/* All of them, ended by NULL. */
extern const struct sovia_provider * const sovia_providers[];

extern const struct sovia_provider sovia_verbs_provider;
extern const struct sovia_provider sovia_loop_provider;

int sovia_verbs_init(void);
void sovia_verbs_exit(void);

#endif /* _SOVIA_PROVIDER_H */

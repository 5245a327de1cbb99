/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The VI provider: the transport below VIs.  The lowest layer; it knows nothing of
 * sockets, ports or credits.
 *
 * A VI moves messages (one sk_buff each, header included) reliably and in
 * order, or dies.  The calls below are VIPL's, the upcalls are struct
 * sovia_vi_client.
 */
#ifndef _SOVIA_PROVIDER_H
#define _SOVIA_PROVIDER_H

#include <linux/in6.h>
#include <linux/kthread.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <sovia/wire.h>
#include "stat.h"

struct net;
struct notifier_block;
struct sovia_clan_way;
struct sovia_vi;

/*
 * Payloads up to this size are borrowed by the receive upcall and copied; the
 * descriptor is reposted.  Above it the client takes the buffer itself, unless the VI has
 * large ones (&sovia_vi.copybreak).
 */
#define SOVIA_COPYBREAK		2048

/**
 * struct sovia_pair - the two ends of a link, the key to find it
 * @local: own address, IPv4 as v4-mapped
 * @remote: the peer's address, IPv4 as v4-mapped
 * @scope: interface index for link-local IPv6 addresses, otherwise 0
 * @l3: L3 domain that the addresses belong to: interface index of its device (a VRF), or 0
 * @passive: for a link from an address to itself over a device, 1 at the end that
 *	accepted; otherwise 0
 * @lane: number of the lane between the two; used by the client only
 */
struct sovia_pair {
	struct in6_addr	local;
	struct in6_addr	remote;
	int		scope;
	int		l3;
	int		passive;
	int		lane;
};

/**
 * struct sovia_path - the path between two devices, as this host's device has it
 * @local: GID of the own device; with iWARP its address, IPv4 as v4-mapped
 * @remote: the same of the peer's
 */
struct sovia_path {
	u8	local[16];
	u8	remote[16];
};

/**
 * struct sovia_vi_request - a peer asks for a VI
 * @prov: provider that received it
 * @net: network namespace it was received in; valid during the request upcall, later
 *	if the client holds it
 * @pair: addresses as seen from this side
 * @path: it came by; unset if the provider is local
 * @hello: received from the peer; only the first @hello_len bytes are valid
 * @hello_len: bytes of @hello that the peer sent, at most sizeof(@hello)
 * @checked: the client's, at first false
 * @work: the client's, which initialises it
 *
 * Allocated by the provider, which embeds it in its own struct.  Ownership goes
 * to the client with sovia_vi_client::request and back to the provider with
 * sovia_provider::accept or ::reject, exactly once.
 */
struct sovia_vi_request {
	const struct sovia_provider	*prov;
	struct net			*net;
	struct sovia_pair		pair;
	struct sovia_path		path;
	struct sovia_hello		hello;
	unsigned int			hello_len;
	bool				checked;
	struct kthread_work		work;
};

/**
 * struct sovia_vi_client - upcalls of a VI, implemented by the link layer
 * @seal: the path is known, and @hello is about to be sent over it: complete it.  Process
 *	context; at most once, before @established; not with a local provider.  Returns 0, or a
 *	negative errno to give the VI up.
 * @beyond: the other end's namespace, with a reference for the caller, and @pair as it is there;
 *	or an ERR_PTR.  From connect of the near provider.
 * @way: the other end's place in shared memory.  From connect of the clan provider.
 * @established: the VI may send.  @hello/@hello_len: received from the peer (as
 *	in struct sovia_vi_request).  Process context; at most once, never after
 *	@closed.
 * @closed: the VI is dead or could not be set up; @err is a negative errno:
 *	-ECONNREFUSED no service at the peer, -EHOSTUNREACH / -ENETUNREACH /
 *	-ENODEV no route, -ETIMEDOUT the peer does not answer, -ECONNRESET
 *	the peer went away, -EPROTO a bad hello or wire error, -EAGAIN rejected
 *	because both sides tried at once (the peer's attempt wins), or to be
 *	retried later for another reason, -EBUSY rejected because the peer has
 *	no room now, or the port is down, -ESTALE rejected because the peer does
 *	not have the link to resume.  Any context but hard interrupt; at most once.
 * @doubted: the port that an open VI uses is down: what is sent may not arrive, and no error
 *	tells for a while.  Process context; may come again.
 * @receive: a message arrived, skb->len bytes at skb->data.  @imm: its immediate
 *	data, or NULL; only if the VI's @imm is set.
 *	Softirq, one at a time for each VI, in order, and not before @established
 *	has returned: earlier messages (lost RTU) wait.  Returns true if it took
 *	the sk_buff (then the client owns it, and the provider must have
 *	detached unused pages from it), false if it has copied the payload and the
 *	provider may repost the buffer.  Payloads above SOVIA_COPYBREAK, and above the VI's
 *	@copybreak, are always taken.
 * @send_done: completion of a posted message: once for each for which post_send
 *	returned SOVIA_POSTED, at the latest just before @ended.  @ok: it has completed
 *	locally, in the order of the posts; otherwise the VI died first, and it is
 *	unknown whether it has arrived.  The provider drops its reference to @skb
 *	afterwards.  Bottom halves are disabled.
 * @rx_unposted: the number of receive descriptors that could not be reposted
 *	for lack of memory changed by @delta.
 * @rx_grown: after sovia_provider::post_more: @depth receive descriptors are kept posted from now
 *	on, fewer than wanted for lack of memory.  Bottom halves are disabled.
 * @ended: the end that the client has requested is complete: nothing is in flight,
 *	no reference to a sk_buff is left.  Process context; the last upcall, once.  The
 *	provider frees the VI when it has returned.
 *
 * After sovia_provider::end the others but @send_done may still come, until @ended: the
 * client ignores them.
 */
struct sovia_vi_client {
	int (*seal)(struct sovia_vi *vi, const struct sovia_path *path, struct sovia_hello *hello);
	struct net *(*beyond)(struct sovia_vi *vi, struct sovia_pair *pair);
	void (*way)(struct sovia_vi *vi, struct sovia_clan_way *way);
	void (*established)(struct sovia_vi *vi, const struct sovia_hello *hello,
			    unsigned int hello_len);
	void (*closed)(struct sovia_vi *vi, int err);
	void (*doubted)(struct sovia_vi *vi);
	bool (*receive)(struct sovia_vi *vi, struct sk_buff *skb, const u32 *imm);
	void (*send_done)(struct sovia_vi *vi, struct sk_buff *skb, bool ok);
	void (*rx_unposted)(struct sovia_vi *vi, int delta);
	void (*rx_grown)(struct sovia_vi *vi, unsigned int depth);
	void (*ended)(struct sovia_vi *vi);
};

/* None is set: what rdma_cm's configfs says counts. */
#define SOVIA_TOS_DEFAULT	256

/**
 * struct sovia_vi_attr - size of a VI
 * @send_depth: maximum of messages in flight
 * @recv_depth: the most receive descriptors that are kept posted
 * @recv_first: those that are at first
 * @msg_size: largest message, header included, in bytes
 * @tos: type of service of its packets, SOVIA_TOS_DEFAULT if none is set; of a VI that this end
 *	asks for
 */
struct sovia_vi_attr {
	unsigned int	send_depth;
	unsigned int	recv_depth;
	unsigned int	recv_first;
	unsigned int	msg_size;
	unsigned int	tos;
};

/**
 * struct sovia_vi - one VI: a queue pair or its equivalent
 * @prov: its provider
 * @client: upcalls
 * @context: private to the client
 * @pair: addresses of both ends
 * @attr: its size
 * @max_frags: page fragments that a message may have beside its linear part;
 *	set by the provider before @established
 * @copybreak: largest payload that its receive upcall has to copy, as most of a buffer would be
 *	wasted; set as @max_frags.  If it is less than SOVIA_COPYBREAK, that counts.
 * @has_tos: it is known what type of service its packets have; set as @max_frags
 * @tos: which one
 * @imm: messages can carry 32 bits of immediate data; set as @max_frags
 * @sends_first: the peer must not send before it has received a message: the client
 *	sends one as soon as the VI is established; set as @max_frags
 *
 * Embedded in the provider's own struct.  Created, and its end requested, by the
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
	unsigned int			copybreak;
	bool				has_tos;
	u8				tos;
	bool				imm;
	bool				sends_first;
};

/**
 * enum sovia_posted - result of posting a message
 * @SOVIA_POSTED: the send_done upcall follows when it is sent
 * @SOVIA_POSTED_UNSIGNALED: no upcall follows
 * @SOVIA_POSTED_TAKEN: no upcall, and the provider owns the sk_buff, because the
 *	message is certain to arrive
 *
 * The last two only if &sovia_post.unsignaled is set.
 */
enum sovia_posted {
	SOVIA_POSTED,
	SOVIA_POSTED_UNSIGNALED,
	SOVIA_POSTED_TAKEN,
};

/**
 * struct sovia_post - how a message is to be sent
 * @unsignaled: the client does not need the send_done upcall, and holds the only reference
 * @has_imm: send @imm as immediate data; only if the VI's @imm is set
 * @imm: 32 bits in host order
 */
struct sovia_post {
	bool	unsignaled;
	bool	has_imm;
	u32	imm;
};

/**
 * sovia_imm_attach() - let immediate data travel with a received message
 * @skb: the message; two fields are used that have no other meaning here
 * @has_imm: is there any
 * @imm: 32 bits in host order
 *
 * Context: any.
 */
static inline void sovia_imm_attach(struct sk_buff *skb, bool has_imm, u32 imm)
{
	skb->queue_mapping = has_imm;
	skb->mark = imm;
}

/**
 * sovia_imm_of() - the immediate data of a received message
 * @skb: sovia_imm_attach() has been called
 *
 * Context: any.
 * Return: 32 bits in host order, or NULL.
 */
static inline const u32 *sovia_imm_of(const struct sk_buff *skb)
{
	return skb->queue_mapping ? &skb->mark : NULL;
}

/**
 * struct sovia_provider - the calls of a VI provider
 * @name: for logs and /proc
 * @local: both ends are on this host and connected in memory: links end with their
 *	last connection, are neither probed nor recovered, and do not count for max_links
 * @introduced: the kernels at both ends introduce themselves before, as a request proves
 *	nothing
 * @in_memory: both ends are on this host: its VIs need no buffers, and nothing of their set-up
 *	blocks
 * @rx_borrowed: sovia_vi_client::receive borrows buffers with payloads up to
 *	SOVIA_COPYBREAK: cheaper to copy than to take
 * @stats: the first of its four counters
 * @by_lane: whether connections go by the lane though both their sockets are here; NULL: they do
 * @poll_usec: how long receivers spin before they sleep, in microseconds, unless SO_BUSY_POLL
 *	tells; NULL: not at all
 * @reaches: has an interface a device of this provider that sends from an address of it.  Under
 *	RCU.  NULL: the provider needs none.
 * @listen: accept requests in @net from now on and pass them to @request, which
 *	is called in process context.  Idempotent: retries what failed before.
 *	May sleep.  Whatever it returns, unlisten follows.
 * @unlisten: stop listening; no @request upcall runs when it returns.
 *	May sleep.
 * @connect: create a VI and start setting it up towards @pair, sending @hello.
 *	Returns the VI, or an ERR_PTR if it could not be started.  The
 *	outcome is one of the upcalls established and closed, possibly
 *	before this returns.  @net is valid until ended.  Connection thread; may
 *	allocate memory, but waits neither for the peer nor for a device.
 * @accept: the same for a request of the peer; consumes @req in every case.
 * @reject: refuse @req and consume it.  @err is a negative errno that the
 *	peer's closed upcall gets if the fabric can carry it (-EAGAIN: both
 *	tried at once, -EBUSY or -ENOMEM: try later, -ECONNREFUSED, -EPROTO,
 *	-ESTALE).  Connection thread; does not wait.
 * @post_send: send @skb as @how says.  The provider takes its own reference on
 *	success and keeps it until the local completion.  Returns enum
 *	sovia_posted; -EAGAIN if there is no room now (a send_done upcall follows, or
 *	the caller retries later); or another negative errno: the VI is
 *	dying.  Never sleeps.  The caller serialises the calls for one VI (it holds
 *	a spinlock with bottom halves disabled); it never calls upcalls itself.
 * @post_more: keep @depth receives posted, more than so far and up to attr.recv_depth; the rx_grown
 *	upcall follows, unless the VI dies.  Called as @post_send is.  NULL: a VI has no receives to
 *	post, or as many as it may have from the start.
 * @fail: make the VI die as if its device had given up, for tests; closed
 *	follows.  Connection thread; does not wait.  NULL: its VIs cannot fail.
 * @end: tell the peer and free the VI, whatever its state, as soon as nothing is in
 *	flight; no post_send follows.  The ended upcall follows, possibly before this
 *	returns, or much later: what blocks the set-up also delays its end.  Connection
 *	thread; does not wait.
 */
struct sovia_provider {
	const char *name;
	bool local;
	bool introduced;
	bool in_memory;
	bool rx_borrowed;
	enum sovia_stat stats;
	const bool *by_lane;
	const ushort *poll_usec;
	bool (*reaches)(const struct net *net, const struct in6_addr *addr,
			struct net_device *ndev);
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
	void (*post_more)(struct sovia_vi *vi, unsigned int depth);
	void (*fail)(struct sovia_vi *vi);
	void (*end)(struct sovia_vi *vi);
};

/**
 * struct sovia_device_info - an RDMA device, to be shown
 * @name: as rdma(8) has it
 * @vis: VIs that use it
 * @cqs: its completion queues
 * @stuck: VIs whose queue pair did not drain
 */
struct sovia_device_info {
	char		name[64];
	unsigned int	vis;
	unsigned int	cqs;
	unsigned int	stuck;
};

/* All providers, NULL-terminated. */
extern const struct sovia_provider * const sovia_providers[];

extern const struct sovia_provider sovia_verbs_provider;
extern const struct sovia_provider sovia_loop_provider;
extern const struct sovia_provider sovia_near_provider;
extern const struct sovia_provider sovia_clan_provider;
extern const struct sovia_provider sovia_clan_soft_provider;

int sovia_verbs_init(void);
void sovia_verbs_exit(void);
int sovia_verbs_watch(struct notifier_block *nb);
void sovia_verbs_unwatch(struct notifier_block *nb);
bool sovia_verbs_device_from(const struct net *net, u32 *index, struct sovia_device_info *info);
bool sovia_clan_is_soft(const struct net *net);
int sovia_clan_pci_init(void);
void sovia_clan_pci_exit(void);
int sovia_clan_soft_init(void);
void sovia_clan_soft_exit(void);

#endif /* _SOVIA_PROVIDER_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The socket layer: struct sovia_sock and what its files share.
 *
 *	af_sovia.c	family, proto_ops, module
 *	sock.c		make, reset and free a socket
 *	state.c		states of a connection, one table, one gate
 *	route.c		which link leads to an address
 *	port.c		binding, finding listeners
 *	program.c	BPF programs that choose listeners and filter data
 *	connect.c	connect, and the client's half of set-up
 *	listen.c	listen, accept, and the server's half of set-up
 *	send.c		from the program to the lane
 *	recv.c		from the lane to the program
 *	busy_poll.c		spinning for data instead of sleeping
 *	close.c		shutdown, close, FIN and RESET
 *	urgent.c	urgent data
 *	keepalive.c		keepalive and TCP_USER_TIMEOUT
 *	upcall.c	control messages of the peer
 *	sockopt.c	options and ioctls
 *	sockopt_tcp.c	options of IPPROTO_TCP
 *	splice.c	pages from and to pipes
 *	mem.c	what all sockets together may hold
 */
#ifndef _SOVIA_SOCK_H
#define _SOVIA_SOCK_H

#include <linux/ipv6.h>
#include <net/inet_sock.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include "compat/sock.h"
#include "link/link.h"
#include "net.h"
#include "state.h"

/* What happens to a socket in softirq or in the connection thread. */
enum sovia_deferred {
	SOVIA_DEFER_UP,
	SOVIA_DEFER_ACCEPT,
	SOVIA_DEFER_REFUSE,
	SOVIA_DEFER_FIN,
	SOVIA_DEFER_DELIVERED,
	SOVIA_DEFER_BREACH,
	SOVIA_DEFER_RESET,
	SOVIA_DEFER_DOWN,
	SOVIA_DEFER_PUSH,
	SOVIA_DEFER_COUNT
};

/* States of the urgent mark: see urgent.c. */
enum sovia_urgent {
	SOVIA_URG_NONE,
	SOVIA_URG_EXPECTED,
	SOVIA_URG_HERE,
	SOVIA_URG_TAKEN,
};

/* As TCP's TCP_CA_NAME_MAX. */
#define SOVIA_CA_NAME_MAX	16

/**
 * struct sovia_opts - what TCP's options have set; 0 is the default
 * @nodelay: TCP_NODELAY
 * @cork: TCP_CORK
 * @no_quickack: TCP_QUICKACK was switched off; has no effect
 * @inq: TCP_INQ
 * @fastopen_connect: TCP_FASTOPEN_CONNECT; has no effect
 * @thin: TCP_THIN_LINEAR_TIMEOUTS; likewise, nothing is ever sent again by timers
 * @keepcnt: TCP_KEEPCNT
 * @syncnt: TCP_SYNCNT
 * @defer_accept: TCP_DEFER_ACCEPT, as the number of SYN-ACKs TCP would send
 * @maxseg: TCP_MAXSEG; has no effect but in getsockopt()
 * @keepidle: TCP_KEEPIDLE, seconds
 * @keepintvl: TCP_KEEPINTVL, seconds
 * @linger2: TCP_LINGER2, seconds, or -1
 * @user_timeout: TCP_USER_TIMEOUT, milliseconds
 * @window_clamp: TCP_WINDOW_CLAMP, bytes
 * @notsent_lowat: TCP_NOTSENT_LOWAT, bytes
 * @fastopen: TCP_FASTOPEN; has no effect
 * @congestion: TCP_CONGESTION; has no effect
 *
 * A child has its listener's.  Socket lock.
 */
struct sovia_opts {
	bool	nodelay;
	bool	cork;
	bool	no_quickack;
	bool	inq;
	bool	fastopen_connect;
	bool	thin;
	u8	keepcnt;
	u8	syncnt;
	u8	defer_accept;
	u16	maxseg;
	u16	keepidle;
	u16	keepintvl;
	s16	linger2;
	u32	user_timeout;
	u32	window_clamp;
	u32	notsent_lowat;
	u32	fastopen;
	char	congestion[SOVIA_CA_NAME_MAX];
};

/**
 * struct sovia_tx - from the program to the lane
 * @wnd_end: stream offset up to which the peer lets us send.  Written under
 *	sk_receive_queue.lock.
 * @nxt: stream offset of the next byte to hand to the lane
 * @bytes: the same in 64 bits, for TCP_INFO
 * @unasked: bytes of buffer sent since the last request for an acknowledgment
 * @queued: payload bytes in sk_write_queue
 * @more: the last send said MSG_MORE
 * @flush: the cork has lasted long enough
 * @cork_timer: flushes what was corked for too long; holds a reference
 *
 * Socket lock.
 */
struct sovia_tx {
	u32			wnd_end;
	u32			nxt;
	u64			bytes;
	u32			unasked;
	u32			queued;
	bool			more;
	bool			flush;
	struct timer_list	cork_timer;
};

/**
 * struct sovia_rx - from the lane to the program
 * @nxt: stream offset of the next byte from the peer
 * @bytes: the same in 64 bits, for TCP_INFO
 * @copied: stream offset of the next byte for the program
 * @open: data may come
 * @fin: the peer said FIN, no data may come
 * @closed: the program closed the socket or shut both halves, data is refused
 * @half_time: when the reader had taken half of a window, jiffies.  Socket lock.
 *
 * sk_receive_queue.lock, but for @half_time.
 */
struct sovia_rx {
	u32			nxt;
	u64			bytes;
	u32			copied;
	bool			open;
	bool			fin;
	bool			closed;
	unsigned long		half_time;
};

/**
 * struct sovia_urg - urgent data: urgent.c
 * @state: enum sovia_urgent
 * @byte: the urgent byte once it is there
 * @pos: its stream offset
 * @skip: so many bytes from rx.copied on are older marks, left out
 * @snd_end: stream offset behind the last urgent byte to send while that waits in
 *	sk_write_queue, tx.nxt otherwise.  Socket lock.
 *
 * sk_receive_queue.lock, but for @snd_end.
 */
struct sovia_urg {
	u8			state;
	u8			byte;
	u32			pos;
	u32			skip;
	u32			snd_end;
};

/**
 * struct sovia_alive - is the peer still there: keepalive.c, close.c
 * @acked: conn.acked when the timer looked last
 * @acked_time: when conn.acked changed last as far as the timer knows, jiffies
 * @probes: keepalive probes that were not answered
 * @probe_time: when the last one was sent, or when the peer has gone, jiffies
 *
 * Socket lock.
 */
struct sovia_alive {
	s64			acked;
	unsigned long		acked_time;
	unsigned int		probes;
	unsigned long		probe_time;
};

/**
 * struct sovia_accept - a listener's children, and a child's place among them
 * @ready: listener: ready for accept().  Its socket lock.
 * @pending: listener: have come while a process owned it.  Its spinlock.
 * @pending_count: how many.  As above.
 * @node: child: in its listener's @ready or @pending
 */
struct sovia_accept {
	struct list_head	ready;
	struct list_head	pending;
	unsigned int		pending_count;
	struct list_head	node;
};

/**
 * struct sovia_connecting - connect() under way
 * @deadline: it gives up then, jiffies
 * @retry_delay: until CONN is sent again to a busy listener, jiffies
 * @link_retries: how often a stale link may be replaced
 *
 * Socket lock.
 */
struct sovia_connecting {
	unsigned long		deadline;
	unsigned long		retry_delay;
	unsigned int		link_retries;
};

/**
 * struct sovia_end - how the connection ends
 * @fin_gone: our FIN says that the program has closed
 * @peer_gone: the peer's FIN said so
 * @reset_due: data has gone to it since, which it answers with RESET
 * @orphan: the socket counts as an orphan, see mem.c
 *
 * Socket lock.
 */
struct sovia_end {
	bool			fin_gone;
	bool			peer_gone;
	bool			reset_due;
	bool			orphan;
};

/**
 * struct sovia_busy - does spinning for data pay: busy_poll.c
 * @gap: waits that do not spin after one that did in vain
 * @skip: how many of them are left
 *
 * Hints, without a lock.
 */
struct sovia_busy {
	u8			gap;
	u8			skip;
};

/**
 * struct sovia_sock - an AF_SOVIA socket
 * @inet: the kernel's part; sk_family is AF_INET or AF_INET6
 * @conn: the link layer's part
 * @port_node: in a port bucket while bound.  Protected by the bucket's lock.
 * @port_bound: it is there.  Socket lock.
 * @accept: a listener's children, or a child's place among them
 * @await_data: child: accept() waits for its first data.  Its own lock.
 * @deferred: enum sovia_deferred bits, done when the owner releases the socket
 * @deferred_arg: argument of each of them
 * @tx: from the program to the lane
 * @rx: from the lane to the program
 * @urg: urgent data
 * @end: how the connection ends
 * @opt: options
 * @connect: connect() under way
 * @alive: is the peer still there
 * @busy: does spinning pay
 * @inet6: IPv6's part
 *
 * References: the file, until close(); the socket itself, until it is CLOSE and
 * orphaned (sovia_destroy()); each armed timer; conn.ctl_node while control messages
 * wait; the demultiplexer and link_for_each() during an upcall.  Messages hold
 * sk_wmem_alloc, so the memory stays until the last one is off the lane and a grace
 * period has passed.
 */
struct sovia_sock {
	struct inet_sock	inet;	/* must be first */
	struct sovia_conn	conn;
	struct hlist_node	port_node;
	bool			port_bound;
	struct sovia_accept	accept;
	bool			await_data;
	unsigned long		deferred;
	u32			deferred_arg[SOVIA_DEFER_COUNT];
	struct sovia_tx		tx;
	struct sovia_rx		rx;
	struct sovia_urg	urg;
	struct sovia_end	end;
	struct sovia_opts	opt;
	struct sovia_connecting	connect;
	struct sovia_alive	alive;
	struct sovia_busy	busy;
	struct ipv6_pinfo	inet6;	/* must be last: see compat/ipv6.h */
};

static_assert(offsetofend(struct sovia_sock, inet6) == sizeof(struct sovia_sock));

/**
 * struct sovia_rx_cb - skb->cb of received data in sk_receive_queue
 * @off: bytes of it that the program has read.  Socket lock.
 */
struct sovia_rx_cb {
	u32	off;
};

#define SOVIA_RX_CB(skb)	((struct sovia_rx_cb *)(skb)->cb)

/**
 * struct sovia_sink - where received data goes
 * @give: take @len bytes at @off of @skb; socket lock held.  Returns how many were
 *	taken, 0 or a negative errno if none can be.
 * @stops: it does not go beyond the urgent mark, inline or not
 */
struct sovia_sink {
	int (*give)(struct sovia_sink *sink, struct sock *sk, struct sk_buff *skb,
		    u32 off, u32 len);
	bool stops;
};

static inline struct sovia_sock *sovia_sk(const struct sock *sk)
{
	return (struct sovia_sock *)sk;
}

static inline struct sovia_sock *conn_sovia(const struct sovia_conn *conn)
{
	return sovia_sk(conn->sk);
}

/* af_sovia.c */
extern struct proto sovia_prot;

/* sock.c */
void sovia_sock_init(struct sock *sk);
void sovia_sock_init_v6(struct sock *sk);
void sovia_lock_class(struct sock *sk);
void sovia_reset_stream(struct sock *sk);
void sovia_set_peer(struct sock *sk, const struct in6_addr *addr, u16 port);
void sovia_set_local(struct sock *sk, const struct in6_addr *addr);

/* route.c */
int sovia_pair_device(struct net *net, const struct sovia_pair *pair);
int sovia_route(struct sock *sk, const struct in6_addr *daddr,
		struct sovia_pair *pair, const struct sovia_provider **prov);
int sovia_check_ipsec(struct sock *sk, const struct sovia_pair *pair, u16 lport, u16 rport);

/* port.c */
int sovia_get_port(struct sock *sk, unsigned short snum);
void sovia_put_port(struct sock *sk);
void sovia_inherit_port(struct sock *child);
struct sock *sovia_find_listener(struct sovia_net *snet, const struct sovia_pair *pair,
				 u16 port);

int sovia_join_group(struct sock *sk);
void sovia_leave_group(struct sock *sk);

/* program.c */
bool sovia_filter_request(struct sock *listener, const struct sovia_pair *pair,
			  const struct sovia_msg *msg);
bool sovia_filter_data(struct sock *sk, const struct sovia_msg *msg, struct sk_buff *payload);
struct sock *sovia_choose_listener(struct sock *listener, const struct sovia_pair *pair,
				   const struct sovia_msg *msg);

/* connect.c */
int sovia_connect(struct sock *sk, struct sockaddr_unsized *uaddr, int addr_len);
void sovia_link_came_up(struct sock *sk);
void sovia_link_went_down(struct sock *sk, int err);
void sovia_accepted(struct sock *sk);
void sovia_refused(struct sock *sk, u32 code);
void sovia_connect_timeout(struct sock *sk);
unsigned int sovia_retry_seconds(unsigned int retries);

/* listen.c */
int sovia_listen(struct socket *sock, int backlog);
struct sock *sovia_accept_dequeue(struct sock *sk, int flags, int *err);
bool sovia_acceptable(struct sock *sk);
void sovia_listen_stop(struct sock *sk);
void sovia_children_pending(struct sock *listener);
void sovia_sock_rx_conn(struct sovia_link *link, struct sk_buff *skb,
			const struct sovia_msg *msg);

/* defer_accept.c */
void sovia_await_start(struct sock *listener, struct sock *child);
void sovia_await_end(struct sock *listener, struct sock *child);
void sovia_await_timeout(struct sock *child);

/* send.c */
int sovia_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
void sovia_push(struct sock *sk);
void sovia_queue_fin(struct sock *sk, bool gone);
bool sovia_window_moved(struct sock *sk, u32 window);
void sovia_purge_send(struct sock *sk);
bool sovia_stream_memory_free(const struct sock *sk, int wake);
void sovia_write_space(struct sock *sk);
void sovia_check_space(struct sock *sk);
void sovia_cork_timeout(struct timer_list *timer);
int sovia_outq(const struct sock *sk);

/* recv.c */
int sovia_recv(struct sock *sk, struct sovia_sink *sink, size_t len, int flags, int target);
int sovia_set_rcvlowat(struct sock *sk, int val);
int sovia_recvmsg(struct sock *sk, struct msghdr *msg, size_t len, int flags);
bool sovia_sock_rx_data(struct sovia_conn *conn, u32 gen, struct sk_buff *skb,
			const struct sovia_msg *msg);
void sovia_rx_forget(struct sock *sk);
bool sovia_rx_accepted(struct sovia_conn *conn, u32 gen, const struct sovia_msg *msg);
void sovia_rx_prepare(struct sock *sk);
void sovia_rx_open(struct sock *sk);
bool sovia_rx_close(struct sock *sk);
int sovia_inq(struct sock *sk);
bool sovia_readable(struct sock *sk);

/* poll.c */
__poll_t sovia_poll(struct file *file, struct socket *sock, poll_table *wait);

/* busy_poll.c */
void sovia_busy_wait(struct sock *sk, bool nonblock);

/* splice.c */
ssize_t sovia_splice_read(struct socket *sock, loff_t *ppos, struct pipe_inode_info *pipe,
			  size_t len, unsigned int flags);

/* close.c */
void sovia_close(struct sock *sk, long timeout);
void sovia_shutdown(struct sock *sk, int how);
int sovia_disconnect(struct sock *sk, int flags);
bool sovia_step(struct sock *sk, enum sovia_event event);
void sovia_done(struct sock *sk, int err);
void sovia_abort(struct sock *sk, int err, u32 code);
void sovia_destroy(struct sock *sk);
void sovia_leave_link(struct sock *sk);
void sovia_discard_child(struct sock *child);
void sovia_orphan_timeout(struct sock *sk);
void sovia_arm_orphan(struct sock *sk);

/* mem.c */
int sovia_limits_init(void);
void sovia_limits_exit(void);
bool sovia_mem_ample(void);
bool sovia_mem_short(void);
bool sovia_mem_none(void);
void sovia_own_rx(struct sk_buff *skb, struct sock *sk);
void sovia_own_tx(struct sk_buff *skb, struct sock *sk);
void sovia_grow_tx(struct sk_buff *skb, u32 len);
bool sovia_orphan_begin(struct sock *sk);
void sovia_orphan_end(struct sock *sk);

/* urgent.c */
void sovia_urgent_message(struct sovia_conn *conn, u32 gen, u32 pos);
bool sovia_urgent_data(struct sock *sk, const struct sk_buff *skb, u32 len);
u32 sovia_urgent_cut(const struct sock *sk, u32 pos, u32 avail, bool *skip);
void sovia_urgent_passed(struct sock *sk, u32 len, bool more);
u32 sovia_rx_start(struct sock *sk);
bool sovia_at_mark(const struct sock *sk, u32 pos);
int sovia_recv_urgent(struct sock *sk, struct msghdr *msg, size_t len, int flags);
void sovia_send_urgent(struct sock *sk);

/* keepalive.c */
unsigned long sovia_keepidle(const struct sock *sk);
unsigned long sovia_keepintvl(const struct sock *sk);
unsigned int sovia_keepcnt(const struct sock *sk);
void sovia_alive_start(struct sock *sk);
void sovia_alive_timeout(struct sock *sk);
void sovia_keepalive(struct sock *sk, int on);

/* defer.c */
void sovia_release_cb(struct sock *sk);
void sovia_defer(struct sovia_conn *conn, u32 gen, enum sovia_deferred what, u32 arg);

/* upcall.c */
extern const struct sovia_client sovia_sock_client;
extern void (* const sovia_deferred_handlers[SOVIA_DEFER_COUNT])(struct sock *sk, u32 arg);
void sovia_sk_timeout(struct timer_list *timer);

/* sockopt.c */
void sovia_default_options(struct sock *sk);
int sovia_ops_setsockopt(struct socket *sock, int level, int optname, sockptr_t optval,
			 unsigned int optlen);
int sovia_setsockopt(struct sock *sk, int level, int optname, sockptr_t optval,
		     unsigned int optlen);
int sovia_getsockopt(struct sock *sk, int level, int optname, char __user *optval,
		     int __user *optlen);
int sovia_ioctl_value(struct sock *sk, int cmd, int *value);

/* sockopt_tcp.c */
int sovia_set_tcp(struct sock *sk, int optname, sockptr_t optval, unsigned int optlen);
int sovia_get_tcp(struct sock *sk, int optname, char __user *optval, int __user *optlen);

#endif /* _SOVIA_SOCK_H */

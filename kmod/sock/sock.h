/* SPDX-License-Identifier: GPL-2.0-only */
/* struct sovia_sock.  Each file of the socket layer has a header of its own for its calls. */
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

static inline struct sovia_sock *sovia_sk(const struct sock *sk)
{
	return (struct sovia_sock *)sk;
}

static inline struct sovia_sock *conn_sovia(const struct sovia_conn *conn)
{
	return sovia_sk(conn->sk);
}

/* sock.c */
void sovia_sock_init(struct sock *sk);
void sovia_sock_init_v6(struct sock *sk);
void sovia_lock_class(struct sock *sk);
void sovia_reset_stream(struct sock *sk);
void sovia_set_peer(struct sock *sk, const struct in6_addr *addr, u16 port);
void sovia_set_local(struct sock *sk, const struct in6_addr *addr);

#endif /* _SOVIA_SOCK_H */

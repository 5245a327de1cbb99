/* SPDX-License-Identifier: GPL-2.0-only */
/* struct sovia_sock.  Each file of the socket layer has its own header for its functions. */
#ifndef _SOVIA_SOCK_H
#define _SOVIA_SOCK_H

#include <linux/ipv6.h>
#include <net/inet_sock.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include "compat/sock.h"
#include "core/net.h"
#include "core/tenant.h"
#include "link/link.h"
#include "state.h"

/* Events of a socket, from softirq or the connection thread. */
enum sovia_deferred {
	SOVIA_DEFER_UP,
	SOVIA_DEFER_ACCEPT,
	SOVIA_DEFER_REFUSE,
	SOVIA_DEFER_FIN,
	/* First: who closes answers what came in between, before FIN's delivery ends it. */
	SOVIA_DEFER_BREACH,
	SOVIA_DEFER_DELIVERED,
	SOVIA_DEFER_RESET,
	SOVIA_DEFER_DOWN,
	SOVIA_DEFER_BARRED,
	SOVIA_DEFER_PRESSURE,
	/* These have no argument. */
	SOVIA_DEFER_WINDOW,
	SOVIA_DEFER_PUSH,
	SOVIA_DEFER_READY,
	SOVIA_DEFER_FALLBACK,
	SOVIA_DEFER_COUNT
};

#define SOVIA_DEFER_ARGS	SOVIA_DEFER_WINDOW

/* As TCP's TCP_CA_NAME_MAX. */
#define SOVIA_CA_NAME_MAX	16

/**
 * struct sovia_opts - values of TCP's options and our own; 0 is the default
 * @nodelay: TCP_NODELAY
 * @cork: TCP_CORK
 * @no_quickack: TCP_QUICKACK was switched off; has no effect
 * @inq: TCP_INQ
 * @fastopen_connect: TCP_FASTOPEN_CONNECT; has no effect
 * @thin: TCP_THIN_LINEAR_TIMEOUTS; likewise, there are no retransmission timers
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
 * @action: SOVIA_ACTION
 * @wait: SOVIA_WAIT, milliseconds + 1
 *
 * A child inherits its listener's.  Socket lock.
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
	u8	action;
	u16	maxseg;
	u16	keepidle;
	u16	keepintvl;
	s16	linger2;
	u16	wait;
	u32	user_timeout;
	u32	window_clamp;
	u32	notsent_lowat;
	u32	fastopen;
	char	congestion[SOVIA_CA_NAME_MAX];
};

struct sovia_bucket;
struct sovia_fallback;
struct sovia_listen_slot;

/**
 * struct sovia_bind - a socket's place in the port space: port.c
 * @node: in sovia_bucket::owners.  Protected by the slot's lock.
 * @sk: the socket, or NULL for a marker among the owners.  Likewise.
 * @bucket: of its port, or NULL if it is not bound.  Changed under the slot's lock and the
 *	socket lock.
 * @borrowed: connect() chose the port.  Likewise.
 */
struct sovia_bind {
	struct list_head	node;
	struct sock		*sk;
	struct sovia_bucket	*bucket;
	bool			borrowed;
};

/**
 * struct sovia_listening - a listener's place among the listeners: listener.c
 * @node: in sovia_listen_slot::socks.  Changed under the slot's lock, read under RCU.
 * @slot: the slot, or NULL if it is in none.  Socket lock.
 */
struct sovia_listening {
	struct hlist_node		node;
	struct sovia_listen_slot	*slot;
};

/**
 * struct sovia_tx - from the program to the lane
 * @wnd_end: stream offset of the end of the peer's window.  Written under
 *	sk_receive_queue.lock.
 * @nxt: stream offset of the next byte to hand to the lane
 * @bytes: the same in 64 bits, for TCP_INFO
 * @unasked: bytes of buffer sent since the last request for an acknowledgment
 * @queued: payload bytes in sk_write_queue
 * @taken: stream offset up to which the peer has taken data, if @refused.  As @wnd_end.
 * @lost: bytes of the last connection that the peer has not acknowledged, once it was left
 * @purged: bytes of this one that were dropped before the lane had them
 * @refused: the peer takes no more data.  As @wnd_end.
 * @more: the last send had MSG_MORE, and nothing of the peer's has arrived since, which clears it
 *	without the lock
 * @flush: the cork timer has expired
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
	u32			taken;
	u32			lost;
	u32			purged;
	bool			refused;
	bool			more;
	bool			flush;
	struct timer_list	cork_timer;
};

/**
 * struct sovia_rx - from the lane to the program
 * @bytes: bytes from the peer so far, for TCP_INFO
 * @nxt: the same in 32 bits: stream offset of the next byte from the peer
 * @copied: stream offset of the next byte for the program
 * @base: stream offset of the first buffer that is queued; @copied if none is
 * @most: stream offset up to which data is taken.  It is sovia_conn::rcv_wnd_end, unless
 *	@lowering or @over.
 * @promised: bytes up to @most, from @copied, or from @base if the window is the smallest, as the
 *	ledger has them
 * @cost: bytes of memory that the ledger has for it
 * @left: bytes of the window that are left to the peer by PRESSURE
 * @asked: bytes of memory that may come back by RETURN, as the ledger has them
 * @open: data may be received
 * @asks: the peer takes PRESSURE: it has, or gets before, ACCEPT
 * @lowering: the peer has been asked to give back its window beyond sovia_conn::rcv_wnd_end
 * @over: nothing more is expected
 * @fin: FIN has arrived, no data may follow
 * @closed: the program closed the socket or shut down both halves, data is refused
 * @gathers: the window is the smallest, and all that was there before has been read
 * @used: data has moved since the window was last considered for PRESSURE
 * @list: the list of the tenant that @lent is in: enum sovia_lent
 * @lent: there; lock of that list
 * @asked_time: when PRESSURE was sent, jiffies
 * @counts: what is queued counts in sk_rmem_alloc; of a child, since accept()
 * @pays: its memory control group is charged for it: charge.c
 * @half_time: when the reader last completed half of a window, jiffies.  Socket lock.
 *
 * sk_receive_queue.lock, except @half_time and @lent.  @used is a hint.
 */
struct sovia_rx {
	u64			bytes;
	u32			nxt;
	u32			copied;
	u32			base;
	u32			most;
	u32			promised;
	u32			left;
	s64			cost;
	s64			asked;
	bool			open;
	bool			asks;
	bool			lowering;
	bool			over;
	bool			fin;
	bool			closed;
	bool			gathers;
	bool			used;
	u8			list;
	bool			counts;
	bool			pays;
	struct list_head	lent;
	unsigned long		asked_time;
	unsigned long		half_time;
};

/**
 * struct sovia_urg - urgent data: urgent.c
 * @state: enum sovia_urgent
 * @byte: the urgent byte once it has arrived
 * @pos: its stream offset
 * @skip: number of older urgent bytes from rx.copied on that reads skip
 * @snd_end: stream offset behind the last urgent byte to send while that waits in
 *	sk_write_queue, tx.nxt otherwise.  Socket lock.
 *
 * sk_receive_queue.lock, except @snd_end.
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
 * @acked: conn->acked when the timer last fired
 * @acked_time: when the timer last saw conn->acked change, jiffies
 * @probes: unanswered keepalive probes
 * @probe_time: when the last one was sent, or when the peer closed, jiffies
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
 * @pending: listener: arrived while a process owned it.  Its spinlock.
 * @node: child: in its listener's @ready or @pending
 * @pending_count: length of @pending.  As @pending.
 * @tcp_arrived: child: how many connections of TCP its listener had got before it
 */
struct sovia_accept {
	struct list_head	ready;
	struct list_head	pending;
	struct list_head	node;
	unsigned int		pending_count;
	unsigned int		tcp_arrived;
};

/**
 * enum sovia_fallback_state - may connect() end with TCP: fallback_connect.c
 * @SOVIA_FALLBACK_NONE: no, or it is over
 * @SOVIA_FALLBACK_ARMED: yes, if AF_SOVIA does not connect
 * @SOVIA_FALLBACK_DUE: it is TCP's turn
 * @SOVIA_FALLBACK_DONE: the descriptor has TCP's struct sock
 */
enum sovia_fallback_state {
	SOVIA_FALLBACK_NONE,
	SOVIA_FALLBACK_ARMED,
	SOVIA_FALLBACK_DUE,
	SOVIA_FALLBACK_DONE,
};

struct sovia_destination;

/**
 * struct sovia_connecting - connect() under way
 * @deadline: when connect() times out, jiffies
 * @retry_delay: delay until CONN is retried to a busy listener, jiffies
 * @link_retries: how many more times a stale link may be replaced
 * @busy: the listener was busy, and CONN is to be retried
 * @asked: CONN has been handed to the lane
 * @fallback: enum sovia_fallback_state
 * @why: enum sovia_why, why @fallback is DUE
 * @cause: what connect() would have returned then, a positive errno
 * @no_links: links of this namespace cannot be had, a negative errno
 * @patience: how long a peer that has answered may be silent until it is TCP's turn, jiffies
 * @callers: how many wait in connect()
 * @silent: when it is, if the peer does not answer by then, jiffies; 0 while it answers
 * @to: where to, if @fallback is ARMED or DUE: the first caller's, or that of struct
 *	sovia_fallback
 * @service: sovia_service_key() of the port, once it was needed
 * @refused: when AF_SOVIA had no listener there, jiffies; 0: it did not say so
 *
 * Socket lock.
 */
struct sovia_connecting {
	unsigned long		deadline;
	u16			retry_delay;
	u8			link_retries:6;
	bool			busy:1;
	bool			asked:1;
	u8			fallback:3;
	u8			why:5;
	s16			cause;
	s16			no_links;
	unsigned int		patience;
	unsigned int		callers;
	unsigned long		silent;
	const struct sovia_destination *to;
	u64			service;
	unsigned long		refused;
};

/**
 * struct sovia_end - how the connection ends
 * @fin_gone: our FIN has SOVIA_F_GONE: the program has closed
 * @peer_gone: the peer's FIN had it
 * @orphan: the socket counts as an orphan, see mem.c
 *
 * Socket lock.
 */
struct sovia_end {
	bool			fin_gone;
	bool			peer_gone;
	bool			orphan;
};

/**
 * struct sovia_busy - adaptive busy polling: busy_poll.c
 * @usec: how long to spin without SO_BUSY_POLL
 * @sleep: the last wait was longer than that
 * @since: when the current one began, as busy_loop_current_time(), or 0
 *
 * Hints, without a lock.
 */
struct sovia_busy {
	u16			usec;
	bool			sleep;
	u32			since;
};

/**
 * struct sovia_sock - an AF_SOVIA socket
 * @inet: the kernel's part; sk_family is AF_INET or AF_INET6
 * @conn: its connection, the current or the last one, with a reference, or NULL.  Written
 *	under the socket lock and sk_receive_queue.lock; other readers use RCU.
 * @left: the connection that it left last: a reference for after the grace period
 * @tenant: whose it is, with a reference; a child's is its listener's
 * @listed: its place in the list of sockets
 * @number: and its number there
 * @bind: its place in the port space
 * @listening: its place among the listeners
 * @fallback: the TCP socket beside it, or NULL: fallback.c
 * @accept: a listener's children, or a child's place among them
 * @deferred: enum sovia_deferred bits, handled when the owner releases the socket
 * @deferred_arg: argument of each of them
 * @tx: from the program to the lane
 * @rx: from the lane to the program
 * @urg: urgent data
 * @end: how the connection ends
 * @opt: options
 * @await_data: child: accept() waits for its first data.  Its own lock.
 * @accepting: listener: its owner is accept(), which changes no option.  Socket lock.
 * @busy: busy polling
 * @connect: connect() under way
 * @alive: keepalive
 * @inet6: IPv6's part
 *
 * References: the file, until close(); the socket itself, until it is CLOSE and
 * orphaned (sovia_destroy()); each armed timer; deferred work while it is called.
 * Upcalls keep it by the connection's lock, or by RCU until they have its own.
 * Messages hold sk_wmem_alloc, so the memory stays until the lane has freed the last one
 * and a grace period has passed.
 */
struct sovia_sock {
	struct inet_sock	inet;	/* must be first */
	struct sovia_conn __rcu	*conn;
	struct sovia_conn	*left;
	struct sovia_tenant	*tenant;
	struct hlist_node	listed;
	u64			number;
	struct sovia_bind	bind;
	struct sovia_listening	listening;
	struct sovia_fallback	*fallback;
	struct sovia_accept	accept;
	unsigned long		deferred;
	u32			deferred_arg[SOVIA_DEFER_ARGS];
	struct sovia_tx		tx;
	struct sovia_rx		rx;
	struct sovia_urg	urg;
	struct sovia_end	end;
	struct sovia_opts	opt;
	bool			await_data;
	bool			accepting;
	struct sovia_busy	busy;
	struct sovia_connecting	connect;
	struct sovia_alive	alive;
	struct ipv6_pinfo	inet6;	/* must be last: see compat/ipv6.h */
};

static_assert(offsetofend(struct sovia_sock, inet6) == sizeof(struct sovia_sock));

/* af_sovia.c */
extern struct proto sovia_prot;

int sovia_prot_init(void);
void sovia_prot_exit(void);
int sovia_family_init(void);
void sovia_family_exit(void);
int sovia_sock_client_init(void);
#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
int sovia_family_number(void);
#endif

/* Is it one of ours?  A descriptor may get TCP's sock when it falls back. */
static inline bool sovia_is(const struct sock *sk)
{
	return READ_ONCE(sk->sk_prot) == &sovia_prot;
}

static inline struct sovia_sock *sovia_sk(const struct sock *sk)
{
	return (struct sovia_sock *)sk;
}

/* The connection; with the socket lock or sk_receive_queue.lock held. */
static inline struct sovia_conn *sovia_conn_of(const struct sock *sk)
{
	return rcu_dereference_protected(sovia_sk(sk)->conn, lockdep_sock_is_held(sk) ||
					 lockdep_is_held(&sk->sk_receive_queue.lock));
}

/* sock.c */
extern void (*sovia_plain_ready)(struct sock *sk);
void sovia_sock_init(struct sock *sk, struct sovia_tenant *tenant);
void sovia_sock_init_v6(struct sock *sk);
void sovia_lock_class(struct sock *sk);
void sovia_set_peer(struct sock *sk, const struct in6_addr *addr, u16 port);
void sovia_set_local(struct sock *sk, const struct in6_addr *addr);

#endif /* _SOVIA_SOCK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Tracepoints: Documentation/observing.rst. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM sovia

#if !defined(_SOVIA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _SOVIA_TRACE_H

#include <linux/tracepoint.h>
#include <net/ipv6.h>
#include <net/tcp_states.h>

/* Only admin/trace.c has their members. */
struct sock;
struct sovia_lane;
struct sovia_link;
struct sovia_msg;
struct sovia_pair;
struct sovia_peer;
struct sovia_tcp_entry;
struct sovia_tx_cb;

/* perf and trace-cmd know no enum of the kernel: these put the values into the format files. */
TRACE_DEFINE_ENUM(TCP_ESTABLISHED);
TRACE_DEFINE_ENUM(TCP_SYN_SENT);
TRACE_DEFINE_ENUM(TCP_FIN_WAIT1);
TRACE_DEFINE_ENUM(TCP_FIN_WAIT2);
TRACE_DEFINE_ENUM(TCP_CLOSE);
TRACE_DEFINE_ENUM(TCP_CLOSE_WAIT);
TRACE_DEFINE_ENUM(TCP_LAST_ACK);
TRACE_DEFINE_ENUM(TCP_LISTEN);
TRACE_DEFINE_ENUM(TCP_CLOSING);

#define sovia_show_tcp_state(state)					\
	__print_symbolic(state,						\
		{ TCP_ESTABLISHED, "ESTABLISHED" }, { TCP_SYN_SENT, "SYN_SENT" },	\
		{ TCP_FIN_WAIT1, "FIN_WAIT1" }, { TCP_FIN_WAIT2, "FIN_WAIT2" },	\
		{ TCP_CLOSE, "CLOSE" }, { TCP_CLOSE_WAIT, "CLOSE_WAIT" },	\
		{ TCP_LAST_ACK, "LAST_ACK" }, { TCP_LISTEN, "LISTEN" },	\
		{ TCP_CLOSING, "CLOSING" })

TRACE_DEFINE_ENUM(SOVIA_LINK_NEW);
TRACE_DEFINE_ENUM(SOVIA_LINK_CONNECTING);
TRACE_DEFINE_ENUM(SOVIA_LINK_UP);
TRACE_DEFINE_ENUM(SOVIA_LINK_RECOVERING);
TRACE_DEFINE_ENUM(SOVIA_LINK_PARKED);
TRACE_DEFINE_ENUM(SOVIA_LINK_DOWN);

#define sovia_show_link_state(state)					\
	__print_symbolic(state,						\
		{ SOVIA_LINK_NEW, "NEW" }, { SOVIA_LINK_CONNECTING, "CONNECTING" },	\
		{ SOVIA_LINK_UP, "UP" }, { SOVIA_LINK_RECOVERING, "RECOVERING" },	\
		{ SOVIA_LINK_PARKED, "PARKED" }, { SOVIA_LINK_DOWN, "DOWN" })

TRACE_DEFINE_ENUM(SOVIA_DATA);
TRACE_DEFINE_ENUM(SOVIA_ACK);
TRACE_DEFINE_ENUM(SOVIA_CONN);
TRACE_DEFINE_ENUM(SOVIA_ACCEPT);
TRACE_DEFINE_ENUM(SOVIA_REFUSE);
TRACE_DEFINE_ENUM(SOVIA_FIN);
TRACE_DEFINE_ENUM(SOVIA_RESET);
TRACE_DEFINE_ENUM(SOVIA_WAKEUP);
TRACE_DEFINE_ENUM(SOVIA_URGENT);
TRACE_DEFINE_ENUM(SOVIA_PROBE);
TRACE_DEFINE_ENUM(SOVIA_PRESSURE);
TRACE_DEFINE_ENUM(SOVIA_RETURN);
TRACE_DEFINE_ENUM(SOVIA_PARK);

#define sovia_show_type(type)						\
	__print_symbolic(type,						\
		{ SOVIA_DATA, "DATA" }, { SOVIA_ACK, "ACK" }, { SOVIA_CONN, "CONN" },	\
		{ SOVIA_ACCEPT, "ACCEPT" }, { SOVIA_REFUSE, "REFUSE" },	\
		{ SOVIA_FIN, "FIN" }, { SOVIA_RESET, "RESET" },		\
		{ SOVIA_WAKEUP, "WAKEUP" }, { SOVIA_URGENT, "URGENT" },	\
		{ SOVIA_PROBE, "PROBE" }, { SOVIA_PRESSURE, "PRESSURE" },	\
		{ SOVIA_RETURN, "RETURN" }, { SOVIA_PARK, "PARK" })

TRACE_DEFINE_ENUM(SOVIA_WHY_PEER);
TRACE_DEFINE_ENUM(SOVIA_WHY_RULE);
TRACE_DEFINE_ENUM(SOVIA_WHY_SILENT);
TRACE_DEFINE_ENUM(SOVIA_WHY_WAY);
TRACE_DEFINE_ENUM(SOVIA_WHY_DEVICE);
TRACE_DEFINE_ENUM(SOVIA_WHY_REFUSED);
TRACE_DEFINE_ENUM(SOVIA_WHY_LISTENER);
TRACE_DEFINE_ENUM(SOVIA_WHY_MEMORY);
TRACE_DEFINE_ENUM(SOVIA_WHY_FILTER);
TRACE_DEFINE_ENUM(SOVIA_WHY_DENIED);

#define sovia_show_why(why)						\
	__print_symbolic(why,						\
		{ SOVIA_WHY_PEER, "peer" }, { SOVIA_WHY_RULE, "rule" },	\
		{ SOVIA_WHY_SILENT, "silent" }, { SOVIA_WHY_WAY, "way" },	\
		{ SOVIA_WHY_DEVICE, "device" }, { SOVIA_WHY_REFUSED, "refused" },	\
		{ SOVIA_WHY_LISTENER, "listener" }, { SOVIA_WHY_MEMORY, "memory" },	\
		{ SOVIA_WHY_FILTER, "filter" }, { SOVIA_WHY_DENIED, "denied" })

TRACE_DEFINE_ENUM(SOVIA_AUTO);
TRACE_DEFINE_ENUM(SOVIA_ONLY_SOVIA);
TRACE_DEFINE_ENUM(SOVIA_ONLY_TCP);
TRACE_DEFINE_ENUM(SOVIA_DENY);

#define sovia_show_action(action)					\
	__print_symbolic(action,					\
		{ SOVIA_AUTO, "auto" }, { SOVIA_ONLY_SOVIA, "only-sovia" },	\
		{ SOVIA_ONLY_TCP, "only-tcp" }, { SOVIA_DENY, "deny" })

/* ---- sockets ------------------------------------------------------------ */

#define SOVIA_SOCK_FIELDS						\
	__field(const void *, sk)					\
	__field(u16, lport)						\
	__field(u16, rport)

#define SOVIA_SOCK_ASSIGN(socket)					\
	do {								\
		__entry->sk = socket;					\
		__entry->lport = inet_sk(socket)->inet_num;		\
		__entry->rport = ntohs(inet_sk(socket)->inet_dport);	\
	} while (0)

TRACE_EVENT(sovia_sock_state,
	TP_PROTO(const struct sock *sk, u8 from, u8 to),
	TP_ARGS(sk, from, to),
	TP_STRUCT__entry(
		SOVIA_SOCK_FIELDS
		__field(u8, from)
		__field(u8, to)
	),
	TP_fast_assign(
		SOVIA_SOCK_ASSIGN(sk);
		__entry->from = from;
		__entry->to = to;
	),
	TP_printk("sk=%p lport=%u rport=%u %s -> %s", __entry->sk, __entry->lport, __entry->rport,
		  sovia_show_tcp_state(__entry->from), sovia_show_tcp_state(__entry->to))
);

DECLARE_EVENT_CLASS(sovia_bytes,
	TP_PROTO(const struct sock *sk, int len),
	TP_ARGS(sk, len),
	TP_STRUCT__entry(
		SOVIA_SOCK_FIELDS
		__field(int, len)
	),
	TP_fast_assign(
		SOVIA_SOCK_ASSIGN(sk);
		__entry->len = len;
	),
	TP_printk("sk=%p lport=%u rport=%u len=%d", __entry->sk, __entry->lport, __entry->rport,
		  __entry->len)
);

DEFINE_EVENT(sovia_bytes, sovia_sock_copy,
	TP_PROTO(const struct sock *sk, int len),
	TP_ARGS(sk, len)
);

DEFINE_EVENT(sovia_bytes, sovia_sock_send,
	TP_PROTO(const struct sock *sk, int len),
	TP_ARGS(sk, len)
);

DEFINE_EVENT(sovia_bytes, sovia_sock_recv,
	TP_PROTO(const struct sock *sk, int len),
	TP_ARGS(sk, len)
);

DEFINE_EVENT(sovia_bytes, sovia_window_stall,
	TP_PROTO(const struct sock *sk, int len),
	TP_ARGS(sk, len)
);

/* ---- messages ----------------------------------------------------------- */

DECLARE_EVENT_CLASS(sovia_msg,
	TP_PROTO(const struct sovia_lane *lane, const struct sovia_msg *msg, u16 lport, u16 rport),
	TP_ARGS(lane, msg, lport, rport),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(u32, seq)
		__field(u32, ack)
		__field(u32, len)
		__field(u32, window)
		__field(u32, ref)
		__field(u32, code)
		__field(u32, flight)
		__field(u32, credits)
		__field(u16, lport)
		__field(u16, rport)
		__field(u16, flags)
		__field(u8, type)
		__field(bool, compact)
	),
	TP_fast_assign(
		__entry->link = sovia_link_of(lane)->id;
		__entry->seq = msg->seq;
		__entry->ack = msg->ack;
		__entry->len = msg->len;
		__entry->window = msg->compact ? 0 : msg->window;
		__entry->ref = msg->compact ? 0 : msg->ref;
		__entry->code = msg->compact ? 0 : msg->code;
		__entry->flight = sovia_credit_flight(&lane->credit);
		__entry->credits = lane->credit.window;
		__entry->lport = lport;
		__entry->rport = rport;
		__entry->flags = msg->flags;
		__entry->type = msg->type;
		__entry->compact = msg->compact;
	),
	TP_printk("link=%u %s seq=%u ack=%u lport=%u rport=%u len=%u flags=%#x%s window=%u ref=%u code=%u flight=%u/%u",
		  __entry->link, sovia_show_type(__entry->type), __entry->seq, __entry->ack,
		  __entry->lport, __entry->rport, __entry->len, __entry->flags,
		  __entry->compact ? " compact" : "", __entry->window, __entry->ref,
		  __entry->code, __entry->flight, __entry->credits)
);

DEFINE_EVENT(sovia_msg, sovia_msg_send,
	TP_PROTO(const struct sovia_lane *lane, const struct sovia_msg *msg, u16 lport, u16 rport),
	TP_ARGS(lane, msg, lport, rport)
);

DEFINE_EVENT(sovia_msg, sovia_msg_receive,
	TP_PROTO(const struct sovia_lane *lane, const struct sovia_msg *msg, u16 lport, u16 rport),
	TP_ARGS(lane, msg, lport, rport)
);

DECLARE_EVENT_CLASS(sovia_queued,
	TP_PROTO(const struct sovia_lane *lane, const struct sovia_tx_cb *cb, bool ok),
	TP_ARGS(lane, cb, ok),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(u32, seq)
		__field(u32, len)
		__field(u16, lport)
		__field(u16, rport)
		__field(u8, type)
		__field(bool, ok)
	),
	TP_fast_assign(
		__entry->link = sovia_link_of(lane)->id;
		__entry->seq = cb->seq;
		__entry->len = cb->len;
		__entry->lport = cb->sport;
		__entry->rport = cb->dport;
		__entry->type = cb->type;
		__entry->ok = ok;
	),
	TP_printk("link=%u %s seq=%u lport=%u rport=%u len=%u ok=%d", __entry->link,
		  sovia_show_type(__entry->type), __entry->seq, __entry->lport, __entry->rport,
		  __entry->len, __entry->ok)
);

DEFINE_EVENT(sovia_queued, sovia_send_done,
	TP_PROTO(const struct sovia_lane *lane, const struct sovia_tx_cb *cb, bool ok),
	TP_ARGS(lane, cb, ok)
);

DEFINE_EVENT(sovia_queued, sovia_retransmit,
	TP_PROTO(const struct sovia_lane *lane, const struct sovia_tx_cb *cb, bool ok),
	TP_ARGS(lane, cb, ok)
);

DECLARE_EVENT_CLASS(sovia_credits,
	TP_PROTO(const struct sovia_lane *lane),
	TP_ARGS(lane),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(u32, flight)
		__field(u32, credits)
		__field(u32, own)
	),
	TP_fast_assign(
		__entry->link = sovia_link_of(lane)->id;
		__entry->flight = sovia_credit_flight(&lane->credit);
		__entry->credits = lane->credit.window;
		__entry->own = lane->credit.own_window;
	),
	TP_printk("link=%u flight=%u/%u own=%u", __entry->link, __entry->flight,
		  __entry->credits, __entry->own)
);

DEFINE_EVENT(sovia_credits, sovia_credit_stall,
	TP_PROTO(const struct sovia_lane *lane),
	TP_ARGS(lane)
);

DEFINE_EVENT(sovia_credits, sovia_window_grow,
	TP_PROTO(const struct sovia_lane *lane),
	TP_ARGS(lane)
);

/* ---- links and peers ---------------------------------------------------- */

#define SOVIA_PAIR_FIELDS						\
	__array(u8, local, sizeof(struct in6_addr))			\
	__array(u8, remote, sizeof(struct in6_addr))

#define SOVIA_PAIR_ASSIGN(pair)						\
	do {								\
		memcpy(__entry->local, &(pair)->local, sizeof(__entry->local));	\
		memcpy(__entry->remote, &(pair)->remote, sizeof(__entry->remote)); \
	} while (0)

TRACE_EVENT(sovia_link_state,
	TP_PROTO(const struct sovia_link *link, u8 from, u8 to),
	TP_ARGS(link, from, to),
	TP_STRUCT__entry(
		__field(u32, link)
		__field(u32, lane)
		__field(u32, conns)
		SOVIA_PAIR_FIELDS
		__field(u8, from)
		__field(u8, to)
		__array(char, way, 8)
	),
	TP_fast_assign(
		__entry->link = link->id;
		__entry->lane = link->pair.lane;
		__entry->conns = link->conn_count;
		SOVIA_PAIR_ASSIGN(&link->pair);
		__entry->from = from;
		__entry->to = to;
		strscpy(__entry->way, link->lane.prov->name, sizeof(__entry->way));
	),
	TP_printk("link=%u %pI6c %pI6c %s lane=%u conns=%u %s -> %s", __entry->link,
		  __entry->local, __entry->remote, __entry->way, __entry->lane, __entry->conns,
		  sovia_show_link_state(__entry->from), sovia_show_link_state(__entry->to))
);

TRACE_EVENT(sovia_peer,
	TP_PROTO(const struct sovia_peer *peer, int err),
	TP_ARGS(peer, err),
	TP_STRUCT__entry(
		SOVIA_PAIR_FIELDS
		__field(u64, features)
		__field(int, err)
		__field(u8, state)
		__field(bool, out)
		__field(bool, in)
		__field(u8, version)
	),
	TP_fast_assign(
		SOVIA_PAIR_ASSIGN(&peer->pair);
		__entry->features = peer->features;
		__entry->err = err;
		__entry->state = peer->state;
		__entry->out = peer->out;
		__entry->in = peer->in;
		__entry->version = peer->version;
	),
	TP_printk("%pI6c %pI6c state=%u out=%d in=%d version=%u features=%#llx err=%d",
		  __entry->local, __entry->remote, __entry->state, __entry->out, __entry->in,
		  __entry->version, __entry->features, __entry->err)
);

TRACE_EVENT(sovia_unreached,
	TP_PROTO(const struct sovia_pair *pair, u8 why, unsigned long delay),
	TP_ARGS(pair, why, delay),
	TP_STRUCT__entry(
		SOVIA_PAIR_FIELDS
		__field(u32, seconds)
		__field(u8, why)
	),
	TP_fast_assign(
		SOVIA_PAIR_ASSIGN(pair);
		__entry->seconds = delay / HZ;
		__entry->why = why;
	),
	TP_printk("%pI6c %pI6c %s for %u s", __entry->local, __entry->remote,
		  sovia_show_why(__entry->why), __entry->seconds)
);

/* ---- decisions ---------------------------------------------------------- */

TRACE_EVENT(sovia_rule,
	TP_PROTO(const struct sovia_pair *pair, u16 port, u8 direction, int rule, u8 action),
	TP_ARGS(pair, port, direction, rule, action),
	TP_STRUCT__entry(
		SOVIA_PAIR_FIELDS
		__field(int, rule)
		__field(u16, port)
		__field(u8, direction)
		__field(u8, action)
	),
	TP_fast_assign(
		SOVIA_PAIR_ASSIGN(pair);
		__entry->rule = rule;
		__entry->port = port;
		__entry->direction = direction;
		__entry->action = action;
	),
	TP_printk("%s %pI6c %pI6c port=%u rule=%d %s",
		  __entry->direction == SOVIA_RULE_IN ? "in" : "out", __entry->local,
		  __entry->remote, __entry->port, __entry->rule,
		  sovia_show_action(__entry->action))
);

TRACE_EVENT(sovia_fallback,
	TP_PROTO(const struct sock *tcp, const struct sovia_tcp_entry *how),
	TP_ARGS(tcp, how),
	TP_STRUCT__entry(
		SOVIA_SOCK_FIELDS
		__field(u64, cookie)
		__field(int, err)
		__field(u8, direction)
		__field(u8, why)
	),
	TP_fast_assign(
		SOVIA_SOCK_ASSIGN(tcp);
		__entry->cookie = how->cookie;
		__entry->err = how->err;
		__entry->direction = how->direction;
		__entry->why = how->why;
	),
	TP_printk("%s sk=%p cookie=%#llx lport=%u rport=%u %s err=%d",
		  __entry->direction == SOVIA_RULE_IN ? "in" : "out", __entry->sk,
		  __entry->cookie, __entry->lport, __entry->rport, sovia_show_why(__entry->why),
		  __entry->err)
);

#endif /* _SOVIA_TRACE_H */

/* This part is read again by each definition: after the guard. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>

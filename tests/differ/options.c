// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Socket options: which there are, setting and reading them.
 */
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include "differ.h"

#ifndef SO_PEEK_OFF
#define SO_PEEK_OFF 42
#endif

enum { LINGER = 2, TIME = 4, DEVICE = 8, NO_GET = 16, INFO = 32, NO_SET = 64 };

struct option {
	int		level, name;
	const char	*text;
	int		kind;
	int		values[6], count;
};

#define OPTION(level, name, kind, ...) \
	{ level, name, #name, kind, { __VA_ARGS__ }, COUNT(((int[]){ __VA_ARGS__ })) }

static const struct option options[] = {
	OPTION(SOL_SOCKET, SO_REUSEADDR, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_REUSEPORT, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_KEEPALIVE, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_OOBINLINE, 0, 0, 1, 1),
	OPTION(SOL_SOCKET, SO_LINGER, LINGER, -1, 0, 0, 60),
	OPTION(SOL_SOCKET, SO_RCVLOWAT, 0, 1, 2, 10, 0, -1),
	OPTION(SOL_SOCKET, SO_RCVTIMEO, TIME, 0, 100),
	OPTION(SOL_SOCKET, SO_SNDTIMEO, TIME, 0, 100),
	OPTION(SOL_SOCKET, SO_ERROR, 0, 0),
	OPTION(SOL_SOCKET, SO_TYPE, 0, 0),
	OPTION(SOL_SOCKET, SO_DOMAIN, 0, 0),
	OPTION(SOL_SOCKET, SO_ACCEPTCONN, 0, 0),
	OPTION(SOL_SOCKET, SO_PEEK_OFF, 0, -1, 0, 1, 3),
	OPTION(SOL_SOCKET, SO_PRIORITY, 0, 0, 3, 7),
	OPTION(SOL_SOCKET, SO_MARK, 0, 0, 5),
	OPTION(SOL_SOCKET, SO_SNDLOWAT, 0, 1, 100),
	OPTION(SOL_SOCKET, SO_BROADCAST, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_DONTROUTE, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_DEBUG, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_PASSCRED, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_PEERCRED, 0, 0),
	OPTION(SOL_SOCKET, SO_PASSSEC, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_NO_CHECK, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_LOCK_FILTER, 0, 0),
	OPTION(SOL_SOCKET, SO_SELECT_ERR_QUEUE, 0, 0, 1),
	OPTION(SOL_SOCKET, SO_BUSY_POLL, 0, 0, 50),
	OPTION(SOL_SOCKET, SO_MAX_PACING_RATE, 0, -1),
	OPTION(SOL_SOCKET, SO_TXTIME, 0, 0),
	OPTION(SOL_SOCKET, SO_BINDTODEVICE, DEVICE, 0),
	OPTION(SOL_SOCKET, 9999, 0, 0),
	OPTION(IPPROTO_TCP, TCP_NODELAY, 0, 0, 1, 1),
	OPTION(IPPROTO_TCP, TCP_CORK, 0, 0, 1, 1),
	OPTION(IPPROTO_TCP, TCP_KEEPIDLE, 0, 1, 100, 0, 40000),
	OPTION(IPPROTO_TCP, TCP_KEEPINTVL, 0, 1, 100, 0, 40000),
	OPTION(IPPROTO_TCP, TCP_KEEPCNT, 0, 1, 100, 0, 200),
	OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT, 0, 0, -1, 1000000),
	OPTION(IPPROTO_TCP, TCP_SYNCNT, 0, 0, 3, 200),
	OPTION(IPPROTO_TCP, TCP_LINGER2, 0, -1, 0, 10, 1000),
	OPTION(IPPROTO_TCP, TCP_DEFER_ACCEPT, NO_SET, 0),
	OPTION(IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0, 0, -1, 1000),
	OPTION(IPPROTO_TCP, TCP_MAXSEG, NO_GET, 50, 536, 1000, 70000),
	OPTION(IPPROTO_TCP, TCP_QUICKACK, NO_GET, 0, 1),
	OPTION(IPPROTO_TCP, TCP_INQ, 0, 0, 1, 2),
	OPTION(IPPROTO_TCP, TCP_THIN_DUPACK, 0, 0, 1),
	OPTION(IPPROTO_TCP, TCP_INFO, INFO, 0),
	OPTION(IPPROTO_TCP, 9999, 0, 0),
	OPTION(IPPROTO_IP, IP_TOS, 0, 0, 0x10, 0x88, -1, 300),
	OPTION(IPPROTO_IP, IP_TTL, 0, -1, 0, 64, 300),
	OPTION(IPPROTO_IP, IP_MTU_DISCOVER, 0, 0, 1, 2, 9),
	OPTION(IPPROTO_IP, IP_RECVERR, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_FREEBIND, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_TRANSPARENT, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_PKTINFO, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_RECVTTL, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_RECVTOS, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 0, 0, 1, 1),
	OPTION(IPPROTO_IP, IP_MINTTL, 0, 0, 10, 300),
	OPTION(IPPROTO_IP, IP_HDRINCL, 0, 0, 1),
	OPTION(IPPROTO_IP, IP_MULTICAST_TTL, 0, 1),
	OPTION(IPPROTO_IP, 9999, 0, 0),
	OPTION(IPPROTO_IPV6, IPV6_V6ONLY, 0, 0, 1),
	OPTION(IPPROTO_IPV6, IPV6_UNICAST_HOPS, 0, -1, 64, 256),
	OPTION(IPPROTO_IPV6, IPV6_TCLASS, 0, -1, 0, 0x10, 256),
	OPTION(IPPROTO_IPV6, IPV6_RECVPKTINFO, 0, 0, 1),
	OPTION(IPPROTO_IPV6, IPV6_MTU_DISCOVER, 0, 0, 1, 2, 9),
	OPTION(IPPROTO_IPV6, IPV6_RECVERR, 0, 0, 1),
	OPTION(IPPROTO_IPV6, IPV6_DONTFRAG, 0, 0, 1),
	OPTION(IPPROTO_IPV6, IPV6_FREEBIND, 0, 0, 1),
	OPTION(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0, 0, 1),
	OPTION(IPPROTO_IPV6, 9999, 0, 0),
	OPTION(IPPROTO_UDP, 1, 0, 0, 1),
	OPTION(7777, 1, 0, 0, 1),
	/* For sequences that fill buffers, which have to be small. */
	OPTION(SOL_SOCKET, SO_SNDBUF, NO_GET | NO_SET, 16384),
	OPTION(SOL_SOCKET, SO_RCVBUF, NO_GET | NO_SET, 16384),
};

int option_count(void) { return COUNT(options) - 2; }

/*
 * The device is the loopback interface, which TCP always uses for its own host, but
 * AF_SOVIA does not with an address of a device.
 */
bool option_makes_sense(const struct op *op)
{
	if (options[op->a].kind & DEVICE && !set.network && op->code == OP_SETOPT)
		return false;
	return !(options[op->a].kind & (op->code == OP_SETOPT ? NO_SET : NO_GET));
}

static const int lengths[] = { sizeof(int), sizeof(int), sizeof(int), sizeof(int), 1, 0, -1 };

union value {
	int		number;
	char		bytes[64];
	struct linger	linger;
	struct timeval	time;
};

static socklen_t option_value(const struct option *o, int which, union value *v)
{
	int number = o->values[which % o->count];

	memset(v, 0, sizeof(*v));
	if (o->kind & LINGER) {
		v->linger.l_onoff = number >= 0;
		v->linger.l_linger = number > 0 ? number : 0;
		return sizeof(v->linger);
	}
	if (o->kind & TIME) {
		v->time.tv_usec = number * 1000;
		return sizeof(v->time);
	}
	if (o->kind & DEVICE) {
		strcpy(v->bytes, "lo");
		return 3;
	}
	v->number = number;
	return sizeof(int);
}

void do_setopt(struct call *c)
{
	const struct option *o = &options[c->op->a];
	union value v;
	socklen_t len = option_value(o, c->op->b, &v);

	if (lengths[c->op->c] != sizeof(int))
		len = (socklen_t)lengths[c->op->c];
	answer(c, setsockopt(c->fd, o->level, o->name, &v, len));
}

void do_getopt(struct call *c)
{
	const struct option *o = &options[c->op->a];
	struct tcp_info info = { 0 };
	union value v;
	socklen_t len = lengths[c->op->c] == sizeof(int) ? sizeof(v) : (socklen_t)lengths[c->op->c], i;

	memset(&v, 0, sizeof(v));
	if (o->kind & INFO) {
		len = sizeof(info);
		if (answer(c, getsockopt(c->fd, o->level, o->name, &info, &len)) == 0)
			say(c, " state %d", info.tcpi_state);
		return;
	}
	if (answer(c, getsockopt(c->fd, o->level, o->name, &v, &len)) || len > sizeof(v))
		return;
	say(c, " length %u:", len);
	if (len == sizeof(int) && o->name == SO_ERROR && o->level == SOL_SOCKET)
		say(c, " %s", v.number ? errno_name(v.number) : "0");
	else if (len == sizeof(int))
		say(c, " %d", v.number);
	else
		for (i = 0; i < len && i < 24; i++)
			say(c, " %02x", (uint8_t)v.bytes[i]);
}

bool option_holds_back(const struct op *op)
{
	return options[op->a].level == IPPROTO_TCP && options[op->a].name == TCP_CORK;
}

void option_text(const struct op *op, char *text)
{
	const struct option *o = &options[op->a];
	const char *level = o->level == SOL_SOCKET ? "SOL_SOCKET" :
			    o->level == IPPROTO_TCP ? "SOL_TCP" :
			    o->level == IPPROTO_IP ? "SOL_IP" :
			    o->level == IPPROTO_IPV6 ? "SOL_IPV6" : "a level that is none";

	text += sprintf(text, "s%d, %s, %s", op->slot, level, o->text);
	if (op->code == OP_SETOPT)
		text += sprintf(text, ", %d", o->values[op->b % o->count]);
	if (lengths[op->c] != sizeof(int))
		sprintf(text, ", length %d", lengths[op->c]);
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The calls: how each is made, and its text for reports.
 *
 * The result of a call is a text; only this text is compared.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>
#include "differ.h"

/* A full buffer may become free, or the connection be reset, within so many of these. */
#define FILL_WAITS	50
#define FILL_WAIT_MS	200

bool coarse;
__thread atomic_uint pipe_signals;

/* ---- results as text ---- */

void say(struct call *c, const char *format, ...)
{
	size_t used = strlen(c->text);
	va_list args;

	va_start(args, format);
	vsnprintf(c->text + used, sizeof(c->text) - used, format, args);
	va_end(args);
}

const char *errno_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : "an errno without a name";
}

/* The number that it returned, or its errno. */
long answer(struct call *c, long ret)
{
	c->ok = ret >= 0;
	if (ret < 0)
		say(c, "-1 %s", errno_name(errno));
	else
		say(c, "%ld", ret);
	return ret;
}

/* The same for a number of bytes.  Bad memory is only detected if there is room. */
static long answer_bytes(struct call *c, long ret, bool is_send)
{
	bool full = ret < 0 && is_send && (errno == EAGAIN || errno == EFAULT);

	if (!c->coarse || ret == 0 || (ret < 0 && !full))
		return answer(c, ret);
	c->ok = ret >= 0;
	say(c, "some");
	return ret;
}

static void say_data(struct call *c, const char *data, long len)
{
	uint32_t sum = 1;
	long i;

	if (c->coarse || len <= 0)
		return;
	for (i = 0; i < len; i++)
		sum = sum * 31 + (uint8_t)data[i];
	say(c, " \"%.*s\"", (int)(len < 12 ? len : 12), data);
	if (len > 12)
		say(c, "..#%08x", sum);
}

/* ---- addresses ---- */

enum { A_ANY, A_OWN, A_MAPPED, A_UNSPEC, A_UNIX, A_SHORT, A_FOREIGN, A_COUNT };
static const char * const address_names[] = {
	"any", "own", "mapped", "AF_UNSPEC", "AF_UNIX", "short", "foreign"
};

static socklen_t address(const struct world *w, struct sockaddr_storage *to, int kind, int port)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;
	uint16_t number = port < PORTS ? htons(w->port + port) : 0;

	memset(to, 0, sizeof(*to));
	if (set.family == 4) {
		four->sin_family = AF_INET;
		four->sin_port = number;
		if (kind == A_OWN || kind == A_MAPPED)
			four->sin_addr = set.own4;
		if (kind == A_FOREIGN)
			inet_pton(AF_INET, "192.0.2.1", &four->sin_addr);
	} else {
		six->sin6_family = AF_INET6;
		six->sin6_port = number;
		if (kind == A_OWN)
			six->sin6_addr = set.own6;
		if (kind == A_FOREIGN)
			inet_pton(AF_INET6, "2001:db8::1", &six->sin6_addr);
		if (kind == A_MAPPED) {
			six->sin6_addr.s6_addr16[5] = 0xffff;
			memcpy(&six->sin6_addr.s6_addr32[3], &set.own4, 4);
		}
	}
	if (kind == A_UNSPEC)
		to->ss_family = AF_UNSPEC;
	if (kind == A_UNIX)
		to->ss_family = AF_UNIX;
	if (kind == A_SHORT)
		return 5;
	return set.family == 4 ? sizeof(*four) : sizeof(*six);
}

static void say_address(struct call *c, const struct sockaddr_storage *from, socklen_t len)
{
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)from;
	const struct sockaddr_in *four = (const struct sockaddr_in *)from;
	int port = ntohs(from->ss_family == AF_INET6 ? six->sin6_port : four->sin_port);
	char text[INET6_ADDRSTRLEN] = "?";

	if (!len) {
		say(c, " no address");
		return;
	}
	if (from->ss_family == AF_INET)
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
	else if (from->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
	say(c, " %s", text);
	if (port >= c->world->port && port < c->world->port + PORTS)
		say(c, ":P%d", port - c->world->port);
	else
		say(c, port ? ":ephemeral" : ":0");
	if (len != (from->ss_family == AF_INET6 ? sizeof(*six) : sizeof(*four)))
		say(c, " length %u", len);
}

static const char *port_name(int port)
{
	static const char * const names[] = { "P0", "P1", "P2", "0" };

	return names[port < PORTS ? port : PORTS];
}

/* ---- sockets ---- */

static void do_socket(struct call *c)
{
	const struct world *w = c->world;

	c->made = socket(w->family, SOCK_STREAM | (c->op->a ? SOCK_NONBLOCK : 0), w->protocol);
	answer(c, c->made < 0 ? -1 : 0);
}

static void do_bind(struct call *c)
{
	struct sockaddr_storage to;
	socklen_t len = address(c->world, &to, c->op->a, c->op->b);

	answer(c, bind(c->fd, (struct sockaddr *)&to, len));
}

static void do_listen(struct call *c)
{
	answer(c, listen(c->fd, c->op->a));
}

static void do_connect(struct call *c)
{
	struct sockaddr_storage to;
	socklen_t len = address(c->world, &to, c->op->a, c->op->b);

	answer(c, connect(c->fd, (struct sockaddr *)&to, len));
}

static void do_accept(struct call *c)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);

	memset(&from, 0, sizeof(from));
	c->made = accept4(c->fd, (struct sockaddr *)&from, &len, c->op->a ? SOCK_NONBLOCK : 0);
	if (answer(c, c->made < 0 ? -1 : 0) == 0)
		say_address(c, &from, len);
}

static void do_shutdown(struct call *c)
{
	answer(c, shutdown(c->fd, c->op->a));
}

static void do_close(struct call *c)
{
	answer(c, close(c->fd));
}

static void do_dup(struct call *c)
{
	c->made = dup(c->fd);
	answer(c, c->made < 0 ? -1 : 0);
}

static void do_names(struct call *c)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);

	memset(&name, 0, sizeof(name));
	if (answer(c, getsockname(c->fd, (struct sockaddr *)&name, &len)) == 0)
		say_address(c, &name, len);
	say(c, ", ");
	len = sizeof(name);
	memset(&name, 0, sizeof(name));
	if (answer(c, getpeername(c->fd, (struct sockaddr *)&name, &len)) == 0)
		say_address(c, &name, len);
}

/* ---- data ---- */

static const int sizes[] = { 0, 1, 2, 3, 5, 10, 100, 1000, 4096, 10000, BIG };

struct name { int value; const char *name; };
static const struct name send_flags[] = {
	{ MSG_DONTWAIT, "DONTWAIT" }, { MSG_NOSIGNAL, "NOSIGNAL" }, { MSG_MORE, "MORE" },
	{ MSG_OOB, "OOB" }, { MSG_DONTROUTE, "DONTROUTE" }, { MSG_EOR, "EOR" },
	{ MSG_CONFIRM, "CONFIRM" }, { MSG_PEEK, "PEEK" }, { MSG_WAITALL, "WAITALL" },
};
static const struct name recv_flags[] = {
	{ MSG_DONTWAIT, "DONTWAIT" }, { MSG_PEEK, "PEEK" }, { MSG_OOB, "OOB" },
	{ MSG_WAITALL, "WAITALL" }, { MSG_TRUNC, "TRUNC" }, { MSG_NOSIGNAL, "NOSIGNAL" },
	{ MSG_ERRQUEUE, "ERRQUEUE" }, { MSG_DONTROUTE, "DONTROUTE" },
};
static const struct name msg_flags[] = {
	{ MSG_OOB, "OOB" }, { MSG_TRUNC, "TRUNC" }, { MSG_CTRUNC, "CTRUNC" }, { MSG_EOR, "EOR" },
	{ MSG_ERRQUEUE, "ERRQUEUE" },
};

enum { BY_SEND, BY_WRITE, BY_SENDMSG, BY_SENDTO, BY_FAULT };
static const char * const send_names[] = { "send", "write", "sendmsg", "sendto", "send bad memory" };
static const char * const recv_names[] = { "recv", "read", "recvmsg", "recvfrom", "recv bad memory" };

int sizes_count(void) { return COUNT(sizes) - 1; }
int big_size(void) { return COUNT(sizes) - 1; }

/* One flag, or seldom two. */
static int some_flags(uint64_t chance, const struct name *names, int count)
{
	int flags = 0;

	if (chance & 1)
		flags |= names[(chance >> 8) % count].value;
	if ((chance & 7) == 3)
		flags |= names[(chance >> 24) % count].value;
	return flags;
}

int flags_of_send(uint64_t chance)
{
	/* The first flags are the common ones. */
	return some_flags(chance, send_flags, chance & 0x30 ? 4 : COUNT(send_flags));
}

int flags_of_recv(uint64_t chance)
{
	return some_flags(chance, recv_flags, chance & 0x30 ? 5 : COUNT(recv_flags));
}

/* Byte @pos of a stream. */
static char stream_byte(unsigned long pos)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678";

	return letters[pos % (sizeof(letters) - 1)];
}

static struct slot *slot_of(struct call *c)
{
	return &c->world->slots[c->op->slot];
}

static void prepare(struct call *c, long len)
{
	unsigned long pos = slot_of(c)->sent;
	long i;

	for (i = 0; i < len; i++)
		c->buffer[i] = stream_byte(pos + i);
}

static void do_send(struct call *c)
{
	struct sockaddr_storage to;
	long len = sizes[c->op->a], ret;
	int flags = c->op->b;
	struct iovec iov[3] = {
		{ c->buffer, len / 2 }, { c->buffer, 0 }, { c->buffer + len / 2, len - len / 2 }
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 3 };

	prepare(c, len);
	switch (c->op->c) {
	case BY_WRITE:
		ret = write(c->fd, c->buffer, len);
		break;
	case BY_SENDMSG:
		ret = sendmsg(c->fd, &msg, flags);
		break;
	case BY_SENDTO:
		ret = sendto(c->fd, c->buffer, len, flags, (struct sockaddr *)&to,
			     address(c->world, &to, A_OWN, 1));
		break;
	case BY_FAULT:
		ret = send(c->fd, (void *)16, len, flags);
		break;
	default:
		ret = send(c->fd, c->buffer, len, flags);
	}
	if (set.plant && c->world->number == SUBJECT && ret < 0 && errno == EPIPE &&
	    flags & MSG_NOSIGNAL)
		errno = ECONNRESET;
	answer_bytes(c, ret, true);
	if (ret > 0)
		slot_of(c)->sent += ret;
}

static void say_names(struct call *c, int flags, const struct name *names, int count)
{
	int i;

	for (i = 0; i < count; i++)
		if (flags & names[i].value)
			say(c, " %s", names[i].name);
}

static void do_recv(struct call *c)
{
	struct sockaddr_storage from;
	long len = sizes[c->op->a], ret;
	int flags = c->op->b;
	socklen_t from_len = sizeof(from);
	char control[256];
	struct iovec iov[2] = { { c->buffer, len / 2 }, { c->buffer + len / 2, len - len / 2 } };
	struct msghdr msg = {
		.msg_iov = iov, .msg_iovlen = 2, .msg_name = &from, .msg_namelen = sizeof(from),
		.msg_control = control, .msg_controllen = sizeof(control),
	};

	memset(c->buffer, '.', len);
	switch (c->op->c) {
	case BY_WRITE:
		flags = 0;
		ret = read(c->fd, c->buffer, len);
		break;
	case BY_SENDMSG:
		ret = recvmsg(c->fd, &msg, flags);
		break;
	case BY_SENDTO:
		ret = recvfrom(c->fd, c->buffer, len, flags, (struct sockaddr *)&from, &from_len);
		break;
	case BY_FAULT:
		ret = recv(c->fd, (void *)16, len, flags);
		break;
	default:
		ret = recv(c->fd, c->buffer, len, flags);
	}
	answer_bytes(c, ret, false);
	if (ret > 0 && !(flags & (MSG_PEEK | MSG_OOB)))
		slot_of(c)->got += ret;
	if (c->op->c != BY_FAULT)
		say_data(c, c->buffer, ret < len ? ret : len);
	if (ret >= 0 && c->op->c == BY_SENDMSG) {
		say_names(c, msg.msg_flags, msg_flags, COUNT(msg_flags));
		say(c, " control %zu name %u", msg.msg_controllen, msg.msg_namelen);
	}
	if (ret >= 0 && c->op->c == BY_SENDTO)
		say(c, " name %u", from_len);
}

/*
 * Writes until there is no more room, and no more comes.  The amount is not compared.  A
 * reset may still be on its way when the buffer is full, on a slow kernel.
 */
static void do_fill(struct call *c)
{
	struct pollfd room = { .fd = c->fd, .events = POLLOUT };
	int waits = 0;
	long ret, all = 0;

	prepare(c, 50000);
	do {
		ret = send(c->fd, c->buffer, 1000, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (ret > 0)
			all += ret;
		prepare(c, ret == 1000 ? 0 : 1);
	} while ((ret > 0 && all < (8 << 20)) ||
		 (ret < 0 && errno == EAGAIN && waits++ < FILL_WAITS &&
		  poll(&room, 1, FILL_WAIT_MS) > 0));
	slot_of(c)->sent += all;
	if (ret < 0)
		say(c, "%s", errno_name(errno));
	else
		say(c, "no end");
	c->ok = all > 0;
}

static struct slot *peer_of(struct call *c)
{
	struct sockaddr_storage peer, name;
	socklen_t len = sizeof(peer);
	int i;

	memset(&peer, 0, sizeof(peer));
	if (getpeername(c->fd, (struct sockaddr *)&peer, &len))
		return NULL;
	for (i = 0; i < SLOTS; i++) {
		len = sizeof(name);
		memset(&name, 0, sizeof(name));
		if (c->world->slots[i].fd >= 0 &&
		    !getsockname(c->world->slots[i].fd, (struct sockaddr *)&name, &len) &&
		    ((struct sockaddr_in *)&name)->sin_port ==
		    ((struct sockaddr_in *)&peer)->sin_port)
			return &c->world->slots[i];
	}
	return NULL;
}

/* Reads until nothing has arrived for some rounds. */
static void do_drain(struct call *c)
{
	struct slot *peer = peer_of(c), *own = slot_of(c);
	int idle = 0;
	long ret;

	do {
		ret = recv(c->fd, c->buffer, BUFFER, MSG_DONTWAIT);
		if (ret > 0) {
			own->got += ret;
			idle = 0;
		} else if (ret < 0 && errno == EAGAIN) {
			world_mark(c->world);
			millisecond(0.5);
		}
	} while (ret > 0 || (ret < 0 && errno == EAGAIN && idle++ < 30));
	if (ret < 0)
		say(c, "%s", errno_name(errno));
	else
		say(c, "the end");
	c->ok = true;
	if (peer && peer->filled && peer->sent == own->got) {
		/* From here on amounts can be compared again. */
		peer->filled = false;
		peer->sent = 0;
		own->got = 0;
	}
}

static void do_splice_in(struct call *c)
{
	int len = sizes[c->op->a];
	long ret = splice(c->fd, NULL, c->pipe[1], NULL, len, c->op->b ? SPLICE_F_NONBLOCK : 0);

	answer_bytes(c, ret, false);
	if (ret > 0 && read(c->pipe[0], c->buffer, ret) == ret) {
		slot_of(c)->got += ret;
		say_data(c, c->buffer, ret);
	}
}

static void do_splice_out(struct call *c)
{
	int len = sizes[c->op->a], i;
	long ret;

	prepare(c, len);
	if (len && write(c->pipe[1], c->buffer, len) != len)
		return;
	ret = splice(c->pipe[0], NULL, c->fd, NULL, len ? len : 1,
		     SPLICE_F_NONBLOCK | (c->op->b ? SPLICE_F_MORE : 0));
	answer_bytes(c, ret, true);
	if (ret > 0)
		slot_of(c)->sent += ret;
	for (i = ret > 0 ? ret : 0; i < len; i++)
		if (read(c->pipe[0], c->buffer, 1) != 1)
			break;
}

static void do_sendfile(struct call *c)
{
	int len = sizes[c->op->a], file = memfd_create("differ", 0);
	off_t from = 0;
	long ret;

	prepare(c, len);
	if (file < 0 || write(file, c->buffer, len) != len)
		abort();
	/* More than the file has: it stops at its end. */
	ret = sendfile(c->fd, file, &from, len + (c->op->b ? 100 : 0));
	answer_bytes(c, ret, true);
	if (!c->coarse)
		say(c, " offset %ld", (long)from);
	if (ret > 0)
		slot_of(c)->sent += ret;
	close(file);
}

/* ---- ioctl() and fcntl() ---- */

static const struct { unsigned long number; const char *name; bool value; } ioctls[] = {
	{ FIONREAD, "FIONREAD", true }, { SIOCATMARK, "SIOCATMARK", true },
	{ SIOCOUTQ, "SIOCOUTQ", false }, { SIOCOUTQNSD, "SIOCOUTQNSD", false },
	{ SIOCGPGRP, "SIOCGPGRP", false }, { TCGETS, "TCGETS", true }, { 0x1234, "0x1234", true },
	{ 0x89ef, "SIOCPROTOPRIVATE+15", true },
};

static void do_ioctl(struct call *c)
{
	int value[16] = { -1 };

	if (!answer(c, ioctl(c->fd, ioctls[c->op->a].number, value)) && ioctls[c->op->a].value &&
	    !c->coarse)
		say(c, " %d", value[0]);
}

static void do_nonblock(struct call *c)
{
	int flags = fcntl(c->fd, F_GETFL);

	answer(c, fcntl(c->fd, F_SETFL, c->op->a ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

static void do_owner(struct call *c)
{
	struct f_owner_ex owner = { F_OWNER_TID, c->world->sink_tid };
	int flags = fcntl(c->fd, F_GETFL);

	if (answer(c, fcntl(c->fd, F_SETOWN_EX, &owner)) == 0)
		answer(c, fcntl(c->fd, F_SETFL, c->op->a ? flags | O_ASYNC : flags & ~O_ASYNC));
}

/* ---- waiting ---- */

static const struct name poll_names[] = {
	{ POLLIN, "IN" }, { POLLPRI, "PRI" }, { POLLOUT, "OUT" }, { POLLERR, "ERR" },
	{ POLLHUP, "HUP" }, { POLLNVAL, "NVAL" }, { POLLRDHUP, "RDHUP" }, { POLLRDNORM, "RDNORM" },
	{ POLLRDBAND, "RDBAND" }, { POLLWRNORM, "WRNORM" }, { POLLWRBAND, "WRBAND" },
};

static const int polled[] = { POLLIN, POLLOUT, POLLPRI, POLLRDHUP, 0, POLLIN | POLLPRI | POLLRDHUP };

static void do_poll(struct call *c)
{
	struct pollfd fd = { c->fd, polled[c->op->a], 0 };

	answer(c, poll(&fd, 1, -1));
}

static void do_signal(struct call *c)
{
	struct task *task = &c->world->tasks[c->op->a];

	c->ok = true;
	if (atomic_load(&task->state) == RUNNING)
		pthread_kill(task->thread, c->op->b ? SIGUSR2 : SIGUSR1);
	else
		say(c, "nothing blocks");
}

/* ---- as text ---- */

#define ARGS	(TEXT - 32)	/* for the arguments; the rest is the name */

static void socket_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "%s", op->a ? "NONBLOCK" : "");
}

static void slot_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d", op->slot);
}

static void address_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %s:%s", op->slot, address_names[op->a], port_name(op->b));
}

static void listen_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %d", op->slot, op->a);
}

static void accept_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d%s", op->slot, op->a ? ", NONBLOCK" : "");
}

static void flags_text(char *text, int flags, const struct name *names, int count)
{
	const char *between = ", ";
	int i;

	if (!flags)
		strcat(text, ", 0");
	for (i = 0; i < count; i++)
		if (flags & names[i].value) {
			strcat(strcat(text, between), names[i].name);
			between = "|";
		}
}

static void send_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %d", op->slot, sizes[op->a]);
	if (op->c != BY_WRITE)
		flags_text(args, op->b, send_flags, COUNT(send_flags));
}

static void recv_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %d", op->slot, sizes[op->a]);
	if (op->c != BY_WRITE)
		flags_text(args, op->b, recv_flags, COUNT(recv_flags));
}

static void shutdown_text(const struct op *op, char *args)
{
	static const char * const how[] = { "RD", "WR", "RDWR", "3" };

	snprintf(args, ARGS, "s%d, %s", op->slot, how[op->a]);
}

static void ioctl_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %s", op->slot, ioctls[op->a].name);
}

static void on_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %s", op->slot, op->a ? "on" : "off");
}

static void poll_text(const struct op *op, char *args)
{
	int i;

	snprintf(args, ARGS, "s%d,", op->slot);
	for (i = 0; i < COUNT(poll_names); i++)
		if (polled[op->a] & poll_names[i].value)
			strcat(strcat(args, " "), poll_names[i].name);
}

static void splice_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %d%s", op->slot, sizes[op->a],
		 !op->b ? "" : op->code == OP_SPLICE_IN ? ", NONBLOCK" : ", MORE");
}

static void sendfile_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "s%d, %d of %d", op->slot, sizes[op->a] + (op->b ? 100 : 0),
		 sizes[op->a]);
}

static void signal_text(const struct op *op, char *args)
{
	snprintf(args, ARGS, "thread %d%s", op->a, op->b ? ", SA_RESTART" : "");
}

/* ---- all of them ---- */

static const struct {
	const char	*name;
	void		(*perform)(struct call *c);
	void		(*arguments)(const struct op *op, char *text);
	bool		makes, sends, receives;
} calls[OP_COUNT] = {
	[OP_SOCKET]	= { "socket", do_socket, socket_text, true, false, false },
	[OP_BIND]	= { "bind", do_bind, address_text, false, false, false },
	[OP_LISTEN]	= { "listen", do_listen, listen_text, false, false, false },
	[OP_CONNECT]	= { "connect", do_connect, address_text, false, true, false },
	[OP_ACCEPT]	= { "accept", do_accept, accept_text, true, false, true },
	[OP_SEND]	= { "send", do_send, send_text, false, true, false },
	[OP_RECV]	= { "recv", do_recv, recv_text, false, false, true },
	[OP_SHUTDOWN]	= { "shutdown", do_shutdown, shutdown_text, false, false, false },
	[OP_CLOSE]	= { "close", do_close, slot_text, false, false, false },
	[OP_DUP]	= { "dup", do_dup, slot_text, true, false, false },
	[OP_SETOPT]	= { "setsockopt", do_setopt, option_text, false, false, false },
	[OP_GETOPT]	= { "getsockopt", do_getopt, option_text, false, false, false },
	[OP_IOCTL]	= { "ioctl", do_ioctl, ioctl_text, false, false, false },
	[OP_NONBLOCK]	= { "nonblocking", do_nonblock, on_text, false, false, false },
	[OP_OWNER]	= { "signals", do_owner, on_text, false, false, false },
	[OP_NAMES]	= { "names", do_names, slot_text, false, false, false },
	[OP_POLL]	= { "poll", do_poll, poll_text, false, true, true },
	[OP_FILL]	= { "fill", do_fill, slot_text, false, true, false },
	[OP_DRAIN]	= { "drain", do_drain, slot_text, false, false, true },
	[OP_SPLICE_IN]	= { "splice from", do_splice_in, splice_text, false, false, true },
	[OP_SPLICE_OUT]	= { "splice to", do_splice_out, splice_text, false, true, false },
	[OP_SENDFILE]	= { "sendfile", do_sendfile, sendfile_text, false, true, false },
	[OP_SIGNAL]	= { "interrupt", do_signal, signal_text, false, false, false },
};

const char *op_name(int code)
{
	return calls[code].name;
}

void perform(struct call *c)
{
	c->text[0] = 0;
	c->made = -1;
	c->ok = false;
	atomic_store(&pipe_signals, 0);
	calls[c->op->code].perform(c);
	if (atomic_load(&pipe_signals))
		say(c, " SIGPIPE");
}

static bool busy(int kin, bool sends, bool receives)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		const struct task *task = &worlds[REFERENCE].tasks[i];

		if (atomic_load(&task->state) == RUNNING && task->call.kin == kin &&
		    ((sends && calls[task->call.op->code].sends) ||
		     (receives && calls[task->call.op->code].receives)))
			return true;
	}
	return false;
}

/* May the call leave data corked? */
bool call_may_hold_back(const struct op *op)
{
	switch (op->code) {
	case OP_SEND:
		return op->b & MSG_MORE && op->c != BY_WRITE;
	case OP_SPLICE_OUT:
		return op->b;
	case OP_SETOPT:
		return option_holds_back(op);
	default:
		return false;
	}
}

bool call_shuts_reading(const struct op *op)
{
	return op->code == OP_SHUTDOWN && (op->a == SHUT_RD || op->a == SHUT_RDWR);
}

bool call_asks_mapped(const struct op *op)
{
	return op->code == OP_CONNECT && op->a == A_MAPPED && set.family == 6;
}

/* Is a call blocked, or has it returned without being collected? */
bool anything_blocks(void)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		if (atomic_load(&worlds[REFERENCE].tasks[i].state) != IDLE)
			return true;
	return false;
}

/* poll() looks up its descriptor again when it wakes up: it must not be reused by then. */
static bool polled_now(int fd)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		const struct task *task = &worlds[REFERENCE].tasks[i];

		if (atomic_load(&task->state) == RUNNING && task->call.op->code == OP_POLL &&
		    task->call.fd == fd)
			return true;
	}
	return false;
}

static bool reserved(int slot)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		const struct task *task = &worlds[REFERENCE].tasks[i];

		if (atomic_load(&task->state) == RUNNING && calls[task->call.op->code].makes &&
		    task->call.op->dest == slot)
			return true;
	}
	return false;
}

static bool connects_to_itself(const struct op *op, int fd)
{
	struct sockaddr_in name;	/* sockaddr_in6 has the port at the same offset */
	socklen_t len = sizeof(name);

	return op->code == OP_CONNECT && !getsockname(fd, (struct sockaddr *)&name, &len) &&
	       ntohs(name.sin_port) == worlds[REFERENCE].port + op->b;
}

/*
 * Two concurrent readers or writers of a socket are not compared: their order is
 * random.
 */
bool call_is_possible(const struct op *op)
{
	const struct slot *slot = &worlds[REFERENCE].slots[op->slot];
	bool deaf = worlds[REFERENCE].deaf >> slot->kin & 1;

	if (op->code == OP_SIGNAL)
		return atomic_load(&worlds[REFERENCE].tasks[op->a].state) == RUNNING;
	if (calls[op->code].makes && (worlds[REFERENCE].slots[op->dest].fd >= 0 || reserved(op->dest)))
		return false;
	if (op->code == OP_SOCKET)
		return true;
	if (slot->fd < 0 || busy(slot->kin, calls[op->code].sends, calls[op->code].receives))
		return false;
	/* Over a device a socket cannot: hairpin=Y is for tests. */
	if (!set.network && connects_to_itself(op, slot->fd))
		return false;
	/* Operations of many calls would race with the calls that they wake. */
	if ((op->code == OP_FILL || op->code == OP_DRAIN) && anything_blocks())
		return false;
	if (op->code == OP_CLOSE && polled_now(slot->fd))
		return false;
	/* The amount that fits decides whether later data resets the connection, */
	if (coarse && (call_shuts_reading(op) || (deaf && op->code == OP_SHUTDOWN)))
		return false;
	/* or how much can be read before EOF. */
	if (coarse && deaf && calls[op->code].receives)
		return false;
	/* TCP would still send over IPv4: see Documentation/compatibility.rst. */
	if (op->code == OP_CONNECT && worlds[REFERENCE].mapped >> slot->kin & 1 &&
	    (op->a == A_ANY || op->a == A_OWN || op->a == A_FOREIGN))
		return false;
	/* The amount that fits decides whether it is sent at all. */
	if (op->code == OP_SEND && coarse && op->b & MSG_OOB && op->c != BY_WRITE)
		return false;
	if (call_may_block(op) && (free_worker() < 0 || (coarse && calls[op->code].sends)))
		return false;
	return true;
}

bool call_may_block(const struct op *op)
{
	int fd = worlds[REFERENCE].slots[op->slot].fd;
	struct linger linger = { 0 };
	socklen_t len = sizeof(linger);

	switch (op->code) {
	case OP_POLL:
		return true;
	case OP_CLOSE:
		getsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, &len);
		return linger.l_onoff && linger.l_linger;
	case OP_RECV:
	case OP_SEND:
		if (op->b & MSG_DONTWAIT && op->c != BY_WRITE)
			return false;
		break;
	case OP_CONNECT:
	case OP_ACCEPT:
	case OP_SENDFILE:
	case OP_SPLICE_IN:
	case OP_SPLICE_OUT:
		break;
	default:
		return false;
	}
	return !(fcntl(fd, F_GETFL) & O_NONBLOCK);
}

bool call_has_timeout(const struct op *op)
{
	struct timeval time = { 0, 0 };
	socklen_t len = sizeof(time);

	if (op->code == OP_POLL || (!calls[op->code].sends && !calls[op->code].receives))
		return false;
	getsockopt(worlds[REFERENCE].slots[op->slot].fd, SOL_SOCKET,
		   calls[op->code].sends ? SO_SNDTIMEO : SO_RCVTIMEO, &time, &len);
	return time.tv_sec || time.tv_usec;
}

/* The call almost as in C source. */
void op_text(const struct op *op, char *text)
{
	const char *name = calls[op->code].name;
	char args[ARGS];

	if (op->code == OP_SEND)
		name = send_names[op->c];
	else if (op->code == OP_RECV)
		name = recv_names[op->c];
	calls[op->code].arguments(op, args);
	if (calls[op->code].makes)
		snprintf(text, TEXT, "s%d = %s(%s)", op->dest, name, args);
	else
		snprintf(text, TEXT, "%s(%s)", name, args);
}

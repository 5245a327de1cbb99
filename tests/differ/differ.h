/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The differential tester: what its parts share.
 *
 * A sequence of calls runs in two worlds at once, the reference's and the
 * subject's.  A world has slots for sockets, workers for calls that block, and a
 * marker: a separate connection that shows that all earlier messages have
 * arrived.  See README.md.
 */
#ifndef DIFFER_H
#define DIFFER_H

#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SLOTS		8	/* sockets of a world */
#define WORKERS		4	/* concurrent blocking calls of a world */
#define PORTS		3	/* that sequences bind and connect to */
#define STEPS		48	/* calls of a sequence */
#define TEXT		160
#define BUFFER		(1 << 20)
#define BIG		BUFFER	/* more than fits into small buffers */
#define REFERENCE	0
#define SUBJECT		1
#define COUNT(a)	((int)(sizeof(a) / sizeof((a)[0])))

enum code {
	OP_SOCKET, OP_BIND, OP_LISTEN, OP_CONNECT, OP_ACCEPT, OP_SEND, OP_RECV, OP_SHUTDOWN,
	OP_CLOSE, OP_DUP, OP_SETOPT, OP_GETOPT, OP_IOCTL, OP_NONBLOCK, OP_OWNER, OP_NAMES,
	OP_POLL, OP_FILL, OP_DRAIN, OP_SPLICE_IN, OP_SPLICE_OUT, OP_SENDFILE, OP_SIGNAL, OP_COUNT
};

/**
 * struct op - a call of a sequence
 * @code: enum code
 * @slot: the socket
 * @dest: slot of the socket that it creates
 * @hasty: the next call follows without waiting for both worlds to settle
 * @a: argument; calls.c defines the arguments
 * @b: argument
 * @c: argument
 */
struct op {
	uint8_t		code, slot, dest, hasty;
	int		a, b, c;
};

struct world;

/**
 * struct call - a call that is made in a world, by a worker or not
 * @world: its world
 * @op: the operation
 * @step: number of the call in the sequence
 * @fd: of the socket
 * @kin: identifies the socket, the same for all its descriptors
 * @made: a new descriptor, or -1
 * @ok: it succeeded
 * @coarse: amounts are not compared
 * @text: its result
 * @buffer: BUFFER bytes
 * @pipe: for splice()
 */
struct call {
	struct world	*world;
	const struct op	*op;
	int		step, fd, kin, made;
	bool		ok, coarse;
	char		text[TEXT];
	char		*buffer;
	int		pipe[2];
};

enum task_state { IDLE, RUNNING, DONE };

/**
 * struct task - a worker
 * @call: its call
 * @go: posted to start the call
 * @state: enum task_state
 * @timed: the call has a timeout: settling waits for it
 * @thread: the thread
 * @tid: its number
 * @proc: its /proc/self/task/TID/syscall
 */
struct task {
	struct call	call;
	sem_t		go;
	atomic_int	state;
	bool		timed;
	pthread_t	thread;
	atomic_int	tid;
	int		proc;
};

enum role { NONE, FRESH, BOUND, LISTENING, CONNECTING, CONNECTED };

/**
 * struct slot - a socket
 * @fd: or -1
 * @kin: the same for duplicates
 * @role: its last known role, for the choice of calls
 * @sent: bytes
 * @got: bytes
 * @filled: more was sent than the worlds are sure to buffer alike
 * @late: an acknowledgment or a timer may still change its state
 * @corked: @late is set after every call
 */
struct slot {
	int		fd, kin;
	enum role	role;
	unsigned long	sent, got;
	bool		filled, late, corked;
};

/**
 * struct look - observable state of a socket
 * @revents: poll()'s
 * @inq: FIONREAD, or a negative errno
 * @mark: SIOCATMARK, or a negative errno
 */
struct look {
	int		revents, inq, mark;
};

/**
 * struct world - the sockets of one transport
 * @name: of the transport
 * @number: REFERENCE or SUBJECT
 * @family: for socket()
 * @protocol: for socket()
 * @port: first port of the sequence
 * @slots: sockets
 * @kin: the last number assigned
 * @looks: last observed state of the sockets
 * @edges: bit for each slot that epoll reported since the step began
 * @epoll: all sockets, edge-triggered
 * @tasks: workers
 * @main: the current call that does not block
 * @sink: thread that receives the signals of sockets
 * @sink_tid: its number
 * @sink_go: posted to make it check pending signals
 * @sink_done: posted when it has done so
 * @async: there are sockets that send signals
 * @filled: a socket that has been closed was filled
 * @deaf: bits of kins that are shut down for reading
 * @mapped: bits of IPv6 kins that have tried to connect to an IPv4-mapped address
 * @signals: SIGURG, SIGIO seen since the step began
 * @marker: a connection's two ends
 */
struct world {
	const char	*name;
	int		number, family, protocol, port;
	struct slot	slots[SLOTS];
	int		kin;
	struct look	looks[SLOTS];
	unsigned int	edges;
	int		epoll;
	struct task	tasks[WORKERS];
	struct call	main;
	pthread_t	sink;
	atomic_int	sink_tid;
	sem_t		sink_go, sink_done;
	bool		async, filled;
	uint64_t	deaf, mapped;
	unsigned int	signals;
	int		marker[2];
};

/**
 * struct outcome - of a call, in both worlds
 * @text: its result; empty: it blocks
 * @late: the step in which it returned, or -1
 */
struct outcome {
	char		text[2][TEXT];
	int		late;
};

/**
 * struct difference - a difference between the worlds
 * @step: call after which it was found; -1 for none
 * @what: the property that differs
 * @value: in each world
 * @rule: index of its rule if it is listed, or -1
 */
struct difference {
	int		step;
	char		what[40];
	char		value[2][TEXT];
	int		rule;
};

/**
 * struct sequence - calls and their results
 * @ops: the calls
 * @count: number of calls
 * @outcomes: one for each
 * @found: the difference that ended it
 */
struct sequence {
	struct op		ops[STEPS];
	int			count;
	struct outcome		outcomes[STEPS];
	struct difference	found;
};

struct settings {
	const char	*transport[2];
	int		family;
	struct in_addr	own4;
	struct in6_addr	own6;
	uint64_t	seed;
	long		first, runs, seconds;
	int		patience_ms, most, jobs;
	const char	*listed;
	bool		plant, network, verbose;
};

extern struct settings set;
extern struct world worlds[2];
extern bool coarse;			/* a socket is filled: amounts are not compared */

/* calls.c */
extern __thread atomic_uint pipe_signals;
bool call_is_possible(const struct op *op);
bool call_may_hold_back(const struct op *op);
bool call_shuts_reading(const struct op *op);
bool call_asks_mapped(const struct op *op);
bool anything_blocks(void);
bool call_may_block(const struct op *op);
bool call_has_timeout(const struct op *op);
void perform(struct call *call);
void op_text(const struct op *op, char *text);
const char *op_name(int code);
__attribute__((format(printf, 2, 3)))
void say(struct call *c, const char *format, ...);
long answer(struct call *c, long ret);
const char *errno_name(int err);
int sizes_count(void);
int big_size(void);
int flags_of_send(uint64_t chance);
int flags_of_recv(uint64_t chance);

/* options.c */
int option_count(void);
bool option_makes_sense(const struct op *op);
bool option_holds_back(const struct op *op);
void option_text(const struct op *op, char *text);
void do_setopt(struct call *c);
void do_getopt(struct call *c);

/* world.c */
void worlds_start(void);
void worlds_stop(void);
void world_begin(struct world *w, int port);
void world_end(struct world *w);
void world_forget_edges(struct world *w);
void world_look(struct world *w);
void world_mark(struct world *w);
bool world_asleep(struct world *w);
bool world_acknowledged(struct world *w);
void worlds_uncork(void);
void world_forget_late(struct world *w);
void world_make(struct world *w, const struct op *op, int step, int worker);
int free_worker(void);
void world_install(struct world *w, struct call *call);
void millisecond(double ms);
double now(void);

/* sequence.c */
void run_sequence(struct sequence *s, uint64_t *chance, int port, int patience_ms);
void print_sequence(const struct sequence *s, FILE *to);
void difference_text(const struct sequence *s, char *text, size_t size);

/* choose.c */
uint64_t draw(uint64_t *state);
int choose_start(struct op *ops, uint64_t *chance);
void choose(struct op *op, uint64_t *chance, bool small);

/* rules.c */
void rules_read(const char *path);
int rules_match(const struct sequence *s);
const char *rule_name(int rule);
int rules_count(void);

/* shrink.c */
int shrink(struct sequence *s, int (*next_port)(void));

#endif

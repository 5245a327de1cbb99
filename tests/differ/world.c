// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A world: sockets of one transport, threads that block on them, and their observation.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <linux/sockios.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "differ.h"

struct world worlds[2];

#define CHECK(call) \
	({ long ret_ = (call); if (ret_ < 0) { perror(#call); abort(); } ret_; })

double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec * 1e-9;
}

void millisecond(double ms)
{
	struct timespec time = { ms / 1000, (long)(ms * 1e6) % 1000000000 };

	nanosleep(&time, NULL);
}

/* ---- signals ---- */

static void on_signal(int number)
{
	if (number == SIGPIPE)
		atomic_fetch_add(&pipe_signals, 1);
}

static void handle_signals(void)
{
	static const int numbers[] = { SIGPIPE, SIGUSR1, SIGUSR2 };
	struct sigaction action = { .sa_handler = on_signal };
	int i;

	for (i = 0; i < COUNT(numbers); i++) {
		action.sa_flags = numbers[i] == SIGUSR1 ? 0 : SA_RESTART;
		CHECK(sigaction(numbers[i], &action, NULL));
	}
}

/* ---- threads ---- */

static int proc_of(int tid)
{
	char path[64];

	sprintf(path, "/proc/self/task/%d/syscall", tid);
	return CHECK(open(path, O_RDONLY | O_CLOEXEC));
}

/* The signals of sockets stay pending for this thread until it is asked to take them. */
static void *sink(void *arg)
{
	const struct timespec none = { 0, 0 };
	struct world *w = arg;
	sigset_t signals;
	int number;

	sigemptyset(&signals);
	sigaddset(&signals, SIGURG);
	sigaddset(&signals, SIGIO);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	atomic_store(&w->sink_tid, gettid());
	for (;;) {
		while (sem_wait(&w->sink_go))
			;
		while ((number = sigtimedwait(&signals, NULL, &none)) > 0)
			w->signals |= number == SIGURG ? 1 : 2;
		sem_post(&w->sink_done);
	}
	return NULL;
}

static void look_at_signals(struct world *w)
{
	sem_post(&w->sink_go);
	while (sem_wait(&w->sink_done))
		;
}

static void *work(void *arg)
{
	struct task *task = arg;

	atomic_store(&task->tid, gettid());
	for (;;) {
		while (sem_wait(&task->go))
			;
		perform(&task->call);
		atomic_store(&task->state, DONE);
	}
	return NULL;
}

/* Is the thread asleep in a system call other than the tester's own? */
static bool asleep(int proc)
{
	char text[100];
	ssize_t len = pread(proc, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return false;
	text[len] = 0;
	return text[0] >= '0' && text[0] <= '9' && atoi(text) != SYS_futex;
}

/* Is every thread either done or asleep?  One whose call has a timeout has to be done. */
bool world_asleep(struct world *w)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		struct task *task = &w->tasks[i];

		if (atomic_load(&task->state) == RUNNING && (task->timed || !asleep(task->proc)))
			return false;
	}
	return true;
}

int free_worker(void)
{
	int i;

	for (i = 0; i < WORKERS; i++)
		if (atomic_load(&worlds[REFERENCE].tasks[i].state) == IDLE)
			return i;
	return -1;
}

static void prepare_call(struct call *call)
{
	call->buffer = malloc(BUFFER);
	CHECK(pipe2(call->pipe, O_CLOEXEC | O_NONBLOCK));
	/* A separate pipe buffer for each page of the largest size. */
	CHECK(fcntl(call->pipe[1], F_SETPIPE_SZ, 1 << 18));
}

static void empty_pipe(struct call *call)
{
	while (read(call->pipe[0], call->buffer, BUFFER) > 0)
		;
}

static void start_threads(struct world *w)
{
	int i;

	for (i = 0; i < WORKERS; i++) {
		struct task *task = &w->tasks[i];

		prepare_call(&task->call);
		CHECK(sem_init(&task->go, 0, 0));
		CHECK(-pthread_create(&task->thread, NULL, work, task));
		while (!atomic_load(&task->tid))
			sched_yield();
		task->proc = proc_of(task->tid);
	}
	CHECK(sem_init(&w->sink_go, 0, 0));
	CHECK(sem_init(&w->sink_done, 0, 0));
	CHECK(-pthread_create(&w->sink, NULL, sink, w));
	while (!atomic_load(&w->sink_tid))
		sched_yield();
}

/* ---- the marker ---- */

static void start_marker(struct world *w)
{
	struct sockaddr_in six_or_four[4];
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)six_or_four;
	struct sockaddr_in *four = six_or_four;
	socklen_t len;
	int listener, on = 1, i;

	memset(six_or_four, 0, sizeof(six_or_four));
	if (set.family == 4) {
		four->sin_family = AF_INET;
		four->sin_addr = set.own4;
		len = sizeof(*four);
	} else {
		six->sin6_family = AF_INET6;
		six->sin6_addr = set.own6;
		len = sizeof(*six);
	}
	listener = CHECK(socket(w->family, SOCK_STREAM, w->protocol));
	CHECK(bind(listener, (struct sockaddr *)six_or_four, len));
	CHECK(listen(listener, 1));
	CHECK(getsockname(listener, (struct sockaddr *)six_or_four, &len));
	w->marker[0] = CHECK(socket(w->family, SOCK_STREAM, w->protocol));
	CHECK(connect(w->marker[0], (struct sockaddr *)six_or_four, len));
	w->marker[1] = CHECK(accept(listener, NULL, NULL));
	for (i = 0; i < 2; i++)
		CHECK(setsockopt(w->marker[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	close(listener);
}

/*
 * Everything sent before has arrived when this returns, and so have the replies:
 * messages between the same addresses do not overtake each other.
 */
void world_mark(struct world *w)
{
	char byte = 'm';
	int i;

	for (i = 0; i < 3; i++) {
		CHECK(send(w->marker[i % 2], &byte, 1, 0));
		while (recv(w->marker[!(i % 2)], &byte, 1, 0) != 1)
			if (errno != EINTR)
				abort();
	}
}

/* ---- sockets ---- */

static void watch(struct world *w, int slot)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLPRI | EPOLLRDHUP | EPOLLET,
		.data.u32 = slot,
	};

	CHECK(epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->slots[slot].fd, &event));
}

/* A call has returned: update the slots. */
void world_install(struct world *w, struct call *call)
{
	struct slot *slot = &w->slots[call->op->slot], *dest = &w->slots[call->op->dest];

	if (call->made >= 0) {
		memset(dest, 0, sizeof(*dest));
		dest->fd = call->made;
		dest->kin = ++w->kin;
		dest->role = call->op->code == OP_SOCKET ? FRESH : CONNECTED;
		if (call->op->code == OP_DUP)
			*dest = (struct slot) { call->made, slot->kin, slot->role, slot->sent,
						slot->got, slot->filled, slot->late, slot->corked };
		watch(w, call->op->dest);
	}
	if (!call->ok)
		return;
	if (call->op->code == OP_BIND && slot->role == FRESH)
		slot->role = BOUND;
	if (call->op->code == OP_LISTEN)
		slot->role = LISTENING;
	if (call->op->code == OP_CONNECT)
		slot->role = CONNECTED;
	if (call->op->code == OP_FILL || (call->op->code == OP_SEND && call->op->a == big_size()))
		slot->filled = true;
}

static void wait_for(struct task *task)
{
	int turns = 0;

	while (atomic_load(&task->state) == RUNNING) {
		if (turns++ < 20)
			sched_yield();
		else if (asleep(task->proc))
			break;
	}
}

/* Make a call, by @worker if that is not -1; then it may still run afterwards. */
void world_make(struct world *w, const struct op *op, int step, int worker)
{
	struct call *call = worker < 0 ? &w->main : &w->tasks[worker].call;
	struct slot *slot = &w->slots[op->slot];

	call->world = w;
	call->op = op;
	call->step = step;
	call->fd = slot->fd;
	call->kin = slot->kin;
	call->coarse = coarse;
	call->text[0] = 0;
	if (op->code == OP_CLOSE) {
		w->filled |= slot->filled;
		/* A running call may hold the file, so that epoll keeps it. */
		epoll_ctl(w->epoll, EPOLL_CTL_DEL, slot->fd, NULL);
		slot->fd = -1;
	}
	if (call_shuts_reading(op))
		w->deaf |= 1ull << slot->kin;
	if (call_asks_mapped(op))
		w->mapped |= 1ull << slot->kin;
	slot->corked |= op->code == OP_SETOPT && call_may_hold_back(op);
	if (op->code == OP_SHUTDOWN || slot->corked || call_may_hold_back(op))
		slot->late = true;
	w->async |= op->code == OP_OWNER;
	if (op->code == OP_CONNECT && slot->role != CONNECTED)
		slot->role = CONNECTING;
	if (op->code == OP_FILL || (op->code == OP_SEND && op->a == big_size()))
		call->coarse = true;
	if (worker < 0) {
		perform(call);
		world_install(w, call);
		return;
	}
	if (op->code == OP_SEND && op->a == big_size())
		slot->filled = true;
	atomic_store(&w->tasks[worker].state, RUNNING);
	sem_post(&w->tasks[worker].go);
	wait_for(&w->tasks[worker]);
}

static int ask(int fd, unsigned long what)
{
	int value = 0;

	return ioctl(fd, what, &value) ? -errno : value;
}

static void look_at_edges(struct world *w)
{
	struct epoll_event events[2 * SLOTS];
	int i, count = CHECK(epoll_wait(w->epoll, events, COUNT(events), 0));

	for (i = 0; i < count; i++)
		w->edges |= 1u << events[i].data.u32;
}

/* Does a socket wait for an acknowledgment?  In CLOSE none arrives any more. */
static bool waits(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	return ask(fd, SIOCOUTQ) > 0 && !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) &&
	       info.tcpi_state != TCP_CLOSE;
}

/*
 * Is everything acknowledged on sockets where that is visible: a delivered FIN changes
 * the state, and corked data is sent later.
 */
bool world_acknowledged(struct world *w)
{
	bool all = true;
	int i;

	for (i = 0; i < SLOTS; i++) {
		struct slot *slot = &w->slots[i];

		slot->late = slot->fd >= 0 && slot->late && waits(slot->fd);
		all &= !slot->late;
	}
	return all;
}

/*
 * Corked data would be sent by a timer, at some later time.  Send it now, in both
 * worlds.
 */
void worlds_uncork(void)
{
	int i, n, off = 0;

	for (i = 0; i < SLOTS; i++) {
		struct slot *ref = &worlds[REFERENCE].slots[i], *sub = &worlds[SUBJECT].slots[i];

		if (!ref->late || ref->fd < 0 || sub->fd < 0 ||
		    (ask(ref->fd, SIOCOUTQNSD) <= 0 && ask(sub->fd, SIOCOUTQNSD) <= 0))
			continue;
		for (n = 0; n < 2; n++) {
			setsockopt(worlds[n].slots[i].fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
			worlds[n].slots[i].corked = false;
		}
	}
}

/* Do not wait for late events any longer. */
void world_forget_late(struct world *w)
{
	int i;

	for (i = 0; i < SLOTS; i++)
		w->slots[i].late = false;
}

void world_forget_edges(struct world *w)
{
	look_at_edges(w);
	w->edges = 0;
	if (w->async)
		look_at_signals(w);
	w->signals = 0;
}

void world_look(struct world *w)
{
	struct pollfd fds[SLOTS];
	int i;

	for (i = 0; i < SLOTS; i++) {
		fds[i].fd = w->slots[i].fd;
		fds[i].revents = 0;
		fds[i].events = POLLIN | POLLOUT | POLLPRI | POLLRDHUP | POLLRDNORM | POLLRDBAND |
				POLLWRNORM | POLLWRBAND;
	}
	CHECK(poll(fds, SLOTS, 0));
	for (i = 0; i < SLOTS; i++) {
		struct look *look = &w->looks[i];

		memset(look, 0, sizeof(*look));
		if (fds[i].fd < 0)
			continue;
		look->revents = fds[i].revents;
		look->inq = ask(fds[i].fd, FIONREAD);
		look->mark = ask(fds[i].fd, SIOCATMARK);
	}
	look_at_edges(w);
	if (w->async)
		look_at_signals(w);
}

/* ---- begin and end ---- */

static void start(struct world *w, int number)
{
	const char *name = set.transport[number];
	bool tcp = !strcmp(name, "tcp");
	int i;

	w->name = name;
	w->number = number;
	w->family = tcp ? (set.family == 4 ? AF_INET : AF_INET6) : atoi(name);
	w->protocol = tcp ? IPPROTO_TCP : (set.family == 4 ? 0 : 1);
	prepare_call(&w->main);
	for (i = 0; i < SLOTS; i++)
		w->slots[i].fd = -1;
	w->epoll = CHECK(epoll_create1(EPOLL_CLOEXEC));
	start_threads(w);
	start_marker(w);
}

void worlds_start(void)
{
	handle_signals();
	start(&worlds[REFERENCE], REFERENCE);
	start(&worlds[SUBJECT], SUBJECT);
}

void world_begin(struct world *w, int port)
{
	w->port = port;
	w->kin = 0;
	w->async = false;
	w->filled = false;
	w->deaf = 0;
	w->mapped = 0;
	w->edges = 0;
	look_at_signals(w);
	w->signals = 0;
}

/* Wakes blocked threads with signals, and closes everything. */
void world_end(struct world *w)
{
	const struct linger linger = { 1, 0 };
	int i, turns;

	for (i = 0; i < WORKERS; i++) {
		struct task *task = &w->tasks[i];

		for (turns = 0; atomic_load(&task->state) == RUNNING; turns++) {
			pthread_kill(task->thread, SIGUSR1);
			if (turns < 20)
				sched_yield();
			else
				millisecond(1);
		}
		if (atomic_load(&task->state) == DONE)
			world_install(w, &task->call);
		atomic_store(&task->state, IDLE);
		empty_pipe(&task->call);
	}
	for (i = 0; i < SLOTS; i++) {
		if (w->slots[i].fd < 0)
			continue;
		setsockopt(w->slots[i].fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
		close(w->slots[i].fd);
		memset(&w->slots[i], 0, sizeof(w->slots[i]));
		w->slots[i].fd = -1;
	}
	empty_pipe(&w->main);
	world_mark(w);
}

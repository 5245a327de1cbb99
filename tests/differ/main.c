// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random sequences of socket calls over two transports, which must do the same.
 *
 *	differ [--subject 19] [--reference tcp] [--family 4|6] [--seed N]
 *	       [--runs N | --seconds N] [--first N] [--address ADDRESS]
 *	       [--listed FILE] [--patience MS] [--most N] [--plant] [--verbose]
 *
 * A transport is "tcp" or the number of an address family.  The same seed makes the
 * same sequences; --first begins with a later one.  Without --address everything
 * happens in namespaces of its own, over 127.0.0.1 or ::1.
 *
 * Sequences run in a child, a batch of them each, so that what is left of one
 * (TIME_WAIT, say) does not last, and one that hangs can be told.  Prints TAP.  The
 * exit status is 1 if there was a difference that is not listed, or one that did not
 * repeat, or a hang.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "differ.h"

#define BATCH		1000
#define HANG_SECONDS	180
#define KINDS		256	/* of differences that are told apart */
#define FIRST_PORT	1100
#define LAST_PORT	32000
#define PORT_STEP	(2 * PORTS)

struct settings set = {
	.transport = { "tcp", "19" }, .family = 4, .seed = 1, .runs = 1000, .patience_ms = 6000,
	.most = 10, .network = true,
};

/* What the children tell. */
static struct shared {
	atomic_long	next, calls, listed, rule[64], made[OP_COUNT], good[OP_COUNT];
	atomic_int	differences, unstable, repeated, kinds, port;
	struct sequence	current;
	char		kind[KINDS][TEXT];
	int		kind_count[KINDS];
} *shared;

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static int next_port(void)
{
	int port = shared->port;

	shared->port = port + PORT_STEP > LAST_PORT ? FIRST_PORT : port + PORT_STEP;
	return port;
}

/*
 * A network of our own, in which only the loopback interface is, and TCP acknowledges
 * at once: what depends on that is not worth 40 ms each time.
 */
static void own_network(void)
{
	if (unshare(CLONE_NEWNET))
		die("unshare");
	if (system("ip link set lo up && "
		   "ip route change local 127.0.0.1 dev lo table local proto kernel scope host "
		   "src 127.0.0.1 quickack 1 && "
		   "{ [ ! -e /proc/net/if_inet6 ] || "
		   "{ ip -6 route del local ::1 table local; ip -6 route add local ::1 dev lo table local quickack 1; }; }"))
		exit(2);
}

/* Has this kind of difference been shown?  Told by the call and what it was. */
static bool is_known(const struct sequence *s)
{
	char text[4 * TEXT];
	int i;

	difference_text(s, text, sizeof(text));
	text[TEXT - 1] = 0;
	for (i = 0; i < shared->kinds; i++)
		if (!strcmp(shared->kind[i], text)) {
			shared->kind_count[i]++;
			return true;
		}
	if (shared->kinds < KINDS) {
		strcpy(shared->kind[shared->kinds], text);
		shared->kind_count[shared->kinds++] = 1;
	}
	return false;
}

static bool same_kind(const struct sequence *one, const struct sequence *other)
{
	char texts[2][4 * TEXT];

	difference_text(one, texts[0], sizeof(texts[0]));
	difference_text(other, texts[1], sizeof(texts[1]));
	return !strcmp(texts[0], texts[1]);
}

static void tell(struct sequence *s, long number)
{
	struct sequence first = *s;
	int repeated;

	if (is_known(s)) {
		shared->repeated++;
		return;
	}
	repeated = shrink(s, next_port);
	if (repeated < 5)
		shared->unstable++;
	else
		shared->differences++;
	if (!repeated)
		*s = first;
	/* The shortest one may be known, although this one was not. */
	if (repeated == 5 && !same_kind(s, &first) && is_known(s)) {
		shared->differences--;
		shared->repeated++;
		return;
	}
	printf("# %s: --seed %llu --first %ld, IPv%d, repeats %d of 5\n",
	       repeated < 5 ? "unstable" : "difference", (unsigned long long)set.seed, number,
	       set.family, repeated);
	print_sequence(s, stdout);
	printf("#\n");
	fflush(stdout);
}

static void count_calls(const struct sequence *s)
{
	int i;

	shared->calls += s->count;
	for (i = 0; i < s->count; i++) {
		shared->made[s->ops[i].code]++;
		shared->good[s->ops[i].code] += s->outcomes[i].text[0][0] != '-';
	}
}

static void one_sequence(long number)
{
	uint64_t chance = set.seed * 0x2545f4914f6cdd1dull + number;
	struct sequence *s = &shared->current;

	memset(s, 0, sizeof(*s));
	draw(&chance);
	s->count = choose_start(s->ops, &chance);
	run_sequence(s, &chance, next_port(), set.patience_ms);
	count_calls(s);
	if (set.verbose)
		print_sequence(s, stdout);
	if (s->found.step < 0)
		return;
	if (s->found.rule >= 0) {
		shared->listed++;
		shared->rule[s->found.rule]++;
		return;
	}
	tell(s, number);
}

static bool time_is_up(double end)
{
	return (set.seconds && now() >= end) || shared->next >= set.first + set.runs ||
	       shared->differences + shared->unstable >= set.most;
}

static void child(double end)
{
	int i;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (set.network)
		own_network();
	worlds_start();
	for (i = 0; i < BATCH && !time_is_up(end); i++) {
		one_sequence(shared->next);
		shared->next++;
	}
	fflush(stdout);
	_exit(0);
}

/* Until the child ends.  False if it hangs, or worse. */
static bool watch_child(pid_t pid)
{
	long before = -1;
	double moved = now();
	int status, port = 0;

	while (!waitpid(pid, &status, WNOHANG)) {
		/* Shrinking takes ports as well. */
		if (shared->next != before || shared->port != port) {
			before = shared->next;
			port = shared->port;
			moved = now();
		}
		if (now() - moved > HANG_SECONDS) {
			kill(pid, SIGKILL);
			printf("# no end: --seed %llu --first %ld\n", (unsigned long long)set.seed, before);
			return false;
		}
		millisecond(20);
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return true;
	printf("# status %x: --seed %llu --first %ld\n", status, (unsigned long long)set.seed, before);
	return false;
}

static void summary(bool ended, double seconds)
{
	long made = shared->next - set.first;
	int i;

	for (i = 0; i < OP_COUNT; i++)
		if (shared->made[i])
			printf("# %9ld %-12s %ld succeeded\n", shared->made[i], op_name(i), shared->good[i]);
	for (i = 0; i < shared->kinds; i++)
		printf("# %9d times: %s\n", shared->kind_count[i], shared->kind[i]);
	for (i = 0; i < rules_count(); i++)
		if (shared->rule[i])
			printf("# %9ld times listed: %s\n", shared->rule[i], rule_name(i));
	printf("# %.0f s, %.0f sequences a second\n", seconds, made / seconds);
	printf("%s 1 - %ld sequences of %ld calls, %s and %s, IPv%d, seed %llu: %d differences, "
	       "%d unstable, %ld listed\n", ended && !shared->differences && !shared->unstable ?
	       "ok" : "not ok", made, shared->calls, set.transport[0], set.transport[1], set.family,
	       (unsigned long long)set.seed, shared->differences, shared->unstable,
	       shared->listed);
	printf("1..1\n");
}

static void own_address(const char *text)
{
	set.network = false;
	if (inet_pton(AF_INET, text, &set.own4) == 1)
		set.family = 4;
	else if (inet_pton(AF_INET6, text, &set.own6) == 1)
		set.family = 6;
	else
		exit(2);
}

static void parse(int argc, char **argv)
{
	static const struct option names[] = {
		{ "reference", 1, 0, 'r' }, { "subject", 1, 0, 's' }, { "family", 1, 0, 'f' },
		{ "seed", 1, 0, 'S' }, { "runs", 1, 0, 'n' }, { "seconds", 1, 0, 't' },
		{ "first", 1, 0, 'F' }, { "address", 1, 0, 'a' }, { "listed", 1, 0, 'l' },
		{ "patience", 1, 0, 'p' }, { "most", 1, 0, 'm' }, { "plant", 0, 0, 'P' },
		{ "verbose", 0, 0, 'v' }, { 0, 0, 0, 0 }
	};
	int option;

	set.own4.s_addr = htonl(INADDR_LOOPBACK);
	set.own6 = in6addr_loopback;
	while ((option = getopt_long(argc, argv, "", names, NULL)) >= 0)
		switch (option) {
		case 'r': set.transport[REFERENCE] = optarg; break;
		case 's': set.transport[SUBJECT] = optarg; break;
		case 'f': set.family = atoi(optarg); break;
		case 'S': set.seed = strtoull(optarg, NULL, 0); break;
		case 'n': set.runs = atol(optarg); break;
		case 't': set.seconds = atol(optarg); set.runs = 1L << 40; break;
		case 'F': set.first = atol(optarg); break;
		case 'a': own_address(optarg); break;
		case 'l': set.listed = optarg; break;
		case 'p': set.patience_ms = atoi(optarg); break;
		case 'm': set.most = atoi(optarg); break;
		case 'P': set.plant = true; break;
		case 'v': set.verbose = true; break;
		default: exit(2);
		}
	if (set.listed)
		rules_read(set.listed);
}

int main(int argc, char **argv)
{
	double begin = now(), end;
	bool ended = true;
	pid_t pid;

	parse(argc, argv);
	end = begin + set.seconds;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	shared->next = set.first;
	shared->port = FIRST_PORT;
	while (ended && !time_is_up(end)) {
		fflush(stdout);
		pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid)
			child(end);
		ended = watch_child(pid);
	}
	if (!ended)
		print_sequence(&shared->current, stdout);
	summary(ended, now() - begin);
	return !ended || shared->differences || shared->unstable;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Random sequences of socket calls over two transports, which must do the same.
 *
 *	differ [--subject 19] [--reference tcp] [--family 4|6] [--seed N]
 *	       [--runs N | --seconds N] [--first N] [--address ADDRESS]
 *	       [--listed FILE] [--patience MS] [--most N] [--jobs N] [--plant] [--verbose]
 *
 * A transport is "tcp" or the number of an address family.  The same seed makes the
 * same sequences; --first begins with a later one.  Without --address everything
 * runs in separate network namespaces, over 127.0.0.1 or ::1.
 *
 * Sequences run in children, --jobs of them at a time and a batch of sequences each,
 * so that leftovers of one (such as TIME_WAIT) are discarded, and a sequence that hangs
 * can be identified.  Prints TAP.  The exit status is 1 if there was an unlisted
 * difference, or one that did not repeat, or a hang.
 */
#include <arpa/inet.h>
#include <ctype.h>
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
#define JOBS		16
#define KINDS		256	/* of differences */
#define FIRST_PORT	1100
#define LAST_PORT	32000
#define PORT_STEP	(2 * PORTS)
#define PORT_STEPS	((LAST_PORT - FIRST_PORT) / PORT_STEP)

struct settings set = {
	.transport = { "tcp", "19" }, .family = 4, .seed = 1, .runs = 1000, .patience_ms = 6000,
	.most = 10, .jobs = 1, .network = true,
};

/* State of a child, shared with the parent; @turns increases while it makes progress. */
struct job {
	atomic_long	number, turns;
	struct sequence	current;
	pid_t		pid;
	long		seen;
	double		moved;
};

/* State shared by all; @lock protects the kinds, and serializes output. */
static struct shared {
	atomic_long	next, done, calls, listed, rule[64], made[OP_COUNT], good[OP_COUNT];
	atomic_int	differences, unstable, port;
	atomic_long	loop_bytes;
	pthread_mutex_t	lock;
	int		kinds, kind_count[KINDS];
	char		kind[KINDS][TEXT];
	struct job	jobs[JOBS];
} *shared;
static struct job *job;		/* in a child: its own */

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static int next_port(void)
{
	job->turns++;
	return FIRST_PORT + atomic_fetch_add(&shared->port, 1) % PORT_STEPS * PORT_STEP;
}

/*
 * A network namespace with only the loopback interface, where TCP acknowledges at
 * once: waiting for delayed acknowledgments would take 40 ms each time.
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

/* Bytes that AF_SOVIA has moved within this namespace, which is gone when the child ends. */
static long bytes_over_loop(void)
{
	FILE *file = fopen("/proc/thread-self/net/sovia/stat", "re");
	char line[256];
	long bytes = 0;

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "loop_tx_bytes %ld", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

/* The call and the property that differs, without the numbers of the sockets. */
static void kind_text(const struct sequence *s, char *kind)
{
	char text[4 * TEXT];
	const char *from = text;
	int i = 0;

	difference_text(s, text, sizeof(text));
	for (; *from && i < TEXT - 1; from++)
		if (from == text || !isdigit(*from) || from[-1] != 's')
			kind[i++] = *from;
	kind[i] = 0;
}

/* Has this kind of difference been shown? */
static bool is_known(const struct sequence *s)
{
	char text[TEXT];
	bool known;
	int i;

	kind_text(s, text);
	pthread_mutex_lock(&shared->lock);
	for (i = 0; i < shared->kinds && strcmp(shared->kind[i], text); i++)
		;
	known = i < shared->kinds;
	if (!known && i < KINDS) {
		strcpy(shared->kind[i], text);
		shared->kinds++;
	}
	if (i < KINDS)
		shared->kind_count[i]++;
	pthread_mutex_unlock(&shared->lock);
	return known;
}

static bool same_kind(const struct sequence *one, const struct sequence *other)
{
	char texts[2][TEXT];

	kind_text(one, texts[0]);
	kind_text(other, texts[1]);
	return !strcmp(texts[0], texts[1]);
}

static void tell(struct sequence *s, long number)
{
	struct sequence first = *s;
	int repeated;

	if (is_known(s))
		return;
	repeated = shrink(s, next_port);
	if (!repeated)
		*s = first;
	/* The shrunk sequence may be of a known kind, although this one was not. */
	if (repeated == 5 && !same_kind(s, &first) && is_known(s))
		return;
	if (repeated < 5)
		shared->unstable++;
	else
		shared->differences++;
	pthread_mutex_lock(&shared->lock);
	printf("# %s: --seed %llu --first %ld, IPv%d, repeats %d of 5\n",
	       repeated < 5 ? "unstable" : "difference", (unsigned long long)set.seed, number,
	       set.family, repeated);
	print_sequence(s, stdout);
	printf("#\n");
	fflush(stdout);
	pthread_mutex_unlock(&shared->lock);
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
	struct sequence *s = &job->current;

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
		job->number = atomic_fetch_add(&shared->next, 1);
		if (job->number >= set.first + set.runs)
			break;
		one_sequence(job->number);
		shared->done++;
	}
	if (set.network)
		shared->loop_bytes += bytes_over_loop();
	fflush(stdout);
	_exit(0);
}

static void start_job(struct job *j, double end)
{
	pid_t pid;

	fflush(stdout);
	j->moved = now();
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		job = j;
		child(end);
	}
	j->pid = pid;
}

static bool bad_end(const struct job *j, const char *how, int status)
{
	printf("# %s %x: --seed %llu --first %ld\n", how, status, (unsigned long long)set.seed, j->number);
	print_sequence(&j->current, stdout);
	return false;
}

/* Has the child ended?  @ok becomes false if it hangs or crashes. */
static bool job_ended(struct job *j, bool *ok)
{
	int status;

	if (waitpid(j->pid, &status, WNOHANG)) {
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			*ok = bad_end(j, "status", status);
		return true;
	}
	if (j->turns != j->seen) {
		j->seen = j->turns;
		j->moved = now();
	}
	if (now() - j->moved < HANG_SECONDS)
		return false;
	*ok = bad_end(j, "no end", 0);
	return true;
}

/* True if all children ran to completion. */
static bool run_jobs(double end)
{
	bool ok = true, any;
	int i;

	do {
		any = false;
		for (i = 0; i < set.jobs && ok; i++) {
			struct job *j = &shared->jobs[i];

			if (j->pid && job_ended(j, &ok))
				j->pid = 0;
			if (!j->pid && ok && !time_is_up(end))
				start_job(j, end);
			any |= j->pid;
		}
		millisecond(20);
	} while (any && ok);
	return ok;
}

static void summary(bool ended, double seconds)
{
	long made = shared->done;
	int i;

	for (i = 0; i < OP_COUNT; i++)
		if (shared->made[i])
			printf("# %9ld %-12s %ld succeeded\n", shared->made[i], op_name(i), shared->good[i]);
	for (i = 0; i < shared->kinds; i++)
		printf("# %9d times: %s\n", shared->kind_count[i], shared->kind[i]);
	for (i = 0; i < rules_count(); i++)
		if (shared->rule[i])
			printf("# %9ld times listed: %s\n", shared->rule[i], rule_name(i));
	printf("# loop_tx_bytes %ld\n", shared->loop_bytes);
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
		{ "jobs", 1, 0, 'j' }, { "verbose", 0, 0, 'v' }, { 0, 0, 0, 0 }
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
		case 'j': set.jobs = atoi(optarg); break;
		case 'P': set.plant = true; break;
		case 'v': set.verbose = true; break;
		default: exit(2);
		}
	if (set.listed)
		rules_read(set.listed);
	if (set.jobs < 1 || set.jobs > JOBS)
		exit(2);
}

int main(int argc, char **argv)
{
	pthread_mutexattr_t between;
	double begin = now();
	bool ended;

	parse(argc, argv);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		die("mmap");
	pthread_mutexattr_init(&between);
	pthread_mutexattr_setpshared(&between, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared->lock, &between);
	shared->next = set.first;
	ended = run_jobs(begin + set.seconds);
	summary(ended, now() - begin);
	/* Remaining children end with their parent. */
	return !ended || shared->differences || shared->unstable;
}

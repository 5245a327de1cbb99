// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia-run --cgroup: a BPF program changes the protocol of the TCP sockets that the processes of
 * a control group open.
 *
 * The kernel (6.6 and later) asks update_socket_protocol() for the protocol in socket(2), and BPF
 * may answer in its place.  The program is attached as long as this process lives.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <linux/sovia.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>
#include "run_cgroup.h"

#define HOOK	"update_socket_protocol"

/* SOCK_TYPE_MASK of the kernel: the rest of socket()'s type are flags. */
#define TYPE_MASK 0xf

/*
 * A group of processes, and the program that its socket() calls meet.
 * map: the array that tells the program which group
 * prog: the program
 * dir: of the control group
 * events: its cgroup.events, readable when that changes
 */
struct group {
	int map;
	int prog;
	int dir;
	int events;
	char path[PATH_MAX];
};

static bool failed(const char *what, const char *object)
{
	fprintf(stderr, "sovia-run: --cgroup: cannot %s %s: %s%s\n", what, object, strerror(errno),
		(errno == EPERM || errno == EACCES) && geteuid() != 0 ? " (run it as root)" : "");
	return false;
}

/* What the kernel's verifier says of a program that it refuses, for libbpf to ask for then. */
static char verdict[65536];

/*
 * The program for int update_socket_protocol(int family, int type, int protocol): 0 leaves the
 * answer to the kernel.  Offsets of jumps count from the next instruction, and LD_IMM64 is two.
 */
static int load_program(int map, int hook)
{
	const struct bpf_insn program[] = {
		/*  0: r2 = family; if IPv4 or IPv6 */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 1, .off = 0 },
		{ .code = BPF_JMP32 | BPF_JEQ | BPF_K, .dst_reg = 2, .imm = AF_INET, .off = 1 },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = 2, .imm = AF_INET6, .off = 13 },
		/*  3: r2 = type without its flags; if SOCK_STREAM */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 1, .off = 8 },
		{ .code = BPF_ALU | BPF_AND | BPF_K, .dst_reg = 2, .imm = TYPE_MASK },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = 2, .imm = SOCK_STREAM, .off = 10 },
		/*  6: r2 = protocol; if 0 or TCP */
		{ .code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 2, .src_reg = 1, .off = 16 },
		{ .code = BPF_JMP32 | BPF_JEQ | BPF_K, .dst_reg = 2, .imm = 0, .off = 1 },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = 2, .imm = IPPROTO_TCP, .off = 7 },
		/*  9: if in the group of map[0], or below it: 1, else 0 or a negative errno */
		{ .code = BPF_LD | BPF_IMM | BPF_DW, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 0 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_current_task_under_cgroup },
		{ .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = 0, .imm = 1, .off = 2 },
		/* 14: return SOVIAPROTO_INET */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = SOVIAPROTO_INET },
		{ .code = BPF_JMP | BPF_EXIT },
		/* 16: return 0 */
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = BPF_MODIFY_RETURN,
		    .attach_btf_id = hook, .log_buf = verdict, .log_size = sizeof(verdict));

	return bpf_prog_load(BPF_PROG_TYPE_TRACING, "sovia_run", "Dual BSD/GPL", program,
			     sizeof(program) / sizeof(program[0]), &options);
}

static bool prepare_program(struct group *group)
{
	int hook = libbpf_find_vmlinux_btf_id(HOOK, BPF_MODIFY_RETURN);

	if (hook <= 0) {
		fputs("sovia-run: --cgroup: this kernel does not let BPF choose a socket's protocol"
		      " (needs Linux 6.6, and its BTF)\n", stderr);
		return false;
	}
	group->map = bpf_map_create(BPF_MAP_TYPE_CGROUP_ARRAY, "sovia_run", sizeof(__u32),
				    sizeof(__u32), 1, NULL);
	if (group->map < 0)
		return failed("make", "a BPF map");
	group->prog = load_program(group->map, hook);
	if (group->prog >= 0)
		return true;
	failed("load", "the BPF program");
	fputs(verdict, stderr);
	return false;
}

static bool is_cgroup2(const char *path)
{
	struct statfs found;

	return statfs(path, &found) == 0 && found.f_type == CGROUP2_SUPER_MAGIC;
}

/* Where the control group goes: below the one that this process is in. */
static bool find_place(struct group *group)
{
	const char *root = "/sys/fs/cgroup";
	FILE *f = fopen("/proc/self/cgroup", "re");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	/* systemd's hybrid layout */
	if (!is_cgroup2(root))
		root = "/sys/fs/cgroup/unified";
	while (f && !found && getline(&line, &size, f) > 0) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = '\0';
		found = is_cgroup2(root) &&
			snprintf(group->path, PATH_MAX, "%s%s/sovia-run-%d", root,
				 line[4] ? line + 3 : "", getpid()) < PATH_MAX;
	}
	free(line);
	if (f)
		fclose(f);
	if (!found)
		fputs("sovia-run: --cgroup: cgroup2 is not mounted at /sys/fs/cgroup\n", stderr);
	return found;
}

static bool make_group(struct group *group)
{
	if (!find_place(group))
		return false;
	/* Left by a process with this number that was killed. */
	rmdir(group->path);
	if (mkdir(group->path, 0755) < 0)
		return failed("make", group->path);
	return true;
}

static bool open_group(struct group *group)
{
	group->dir = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (group->dir < 0)
		return failed("open", group->path);
	group->events = openat(group->dir, "cgroup.events", O_RDONLY | O_CLOEXEC);
	return group->events >= 0 || failed("open cgroup.events of", group->path);
}

/* From here on, until this process ends. */
static bool attach(const struct group *group)
{
	__u32 index = 0;

	if (bpf_map_update_elem(group->map, &index, &group->dir, BPF_ANY) < 0)
		return failed("enter in the BPF map", group->path);
	return bpf_link_create(group->prog, 0, BPF_MODIFY_RETURN, NULL) >= 0 ||
	       failed("attach the BPF program to", HOOK);
}

static bool populated(struct group *group)
{
	char text[256] = "";

	if (pread(group->events, text, sizeof(text) - 1, 0) > 0)
		return strstr(text, "populated 1");
	/* Another process has removed the group.  poll() leaves out what is negative. */
	group->events = -1;
	return false;
}

static void signal_all(const struct group *group, int number)
{
	int fd = openat(group->dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		if (pid > 0)
			kill(pid, number);
	if (f)
		fclose(f);
}

/* Runs in the child. */
static int join_and_exec(const struct group *group, const sigset_t *mask, char **argv)
{
	int fd = openat(group->dir, "cgroup.procs", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "0", 1) != 1) {
		failed("join", group->path);
		return EXIT_OURS;
	}
	sigprocmask(SIG_SETMASK, mask, NULL);
	return exec_program(argv);
}

/*
 * Until PROGRAM has ended and the group is empty: daemons of PROGRAM may go on.  Signals are for
 * PROGRAM, and for the rest of the group when that has ended.
 */
static int wait_for_end(struct group *group, pid_t program, int signals)
{
	struct pollfd wait[] = {
		{ .fd = signals, .events = POLLIN },
		{ .events = POLLPRI },
	};
	struct signalfd_siginfo info;
	int status = 0;

	/* populated() first: to read the events is what makes poll() wait for the next one. */
	while (populated(group) || program) {
		wait[1].fd = group->events;
		poll(wait, 2, -1);
		if (!(wait[0].revents & POLLIN) || read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo == SIGCHLD) {
			if (program && waitpid(program, &status, WNOHANG) == program)
				program = 0;
		} else if (!program) {
			signal_all(group, info.ssi_signo);
		} else if (info.ssi_code != SI_KERNEL) {
			/* What a terminal sends has reached PROGRAM as well. */
			kill(program, info.ssi_signo);
		}
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_program(struct group *group, char **argv)
{
	static const int passed_on[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2 };
	sigset_t set, old;
	int signals;
	pid_t pid;

	/* Inherited as ignored, it would hide how PROGRAM ends. */
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &old);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	pid = signals < 0 ? -1 : fork();
	if (pid < 0) {
		failed("start", argv[0]);
		return EXIT_OURS;
	}
	if (pid == 0)
		_exit(join_and_exec(group, &old, argv));
	return wait_for_end(group, pid, signals);
}

int run_in_cgroup(char **argv)
{
	struct group group;
	int status = EXIT_OURS;

	libbpf_set_print(NULL);
	if (!prepare_program(&group) || !make_group(&group))
		return EXIT_OURS;
	if (open_group(&group) && attach(&group))
		status = run_program(&group, argv);
	if (rmdir(group.path) < 0)
		failed("remove", group.path);
	return status;
}

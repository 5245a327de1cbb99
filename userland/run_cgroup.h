/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef RUN_CGROUP_H
#define RUN_CGROUP_H

/* The same as those of env(1), nohup(1) and timeout(1). */
enum {
	EXIT_OURS = 125,	/* sovia-run itself failed */
	EXIT_NO_EXEC = 126,	/* PROGRAM exists and cannot be run */
	EXIT_NOT_FOUND = 127,	/* PROGRAM is not found */
};

/* Returns only if it fails: the exit status that says why. */
int exec_program(char **argv);

/* Runs it in a control group where programs that open TCP sockets get AF_SOVIA's.  Returns the exit status. */
int run_in_cgroup(char **argv);

#endif /* RUN_CGROUP_H */

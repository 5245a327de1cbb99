// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia-run [OPTION]... PROGRAM [ARGUMENT...]: runs a program with AF_SOVIA in place of TCP.
 *
 * If the module is loaded, passes variables to the program:
 *   LD_PRELOAD    our library first, then its previous value
 *   SOVIA_FAMILY  the number that the module registered, see its parameter "family"
 *   SOVIA_ONLY    1 with --only
 *   SOVIA_WAIT    the value of --wait
 * They are inherited, so that children and later exec()s are covered as well.
 *
 * With --cgroup the kernel replaces them, see run_cgroup.c.
 */
#include <errno.h>
#include <limits.h>
#include <linux/sovia.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "run_cgroup.h"

#ifndef SOVIA_LIBDIR
#define SOVIA_LIBDIR "/usr/local/lib"
#endif
#ifndef SOVIA_VERSION
#define SOVIA_VERSION "unknown"
#endif

#ifndef SOVIA_PRELOADDIR
#define SOVIA_PRELOADDIR SOVIA_LIBDIR
#endif

#define LIBRARY "libsovia-preload.so"
#define FAMILY_PARAMETER "/sys/module/sovia/parameters/family"

static const char usage[] =
	"Usage: sovia-run [OPTION]... PROGRAM [ARGUMENT...]\n"
	"Run PROGRAM with AF_SOVIA sockets (RDMA) in place of TCP sockets.\n"
	"\n"
	"  --only     no fallback to TCP: connect() fails where AF_SOVIA does not connect,\n"
	"             and listeners take no TCP connections\n"
	"  --wait MS  milliseconds that a first connect() to a node may wait for RDMA\n"
	"             before it uses TCP\n"
	"  --cgroup   for static and setuid programs, too: in a control group, by BPF (Linux 6.6,\n"
	"             as root; not with --only and --wait)\n"
	"  --help     show this text\n"
	"  --version  show the version\n"
	"\n"
	"Exit status: PROGRAM's, or 125 if AF_SOVIA is not available,\n"
	"126 if PROGRAM cannot be run, 127 if it cannot be found.\n";

/* The family number of the loaded module, 0 if it is not loaded. */
static int loaded_family(void)
{
	FILE *f = fopen(FAMILY_PARAMETER, "re");
	int family = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%d", &family) != 1)
		family = 0;
	fclose(f);
	return family;
}

static bool opens(int family, int protocol)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* A filter of families may hide it: the library has another name for the same socket then. */
static bool family_works(int family)
{
	int error;

	if (opens(family, SOVIAPROTO_V4))
		return true;
	error = errno;
	if (error == EAFNOSUPPORT && opens(AF_INET, SOVIAPROTO_INET))
		return true;
	errno = error;
	return false;
}

/* A container without /sys still has a working family. */
static int find_family(void)
{
	int family = loaded_family();

	if (!family && family_works(SOVIA_FAMILY_DEFAULT))
		/* Opening it may have loaded the module, with another number by its parameter. */
		family = loaded_family() ?: SOVIA_FAMILY_DEFAULT;
	if (!family)
		family = loaded_family();
	if (!family) {
		fputs("sovia-run: the module sovia is not loaded (as root: systemctl start sovia, or modprobe sovia)\n",
		      stderr);
		return 0;
	}
	return family;
}

/* The module is loaded, but this process may not have the family: the library opens TCP sockets then. */
static bool check_family(int family)
{
	const bool only = getenv("SOVIA_ONLY");

	if (family_works(family))
		return true;
	fprintf(stderr, "sovia-run: cannot open a socket of family %d: %s%s\n", family,
		strerror(errno), only ? "" : "; TCP is used as long as that is so");
	return !only;
}

/* For LD_PRELOAD: the library beside this executable, else the installed one.  NULL if there is none. */
static const char *find_library(void)
{
	static const char beside[] = "/../lib/" LIBRARY;
	static char path[PATH_MAX];
	char self[PATH_MAX], joined[PATH_MAX + sizeof(beside)];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (n > 0) {
		self[n] = '\0';
		slash = strrchr(self, '/');
		if (slash) {
			*slash = '\0';
			snprintf(joined, sizeof(joined), "%s%s", self, beside);
			if (realpath(joined, path))
				return path;
		}
	}
	if (access(SOVIA_LIBDIR "/" LIBRARY, R_OK) == 0)
		return SOVIA_PRELOADDIR "/" LIBRARY;
	fputs("sovia-run: cannot find " SOVIA_LIBDIR "/" LIBRARY "\n", stderr);
	return NULL;
}

static bool set_preload(const char *library)
{
	const char *old = getenv("LD_PRELOAD");
	size_t len = strlen(library);
	char *value;
	bool ok;

	/* ld.so splits at both and knows no quoting. */
	if (strpbrk(library, ": ")) {
		fprintf(stderr, "sovia-run: LD_PRELOAD cannot hold the path \"%s\"\n", library);
		return false;
	}
	if (!old || !*old)
		return setenv("LD_PRELOAD", library, 1) == 0;
	/* sovia-run under sovia-run. */
	if (strncmp(old, library, len) == 0 && strchr(": ", old[len]))
		return true;
	if (asprintf(&value, "%s:%s", library, old) < 0)
		return false;
	ok = setenv("LD_PRELOAD", value, 1) == 0;
	free(value);
	return ok;
}

static bool is_wait(const char *word)
{
	size_t digits = word ? strspn(word, "0123456789") : 0;

	return digits > 0 && digits < 6 && !word[digits] && atoi(word) <= SOVIA_WAIT_MAX;
}

/* What the program's sockets are told: of an outer sovia-run, unless said otherwise. */
static void pass_on(const char *variable, const char *value)
{
	if (value && setenv(variable, value, 1) != 0) {
		fprintf(stderr, "sovia-run: %s\n", strerror(errno));
		exit(EXIT_OURS);
	}
}

static _Noreturn void wrong_usage(const char *why, const char *word)
{
	fprintf(stderr, "sovia-run: %s%s\n%s", why, word, usage);
	exit(EXIT_OURS);
}

/* Returns the index of PROGRAM.  --help and --version end the program. */
static int parse_options(int argc, char **argv, bool *cgroup)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (strcmp(argv[i], "--") == 0) {
			i++;
			break;
		}
		if (strcmp(argv[i], "--help") == 0)
			exit(fputs(usage, stdout) < 0);
		if (strcmp(argv[i], "--version") == 0)
			exit(puts("sovia-run " SOVIA_VERSION) < 0);
		if (strcmp(argv[i], "--only") == 0)
			pass_on("SOVIA_ONLY", "1");
		else if (strcmp(argv[i], "--wait") == 0 && is_wait(argv[i + 1]))
			pass_on("SOVIA_WAIT", argv[++i]);
		else if (strcmp(argv[i], "--cgroup") == 0)
			*cgroup = true;
		else if (strcmp(argv[i], "--wait") == 0)
			wrong_usage("--wait needs milliseconds", "");
		else
			wrong_usage("no such option: ", argv[i]);
	}
	if (i >= argc)
		wrong_usage("no program is named", "");
	return i;
}

/* What follows from --cgroup, but for the kernel's part. */
static bool can_use_cgroup(void)
{
	/* The library sets them, after socket(). */
	if (getenv("SOVIA_ONLY") || getenv("SOVIA_WAIT")) {
		fputs("sovia-run: --cgroup cannot be had with --only and --wait; rules can do the same"
		      " (sovia rule: only-sovia, wait)\n", stderr);
		return false;
	}
	if (!opens(AF_INET, SOVIAPROTO_INET)) {
		fprintf(stderr, "sovia-run: cannot open a socket of protocol %d: %s\n",
			SOVIAPROTO_INET, strerror(errno));
		return false;
	}
	return true;
}

int exec_program(char **argv)
{
	int err;

	execvp(argv[0], argv);
	err = errno;
	fprintf(stderr, "sovia-run: %s: %s\n", argv[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_NO_EXEC;
}

int main(int argc, char **argv)
{
	bool cgroup = false;
	const char *library;
	char number[16];
	int family, first = parse_options(argc, argv, &cgroup);

	family = find_family();
	if (!family)
		return EXIT_OURS;
	if (cgroup)
		return can_use_cgroup() ? run_in_cgroup(argv + first) : EXIT_OURS;
	library = check_family(family) ? find_library() : NULL;
	if (!library)
		return EXIT_OURS;
	snprintf(number, sizeof(number), "%d", family);
	if (!set_preload(library) || setenv("SOVIA_FAMILY", number, 1) != 0)
		return EXIT_OURS;
	return exec_program(argv + first);
}

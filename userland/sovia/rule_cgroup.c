// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Control groups (v2): their paths, and the numbers that the kernel knows them by. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>
#include "out.h"
#include "rule.h"

/* The kernel's type of a handle that is a number. */
#define FILEID_KERNFS 0xfe

union handle {
	struct file_handle	file;
	char			room[sizeof(struct file_handle) + sizeof(uint64_t)];
};

static bool is_cgroup2(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC;
}

/* The number of a path, or of a number.  Returns 0, or -1 with errno: ENOENT if there is no such path. */
int rule_cgroup_number(const char *path, uint64_t *number)
{
	union handle handle = { .file.handle_bytes = sizeof(*number) };
	char *end;
	int mount;

	if (*path != '/') {
		*number = strtoull(path, &end, 10);
		errno = EINVAL;
		return *number && !*end ? 0 : -1;
	}
	errno = 0;
	if (!is_cgroup2(path) || name_to_handle_at(AT_FDCWD, path, &handle.file, &mount, 0) < 0 ||
	    handle.file.handle_bytes != sizeof(*number)) {
		errno = errno ?: EINVAL;
		return -1;
	}
	memcpy(number, handle.file.f_handle, sizeof(*number));
	return 0;
}

/* Where control groups are mounted, or -1. */
static int open_mount(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *entry;
	int fd = -1;

	while (fd < 0 && mounts && (entry = getmntent(mounts)))
		if (strcmp(entry->mnt_type, "cgroup2") == 0)
			fd = open(entry->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mounts)
		endmntent(mounts);
	return fd;
}

/* Opens the group; only root may. */
static int open_number(uint64_t number)
{
	union handle handle = {
		.file.handle_bytes = sizeof(number),
		.file.handle_type = FILEID_KERNFS,
	};
	int fd, mount = open_mount();

	if (mount < 0)
		return -1;
	memcpy(handle.file.f_handle, &number, sizeof(number));
	fd = open_by_handle_at(mount, &handle.file, O_PATH | O_CLOEXEC);
	close(mount);
	return fd;
}

/* Can the path be read as a word, and shown on a terminal?  That of a removed group ends with a space and more. */
static bool is_word(const char *path)
{
	for (; *path; path++)
		if (!isgraph((unsigned char)*path) || *path == '#')
			return false;
	return true;
}

/* Shows the path, or the number if that is not known or not a word. */
void rule_cgroup_show(uint64_t number)
{
	char link[64], path[4096] = "";
	int fd = open_number(number);
	ssize_t len = -1;

	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, path, sizeof(path) - 1);
		close(fd);
	}
	if (len > 0 && is_word(path))
		out_string("cgroup", "cgroup %s ", path);
	else
		out_number("cgroup", "cgroup %" PRIu64 " ", number);
}

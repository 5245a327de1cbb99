// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Named network namespaces, as ip-netns(8) makes them. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "netns.h"
#include "sovia.h"

static bool entered;

/*
 * /sys shows the devices of the namespace that it was mounted in: it is mounted again, for this
 * process alone.  Control groups are not seen any more then.  Returns 0 or -1 with a message.
 */
int netns_mount_sys(void)
{
	if (!entered)
		return 0;
	if (unshare(CLONE_NEWNS) || mount("", "/", "none", MS_SLAVE | MS_REC, NULL)) {
		complain("/sys: %s", strerror(errno));
		return -1;
	}
	umount2("/sys", MNT_DETACH);
	if (!mount("sysfs", "/sys", "sysfs", MS_RDONLY, NULL))
		return 0;
	complain("/sys: %s", strerror(errno));
	return -1;
}

/* Works in the namespace @name from now on.  Returns 0 or -1 with a message. */
int netns_enter(const char *name)
{
	char path[4096];
	int fd, err;

	snprintf(path, sizeof(path), strchr(name, '/') ? "%s" : "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd < 0 || setns(fd, CLONE_NEWNET) ? -1 : 0;
	if (err)
		complain("network namespace %s: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	entered = !err;
	return err;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The processes that have a socket, as ss(8) shows them. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "out.h"
#include "socket.h"

/*
 * @inode: of a socket
 * @pid, @fd: who has it
 * @name: of the process
 */
struct holder {
	uint64_t	inode;
	int		pid;
	int		fd;
	char		name[16];
};

static struct holder *holders;
static size_t count;

static void add_holder(const struct holder *holder)
{
	if (!(count & (count - 1)))
		holders = realloc(holders, (count ? 2 * count : 1) * sizeof(*holders));
	if (!holders)
		abort();
	holders[count++] = *holder;
}

static void read_name(struct holder *holder)
{
	char path[64], *at;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", holder->pid);
	file = fopen(path, "re");
	holder->name[0] = '\0';
	if (file && fgets(holder->name, sizeof(holder->name), file))
		holder->name[strcspn(holder->name, "\n")] = '\0';
	if (file)
		fclose(file);
	/* It is the process's to choose, and goes to a terminal. */
	for (at = holder->name; *at; at++)
		if (!isprint((unsigned char)*at))
			*at = '?';
}

static void scan_process(int pid)
{
	struct holder holder = { .pid = pid };
	char path[64], target[64];
	struct dirent *entry;
	ssize_t len;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	folder = opendir(path);
	while (folder && (entry = readdir(folder))) {
		len = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (sscanf(target, "socket:[%" SCNu64 "]", &holder.inode) != 1)
			continue;
		holder.fd = atoi(entry->d_name);
		if (!holder.name[0])
			read_name(&holder);
		add_holder(&holder);
	}
	if (folder)
		closedir(folder);
}

static int compare(const void *a, const void *b)
{
	const struct holder *first = a, *second = b;

	if (first->inode != second->inode)
		return first->inode < second->inode ? -1 : 1;
	if (first->pid != second->pid)
		return first->pid - second->pid;
	return first->fd - second->fd;
}

static void scan(void)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;

	while (folder && (entry = readdir(folder)))
		if (isdigit((unsigned char)entry->d_name[0]))
			scan_process(atoi(entry->d_name));
	if (folder)
		closedir(folder);
	qsort(holders, count, sizeof(*holders), compare);
}

static size_t first_of(uint64_t inode)
{
	size_t low = 0, high = count, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (holders[middle].inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Shows who has it, as far as the reader may know. */
void process_show(uint64_t inode)
{
	static bool scanned;
	size_t i, first;

	if (!inode)
		return;
	if (!scanned)
		scan();
	scanned = true;
	first = first_of(inode);
	if (first == count || holders[first].inode != inode)
		return;
	out_text(" users:(");
	out_list_begin("users");
	for (i = first; i < count && holders[i].inode == inode; i++) {
		out_nest_begin();
		out_text(i > first ? "," : "");
		out_string("name", "(\"%s\"", holders[i].name);
		out_number("pid", ",pid=%" PRIu64, holders[i].pid);
		out_number("fd", ",fd=%" PRIu64 ")", holders[i].fd);
		out_nest_end();
	}
	out_list_end();
	out_text(")");
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sovia key load: the keys of a folder, at boot.
 *
 * A key that is not loaded leaves its addresses open: a file that is wrong is an error, whatever
 * is wrong with it, and the others are loaded nevertheless.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "key.h"
#include "sovia.h"

#define FOLDER "/etc/sovia/keys.d"

#define SPACE " \t\r\n"

/* Prefixes that one file may have. */
#define PEERS_MAX 64

/*
 * A file.
 *
 * @folder, @id: its path; @id is the number of the key as well
 * @line: that is read, from 1
 * @peers, @owns: prefixes, an own one may be NULL
 * @count: how many
 * @secret: the bytes of the key
 * @len: how many, 0 before they are read
 */
struct key_file {
	const char	*folder;
	const char	*id;
	unsigned int	line;
	char		*peers[PEERS_MAX];
	char		*owns[PEERS_MAX];
	unsigned int	count;
	unsigned char	secret[KEY_READ_MAX];
	size_t		len;
};

static int wrong(const struct key_file *file, const char *text)
{
	if (file->line)
		complain("%s/%s:%u: %s", file->folder, file->id, file->line, text);
	else
		complain("%s/%s: %s", file->folder, file->id, text);
	return -1;
}

static int digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10;
}

static int take_secret(struct key_file *file, const char *hex)
{
	size_t i, digits = hex ? strlen(hex) : 0;

	if (file->len)
		return wrong(file, "a second key");
	if (!digits || digits % 2 || digits / 2 >= KEY_READ_MAX || hex[strspn(hex, "0123456789abcdefABCDEF")])
		return wrong(file, "not 64 to 128 hexadecimal digits");
	for (i = 0; i < digits / 2; i++)
		file->secret[i] = digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]);
	file->len = digits / 2;
	return 0;
}

static int take_peer(struct key_file *file, const char *peer, const char *keyword, const char *own)
{
	if (!peer || (keyword && (strcmp(keyword, "own") != 0 || !own)))
		return wrong(file, "not: peer PREFIX [own PREFIX]");
	if (file->count >= PEERS_MAX)
		return wrong(file, "too many prefixes for one key");
	file->peers[file->count] = strdup(peer);
	file->owns[file->count] = own ? strdup(own) : NULL;
	if (!file->peers[file->count] || (own && !file->owns[file->count]))
		return wrong(file, strerror(ENOMEM));
	file->count++;
	return 0;
}

/* The words are pieces of the line, which is wiped with them. */
static int take_line(struct key_file *file, char *text)
{
	char *words[5] = {}, *rest = NULL;
	const char *keyword;
	unsigned int i;

	text[strcspn(text, "#")] = '\0';
	for (i = 0; i < 5; i++) {
		words[i] = strtok_r(i ? NULL : text, SPACE, &rest);
		if (!words[i])
			break;
	}
	keyword = words[0];
	if (!keyword)
		return 0;
	if (strcmp(keyword, "key") == 0 && !words[2])
		return take_secret(file, words[1]);
	if (strcmp(keyword, "peer") == 0 && !words[4])
		return take_peer(file, words[1], words[2], words[3]);
	return wrong(file, "neither: key HEX, nor: peer PREFIX [own PREFIX]");
}

static int read_lines(struct key_file *file, FILE *stream)
{
	char text[512];
	int ret = 0;

	while (ret == 0 && fgets(text, sizeof(text), stream)) {
		file->line++;
		ret = strchr(text, '\n') || feof(stream) ? take_line(file, text) : wrong(file, "too long");
	}
	explicit_bzero(text, sizeof(text));
	file->line = 0;
	if (ret == 0 && ferror(stream))
		return wrong(file, strerror(errno));
	if (ret == 0 && (!file->len || !file->count))
		return wrong(file, file->len ? "no peer" : "no key");
	return ret;
}

/* Those that there are stay: the kernel does not say whether their bytes are these. */
static int add_all(const struct key_file *file)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; i < file->count; i++)
		if (key_add(file->id, file->peers[i], file->owns[i], file->secret, file->len) &&
		    errno != EEXIST)
			ret = wrong(file, key_why_not(errno));
	return ret;
}

/* It is root's secret. */
static int check_mode(const struct key_file *file, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return wrong(file, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return wrong(file, "not a file");
	if (st.st_mode & 077)
		return wrong(file, "others may use it: chmod 600");
	return 0;
}

static int load_file(struct key_file *file, int folder)
{
	FILE *stream = NULL;
	int ret, fd;

	if (file->id[strspn(file->id, "0123456789abcdefABCDEF")])
		return wrong(file, "its name is not the number of a key");
	fd = openat(folder, file->id, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && check_mode(file, fd) == 0)
		stream = fdopen(fd, "r");
	else if (fd < 0)
		return wrong(file, strerror(errno));
	if (!stream) {
		close(fd);
		return -1;
	}
	/* Its buffer would keep the key. */
	setvbuf(stream, NULL, _IONBF, 0);
	ret = read_lines(file, stream);
	fclose(stream);
	return ret ?: add_all(file);
}

static int load_entry(const char *folder, int fd, const char *id)
{
	struct key_file file = { .folder = folder, .id = id };
	int ret = load_file(&file, fd);

	explicit_bzero(file.secret, sizeof(file.secret));
	while (file.count--) {
		free(file.peers[file.count]);
		free(file.owns[file.count]);
	}
	return ret;
}

static int is_key(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Returns the exit status. */
int key_load(int argc, char **argv)
{
	const char *folder = argc ? argv[0] : FOLDER;
	struct dirent **entries;
	int i, count, status = 0, fd;

	if (argc > 1)
		return usage(key_help);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : complain("%s: %s", folder, strerror(errno));
	count = scandirat(fd, ".", &entries, is_key, alphasort);
	if (count < 0)
		status = complain("%s: %s", folder, strerror(errno));
	for (i = 0; i < count; i++) {
		if (load_entry(folder, fd, entries[i]->d_name))
			status = EXIT_FAILED;
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	close(fd);
	return status;
}

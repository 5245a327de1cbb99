// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads a list of rules:
 *
 *	[in | out] [KEYWORD VALUE]... ACTION	# comment
 *
 * What is wrong is reported as FILE:LINE:COLUMN, whether this or the kernel finds it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <linux/sovia.h>
#include <net/if.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "rule.h"

#define SPACE " \t"

/*
 * A line that is read.
 *
 * @list: what it goes to
 * @text: the line; words are terminated one after the other
 * @next: where the next word begins
 * @number: from 1
 * @column: of the word that was read last, from 1
 * @seen: bits: attributes that it has
 * @skip: it is left out
 */
struct line {
	struct rule_list	*list;
	char			*text;
	char			*next;
	unsigned int		number;
	unsigned int		column;
	uint64_t		seen;
	bool			skip;
};

static int complain(const struct line *line, const char *text)
{
	fprintf(stderr, "sovia: %s:%u:%u: %s\n", line->list->name, line->number, line->column, text);
	return -1;
}

/* For the attribute at @offset of the request, or the one that it is in. */
void rule_complain(const struct rule_list *list, size_t offset, const char *text)
{
	const struct rule_place *place = NULL;
	size_t i;

	for (i = 0; i < list->count && list->places[i].offset <= offset; i++)
		place = &list->places[i];
	if (place)
		fprintf(stderr, "sovia: %s:%u:%u: %s\n", list->name, place->line, place->column, text);
	else
		fprintf(stderr, "sovia: %s: %s\n", list->name, text);
}

/* The next word, or NULL at the end of the line. */
static char *next_word(struct line *line)
{
	char *word = line->next + strspn(line->next, SPACE);
	size_t len = strcspn(word, SPACE "#");

	line->column = word - line->text + 1;
	if (len == 0)
		return NULL;
	line->next = word + len;
	if (*line->next == '#')
		line->next[1] = '\0';
	if (*line->next)
		*line->next++ = '\0';
	return word;
}

/* Notes where the attribute that is put next comes from. */
static int note_place(struct line *line)
{
	struct rule_list *list = line->list;
	struct rule_place *places = list->places;

	/* At 1, 2, 4, 8, ... */
	if ((list->count & (list->count - 1)) == 0) {
		places = realloc(places, (list->count ? 2 * list->count : 1) * sizeof(*places));
		if (!places)
			return complain(line, strerror(ENOMEM));
		list->places = places;
	}
	places[list->count++] = (struct rule_place){
		.offset = list->nlh->nlmsg_len,
		.line = line->number,
		.column = line->column,
	};
	return 0;
}

static int put(struct line *line, uint16_t type, size_t len, const void *data)
{
	struct rule_list *list = line->list;

	if (line->seen & 1ULL << type)
		return complain(line, "this is said twice");
	line->seen |= 1ULL << type;
	if (note_place(line) < 0)
		return -1;
	if (!mnl_attr_put_check(list->nlh, list->size, type, len, data))
		return complain(line, "too many rules");
	return 0;
}

static int put_u8(struct line *line, uint16_t type, uint8_t value)
{
	return put(line, type, sizeof(value), &value);
}

/* Reads a number, up to @max, that ends at @end. */
static bool read_number(const char *word, const char *end, uint64_t max, uint64_t *value)
{
	char *stop;

	if (*word < '0' || *word > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &stop, 10);
	return errno == 0 && stop == end && *value <= max;
}

/* N or N-M */
static bool read_range(const char *word, uint64_t max, uint64_t *first, uint64_t *last)
{
	const char *end = word + strlen(word), *dash = strchr(word, '-');

	if (!dash) {
		if (!read_number(word, end, max, first))
			return false;
		*last = *first;
		return true;
	}
	return read_number(word, dash, max, first) && read_number(dash + 1, end, max, last);
}

static int put_ports(struct line *line, const char *word)
{
	uint64_t first, last;
	uint16_t port;

	if (!read_range(word, UINT16_MAX, &first, &last))
		return complain(line, "not a port, or a range of ports");
	port = first;
	if (put(line, SOVIA_A_RULE_PORT_MIN, sizeof(port), &port) < 0)
		return -1;
	port = last;
	return put(line, SOVIA_A_RULE_PORT_MAX, sizeof(port), &port);
}

/* Users or groups. */
static int put_ids(struct line *line, uint16_t type, uint64_t first, uint64_t last)
{
	uint32_t id = first;

	if (put(line, type, sizeof(id), &id) < 0)
		return -1;
	id = last;
	return put(line, type + 1, sizeof(id), &id);
}

static int put_users(struct line *line, const char *word)
{
	const struct passwd *user;
	uint64_t first, last;

	if (read_range(word, UINT32_MAX - 1, &first, &last))
		return put_ids(line, SOVIA_A_RULE_UID_MIN, first, last);
	user = getpwnam(word);
	if (!user)
		return complain(line, "not a user, or a range of numbers");
	return put_ids(line, SOVIA_A_RULE_UID_MIN, user->pw_uid, user->pw_uid);
}

static int put_groups(struct line *line, const char *word)
{
	const struct group *group;
	uint64_t first, last;

	if (read_range(word, UINT32_MAX - 1, &first, &last))
		return put_ids(line, SOVIA_A_RULE_GID_MIN, first, last);
	group = getgrnam(word);
	if (!group)
		return complain(line, "not a group, or a range of numbers");
	return put_ids(line, SOVIA_A_RULE_GID_MIN, group->gr_gid, group->gr_gid);
}

/* ADDRESS or ADDRESS/LENGTH */
static int put_peer(struct line *line, char *word)
{
	struct in6_addr addr = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
	char *slash = strchr(word, '/');
	uint64_t length;
	int bits;

	if (slash)
		*slash = '\0';
	bits = inet_pton(AF_INET, word, &addr.s6_addr[12]) == 1 ? 32 :
	       inet_pton(AF_INET6, word, &addr) == 1 ? 128 : 0;
	if (bits == 0)
		return complain(line, "not an address");
	length = bits;
	if (slash && !read_number(slash + 1, slash + 1 + strlen(slash + 1), bits, &length))
		return complain(line, "not the length of a prefix");
	if (put(line, SOVIA_A_RULE_PEER, sizeof(addr), &addr) < 0)
		return -1;
	return put_u8(line, SOVIA_A_RULE_PREFIX, length + 128 - bits);
}

static int put_cgroup(struct line *line, const char *word)
{
	uint64_t number;

	if (rule_cgroup_number(word, &number) < 0) {
		if (!line->list->lenient || errno != ENOENT)
			return complain(line, "not a control group (v2)");
		/* Nobody is in it: no connection would match. */
		complain(line, "there is no such control group yet: the rule is left out");
		line->skip = true;
		number = 1;
	}
	return put(line, SOVIA_A_RULE_CGROUP, sizeof(number), &number);
}

static int put_device(struct line *line, const char *word)
{
	if (strlen(word) >= IFNAMSIZ)
		return complain(line, "too long for the name of an interface");
	return put(line, SOVIA_A_RULE_DEVICE, strlen(word) + 1, word);
}

static int put_wait(struct line *line, const char *word)
{
	uint64_t value;
	uint32_t wait;

	if (!read_number(word, word + strlen(word), SOVIA_WAIT_MAX, &value))
		return complain(line, "not a number of milliseconds, up to a minute");
	wait = value;
	return put(line, SOVIA_A_RULE_WAIT, sizeof(wait), &wait);
}

static int put_tos(struct line *line, const char *word)
{
	uint64_t value;

	if (!read_number(word, word + strlen(word), UINT8_MAX, &value))
		return complain(line, "not a type of service, 0 to 255");
	return put_u8(line, SOVIA_A_RULE_TOS, value);
}

/* Words that need no value. */
static const struct {
	const char	*word;
	uint16_t	type;
	uint8_t		value;
} plain[] = {
	{ "in",		SOVIA_A_RULE_DIRECTIONS, SOVIA_RULE_IN },
	{ "out",	SOVIA_A_RULE_DIRECTIONS, SOVIA_RULE_OUT },
	{ "auto",	SOVIA_A_RULE_ACTION, SOVIA_AUTO },
	{ "only-sovia",	SOVIA_A_RULE_ACTION, SOVIA_ONLY_SOVIA },
	{ "only-tcp",	SOVIA_A_RULE_ACTION, SOVIA_ONLY_TCP },
	{ "deny",	SOVIA_A_RULE_ACTION, SOVIA_DENY },
};

static int put_value(struct line *line, const char *keyword, char *word)
{
	if (strcmp(keyword, "peer") == 0)
		return put_peer(line, word);
	if (strcmp(keyword, "port") == 0)
		return put_ports(line, word);
	if (strcmp(keyword, "uid") == 0)
		return put_users(line, word);
	if (strcmp(keyword, "gid") == 0)
		return put_groups(line, word);
	if (strcmp(keyword, "cgroup") == 0)
		return put_cgroup(line, word);
	if (strcmp(keyword, "dev") == 0)
		return put_device(line, word);
	if (strcmp(keyword, "tos") == 0)
		return put_tos(line, word);
	return put_wait(line, word);
}

static bool takes_value(const char *word)
{
	static const char * const keywords[] = {
		"peer", "port", "uid", "gid", "cgroup", "dev", "tos", "wait",
	};
	size_t i;

	for (i = 0; i < sizeof(keywords) / sizeof(*keywords); i++)
		if (strcmp(word, keywords[i]) == 0)
			return true;
	return false;
}

static int read_word(struct line *line, const char *word)
{
	char *value;
	size_t i;

	for (i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		if (strcmp(word, plain[i].word) == 0)
			return put_u8(line, plain[i].type, plain[i].value);
	if (!takes_value(word))
		return complain(line, "unknown word");
	value = next_word(line);
	if (!value)
		return complain(line, "a value is missing");
	return put_value(line, word, value);
}

static int read_line(struct line *line)
{
	const char *word = next_word(line);
	size_t count = line->list->count;
	struct nlattr *nest;

	if (!word)
		return 0;
	if (note_place(line) < 0)
		return -1;
	nest = mnl_attr_nest_start_check(line->list->nlh, line->list->size, SOVIA_A_RULE);
	if (!nest)
		return complain(line, "too many rules");
	for (; word; word = next_word(line))
		if (read_word(line, word) < 0)
			return -1;
	if (!(line->seen & 1ULL << SOVIA_A_RULE_ACTION))
		return complain(line, "auto, only-sovia, only-tcp or deny is missing");
	if (line->skip) {
		mnl_attr_nest_cancel(line->list->nlh, nest);
		line->list->count = count;
	} else {
		mnl_attr_nest_end(line->list->nlh, nest);
	}
	return 0;
}

/* Puts the rules of @file into the request.  Returns 0, or -1 after a message. */
int rule_read(struct rule_list *list, FILE *file)
{
	unsigned int number = 0;
	char *text = NULL;
	size_t size = 0;
	int ret = 0;

	while (ret == 0 && getline(&text, &size, file) >= 0) {
		struct line line = { .list = list, .text = text, .next = text, .number = ++number };

		text[strcspn(text, "\r\n")] = '\0';
		ret = read_line(&line);
	}
	if (ret == 0 && ferror(file)) {
		fprintf(stderr, "sovia: %s: %s\n", list->name, strerror(errno));
		ret = -1;
	}
	free(text);
	return ret;
}

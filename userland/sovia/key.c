// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia key show|add|load|delete|revoke */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/genetlink.h>
#include <linux/keyctl.h>
#include <linux/sovia.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "addr.h"
#include "attrs.h"
#include "key.h"
#include "netlink.h"
#include "out.h"
#include "sovia.h"

const char key_help[] =
	"Usage: sovia [-j] key [show]\n"
	"       sovia key add ID PREFIX [own PREFIX] FILE\n"
	"       sovia key load [FOLDER]\n"
	"       sovia key delete ID\n"
	"       sovia key revoke ID\n"
	"\n"
	"A key is 32 to 64 random bytes, the same in both nodes, and so is ID, up to 16 hexadecimal\n"
	"digits.  PREFIX says which peers need it, and from which own addresses.  FILE has the bytes;\n"
	"- is standard input.\n"
	"\n"
	"load is for the boot: it adds the keys of FOLDER (/etc/sovia/keys.d), if that exists, but those that\n"
	"there are.  A file there has the key's ID as its name, is readable by its owner alone, and has lines:\n"
	"\n"
	"  peer PREFIX [own PREFIX]    one or more\n"
	"  key HEX                     64 to 128 digits\n";

static const enum mnl_attr_data_type types[SOVIA_A_KEY_MAX + 1] = {
	[SOVIA_A_KEY_ID]		= MNL_TYPE_U64,
	[SOVIA_A_KEY_PREFIX]		= MNL_TYPE_U8,
	[SOVIA_A_KEY_OWN_PREFIX]	= MNL_TYPE_U8,
	[SOVIA_A_KEY_NUMBER]		= MNL_TYPE_U32,
	[SOVIA_A_KEY_ERROR]		= MNL_TYPE_U32,
};

static const struct attr_set set = ATTR_SET(types);

static const char *state_name(uint32_t error)
{
	switch (error) {
	case 0:
		return "valid";
	case EKEYREVOKED:
		return "revoked";
	case EKEYEXPIRED:
		return "expired";
	default:
		return "invalid";
	}
}

static int show_key(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_KEY_MAX + 1] = {};
	char text[ADDR_TEXT];

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	out_begin();
	out_hex("id", "%s", attr_number(a[SOVIA_A_KEY_ID]));
	out_string("peer", " %s", addr_prefix_text(a[SOVIA_A_KEY_PEER],
						   attr_number(a[SOVIA_A_KEY_PREFIX]), text));
	if (attr_number(a[SOVIA_A_KEY_OWN_PREFIX]))
		out_string("own", " own %s",
			   addr_prefix_text(a[SOVIA_A_KEY_OWN],
					    attr_number(a[SOVIA_A_KEY_OWN_PREFIX]), text));
	out_string("state", " %s", state_name(attr_number(a[SOVIA_A_KEY_ERROR])));
	out_number("number", "  # %" PRId64, attr_number(a[SOVIA_A_KEY_NUMBER]));
	out_end();
	return MNL_CB_OK;
}

static int show(int argc, char **argv)
{
	(void)argv;
	if (argc)
		return usage(key_help);
	return show_each(SOVIA_CMD_KEY_GET, SOVIA_A_KEY, show_key) ?: out_finish();
}

/* Forgets, or revokes, keys. */
static int end(uint8_t command, int argc, char **argv)
{
	struct nlmsghdr *nlh;
	struct nlattr *nest;
	struct netlink_error error;
	char buf[128], *rest;
	uint64_t id;

	if (argc != 1)
		return usage(key_help);
	errno = 0;
	id = strtoull(argv[0], &rest, 16);
	if (!id || *rest || errno)
		return complain("%s: not the number of a key", argv[0]);
	nlh = netlink_begin(buf, command, NLM_F_ACK);
	nest = mnl_attr_nest_start(nlh, SOVIA_A_KEY);
	mnl_attr_put_u64(nlh, SOVIA_A_KEY_ID, id);
	mnl_attr_nest_end(nlh, nest);
	if (netlink_request(nlh, NULL, NULL, &error) == 0)
		return 0;
	return complain("%s", error.text);
}

static int delete_key(int argc, char **argv)
{
	return end(SOVIA_CMD_KEY_DELETE, argc, argv);
}

static int revoke_key(int argc, char **argv)
{
	return end(SOVIA_CMD_KEY_REVOKE, argc, argv);
}

static ssize_t read_secret(const char *name, void *buf)
{
	size_t len = 0;
	ssize_t got;
	int fd = STDIN_FILENO;

	if (strcmp(name, "-") != 0)
		fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	do {
		got = read(fd, buf + len, KEY_READ_MAX - len);
		len += got > 0 ? got : 0;
	} while (got > 0 && len < KEY_READ_MAX);
	if (fd != STDIN_FILENO)
		close(fd);
	return got < 0 ? -1 : (ssize_t)len;
}

/* Why a key was not added. */
const char *key_why_not(int err)
{
	switch (err) {
	case EINVAL:
		return "a wrong number or prefix, or not 32 to 64 bytes";
	case EEXIST:
		return "there is such a key";
	case ENODEV:
	case ENOSYS:
		return "the module sovia is not loaded";
	default:
		return strerror(err);
	}
}

/*
 * Adds a key; @own may be NULL.  Returns 0, or -1 with errno.
 *
 * The user's keyring: a session's would not make it possible to revoke it in another one.
 */
int key_add(const char *id, const char *peer, const char *own, const void *secret, size_t len)
{
	char description[256];

	snprintf(description, sizeof(description), "%s:%s%s%s", id, peer, own ? "," : "",
		 own ? own : "");
	return syscall(SYS_add_key, "sovia", description, secret, len, KEY_SPEC_USER_KEYRING) < 0 ? -1 : 0;
}

static int add_key(const char *id, const char *peer, const char *own, const char *name)
{
	unsigned char secret[KEY_READ_MAX];
	ssize_t len;
	int err;

	if (strcmp(name, "-") == 0 && batch_no_input())
		return EXIT_FAILED;
	len = read_secret(name, secret);
	if (len < 0)
		return complain("%s: %s", name, strerror(errno));
	err = key_add(id, peer, own, secret, len) ? errno : 0;
	explicit_bzero(secret, sizeof(secret));
	return err ? complain("%s", key_why_not(err)) : 0;
}

static int add(int argc, char **argv)
{
	if (argc == 3)
		return add_key(argv[0], argv[1], NULL, argv[2]);
	if (argc == 5 && strcmp(argv[2], "own") == 0)
		return add_key(argv[0], argv[1], argv[3], argv[4]);
	return usage(key_help);
}

int key_main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "show", show }, { "list", show }, { "add", add }, { "load", key_load },
		{ "delete", delete_key }, { "revoke", revoke_key }, {}
	};

	return run_command(commands, key_help, argc, argv);
}

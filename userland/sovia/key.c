// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* sovia key show|add|delete|revoke */
#include <arpa/inet.h>
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
#include "netlink.h"
#include "sovia.h"

/* One more than the kernel takes, so that it refuses what is too long. */
#define KEY_READ_MAX 65

static const enum mnl_attr_data_type types[SOVIA_A_KEY_COUNT] = {
	[SOVIA_A_KEY_ID]		= MNL_TYPE_U64,
	[SOVIA_A_KEY_PREFIX]		= MNL_TYPE_U8,
	[SOVIA_A_KEY_OWN_PREFIX]	= MNL_TYPE_U8,
	[SOVIA_A_KEY_NUMBER]		= MNL_TYPE_U32,
	[SOVIA_A_KEY_ERROR]		= MNL_TYPE_U32,
};

static int take_attribute(const struct nlattr *attr, void *data)
{
	const struct nlattr **attrs = data;
	unsigned int type = mnl_attr_get_type(attr);

	if (type >= SOVIA_A_KEY_COUNT)
		return MNL_CB_OK;
	if (types[type] && mnl_attr_validate(attr, types[type]) < 0)
		return MNL_CB_ERROR;
	attrs[type] = attr;
	return MNL_CB_OK;
}

static void show_prefix(const char *before, const struct nlattr *address, unsigned int prefix)
{
	char text[INET6_ADDRSTRLEN] = "?";
	struct in6_addr addr;

	if (mnl_attr_get_payload_len(address) != sizeof(addr))
		return;
	addr = *(const struct in6_addr *)mnl_attr_get_payload(address);
	if (IN6_IS_ADDR_V4MAPPED(&addr) && prefix >= 96) {
		inet_ntop(AF_INET, &addr.s6_addr[12], text, sizeof(text));
		prefix -= 96;
	} else {
		inet_ntop(AF_INET6, &addr, text, sizeof(text));
	}
	printf("%s%s/%u", before, text, prefix);
}

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

static int show_key(const struct nlattr *attr, void *data)
{
	const struct nlattr *a[SOVIA_A_KEY_COUNT] = {};
	int type;

	(void)data;
	if (mnl_attr_get_type(attr) != SOVIA_A_KEY)
		return MNL_CB_OK;
	if (mnl_attr_parse_nested(attr, take_attribute, a) < 0)
		return MNL_CB_ERROR;
	for (type = SOVIA_A_KEY_ID; type <= SOVIA_A_KEY_ERROR; type++)
		if (!a[type])
			return MNL_CB_ERROR;
	printf("%" PRIx64, mnl_attr_get_u64(a[SOVIA_A_KEY_ID]));
	show_prefix(" ", a[SOVIA_A_KEY_PEER], mnl_attr_get_u8(a[SOVIA_A_KEY_PREFIX]));
	if (mnl_attr_get_u8(a[SOVIA_A_KEY_OWN_PREFIX]))
		show_prefix(" own ", a[SOVIA_A_KEY_OWN],
			    mnl_attr_get_u8(a[SOVIA_A_KEY_OWN_PREFIX]));
	printf(" %s  # %" PRId32 "\n", state_name(mnl_attr_get_u32(a[SOVIA_A_KEY_ERROR])),
	       (int32_t)mnl_attr_get_u32(a[SOVIA_A_KEY_NUMBER]));
	return MNL_CB_OK;
}

static int show_message(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), show_key, data);
}

static int request(struct nlmsghdr *nlh, mnl_cb_t each)
{
	struct netlink_error error;

	if (netlink_request(nlh, each, NULL, &error) == 0)
		return 0;
	fprintf(stderr, "sovia: %s\n", error.text);
	return EXIT_FAILED;
}

static int show(void)
{
	char buf[64];

	return request(netlink_begin(buf, SOVIA_CMD_KEY_GET, NLM_F_DUMP), show_message);
}

/* Forgets, or revokes, keys. */
static int end(uint8_t command, const char *text)
{
	char buf[128], *rest;
	struct nlmsghdr *nlh = netlink_begin(buf, command, NLM_F_ACK);
	struct nlattr *nest;
	uint64_t id;

	errno = 0;
	id = strtoull(text, &rest, 16);
	if (!id || *rest || errno) {
		fprintf(stderr, "sovia: %s: not the number of a key\n", text);
		return EXIT_FAILED;
	}
	nest = mnl_attr_nest_start(nlh, SOVIA_A_KEY);
	mnl_attr_put_u64(nlh, SOVIA_A_KEY_ID, id);
	mnl_attr_nest_end(nlh, nest);
	return request(nlh, NULL);
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

static const char *why_not(int err)
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

/* The user's keyring: a session's would not make it possible to revoke it in another one. */
static int add(const char *id, const char *peer, const char *own, const char *name)
{
	char description[256];
	unsigned char secret[KEY_READ_MAX];
	ssize_t len = read_secret(name, secret);
	long key;

	if (len < 0) {
		fprintf(stderr, "sovia: %s: %s\n", name, strerror(errno));
		return EXIT_FAILED;
	}
	snprintf(description, sizeof(description), "%s:%s%s%s", id, peer, own ? "," : "",
		 own ? own : "");
	key = syscall(SYS_add_key, "sovia", description, secret, (size_t)len,
		      KEY_SPEC_USER_KEYRING);
	explicit_bzero(secret, sizeof(secret));
	if (key >= 0)
		return 0;
	fprintf(stderr, "sovia: %s\n", why_not(errno));
	return EXIT_FAILED;
}

int sovia_key_main(int argc, char **argv)
{
	if (argc == 0 || (argc == 1 && sovia_abbreviates(argv[0], "show")))
		return show();
	if (argc == 4 && sovia_abbreviates(argv[0], "add"))
		return add(argv[1], argv[2], NULL, argv[3]);
	if (argc == 6 && sovia_abbreviates(argv[0], "add") && strcmp(argv[3], "own") == 0)
		return add(argv[1], argv[2], argv[4], argv[5]);
	if (argc == 2 && sovia_abbreviates(argv[0], "delete"))
		return end(SOVIA_CMD_KEY_DELETE, argv[1]);
	if (argc == 2 && sovia_abbreviates(argv[0], "revoke"))
		return end(SOVIA_CMD_KEY_REVOKE, argv[1]);
	return sovia_usage();
}

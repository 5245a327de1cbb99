// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Requests to the kernel's generic netlink family "sovia". */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/sovia.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include "netlink.h"

#ifndef SOL_NETLINK
#define SOL_NETLINK 270
#endif

/* A reply of the kernel is never longer. */
#define REPLY_MAX 32768

/* Starts a message in @buf; the family is filled in by netlink_request(). */
struct nlmsghdr *netlink_begin(void *buf, uint8_t command, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(buf);
	struct genlmsghdr *genl = mnl_nlmsg_put_extra_header(nlh, sizeof(*genl));

	nlh->nlmsg_flags = NLM_F_REQUEST | flags;
	nlh->nlmsg_seq = 1;
	genl->cmd = command;
	genl->version = SOVIA_GENL_VERSION;
	return nlh;
}

static int error_attribute(const struct nlattr *attr, void *data)
{
	struct netlink_error *error = data;

	switch (mnl_attr_get_type(attr)) {
	case NLMSGERR_ATTR_MSG:
		if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
			snprintf(error->text, sizeof(error->text), "%s", mnl_attr_get_str(attr));
		break;
	case NLMSGERR_ATTR_OFFS:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			error->offset = mnl_attr_get_u32(attr);
		break;
	}
	return MNL_CB_OK;
}

/* The kernel's answer to a request that has failed: an errno, and perhaps more. */
static void read_error(const struct nlmsghdr *nlh, struct netlink_error *error)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	size_t skip = sizeof(*err);

	snprintf(error->text, sizeof(error->text), "%s", strerror(-err->error));
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		skip += err->msg.nlmsg_len - sizeof(err->msg);
	mnl_attr_parse(nlh, skip, error_attribute, error);
}

/* The end of a dump: the kernel's errno if it could not go on, and what it had is no whole list. */
static int read_done(const struct nlmsghdr *nlh, struct netlink_error *error)
{
	int err = 0;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(err))
		memcpy(&err, mnl_nlmsg_get_payload(nlh), sizeof(err));
	if (err >= 0)
		return 0;
	snprintf(error->text, sizeof(error->text), "the list is not complete: %s", strerror(-err));
	return -1;
}

/* Returns 1 if there is more to come, 0 after the last message, -1 after an error. */
static int take_reply(const char *buf, int len, mnl_cb_t each, void *data,
		      struct netlink_error *error)
{
	const struct nlmsghdr *nlh = (const struct nlmsghdr *)buf;

	for (; mnl_nlmsg_ok(nlh, len); nlh = mnl_nlmsg_next(nlh, &len)) {
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR) {
			snprintf(error->text, sizeof(error->text), "the list has been replaced: try again");
			return -1;
		}
		if (nlh->nlmsg_type == NLMSG_DONE)
			return read_done(nlh, error);
		if (nlh->nlmsg_type == NLMSG_ERROR) {
			if (((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error == 0)
				return 0;
			read_error(nlh, error);
			return -1;
		}
		if (each && each(nlh, data) < 0)
			return -1;
	}
	return 1;
}

static int exchange(struct mnl_socket *socket, struct nlmsghdr *request, mnl_cb_t each, void *data,
		    struct netlink_error *error)
{
	char buf[REPLY_MAX];
	ssize_t len;
	int more;

	if (mnl_socket_sendto(socket, request, request->nlmsg_len) < 0)
		goto failed;
	do {
		len = mnl_socket_recvfrom(socket, buf, sizeof(buf));
		if (len < 0)
			goto failed;
		more = take_reply(buf, len, each, data, error);
	} while (more > 0);
	return more;

failed:
	snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
	return -1;
}

/*
 * The kernel's family.
 *
 * @id: number of the family, or 0
 * @name: of a group that is looked for, or NULL
 * @group: its number, or 0
 */
struct family {
	uint16_t	id;
	const char	*name;
	uint32_t	group;
};

/*
 * @name, @id: of a group
 */
struct group {
	const char	*name;
	uint32_t	id;
};

static int group_attribute(const struct nlattr *attr, void *data)
{
	struct group *group = data;

	switch (mnl_attr_get_type(attr)) {
	case CTRL_ATTR_MCAST_GRP_NAME:
		if (mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) == 0)
			group->name = mnl_attr_get_str(attr);
		break;
	case CTRL_ATTR_MCAST_GRP_ID:
		if (mnl_attr_validate(attr, MNL_TYPE_U32) == 0)
			group->id = mnl_attr_get_u32(attr);
		break;
	}
	return MNL_CB_OK;
}

static int each_group(const struct nlattr *attr, void *data)
{
	struct family *family = data;
	struct group group = { "", 0 };

	mnl_attr_parse_nested(attr, group_attribute, &group);
	if (family->name && strcmp(group.name, family->name) == 0)
		family->group = group.id;
	return MNL_CB_OK;
}

static int family_attribute(const struct nlattr *attr, void *data)
{
	struct family *family = data;

	switch (mnl_attr_get_type(attr)) {
	case CTRL_ATTR_FAMILY_ID:
		if (mnl_attr_validate(attr, MNL_TYPE_U16) == 0)
			family->id = mnl_attr_get_u16(attr);
		break;
	case CTRL_ATTR_MCAST_GROUPS:
		mnl_attr_parse_nested(attr, each_group, family);
		break;
	}
	return MNL_CB_OK;
}

static int family_reply(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), family_attribute, data);
}

/* Returns 0 or -1. */
static int find_family(struct mnl_socket *socket, struct family *family,
		       struct netlink_error *error)
{
	char buf[256];
	struct nlmsghdr *nlh = netlink_begin(buf, CTRL_CMD_GETFAMILY, NLM_F_ACK);

	nlh->nlmsg_type = GENL_ID_CTRL;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, SOVIA_GENL_NAME);
	if (exchange(socket, nlh, family_reply, family, error) == 0 && family->id)
		return 0;
	snprintf(error->text, sizeof(error->text), "the module sovia is not loaded");
	return -1;
}

static struct mnl_socket *open_socket(int protocol, struct netlink_error *error)
{
	struct mnl_socket *socket = mnl_socket_open2(protocol, SOCK_CLOEXEC);
	int on = 1;

	memset(error, 0, sizeof(*error));
	if (socket && mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) == 0) {
		mnl_socket_setsockopt(socket, NETLINK_EXT_ACK, &on, sizeof(on));
		mnl_socket_setsockopt(socket, NETLINK_CAP_ACK, &on, sizeof(on));
		return socket;
	}
	snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
	if (socket)
		mnl_socket_close(socket);
	return NULL;
}

/*
 * Sends a request and calls @each for every message of the reply.  Returns 0, or -1: then
 * @error says why.
 */
int netlink_request(struct nlmsghdr *request, mnl_cb_t each, void *data,
		    struct netlink_error *error)
{
	struct mnl_socket *socket = open_socket(NETLINK_GENERIC, error);
	struct family family = {};
	int ret;

	if (!socket)
		return -1;
	ret = find_family(socket, &family, error);
	request->nlmsg_type = family.id;
	if (ret == 0)
		ret = exchange(socket, request, each, data, error);
	mnl_socket_close(socket);
	return ret;
}

/* The same with a whole request to another netlink protocol. */
int netlink_request_raw(int protocol, struct nlmsghdr *request, mnl_cb_t each, void *data,
			struct netlink_error *error)
{
	struct mnl_socket *socket = open_socket(protocol, error);
	int ret;

	if (!socket)
		return -1;
	ret = exchange(socket, request, each, data, error);
	mnl_socket_close(socket);
	return ret;
}

/* Calls @each for events until it returns an error.  -1 with @error: there are no events. */
static int take_events(struct mnl_socket *socket, mnl_cb_t each, void *data,
		       struct netlink_error *error)
{
	char buf[REPLY_MAX];
	ssize_t len;

	for (;;) {
		len = mnl_socket_recvfrom(socket, buf, sizeof(buf));
		if (len < 0 && errno == ENOBUFS) {
			fputs("sovia: events have been lost\n", stderr);
			continue;
		}
		if (len < 0)
			break;
		if (mnl_cb_run(buf, len, 0, 0, each, data) < 0)
			return 0;
	}
	snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
	return -1;
}

/* Joins a multicast group of the family, and calls @each for what comes, as take_events() does. */
int netlink_listen(const char *group, mnl_cb_t each, void *data, struct netlink_error *error)
{
	struct mnl_socket *socket = open_socket(NETLINK_GENERIC, error);
	struct family family = { .name = group };
	int ret;

	if (!socket)
		return -1;
	ret = find_family(socket, &family, error);
	if (ret == 0)
		ret = mnl_socket_setsockopt(socket, NETLINK_ADD_MEMBERSHIP, &family.group,
					    sizeof(family.group));
	if (ret == 0)
		ret = take_events(socket, each, data, error);
	else if (!error->text[0])
		snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
	mnl_socket_close(socket);
	return ret;
}

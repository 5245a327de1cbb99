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
			return 0;
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

static int family_attribute(const struct nlattr *attr, void *data)
{
	uint16_t *id = data;

	if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID &&
	    mnl_attr_validate(attr, MNL_TYPE_U16) == 0)
		*id = mnl_attr_get_u16(attr);
	return MNL_CB_OK;
}

static int family_reply(const struct nlmsghdr *nlh, void *data)
{
	return mnl_attr_parse(nlh, sizeof(struct genlmsghdr), family_attribute, data);
}

/* The family's number, or 0.  Asking loads the module. */
static uint16_t find_family(struct mnl_socket *socket, struct netlink_error *error)
{
	char buf[256];
	struct nlmsghdr *nlh = netlink_begin(buf, CTRL_CMD_GETFAMILY, NLM_F_ACK);
	uint16_t id = 0;

	nlh->nlmsg_type = GENL_ID_CTRL;
	mnl_attr_put_strz(nlh, CTRL_ATTR_FAMILY_NAME, SOVIA_GENL_NAME);
	if (exchange(socket, nlh, family_reply, &id, error) < 0)
		snprintf(error->text, sizeof(error->text), "the module sovia is not loaded");
	return id;
}

/*
 * Sends a request and calls @each for every message of the reply.  Returns 0, or -1: then
 * @error says why.
 */
int netlink_request(struct nlmsghdr *request, mnl_cb_t each, void *data,
		    struct netlink_error *error)
{
	struct mnl_socket *socket = mnl_socket_open(NETLINK_GENERIC);
	int on = 1, ret = -1;

	memset(error, 0, sizeof(*error));
	if (!socket || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
		goto out;
	}
	mnl_socket_setsockopt(socket, NETLINK_EXT_ACK, &on, sizeof(on));
	mnl_socket_setsockopt(socket, NETLINK_CAP_ACK, &on, sizeof(on));
	request->nlmsg_type = find_family(socket, error);
	if (request->nlmsg_type)
		ret = exchange(socket, request, each, data, error);
out:
	if (socket)
		mnl_socket_close(socket);
	return ret;
}

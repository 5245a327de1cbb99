/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Requests to the kernel's generic netlink family "sovia". */
#ifndef SOVIA_NETLINK_H
#define SOVIA_NETLINK_H

#include <libmnl/libmnl.h>
#include <stddef.h>
#include <stdint.h>

/*
 * @text: what the kernel says is wrong, or its errno
 * @offset: of the attribute in the request, or 0
 */
struct netlink_error {
	char	text[256];
	size_t	offset;
};

struct nlmsghdr *netlink_begin(void *buf, uint8_t command, uint16_t flags);
int netlink_request(struct nlmsghdr *request, mnl_cb_t each, void *data,
		    struct netlink_error *error);
int netlink_request_raw(int protocol, struct nlmsghdr *request, mnl_cb_t each, void *data,
			struct netlink_error *error);
int netlink_listen(const char *group, mnl_cb_t each, void *data, struct netlink_error *error);

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Connections that fell back to TCP.  AF_SOVIA knows the last ones by their cookie, and why; TCP knows
 * which of them there are still.
 */
#include <inttypes.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sovia.h>
#include <stdlib.h>
#include <string.h>
#include "addr.h"
#include "attrs.h"
#include "netlink.h"
#include "out.h"
#include "socket.h"
#include "sovia.h"
#include "why.h"

static const enum mnl_attr_data_type types[SOVIA_A_TCP_MAX + 1] = {
	[SOVIA_A_TCP_COOKIE]	= MNL_TYPE_U64,
	[SOVIA_A_TCP_DIRECTION]	= MNL_TYPE_U8,
	[SOVIA_A_TCP_WHY]	= MNL_TYPE_U8,
	[SOVIA_A_TCP_ERROR]	= MNL_TYPE_U32,
	[SOVIA_A_TCP_LPORT]	= MNL_TYPE_U16,
	[SOVIA_A_TCP_RPORT]	= MNL_TYPE_U16,
};
static const struct attr_set set = ATTR_SET(types);

/*
 * @cookie: of a TCP socket
 * @direction, @why, @error: as the kernel has them
 */
struct entry {
	uint64_t	cookie;
	uint8_t		direction;
	uint8_t		why;
	uint32_t	error;
};

static struct entry *entries;
static size_t count;

static void read_entry(const struct nlattr **a, struct entry *entry)
{
	entry->cookie = attr_number(a[SOVIA_A_TCP_COOKIE]);
	entry->direction = attr_number(a[SOVIA_A_TCP_DIRECTION]);
	entry->why = attr_number(a[SOVIA_A_TCP_WHY]);
	entry->error = attr_number(a[SOVIA_A_TCP_ERROR]);
}

static int take_entry(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_TCP_MAX + 1] = {};

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	if (!(count & (count - 1)))
		entries = realloc(entries, (count ? 2 * count : 1) * sizeof(*entries));
	if (!entries)
		abort();
	read_entry(a, &entries[count++]);
	return MNL_CB_OK;
}

static int compare(const void *a, const void *b)
{
	const struct entry *first = a, *second = b;

	return (first->cookie > second->cookie) - (first->cookie < second->cookie);
}

static const struct entry *find_entry(uint64_t cookie)
{
	const struct entry key = { .cookie = cookie };

	return bsearch(&key, entries, count, sizeof(*entries), compare);
}

static void show_why(const struct entry *entry)
{
	out_string("direction", " %s", entry->direction == SOVIA_RULE_IN ? "in" : "out");
	out_string("why", " (%s", why_name(entry->why));
	if (options.details) {
		out_string("reason", ": %s", why_text(entry->why));
		if (entry->error)
			out_string("error", ", %s", strerror(entry->error));
	}
	out_text(")");
}

static void read_diag(const struct inet_diag_msg *msg, struct shown *shown)
{
	const struct inet_diag_sockid *id = &msg->id;

	memset(shown, 0, sizeof(*shown));
	shown->state = msg->idiag_state;
	shown->family = msg->idiag_family;
	if (msg->idiag_family == AF_INET) {
		shown->local.s6_addr32[2] = htonl(0xffff);
		shown->local.s6_addr32[3] = id->idiag_src[0];
		shown->remote.s6_addr32[2] = htonl(0xffff);
		shown->remote.s6_addr32[3] = id->idiag_dst[0];
	} else {
		memcpy(&shown->local, id->idiag_src, sizeof(shown->local));
		memcpy(&shown->remote, id->idiag_dst, sizeof(shown->remote));
	}
	shown->lport = ntohs(id->idiag_sport);
	shown->rport = ntohs(id->idiag_dport);
	shown->rqueue = msg->idiag_rqueue;
	shown->wqueue = msg->idiag_wqueue;
	shown->uid = msg->idiag_uid;
	shown->inode = msg->idiag_inode;
	shown->cookie = (uint64_t)id->idiag_cookie[1] << 32 | id->idiag_cookie[0];
	shown->ifindex = id->idiag_if;
}

static int show_diag(const struct nlmsghdr *nlh, void *data)
{
	const struct entry *entry;
	struct shown shown;

	(void)data;
	if (mnl_nlmsg_get_payload_len(nlh) < sizeof(struct inet_diag_msg))
		return MNL_CB_ERROR;
	read_diag(mnl_nlmsg_get_payload(nlh), &shown);
	entry = find_entry(shown.cookie);
	if (!entry || !socket_is_wanted(&shown, "tcp"))
		return MNL_CB_OK;
	socket_show_begin(&shown);
	out_string("way", "%s", "tcp");
	show_why(entry);
	socket_show_end(&shown);
	return MNL_CB_OK;
}

static int show_family(uint8_t family)
{
	struct netlink_error error;
	struct inet_diag_req_v2 *req;
	struct nlmsghdr *nlh;
	char buf[256];

	nlh = mnl_nlmsg_put_header(buf);
	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	req = mnl_nlmsg_put_extra_header(nlh, sizeof(*req));
	req->sdiag_family = family;
	req->sdiag_protocol = IPPROTO_TCP;
	req->idiag_states = -1;
	if (netlink_request_raw(NETLINK_SOCK_DIAG, nlh, show_diag, NULL, &error) == 0)
		return 0;
	return complain("%s", error.text);
}

/* Those that there are still.  Returns the exit status. */
int socket_show_all_tcp(void)
{
	int status = show_each(SOVIA_CMD_TCP_GET, SOVIA_A_TCP, take_entry);

	if (status || !count)
		return status;
	qsort(entries, count, sizeof(*entries), compare);
	return show_family(AF_INET) ?: show_family(AF_INET6);
}

static void show_end(const char *key, const char *format, const struct nlattr *addr,
		     const struct nlattr *port)
{
	struct in6_addr in6 = {};
	char text[ADDR_TEXT];

	addr_get(addr, &in6);
	out_string(key, format,
		   addr_port_text(&in6, IN6_IS_ADDR_V4MAPPED(&in6) ? AF_INET : AF_INET6,
				  attr_number(port), text));
}

/* An event.  Returns MNL_CB_*. */
int socket_show_tcp(const struct nlattr *nest)
{
	const struct nlattr *a[SOVIA_A_TCP_MAX + 1] = {};
	struct entry entry;

	if (attrs_parse(nest, &set, a) < 0)
		return MNL_CB_ERROR;
	read_entry(a, &entry);
	out_begin();
	show_end("local", "%s", a[SOVIA_A_TCP_LOCAL], a[SOVIA_A_TCP_LPORT]);
	show_end("peer", " peer %s", a[SOVIA_A_TCP_REMOTE], a[SOVIA_A_TCP_RPORT]);
	out_number("cookie", " sk:%" PRIx64, entry.cookie);
	show_why(&entry);
	out_end();
	return MNL_CB_OK;
}

// SPDX-License-Identifier: GPL-2.0-only
/*
 * The last connections of a namespace that fell back to TCP: AF_SOVIA has no part in them any more,
 * but can still say why.  The log is allocated with the first one.
 */
#include <linux/sock_diag.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "core/event.h"
#include "core/trace.h"
#include "tcp_log.h"

/* A power of two. */
#define TCP_LOG_SIZE	1024

static struct sovia_tcp_entry *log_entry(struct sovia_net *snet, u64 number)
{
	return &snet->tcp_log.ring[number & (TCP_LOG_SIZE - 1)];
}

/* Without memory there is no log. */
static void log_make(struct sovia_net *snet)
{
	struct sovia_tcp_entry *ring;

	if (READ_ONCE(snet->tcp_log.ring))
		return;
	ring = kvcalloc(TCP_LOG_SIZE, sizeof(*ring), GFP_KERNEL | __GFP_NOWARN);
	spin_lock(&snet->tcp_log.lock);
	if (!snet->tcp_log.ring)
		swap(snet->tcp_log.ring, ring);
	spin_unlock(&snet->tcp_log.lock);
	kvfree(ring);
}

static void log_put(struct sovia_net *snet, const struct sovia_tcp_entry *entry)
{
	log_make(snet);
	spin_lock(&snet->tcp_log.lock);
	if (snet->tcp_log.ring)
		*log_entry(snet, snet->tcp_log.next++) = *entry;
	spin_unlock(&snet->tcp_log.lock);
}

static void log_addresses(const struct sock *tcp, struct sovia_tcp_entry *entry)
{
	const struct inet_sock *inet = inet_sk(tcp);

	entry->lport = inet->inet_num;
	entry->rport = ntohs(inet->inet_dport);
	entry->local = tcp->sk_v6_rcv_saddr;
	entry->remote = tcp->sk_v6_daddr;
	if (tcp->sk_family != AF_INET)
		return;
	ipv6_addr_set_v4mapped(inet->inet_rcv_saddr, &entry->local);
	ipv6_addr_set_v4mapped(inet->inet_daddr, &entry->remote);
}

/**
 * sovia_tcp_log_add() - a connection has fallen back to TCP
 * @snet: its namespace
 * @tcp: TCP's socket
 * @direction: SOVIA_RULE_IN or SOVIA_RULE_OUT
 * @why: the reason
 * @err: what AF_SOVIA would have returned, a positive errno, or 0
 *
 * Context: process, may sleep; a socket lock may be held.
 */
void sovia_tcp_log_add(struct sovia_net *snet, struct sock *tcp, u8 direction, enum sovia_why why,
		       int err)
{
	struct sovia_tcp_entry entry = { .direction = direction, .why = why, .err = err };
	u32 cookie[2];

	sock_diag_save_cookie(tcp, cookie);
	log_addresses(tcp, &entry);
	entry.cookie = (u64)cookie[1] << 32 | cookie[0];
	log_put(snet, &entry);
	trace_sovia_fallback(tcp, &entry);
	sovia_event(snet, SOVIA_EVENT_TCP, &entry);
}

/**
 * sovia_tcp_log_from() - go through the log
 * @snet: namespace
 * @number: 0, or one more than the last entry's; set to this entry's
 * @entry: filled in
 *
 * Context: process.
 * Return: false if there are no more.
 */
bool sovia_tcp_log_from(struct sovia_net *snet, u64 *number, struct sovia_tcp_entry *entry)
{
	struct sovia_tcp_log *log = &snet->tcp_log;
	bool found;

	spin_lock(&log->lock);
	if (*number + TCP_LOG_SIZE < log->next)
		*number = log->next - TCP_LOG_SIZE;
	found = *number < log->next;
	if (found)
		*entry = *log_entry(snet, *number);
	spin_unlock(&log->lock);
	return found;
}

/**
 * sovia_tcp_log_net_init() - prepare a namespace's log
 * @snet: the namespace
 *
 * Context: pernet init.
 */
void sovia_tcp_log_net_init(struct sovia_net *snet)
{
	spin_lock_init(&snet->tcp_log.lock);
}

/**
 * sovia_tcp_log_net_free() - free it
 * @snet: the namespace, without sockets
 *
 * Context: pernet exit.
 */
void sovia_tcp_log_net_free(struct sovia_net *snet)
{
	kvfree(snet->tcp_log.ring);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/tcp_log_test.c"
#endif

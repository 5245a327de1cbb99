// SPDX-License-Identifier: GPL-2.0-only
/*
 * Choosing a port: bind() to any port, and connect() of a socket without one.
 *
 * In TCP's order: connect() starts with ports of the parity of the range's first one, bind()
 * with the others, so that they rarely meet.  bind() wants a port that no socket uses at its
 * address; connect() shares ports with other connections to other destinations.
 *
 * Where connect() starts depends on the addresses and on the destination's port, hashed with
 * a secret, and advances with each port chosen: consecutive connections to one
 * destination find a port at once, and programs do not learn from them about others (RFC 6056,
 * 3.3.4).  Where all ports of the first parity are in use, the next connections to the destination
 * start with the others, instead of looking at each of the first again.
 */
#include <linux/hash.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/netns/hash.h>
#include "compat/addr.h"
#include "compat/inet.h"
#include "fallback.h"
#include "port.h"
#include "port_search.h"

/* Destinations are told apart by this many bits when they advance: 16 KiB in all. */
#define ADVANCE_BITS	12

/* One search in so many looks for ports of the first parity that have been released. */
#define FIRST_PARITY_AGAIN	64

/* Twice the number of ports that searches have come on, plus 1 to start with the second parity. */
static u32 advances[1 << ADVANCE_BITS];
static siphash_aligned_key_t advance_key;

/**
 * struct port_range - the ports to choose from
 * @low: the first one
 * @count: how many
 * @step: 2: one parity after the other, 1: all in order
 */
struct port_range {
	int		low;
	unsigned int	count;
	unsigned int	step;
};

/* The ports of the sysctl, or those of them that IP_LOCAL_PORT_RANGE allows. */
static struct port_range range_of(const struct sock *sk)
{
	struct port_range range;
	bool own;
	int high;

	own = sovia_local_port_range(sk, &range.low, &high);
	range.count = max(high - range.low + 1, 0);
	range.step = own ? 1 : 2;
	return range;
}

/* Both parities have as many ports: the last one of an odd number is not used. */
static void range_even(struct port_range *range)
{
	if (range->count > 1)
		range->count &= ~1U;
}

/*
 * Try ports from @offset on, those of its parity first if the step is 2.  Stops at the first
 * result that does not mean that the port cannot be had.
 */
static int range_try(struct sock *sk, const struct port_range *range, unsigned int offset,
		     int (*try)(struct sock *sk, u16 port, void *context), void *context,
		     unsigned int *tries)
{
	unsigned int i, pass, port;
	int err;

	for (pass = 0; pass < min(range->step, range->count); pass++) {
		for (i = 0; i < range->count; i += range->step) {
			port = range->low + ((offset ^ pass) + i) % range->count;
			if (inet_is_local_reserved_port(sock_net(sk), port))
				continue;
			err = try(sk, port, context);
			*tries = i;
			if (err != -EADDRINUSE && err != -EADDRNOTAVAIL)
				return err;
			cond_resched();
		}
	}
	return -EADDRNOTAVAIL;
}

/* ---- bind() ---------------------------------------------------------- */

static int try_bind(struct sock *sk, u16 port, void *context)
{
	return sovia_port_bind(sk, port, context);
}

static int range_bind(struct sock *sk, struct port_range range, struct sovia_sharing *sharing)
{
	unsigned int tries;

	range_even(&range);
	if (!range.count)
		return -EADDRNOTAVAIL;
	range.step = 2;
	return range_try(sk, &range, get_random_u32() % range.count | 1, try_bind, sharing,
			 &tries);
}

/* As with TCP, sockets with SO_REUSEADDR fill the lower half first. */
static int bind_any(struct sock *sk, struct sovia_sharing *sharing)
{
	struct port_range range = range_of(sk), half = range;
	int err;

	if (sk->sk_reuse != SK_CAN_REUSE || range.count < 4)
		return range_bind(sk, range, sharing);
	half.count = range.count / 4 * 2;
	err = range_bind(sk, half, sharing);
	if (err != -EADDRNOTAVAIL)
		return err;
	half.low += half.count;
	half.count = range.count - half.count;
	return range_bind(sk, half, sharing);
}

/**
 * sovia_get_port() - bind to a port (struct proto::get_port)
 * @sk: not bound, or a listener that checks its port again
 * @snum: the port, or 0 for any
 *
 * Context: process, socket lock held.
 * Return: 0 or -EADDRINUSE.
 */
int sovia_get_port(struct sock *sk, unsigned short snum)
{
	struct sovia_sharing sharing = { .reuse = snum, .reuseport = snum };
	int err;

	/* A call that was under way when the descriptor got TCP's sk. */
	if (sovia_fallback_done(sk))
		return -EADDRINUSE;
	err = snum ? sovia_port_bind(sk, snum, &sharing) : bind_any(sk, &sharing);
	if (!snum && err == -EADDRNOTAVAIL &&
	    READ_ONCE(sock_net(sk)->ipv4.sysctl_ip_autobind_reuse)) {
		sharing.reuse = true;
		err = bind_any(sk, &sharing);
	}
	return err ? -EADDRINUSE : 0;
}

/* ---- connect() ------------------------------------------------------- */

/**
 * struct borrowing - a search of connect()
 * @use: the caller's attempt with a port
 * @context: for @use
 */
struct borrowing {
	int (*use)(struct sock *sk, void *context);
	void *context;
};

static int try_borrow(struct sock *sk, u16 port, void *context)
{
	const struct borrowing *search = context;
	int err = sovia_port_borrow(sk, port);

	if (err)
		return err;
	err = search->use(sk, search->context);
	if (err)
		sovia_put_port(sk);
	return err;
}

/* Of the addresses and the destination's port. */
static u64 destination_hash(const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);
	const struct {
		struct in6_addr	local;
		struct in6_addr	remote;
		u64		end;
	} key = {
		.local = sk->sk_v6_rcv_saddr,
		.remote = sk->sk_v6_daddr,
		.end = (u64)net_hash_mix(sock_net(sk)) << 32 | ntohs(inet->inet_dport),
	};

	get_random_once(&advance_key, sizeof(advance_key));
	if (sk->sk_family == AF_INET)
		return siphash_2u64((__force u64)sk->sk_addrpair, key.end, &advance_key);
	return siphash(&key, sizeof(key), &advance_key);
}

/**
 * sovia_connect_port() - find a port for a connection
 * @sk: with both addresses and the destination's port set; bound, or without a port
 * @use: tries to connect from the port @sk has then.  -EADDRNOTAVAIL means that the four-tuple
 *	is in use; any other error ends the search.
 * @context: for @use
 *
 * Context: process, may sleep; socket lock held.
 * Return: what @use has returned for the port of @sk; -EADDRNOTAVAIL if there is none, or
 * -ENOMEM: without a port.
 */
int sovia_connect_port(struct sock *sk, int (*use)(struct sock *sk, void *context), void *context)
{
	struct borrowing search = { .use = use, .context = context };
	struct port_range range = range_of(sk);
	unsigned int offset, tries = 0;
	u32 *advance, last;
	u64 hash;
	int err;

	if (inet_sk(sk)->inet_num)
		return use(sk, context);
	if (range.step > 1)
		range_even(&range);
	if (!range.count)
		return -EADDRNOTAVAIL;
	hash = destination_hash(sk);
	advance = &advances[hash & (ARRAY_SIZE(advances) - 1)];
	last = READ_ONCE(*advance);
	offset = (last / 2 + (u32)(hash >> 32)) % range.count;
	if (range.step > 1) {
		offset &= ~1U;
		offset |= (last & 1) && get_random_u32() % FIRST_PARITY_AGAIN;
	}
	err = range_try(sk, &range, offset, try_borrow, &search, &tries);
	if (err)
		return err;
	/* Steps that cannot be foreseen, as long as that costs no tries. */
	tries = max(tries, hash_32(last ^ (u32)hash, 3) * range.step);
	last += 2 * (tries + range.step);
	/* The parity of the port that was found. */
	last &= ~1U;
	last |= range.step > 1 && ((inet_sk(sk)->inet_num - range.low) & 1);
	WRITE_ONCE(*advance, last);
	return 0;
}

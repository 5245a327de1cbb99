/* SPDX-License-Identifier: GPL-2.0-only */
/* VIs on verbs without a device, for KUnit suites: their upcalls are recorded. */
#ifndef _SOVIA_TEST_VERBS_HELPER_H
#define _SOVIA_TEST_VERBS_HELPER_H

#include <kunit/test.h>
#include <linux/completion.h>
#include "verbs/verbs.h"

/**
 * struct told - upcalls that the client of a VI has received
 * @opened: established upcalls
 * @closed: closed upcalls
 * @err: of the last one
 * @doubted: doubted upcalls
 * @unsent: send_done upcalls of messages that have not been sent
 * @die: the VI dies with this while it is being opened, unless it is 0
 * @ended: the ended upcall
 */
struct told {
	int opened;
	int closed;
	int err;
	int doubted;
	int unsent;
	int die;
	struct completion ended;
};

static inline int told_seal(struct sovia_vi *vi, const struct sovia_path *path,
			    struct sovia_hello *hello)
{
	return 0;
}

static inline void told_established(struct sovia_vi *vi, const struct sovia_hello *hello,
				    unsigned int hello_len)
{
	struct told *told = vi->context;

	told->opened++;
	if (told->die)
		verbs_vi_die(verbs_vi(vi), told->die);
}

static inline void told_closed(struct sovia_vi *vi, int err)
{
	struct told *told = vi->context;

	told->closed++;
	told->err = err;
}

static inline void told_doubted(struct sovia_vi *vi)
{
	struct told *told = vi->context;

	told->doubted++;
}

static inline void told_send_done(struct sovia_vi *vi, struct sk_buff *skb, bool ok)
{
	struct told *told = vi->context;

	told->unsent += !ok;
}

static inline void told_ended(struct sovia_vi *vi)
{
	struct told *told = vi->context;

	complete(&told->ended);
}

/* End a VI that its provider has made, and wait. */
static inline void told_end(struct sovia_vi *vi)
{
	struct told *told = vi->context;

	vi->prov->end(vi);
	wait_for_completion(&told->ended);
}

static const struct sovia_vi_client told_client = {
	.seal		= told_seal,
	.established	= told_established,
	.closed		= told_closed,
	.doubted	= told_doubted,
	.send_done	= told_send_done,
	.ended		= told_ended,
};

static const struct sovia_vi_attr told_attr = {
	.send_depth = 4, .recv_depth = 4, .recv_first = 4, .msg_size = SOVIA_PAYLOAD_MAX,
};

/* Addresses that no host has (RFC 5737). */
static inline void told_pair(struct sovia_pair *pair)
{
	*pair = (struct sovia_pair) {};
	ipv6_addr_set_v4mapped(htonl(0xc0000201), &pair->local);
	ipv6_addr_set_v4mapped(htonl(0xc0000202), &pair->remote);
}

/* The result of rdma_cm for these. */
static inline bool told_nowhere(int err)
{
	return err == -EADDRNOTAVAIL || err == -ENODEV;
}

static inline struct verbs_vi *told_vi(struct kunit *test, struct told *told)
{
	const struct sovia_hello hello = {};
	struct sovia_pair pair;
	struct verbs_vi *v;

	told_pair(&pair);
	*told = (struct told) {};
	init_completion(&told->ended);
	v = verbs_vi_alloc(&pair, &told_attr, &hello, &told_client, told);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, v);
	return v;
}

/* Expect one closed upcall with @err, or none if @err is 0. */
static inline void told_expect(struct kunit *test, const struct told *told, int err)
{
	KUNIT_EXPECT_EQ(test, told->closed, err ? 1 : 0);
	KUNIT_EXPECT_EQ(test, told->err, err);
}

#endif /* _SOVIA_TEST_VERBS_HELPER_H */

// SPDX-License-Identifier: GPL-2.0-only
/* KUnit suite of the connection manager's events of a VI; included by verbs_cm.c. */
#include <net/ipv6.h>
#include "suites.h"
#include "verbs_helper.h"

/* The peer's reason takes precedence over its connection manager's. */
static void cm_rejections(struct kunit *test)
{
	static const struct {
		u32	code;
		int	err;
	} rows[] = {
		{ SOVIA_CODE_BUSY,		-EAGAIN },
		{ SOVIA_CODE_PROTOCOL,		-EPROTO },
		{ SOVIA_CODE_NO_MEMORY,		-EBUSY },
		{ SOVIA_CODE_NO_LINK,		-ESTALE },
		{ SOVIA_CODE_NO_LISTENER,	-ECONNREFUSED },
		{ 0xffffffff,			-ECONNREFUSED },
	};
	struct sovia_reject rej = { .magic = cpu_to_be32(SOVIA_WIRE_MAGIC) };
	struct rdma_cm_event event = {
		.event = RDMA_CM_EVENT_REJECTED, .status = IB_CM_REJ_STALE_CONN,
		.param.conn = { .private_data = &rej, .private_data_len = sizeof(rej) },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		rej.code = cpu_to_be32(rows[i].code);
		KUNIT_EXPECT_EQ(test, verbs_rejected(&event), rows[i].err);
	}
	/* Reasons that are malformed or truncated are ignored. */
	rej.code = cpu_to_be32(SOVIA_CODE_PROTOCOL);
	event.param.conn.private_data_len = sizeof(rej) - 1;
	KUNIT_EXPECT_EQ(test, verbs_rejected(&event), -ECONNRESET);
	event.param.conn.private_data_len = sizeof(rej);
	rej.magic ^= cpu_to_be32(1);
	KUNIT_EXPECT_EQ(test, verbs_rejected(&event), -ECONNRESET);
	event.param.conn.private_data = NULL;
	KUNIT_EXPECT_EQ(test, verbs_rejected(&event), -ECONNRESET);
}

/**
 * struct cm_row - an event, and the resulting upcall
 * @event: from rdma_cm
 * @status: with it
 * @err: errno of the closed upcall, or 0
 */
struct cm_row {
	enum rdma_cm_event_type	event;
	int			status;
	int			err;
};

static const struct cm_row cm_rows[] = {
	{ RDMA_CM_EVENT_ADDR_ERROR,	-ENODEV,		-ENODEV },
	{ RDMA_CM_EVENT_ADDR_ERROR,	-ENETUNREACH,		-ENETUNREACH },
	{ RDMA_CM_EVENT_ADDR_ERROR,	-EADDRNOTAVAIL,		-EADDRNOTAVAIL },
	{ RDMA_CM_EVENT_ADDR_ERROR,	-ENOMEM,		-ENOMEM },
	{ RDMA_CM_EVENT_ADDR_ERROR,	-EINVAL,		-EHOSTUNREACH },
	{ RDMA_CM_EVENT_ROUTE_ERROR,	-ETIMEDOUT,		-EHOSTUNREACH },
	{ RDMA_CM_EVENT_REJECTED,	IB_CM_REJ_TIMEOUT,	-ETIMEDOUT },
	{ RDMA_CM_EVENT_REJECTED,	IB_CM_REJ_STALE_CONN,	-ECONNRESET },
	{ RDMA_CM_EVENT_REJECTED,	-ECONNRESET,		-ECONNRESET },
	{ RDMA_CM_EVENT_REJECTED,	IB_CM_REJ_INVALID_GID,	-EHOSTUNREACH },
	{ RDMA_CM_EVENT_REJECTED,	IB_CM_REJ_INVALID_LID,	-EHOSTUNREACH },
	{ RDMA_CM_EVENT_REJECTED,	IB_CM_REJ_INVALID_SERVICE_ID, -ECONNREFUSED },
	{ RDMA_CM_EVENT_UNREACHABLE,	-ETIMEDOUT,		-ETIMEDOUT },
	{ RDMA_CM_EVENT_UNREACHABLE,	-EINVAL,		-EHOSTUNREACH },
	{ RDMA_CM_EVENT_DEVICE_REMOVAL,	0,			-ENODEV },
	{ RDMA_CM_EVENT_CONNECT_ERROR,	-EINVAL,		-ECONNRESET },
	{ RDMA_CM_EVENT_ADDR_CHANGE,	0,			-ECONNRESET },
	{ RDMA_CM_EVENT_TIMEWAIT_EXIT,	0,			0 },
};

/* Each event ends an attempt with its own reason, but not one that is dead already. */
static void cm_events(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cm_rows); i++) {
		struct rdma_cm_event event = {
			.event = cm_rows[i].event, .status = cm_rows[i].status,
		};
		struct rdma_cm_event again = { .event = RDMA_CM_EVENT_CONNECT_ERROR };
		struct told told;
		struct verbs_vi *v = told_vi(test, &told);
		struct rdma_cm_id id = { .context = v };

		KUNIT_EXPECT_EQ(test, verbs_vi_handler(&id, &event), 0);
		told_expect(test, &told, cm_rows[i].err);
		if (cm_rows[i].err) {
			KUNIT_EXPECT_EQ(test, verbs_vi_handler(&id, &again), 0);
			told_expect(test, &told, cm_rows[i].err);
		}
		verbs_vi_free(v);
	}
}

/* Address resolution is retried a limited number of times. */
static void cm_tries_again(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	v->id = rdma_create_id(&init_net, verbs_vi_handler, v, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(v->id));
	verbs_addr_error(v, -ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, v->tries, 1);
	flush_work(&v->setup_work);
	KUNIT_EXPECT_EQ(test, told.closed, 1);
	KUNIT_EXPECT_TRUE(test, told_nowhere(told.err));
	verbs_vi_free(v);

	v = told_vi(test, &told);
	v->tries = VERBS_RESOLVE_TRIES - 1;
	verbs_addr_error(v, -ETIMEDOUT);
	told_expect(test, &told, -EHOSTUNREACH);
	verbs_vi_free(v);
}

/* Without a route it is closed, and nothing is left. */
static void cm_no_way(struct kunit *test)
{
	const struct sovia_hello hello = {};
	struct told told = {};
	struct sovia_pair pair;
	struct sovia_vi *vi;

	told_pair(&pair);
	init_completion(&told.ended);
	vi = verbs_connect(&init_net, &pair, &told_attr, &hello, &told_client, &told);
	KUNIT_ASSERT_FALSE(test, IS_ERR(vi));
	flush_work(&verbs_vi(vi)->setup_work);
	KUNIT_EXPECT_EQ(test, told.closed, 1);
	KUNIT_EXPECT_TRUE(test, told_nowhere(told.err));
	told_end(vi);
	KUNIT_EXPECT_EQ(test, told.closed, 1);

	/* Ended before its set-up has begun, or while that runs. */
	told = (struct told) {};
	init_completion(&told.ended);
	vi = verbs_connect(&init_net, &pair, &told_attr, &hello, &told_client, &told);
	KUNIT_ASSERT_FALSE(test, IS_ERR(vi));
	told_end(vi);
}

/* A VI whose device is being removed does not resolve a route. */
static void cm_late_route(struct kunit *test)
{
	struct rdma_cm_event event = { .event = RDMA_CM_EVENT_ADDR_RESOLVED };
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	v->id = rdma_create_id(&init_net, verbs_vi_handler, v, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(v->id));
	KUNIT_EXPECT_EQ(test, verbs_vi_handler(v->id, &event), 0);
	flush_work(&v->setup_work);
	told_expect(test, &told, -ENODEV);
	verbs_vi_free(v);
}

/* The VI died, or its device was removed, before the set-up work ran. */
static void cm_late_connect(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	v->id = rdma_create_id(&init_net, verbs_vi_handler, v, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(v->id));
	verbs_vi_setup(v, VERBS_SETUP_CONNECT);
	flush_work(&v->setup_work);
	told_expect(test, &told, -ENODEV);
	verbs_vi_setup(v, VERBS_SETUP_CONNECT);
	flush_work(&v->setup_work);
	told_expect(test, &told, -ENODEV);
	KUNIT_EXPECT_FALSE(test, v->started);
	verbs_vi_free(v);
}

/* Link-local addresses mean nothing without their interface. */
static void cm_addresses(struct kunit *test)
{
	static const struct in6_addr local = { .s6_addr = { 0xfe, 0x80, [15] = 1 } };
	struct sockaddr_storage ss;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&ss;
	struct sockaddr_in *sin = (struct sockaddr_in *)&ss;
	struct in6_addr v4;

	sovia_sockaddr(&ss, &local, 7, 1234);
	KUNIT_EXPECT_EQ(test, sin6->sin6_family, AF_INET6);
	KUNIT_EXPECT_EQ(test, sin6->sin6_scope_id, 7);
	KUNIT_EXPECT_EQ(test, ntohs(sin6->sin6_port), 1234);
	sovia_sockaddr(&ss, &in6addr_loopback, 7, 1234);
	KUNIT_EXPECT_EQ(test, sin6->sin6_scope_id, 0);
	ipv6_addr_set_v4mapped(htonl(INADDR_LOOPBACK), &v4);
	sovia_sockaddr(&ss, &v4, 7, 1234);
	KUNIT_EXPECT_EQ(test, sin->sin_family, AF_INET);
	KUNIT_EXPECT_EQ(test, ntohl(sin->sin_addr.s_addr), INADDR_LOOPBACK);
}

static struct kunit_case verbs_cm_test_cases[] = {
	KUNIT_CASE(cm_rejections),
	KUNIT_CASE(cm_events),
	KUNIT_CASE(cm_tries_again),
	KUNIT_CASE(cm_no_way),
	KUNIT_CASE(cm_late_route),
	KUNIT_CASE(cm_late_connect),
	KUNIT_CASE(cm_addresses),
	{}
};

struct kunit_suite sovia_verbs_cm_suite = {
	.name = "sovia-verbs-cm",
	.test_cases = verbs_cm_test_cases,
};

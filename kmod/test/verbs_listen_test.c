// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of requests that fail, with identifiers without a device;
 * included by verbs_listen.c.
 */
#include "suites.h"
#include "verbs_helper.h"

static struct sovia_vi_request *listen_request;

static void listen_take(struct sovia_vi_request *req)
{
	listen_request = req;
}

/* Call the listener's handler like rdma_cm. */
static int listen_ask(struct rdma_cm_id *id)
{
	static struct verbs_listener lis = { .net = &init_net, .request = listen_take };
	static const struct sovia_hello hello = { .magic = cpu_to_be32(SOVIA_WIRE_MAGIC) };
	struct rdma_cm_event event = {
		.event = RDMA_CM_EVENT_CONNECT_REQUEST,
		.param.conn = { .private_data = &hello, .private_data_len = sizeof(hello) },
	};
	int err;

	listen_request = NULL;
	rdma_lock_handler(id);
	id->context = &lis;
	err = verbs_listen_handler(id, &event);
	rdma_unlock_handler(id);
	return err;
}

static void listen_from(struct rdma_cm_id *id, u16 port)
{
	((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_port = htons(port);
}

static struct rdma_cm_id *listen_id(struct kunit *test, sa_family_t family)
{
	struct rdma_cm_id *id = rdma_create_id(&init_net, verbs_listen_handler, NULL,
					       RDMA_PS_TCP, IB_QPT_RC);

	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->route.addr.src_addr.ss_family = family;
	id->route.addr.dst_addr.ss_family = family;
	listen_from(id, SOVIA_PORTS_RESERVED - 1);
	return id;
}

/* There is no listener on these addresses, and they do not outlive the test. */
static void listen_forget(struct rdma_cm_id *id)
{
	id->route.addr.src_addr.ss_family = AF_UNSPEC;
	rdma_destroy_id(id);
}

/* An invalid request is refused by destroying its identifier, and not counted. */
static void listen_refuses(struct kunit *test)
{
	struct rdma_cm_event other = { .event = RDMA_CM_EVENT_ESTABLISHED };
	int before = atomic_read(&verbs_pending);
	struct rdma_cm_id *id;

	id = listen_id(test, AF_IB);
	KUNIT_EXPECT_EQ(test, verbs_listen_handler(id, &other), 0);
	KUNIT_EXPECT_EQ(test, listen_ask(id), -EAFNOSUPPORT);
	KUNIT_EXPECT_PTR_EQ(test, listen_request, NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), before);
	listen_forget(id);

	id = listen_id(test, AF_INET);
	atomic_set(&verbs_pending, VERBS_MAX_REQUESTS);
	KUNIT_EXPECT_EQ(test, listen_ask(id), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, listen_request, NULL);
	KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), VERBS_MAX_REQUESTS);
	atomic_set(&verbs_pending, before);
	listen_forget(id);
}

/* A peer has a part of the pending requests; another peer is not concerned. */
static void listen_crowd(struct kunit *test)
{
	struct sovia_vi_request *reqs[VERBS_PEER_REQUESTS + 1];
	int before = atomic_read(&verbs_pending);
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < ARRAY_SIZE(reqs); i++) {
		id = listen_id(test, AF_INET);
		/* The last one is another peer's. */
		((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_addr.s_addr =
			htonl(0xc0000201 + (i == VERBS_PEER_REQUESTS));
		KUNIT_EXPECT_EQ(test, listen_ask(id), 0);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, listen_request);
		id->route.addr.src_addr.ss_family = AF_UNSPEC;
		reqs[i] = listen_request;
	}
	id = listen_id(test, AF_INET);
	((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_addr.s_addr = htonl(0xc0000201);
	KUNIT_EXPECT_EQ(test, listen_ask(id), -EBUSY);
	KUNIT_EXPECT_PTR_EQ(test, listen_request, NULL);
	listen_forget(id);
	for (i = 0; i < ARRAY_SIZE(reqs); i++)
		verbs_reject(reqs[i], -EAGAIN);
	flush_workqueue(sovia_end_wq);
	KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), before);
}

/* A request from an unprivileged port is refused in each form, and counted. */
static void listen_users(struct kunit *test)
{
	static const u16 ports[] = { 0, SOVIA_PORTS_RESERVED, 7684, 65535 };
	struct sovia_net *snet = sovia_net(&init_net);
	int pending = atomic_read(&verbs_pending);
	unsigned long before;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		struct rdma_cm_id *id = listen_id(test, i % 2 ? AF_INET6 : AF_INET);

		listen_from(id, ports[i]);
		before = snmp_fold_field(snet->mib, SOVIA_STAT_bad_port);
		KUNIT_EXPECT_EQ(test, listen_ask(id), -EACCES);
		KUNIT_EXPECT_PTR_EQ(test, listen_request, NULL);
		KUNIT_EXPECT_EQ(test, snmp_fold_field(snet->mib, SOVIA_STAT_bad_port), before + 1);
		KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), pending);
		listen_forget(id);
	}
}

/* The peer, or the device, has gone before the client answers. */
static void listen_too_late(struct kunit *test)
{
	static const struct {
		enum rdma_cm_event_type	event;
		int			err;
	} rows[] = {
		{ RDMA_CM_EVENT_DEVICE_REMOVAL,	-ENODEV },
		{ RDMA_CM_EVENT_UNREACHABLE,	-ECONNRESET },
		/* No error so far, but there is no device for a queue pair. */
		{ RDMA_CM_EVENT_ESTABLISHED,	-ENODEV },
	};
	const struct sovia_hello hello = {};
	int before = atomic_read(&verbs_pending);
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rdma_cm_event event = { .event = rows[i].event };
		struct rdma_cm_id *id = listen_id(test, AF_INET);
		struct told told = {};
		struct sovia_vi *vi;

		init_completion(&told.ended);
		KUNIT_EXPECT_EQ(test, listen_ask(id), 0);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, listen_request);
		KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), before + 1);
		KUNIT_EXPECT_EQ(test, listen_request->hello_len, sizeof(hello));
		if (event.event != RDMA_CM_EVENT_ESTABLISHED)
			KUNIT_EXPECT_EQ(test, id->event_handler(id, &event), 0);
		id->route.addr.src_addr.ss_family = AF_UNSPEC;
		vi = verbs_accept(listen_request, &told_attr, &hello, &told_client, &told);
		KUNIT_ASSERT_FALSE(test, IS_ERR(vi));
		flush_work(&verbs_vi(vi)->setup_work);
		told_expect(test, &told, rows[i].err);
		KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), before);
		told_end(vi);
	}
}

/* Reject it, whether it has failed before or not. */
static void listen_rejects(struct kunit *test)
{
	struct rdma_cm_event gone = { .event = RDMA_CM_EVENT_UNREACHABLE };
	int before = atomic_read(&verbs_pending);
	int late;

	for (late = 0; late < 2; late++) {
		struct rdma_cm_id *id = listen_id(test, AF_INET6);

		KUNIT_EXPECT_EQ(test, listen_ask(id), 0);
		KUNIT_ASSERT_NOT_ERR_OR_NULL(test, listen_request);
		/* From an address to itself. */
		KUNIT_EXPECT_EQ(test, listen_request->pair.passive, 1);
		if (late)
			KUNIT_EXPECT_EQ(test, id->event_handler(id, &gone), 0);
		id->route.addr.src_addr.ss_family = AF_UNSPEC;
		verbs_reject(listen_request, -EAGAIN);
		flush_workqueue(sovia_end_wq);
		KUNIT_EXPECT_EQ(test, atomic_read(&verbs_pending), before);
	}
}

/* Errnos to codes on the wire; verbs_cm_test.c tests the inverse. */
static void listen_codes(struct kunit *test)
{
	static const struct {
		int	err;
		u32	code;
	} rows[] = {
		{ -EAGAIN,	SOVIA_CODE_BUSY },
		{ -EPROTO,	SOVIA_CODE_PROTOCOL },
		{ -ENOMEM,	SOVIA_CODE_NO_MEMORY },
		{ -EBUSY,	SOVIA_CODE_NO_MEMORY },
		{ -ESTALE,	SOVIA_CODE_NO_LINK },
		{ -ENODEV,	SOVIA_CODE_NO_MEMORY },
		{ -EIO,		SOVIA_CODE_NO_MEMORY },
		{ -ECONNREFUSED, SOVIA_CODE_NO_LISTENER },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ(test, verbs_reject_code(rows[i].err), rows[i].code);
}

static struct kunit_case verbs_listen_test_cases[] = {
	KUNIT_CASE(listen_refuses),
	KUNIT_CASE(listen_crowd),
	KUNIT_CASE(listen_users),
	KUNIT_CASE(listen_too_late),
	KUNIT_CASE(listen_rejects),
	KUNIT_CASE(listen_codes),
	{}
};

struct kunit_suite sovia_verbs_listen_suite = {
	.name = "sovia-verbs-listen",
	.test_cases = verbs_listen_test_cases,
};

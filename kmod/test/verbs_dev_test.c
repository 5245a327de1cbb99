// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite of devices and their completion queues, with a device that has queues and nothing
 * else; included by verbs_dev.c.
 */
#include "compat/rdma.h"
#include "suites.h"
#include "verbs_helper.h"

/**
 * struct dev_test - the device, and what its driver was asked for
 * @ibdev: it
 * @dev: ours
 * @err: result of the driver's calls
 * @made: queues
 * @freed: queues
 * @vector: of the last one
 * @locked: one was made with the device lock held
 * @disowned: messages that have no owner any more
 * @cqs: the module's parameter
 */
static struct dev_test {
	struct ib_device	*ibdev;
	struct verbs_dev	*dev;
	int			err;
	int			made;
	int			freed;
	u32			vector;
	bool			locked;
	int			disowned;
	unsigned int		cqs;
} dev_test;

struct dev_test_cq {
	struct ib_cq ibcq;
};

static int dev_test_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			      struct sovia_create_cq_data *data)
{
	dev_test.locked |= mutex_is_locked(&dev_test.dev->lock);
	dev_test.made += !dev_test.err;
	dev_test.vector = attr->comp_vector;
	return dev_test.err;
}

static int dev_test_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	dev_test.freed++;
	return 0;
}

static int dev_test_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc)
{
	return 0;
}

static int dev_test_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

static const struct ib_device_ops dev_test_ops = {
	.create_cq	= dev_test_create_cq,
	.destroy_cq	= dev_test_destroy_cq,
	.poll_cq	= dev_test_poll_cq,
	.req_notify_cq	= dev_test_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_cq, dev_test_cq, ibcq),
};

struct dev_test_device {
	struct ib_device ibdev;
};

static int dev_test_init(struct kunit *test)
{
	struct dev_test_device *device = ib_alloc_device(dev_test_device, ibdev);

	dev_test = (struct dev_test) { .cqs = verbs_cqs };
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, device);
	dev_test.ibdev = &device->ibdev;
	dev_set_name(&device->ibdev.dev, "test");
	ib_set_device_ops(&device->ibdev, &dev_test_ops);
	device->ibdev.attrs.max_cqe = 20;
	device->ibdev.num_comp_vectors = 1;
	dev_test.dev = verbs_dev_alloc(&device->ibdev);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, dev_test.dev);
	verbs_dev_list(dev_test.dev);
	return 0;
}

static void dev_test_exit(struct kunit *test)
{
	verbs_cqs = dev_test.cqs;
	if (!dev_test.ibdev)
		return;
	if (dev_test.dev) {
		verbs_dev_close_vis(dev_test.dev);
		verbs_cqs_free(dev_test.dev);
		cancel_work_sync(&dev_test.dev->fail_work);
		verbs_dev_free(dev_test.dev);
	}
	ib_dealloc_device(dev_test.ibdev);
}

/* A driver that takes long to make a queue keeps no other user of the device waiting. */
static void dev_makes_cqs_unlocked(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), 0);
	KUNIT_EXPECT_EQ(test, dev_test.made, 1);
	KUNIT_EXPECT_FALSE(test, dev_test.locked);
	verbs_vi_free(v);
}

/* Queues are shared; there are as many as are wanted, and more if there is no room. */
static void dev_shares_cqs(struct kunit *test)
{
	struct told told[4];
	struct verbs_vi *v[4];
	unsigned int i;

	verbs_cqs = 2;
	/* A VI needs 15 completions. */
	dev_test.ibdev->attrs.max_cqe = 30;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = told_vi(test, &told[i]);
		KUNIT_EXPECT_EQ(test, verbs_dev_attach(v[i], dev_test.ibdev), 0);
	}
	KUNIT_EXPECT_PTR_NE(test, v[0]->cq, v[1]->cq);
	KUNIT_EXPECT_PTR_NE(test, v[2]->cq, v[3]->cq);
	KUNIT_EXPECT_EQ(test, dev_test.made, 2);
	verbs_vi_free(v[0]);
	v[0] = told_vi(test, &told[0]);
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v[0], dev_test.ibdev), 0);
	KUNIT_EXPECT_EQ(test, dev_test.made, 2);
	verbs_cqs = 1;
	verbs_vi_free(v[1]);
	v[1] = told_vi(test, &told[1]);
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v[1], dev_test.ibdev), 0);
	KUNIT_EXPECT_EQ(test, dev_test.made, 2);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		verbs_vi_free(v[i]);
}

/* The interrupts of a device's queues go to different processors, as many as it has vectors for. */
static void dev_spreads_cqs(struct kunit *test)
{
	unsigned int most = min(8U, num_online_cpus());
	struct told told[2];
	struct verbs_vi *v[2];
	u32 vector[2];
	unsigned int i;

	verbs_cqs = 2;
	dev_test.ibdev->num_comp_vectors = 8;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = told_vi(test, &told[i]);
		KUNIT_EXPECT_EQ(test, verbs_dev_attach(v[i], dev_test.ibdev), 0);
		vector[i] = dev_test.vector;
		KUNIT_EXPECT_LT(test, vector[i], most);
	}
	KUNIT_EXPECT_EQ(test, dev_test.made, 2);
	KUNIT_EXPECT_EQ(test, vector[1], (vector[0] + 1) % most);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		verbs_vi_free(v[i]);
}

/* Queues that many VIs have needed are freed with them, but for one that the next VI uses. */
static void dev_frees_cqs(struct kunit *test)
{
	struct told told[4];
	struct verbs_vi *v[4];
	unsigned int i;

	verbs_cqs = 1;
	/* A VI needs 15 completions: each has a queue of its own. */
	dev_test.ibdev->attrs.max_cqe = 15;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = told_vi(test, &told[i]);
		KUNIT_EXPECT_EQ(test, verbs_dev_attach(v[i], dev_test.ibdev), 0);
	}
	KUNIT_EXPECT_EQ(test, dev_test.made, 4);
	verbs_vi_free(v[0]);
	KUNIT_EXPECT_EQ(test, dev_test.freed, 0);
	verbs_vi_free(v[1]);
	KUNIT_EXPECT_EQ(test, dev_test.freed, 1);
	v[1] = told_vi(test, &told[1]);
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v[1], dev_test.ibdev), 0);
	KUNIT_EXPECT_EQ(test, dev_test.made, 4);
	for (i = 1; i < ARRAY_SIZE(v); i++)
		verbs_vi_free(v[i]);
	KUNIT_EXPECT_EQ(test, dev_test.freed, 3);
	KUNIT_EXPECT_EQ(test, dev_test.dev->num_cqs, 1);
}

/* One queue is enough if the driver makes no other; without any, or with short ones, no VI is. */
static void dev_lacks_cqs(struct kunit *test)
{
	struct told told, another;
	struct verbs_vi *v = told_vi(test, &told), *w = told_vi(test, &another);

	verbs_cqs = 2;
	dev_test.err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), -ENOMEM);
	dev_test.err = 0;
	dev_test.ibdev->attrs.max_cqe = 14;
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), -ENOSPC);
	dev_test.ibdev->attrs.max_cqe = 30;
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), 0);
	dev_test.err = -ENOMEM;
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(w, dev_test.ibdev), 0);
	KUNIT_EXPECT_PTR_EQ(test, v->cq, w->cq);
	verbs_vi_free(w);
	verbs_vi_free(v);
}

/* A queue that the device gives up takes its VIs with it, and no other is attached. */
static void dev_cq_fails(struct kunit *test)
{
	struct ib_event event = { .device = dev_test.ibdev, .event = IB_EVENT_CQ_ERR };
	struct told told, another;
	struct verbs_vi *v = told_vi(test, &told), *w = told_vi(test, &another);
	struct ib_cq *cq;

	KUNIT_EXPECT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), 0);
	cq = v->cq->cq;
	KUNIT_ASSERT_NOT_NULL(test, cq->event_handler);
	cq->event_handler(&event, cq->cq_context);
	flush_workqueue(sovia_end_wq);
	told_expect(test, &told, -EIO);
	KUNIT_EXPECT_EQ(test, verbs_dev_attach(w, dev_test.ibdev), -ENODEV);
	verbs_vi_free(w);
	verbs_vi_free(v);
}

/* One that drains already when its device fails does not have the time of a device that works. */
static void dev_fails_while_draining(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	KUNIT_ASSERT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), 0);
	v->drain_end = jiffies + VERBS_DRAIN_TIMEOUT;
	verbs_drain_late(&v->drain_deadline.work);
	KUNIT_EXPECT_FALSE(test, v->stuck);
	KUNIT_EXPECT_TRUE(test, cancel_delayed_work_sync(&v->drain_deadline));
	WRITE_ONCE(dev_test.dev->failed, true);
	verbs_drain_late(&v->drain_deadline.work);
	KUNIT_EXPECT_TRUE(test, v->stuck);
	KUNIT_EXPECT_FALSE(test, cancel_delayed_work_sync(&v->drain_deadline));
	KUNIT_EXPECT_TRUE(test, verbs_dev_release(v));
	verbs_vi_free(v);
}

static void dev_test_disown(struct sk_buff *skb)
{
	dev_test.disowned++;
}

static void dev_test_post(struct kunit *test, struct verbs_tx *tx, unsigned int num_sge)
{
	tx->skb = alloc_skb(SOVIA_COPYBREAK, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, tx->skb);
	skb_put_u8(tx->skb, 0xa5);
	tx->skb->destructor = dev_test_disown;
	tx->num_sge = num_sge;
	sovia_object_add(mappings, num_sge);
}

/* In quarantine a VI reports its messages, and keeps what the device may still read. */
static void dev_quarantine_disowns(struct kunit *test)
{
	struct told told;
	struct verbs_vi *v = told_vi(test, &told);

	KUNIT_ASSERT_EQ(test, verbs_dev_attach(v, dev_test.ibdev), 0);
	v->ibdev = dev_test.ibdev;
	v->max_sge = 1;
	KUNIT_ASSERT_EQ(test, verbs_tx_alloc(v), 0);
	dev_test_post(test, &v->tx[0], 0);
	dev_test_post(test, &v->tx[1], 1);
	verbs_dev_quarantine(v);
	KUNIT_EXPECT_EQ(test, told.unsent, 2);
	KUNIT_EXPECT_EQ(test, dev_test.disowned, 2);
	KUNIT_EXPECT_NULL(test, v->tx[0].kept);
	KUNIT_ASSERT_NOT_NULL(test, v->tx[1].kept);
	KUNIT_EXPECT_EQ(test, v->tx[1].kept->data[0], 0xa5);
	KUNIT_EXPECT_TRUE(test, verbs_dev_release(v));
	verbs_tx_free(v);
	KUNIT_EXPECT_EQ(test, told.unsent, 2);
	verbs_vi_free(v);
}

/* A port that goes down ends what is being connected over it, and has open VIs looked at. */
static void dev_port_fails(struct kunit *test)
{
	struct ib_event event = { .device = dev_test.ibdev, .event = IB_EVENT_PORT_ERR };
	struct told told[3];
	struct verbs_vi *v[3];
	unsigned int i;

	dev_test.ibdev->attrs.max_cqe = 45;
	for (i = 0; i < ARRAY_SIZE(v); i++) {
		v[i] = told_vi(test, &told[i]);
		v[i]->port = i < 2 ? 1 : 2;
		KUNIT_ASSERT_EQ(test, verbs_dev_attach(v[i], dev_test.ibdev), 0);
	}
	WRITE_ONCE(v[1]->state, VERBS_OPEN);
	event.element.port_num = 1;
	verbs_dev_event(&dev_test.dev->events, &event);
	told_expect(test, &told[0], -EBUSY);
	told_expect(test, &told[1], 0);
	told_expect(test, &told[2], 0);
	KUNIT_EXPECT_EQ(test, told[0].doubted, 0);
	KUNIT_EXPECT_EQ(test, told[1].doubted, 1);
	KUNIT_EXPECT_EQ(test, told[2].doubted, 0);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		verbs_vi_free(v[i]);
}

static struct kunit_case dev_test_cases[] = {
	KUNIT_CASE(dev_makes_cqs_unlocked),
	KUNIT_CASE(dev_shares_cqs),
	KUNIT_CASE(dev_spreads_cqs),
	KUNIT_CASE(dev_frees_cqs),
	KUNIT_CASE(dev_lacks_cqs),
	KUNIT_CASE(dev_cq_fails),
	KUNIT_CASE(dev_fails_while_draining),
	KUNIT_CASE(dev_quarantine_disowns),
	KUNIT_CASE(dev_port_fails),
	{}
};

struct kunit_suite sovia_verbs_dev_suite = {
	.name = "sovia-verbs_dev",
	.init = dev_test_init,
	.exit = dev_test_exit,
	.test_cases = dev_test_cases,
};

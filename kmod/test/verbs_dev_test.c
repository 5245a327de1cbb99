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
 * @locked: one was made with the device lock held
 * @cqs: the module's parameter
 */
static struct dev_test {
	struct ib_device	*ibdev;
	struct verbs_dev	*dev;
	int			err;
	int			made;
	bool			locked;
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
	return dev_test.err;
}

static int dev_test_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
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

static struct kunit_case dev_test_cases[] = {
	KUNIT_CASE(dev_makes_cqs_unlocked),
	KUNIT_CASE(dev_shares_cqs),
	KUNIT_CASE(dev_lacks_cqs),
	KUNIT_CASE(dev_cq_fails),
	{}
};

struct kunit_suite sovia_verbs_dev_suite = {
	.name = "sovia-verbs_dev",
	.init = dev_test_init,
	.exit = dev_test_exit,
	.test_cases = dev_test_cases,
};

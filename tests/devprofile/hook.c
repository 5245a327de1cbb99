// SPDX-License-Identifier: GPL-2.0-only
/*
 * For tests without the hardware: rxe and siw look to the kernel's users of RDMA, and behave
 * where it matters to them, as devices of another driver (profile.c).
 *
 * A probe at the entry of ib_register_device() replaces operations of the device, before the
 * RDMA core has looked at it.  One at ib_device_get_by_netdev() hides the network device of those
 * whose drivers do not register it there: from others than the software device itself, which
 * looks itself up for each packet.
 *
 * To be loaded after ib_core and before the device is made; it stays while there is one.  For
 * x86-64, where arguments are in registers.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#include "devprofile.h"

/* Devices with a profile at a time. */
#define DP_DEVS		64
#define DP_NAME_LEN	16

static char profile_name[DP_NAME_LEN];
module_param_string(profile, profile_name, sizeof(profile_name), 0644);
MODULE_PARM_DESC(profile, "name of the profile of devices that are made from now on, empty: none");

static unsigned int applied;
module_param(applied, uint, 0444);
MODULE_PARM_DESC(applied, "how many devices got one");

static struct dp_dev devs[DP_DEVS];
static DEFINE_RAW_SPINLOCK(devs_lock);	/* which entries are free */
static atomic_t hidden = ATOMIC_INIT(0);

/**
 * dp_dev() - find the profile of a device
 * @ibdev: a device that has one
 *
 * Context: any.
 * Return: its entry, which stays until dp_dev_gone().
 */
struct dp_dev *dp_dev(const struct ib_device *ibdev)
{
	struct dp_dev *dp;

	for (dp = devs; dp < devs + DP_DEVS; dp++)
		if (READ_ONCE(dp->ibdev) == ibdev)
			return dp;
	/* Only operations of such devices ask. */
	BUG();
}

/**
 * dp_dev_named() - find a device with a profile
 * @name: its name
 *
 * Context: any; the caller sees that the device stays.
 * Return: its entry, or NULL if there is none.
 */
struct dp_dev *dp_dev_named(const char *name)
{
	struct dp_dev *dp;

	for (dp = devs; dp < devs + DP_DEVS; dp++)
		if (dp->ibdev && !strcmp(dev_name(&dp->ibdev->dev), name))
			return dp;

	return NULL;
}

/**
 * dp_dev_gone() - a device goes
 * @dp: its entry, which may be another device's after this
 *
 * Context: process.
 */
void dp_dev_gone(struct dp_dev *dp)
{
	if (dp->profile->hide)
		atomic_dec(&hidden);
	WRITE_ONCE(dp->ibdev, NULL);
	module_put(THIS_MODULE);
}

static struct dp_dev *dp_take(struct ib_device *ibdev, const struct dp_profile *profile)
{
	struct dp_dev *dp, *found = NULL;

	raw_spin_lock(&devs_lock);
	for (dp = devs; dp < devs + DP_DEVS && !found; dp++)
		if (!dp->ibdev)
			found = dp;
	if (found) {
		found->profile = profile;
		found->orig = ibdev->ops;
		atomic_set(&found->qps, 0);
		found->dead = false;
		found->slow = false;
		found->cq = NULL;
		found->failed_cq = NULL;
		WRITE_ONCE(found->ibdev, ibdev);
	}
	raw_spin_unlock(&devs_lock);
	return found;
}

/* At the entry of ib_register_device(device, name, dma_device). */
static int register_entry(struct kprobe *probe, struct pt_regs *regs)
{
	struct ib_device *ibdev = (struct ib_device *)regs->di;
	const struct dp_profile *profile;
	struct dp_dev *dp;

	if (!profile_name[0])
		return 0;
	profile = dp_profile_find(profile_name);
	if (!profile || profile->base != ibdev->ops.driver_id) {
		pr_err("no profile %s for this device\n", profile_name);
		return 0;
	}
	dp = dp_take(ibdev, profile);
	if (!dp) {
		pr_err("too many devices\n");
		return 0;
	}
	__module_get(THIS_MODULE);
	if (profile->hide)
		atomic_inc(&hidden);
	dp_wrap(dp);
	if (dp_dma_device())
		regs->dx = (unsigned long)dp_dma_device();
	applied++;
	return 0;
}

/* At the entry of ib_device_get_by_netdev(ndev, driver_id): drivers look for their own devices. */
static int by_netdev_entry(struct kprobe *probe, struct pt_regs *regs)
{
	if (atomic_read(&hidden) && (u32)regs->si == RDMA_DRIVER_UNKNOWN)
		regs->di = 0;
	return 0;
}

static struct kprobe probes[] = {
	{ .symbol_name = "ib_register_device", .pre_handler = register_entry },
	{ .symbol_name = "ib_device_get_by_netdev", .pre_handler = by_netdev_entry },
};

static int __init dp_init(void)
{
	struct kprobe *list[ARRAY_SIZE(probes)];
	unsigned int i;
	int err;

	if (profile_name[0] && !dp_profile_find(profile_name)) {
		pr_err("no profile %s\n", profile_name);
		return -EINVAL;
	}
	err = dp_dma_init();
	if (err) {
		dp_dma_exit();
		return err;
	}
	dp_inject_init();
	for (i = 0; i < ARRAY_SIZE(probes); i++)
		list[i] = &probes[i];
	err = register_kprobes(list, ARRAY_SIZE(list));
	if (err) {
		dp_inject_exit();
		dp_dma_exit();
	}
	return err;
}

static void __exit dp_exit(void)
{
	struct kprobe *list[ARRAY_SIZE(probes)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		list[i] = &probes[i];
	unregister_kprobes(list, ARRAY_SIZE(list));
	dp_inject_exit();
	dp_dma_exit();
}

module_init(dp_init);
module_exit(dp_exit);
MODULE_DESCRIPTION("Software RDMA devices with the limits of hardware, for tests");
MODULE_LICENSE("GPL");

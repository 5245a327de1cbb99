// SPDX-License-Identifier: GPL-2.0-only
/*
 * driver_call: calls a PCI device's driver as the kernel does when the system sleeps, wakes up or
 * is shut down.  The lab's guests cannot do that as a whole: their file system is a virtio device
 * that does not survive it.
 *
 *	insmod driver_call.ko device=0000:00:05.0 call=suspend
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm.h>

static char *device;
module_param(device, charp, 0);
MODULE_PARM_DESC(device, "name of the PCI device");

static char *call;
module_param(call, charp, 0);
MODULE_PARM_DESC(call, "suspend, resume, freeze, thaw, poweroff, restore or shutdown");

static int call_shutdown(struct pci_dev *pdev)
{
	const struct pci_driver *driver = to_pci_driver(pdev->dev.driver);

	if (!driver->shutdown)
		return -EOPNOTSUPP;
	driver->shutdown(pdev);
	return 0;
}

static int call_pm(struct device *dev, const struct dev_pm_ops *ops)
{
	const struct {
		const char	*name;
		int		(*call)(struct device *dev);
	} calls[] = {
		{ "suspend", ops->suspend }, { "resume", ops->resume }, { "freeze", ops->freeze },
		{ "thaw", ops->thaw }, { "poweroff", ops->poweroff }, { "restore", ops->restore },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(calls); i++)
		if (!strcmp(calls[i].name, call))
			return calls[i].call ? calls[i].call(dev) : -EOPNOTSUPP;
	return -EINVAL;
}

static int call_driver(struct device *dev)
{
	if (!dev->driver)
		return -ENODEV;
	if (!strcmp(call, "shutdown"))
		return call_shutdown(to_pci_dev(dev));
	return dev->driver->pm ? call_pm(dev, dev->driver->pm) : -EOPNOTSUPP;
}

static int __init driver_call_init(void)
{
	struct device *dev;
	int err;

	if (!device || !call)
		return -EINVAL;
	dev = bus_find_device_by_name(&pci_bus_type, NULL, device);
	if (!dev)
		return -ENODEV;
	device_lock(dev);
	err = call_driver(dev);
	device_unlock(dev);
	put_device(dev);
	return err;
}

static void __exit driver_call_exit(void)
{
}

module_init(driver_call_init);
module_exit(driver_call_exit);

MODULE_DESCRIPTION("calls of a PCI driver that come when the system sleeps");
MODULE_LICENSE("GPL");

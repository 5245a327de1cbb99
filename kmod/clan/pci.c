// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memories that are PCI devices: QEMU's ivshmem-doorbell, with the memory of sovia-clan-server.
 *
 * Other memory of such a device is left to whatever uses it: its header tells.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": clan: " fmt

#include <linux/cc_platform.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "clan.h"
#include "core/param.h"

/* QEMU's docs/specs/ivshmem-spec. */
#define IVSHMEM_REGS		0
#define IVSHMEM_MEMORY		2
#define IVSHMEM_POSITION	0x08
#define IVSHMEM_DOORBELL	0x0c

/* The least of some copies counts: others may have been interrupted, or found no page. */
#define CLAN_COPY_BYTES		65536u
#define CLAN_COPIES		8

static bool clan_insecure;
module_param(clan_insecure, bool, 0444);
MODULE_PARM_DESC(clan_insecure, "use memory of the host in a guest whose own memory is hidden from it (N)");

static unsigned int clan_speed = 10;
sovia_param(clan_speed, clan_speed, 0, 100000, 0644);
MODULE_PARM_DESC(clan_speed, "percent of the speed of ordinary memory below which shared memory is not used (10)");

/**
 * struct clan_pci - a device
 * @pdev: it
 * @regs: its registers
 * @memory: its memory
 * @irq: its interrupt
 * @number: of our node
 * @present: where the server says whether there is one with this number
 * @given: what it said when the number was given to us
 * @port: our node; NULL while the system sleeps, or another machine has the number
 * @watch: looks each second whether it is
 *
 * @port is changed by the driver's calls and by @watch, which does not run during those.
 */
struct clan_pci {
	struct pci_dev		*pdev;
	void __iomem		*regs;
	void			*memory;
	int			irq;
	u32			number;
	const __le32		*present;
	__le32			given;
	struct sovia_clan_port	*port;
	struct delayed_work	watch;
};

static void pci_doorbell(struct sovia_clan_port *port, u32 node)
{
	const struct clan_pci *cp = port->device;

	/* A vector each. */
	writel(node << 16, cp->regs + IVSHMEM_DOORBELL);
}

static void pci_mute(struct sovia_clan_port *port, bool mute)
{
	const struct clan_pci *cp = port->device;

	if (mute)
		disable_irq_nosync(cp->irq);
	else
		enable_irq(cp->irq);
}

static irqreturn_t pci_rung(int irq, void *port)
{
	sovia_clan_port_interrupt(port);
	return IRQ_HANDLED;
}

/* What is sent could be read and changed by the host, from which this guest is protected. */
static bool clan_pci_exposes(void)
{
	return cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT) && !clan_insecure;
}

/* ---- how fast is it --------------------------------------------------------------- */

/* Returns nanoseconds. */
static u64 copy_time(void *to, const void *from)
{
	u64 best = U64_MAX, begun;
	int i;

	for (i = 0; i < CLAN_COPIES; i++) {
		begun = ktime_get_ns();
		memcpy(to, from, CLAN_COPY_BYTES);
		barrier_data(to);
		best = min(best, ktime_get_ns() - begun);
	}
	return max_t(u64, best, 1);
}

static u64 megabytes_per_second(u64 ns)
{
	return div64_u64(CLAN_COPY_BYTES * 1000ull, ns);
}

/* Returns 0, or -ENODEV if it is too slow. */
static int compare_speed(struct clan_pci *cp, const void *shared, void *to, const void *ordinary)
{
	u64 ordinary_ns = copy_time(to, ordinary);
	u64 shared_ns = copy_time(to, shared);

	if (ordinary_ns * 100 >= shared_ns * clan_speed)
		return 0;
	pci_warn(cp->pdev, "not used, its memory is slow: %llu MB/s, ordinary memory %llu, see clan_speed\n",
		 megabytes_per_second(shared_ns), megabytes_per_second(ordinary_ns));
	return -ENODEV;
}

/*
 * The firmware may have had the processor not cache it, and no mapping of ours overrides that.
 * It is only read: other nodes may still be reading what an earlier kernel of this machine has
 * written.  Returns 0, -ENODEV if it is too slow, or -ENOMEM.
 */
static int check_speed(struct clan_pci *cp, const void *shared)
{
	void *to = kvmalloc(CLAN_COPY_BYTES, GFP_KERNEL);
	void *ordinary = kvzalloc(CLAN_COPY_BYTES, GFP_KERNEL);
	int err = -ENOMEM;

	if (to && ordinary)
		err = compare_speed(cp, shared, to, ordinary);
	kvfree(ordinary);
	kvfree(to);
	return err;
}

/* ---- our node comes and goes ------------------------------------------------------- */

/*
 * Is the number still ours?  The server gives it to another node when it takes us for gone, and
 * an image that is resumed from disk finds the number of another device.
 */
static bool is_ours(const struct clan_pci *cp)
{
	return readl(cp->regs + IVSHMEM_POSITION) == cp->number &&
	       READ_ONCE(*cp->present) == cp->given;
}

static struct sovia_clan_port *port_make(struct clan_pci *cp)
{
	struct sovia_clan_port *port;

	port = sovia_clan_port_alloc(cp->memory, pci_resource_len(cp->pdev, IVSHMEM_MEMORY),
				     cp->number);
	if (IS_ERR(port))
		return port;
	if (!cp->given || port->given != cp->given) {
		sovia_clan_port_free(port);
		return ERR_PTR(-ESTALE);
	}
	port->net = &init_net;
	port->prov = &sovia_clan_provider;
	port->doorbell = pci_doorbell;
	port->mute = pci_mute;
	/* Less than a doorbell and the interrupt take. */
	port->linger = 30 * NSEC_PER_USEC;
	port->device = cp;
	return port;
}

/* Take part as the node that we are.  Returns 0 or a negative errno. */
static int clan_pci_join(struct clan_pci *cp)
{
	struct sovia_clan_port *port = port_make(cp);
	int err;

	if (IS_ERR(port))
		return PTR_ERR(port);
	err = request_irq(cp->irq, pci_rung, 0, pci_name(cp->pdev), port);
	if (err) {
		sovia_clan_port_free(port);
		return err;
	}
	cp->port = port;
	sovia_clan_port_begin(port);
	sovia_clan_way_add(port);
	pci_info(cp->pdev, "node %u of %u in memory %pU\n", port->number, port->geometry.nodes,
		 port->geometry.uuid);
	return 0;
}

/* Is it a memory of ours, and which node are we?  Returns 0 or a negative errno. */
static int clan_pci_look(struct clan_pci *cp)
{
	struct sovia_clan_geometry geometry;
	u32 number;
	int err;

	err = sovia_clan_check_header(cp->memory, pci_resource_len(cp->pdev, IVSHMEM_MEMORY),
				      &geometry);
	if (err)
		return err;
	number = readl(cp->regs + IVSHMEM_POSITION);
	if (number >= geometry.nodes)
		return -ERANGE;
	err = check_speed(cp, cp->memory + sovia_clan_pool_at(&geometry, number));
	if (err)
		return err;
	cp->number = number;
	cp->present = sovia_clan_present(cp->memory, number);
	cp->given = READ_ONCE(*cp->present);
	return 0;
}

static void clan_pci_leave(struct clan_pci *cp)
{
	if (!cp->port)
		return;
	sovia_clan_way_remove(cp->port);
	sovia_clan_port_stop(cp->port);
	free_irq(cp->irq, cp->port);
	sovia_clan_port_free(cp->port);
	cp->port = NULL;
}

/* It may block until VIs have ended. */
static void watch_again(struct clan_pci *cp)
{
	queue_delayed_work(system_long_wq, &cp->watch, HZ);
}

static void warn_of_loss(const struct clan_pci *cp)
{
	pci_warn(cp->pdev, "another machine is node %u now, leaving the memory\n",
		 cp->number);
}

/* Any that has the memory may write what the server says, which the server sets right again. */
static void pci_watch(struct work_struct *work)
{
	struct clan_pci *cp = container_of(to_delayed_work(work), struct clan_pci, watch);
	bool ours = is_ours(cp);

	if (cp->port && (!ours || READ_ONCE(cp->port->lost))) {
		warn_of_loss(cp);
		clan_pci_leave(cp);
	} else if (!cp->port && ours) {
		clan_pci_join(cp);
	}
	watch_again(cp);
}

/* ---- the driver -------------------------------------------------------------------- */

/* All of it is undone when the driver leaves the device.  Returns 0 or a negative errno. */
static int clan_pci_map(struct clan_pci *cp)
{
	struct pci_dev *pdev = cp->pdev;
	resource_size_t at = pci_resource_start(pdev, IVSHMEM_MEMORY);
	resource_size_t size = pci_resource_len(pdev, IVSHMEM_MEMORY);
	int err;

	err = pcim_enable_device(pdev) ?:
	      pcim_iomap_regions(pdev, BIT(IVSHMEM_REGS), KBUILD_MODNAME);
	if (err)
		return err;
	cp->regs = pcim_iomap_table(pdev)[IVSHMEM_REGS];
	if (!devm_request_mem_region(&pdev->dev, at, size, KBUILD_MODNAME))
		return -EBUSY;
	/* Both ends are in the host's memory: no other attribute is coherent with theirs. */
	cp->memory = devm_memremap(&pdev->dev, at, size, MEMREMAP_WB);
	return PTR_ERR_OR_ZERO(cp->memory);
}

static int interrupt_make(struct clan_pci *cp)
{
	int err;

	/* Without it there are no interrupts. */
	pci_set_master(cp->pdev);
	err = pci_alloc_irq_vectors(cp->pdev, 1, 1, PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	cp->irq = pci_irq_vector(cp->pdev, 0);
	return 0;
}

static int pci_begin(struct clan_pci *cp)
{
	/* Before anything of it is looked at. */
	if (clan_pci_exposes())
		return -EPERM;
	return clan_pci_map(cp) ?: clan_pci_look(cp) ?: interrupt_make(cp) ?: clan_pci_join(cp);
}

static int clan_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct clan_pci *cp = devm_kzalloc(&pdev->dev, sizeof(*cp), GFP_KERNEL);
	int err;

	if (!cp)
		return -ENOMEM;
	cp->pdev = pdev;
	INIT_DELAYED_WORK(&cp->watch, pci_watch);
	err = pci_begin(cp);
	if (err) {
		if (err != -ENODEV)
			pci_warn(pdev, "cannot use its memory: %pe\n", ERR_PTR(err));
		return err;
	}
	pci_set_drvdata(pdev, cp);
	watch_again(cp);
	return 0;
}

/* Others learn at once that the node has gone. */
static void clan_leave(struct pci_dev *pdev)
{
	struct clan_pci *cp = pci_get_drvdata(pdev);

	cancel_delayed_work_sync(&cp->watch);
	clan_pci_leave(cp);
}

static int clan_suspend(struct device *dev)
{
	clan_leave(to_pci_dev(dev));
	return 0;
}

/* From memory: the device is the same, but the server may have taken us for gone. */
static int clan_resume(struct device *dev)
{
	struct clan_pci *cp = dev_get_drvdata(dev);

	if (!is_ours(cp))
		warn_of_loss(cp);
	/* It does what there is to do. */
	mod_delayed_work(system_long_wq, &cp->watch, 0);
	return 0;
}

/* From disk: QEMU is another one, which may have another number. */
static int clan_restore(struct device *dev)
{
	struct clan_pci *cp = dev_get_drvdata(dev);
	int err = clan_pci_look(cp) ?: clan_pci_join(cp);

	if (err)
		pci_warn(cp->pdev, "cannot use its memory: %pe\n", ERR_PTR(err));
	watch_again(cp);
	return 0;
}

static const struct dev_pm_ops clan_pm_ops = {
	.suspend	= pm_sleep_ptr(clan_suspend),
	.resume		= pm_sleep_ptr(clan_resume),
	.freeze		= pm_sleep_ptr(clan_suspend),
	.thaw		= pm_sleep_ptr(clan_resume),
	.poweroff	= pm_sleep_ptr(clan_suspend),
	.restore	= pm_sleep_ptr(clan_restore),
};

/* Not for modalias: a device says nothing of what its memory is for. */
static const struct pci_device_id clan_ids[] = {
	{ PCI_VDEVICE(REDHAT_QUMRANET, 0x1110) },
	{}
};

static struct pci_driver clan_driver = {
	.name		= "sovia-clan",
	.id_table	= clan_ids,
	.probe		= clan_probe,
	.remove		= clan_leave,
	.shutdown	= clan_leave,
	.driver.pm	= pm_sleep_ptr(&clan_pm_ops),
};

/**
 * sovia_clan_pci_init() - take the devices that are there, and those that come
 *
 * Context: module init.
 * Return: 0 or a negative errno.
 */
int sovia_clan_pci_init(void)
{
	return pci_register_driver(&clan_driver);
}

/**
 * sovia_clan_pci_exit() - leave the devices
 *
 * Context: module exit; there are no VIs.
 */
void sovia_clan_pci_exit(void)
{
	pci_unregister_driver(&clan_driver);
}

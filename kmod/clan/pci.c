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
#include <linux/module.h>
#include <linux/pci.h>
#include <net/net_namespace.h>
#include "clan/clan.h"

/* QEMU's docs/specs/ivshmem-spec. */
#define PCI_DEVICE_ID_IVSHMEM	0x1110
#define IVSHMEM_REGS		0
#define IVSHMEM_MEMORY		2
#define IVSHMEM_POSITION	0x08
#define IVSHMEM_DOORBELL	0x0c

static bool clan_insecure;
module_param(clan_insecure, bool, 0444);
MODULE_PARM_DESC(clan_insecure, "use memory of the host in a guest whose own memory is hidden from it (N)");

/**
 * struct clan_pci - a device
 * @port: our node in its memory
 * @regs: its registers
 * @memory: its memory
 * @irq: its interrupt
 */
struct clan_pci {
	struct sovia_clan_port	*port;
	void __iomem		*regs;
	void			*memory;
	int			irq;
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

static int map(struct clan_pci *cp, struct pci_dev *pdev)
{
	cp->regs = pci_ioremap_bar(pdev, IVSHMEM_REGS);
	if (!cp->regs)
		return -ENOMEM;
	/* Both ends are in the host's memory: no other attribute is coherent with theirs. */
	cp->memory = memremap(pci_resource_start(pdev, IVSHMEM_MEMORY),
			      pci_resource_len(pdev, IVSHMEM_MEMORY), MEMREMAP_WB);
	if (cp->memory)
		return 0;
	iounmap(cp->regs);
	return -ENOMEM;
}

static void unmap(struct clan_pci *cp)
{
	memunmap(cp->memory);
	iounmap(cp->regs);
}

/* What is sent could be read and changed by the host, from which this guest is protected. */
static bool exposes(void)
{
	return cc_platform_has(CC_ATTR_GUEST_MEM_ENCRYPT) && !clan_insecure;
}

static int port_make(struct clan_pci *cp, struct pci_dev *pdev)
{
	cp->port = sovia_clan_port_alloc(cp->memory, pci_resource_len(pdev, IVSHMEM_MEMORY),
					 readl(cp->regs + IVSHMEM_POSITION));
	if (IS_ERR(cp->port))
		return PTR_ERR(cp->port);
	if (exposes()) {
		sovia_clan_port_stop(cp->port);
		sovia_clan_port_free(cp->port);
		return -EPERM;
	}
	cp->port->net = &init_net;
	cp->port->prov = &sovia_clan_provider;
	cp->port->doorbell = pci_doorbell;
	cp->port->mute = pci_mute;
	/* Less than a doorbell and the interrupt take. */
	cp->port->linger = 30 * NSEC_PER_USEC;
	cp->port->device = cp;
	return 0;
}

static int interrupt_make(struct clan_pci *cp, struct pci_dev *pdev)
{
	int err;

	err = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSIX);
	if (err < 0)
		return err;
	cp->irq = pci_irq_vector(pdev, 0);
	err = request_irq(cp->irq, pci_rung, 0, KBUILD_MODNAME, cp->port);
	if (err)
		pci_free_irq_vectors(pdev);
	return err;
}

/* Its registers and memory are ours.  Returns 0 or a negative errno. */
static int begin(struct clan_pci *cp, struct pci_dev *pdev)
{
	int err;

	err = map(cp, pdev);
	if (err)
		return err;
	err = port_make(cp, pdev);
	if (err)
		goto undo_map;
	/* Without it there are no interrupts. */
	pci_set_master(pdev);
	err = interrupt_make(cp, pdev);
	if (err)
		goto undo_port;
	sovia_clan_port_begin(cp->port);
	sovia_clan_way_add(cp->port);
	return 0;

undo_port:
	pci_clear_master(pdev);
	sovia_clan_port_stop(cp->port);
	sovia_clan_port_free(cp->port);
undo_map:
	unmap(cp);
	return err;
}

static int pci_begin(struct pci_dev *pdev, struct clan_pci *cp)
{
	int err;

	err = pci_enable_device(pdev);
	if (err)
		return err;
	err = pci_request_regions(pdev, KBUILD_MODNAME);
	if (err)
		goto undo_enable;
	err = begin(cp, pdev);
	if (!err)
		return 0;
	pci_release_regions(pdev);
undo_enable:
	pci_disable_device(pdev);
	return err;
}

static int clan_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct clan_pci *cp = kzalloc(sizeof(*cp), GFP_KERNEL);
	int err;

	if (!cp)
		return -ENOMEM;
	err = pci_begin(pdev, cp);
	if (err) {
		if (err != -ENODEV)
			pci_warn(pdev, "cannot use its memory: %pe\n", ERR_PTR(err));
		kfree(cp);
		return err;
	}
	pci_set_drvdata(pdev, cp);
	pci_info(pdev, "node %u of %u in memory %pU\n", cp->port->number,
		 cp->port->geometry.nodes, cp->port->geometry.uuid);
	return 0;
}

static void clan_remove(struct pci_dev *pdev)
{
	struct clan_pci *cp = pci_get_drvdata(pdev);

	sovia_clan_way_remove(cp->port);
	sovia_clan_port_stop(cp->port);
	free_irq(cp->irq, cp->port);
	pci_free_irq_vectors(pdev);
	pci_clear_master(pdev);
	sovia_clan_port_free(cp->port);
	unmap(cp);
	pci_release_regions(pdev);
	pci_disable_device(pdev);
	kfree(cp);
}

/* Not for modalias: a device says nothing of what its memory is for. */
static const struct pci_device_id clan_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_REDHAT_QUMRANET, PCI_DEVICE_ID_IVSHMEM) },
	{}
};

static struct pci_driver clan_driver = {
	.name		= "sovia-clan",
	.id_table	= clan_ids,
	.probe		= clan_probe,
	.remove		= clan_remove,
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

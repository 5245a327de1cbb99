// SPDX-License-Identifier: GPL-2.0-only
/*
 * Real DMA mappings for software devices: the kernel's users map their memory for another device,
 * whose addresses are translated back before the software device sees them.  So bounce buffers
 * (swiotlb=force), a lazily flushed IOMMU (intel-iommu) and DMA_API_DEBUG see what they would see
 * of a card: a missing sync is wrong bytes, a mapping that is not there a fault.  Addresses are
 * translated when a descriptor is posted: what is unmapped between that and its completion is not
 * found by the IOMMU, but by DMA_API_DEBUG when the memory is freed or by the bytes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/sizes.h>
#include <linux/swiotlb.h>

#include "devprofile.h"

/* QEMU's device without a driver. */
#define DP_EDU_VENDOR	0x1234
#define DP_EDU_DEVICE	0x11e8

static char dma[16];
module_param_string(dma, dma, sizeof(dma), 0444);
MODULE_PARM_DESC(dma, "memory is mapped for a device as it is (plain), with bounce buffers (swiotlb), or with an IOMMU (pci), empty: not at all");

static struct platform_device *platform;
static struct pci_dev *pci;

/**
 * dp_dma_device() - the device that memory is mapped for
 *
 * Context: any.
 * Return: it, or NULL if none is wanted.
 */
struct device *dp_dma_device(void)
{
	if (platform)
		return &platform->dev;
	return pci ? &pci->dev : NULL;
}

/**
 * dp_dma_virt() - where the memory is that the device accesses
 * @addr: its address for the device
 *
 * Context: any; there is a device.
 * Return: the kernel's address, or NULL: it would have a fault.
 */
void *dp_dma_virt(u64 addr)
{
	struct device *dev = dp_dma_device();
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);
	phys_addr_t phys = domain ? iommu_iova_to_phys(domain, addr) : dma_to_phys(dev, addr);

	return phys ? phys_to_virt(phys) : NULL;
}

/* Returns 0, -EINVAL, or -EFAULT if something is not mapped. */
static int translate(struct ib_sge *to, const struct ib_sge *from, int count)
{
	int i;

	if (WARN_ON_ONCE(count > DP_SGES))
		return -EINVAL;
	for (i = 0; i < count; i++) {
		void *virt = dp_dma_virt(from[i].addr);

		if (WARN(!virt, "nothing is mapped at %llx", from[i].addr))
			return -EFAULT;
		to[i] = from[i];
		to[i].addr = (uintptr_t)virt;
	}
	return 0;
}

/**
 * dp_dma_post_send() - post_send of a queue pair whose memory is mapped
 * @dp: its device
 * @qp: the queue pair, of a kernel user
 * @wr: descriptors
 * @bad_wr: set to the one that failed
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
int dp_dma_post_send(struct dp_dev *dp, struct ib_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr)
{
	bool datagrams = qp->qp_type == IB_QPT_UD || qp->qp_type == IB_QPT_GSI;
	struct ib_sge sge[DP_SGES];
	const struct ib_send_wr *bad;
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		struct ib_ud_wr copy = {};

		/* Others that the kernel's users of these tests post have nothing behind it. */
		if (datagrams)
			copy = *ud_wr(wr);
		else
			copy.wr = *wr;
		copy.wr.next = NULL;
		if (!(wr->send_flags & IB_SEND_INLINE)) {
			err = translate(sge, wr->sg_list, wr->num_sge);
			copy.wr.sg_list = sge;
		}
		err = err ?: dp->orig.post_send(qp, &copy.wr, &bad);
		if (err)
			*bad_wr = wr;
	}
	return err;
}

/**
 * dp_dma_post_recv() - post_recv of a queue pair whose memory is mapped
 * @dp: its device
 * @qp: the queue pair, of a kernel user
 * @wr: descriptors
 * @bad_wr: set to the one that failed
 *
 * Context: any.
 * Return: 0 or a negative errno.
 */
int dp_dma_post_recv(struct dp_dev *dp, struct ib_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr)
{
	struct ib_sge sge[DP_SGES];
	const struct ib_recv_wr *bad;
	int err = 0;

	for (; wr && !err; wr = wr->next) {
		struct ib_recv_wr copy = *wr;

		copy.next = NULL;
		copy.sg_list = sge;
		err = translate(sge, wr->sg_list, wr->num_sge);
		err = err ?: dp->orig.post_recv(qp, &copy, &bad);
		if (err)
			*bad_wr = wr;
	}
	return err;
}

/* As a card's. */
static int dma_limits(struct device *dev)
{
	dma_set_max_seg_size(dev, SZ_2G);
	return dma_coerce_mask_and_coherent(dev, DMA_BIT_MASK(64));
}

static int dma_init_platform(bool bounce)
{
	platform = platform_device_register_simple(KBUILD_MODNAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(platform)) {
		platform = NULL;
		return -ENODEV;
	}
	if (bounce && !is_swiotlb_force_bounce(&platform->dev)) {
		pr_err("no bounce buffers: swiotlb=force\n");
		return -ENODEV;
	}
	return dma_limits(&platform->dev);
}

static int dma_init_pci(void)
{
	struct iommu_domain *domain;

	pci = pci_get_device(DP_EDU_VENDOR, DP_EDU_DEVICE, NULL);
	if (!pci)
		return -ENODEV;
	/* Otherwise there is no domain that maps. */
	domain = iommu_get_domain_for_dev(&pci->dev);
	if (!domain || domain->type == IOMMU_DOMAIN_IDENTITY) {
		pr_err("no IOMMU: intel_iommu=on\n");
		return -ENODEV;
	}
	return dma_limits(&pci->dev);
}

/**
 * dp_dma_init() - find the device that memory is mapped for
 *
 * Context: module init.
 * Return: 0 or a negative errno; dp_dma_exit() cleans up in both cases.
 */
int dp_dma_init(void)
{
	if (!dma[0])
		return 0;
	if (!strcmp(dma, "plain") || !strcmp(dma, "swiotlb"))
		return dma_init_platform(!strcmp(dma, "swiotlb"));
	return strcmp(dma, "pci") ? -EINVAL : dma_init_pci();
}

/**
 * dp_dma_exit() - release it
 *
 * Context: module exit; nothing is mapped.
 */
void dp_dma_exit(void)
{
	if (platform)
		platform_device_unregister(platform);
	if (pci)
		pci_dev_put(pci);
}

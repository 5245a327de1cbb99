/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.11 changed the last parameter of ib_device_ops::create_cq. */
#ifndef _SOVIA_COMPAT_RDMA_H
#define _SOVIA_COMPAT_RDMA_H

#include <linux/version.h>
#include <rdma/ib_verbs.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
#define sovia_create_cq_data	ib_udata
#else
#define sovia_create_cq_data	uverbs_attr_bundle
#endif

#endif /* _SOVIA_COMPAT_RDMA_H */

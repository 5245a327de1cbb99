// SPDX-License-Identifier: GPL-2.0-only
/*
 * The profiles: limits as the drivers of Linux 6.1 to 7.2 have them.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "devprofile.h"

static const struct dp_profile profiles[] = {
	{
		.name = "mlx5", .base = RDMA_DRIVER_RXE, .hide = true,
		.send_sge = 30, .recv_sge = 32, .max_inline = 512, .inline_mode = DP_CLIP,
		.qp_wr = 32768, .vectors = 8,
	}, {
		.name = "mlx4", .base = RDMA_DRIVER_RXE, .hide = true,
		.send_sge = 32, .recv_sge = 32, .max_inline = 0, .inline_mode = DP_CLIP,
		.qp_wr = 16351, .vectors = 4,
	}, {
		.name = "e810", .base = RDMA_DRIVER_RXE,
		.send_sge = 13, .recv_sge = 13, .max_inline = 101, .qp_wr = 4096,
	}, {
		.name = "bnxt", .base = RDMA_DRIVER_RXE,
		.send_sge = 6, .recv_sge = 6, .max_inline = 96, .qp_wr = 8192,
		/* Its firmware has not answered, but it flushes in software. */
		.modify_err = -ETIMEDOUT,
	}, {
		.name = "hns", .base = RDMA_DRIVER_RXE,
		.send_sge = 32, .recv_sge = 32, .max_inline = 32, .inline_mode = DP_CLIP,
		.qp_wr = 32768,
	}, {
		.name = "qedr", .base = RDMA_DRIVER_RXE,
		.send_sge = 4, .recv_sge = 4, .max_inline = 256, .qp_wr = 32767,
		.keeps_init = true,
	}, {
		.name = "x722", .base = RDMA_DRIVER_SIW, .port_mapper = true,
		.send_sge = 3, .recv_sge = 3, .max_inline = 48, .qp_wr = 2048, .quanta = 4,
	}, {
		.name = "chelsio", .base = RDMA_DRIVER_SIW, .port_mapper = true,
		.send_sge = 6, .recv_sge = 4, .max_inline = 280, .qp_wr = 8191,
		/* The peer has ended it before: it flushes by itself. */
		.modify_err = -EINVAL,
	}, {
		.name = "erdma", .base = RDMA_DRIVER_RXE,
		.send_sge = 6, .recv_sge = 1, .max_inline = 96, .qp_wr = 8192,
	}, {
		.name = "mana612", .base = RDMA_DRIVER_RXE, .no_kverbs = true,
		.inline_mode = DP_CLIP,
	}, {
		.name = "mana72", .base = RDMA_DRIVER_RXE, .no_rc = true,
		.inline_mode = DP_CLIP,
	}, {
		.name = "usnic", .base = RDMA_DRIVER_RXE, .no_kverbs = true, .raw_only = true,
		.inline_mode = DP_CLIP,
	}, {
		.name = "representor", .base = RDMA_DRIVER_RXE, .raw_only = true,
		.send_sge = 30, .recv_sge = 32, .inline_mode = DP_CLIP,
	}, {
		.name = "cx4-vf", .base = RDMA_DRIVER_RXE,
		.send_sge = 30, .recv_sge = 32, .max_inline = 512, .inline_mode = DP_CLIP,
		.qp_wr = 8192, .qps = 24, .cqe = 8191, .vectors = 1,
	}, {
		/* No driver's: to count what a message costs without its device (direct.c). */
		.name = "nic", .base = RDMA_DRIVER_RXE, .direct = true,
		.send_sge = 30, .recv_sge = 32, .max_inline = 256, .inline_mode = DP_CLIP,
		.qp_wr = 32768, .vectors = 8,
	},
};

/**
 * dp_profile_find() - find a profile
 * @name: its name
 *
 * Context: any.
 * Return: the profile, or NULL if there is none of this name.
 */
const struct dp_profile *dp_profile_find(const char *name)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(profiles); i++)
		if (!strcmp(profiles[i].name, name))
			return &profiles[i];
	return NULL;
}

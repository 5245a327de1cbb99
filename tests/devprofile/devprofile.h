/* SPDX-License-Identifier: GPL-2.0-only */
/* A software RDMA device that looks like a named driver's. */
#ifndef _DEVPROFILE_H
#define _DEVPROFILE_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* Pieces of a descriptor. */
#define DP_SGES		33

/**
 * enum dp_inline - what create_qp() does with more inline data than the device has
 * @DP_REFUSE: -EINVAL
 * @DP_CLIP: gives what it has
 */
enum dp_inline {
	DP_REFUSE,
	DP_CLIP,
};

/**
 * struct dp_profile - what a driver's devices are like to a kernel user (ULP)
 * @name: the value of the parameter `profile`
 * @base: the software device that it fits: RDMA_DRIVER_RXE or RDMA_DRIVER_SIW
 * @send_sge: pieces of a message that is sent, 0: as the software device's; so below
 * @recv_sge: pieces of a receive
 * @max_inline: bytes of inline data
 * @inline_mode: see there
 * @qp_wr: descriptors of a queue, as the device tells
 * @quanta: how many of @qp_wr one descriptor takes
 * @qps: queue pairs of the kernel's users, the connection manager's included
 * @cqe: entries of a completion queue
 * @vectors: completion vectors
 * @hide: its network device is not to be found by ib_device_get_by_netdev()
 * @no_kverbs: the kernel's users are not told of it
 * @no_rc: no reliable connection for the kernel's users
 * @raw_only: its port carries raw packets alone, as that of a representor
 * @modify_err: what modify_qp() returns after it has set the error state
 * @port_mapper: iWARP's ports are mapped by iwpmd, if that runs
 * @keeps_init: a queue pair that has never been ready to receive does not flush what is posted to it
 * @direct: messages of the kernel's users go through memory: both ends have to be in this machine
 */
struct dp_profile {
	const char		*name;
	enum rdma_driver_id	base;
	int			send_sge;
	int			recv_sge;
	unsigned int		max_inline;
	enum dp_inline		inline_mode;
	int			qp_wr;
	int			quanta;
	int			qps;
	int			cqe;
	int			vectors;
	int			modify_err;
	bool			hide;
	bool			no_kverbs;
	bool			no_rc;
	bool			raw_only;
	bool			port_mapper;
	bool			keeps_init;
	bool			direct;
};

/**
 * struct dp_dev - a device with a profile
 * @ibdev: the device, NULL if the entry is free
 * @profile: its profile
 * @orig: the operations of its driver
 * @qp_tail: where in a queue pair our own state is, behind the driver's
 * @cq_tail: where in a completion queue it is
 * @qps: queue pairs of the kernel's users that exist
 * @cq: the newest completion queue of the kernel's users that has a handler for errors
 * @failed_cq: one that completes nothing
 * @dead: it takes no more descriptors of the kernel's users, and completes none
 * @slow: its firmware does not answer when a queue pair is to end
 * @unknown_port: which port is behind the one that iWARP's port mapper has made is not known
 */
struct dp_dev {
	struct ib_device		*ibdev;
	const struct dp_profile		*profile;
	struct ib_device_ops		orig;
	size_t				qp_tail;
	size_t				cq_tail;
	atomic_t			qps;
	struct ib_cq			*cq;
	const struct ib_cq		*failed_cq;
	bool				dead;
	bool				slow;
	bool				unknown_port;
};

const struct dp_profile *dp_profile_find(const char *name);
struct dp_dev *dp_dev(const struct ib_device *ibdev);
struct dp_dev *dp_dev_named(const char *name);
int dp_fail_cq(struct dp_dev *dp);
extern const size_t dp_direct_qp_size, dp_direct_cq_size;
int dp_direct_create_qp(struct ib_qp *qp, const struct ib_qp_init_attr *init);
void dp_direct_destroy_qp(struct ib_qp *qp);
void dp_direct_modify_qp(struct ib_qp *qp, const struct ib_qp_attr *attr, int mask);
int dp_direct_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			const struct ib_send_wr **bad_wr);
int dp_direct_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad_wr);
int dp_direct_create_cq(struct ib_cq *cq, u32 cqe);
void dp_direct_destroy_cq(struct ib_cq *cq);
bool dp_direct_uses(const struct ib_cq *cq);
int dp_direct_poll_cq(struct ib_cq *cq, int entries, struct ib_wc *wc);
int dp_direct_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags how);
struct device *dp_dma_device(void);
void *dp_dma_virt(u64 addr);
int dp_dma_post_send(struct dp_dev *dp, struct ib_qp *qp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad_wr);
int dp_dma_post_recv(struct dp_dev *dp, struct ib_qp *qp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad_wr);
int dp_dma_init(void);
void dp_dma_exit(void);
void dp_inject_init(void);
void dp_inject_exit(void);
void dp_dev_gone(struct dp_dev *dp);
void dp_wrap(struct dp_dev *dp);

#endif /* _DEVPROFILE_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts of the module's objects, from allocation to release, shown in the debugfs file
 * "objects".  None may be left when the module is unloaded.
 */
#ifndef _SOVIA_OBJCOUNT_H
#define _SOVIA_OBJCOUNT_H

#include <linux/percpu.h>

/**
 * enum sovia_object - what is counted
 * @SOVIA_OBJECT_sockets: until their memory is freed, including those that wait for
 *	messages in flight or a grace period
 * @SOVIA_OBJECT_connections: until their memory is freed
 * @SOVIA_OBJECT_tenants: until their memory is freed
 * @SOVIA_OBJECT_charges: pages that memory control groups are charged for received data
 * @SOVIA_OBJECT_links: with their lanes
 * @SOVIA_OBJECT_peers: other kernels that are known
 * @SOVIA_OBJECT_anchors: connections to them
 * @SOVIA_OBJECT_unreached: those of which is known that AF_SOVIA does not reach them
 * @SOVIA_OBJECT_requests: of peers, not answered yet
 * @SOVIA_OBJECT_loop_vis: VIs of the loop provider
 * @SOVIA_OBJECT_clan_vis: VIs in shared memory
 * @SOVIA_OBJECT_verbs_vis: VIs on verbs
 * @SOVIA_OBJECT_stuck_vis: those in quarantine, because their device does not drain them
 * @SOVIA_OBJECT_receives: receive descriptors of VIs on verbs
 * @SOVIA_OBJECT_mappings: DMA mappings
 * @SOVIA_OBJECTS: how many there are
 *
 * Messages of a socket hold a reference to it, others are freed with their lane.
 */
enum sovia_object {
	SOVIA_OBJECT_sockets,
	SOVIA_OBJECT_connections,
	SOVIA_OBJECT_tenants,
	SOVIA_OBJECT_charges,
	SOVIA_OBJECT_links,
	SOVIA_OBJECT_peers,
	SOVIA_OBJECT_anchors,
	SOVIA_OBJECT_unreached,
	SOVIA_OBJECT_requests,
	SOVIA_OBJECT_loop_vis,
	SOVIA_OBJECT_clan_vis,
	SOVIA_OBJECT_verbs_vis,
	SOVIA_OBJECT_stuck_vis,
	SOVIA_OBJECT_receives,
	SOVIA_OBJECT_mappings,
	SOVIA_OBJECTS
};

/**
 * struct sovia_objects - one CPU's part of the counts
 * @count: by enum sovia_object; may be negative, only the sum means something
 */
struct sovia_objects {
	long	count[SOVIA_OBJECTS];
};

DECLARE_PER_CPU(struct sovia_objects, sovia_objects);

#define sovia_object_add(name, n) \
	this_cpu_add(sovia_objects.count[SOVIA_OBJECT_##name], n)
#define sovia_object_inc(name)	sovia_object_add(name, 1)
#define sovia_object_dec(name)	sovia_object_add(name, -1)

int sovia_objects_init(void);
void sovia_objects_count_pages(long (*count)(void));
void sovia_objects_exit(void);

#endif /* _SOVIA_OBJCOUNT_H */

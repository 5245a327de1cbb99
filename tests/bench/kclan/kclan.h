/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef _KCLAN_H
#define _KCLAN_H

#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/sizes.h>
#include <linux/types.h>
#include <linux/wait.h>
#include <asm/barrier.h>

#define KCLAN_REGS	0
#define KCLAN_MEMORY	2
#define KCLAN_POSITION	0x08
#define KCLAN_DOORBELL	0x0c
/* Where sovia-clan-server has written. */
#define KCLAN_BEGIN	(2 * SZ_4K)
#define KCLAN_SLOTS	64u
#define KCLAN_SLOT	SZ_64K
#define KCLAN_COUNT_MAX	SZ_1M
#define KCLAN_POLL_MAX	10000	/* us */
#define KCLAN_WARM_UP	100
#define KCLAN_STEP	(10 * HZ)	/* timeout of each step */

/**
 * enum kclan_what - a run
 * @KCLAN_LATENCY: half round trips
 * @KCLAN_BANDWIDTH: one way
 * @KCLAN_LOAD: round trips at a given rate
 * @KCLAN_RUNS: their number
 */
enum kclan_what {
	KCLAN_LATENCY,
	KCLAN_BANDWIDTH,
	KCLAN_LOAD,
	KCLAN_RUNS,
};

/**
 * struct kclan_request - a run, as both nodes see it
 * @seq: its number; 0 is none
 * @what: enum kclan_what
 * @size: of a message
 * @count: messages
 * @poll: microseconds
 * @copies: 2 or 4
 */
struct kclan_request {
	u32	seq;
	u32	what;
	u32	size;
	u32	count;
	u32	poll;
	u32	copies;
};

/**
 * struct kclan_part - what a node writes, alone
 * @head: messages written since @request.seq, or the one that is answered
 * @tail: messages taken since then
 * @sleeps: the node is to be woken
 * @answer: the request that it serves
 * @request: the request that it makes
 * @slot: messages
 *
 * Words that the other node polls have cache lines of their own.
 */
struct kclan_part {
	u32			head	____cacheline_aligned;
	u32			tail	____cacheline_aligned;
	u32			sleeps	____cacheline_aligned;
	u32			answer;
	struct kclan_request	request	____cacheline_aligned;
	u8			slot[KCLAN_SLOTS][KCLAN_SLOT] ____cacheline_aligned;
};

/**
 * struct kclan - a device
 * @regs: its registers
 * @irq: its doorbell's interrupt
 * @memory: its memory
 * @nodes: for how many nodes there is room
 * @number: our own node
 * @served: of the last one of each node
 * @wait: woken by the doorbell
 * @server: the thread that serves
 * @mutex: a run, of either side
 * @ours: our part
 * @theirs: that of the other node of a run
 * @peer: its number
 * @req: the run
 * @head: messages written
 * @tail: messages taken
 * @net: the device for IP, which has the rings then, or NULL
 */
struct kclan {
	void __iomem		*regs;
	int			irq;
	void			*memory;
	u32			nodes;
	u32			number;
	u32			served[8];
	wait_queue_head_t	wait;
	struct task_struct	*server;
	struct mutex		mutex;	/* see above */
	struct kclan_part	*ours;
	struct kclan_part	*theirs;
	u32			peer;
	struct kclan_request	req;
	u32			head;
	u32			tail;
	struct net_device	*net;
};

/* main.c */
void kclan_set_sleeps(struct kclan *kc, bool sleeps);
void kclan_wake(const struct kclan *kc);
bool kclan_has_message(const struct kclan *kc);
bool kclan_has_room(const struct kclan *kc);
void kclan_join(struct kclan *kc, u32 peer);

/* net.c */
int kclan_net_make(struct kclan *kc, u32 peer);
void kclan_net_free(struct kclan *kc);
void kclan_net_rung(struct kclan *kc);

#endif /* _KCLAN_H */

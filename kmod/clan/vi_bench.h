/* SPDX-License-Identifier: GPL-2.0-only */
/* VIs in shared memory, measured by themselves. */
#ifndef _SOVIA_VI_BENCH_H
#define _SOVIA_VI_BENCH_H

#include <linux/types.h>

struct sovia_vi_request;

/* Not a lane's number: requests of runs have it. */
#define SOVIA_VI_BENCH_LANE	0xff

#if IS_ENABLED(CONFIG_SOVIA_FAULT)

int sovia_vi_bench_init(void);
void sovia_vi_bench_exit(void);
bool sovia_vi_bench_request(struct sovia_vi_request *req);

#else

static inline int sovia_vi_bench_init(void)
{
	return 0;
}

static inline void sovia_vi_bench_exit(void)
{
}

static inline bool sovia_vi_bench_request(struct sovia_vi_request *req)
{
	return false;
}

#endif

#endif /* _SOVIA_VI_BENCH_H */

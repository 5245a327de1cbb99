/* SPDX-License-Identifier: GPL-2.0-only */
/* Fault injection between the link layer and the providers, for tests: see fault.c. */
#ifndef _SOVIA_FAULT_H
#define _SOVIA_FAULT_H

#include "core/provider.h"
#include "vi_check.h"

#if IS_ENABLED(CONFIG_SOVIA_FAULT)

struct sovia_vi *sovia_fault_connect(const struct sovia_provider *prov, struct net *net,
				     const struct sovia_pair *pair,
				     const struct sovia_vi_attr *attr,
				     const struct sovia_hello *hello,
				     const struct sovia_vi_client *client, void *context);
struct sovia_vi *sovia_fault_accept(struct sovia_vi_request *req,
				    const struct sovia_vi_attr *attr,
				    const struct sovia_hello *hello,
				    const struct sovia_vi_client *client, void *context);
bool sovia_fault_drain(void);
int sovia_fault_init(void);

#else

static inline struct sovia_vi *
sovia_fault_connect(const struct sovia_provider *prov, struct net *net,
		    const struct sovia_pair *pair, const struct sovia_vi_attr *attr,
		    const struct sovia_hello *hello,
		    const struct sovia_vi_client *client, void *context)
{
	return sovia_vi_check_connect(prov, net, pair, attr, hello, client, context);
}

static inline struct sovia_vi *
sovia_fault_accept(struct sovia_vi_request *req, const struct sovia_vi_attr *attr,
		   const struct sovia_hello *hello,
		   const struct sovia_vi_client *client, void *context)
{
	return sovia_vi_check_accept(req, attr, hello, client, context);
}

static inline bool sovia_fault_drain(void)
{
	return false;
}

static inline int sovia_fault_init(void)
{
	return 0;
}

#endif

#endif /* _SOVIA_FAULT_H */

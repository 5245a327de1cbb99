/* SPDX-License-Identifier: GPL-2.0-only */
/* The contract of provider.h, checked for every VI on debug kernels: see vi_check.c. */
#ifndef _SOVIA_VI_CHECK_H
#define _SOVIA_VI_CHECK_H

#include "core/provider.h"

#if IS_ENABLED(CONFIG_PROVE_LOCKING)

struct sovia_vi *sovia_vi_check_connect(const struct sovia_provider *prov, struct net *net,
					const struct sovia_pair *pair,
					const struct sovia_vi_attr *attr,
					const struct sovia_hello *hello,
					const struct sovia_vi_client *client, void *context);
struct sovia_vi *sovia_vi_check_accept(struct sovia_vi_request *req,
				       const struct sovia_vi_attr *attr,
				       const struct sovia_hello *hello,
				       const struct sovia_vi_client *client, void *context);

#else

static inline struct sovia_vi *
sovia_vi_check_connect(const struct sovia_provider *prov, struct net *net,
		       const struct sovia_pair *pair, const struct sovia_vi_attr *attr,
		       const struct sovia_hello *hello,
		       const struct sovia_vi_client *client, void *context)
{
	return prov->connect(net, pair, attr, hello, client, context);
}

static inline struct sovia_vi *
sovia_vi_check_accept(struct sovia_vi_request *req, const struct sovia_vi_attr *attr,
		      const struct sovia_hello *hello,
		      const struct sovia_vi_client *client, void *context)
{
	return req->prov->accept(req, attr, hello, client, context);
}

#endif

#endif /* _SOVIA_VI_CHECK_H */

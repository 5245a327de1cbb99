/* SPDX-License-Identifier: GPL-2.0-only */
/* The table of links. */
#ifndef _SOVIA_LINK_TABLE_H
#define _SOVIA_LINK_TABLE_H

#include "link.h"

extern unsigned int sovia_max_links;
struct sovia_link *sovia_link_get(struct sovia_net *snet, const struct sovia_pair *pair,
				  const struct sovia_provider *prov, kuid_t uid,
				  struct sovia_tenant *tenant, gfp_t gfp);
struct sovia_link *sovia_link_lookup(struct sovia_net *snet, const struct sovia_pair *pair);
struct sovia_link *sovia_link_from(struct sovia_net *snet, unsigned long *id);
struct sovia_link *sovia_link_first(struct sovia_net *snet);
bool sovia_link_has_room(struct sovia_net *snet);
bool sovia_link_peer_may_resume(const struct sovia_link *link);
void sovia_link_count_spare(struct sovia_link *link);
void sovia_link_not_spare(struct sovia_link *link);
unsigned long sovia_link_idle_wait(const struct sovia_link *link);
struct sovia_link *sovia_link_excess(const struct sovia_link *fresh);
void sovia_link_set_parked(struct sovia_link *link, bool parked);
void sovia_link_set_idle(struct sovia_link *link, bool idle);
struct sovia_link *sovia_link_idlest(struct sovia_net *snet);
unsigned int sovia_links_idle(void);
struct sovia_link *sovia_link_excess_parked(struct sovia_net *snet);
void sovia_link_unlist(struct sovia_link *link);
bool sovia_link_unlist_unused(struct sovia_link *link);
int sovia_link_limits_net_init(struct sovia_net *snet);
void sovia_link_limits_net_exit(struct sovia_net *snet);

#endif /* _SOVIA_LINK_TABLE_H */

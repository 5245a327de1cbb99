/* SPDX-License-Identifier: GPL-2.0-only */
/* Liveness of the lane. */
#ifndef _SOVIA_LINK_PROBE_H
#define _SOVIA_LINK_PROBE_H

#include "link.h"

void sovia_link_doubt(struct sovia_link *link);
void sovia_link_probe(struct sovia_link *link);
void sovia_link_probe_start(struct sovia_link *link);

#endif /* _SOVIA_LINK_PROBE_H */

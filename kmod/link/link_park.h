/* SPDX-License-Identifier: GPL-2.0-only */
/* Idle links give their VIs up. */
#ifndef _SOVIA_LINK_PARK_H
#define _SOVIA_LINK_PARK_H

#include "link.h"

bool sovia_link_rest(struct sovia_link *link);
bool sovia_link_ask_park(struct sovia_link *link);
void sovia_link_look_parked(struct sovia_link *link);
void sovia_link_park(struct sovia_link *link);
bool sovia_link_resume(struct sovia_link *link);
int sovia_park_init(void);
void sovia_park_exit(void);

#endif /* _SOVIA_LINK_PARK_H */

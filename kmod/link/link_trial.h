/* SPDX-License-Identifier: GPL-2.0-only */
/* Trials of lanes. */
#ifndef _SOVIA_LINK_TRIAL_H
#define _SOVIA_LINK_TRIAL_H

#include "link.h"

void sovia_link_trial_start(struct sovia_link *link);
void sovia_link_trial_go_on(struct sovia_link *link);
int sovia_link_trial_failed(struct sovia_link *link, int err);

#endif /* _SOVIA_LINK_TRIAL_H */

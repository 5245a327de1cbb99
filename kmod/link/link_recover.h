/* SPDX-License-Identifier: GPL-2.0-only */
/* Recovery of a link that has lost its VI. */
#ifndef _SOVIA_LINK_RECOVER_H
#define _SOVIA_LINK_RECOVER_H

#include "link.h"

bool sovia_recovery_wanted(const struct sovia_link *link);
void sovia_recovery_established(struct sovia_link *link);
void sovia_recovery_begin(struct sovia_link *link);
void sovia_recovery_restart(struct sovia_link *link);
unsigned long sovia_recovery_left(const struct sovia_link *link);
unsigned long sovia_recovery_wait(struct sovia_link *link, bool first);

#endif /* _SOVIA_LINK_RECOVER_H */

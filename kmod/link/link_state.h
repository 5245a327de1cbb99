/* SPDX-License-Identifier: GPL-2.0-only */
/* State changes of a link, for the link_*.c files. */
#ifndef _SOVIA_LINK_STATE_H
#define _SOVIA_LINK_STATE_H

#include "link.h"

void sovia_link_down(struct sovia_link *link, int err);
void sovia_link_catch_up(struct sovia_link *link);
bool sovia_link_enter_unused(struct sovia_link *link);
bool sovia_link_lose(struct sovia_link *link, int err);
bool sovia_link_retire(struct sovia_link *link);
bool sovia_link_own_attempt_counts(const struct sovia_link *link);
bool sovia_link_set_state(struct sovia_link *link, enum sovia_link_state state);
void sovia_link_set_timer(struct sovia_link *link, unsigned long delay);
void sovia_link_stop_timer(struct sovia_link *link);

#endif /* _SOVIA_LINK_STATE_H */

// SPDX-License-Identifier: GPL-2.0-only
/* For sovia_net().  Not in netns.c, which calls all layers while all of them use this. */
#include "net.h"

unsigned int sovia_net_id;

// SPDX-License-Identifier: GPL-2.0-only
/* For sovia_net(), which all layers use; netns.c calls all layers. */
#include "net.h"

unsigned int sovia_net_id;

// SPDX-License-Identifier: GPL-2.0-only
/* The list of providers. */
#include "provider.h"

const struct sovia_provider * const sovia_providers[] = {
	&sovia_loop_provider,
	&sovia_near_provider,
	&sovia_clan_soft_provider,
	&sovia_clan_provider,
	&sovia_verbs_provider,
	NULL
};

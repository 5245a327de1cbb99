// SPDX-License-Identifier: GPL-2.0-only
/* The providers that there are. */
#include "provider.h"

const struct sovia_provider * const sovia_providers[] = {
	&sovia_loop_provider,
	&sovia_verbs_provider,
	NULL
};

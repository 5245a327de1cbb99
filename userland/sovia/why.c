// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Why a connection fell back to TCP, or a peer is not reached: enum sovia_why. */
#include <linux/sovia.h>
#include <stddef.h>
#include "why.h"

static const struct {
	const char	*name;
	const char	*text;
} whys[SOVIA_WHY_MAX + 1] = {
	[SOVIA_WHY_PEER]	= { "peer", "the peer connected over TCP" },
	[SOVIA_WHY_RULE]	= { "rule", "a rule, or the option SOVIA_ACTION, says so" },
	[SOVIA_WHY_SILENT]	= { "silent", "no AF_SOVIA answers there, or not in time" },
	[SOVIA_WHY_WAY]		= { "way", "AF_SOVIA answers there, but RDMA does not work" },
	[SOVIA_WHY_DEVICE]	= { "device", "this end has no RDMA device for the address" },
	[SOVIA_WHY_REFUSED]	= { "refused", "the other end refuses this one" },
	[SOVIA_WHY_LISTENER]	= { "listener", "there is no AF_SOVIA listener at the port" },
	[SOVIA_WHY_MEMORY]	= { "memory", "a limit, or a lack of memory" },
	[SOVIA_WHY_FILTER]	= { "filter", "netfilter, IPsec, or an option that only TCP has" },
	[SOVIA_WHY_DENIED]	= { "denied", "denied by the peer's rules" },
};

const char *why_name(unsigned int why)
{
	return why <= SOVIA_WHY_MAX ? whys[why].name : "?";
}

const char *why_text(unsigned int why)
{
	return why <= SOVIA_WHY_MAX ? whys[why].text : "a reason that this program does not know";
}

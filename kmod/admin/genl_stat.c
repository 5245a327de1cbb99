// SPDX-License-Identifier: GPL-2.0-only
/* Generic netlink: counters and histograms, summed up or by processor. */
#include <net/ip.h>
#include <net/sock.h>
#include "core/hist.h"
#include "core/net.h"
#include "genl.h"

/**
 * struct shown_stats - what is shown
 * @snet: the namespace
 * @cpu: of one processor, or -1 for all
 */
struct shown_stats {
	struct sovia_net	*snet;
	int			cpu;
};

static u64 value_of(const struct shown_stats *shown, enum sovia_stat which)
{
	if (shown->cpu < 0)
		return sovia_stat_sum(shown->snet, which);
	return snmp_get_cpu_field(shown->snet->mib, shown->cpu, which);
}

static int put_stat(struct sk_buff *skb, const char *name, u64 value)
{
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_STAT);

	if (!nest || nla_put_string(skb, SOVIA_A_STAT_NAME, name) ||
	    nla_put_u64_64bit(skb, SOVIA_A_STAT_VALUE, value, SOVIA_A_STAT_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_hist(struct sk_buff *skb, const struct shown_stats *shown, enum sovia_hist which)
{
	struct nlattr *nest = nla_nest_start(skb, SOVIA_A_HIST);
	struct sovia_histogram histogram;

	sovia_hist_read(shown->snet, shown->cpu, which, &histogram);
	if (!nest || nla_put_string(skb, SOVIA_A_HIST_NAME, sovia_hist_name(which)) ||
	    nla_put(skb, SOVIA_A_HIST_BUCKETS, sizeof(histogram.buckets), histogram.buckets) ||
	    nla_put_u64_64bit(skb, SOVIA_A_HIST_SUM, histogram.sum, SOVIA_A_HIST_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_stats(struct sk_buff *skb, const void *object)
{
	const struct shown_stats *shown = object;
	unsigned int i;

	if (shown->cpu >= 0 && nla_put_u32(skb, SOVIA_A_CPU, shown->cpu))
		return -EMSGSIZE;
	for (i = 0; i < SOVIA_STAT_COUNT; i++)
		if (put_stat(skb, sovia_stat_name(i), value_of(shown, i)))
			return -EMSGSIZE;
	if (!sovia_hist_any(shown->snet))
		return 0;
	for (i = 0; i < SOVIA_HIST_COUNT; i++)
		if (put_hist(skb, shown, i))
			return -EMSGSIZE;
	return 0;
}

/**
 * sovia_genl_stat_get() - SOVIA_CMD_STAT_GET
 * @skb: the request
 * @info: of it
 *
 * Context: process.
 * Return: 0, -ENOMEM or an errno of netlink.
 */
int sovia_genl_stat_get(struct sk_buff *skb, struct genl_info *info)
{
	const struct shown_stats shown = { sovia_net(genl_info_net(info)), -1 };
	struct sk_buff *reply = genlmsg_new(NLMSG_GOODSIZE * 2, GFP_KERNEL);
	void *hdr;

	if (!reply)
		return -ENOMEM;
	hdr = genlmsg_put_reply(reply, info, &sovia_genl, 0, SOVIA_CMD_STAT_GET);
	if (!hdr || put_stats(reply, &shown)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, hdr);
	return genlmsg_reply(reply, info);
}

/**
 * sovia_genl_stat_dump() - SOVIA_CMD_STAT_GET, by processor
 * @skb: the reply
 * @cb: of the request; args[0] is the next processor
 *
 * Context: process.
 * Return: bytes in @skb, 0 at the end, or -EMSGSIZE.
 */
int sovia_genl_stat_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct shown_stats shown = { .snet = sovia_net(sock_net(skb->sk)) };
	unsigned int cpu;

	/* cpumask_next() begins behind its argument. */
	for (cpu = cpumask_next(cb->args[0] - 1, cpu_possible_mask); cpu < nr_cpu_ids;
	     cpu = cpumask_next(cpu, cpu_possible_mask)) {
		shown.cpu = cpu;
		if (sovia_genl_put(skb, cb, SOVIA_CMD_STAT_GET, put_stats, &shown))
			break;
	}
	cb->args[0] = cpu;
	return cpu < nr_cpu_ids && !skb->len ? -EMSGSIZE : skb->len;
}

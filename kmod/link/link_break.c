// SPDX-License-Identifier: GPL-2.0-only
/* debugfs file "break": fails lanes on request, to test recovery. */
#include <linux/debugfs.h>
#include <linux/inet.h>
#include <net/ipv6.h>
#include "core/debugfs.h"
#include "link.h"
#include "link_break.h"

/* Breaks the links of a namespace to @remote, or all of them.  Returns how many. */
static int break_links(struct sovia_net *snet, const struct in6_addr *remote)
{
	struct sovia_link *link;
	int bkt, broken = 0;

	spin_lock_bh(&snet->link_lock);
	hash_for_each(snet->links, bkt, link, net_node) {
		if (READ_ONCE(link->state) != SOVIA_LINK_UP || !link->lane.prov->fail ||
		    (remote && !ipv6_addr_equal(remote, &link->pair.remote)))
			continue;
		sovia_link_event(link, SOVIA_LINK_EV_BREAK);
		broken++;
	}
	spin_unlock_bh(&snet->link_lock);
	return broken;
}

static ssize_t break_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	struct sovia_net *snet = sovia_net(current->nsproxy->net_ns);
	char text[INET6_ADDRSTRLEN + 1], *word;
	struct in6_addr remote;
	bool all;
	__be32 v4;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, len))
		return -EFAULT;
	text[len] = '\0';
	word = strim(text);
	all = !strcmp(word, "all");
	if (in4_pton(word, -1, (u8 *)&v4, -1, NULL))
		ipv6_addr_set_v4mapped(v4, &remote);
	else if (!all && !in6_pton(word, -1, remote.s6_addr, -1, NULL))
		return -EINVAL;
	return break_links(snet, all ? NULL : &remote) ? len : -ENOTCONN;
}

static const struct file_operations break_ops = {
	.owner	= THIS_MODULE,
	.open	= simple_open,
	.write	= break_write,
	.llseek	= noop_llseek,
};

/**
 * sovia_break_init() - create the debugfs file "break"
 *
 * Context: module init, after the pernet registration.
 * Return: 0.
 */
int sovia_break_init(void)
{
	debugfs_create_file("break", 0200, sovia_debugfs_dir(), NULL, &break_ops);
	return 0;
}

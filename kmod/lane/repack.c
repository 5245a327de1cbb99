// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages that go over a VI with fewer pieces than the one they were made for.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include "lane_tx.h"

/* Copy the pieces of a message into no more than @max_frags larger ones, and free the former. */
static int msg_copy_frags(struct sk_buff *skb, unsigned int max_frags)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);
	unsigned int order = 0, count, len = skb->data_len, i;
	struct page *pages[MAX_SKB_FRAGS];
	unsigned int off = 0, some;

	while (DIV_ROUND_UP(len, PAGE_SIZE << order) > max_frags)
		order++;
	count = DIV_ROUND_UP(len, PAGE_SIZE << order);
	for (i = 0; i < count; i++) {
		pages[i] = alloc_pages(GFP_ATOMIC | __GFP_NOWARN | __GFP_COMP, order);
		if (!pages[i])
			goto free;
	}
	for (i = 0; i < count; i++, off += some) {
		some = min_t(unsigned int, len - off, PAGE_SIZE << order);
		/* Cannot fail: the message has as many bytes. */
		skb_copy_bits(skb, skb_headlen(skb) + off, page_address(pages[i]), some);
	}
	for (i = 0; i < shinfo->nr_frags; i++)
		put_page(skb_frag_page(&shinfo->frags[i]));
	for (i = 0, off = 0; i < count; i++, off += some) {
		some = min_t(unsigned int, len - off, PAGE_SIZE << order);
		skb_fill_page_desc(skb, i, pages[i], 0, some);
	}
	return 0;
free:
	while (i--)
		__free_pages(pages[i], order);
	return -EAGAIN;
}

/**
 * sovia_msg_repack() - make a message fit the VI that it is sent over now
 * @skb: the message, without its header
 * @max_frags: page fragments that the VI takes, at least 1
 *
 * It was made for a VI of another device, which has ended: nothing else uses the message.  The
 * copy is not charged to the socket's memory cgroup.
 *
 * Context: any, lane lock held.
 * Return: 0, or -EAGAIN if there is no memory now.
 */
int sovia_msg_repack(struct sk_buff *skb, unsigned int max_frags)
{
	if (likely(skb_shinfo(skb)->nr_frags <= max_frags))
		return 0;
	return msg_copy_frags(skb, max_frags);
}

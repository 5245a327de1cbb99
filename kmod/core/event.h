/* SPDX-License-Identifier: GPL-2.0-only */
/* Events for administrators. */
#ifndef _SOVIA_EVENT_H
#define _SOVIA_EVENT_H

#include <linux/notifier.h>

struct sovia_net;

/**
 * enum sovia_event_type - what has happened
 * @SOVIA_EVENT_LINK: a struct sovia_link, with a reference, has changed its state
 * @SOVIA_EVENT_PEER: something has become known of a struct sovia_peer, which is in its namespace's
 *	table
 * @SOVIA_EVENT_TCP: a connection has fallen back to TCP: struct sovia_tcp_entry
 */
enum sovia_event_type {
	SOVIA_EVENT_LINK,
	SOVIA_EVENT_PEER,
	SOVIA_EVENT_TCP,
};

/**
 * struct sovia_event_info - an event's data
 * @snet: namespace where it has happened
 * @object: which object
 */
struct sovia_event_info {
	struct sovia_net	*snet;
	const void		*object;
};

void sovia_event(struct sovia_net *snet, enum sovia_event_type event, const void *object);
int sovia_event_subscribe(struct notifier_block *nb);
void sovia_event_unsubscribe(struct notifier_block *nb);

#endif /* _SOVIA_EVENT_H */

// SPDX-License-Identifier: GPL-2.0-only
/* Events for administrators: what reports them does not know who listens. */
#include "event.h"

static BLOCKING_NOTIFIER_HEAD(event_chain);

/**
 * sovia_event() - report an event
 * @snet: namespace where it has happened
 * @event: what
 * @object: which object, of the type that goes with @event
 *
 * Context: process, may sleep; no link or lane lock.
 */
void sovia_event(struct sovia_net *snet, enum sovia_event_type event, const void *object)
{
	struct sovia_event_info info = { .snet = snet, .object = object };

	blocking_notifier_call_chain(&event_chain, event, &info);
}

/**
 * sovia_event_subscribe() - have a function called for each event
 * @nb: its block: the action is enum sovia_event_type, the data struct sovia_event_info
 *
 * Context: module init.
 * Return: 0 or a negative errno.
 */
int sovia_event_subscribe(struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&event_chain, nb);
}

/**
 * sovia_event_unsubscribe() - undo that
 * @nb: the block; not called any more afterwards
 *
 * Context: module exit.
 */
void sovia_event_unsubscribe(struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&event_chain, nb);
}

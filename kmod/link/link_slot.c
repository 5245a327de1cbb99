// SPDX-License-Identifier: GPL-2.0-only
/*
 * Set-ups of VIs may block, with siw for as long as TCP's connect() does.  A slot is the
 * permission for one.  A link has it from the start of an attempt until the VI is
 * established, or has ended: a set-up that the link has given up may block still.
 *
 * Each user, and each peer that asks, has a few.  Kinds have limits of their own, together
 * less than half of the workers, so that neither users nor peers keep back recoveries.
 *
 * Links that get none wait: those of a user in order, users round robin.  A link waits also for
 * an older one between the same addresses, whose set-up blocks still: so a silent peer
 * takes one slot of a user, not all of them.  Peers do not wait: they are told to come again.
 *
 * All of this belongs to the connection thread.
 */
#include <linux/hashtable.h>
#include <net/ipv6.h>
#include "core/addr.h"
#include "core/work.h"
#include "link_slot.h"
#include "link_table.h"

/* Of one user, or one peer. */
#define SOVIA_SLOTS_EACH	8
/* Of all of a kind. */
#define SOVIA_SLOTS_KIND	80
/* Of all users', for those who have none yet. */
#define SOVIA_SLOTS_SPARE	20

/* struct sovia_link::slot_node */
static struct list_head slots_held[SOVIA_SLOT_KINDS] = {
	[SOVIA_SLOT_USER] = LIST_HEAD_INIT(slots_held[SOVIA_SLOT_USER]),
	[SOVIA_SLOT_PEER] = LIST_HEAD_INIT(slots_held[SOVIA_SLOT_PEER]),
	[SOVIA_SLOT_RECOVERY] = LIST_HEAD_INIT(slots_held[SOVIA_SLOT_RECOVERY]),
};

/* Length of each. */
static unsigned int slots_used[SOVIA_SLOT_KINDS];
/* Recoveries that wait. */
static LIST_HEAD(slots_recoveries);
/* The first waiting link of each user, in turn, and by uid. */
static LIST_HEAD(slots_users);
static DEFINE_HASHTABLE(slots_by_user, 6);

static_assert(SOVIA_SLOT_KINDS * SOVIA_SLOTS_KIND < SOVIA_WORKERS_MAX / 2);

/**
 * sovia_slot_peer_has_room() - may another request of a peer be accepted now
 * @snet: namespace
 * @remote: the peer's address
 *
 * Context: connection thread.
 * Return: true if so.
 */
bool sovia_slot_peer_has_room(const struct sovia_net *snet, const struct in6_addr *remote)
{
	struct sovia_link *link;
	unsigned int same = 0;

	list_for_each_entry(link, &slots_held[SOVIA_SLOT_PEER], slot_node)
		same += link->snet == snet && ipv6_addr_equal(&link->pair.remote, remote);
	return slots_used[SOVIA_SLOT_PEER] < SOVIA_SLOTS_KIND && same < SOVIA_SLOTS_EACH;
}

/* Users are the same in all namespaces: uids of the initial user namespace. */
static bool slot_user_has_room(kuid_t uid)
{
	unsigned int same = 0, used = slots_used[SOVIA_SLOT_USER];
	struct sovia_link *link;

	list_for_each_entry(link, &slots_held[SOVIA_SLOT_USER], slot_node)
		same += uid_eq(link->uid, uid);
	return same < SOVIA_SLOTS_EACH &&
	       used < SOVIA_SLOTS_KIND - (same ? SOVIA_SLOTS_SPARE : 0);
}

/* The link whose set-up has to end before that of @link may start, or NULL. */
static struct sovia_link *slot_older(const struct sovia_link *link)
{
	struct sovia_link *older;
	int kind;

	for (kind = 0; kind < SOVIA_SLOT_KINDS; kind++)
		list_for_each_entry(older, &slots_held[kind], slot_node)
			if (older->snet == link->snet &&
			    sovia_pair_equal(&older->pair, &link->pair))
				return older;
	return NULL;
}

static bool slot_has_room(const struct sovia_link *link, enum sovia_slot_kind kind)
{
	switch (kind) {
	case SOVIA_SLOT_USER:
		return !slot_older(link) && slot_user_has_room(link->uid);
	case SOVIA_SLOT_RECOVERY:
		return slots_used[kind] < SOVIA_SLOTS_KIND;
	default:
		/* Decided before the request was accepted. */
		return true;
	}
}

static void slot_hold(struct sovia_link *link, enum sovia_slot_kind kind)
{
	link->slot = SOVIA_SLOT_HELD;
	link->slot_kind = kind;
	list_add_tail(&link->slot_node, &slots_held[kind]);
	slots_used[kind]++;
}

/* ---- waiting ------------------------------------------------------------ */

static void slot_lead(struct sovia_link *link)
{
	hash_add(slots_by_user, &link->slot_user, __kuid_val(link->uid));
	list_add_tail(&link->slot_node, &slots_users);
}

static struct sovia_link *slot_leader(kuid_t uid)
{
	struct sovia_link *link;

	hash_for_each_possible(slots_by_user, link, slot_user, __kuid_val(uid))
		if (uid_eq(link->uid, uid))
			return link;
	return NULL;
}

static void slot_queue(struct sovia_link *link)
{
	struct sovia_link *before;

	if (link->slot_kind == SOVIA_SLOT_RECOVERY) {
		list_add_tail(&link->slot_node, &slots_recoveries);
		return;
	}
	before = slot_older(link) ?: slot_leader(link->uid);
	if (before)
		list_add_tail(&link->slot_node, &before->slot_behind);
	else
		slot_lead(link);
}

/* Its user's next link waits for the user's next turn. */
static void slot_unqueue(struct sovia_link *link)
{
	struct sovia_link *next;

	list_del(&link->slot_node);
	if (hlist_unhashed(&link->slot_user))
		return;
	hash_del(&link->slot_user);
	next = list_first_entry_or_null(&link->slot_behind, struct sovia_link, slot_node);
	if (!next)
		return;
	list_del(&next->slot_node);
	list_splice_init(&link->slot_behind, &next->slot_behind);
	slot_lead(next);
}

static void slot_wait(struct sovia_link *link, enum sovia_slot_kind kind)
{
	link->slot = SOVIA_SLOT_WAITS;
	link->slot_kind = kind;
	sovia_link_ref(link);
	slot_queue(link);
}

/* The next one that may start, or NULL. */
static struct sovia_link *slot_next(void)
{
	struct sovia_link *link;

	if (slots_used[SOVIA_SLOT_RECOVERY] < SOVIA_SLOTS_KIND && !list_empty(&slots_recoveries))
		return list_first_entry(&slots_recoveries, struct sovia_link, slot_node);
	if (slots_used[SOVIA_SLOT_USER] >= SOVIA_SLOTS_KIND)
		return NULL;
	/* Short: only who has a slot can be out of room. */
	list_for_each_entry(link, &slots_users, slot_node)
		if (slot_user_has_room(link->uid))
			return link;
	return NULL;
}

static void slots_grant(void)
{
	struct sovia_link *link;

	while ((link = slot_next())) {
		slot_unqueue(link);
		slot_hold(link, link->slot_kind);
		sovia_link_event(link, SOVIA_LINK_EV_SLOT);
		sovia_link_put(link);
	}
}

/* ---- calls -------------------------------------------------------------- */

/**
 * sovia_slot_get() - a set-up is about to start
 * @link: without a VI
 * @kind: on whose account
 *
 * Links in memory need none: nothing of theirs blocks.
 *
 * Context: connection thread.
 * Return: true if it may; false if the link waits now: SOVIA_LINK_EV_SLOT follows.
 */
bool sovia_slot_get(struct sovia_link *link, enum sovia_slot_kind kind)
{
	if (link->lane.prov->in_memory || link->slot == SOVIA_SLOT_HELD)
		return true;
	if (link->slot == SOVIA_SLOT_WAITS) {
		if (kind != SOVIA_SLOT_PEER)
			return false;
		sovia_slot_put(link);
	}
	if (slot_has_room(link, kind)) {
		slot_hold(link, kind);
		return true;
	}
	slot_wait(link, kind);
	return false;
}

static void slot_release(struct sovia_link *link)
{
	struct sovia_link *behind;

	list_del(&link->slot_node);
	slots_used[link->slot_kind]--;
	while ((behind = list_first_entry_or_null(&link->slot_behind, struct sovia_link,
						  slot_node))) {
		list_del(&behind->slot_node);
		slot_queue(behind);
	}
	slots_grant();
}

/**
 * sovia_slot_put() - the set-up of a link is over, or it does not want one any more
 * @link: the link; the caller has a reference; nothing happens if it has no slot
 *
 * Context: connection thread.
 */
void sovia_slot_put(struct sovia_link *link)
{
	enum sovia_slot was = link->slot;

	link->slot = SOVIA_SLOT_NONE;
	if (was == SOVIA_SLOT_HELD) {
		slot_release(link);
	} else if (was == SOVIA_SLOT_WAITS) {
		slot_unqueue(link);
		sovia_link_put(link);
	}
}

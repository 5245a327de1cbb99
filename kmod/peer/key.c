// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys: a type of the kernel's key service, and a list of them in each namespace.  See
 * Documentation/rendezvous.rst.
 *
 * The list has a reference to each: no key goes because a keyring does.  One that is revoked or
 * has expired stays, and keeps its addresses closed until it is deleted.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/key-type.h>
#include <linux/nsproxy.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include "core/connd.h"
#include "key.h"
#include "peer_memory.h"
#include "peer_pair.h"

#define KEYS_MAX	1024
#define KEY_LEN_MIN	32
#define KEY_LEN_MAX	64
/* Nothing tells that a key has expired. */
#define KEYS_LOOK	HZ

/* Protects the lists of all namespaces; innermost but for the connection thread's queue. */
static DEFINE_SPINLOCK(keys_lock);

/**
 * struct entry - a key
 * @node: in sovia_keys::list
 * @snet: whose list it is in, or NULL
 * @key: that it is the payload of, with a reference while it is in a list
 * @serial: of entries, the newest has the highest
 * @valid: it was, when it was looked at
 * @name: its description
 * @secret: what was derived from the bytes that the user gave
 *
 * Belongs to @key, whose destruction frees it.  Protected by keys_lock.
 */
struct entry {
	struct list_head	node;
	struct sovia_net	*snet;
	struct key		*key;
	u64			serial;
	bool			valid;
	struct sovia_key_name	name;
	struct sovia_secret	secret;
};

static bool entry_is_valid(const struct entry *entry)
{
	return !key_validate(entry->key);
}

/* ---- which are meant ---------------------------------------------------- */

static bool entry_matches(const struct entry *entry, const struct sovia_pair *pair)
{
	return ipv6_prefix_equal(&pair->remote, &entry->name.peer, entry->name.prefix) &&
	       ipv6_prefix_equal(&pair->local, &entry->name.own, entry->name.own_prefix);
}

/* How exactly an entry means a pair that it matches; not 0. */
static unsigned int entry_rank(const struct entry *entry)
{
	return (entry->name.prefix << 8 | entry->name.own_prefix) + 1;
}

/* The rank of those that are meant, or 0 if there are none.  Valid or not: fail closed. */
static unsigned int keys_rank(const struct sovia_net *snet, const struct sovia_pair *pair)
{
	const struct entry *entry;
	unsigned int rank = 0;

	lockdep_assert_held(&keys_lock);
	list_for_each_entry(entry, &snet->keys.list, node)
		if (entry_matches(entry, pair))
			rank = max(rank, entry_rank(entry));
	return rank;
}

/* May this one be used for a pair, where those of @rank are meant? */
static bool entry_is_meant(const struct entry *entry, const struct sovia_pair *pair,
			   unsigned int rank)
{
	return entry_rank(entry) == rank && entry_matches(entry, pair) && entry_is_valid(entry);
}

/**
 * sovia_keys_offer() - which keys HELLO offers
 * @snet: namespace
 * @pair: the addresses
 * @ids: set to their numbers, the newest first; SOVIA_RDV_KEYS
 *
 * Context: process.
 * Return: how many, 0 if the peer needs none, or -ENOKEY if it does and all are revoked, or have
 * expired.
 */
int sovia_keys_offer(struct sovia_net *snet, const struct sovia_pair *pair, u64 *ids)
{
	const struct entry *entry;
	unsigned int rank;
	int count = 0;

	spin_lock(&keys_lock);
	rank = keys_rank(snet, pair);
	if (rank)
		list_for_each_entry(entry, &snet->keys.list, node)
			if (count < SOVIA_RDV_KEYS && entry_is_meant(entry, pair, rank))
				ids[count++] = entry->name.id;
	spin_unlock(&keys_lock);
	return rank && !count ? -ENOKEY : count;
}

static bool is_among(u64 id, const u64 *ids, unsigned int count)
{
	while (count--)
		if (ids[count] == id)
			return true;
	return false;
}

/**
 * sovia_keys_take() - take the newest of the keys that a peer has, too
 * @snet: namespace
 * @pair: the addresses
 * @ids: numbers of the peer's
 * @count: how many; 0 if it wants none
 * @use: set to the key
 * @secret: set to its secret; zeros without one
 *
 * What the peer wants does not matter: without a key here none is taken, with one it must be.
 *
 * Context: process.
 * Return: 0 or -ENOKEY.
 */
int sovia_keys_take(struct sovia_net *snet, const struct sovia_pair *pair, const u64 *ids,
		    unsigned int count, struct sovia_key_use *use, struct sovia_secret *secret)
{
	const struct entry *entry;
	unsigned int rank;

	memset(use, 0, sizeof(*use));
	memset(secret, 0, sizeof(*secret));
	spin_lock(&keys_lock);
	rank = keys_rank(snet, pair);
	if (rank)
		list_for_each_entry(entry, &snet->keys.list, node) {
			if (!entry_is_meant(entry, pair, rank) ||
			    !is_among(entry->name.id, ids, count))
				continue;
			use->id = entry->name.id;
			use->serial = entry->serial;
			*secret = entry->secret;
			break;
		}
	spin_unlock(&keys_lock);
	return !rank == !count && !rank == !use->serial ? 0 : -ENOKEY;
}

/**
 * sovia_keys_permit() - may kernels that have met go on
 * @snet: namespace
 * @pair: the addresses
 * @use: the key under which they have met, or none
 *
 * Context: process.
 * Return: true if this is still one of those that are meant.
 */
bool sovia_keys_permit(struct sovia_net *snet, const struct sovia_pair *pair,
		       const struct sovia_key_use *use)
{
	const struct entry *entry;
	unsigned int rank;
	bool found = false;

	spin_lock(&keys_lock);
	rank = keys_rank(snet, pair);
	if (rank)
		list_for_each_entry(entry, &snet->keys.list, node)
			found |= entry->serial == use->serial &&
				 entry_is_meant(entry, pair, rank);
	spin_unlock(&keys_lock);
	return rank ? found : !use->serial;
}

/* ---- the list ----------------------------------------------------------- */

static void keys_changed(struct sovia_net *snet)
{
	lockdep_assert_held(&keys_lock);
	snet->keys.generation++;
	sovia_connd_queue(&snet->keys.changed);
}

/* In the connection thread: peers whose key is not valid any more end. */
static void keys_changed_work(struct kthread_work *work)
{
	struct sovia_net *snet = container_of(work, struct sovia_net, keys.changed);

	sovia_peers_check_keys(snet);
	/* Others may be reached now. */
	sovia_memories_forget(snet);
}

static void keys_look(struct work_struct *work)
{
	struct sovia_net *snet = container_of(to_delayed_work(work), struct sovia_net, keys.look);
	struct entry *entry;
	bool changed = false;

	spin_lock(&keys_lock);
	list_for_each_entry(entry, &snet->keys.list, node) {
		changed |= entry->valid != entry_is_valid(entry);
		entry->valid = entry_is_valid(entry);
	}
	if (changed)
		keys_changed(snet);
	if (snet->keys.count)
		schedule_delayed_work(&snet->keys.look, KEYS_LOOK);
	spin_unlock(&keys_lock);
}

/* The caller puts the key that is returned. */
static struct key *entry_remove(struct entry *entry)
{
	lockdep_assert_held(&keys_lock);
	list_del(&entry->node);
	entry->snet->keys.count--;
	entry->snet = NULL;
	return entry->key;
}

static bool entry_is_like(const struct entry *entry, const struct sovia_key_name *name)
{
	return entry->name.id == name->id && entry->name.prefix == name->prefix &&
	       entry->name.own_prefix == name->own_prefix &&
	       ipv6_addr_equal(&entry->name.peer, &name->peer) &&
	       ipv6_addr_equal(&entry->name.own, &name->own);
}

/* One like another that is not valid any more takes its place: @old is put by the caller. */
static int entry_add(struct sovia_net *snet, struct entry *entry, struct key **old)
{
	static u64 serials;
	struct entry *other, *dead = NULL;

	lockdep_assert_held(&keys_lock);
	list_for_each_entry(other, &snet->keys.list, node)
		if (entry_is_like(other, &entry->name))
			dead = other;
	if (dead && entry_is_valid(dead))
		return -EEXIST;
	if (dead)
		*old = entry_remove(dead);
	if (snet->keys.count >= KEYS_MAX)
		return -ENOSPC;
	entry->serial = ++serials;
	entry->valid = true;
	entry->snet = snet;
	list_add(&entry->node, &snet->keys.list);
	snet->keys.count++;
	keys_changed(snet);
	schedule_delayed_work(&snet->keys.look, KEYS_LOOK);
	return 0;
}

/**
 * sovia_keys_show() - read an entry of a namespace's list
 * @snet: the namespace
 * @index: from 0
 * @info: filled in
 * @generation: set to the list's; changes with the list
 *
 * Context: process.
 * Return: false if there are fewer.
 */
bool sovia_keys_show(struct sovia_net *snet, unsigned int index, struct sovia_key_info *info,
		     u32 *generation)
{
	const struct entry *entry;
	bool found = false;

	spin_lock(&keys_lock);
	*generation = snet->keys.generation;
	list_for_each_entry(entry, &snet->keys.list, node) {
		if (index--)
			continue;
		info->name = entry->name;
		info->number = entry->key->serial;
		info->err = key_validate(entry->key);
		found = true;
		break;
	}
	spin_unlock(&keys_lock);
	return found;
}

/**
 * sovia_keys_delete() - forget all keys of a number
 * @snet: namespace
 * @id: the number
 *
 * Those who have met under one of them end.  Addresses that no other key is for are open.
 *
 * Context: process.
 * Return: 0 or -ENOENT.
 */
int sovia_keys_delete(struct sovia_net *snet, u64 id)
{
	struct entry *entry, *found;
	struct key *key;
	int err = -ENOENT;

	do {
		key = NULL;
		found = NULL;
		spin_lock(&keys_lock);
		list_for_each_entry(entry, &snet->keys.list, node)
			if (entry->name.id == id)
				found = entry;
		if (found) {
			key = entry_remove(found);
			keys_changed(snet);
			err = 0;
		}
		spin_unlock(&keys_lock);
		key_put(key);
	} while (key);
	return err;
}

/**
 * sovia_keys_revoke() - revoke all keys of a number
 * @snet: namespace
 * @id: the number
 *
 * As keyctl(2) does; the caller need not possess them.
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOENT.
 */
int sovia_keys_revoke(struct sovia_net *snet, u64 id)
{
	struct entry *entry;
	struct key *key;
	int err = -ENOENT;

	do {
		key = NULL;
		spin_lock(&keys_lock);
		list_for_each_entry(entry, &snet->keys.list, node)
			if (entry->name.id == id && entry_is_valid(entry))
				key = entry->key;
		if (key)
			key_get(key);
		spin_unlock(&keys_lock);
		if (key) {
			key_revoke(key);
			key_put(key);
			err = 0;
		}
	} while (key);
	return err;
}

/**
 * sovia_keys_net_init() - prepare a namespace's list
 * @snet: the namespace
 *
 * Context: pernet init.
 */
void sovia_keys_net_init(struct sovia_net *snet)
{
	INIT_LIST_HEAD(&snet->keys.list);
	INIT_DELAYED_WORK(&snet->keys.look, keys_look);
	kthread_init_work(&snet->keys.changed, keys_changed_work);
}

/**
 * sovia_keys_drop() - forget all keys of a namespace
 * @snet: the namespace, which is exiting: no process is in it, and it meets no one
 *
 * Context: process, may sleep.
 */
void sovia_keys_drop(struct sovia_net *snet)
{
	struct entry *entry;
	struct key *key;

	do {
		spin_lock(&keys_lock);
		entry = list_first_entry_or_null(&snet->keys.list, struct entry, node);
		key = entry ? entry_remove(entry) : NULL;
		spin_unlock(&keys_lock);
		key_put(key);
	} while (key);
	cancel_delayed_work_sync(&snet->keys.look);
	kthread_cancel_work_sync(&snet->keys.changed);
}

/* ---- the type ----------------------------------------------------------- */

static int key_vet_description(const char *text)
{
	struct sovia_key_name name;

	return sovia_key_name_parse(&name, text);
}

static int key_preparse(struct key_preparsed_payload *prep)
{
	struct entry *entry;

	if (prep->datalen < KEY_LEN_MIN || prep->datalen > KEY_LEN_MAX)
		return -EINVAL;
	entry = kzalloc(sizeof(*entry), GFP_KERNEL_ACCOUNT);
	if (!entry)
		return -ENOMEM;
	sovia_secret_of_key(&entry->secret, prep->data, prep->datalen);
	prep->payload.data[0] = entry;
	return 0;
}

static void key_free_preparse(struct key_preparsed_payload *prep)
{
	kfree_sensitive(prep->payload.data[0]);
}

/* Of the namespace of the process that adds it, or that completes it for request_key(2). */
static int key_instantiate(struct key *key, struct key_preparsed_payload *prep)
{
	struct net *net = current->nsproxy->net_ns;
	struct entry *entry = prep->payload.data[0];
	struct key *old = NULL;
	int err;

	if (!ns_capable(net->user_ns, CAP_NET_ADMIN))
		return -EPERM;
	err = sovia_key_name_parse(&entry->name, key->description);
	if (err)
		return err;
	entry->key = key;
	spin_lock(&keys_lock);
	err = entry_add(sovia_net(net), entry, &old);
	if (!err) {
		key->payload.data[0] = entry;
		prep->payload.data[0] = NULL;
		key_get(key);
	}
	spin_unlock(&keys_lock);
	key_put(old);
	return err;
}

/* It has none if it has not been completed. */
static void key_type_revoke(struct key *key)
{
	struct entry *entry = key->payload.data[0];

	if (!entry)
		return;
	spin_lock(&keys_lock);
	entry->valid = false;
	if (entry->snet)
		keys_changed(entry->snet);
	spin_unlock(&keys_lock);
}

/* The last reference has gone, or the type goes, although a list has one. */
static void key_destroy(struct key *key)
{
	struct entry *entry = key->payload.data[0];
	struct key *listed = NULL;

	if (!entry)
		return;
	spin_lock(&keys_lock);
	if (entry->snet)
		listed = entry_remove(entry);
	spin_unlock(&keys_lock);
	kfree_sensitive(entry);
	key_put(listed);
}

static void key_describe(const struct key *key, struct seq_file *seq)
{
	seq_puts(seq, key->description);
}

static struct key_type sovia_key_type = {
	.name			= "sovia",
	.flags			= KEY_TYPE_NET_DOMAIN,
	.def_datalen		= sizeof(struct entry),
	.vet_description	= key_vet_description,
	.preparse		= key_preparse,
	.free_preparse		= key_free_preparse,
	.instantiate		= key_instantiate,
	.revoke			= key_type_revoke,
	.destroy		= key_destroy,
	.describe		= key_describe,
};

/**
 * sovia_keys_init() - make the type known
 *
 * Context: module init; namespaces are registered.
 * Return: 0 or a negative errno.
 */
int sovia_keys_init(void)
{
	return register_key_type(&sovia_key_type);
}

/**
 * sovia_keys_exit() - forget all keys, and the type
 *
 * Context: module exit: no peer is answered any more, namespaces are still registered.  May sleep.
 */
void sovia_keys_exit(void)
{
	unregister_key_type(&sovia_key_type);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/key_test.c"
#endif

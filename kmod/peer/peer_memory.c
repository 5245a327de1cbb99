// SPDX-License-Identifier: GPL-2.0-only
/*
 * What is known of peers that AF_SOVIA does not reach, so that connect() uses TCP at once: only
 * the first one waits.  Documentation/fallback.rst.
 *
 * Like links and peers, this is known of a pair of addresses: a user who connects from an address
 * without a device does not keep those of others from theirs.  When the time is over, the next
 * connect() uses TCP as well, and has a link set up beside it: that clears the memory, or doubles
 * the time.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include "core/addr.h"
#include "core/objcount.h"
#include "core/trace.h"
#include "peer_memory.h"

#define MEMORIES_MAX		4096
/* How long a port is known where AF_SOVIA has no listener. */
#define SERVICE_TIME		(10 * HZ)
/* How long a link may take that is to renew one. */
#define MEMORY_RENEW		(30 * HZ)

/* In seconds: at first, and at most. */
static const struct {
	unsigned long	least;
	unsigned long	most;
} memory_times[SOVIA_WHY_MAX + 1] = {
	[SOVIA_WHY_SILENT]	= { 60, 3600 },
	[SOVIA_WHY_WAY]		= { 10, 600 },
	[SOVIA_WHY_DEVICE]	= { 10, 10 },
	[SOVIA_WHY_REFUSED]	= { 600, 600 },
	[SOVIA_WHY_DENIED]	= { 60, 3600 },
};

/**
 * struct memory - of a peer
 * @node: in sovia_memories::hash
 * @lru_node: in sovia_memories::lru, what was used last at the end
 * @pair: the addresses; lane is 0
 * @learnt: when it was learnt the last time, jiffies
 * @until: when it is over, jiffies
 * @delay: how long it holds, in jiffies
 * @why: enum sovia_why, one that memory_times[] has
 * @rcu: readers find it in the table
 *
 * Protected by sovia_memories::lock; @until, @delay and @why are read without it.
 */
struct memory {
	struct hlist_node	node;
	struct list_head	lru_node;
	struct sovia_pair	pair;
	unsigned long		learnt;
	unsigned long		until;
	unsigned long		delay;
	u8			why;
	struct rcu_head		rcu;
};

static struct memory *memory_find(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_pair key = *pair;
	struct memory *memory;

	key.lane = 0;
	hash_for_each_possible_rcu(snet->memories.hash, memory, node, sovia_pair_addr_hash(pair),
				   lockdep_is_held(&snet->memories.lock))
		if (sovia_pair_equal(&memory->pair, &key))
			return memory;
	return NULL;
}

static void memory_remove(struct sovia_net *snet, struct memory *memory)
{
	lockdep_assert_held(&snet->memories.lock);
	hash_del_rcu(&memory->node);
	list_del(&memory->lru_node);
	snet->memories.count--;
	kfree_rcu(memory, rcu);
	sovia_object_dec(unreached);
}

/* A new one, perhaps in place of that which was not used for the longest time. */
static struct memory *memory_add(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct sovia_memories *memories = &snet->memories;
	struct memory *memory = kzalloc(sizeof(*memory), GFP_ATOMIC | __GFP_NOWARN);

	if (!memory)
		return NULL;
	if (memories->count >= MEMORIES_MAX)
		memory_remove(snet, list_first_entry(&memories->lru, struct memory, lru_node));
	memory->pair = *pair;
	memory->pair.lane = 0;
	hash_add_rcu(memories->hash, &memory->node, sovia_pair_addr_hash(pair));
	list_add_tail(&memory->lru_node, &memories->lru);
	memories->count++;
	sovia_object_inc(unreached);
	return memory;
}

/* Is it the caller that renews it? */
static bool memory_renew(struct sovia_net *snet, struct memory *memory)
{
	bool yes;

	spin_lock_bh(&snet->memories.lock);
	yes = time_after_eq(jiffies, memory->until);
	if (yes)
		WRITE_ONCE(memory->until, jiffies + MEMORY_RENEW);
	spin_unlock_bh(&snet->memories.lock);
	return yes;
}

/**
 * sovia_memory_ask() - is a destination to be reached with TCP
 * @snet: namespace
 * @pair: its addresses
 * @why: set to the reason, unless nothing is known; may be NULL
 *
 * Context: any.
 * Return: what to do; of all callers at the same time one gets SOVIA_MEMORY_RENEW.
 */
enum sovia_memory_answer sovia_memory_ask(struct sovia_net *snet, const struct sovia_pair *pair,
					  enum sovia_why *why)
{
	enum sovia_memory_answer answer = SOVIA_MEMORY_NONE;
	struct memory *memory;

	if (!READ_ONCE(snet->memories.count))
		return answer;
	rcu_read_lock();
	memory = memory_find(snet, pair);
	if (memory) {
		answer = SOVIA_MEMORY_TCP;
		if (why)
			*why = READ_ONCE(memory->why);
		if (time_after_eq(jiffies, READ_ONCE(memory->until)) && memory_renew(snet, memory))
			answer = SOVIA_MEMORY_RENEW;
	}
	rcu_read_unlock();
	return answer;
}

/**
 * sovia_memory_why() - why is a peer not reached
 * @snet: namespace
 * @pair: the addresses
 * @other: the answer if nothing is known
 *
 * Context: any.
 * Return: the reason.
 */
enum sovia_why sovia_memory_why(struct sovia_net *snet, const struct sovia_pair *pair,
				enum sovia_why other)
{
	const struct memory *memory;

	rcu_read_lock();
	memory = memory_find(snet, pair);
	if (memory)
		other = READ_ONCE(memory->why);
	rcu_read_unlock();
	return other;
}

/**
 * sovia_memory_learn() - AF_SOVIA does not reach a peer
 * @snet: namespace
 * @pair: the addresses
 * @why: why; each time it is so again, it is remembered for twice the time
 *
 * Context: any.
 */
void sovia_memory_learn(struct sovia_net *snet, const struct sovia_pair *pair,
			enum sovia_why why)
{
	struct sovia_memories *memories = &snet->memories;
	struct memory *memory;
	bool again;

	spin_lock_bh(&memories->lock);
	memory = memory_find(snet, pair);
	again = memory;
	if (!memory)
		memory = memory_add(snet, pair);
	if (memory) {
		/* Several connections learn the same at once. */
		if (!again || time_after_eq(jiffies, memory->learnt + memory->delay))
			WRITE_ONCE(memory->delay,
				   clamp(2 * memory->delay, memory_times[why].least * HZ,
					 memory_times[why].most * HZ));
		memory->learnt = jiffies;
		WRITE_ONCE(memory->why, why);
		trace_sovia_unreached(pair, why, memory->delay);
		WRITE_ONCE(memory->until, jiffies + memory->delay);
		list_move_tail(&memory->lru_node, &memories->lru);
	}
	spin_unlock_bh(&memories->lock);
}

/**
 * sovia_memory_clear() - a peer speaks AF_SOVIA
 * @snet: namespace
 * @pair: the addresses
 *
 * Context: any.
 */
void sovia_memory_clear(struct sovia_net *snet, const struct sovia_pair *pair)
{
	struct memory *memory;

	if (!READ_ONCE(snet->memories.count))
		return;
	spin_lock_bh(&snet->memories.lock);
	memory = memory_find(snet, pair);
	if (memory)
		memory_remove(snet, memory);
	spin_unlock_bh(&snet->memories.lock);
}

/**
 * sovia_service_key() - what a port of a peer is known by
 * @snet: namespace
 * @pair: its addresses
 * @port: the port
 *
 * Context: any.
 * Return: the key, not 0.
 */
u64 sovia_service_key(const struct sovia_net *snet, const struct sovia_pair *pair, u16 port)
{
	const struct {
		struct in6_addr	remote;
		u32		l3;
		u32		scope;
		u64		port;
	} service = { pair->remote, pair->l3, pair->scope, port };

	return siphash(&service, sizeof(service), &snet->memories.secret) ?: 1;
}

static unsigned int service_slot(u64 key)
{
	return key & ((1 << SOVIA_SERVICE_BITS) - 1);
}

/**
 * sovia_services_any() - may there be a port for sovia_service_is_tcp()
 * @snet: namespace
 *
 * Saves the hash of the key where there is none.
 *
 * Context: any.
 * Return: false if there is none.
 */
bool sovia_services_any(const struct sovia_net *snet)
{
	return time_before(jiffies, READ_ONCE(snet->memories.services_until));
}

/**
 * sovia_service_is_tcp() - is a port known where TCP has a listener, AF_SOVIA none
 * @snet: namespace
 * @key: the port's
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_service_is_tcp(const struct sovia_net *snet, u64 key)
{
	const struct sovia_service *service = &snet->memories.services[service_slot(key)];

	return READ_ONCE(service->key) == key && time_before(jiffies, READ_ONCE(service->until));
}

/**
 * sovia_service_learn() - AF_SOVIA has no listener at a port, and TCP has one
 * @snet: namespace
 * @key: the port's
 * @refused: when AF_SOVIA was refused, jiffies; if that is long ago, nothing is learnt
 *
 * Context: any.
 */
void sovia_service_learn(struct sovia_net *snet, u64 key, unsigned long refused)
{
	struct sovia_service *service = &snet->memories.services[service_slot(key)];

	if (time_after_eq(jiffies, refused + SERVICE_TIME))
		return;
	WRITE_ONCE(service->until, refused + SERVICE_TIME);
	WRITE_ONCE(service->key, key);
	/* Of two writers the later one matters, and they differ by little. */
	WRITE_ONCE(snet->memories.services_until, jiffies + SERVICE_TIME);
}

/**
 * sovia_service_forget() - TCP has no listener at a port either
 * @snet: namespace
 * @key: the port's
 *
 * Context: any.
 */
void sovia_service_forget(struct sovia_net *snet, u64 key)
{
	struct sovia_service *service = &snet->memories.services[service_slot(key)];

	if (READ_ONCE(service->key) == key)
		WRITE_ONCE(service->key, 0);
}

static void services_forget(struct sovia_net *snet)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(snet->memories.services); i++)
		WRITE_ONCE(snet->memories.services[i].key, 0);
}

/**
 * sovia_memory_walk() - go through what is known
 * @snet: namespace
 * @bucket: below 1 << SOVIA_MEMORY_BITS; users cannot foresee which addresses are in one
 * @take: is called for each pair of addresses in it, under RCU; 0 to go on
 * @context: of @take
 *
 * Context: process.
 * Return: 0, or what @take has returned.
 */
int sovia_memory_walk(struct sovia_net *snet, unsigned int bucket,
		      int (*take)(const struct sovia_unreached *unreached, void *context),
		      void *context)
{
	struct sovia_unreached unreached;
	const struct memory *memory;
	int ret = 0;

	rcu_read_lock();
	hlist_for_each_entry_rcu(memory, &snet->memories.hash[bucket], node) {
		unreached = (struct sovia_unreached) {
			.pair = memory->pair,
			.why = READ_ONCE(memory->why),
			.left = max((long)(READ_ONCE(memory->until) - jiffies), 0L) / HZ,
			.whole = READ_ONCE(memory->delay) / HZ,
		};
		ret = take(&unreached, context);
		if (ret)
			break;
	}
	rcu_read_unlock();
	return ret;
}

/**
 * sovia_memories_init() - prepare a namespace's table
 * @snet: the namespace
 *
 * Context: pernet init.
 */
void sovia_memories_init(struct sovia_net *snet)
{
	spin_lock_init(&snet->memories.lock);
	hash_init(snet->memories.hash);
	INIT_LIST_HEAD(&snet->memories.lru);
	get_random_bytes(&snet->memories.secret, sizeof(snet->memories.secret));
}

/**
 * sovia_memories_forget() - forget all of a namespace
 * @snet: the namespace
 *
 * Context: process.
 */
void sovia_memories_forget(struct sovia_net *snet)
{
	struct memory *memory, *next;

	spin_lock_bh(&snet->memories.lock);
	list_for_each_entry_safe(memory, next, &snet->memories.lru, lru_node)
		memory_remove(snet, memory);
	spin_unlock_bh(&snet->memories.lock);
	services_forget(snet);
}

/**
 * sovia_memories_forget_why() - forget those of a namespace that are there for one reason
 * @snet: the namespace
 * @why: the reason
 *
 * Context: process.
 */
void sovia_memories_forget_why(struct sovia_net *snet, enum sovia_why why)
{
	struct memory *memory, *next;

	spin_lock_bh(&snet->memories.lock);
	list_for_each_entry_safe(memory, next, &snet->memories.lru, lru_node)
		if (memory->why == why)
			memory_remove(snet, memory);
	spin_unlock_bh(&snet->memories.lock);
}

#if IS_ENABLED(CONFIG_SOVIA_KUNIT_TEST)
#include "test/peer_memory_test.c"
#endif

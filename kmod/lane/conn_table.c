// SPDX-License-Identifier: GPL-2.0-only
/*
 * The established table: finds the connection of a message by addresses and ports.
 *
 * The key is the four-tuple, which exists once in an L3 domain of a namespace, whatever
 * links and lanes there are.  A message has to come on the connection's own link.  Readers
 * are under RCU.
 */
#include <linux/jhash.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <net/ipv6.h>
#include "conn_table.h"

/**
 * struct conn_key - what a connection is looked up by
 * @link: its link, or NULL for any between the addresses
 * @pair: the addresses
 * @addr_hash: their hash
 * @lport: own port, host order
 * @rport: the peer's port, host order
 */
struct conn_key {
	const struct sovia_link	*link;
	const struct sovia_pair	*pair;
	u32			addr_hash;
	u16			lport;
	u16			rport;
};

static u32 conn_hash(u32 addr_hash, u16 lport, u16 rport, u32 seed)
{
	return jhash_2words(addr_hash, (u32)lport << 16 | rport, seed);
}

static u32 hash_key(const void *data, u32 len, u32 seed)
{
	const struct conn_key *key = data;

	return conn_hash(key->addr_hash, key->lport, key->rport, seed);
}

static u32 hash_conn(const void *data, u32 len, u32 seed)
{
	const struct sovia_conn *conn = data;

	return conn_hash(conn->link->addr_hash, conn->lport, conn->rport, seed);
}

static bool same_addresses(const struct sovia_pair *a, const struct sovia_pair *b)
{
	return ipv6_addr_equal(&a->local, &b->local) &&
	       ipv6_addr_equal(&a->remote, &b->remote) && a->scope == b->scope &&
	       a->l3 == b->l3;
}

/**
 * sovia_pair_addr_hash() - hash of the addresses in a four-tuple
 * @pair: the addresses
 *
 * Context: any.
 * Return: the hash, for sovia_link::addr_hash.
 */
u32 sovia_pair_addr_hash(const struct sovia_pair *pair)
{
	static u32 seed;

	get_random_once(&seed, sizeof(seed));
	if (ipv6_addr_v4mapped(&pair->remote))
		return jhash_3words((__force u32)pair->remote.s6_addr32[3],
				    (__force u32)pair->local.s6_addr32[3], pair->l3, seed);
	return jhash_2words(__ipv6_addr_jhash(&pair->remote, seed),
			    __ipv6_addr_jhash(&pair->local, pair->scope), seed ^ pair->l3);
}

/* Returns 0 if it is the one. */
static int conn_differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct conn_key *key = arg->key;
	const struct sovia_conn *conn = obj;

	if (conn->lport != key->lport || conn->rport != key->rport)
		return 1;
	if (key->link)
		return conn->link != key->link;
	return !same_addresses(&conn->link->pair, key->pair);
}

static const struct rhashtable_params conn_params = {
	.head_offset		= offsetof(struct sovia_conn, hash_node),
	.key_len		= sizeof(struct conn_key),
	.hashfn			= hash_key,
	.obj_hashfn		= hash_conn,
	.obj_cmpfn		= conn_differs,
	.automatic_shrinking	= true,
};

/**
 * sovia_conn_hash() - add a connection to the table
 * @conn: the connection
 *
 * Context: process or softirq, socket lock held.
 * Return: 0, -EADDRNOTAVAIL if another connection has the same addresses and ports,
 * or -ENOMEM.
 */
int sovia_conn_hash(struct sovia_conn *conn)
{
	const struct conn_key key = {
		.pair = &conn->link->pair, .addr_hash = conn->link->addr_hash,
		.lport = conn->lport, .rport = conn->rport,
	};
	int err;

	err = rhashtable_lookup_insert_key(&conn->link->snet->conns, &key, &conn->hash_node,
					   conn_params);
	if (!err) {
		WRITE_ONCE(conn->hashed, true);
		sovia_conn_get(conn);
	}
	return err == -EEXIST ? -EADDRNOTAVAIL : err;
}

/**
 * sovia_conn_unhash() - remove a connection from the table
 * @conn: hashed or not
 *
 * Readers may still use it.
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_conn_unhash(struct sovia_conn *conn)
{
	if (!conn->hashed)
		return;
	WRITE_ONCE(conn->hashed, false);
	rhashtable_remove_fast(&conn->link->snet->conns, &conn->hash_node, conn_params);
	sovia_conn_put(conn);
}

/**
 * sovia_conn_lookup() - find the connection of a message
 * @link: link the message came on
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: any, under rcu_read_lock(), which keeps the connection.
 * Return: the connection, or NULL.
 */
struct sovia_conn *sovia_conn_lookup(struct sovia_link *link, u16 lport, u16 rport)
{
	const struct conn_key key = {
		.link = link, .addr_hash = link->addr_hash, .lport = lport, .rport = rport,
	};

	return rhashtable_lookup(&link->snet->conns, &key, conn_params);
}

/**
 * sovia_conn_occupant() - find the connection that has a four-tuple
 * @link: any link between the addresses
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: any, under rcu_read_lock(), which keeps the connection.
 * Return: the connection, on whatever link, or NULL.
 */
struct sovia_conn *sovia_conn_occupant(struct sovia_link *link, u16 lport, u16 rport)
{
	const struct conn_key key = {
		.pair = &link->pair, .addr_hash = link->addr_hash,
		.lport = lport, .rport = rport,
	};

	return rhashtable_lookup(&link->snet->conns, &key, conn_params);
}

/**
 * sovia_conn_find() - find a connection by its four-tuple
 * @snet: namespace
 * @pair: the addresses
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: any, under rcu_read_lock(), which keeps the connection.
 * Return: the connection, or NULL.
 */
struct sovia_conn *sovia_conn_find(struct sovia_net *snet, const struct sovia_pair *pair,
				   u16 lport, u16 rport)
{
	const struct conn_key key = {
		.pair = pair, .addr_hash = sovia_pair_addr_hash(pair),
		.lport = lport, .rport = rport,
	};

	return rhashtable_lookup(&snet->conns, &key, conn_params);
}

/**
 * sovia_conn_mirror() - find the other end of a connection within a namespace
 * @conn: one end
 *
 * Context: any, under rcu_read_lock(), which keeps the connection.
 * Return: the connection with addresses and ports exchanged, or NULL.
 */
struct sovia_conn *sovia_conn_mirror(const struct sovia_conn *conn)
{
	const struct sovia_pair *pair = &conn->link->pair;
	const struct sovia_pair mirror = {
		.local = pair->remote, .remote = pair->local,
		.scope = pair->scope, .l3 = pair->l3,
	};

	return sovia_conn_find(conn->link->snet, &mirror, conn->rport, conn->lport);
}

/**
 * sovia_conn_taken() - is there a connection with this four-tuple
 * @snet: namespace
 * @pair: the addresses
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: any; a hint.
 * Return: true if so.
 */
bool sovia_conn_taken(struct sovia_net *snet, const struct sovia_pair *pair, u16 lport,
		      u16 rport)
{
	bool taken;

	rcu_read_lock();
	taken = sovia_conn_find(snet, pair, lport, rport);
	rcu_read_unlock();
	return taken;
}

/**
 * sovia_conn_table_init() - create a namespace's table
 * @snet: the namespace
 *
 * Return: 0 or a negative errno.
 */
int sovia_conn_table_init(struct sovia_net *snet)
{
	return rhashtable_init(&snet->conns, &conn_params);
}

/**
 * sovia_conn_table_exit() - free a namespace's empty table
 * @snet: the namespace
 */
void sovia_conn_table_exit(struct sovia_net *snet)
{
	rhashtable_destroy(&snet->conns);
}

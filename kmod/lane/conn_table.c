// SPDX-License-Identifier: GPL-2.0-only
/*
 * The established table: finds the connection of a message by addresses and ports.
 *
 * The key is the four-tuple, which exists once in an L3 domain of a namespace, whatever
 * links and lanes there are.  A message has to come on the connection's own lane.  Readers
 * are under RCU.
 */
#include <linux/jhash.h>
#include <linux/once.h>
#include <linux/random.h>
#include <linux/rhashtable.h>
#include <net/ipv6.h>
#include "conn_table.h"
#include "core/addr.h"

/**
 * struct conn_key - what a connection is looked up by
 * @lane: its lane, or NULL for any between the addresses
 * @pair: the addresses
 * @addr_hash: their hash
 * @lport: own port, host order
 * @rport: the peer's port, host order
 */
struct conn_key {
	const struct sovia_lane	*lane;
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

	return conn_hash(conn->lane->addr_hash, conn->lport, conn->rport, seed);
}

static bool same_addresses(const struct sovia_pair *a, const struct sovia_pair *b)
{
	return ipv6_addr_equal(&a->local, &b->local) &&
	       ipv6_addr_equal(&a->remote, &b->remote) && a->scope == b->scope &&
	       a->l3 == b->l3;
}

/* Returns 0 if it is the one. */
static int conn_differs(struct rhashtable_compare_arg *arg, const void *obj)
{
	const struct conn_key *key = arg->key;
	const struct sovia_conn *conn = obj;

	if (conn->lport != key->lport || conn->rport != key->rport)
		return 1;
	if (key->lane)
		return conn->lane != key->lane;
	return !same_addresses(conn->lane->pair, key->pair);
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
		.pair = conn->lane->pair, .addr_hash = conn->lane->addr_hash,
		.lport = conn->lport, .rport = conn->rport,
	};
	int err;

	err = rhashtable_lookup_insert_key(&conn->lane->snet->conns, &key, &conn->hash_node,
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
	rhashtable_remove_fast(&conn->lane->snet->conns, &conn->hash_node, conn_params);
	sovia_conn_put(conn);
}

/**
 * sovia_conn_lookup() - find the connection of a message
 * @lane: lane the message came on
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: any, under rcu_read_lock(), which keeps the connection.
 * Return: the connection, or NULL.
 */
struct sovia_conn *sovia_conn_lookup(struct sovia_lane *lane, u16 lport, u16 rport)
{
	const struct conn_key key = {
		.lane = lane, .addr_hash = lane->addr_hash, .lport = lport, .rport = rport,
	};

	return rhashtable_lookup(&lane->snet->conns, &key, conn_params);
}

/**
 * sovia_conn_occupant() - find the connection that has a four-tuple
 * @lane: any lane between the addresses
 * @lport: own port
 * @rport: the peer's port
 *
 * Context: any, under rcu_read_lock(), which keeps the connection.
 * Return: the connection, on whatever lane, or NULL.
 */
struct sovia_conn *sovia_conn_occupant(struct sovia_lane *lane, u16 lport, u16 rport)
{
	const struct conn_key key = {
		.pair = lane->pair, .addr_hash = lane->addr_hash,
		.lport = lport, .rport = rport,
	};

	return rhashtable_lookup(&lane->snet->conns, &key, conn_params);
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
	const struct sovia_pair *pair = conn->lane->pair;
	const struct sovia_pair mirror = {
		.local = pair->remote, .remote = pair->local,
		.scope = pair->scope, .l3 = pair->l3,
	};

	return sovia_conn_find(conn->lane->snet, &mirror, conn->rport, conn->lport);
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

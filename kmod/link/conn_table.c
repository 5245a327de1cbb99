// SPDX-License-Identifier: GPL-2.0-only
/*
 * Looks up the connection of a message by link and both ports.
 *
 * Lookups run in softirq under RCU and take the socket reference inside;
 * sockets are freed after a grace period (SOCK_RCU_FREE).
 */
#include <linux/rhashtable.h>
#include "conn_table.h"
#include "debug/objcount.h"

static const struct rhashtable_params conn_params = {
	.head_offset		= offsetof(struct sovia_conn, hash_node),
	.key_offset		= offsetof(struct sovia_conn, key),
	.key_len		= offsetofend(struct sovia_conn_key, rport),
	.automatic_shrinking	= true,
};

/**
 * sovia_conn_hash() - add a connection to the table
 * @conn: with its key set
 *
 * Context: process or softirq, socket lock held.
 * Return: 0, -EADDRNOTAVAIL if another connection has the same key, -ENOMEM.
 */
int sovia_conn_hash(struct sovia_conn *conn)
{
	struct sovia_net *snet = conn->key.link->snet;
	int err;

	err = rhashtable_lookup_insert_fast(&snet->conns, &conn->hash_node, conn_params);
	if (!err) {
		conn->hashed = true;
		sovia_object_inc(connections);
	}
	return err == -EEXIST ? -EADDRNOTAVAIL : err;
}

/**
 * sovia_conn_unhash() - remove a connection from the table
 * @conn: hashed or not
 *
 * Concurrent lookups may still hold references.
 *
 * Context: socket lock held, process or softirq.
 */
void sovia_conn_unhash(struct sovia_conn *conn)
{
	if (!conn->hashed)
		return;
	conn->hashed = false;
	sovia_object_dec(connections);
	rhashtable_remove_fast(&conn->key.link->snet->conns, &conn->hash_node, conn_params);
}

/*
 * Read the generation of the connection found.  The socket may have left it and been
 * hashed again with another key: then @gen may be the new one's, so recheck the key.
 */
static bool read_gen(const struct sovia_conn *conn, const struct sovia_conn_key *key, u32 *gen)
{
	/* Pairs with the release in sovia_rx_forget(): a new @gen implies the new key. */
	*gen = smp_load_acquire(&conn->gen);
	return READ_ONCE(conn->key.link) == key->link &&
	       READ_ONCE(conn->key.lport) == key->lport &&
	       READ_ONCE(conn->key.rport) == key->rport;
}

/**
 * sovia_conn_lookup() - find the connection of a message
 * @link: link the message came on
 * @lport: own port
 * @rport: the peer's port
 * @gen: set to its generation, for upcalls
 *
 * Context: any.
 * Return: the connection with a socket reference for the caller, or NULL.
 */
struct sovia_conn *sovia_conn_lookup(struct sovia_link *link, u16 lport, u16 rport, u32 *gen)
{
	const struct sovia_conn_key key = { .link = link, .lport = lport, .rport = rport };
	struct sovia_conn *conn;

	rcu_read_lock();
	conn = rhashtable_lookup(&link->snet->conns, &key, conn_params);
	if (conn && !refcount_inc_not_zero(&conn->sk->sk_refcnt))
		conn = NULL;
	rcu_read_unlock();
	if (conn && !read_gen(conn, &key, gen)) {
		sock_put(conn->sk);
		conn = NULL;
	}
	return conn;
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

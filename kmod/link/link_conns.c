// SPDX-License-Identifier: GPL-2.0-only
/* The connections of a link: they join it, leave it, and are told of its state. */
#include "lane/lane.h"
#include "lane/lane_tx.h"
#include "link_conns.h"
#include "link_state.h"
#include "link_table.h"
#include "peer/peer.h"

/**
 * sovia_link_attach() - put a connection on the list of its link
 * @conn: not on the list
 *
 * The client's up or down upcall follows, unless the link has been UP and is not DOWN: then
 * this returns 1 and the up upcall is omitted.
 *
 * Context: process or softirq, socket lock held.
 * Return: 0 wait for the upcall, 1 the link is up, -ENOTCONN it is DOWN: get
 * another one.
 */
int sovia_link_attach(struct sovia_conn *conn)
{
	struct sovia_link *link = sovia_conn_link(conn);
	int ret = 0;

	spin_lock_bh(&link->lock);
	if (link->state == SOVIA_LINK_DOWN) {
		ret = -ENOTCONN;
	} else {
		sovia_conn_get(conn);
		list_add_tail(&conn->link_node, &link->conns);
		conn->attached = true;
		link->conn_count++;
		sovia_link_count_spare(link);
		ret = sovia_link_lives(link->state);
	}
	spin_unlock_bh(&link->lock);
	if (!ret)
		sovia_link_event(link, SOVIA_LINK_EV_START);
	return ret;
}

/**
 * sovia_link_detach() - take a connection off the list of its link
 * @conn: on the list or not
 *
 * Context: process or softirq, socket lock held.
 */
void sovia_link_detach(struct sovia_conn *conn)
{
	struct sovia_link *link = sovia_conn_link(conn);

	if (!conn->attached)
		return;
	conn->attached = false;
	spin_lock_bh(&link->lock);
	list_del_init(&conn->link_node);
	link->conn_count--;
	sovia_link_count_spare(link);
	/* Loop links are cheap to set up again: end them when idle. */
	if (!link->conn_count && link->state == SOVIA_LINK_UP && link->lane.prov->local)
		sovia_link_set_timer(link, sovia_link_idle_wait(link));
	spin_unlock_bh(&link->lock);
	sovia_conn_put(conn);
}

/*
 * Call @fn for each of @conns, which link_enter() took off the link.  They may leave
 * the link and others may join while @fn runs, so no cursor is valid: move each back to
 * link->conns before its call.
 */
static void link_for_each(struct sovia_link *link, struct list_head *conns,
			  void (*fn)(struct sovia_conn *, int), int arg)
{
	struct sovia_conn *conn;

	spin_lock_bh(&link->lock);
	while ((conn = list_first_entry_or_null(conns, struct sovia_conn, link_node))) {
		list_move_tail(&conn->link_node, &link->conns);
		sovia_conn_get(conn);
		spin_unlock_bh(&link->lock);
		fn(conn, arg);
		sovia_conn_put(conn);
		spin_lock_bh(&link->lock);
	}
	spin_unlock_bh(&link->lock);
}

static void conn_up(struct sovia_conn *conn, int unused)
{
	sovia_lane_client->up(conn);
}

static void conn_down(struct sovia_conn *conn, int err)
{
	sovia_lane_client->down(conn, err);
}

/**
 * sovia_link_notify_up() - tell connections that their link is up
 * @link: the link
 * @conns: the connections, off the list of @link; empty afterwards
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_notify_up(struct sovia_link *link, struct list_head *conns)
{
	link_for_each(link, conns, conn_up, 0);
}

/**
 * sovia_link_notify_down() - tell connections that their link is down
 * @link: the link
 * @conns: the connections, off the list of @link; empty afterwards
 * @err: why, a negative errno
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_notify_down(struct sovia_link *link, struct list_head *conns, int err)
{
	link_for_each(link, conns, conn_down, err);
}

static void conn_barred(struct sovia_conn *conn, int err)
{
	sovia_lane_client->barred(conn, err);
}

/**
 * sovia_link_notify_open() - tell connections whether they may be opened now
 * @link: UP, RECOVERING or PARKED
 * @err: 0, or why not, a negative errno
 *
 * Context: connection thread; no link or lane lock.
 */
void sovia_link_notify_open(struct sovia_link *link, int err)
{
	LIST_HEAD(conns);

	spin_lock_bh(&link->lock);
	list_splice_init(&link->conns, &conns);
	spin_unlock_bh(&link->lock);
	link_for_each(link, &conns, err ? conn_barred : conn_up, err);
}

/**
 * sovia_link_may_open() - may connections to the peer be opened over a link
 * @link: UP, RECOVERING or PARKED
 *
 * Each direction needs a rendezvous that its side has begun.
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_link_may_open(const struct sovia_link *link)
{
	const struct sovia_peer *peer = READ_ONCE(link->peering.peer);

	return !peer || READ_ONCE(peer->out);
}

/**
 * sovia_link_open() - ask for that
 * @link: UP, RECOVERING or PARKED
 * @uid: user that connects
 *
 * The client's up or barred upcall follows.
 *
 * Context: any.
 */
void sovia_link_open(struct sovia_link *link, kuid_t uid)
{
	WRITE_ONCE(link->opener, uid);
	sovia_link_event(link, SOVIA_LINK_EV_OPEN);
}

/**
 * sovia_link_shut_out() - the peer says that we may not open connections
 * @link: of one that was tried
 *
 * It has lost the anchor, and we have not noticed yet.
 *
 * Context: any.
 */
void sovia_link_shut_out(struct sovia_link *link)
{
	if (link->peering.peer)
		WRITE_ONCE(link->peering.peer->out, false);
}

/**
 * sovia_link_takes_requests() - may the peer open connections over a link
 * @link: the link
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_link_takes_requests(const struct sovia_link *link)
{
	const struct sovia_peer *peer = READ_ONCE(link->peering.peer);

	return !peer || READ_ONCE(peer->in);
}

/**
 * sovia_link_has_return() - does the peer know PRESSURE and RETURN
 * @link: the link
 *
 * Context: any.
 * Return: true if so.
 */
bool sovia_link_has_return(const struct sovia_link *link)
{
	const struct sovia_peer *peer = READ_ONCE(link->peering.peer);

	return peer ? READ_ONCE(peer->features) & SOVIA_FEATURE_RETURN : link->lane.prov->local;
}

/**
 * sovia_link_key() - number of the key under which a link's ends have met
 * @link: the link
 *
 * Context: any; a hint.
 * Return: the number, 0 without a key.
 */
u64 sovia_link_key(const struct sovia_link *link)
{
	const struct sovia_peer *peer = READ_ONCE(link->peering.peer);

	return peer ? READ_ONCE(peer->key.id) : 0;
}

/**
 * sovia_link_refuse() - answer a CONN with REFUSE
 * @link: the link it came on
 * @conn_msg: the CONN
 * @code: enum sovia_code
 *
 * Context: process or softirq; no link or lane lock.
 */
void sovia_link_refuse(struct sovia_link *link, const struct sovia_msg *conn_msg, u32 code)
{
	sovia_stat_inc(link->snet, conn_refused);
	sovia_lane_reply(&link->lane, SOVIA_REFUSE, conn_msg->dport, conn_msg->sport,
			 conn_msg->seq, code);
}

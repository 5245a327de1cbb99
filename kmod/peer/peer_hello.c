// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric's requests and replies between kernels that know each other: their MACs.  See
 * Documentation/rendezvous.rst.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <net/tcp.h>
#include <sovia/wire.h>
#include "key.h"
#include "peer.h"
#include "peer_hello.h"

/* Returns 0 if it is its sender's and new, -EAGAIN if it is not new, or -ESTALE. */
static int peer_check_mac(struct sovia_peer *peer, const struct sovia_vi_request *req, u8 lane,
			  u32 generation)
{
	u32 *heard = &peer->heard[lane];
	int err = 0;

	spin_lock(&peer->lock);
	if (!sovia_secret_sealed(&peer->secret, SOVIA_SEAL_REQ, &req->hello, &req->path))
		err = -ESTALE;
	else if (!before(*heard, generation))
		err = -EAGAIN;
	else
		*heard = generation;
	spin_unlock(&peer->lock);
	return err;
}

/**
 * sovia_peer_check_request() - is a request what it says to be
 * @snet: namespace
 * @req: the request, with a whole hello
 * @lane: of its hello, less than SOVIA_LANES_MAX
 * @generation: of its hello
 * @peer: its sender, or NULL where none is needed
 *
 * Context: connection thread.
 * Return: 0, -ESTALE: not, or no more; or -EAGAIN: it was taken before.  The connection manager
 * repeats a request whose answer was lost, and its sender is to make another one.
 */
int sovia_peer_check_request(struct sovia_net *snet, struct sovia_vi_request *req,
			     u8 lane, u32 generation, struct sovia_peer **peer)
{
	int err;

	*peer = NULL;
	if (!req->prov->introduced)
		return 0;
	if (!req->checked && req->prov == &sovia_clan_provider)
		*peer = sovia_peer_find_sealed(snet, req);
	if (!*peer)
		*peer = sovia_peer_find(snet, &req->pair);
	if (!*peer || (*peer)->state == SOVIA_PEER_NONE)
		return -ESTALE;
	/* It will end soon. */
	if (!sovia_keys_permit(snet, &(*peer)->pair, &(*peer)->key))
		return -ESTALE;
	err = req->checked ? 0 : peer_check_mac(*peer, req, lane, generation);
	if (!err)
		req->checked = true;
	if (err != -ESTALE)
		return err;
	sovia_stat_inc(snet, bad_mac);
	pr_warn_ratelimited("link request of %pI6c: wrong MAC\n", &req->pair.remote);
	return err;
}

/**
 * sovia_peer_seal() - complete a hello that is to be sent
 * @peer: to whom
 * @active: it is a request, not a reply
 * @path: that the VI takes
 * @generation: of the request: set if it is ours
 * @hello: the hello
 *
 * Context: process.
 * Return: 0, or -ESTALE without a secret.
 */
int sovia_peer_seal(struct sovia_peer *peer, bool active, const struct sovia_path *path,
		    u32 *generation, struct sovia_hello *hello)
{
	spin_lock(&peer->lock);
	if (active)
		*generation = ++peer->generation;
	hello->generation = cpu_to_be32(*generation);
	sovia_secret_seal(&peer->secret, active ? SOVIA_SEAL_REQ : SOVIA_SEAL_REP, hello, path);
	spin_unlock(&peer->lock);
	return 0;
}

/**
 * sovia_peer_check_reply() - is the reply to our request what it says to be
 * @peer: whose reply
 * @path: of the request
 * @generation: of the request
 * @hello: of the reply, whole
 *
 * Context: process.
 * Return: 0 or -ECONNREFUSED.
 */
int sovia_peer_check_reply(struct sovia_peer *peer, const struct sovia_path *path, u32 generation,
			   const struct sovia_hello *hello)
{
	bool right;

	spin_lock(&peer->lock);
	right = sovia_secret_sealed(&peer->secret, SOVIA_SEAL_REP, hello, path);
	spin_unlock(&peer->lock);
	if (right && be32_to_cpu(hello->generation) == generation)
		return 0;
	sovia_stat_inc(peer->snet, bad_mac);
	pr_warn_ratelimited("link reply of %pI6c: wrong MAC\n", &peer->pair.remote);
	return -ECONNREFUSED;
}

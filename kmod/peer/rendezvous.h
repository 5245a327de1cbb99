/* SPDX-License-Identifier: GPL-2.0-only */
/* The reserved ports where kernels meet. */
#ifndef _SOVIA_RENDEZVOUS_KMOD_H
#define _SOVIA_RENDEZVOUS_KMOD_H

#include "anchor.h"
#include "core/net.h"

/* Each router on the way lowers it. */
#define SOVIA_RENDEZVOUS_TTL	255

/**
 * enum sovia_rendezvous_mode - values of net.sovia.rendezvous
 * @SOVIA_RENDEZVOUS_OFF: no links to other nodes
 * @SOVIA_RENDEZVOUS_ASK: ask others, do not answer
 * @SOVIA_RENDEZVOUS_BOTH: ask and answer
 */
enum sovia_rendezvous_mode {
	SOVIA_RENDEZVOUS_OFF,
	SOVIA_RENDEZVOUS_ASK,
	SOVIA_RENDEZVOUS_BOTH,
};

int sovia_rendezvous_init(void);
void sovia_rendezvous_exit(void);
int sovia_rendezvous_net_init(struct sovia_net *snet);
void sovia_rendezvous_net_pre_exit(struct sovia_net *snet);
struct socket *sovia_rendezvous_socket(struct sovia_net *snet, const struct sovia_pair *pair);
int sovia_rendezvous_connect(struct socket *sock, const struct sovia_pair *pair);
void sovia_rendezvous_set_min_ttl(struct socket *sock, int ttl);
void sovia_rendezvous_close(struct socket *sock);
int sovia_rendezvous_admit(struct sovia_anchor *anchor);

/* Must links of this namespace to other nodes be introduced? */
static inline bool sovia_rendezvous_wanted(const struct sovia_net *snet)
{
	return READ_ONCE(snet->rdv.mode.value) != SOVIA_RENDEZVOUS_OFF;
}

#endif /* _SOVIA_RENDEZVOUS_KMOD_H */

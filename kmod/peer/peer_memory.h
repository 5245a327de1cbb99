/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known of peers that AF_SOVIA does not reach. */
#ifndef _SOVIA_PEER_MEMORY_H
#define _SOVIA_PEER_MEMORY_H

#include <linux/sovia.h>
#include "core/net.h"
#include "core/provider.h"

/**
 * struct sovia_unreached - what is known of a pair of addresses, to be shown
 * @pair: the addresses; lane is 0
 * @why: enum sovia_why
 * @left: seconds until it is over
 * @whole: how long it holds, seconds
 */
struct sovia_unreached {
	struct sovia_pair	pair;
	u8			why;
	unsigned int		left;
	unsigned int		whole;
};

/**
 * enum sovia_memory_answer - what connect() is to do
 * @SOVIA_MEMORY_NONE: nothing is known
 * @SOVIA_MEMORY_TCP: use TCP
 * @SOVIA_MEMORY_RENEW: use TCP, and have a link set up beside it
 */
enum sovia_memory_answer {
	SOVIA_MEMORY_NONE,
	SOVIA_MEMORY_TCP,
	SOVIA_MEMORY_RENEW,
};

enum sovia_memory_answer sovia_memory_ask(struct sovia_net *snet, const struct sovia_pair *pair,
					  enum sovia_why *why);
enum sovia_why sovia_memory_why(struct sovia_net *snet, const struct sovia_pair *pair,
				enum sovia_why other);
void sovia_memory_learn(struct sovia_net *snet, const struct sovia_pair *pair,
			enum sovia_why why);
void sovia_memory_clear(struct sovia_net *snet, const struct sovia_pair *pair);
u64 sovia_service_key(const struct sovia_net *snet, const struct sovia_pair *pair, u16 port);
bool sovia_services_any(const struct sovia_net *snet);
bool sovia_service_is_tcp(const struct sovia_net *snet, u64 key);
void sovia_service_learn(struct sovia_net *snet, u64 key, unsigned long refused);
void sovia_service_forget(struct sovia_net *snet, u64 key);
int sovia_memory_walk(struct sovia_net *snet, unsigned int bucket,
		      int (*take)(const struct sovia_unreached *unreached, void *context),
		      void *context);
void sovia_memories_init(struct sovia_net *snet);
void sovia_memories_forget(struct sovia_net *snet);
void sovia_memories_forget_why(struct sovia_net *snet, enum sovia_why why);

#endif /* _SOVIA_PEER_MEMORY_H */

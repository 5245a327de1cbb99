/* SPDX-License-Identifier: GPL-2.0-only */
/* What is known of peers that AF_SOVIA does not reach. */
#ifndef _SOVIA_PEER_MEMORY_H
#define _SOVIA_PEER_MEMORY_H

#include <linux/seq_file.h>
#include "net.h"
#include "provider.h"

/**
 * enum sovia_memory_cause - why a peer is not reached
 * @SOVIA_MEMORY_SILENT: no kernel answers there, or not in time
 * @SOVIA_MEMORY_WAY: one does, but RDMA does not work
 * @SOVIA_MEMORY_DEVICE: there is no device here
 * @SOVIA_MEMORY_REFUSED: it does not want this node
 * @SOVIA_MEMORY_CAUSES: how many there are
 */
enum sovia_memory_cause {
	SOVIA_MEMORY_SILENT,
	SOVIA_MEMORY_WAY,
	SOVIA_MEMORY_DEVICE,
	SOVIA_MEMORY_REFUSED,
	SOVIA_MEMORY_CAUSES
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

enum sovia_memory_answer sovia_memory_ask(struct sovia_net *snet, const struct sovia_pair *pair);
void sovia_memory_learn(struct sovia_net *snet, const struct sovia_pair *pair,
			enum sovia_memory_cause cause);
void sovia_memory_clear(struct sovia_net *snet, const struct sovia_pair *pair);
u64 sovia_service_key(const struct sovia_net *snet, const struct sovia_pair *pair, u16 port);
bool sovia_services_any(const struct sovia_net *snet);
bool sovia_service_is_tcp(const struct sovia_net *snet, u64 key);
void sovia_service_learn(struct sovia_net *snet, u64 key, unsigned long refused);
void sovia_service_forget(struct sovia_net *snet, u64 key);
void sovia_memory_show(struct sovia_net *snet, struct seq_file *seq, unsigned int bucket);
void sovia_memories_init(struct sovia_net *snet);
void sovia_memories_forget(struct sovia_net *snet);

#endif /* _SOVIA_PEER_MEMORY_H */

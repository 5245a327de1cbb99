/* SPDX-License-Identifier: GPL-2.0-only */
/* Keys of a namespace: who may be met with which. */
#ifndef _SOVIA_KEY_H
#define _SOVIA_KEY_H

#include "core/net.h"
#include "core/provider.h"
#include "key_name.h"
#include "secret.h"

/**
 * struct sovia_key_use - the key under which two kernels have met
 * @id: its number, or 0 without one
 * @serial: tells this key from others of the same number; 0 without one
 */
struct sovia_key_use {
	u64	id;
	u64	serial;
};

/**
 * struct sovia_key_info - a key, to be shown
 * @name: its description
 * @number: the kernel's number of it, as keyctl(2) uses it
 * @err: 0, or why it is not used: -EKEYREVOKED, -EKEYEXPIRED or -ENOKEY
 */
struct sovia_key_info {
	struct sovia_key_name	name;
	s32			number;
	int			err;
};

int sovia_keys_offer(struct sovia_net *snet, const struct sovia_pair *pair, u64 *ids);
int sovia_keys_take(struct sovia_net *snet, const struct sovia_pair *pair, const u64 *ids,
		    unsigned int count, struct sovia_key_use *use, struct sovia_secret *secret);
bool sovia_keys_permit(struct sovia_net *snet, const struct sovia_pair *pair,
		       const struct sovia_key_use *use);
bool sovia_keys_show(struct sovia_net *snet, unsigned int index, struct sovia_key_info *info,
		     u32 *generation);
int sovia_keys_delete(struct sovia_net *snet, u64 id);
int sovia_keys_revoke(struct sovia_net *snet, u64 id);
void sovia_keys_net_init(struct sovia_net *snet);
void sovia_keys_drop(struct sovia_net *snet);
int sovia_keys_init(void);
void sovia_keys_exit(void);

#endif /* _SOVIA_KEY_H */

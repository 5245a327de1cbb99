/* SPDX-License-Identifier: GPL-2.0-only */
/* What only the two kernels of a rendezvous know, and the MACs under it. */
#ifndef _SOVIA_SECRET_H
#define _SOVIA_SECRET_H

#include <sovia/rendezvous.h>
#include "core/provider.h"

#define SOVIA_SECRET_LEN	32

/**
 * struct sovia_secret - shared by two kernels
 * @bytes: never logged or shown
 */
struct sovia_secret {
	u8	bytes[SOVIA_SECRET_LEN];
};

/**
 * enum sovia_seal - which of the two hellos of a set-up has a MAC
 * @SOVIA_SEAL_REQ: the request's
 * @SOVIA_SEAL_REP: the reply's
 */
enum sovia_seal {
	SOVIA_SEAL_REQ,
	SOVIA_SEAL_REP,
};

void sovia_secret_of_key(struct sovia_secret *secret, const void *bytes, unsigned int len);
void sovia_secret_derive(struct sovia_secret *secret, const struct sovia_secret *key,
			 const void *hello, unsigned int hello_len,
			 const void *answer, unsigned int answer_len);
void sovia_secret_sign(const struct sovia_secret *secret, void *msg, unsigned int len);
bool sovia_secret_signed(const struct sovia_secret *secret, const void *msg, unsigned int len);
void sovia_secret_seal(const struct sovia_secret *secret, enum sovia_seal which,
		       struct sovia_hello *hello, const struct sovia_path *path);
bool sovia_secret_sealed(const struct sovia_secret *secret, enum sovia_seal which,
			 const struct sovia_hello *hello, const struct sovia_path *path);

#endif /* _SOVIA_SECRET_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* 6.18 renamed struct blake2s_state; Kbuild looks for the new name. */
#ifndef _SOVIA_COMPAT_BLAKE2S_H
#define _SOVIA_COMPAT_BLAKE2S_H

#include <crypto/blake2s.h>

#ifndef SOVIA_BLAKE2S_CTX
#define blake2s_ctx	blake2s_state
#endif

#endif /* _SOVIA_COMPAT_BLAKE2S_H */

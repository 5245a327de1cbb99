/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Keys that are added. */
#ifndef SOVIA_KEY_H
#define SOVIA_KEY_H

#include <stddef.h>

/* Bytes of a key: one more than the kernel takes, so that it refuses what is too long. */
#define KEY_READ_MAX 65

/* key.c */
extern const char key_help[];
int key_add(const char *id, const char *peer, const char *own, const void *secret, size_t len);
const char *key_why_not(int err);

/* key_load.c */
int key_load(int argc, char **argv);

#endif

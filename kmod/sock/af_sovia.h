/* SPDX-License-Identifier: GPL-2.0-only */
/* The family. */
#ifndef _SOVIA_AF_SOVIA_H
#define _SOVIA_AF_SOVIA_H

#include "sock.h"

extern struct proto sovia_prot;

#endif /* _SOVIA_AF_SOVIA_H */

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SOVIA_PEER_H
#define SOVIA_PEER_H

#include <libmnl/libmnl.h>

int peer_show(const struct nlattr *nest);

#endif

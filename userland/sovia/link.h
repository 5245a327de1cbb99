/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef SOVIA_LINK_H
#define SOVIA_LINK_H

#include <libmnl/libmnl.h>

int link_show(const struct nlattr *nest);

#endif

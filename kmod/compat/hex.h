/* SPDX-License-Identifier: GPL-2.0-only */
/* Since 6.4; before, and for some time after, linux/kernel.h has what is in it. */
#ifndef _SOVIA_COMPAT_HEX_H
#define _SOVIA_COMPAT_HEX_H

#ifdef SOVIA_HEX_H
#include <linux/hex.h>
#else
#include <linux/kernel.h>
#endif

#endif /* _SOVIA_COMPAT_HEX_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* The debugfs file "break". */
#ifndef _SOVIA_LINK_BREAK_H
#define _SOVIA_LINK_BREAK_H

int sovia_break_init(void);

#endif /* _SOVIA_LINK_BREAK_H */

/* SPDX-License-Identifier: GPL-2.0-only */
/* Generic netlink: what administrators read and change. */
#ifndef _SOVIA_GENL_H
#define _SOVIA_GENL_H

int sovia_genl_init(void);
void sovia_genl_exit(void);

#endif /* _SOVIA_GENL_H */

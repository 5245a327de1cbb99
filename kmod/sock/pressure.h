/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory is short: ask back what has been promised. */
#ifndef _SOVIA_PRESSURE_H
#define _SOVIA_PRESSURE_H

void sovia_pressure(void);
void sovia_pressure_exit(void);

#endif /* _SOVIA_PRESSURE_H */

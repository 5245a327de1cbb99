/* SPDX-License-Identifier: GPL-2.0-only */
/* The established table. */
#ifndef _SOVIA_CONN_TABLE_H
#define _SOVIA_CONN_TABLE_H

#include "lane.h"

int sovia_conn_hash(struct sovia_conn *conn);
void sovia_conn_unhash(struct sovia_conn *conn);
struct sovia_conn *sovia_conn_lookup(struct sovia_lane *lane, u16 lport, u16 rport);
struct sovia_conn *sovia_conn_occupant(struct sovia_lane *lane, u16 lport, u16 rport);
struct sovia_conn *sovia_conn_find(struct sovia_net *snet, const struct sovia_pair *pair,
				   u16 lport, u16 rport);
struct sovia_conn *sovia_conn_mirror(const struct sovia_conn *conn);
bool sovia_conn_taken(struct sovia_net *snet, const struct sovia_pair *pair, u16 lport,
		      u16 rport);
int sovia_conn_table_init(struct sovia_net *snet);
void sovia_conn_table_exit(struct sovia_net *snet);

#endif /* _SOVIA_CONN_TABLE_H */

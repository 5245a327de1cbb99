/* SPDX-License-Identifier: GPL-2.0-only */
/* Events, for those who listen to the multicast group. */
#ifndef _SOVIA_EVENT_H
#define _SOVIA_EVENT_H

struct sovia_link;
struct sovia_net;
struct sovia_peer;
struct sovia_tcp_entry;

void sovia_event_link(struct sovia_link *link);
void sovia_event_peer(const struct sovia_peer *peer);
void sovia_event_tcp(struct sovia_net *snet, const struct sovia_tcp_entry *entry);

#endif /* _SOVIA_EVENT_H */

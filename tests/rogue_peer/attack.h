/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What all attacks need beside the peer itself: the victim's side of things. */
#ifndef ATTACK_H
#define ATTACK_H

#include "peer.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

extern struct in_addr own_addr, victim_addr;
extern unsigned char noise[SLOT];
extern unsigned long messages;
/* Ports of the victim's listeners: one reads all, one closes at once, one accepts nothing. */
extern uint16_t sink_port, closer_port, full_port;

void expect(bool ok, const char *what, unsigned int a, unsigned int b);
uint32_t chance(uint32_t below);

int victim_socket(void);
int victim_listener(int backlog, uint16_t *port);
int victim_connect(void);
int sees(int fd, short events, int ms);
unsigned int victim_links(const char *state);
bool no_links(void);
void fill_window(struct conn *c);

/* The groups that are not rogue_peer.c's. */
void hellos(void);
void resumes(void);
void answering(void);
void links(void);
void crowd(void);
void unacknowledged(void);
void untaken(void);
void hoard(void);

#endif

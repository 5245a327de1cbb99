/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by all attacks: the victim's programs and state, checks, random numbers. */
#ifndef ATTACK_H
#define ATTACK_H

#include "peer.h"

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

extern struct in_addr own_addr, victim_addr;
extern unsigned char noise[SLOT];
extern unsigned long messages;
/* Ports of the victim's listeners: one reads all, one closes at once, one never accepts. */
extern uint16_t sink_port, closer_port, full_port;

void expect(bool ok, const char *what, unsigned int a, unsigned int b);
uint32_t chance(uint32_t below);

int victim_socket(void);
int victim_listener(int backlog, uint16_t *port);
int victim_connect(void);
int sees(int fd, short events, int ms);
unsigned int victim_links(const char *state);
bool few_links(unsigned int most);
bool no_links(void);
void fill_window(struct conn *c);

/* Groups of attacks in other files. */
void hellos(void);
void resumes(void);
void answering(void);
void links(void);
void parks(void);
void parked(void);
void crowd(void);
void unacknowledged(void);
void untaken(void);
void hoard(void);

#endif

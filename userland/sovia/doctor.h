/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What sovia doctor finds. */
#ifndef SOVIA_DOCTOR_H
#define SOVIA_DOCTOR_H

#include <netinet/in.h>
#include <stdbool.h>

enum finding {
	FINE,
	NOTE,
	BROKEN,
};

/* doctor.c */
void found(enum finding finding, const char *check, const char *mend, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
bool read_line(const char *path, char *text, unsigned int size);

/* doctor_device.c */
bool doctor_devices(void);
bool doctor_device_for(const char *netdev, const struct in6_addr *own);

/* doctor_peer.c */
int doctor_find(const char *node, struct in6_addr *addr, unsigned int *scope);
void doctor_peer(const struct in6_addr *addr, unsigned int scope, unsigned int port);

#endif

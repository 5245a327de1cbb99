/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Random numbers of the fuzzers of system calls: the same seed gives the same ones (SplitMix64). */
#ifndef CHANCE_H
#define CHANCE_H

#include <stdint.h>

static inline uint64_t chance_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

#endif /* CHANCE_H */

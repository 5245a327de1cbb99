/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the command prints: each value once, as text or into a JSON object. */
#ifndef SOVIA_OUT_H
#define SOVIA_OUT_H

#include <stdbool.h>
#include <stdint.h>

enum out_color {
	OUT_PLAIN,
	OUT_GOOD,
	OUT_BAD,
	OUT_DULL,
};

void out_ahead(const char *key, const char *format, const char *value);
void out_begin(void);
void out_end(void);
int out_finish(void);
void out_now(void);
void out_break(void);
void out_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
void out_string(const char *key, const char *format, const char *value);
void out_colored(enum out_color color, const char *key, const char *format, const char *value);
void out_number(const char *key, const char *format, uint64_t value);
void out_hex(const char *key, const char *format, uint64_t value);
void out_flag(const char *key, const char *text);
void out_list_begin(const char *key);
void out_list_end(void);
void out_nest_begin(void);
void out_nest_end(void);

#endif

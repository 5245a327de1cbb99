/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Decisions of a fuzzer, read from its input byte by byte; zeros after its end. */
#ifndef FUZZ_INPUT_H
#define FUZZ_INPUT_H

#include "standin.h"

struct input {
	const u8	*data;
	size_t		left;
};

static inline u8 take8(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->data++;
}

static inline u16 take16(struct input *in)
{
	u16 high = take8(in);

	return high << 8 | take8(in);
}

static inline u32 take32(struct input *in)
{
	u32 high = take16(in);

	return high << 16 | take16(in);
}

/* Up to @len bytes, as many as are left. */
static inline size_t take_bytes(struct input *in, void *to, size_t len)
{
	len = min(len, in->left);
	memcpy(to, in->data, len);
	in->data += len;
	in->left -= len;
	return len;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

#endif /* FUZZ_INPUT_H */

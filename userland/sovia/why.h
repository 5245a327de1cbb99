/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Why a connection fell back to TCP, or a peer is not reached. */
#ifndef SOVIA_WHY_TEXT_H
#define SOVIA_WHY_TEXT_H

const char *why_name(unsigned int why);
const char *why_text(unsigned int why);

#endif

// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints' code. */
#define CREATE_TRACE_POINTS
#include "trace.h"

// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoints' code, which reads the objects of all rooms. */
#include "link/link.h"
#include "peer/peer.h"
#include "sock/sock.h"
#include "sock/tcp_log.h"
#define CREATE_TRACE_POINTS
#include "core/trace.h"

#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Tracepoints (Documentation/observing.rst): each fires, and says what happened.  trace_scripts.sh and
# trace_flow.sh have what is built upon them.
#
# vm: --pair --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

check 'an echo server' start_server
each tracepoints tracepoints "$SOVIA_PEER" 5004
finish

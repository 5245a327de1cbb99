#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two threads on one socket: every call beside every other one (tests/fuzz/beside.c), and options and accept() that meet
# the moment when a socket becomes TCP's (tests/fuzz/ulp_race.c, accept_swap.c), on the debug kernel.
#
# vm: --kernel debug --leaks --mem 2048 --timeout 500 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/beside.sh source-path=SCRIPTDIR
. lib/beside.sh

# Where the kernel has no TLS, the other option is tried alone.
tls() { modprobe tls 2>/dev/null || true; }

limit 300
check 'the tester builds'			build
tls
check 'options that change the operations'	ulp_race 20
tell
check 'listeners that become TCP sockets'	accept_swap 20
tell
echo "# --seed $SEED"
check 'calls beside each other'			beside 120
tell
check 'nothing is left'				nothing_left
check 'the module unloads'			eventually modprobe -r sovia
finish

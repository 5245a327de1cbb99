#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#     beside_long.sh [SECONDS [SECONDS]]
#
# beside.sh for a quarter of an hour: no two calls are left out, and a part of it with memory that comes late.
#
# vm: --kernel debug --leaks --mem 2048 --timeout 2400 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/beside.sh source-path=SCRIPTDIR
. lib/beside.sh

PLAIN=${1:-600}
SLOW_MEMORY=${2:-300}

limit 600
check 'the tester builds'		build
echo "# --seed $SEED"
check 'calls beside each other'		beside "$PLAIN"
tell
check 'none is left out'		said 'never=0'
check 'nothing is left'			nothing_left
check 'with memory that comes late'	beside "$SLOW_MEMORY" --slow
tell
check 'nothing is left'			nothing_left
check 'the module unloads'		eventually modprobe -r sovia
finish

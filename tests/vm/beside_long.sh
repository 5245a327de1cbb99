#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#     beside_long.sh [--part 1/3|2/3|3/3]
#
# beside.sh for a quarter of an hour: first, until no two calls are left out, then with memory that comes late, and over a
# lane.  Prints how often each two calls have met, on one socket and at both ends of a connection.
#
# vm: --kernel debug --leaks --mem 2048 --timeout 2400 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/beside.sh source-path=SCRIPTDIR
. lib/beside.sh

PART=${2:-all}
MATRIX=$(mktemp)

lane() { eventually modprobe -r sovia && modprobe sovia loop_lane=1 && equal "$(lib/loop_kind)" lane; }

limit 600
check 'the tester builds'		build
echo "# --seed $SEED"
if [ "$PART" = all ] || [ "$PART" = 1/3 ]; then
	check 'calls beside each other'		beside 540 --matrix "$MATRIX"
	tell
	check 'none is left out'		said 'never=0'
	sed 's/^/# /' "$MATRIX"
	check 'nothing is left'			nothing_left
fi
if [ "$PART" = all ] || [ "$PART" = 2/3 ]; then
	check 'with memory that comes late'	beside 300 --slow
	tell
	check 'nothing is left'			nothing_left
fi
if [ "$PART" = all ] || [ "$PART" = 3/3 ]; then
	check 'a lane within the host'		lane
	check 'calls beside each other, over it' beside 120
	tell
	check 'nothing is left'			nothing_left
fi
check 'the module unloads'		eventually modprobe -r sovia
finish

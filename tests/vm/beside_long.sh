#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#     beside_long.sh [--part 1/2|2/2]
#
# beside.sh for a quarter of an hour: first, until no two calls are left out, then with memory that comes late.
#
# vm: --kernel debug --leaks --mem 2048 --timeout 2400 --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/beside.sh source-path=SCRIPTDIR
. lib/beside.sh

PART=${2:-all}

limit 600
check 'the tester builds'		build
echo "# --seed $SEED"
if [ "$PART" != 2/2 ]; then
	check 'calls beside each other'		beside 540
	tell
	check 'none is left out'		said 'never=0'
	check 'nothing is left'			nothing_left
fi
if [ "$PART" != 1/2 ]; then
	check 'with memory that comes late'	beside 300 --slow
	tell
	check 'nothing is left'			nothing_left
fi
check 'the module unloads'		eventually modprobe -r sovia
finish

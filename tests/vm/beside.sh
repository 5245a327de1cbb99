#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two threads on one socket: every call beside every other one (tests/fuzz/beside.c), on the debug kernel.
#
# vm: --kernel debug --leaks --mem 2048 --timeout 500
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/beside.sh source-path=SCRIPTDIR
. lib/beside.sh

limit 300
check 'the tester builds'		build
check 'calls beside each other'		beside 120
check 'nothing is left'			nothing_left
check 'the module unloads'		eventually modprobe -r sovia
finish

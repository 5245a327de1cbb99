#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# sovia-flow draws where the time of messages has gone, as the programs themselves have seen it.
#
# vm: --pair --append kunit.enable=0
set -u
cd "$(dirname "$0")" || exit 1
# shellcheck source=lib/tap.sh source-path=SCRIPTDIR
. lib/tap.sh
# shellcheck source=lib/pair.sh source-path=SCRIPTDIR
. lib/pair.sh

PINGS=30 SIZE=1000

# A recording of both nodes.  The other one begins first and ends last.
records() {
	there "rm -f $WORK/recording; sovia-flow -o $WORK/there -n -- sh -c 'touch $WORK/recording; while [ -e $WORK/recording ]; do sleep 0.2; done' \
		>$WORK/recorder 2>&1 & until [ -e $WORK/recording ]; do sleep 0.2; done" || return
	sovia-flow -o "$WORK/here" -n -- pingpong "$SOVIA_PEER" 5004 $PINGS $SIZE "$WORK/times" >"$WORK/lport" || return
	there "rm $WORK/recording; eventually eval '! pgrep trace-cmd >/dev/null'; cat $WORK/there.dat" >"$WORK/there.dat"
	[ -s "$WORK/there.dat" ]
}
draws() { sovia-flow -o "$WORK/$1" -s $SIZE -p 5004 -j "$WORK/$1.json" -r "$WORK/here.dat" "${@:2}"; }
right() { flow_check "$1" "$WORK/$1.json" "$WORK/$1.svg" "$WORK/times" "$(cat "$WORK/lport")" $SIZE; }
burst() { sovia-flow -o "$WORK/burst" -b 10 -r "$WORK/here.dat" && grep -q 'the first 10 messages' "$WORK/burst.svg"; }
no_instance() { [ ! -e /sys/kernel/tracing/instances/sovia-flow ]; }

limit 120
check 'an echo server'				start_server
check 'both nodes are recorded'			records
check '... and nothing stays'			no_instance
check 'a chart of this node'			draws one
each 'this node'				right one
check 'a chart of both nodes'			draws both -P "$WORK/there.dat"
check '... tells how right it is'		said 'the other clock is -\?[0-9.]* us ahead, +- [0-9.]* us'
each 'both nodes'				right both
check 'a chart of single messages'		burst
finish
